//! A run from start to end: set up, warm up, measure (or search for the knee), judge, report.

mod admin;
pub(crate) mod bsf;
mod checks;
mod children;
pub(crate) mod database;
mod day;
mod drill;
pub(crate) mod dsr;
pub(crate) mod ending;
mod files;
mod judge;
mod knee;
mod nrf;
mod options;
mod overload;
pub(crate) mod policy;
mod progress;
mod ramp;
mod relays;
mod rig;
mod roles;
pub(crate) mod scef;
mod scp;
mod services;
mod session;
pub(crate) mod stp;
mod whole;
mod window;

use std::borrow::Cow;
use std::process::{Command, Stdio};

use ::report::{Report, Series};
use callmodel::{Found, Function};

pub(crate) use ::report::figure;
pub use bsf::Database;
pub use children::{ChildError, Guarded, Simulator};
pub use options::{Options, Rate, cpu_list, latency};
pub use progress::Progress;
pub use ramp::Ramp;
pub use rig::{Place, RigError};
pub(crate) use rig::{free_address, write_config};

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
    /// No rate held, not even the lowest.
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
/// When it cannot be made; a run that was made and failed its checks is not an error.
pub fn run(found: &Found, options: &Options, progress: &mut Progress) -> Result<(Report, Series), RunError> {
    let (found, lifted) = for_search(found, options);
    let model = &found.model;
    let full = model.ingress_tps();
    let tps = options
        .tps(full)
        .filter(|_| options.rate != Rate::Model || !model.searches());
    if tps.is_none() && model.sets_rates() {
        let why = "--rate max: a drill has rates of its own; give a rate or a factor";
        return Err(RigError::Settings(why.to_owned()).into());
    }
    if options.contend && options.pin.is_empty() {
        let why = "--contend: needs --pin, the cores to compete for";
        return Err(RigError::Settings(why.to_owned()).into());
    }
    // A search begins at a low rate, so that a slow function has a knee as well.
    let lowest = tps.unwrap_or(session::search_start(full));
    let place = rig::Place::new(options)?;
    if let Some(core) = &model.core {
        return whole::run(&found, core, options, &place, tps, progress);
    }
    if let Some(day) = &model.bad_day {
        return day::run(&found, day, options, &place, tps, progress);
    }
    progress.status("starting the function and its simulated peers …");
    let mut rig = match model.function().ok_or(RunError::Empty)? {
        Function::Nrf(nrf) => nrf::start(nrf, options, &place, lowest)?,
        Function::Dsr(dsr) => dsr::start(dsr, &model.load, options, &place)?,
        Function::Stp(stp) => stp::start(stp, &model.load, options, &place)?,
        Function::Bsf(bsf) => bsf::start(bsf, &model.load, options, &place, progress)?,
        Function::Scp(scp) => scp::start(scp, options, &place)?,
        Function::Scef(scef) => scef::start(scef, &model.load, options, &place)?,
        Function::Policy(policy) => policy::start(policy, &model.load, options, &place, progress)?,
        Function::Core(_) | Function::BadDay(_) => return Err(RunError::Empty),
    };
    if options.contend {
        contend(&place, &mut rig)?;
    }
    if let Some(lifted) = lifted {
        rig.notes.push(format!(
            "--rate max: without {lifted} of the model, which would end the search"
        ));
    }
    session::Session::new(&found, options, &place, rig, progress)?.run(tps)
}

/// Starts a process that never sleeps on each core of the function: the scheduler gives it half of the core as soon as
/// the function wants more than the other half.
fn contend(place: &Place, rig: &mut rig::Rig) -> Result<(), RunError> {
    for cpu in &place.function_cpus {
        let mut command = Command::new("sh");
        command
            .args(["-c", "while :; do :; done"])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let name = format!("competitor-{cpu}");
        let log = place.folder.join(format!("{name}.log"));
        rig.beside.push(Guarded::start(&name, command, &[*cpu], &log)?);
    }
    rig.notes
        .push("--contend: a process that never sleeps competes for each core of the function".to_owned());
    Ok(())
}

/// The model of a run, and the limits lifted from it: a search for the highest rate has to find the function's
/// capacity, not a limit that the model's own configuration sets.
fn for_search<'f>(found: &'f Found, options: &Options) -> (Cow<'f, Found>, Option<&'static str>) {
    let free = match options.rate {
        Rate::Max => found.model.without_limits(),
        Rate::Model | Rate::Tps(_) | Rate::Times(_) => None,
    };
    match free {
        Some((model, lifted)) => {
            let name = found.name.clone();
            (Cow::Owned(Found { name, model }), Some(lifted))
        }
        None => (Cow::Borrowed(found), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_search_for_the_highest_rate_lifts_limits() {
        let found = callmodel::find("dsr/da-mp-relay").unwrap();
        let of = |rate| {
            let options = Options {
                rate,
                ..Options::default()
            };
            let (found, lifted) = for_search(&found, &options);
            (found.model.dsr.clone().unwrap().discards.len(), lifted.is_some())
        };
        assert_eq!(of(Rate::Max), (0, true));
        assert_eq!(of(Rate::Model), (4, false));
        assert_eq!(of(Rate::Times(2.0)), (4, false));
    }

    #[test]
    fn competition_needs_the_cores_to_compete_for() {
        let found = callmodel::find("scp/overload-3x").unwrap();
        let options = Options {
            rate: Rate::Tps(100.0),
            contend: true,
            program: Some("/nothing/to/start".into()),
            ..Options::default()
        };
        let refused = run(&found, &options, &mut Progress::default()).unwrap_err();
        assert!(refused.to_string().contains("--pin"), "{refused}");
    }

    /// A run that is not possible is refused before anything is started.
    #[test]
    fn a_drill_with_rates_of_its_own_is_not_searched_for_a_knee() {
        let found = callmodel::find("dsr/kill-peers").unwrap();
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
