//! Several programs for one job, under one load, in one run: `signalbox lab bench …`.
//!
//! Absolute figures drift on shared machines, so whatever is compared is measured in turns: all programs run all the
//! time on the same cores, one is loaded while the others have nothing to do, then the next, for several rounds. What
//! counts is processor time per request, from `/proc`.

mod contest;
pub mod dp;
pub mod dsr;
mod figures;
mod freediameter;
pub mod instructions;
pub mod nrf;
mod others;
pub mod pdra;
mod phase;
pub mod policy;
mod processes;
mod routed;
pub mod sbr;
pub mod scef;
pub mod scp;
pub mod stp;
mod turns;

pub use contest::{Burst, Comparison, Loads, Round, Row, Section, Window};
pub use others::Other;
