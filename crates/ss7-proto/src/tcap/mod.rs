//! TCAP (Q.773; ANSI: T1.114) as a walk to what routing uses: transaction identifiers, the application context of the
//! dialogue, components with their operation codes.

mod answer;
mod component;
mod context;
mod transaction;

pub use answer::{Answer, Outcome, Problem, Reason, abort, element};
pub use component::{Component, ComponentType, Components, OperationCode};
pub use context::{ApplicationContext, ContextPrefix};
pub use transaction::{Fault, MessageType, Transaction, TransactionId};
