//! The generator: an open loop of requests over many connections, judged and timed.
//!
//! [`Schedule`] says when, a [`Workload`] says what and judges the answers, [`Generator`] is a set of threads
//! that do it, [`Record`] is what came of it.

mod generator;
mod link;
mod record;
mod schedule;
mod workload;

pub use generator::{Generator, Plan, Snapshot};
pub use record::{FailureKind, OperationRecord, Record};
pub use schedule::{Due, Schedule};
pub use workload::{Answer, Draft, Fault, Interest, Ticket, Workload};
