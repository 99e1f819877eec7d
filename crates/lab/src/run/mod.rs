//! A run from start to end: set up, warm up, measure (or search for the knee), judge, report.

pub(crate) mod bsf;
mod children;
mod drill;
pub(crate) mod dsr;
mod judge;
mod nrf;
mod options;
mod progress;
mod ramp;
mod rig;
mod scp;
mod session;

use crate::callmodel::{Found, Function};
use crate::report::{Report, Series};

pub use bsf::Database;
pub use children::{ChildError, Guarded, Simulator};
pub use options::{Options, Rate, cpu_list, latency};
pub use progress::{Progress, figure};
pub use ramp::Ramp;
pub(crate) use rig::free_address;
pub use rig::{Place, RigError};

/// A run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Something could not be set up.
    #[error(transparent)]
    Rig(#[from] RigError),
    /// The generator failed.
    #[error("the generator failed: {0}")]
    Generator(std::io::Error),
    /// The function ended while it was under load.
    #[error(transparent)]
    Function(#[from] ChildError),
    /// A program to compare with is not here.
    #[error("{program} is not installed; on Debian: apt-get install {packages}")]
    Missing {
        /// What.
        program: &'static str,
        /// What brings it.
        packages: &'static str,
    },
    /// The model has no traffic that the lab can make.
    #[error("the model describes no traffic")]
    Empty,
    /// Nothing held, not even the lowest rate.
    #[error("no rate held: at {tps} transactions per second {why}")]
    NoKnee {
        /// The lowest rate that was tried.
        tps: String,
        /// Why it did not hold.
        why: String,
    },
}

/// Makes a run.
///
/// # Errors
/// When it cannot be made; a run that was made and failed its checks is no error.
pub fn run(found: &Found, options: &Options, progress: &mut Progress) -> Result<(Report, Series), RunError> {
    let model = &found.model;
    let full = model.ingress_tps();
    let tps = options
        .tps(full)
        .filter(|_| options.rate != Rate::Model || !model.searches());
    if tps.is_none() && model.sets_rates() {
        let why = "--rate max: a drill has rates of its own; give a rate or a factor";
        return Err(RigError::Settings(why.to_owned()).into());
    }
    // A search begins low, so that a slow function has a knee as well.
    let lowest = tps.unwrap_or(session::search_start(full));
    let place = rig::Place::new(options)?;
    progress.status("starting the function and its simulated peers …");
    let rig = match model.function().ok_or(RunError::Empty)? {
        Function::Nrf(nrf) => nrf::start(nrf, options, &place, lowest)?,
        Function::Dsr(dsr) => dsr::start(dsr, &model.load, options, &place)?,
        Function::Bsf(bsf) => bsf::start(bsf, &model.load, options, &place, progress)?,
        Function::Scp(scp) => scp::start(scp, options, &place)?,
    };
    session::Session::new(found, options, &place, rig, progress)?.run(tps)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What cannot be run is told before anything is started.
    #[test]
    fn a_drill_with_rates_of_its_own_is_not_searched_for_a_knee() {
        let found = crate::callmodel::find("dsr/kill-peers").unwrap();
        let options = Options {
            rate: Rate::Max,
            program: Some("/nothing/to/start".into()),
            ..Options::default()
        };
        let mut progress = Progress::default();
        let refused = run(&found, &options, &mut progress).unwrap_err().to_string();
        assert!(refused.contains("rates of its own"), "{refused}");
    }
}
