//! The generator: an open loop of requests over many connections, judged and timed.
//!
//! [`Schedule`] sets the times, a [`Workload`] makes the requests and judges the answers (in Diameter,
//! [`Requests`](crate::diameter::Requests) do), [`Generator`] runs the threads, [`Record`] holds the results.

mod carrier;
mod generator;
mod http;
mod ledger;
mod link;
mod record;
mod schedule;
mod slots;
mod workload;

pub(crate) use carrier::Carrier;
pub use carrier::Traffic;
pub use generator::{Generator, Plan, Snapshot, TICK};
pub(crate) use ledger::{Ended, Ledger, Sent};
pub use record::{FailureKind, OperationRecord, Record};
pub use schedule::{Arrivals, Due, Schedule};
pub(crate) use slots::Slots;
pub use workload::{Answer, Draft, Fault, Interest, Ticket, Workload};
