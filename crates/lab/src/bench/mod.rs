//! Several programs for one job, under one load, in one run: `signalbox lab bench …`.
//!
//! Absolute figures drift on shared machines, so whatever is compared is measured in turns: all programs run all the
//! time on the same cores, one is loaded while the others have nothing to do, then the next, for several rounds. What
//! counts is processor time per request, from `/proc`.

use std::path::PathBuf;

use crate::run::{Place, RigError};

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
pub use turns::Turns;

/// Where the programs of a bench run.
#[derive(Clone, Debug)]
pub struct Site {
    /// Cores of what is measured; the lab gets the others. Empty: the scheduler decides.
    pub pin: Vec<usize>,
    /// Settings, logs and data go under this.
    pub out: PathBuf,
    /// The program that runs our functions and the simulators, instead of this one.
    pub program: Option<PathBuf>,
}

impl Site {
    fn place(&self) -> Result<Place, RigError> {
        Place::at(&self.out, &self.pin, self.program.as_deref())
    }

    /// The same in a folder below.
    fn part(&self, folder: &str) -> Result<Place, RigError> {
        Place::at(&self.out.join(folder), &self.pin, self.program.as_deref())
    }
}
