//! The generator: an open loop of requests over many connections, judged and timed.
//!
//! [`Schedule`] says when, a [`Workload`] says what and judges the answers (in Diameter,
//! [`Requests`](crate::diameter::Requests) do), [`Generator`] is a set of threads that do it, [`Record`] is what
//! came of it.

mod carrier;
mod generator;
mod http;
mod ledger;
mod link;
mod record;
mod schedule;
mod workload;

pub(crate) use carrier::Carrier;
pub use carrier::Traffic;
pub use generator::{Generator, Plan, Snapshot, TICK};
pub(crate) use ledger::{Ended, Ledger, Sent};
pub use record::{FailureKind, OperationRecord, Record};
pub use schedule::{Arrivals, Due, Schedule};
pub use workload::{Answer, Draft, Fault, Interest, Ticket, Workload};
