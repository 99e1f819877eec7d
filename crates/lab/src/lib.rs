//! The laboratory: runs of operators' call models against functions, drills, comparisons, the command line.
//!
//! A run, from above:
//!
//! 1. a [`callmodel`] says how much of what is sent, to how large a network, with how slow peers, and what the
//!    benchmark guide printed for the same;
//! 2. [`run`] starts the function under test as a process of its own, its peers as others ([`sim`]), registers
//!    the population ([`workload`]), and starts the generator;
//! 3. the generator ([`loadgen`]) sends on a schedule that does not wait for answers, measures from the intended
//!    time of sending, and has the workload judge the answers: a wrong one is a failure;
//! 4. [`report::measure`] reads the processes from outside;
//! 5. [`report`] puts it all beside the guide's figures.
//!
//! [`traffic`] is the gentle background traffic of `signalbox up`. [`bench`] compares two programs for one job in one
//! run. [`suite`] runs all models of a function. [`cli`] is what the binary mounts.
//!
//! The lab knows functions as processes and addresses; it names none of their crates. To add a function: a
//! section in [`callmodel::CallModel`], a module in [`workload`] that makes and judges its traffic, and one
//! in `run` that starts it with its peers.
//!
//! Deliberately missing: measured loads over TLS towards functions other than the SCP, and loads from more
//! than one machine.

pub mod bench;
mod call;
pub mod cli;
mod diameter_client;
mod identity;
pub mod run;
pub mod suite;
pub mod traffic;

// One dependency is enough for the binary and for tests that drive the laboratory.
pub use loadgen::{client, engine};
pub use {callmodel, loadgen, report, simulators as sim, workload};
