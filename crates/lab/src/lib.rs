//! The laboratory: operators' call models, simulated peers, open-loop load, measurement, reports.
//!
//! A run, from above:
//!
//! 1. a [`callmodel`] says how much of what is sent, to how large a network, with how slow peers, and what the
//!    benchmark guide printed for the same;
//! 2. [`run`] starts the function under test as a process of its own, its peers as others ([`sim`]), registers
//!    the population ([`workload`]), and lets the generator go;
//! 3. the generator ([`load`]) sends on a schedule that does not wait for answers, measures from the intended
//!    time of sending, and has the workload judge the answers: a wrong one is a failure;
//! 4. [`measure`] looks at the processes from outside;
//! 5. [`report`] puts it all beside the guide's figures.
//!
//! Below that lie [`engine`] (an event loop) and [`http2`] (a protocol machine of the lab's own: a judge
//! should share no code with the accused, and cost far less) and [`diameter`] (clients of that protocol; only
//! the codec is shared with the accused). [`traffic`] is the gentle background traffic of
//! `signalbox up`. [`bench`] compares two programs for one job in one run. [`cli`] is what the binary mounts.
//!
//! The lab knows functions as processes and addresses; it names none of their crates. To add a function: a
//! section in [`callmodel::CallModel`], a module in [`workload`] that makes and judges its traffic, and one
//! in `run` that starts it with its peers.
//!
//! Deliberately missing: measured loads over TLS towards functions other than the SCP, and loads from more
//! than one machine.

pub mod bench;
pub mod callmodel;
pub mod cli;
pub mod client;
pub mod diameter;
pub mod engine;
pub mod http2;
pub mod load;
pub mod measure;
pub mod report;
pub mod run;
pub mod sim;
pub mod traffic;
mod weights;
pub mod workload;
