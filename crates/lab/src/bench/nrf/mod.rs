//! Our NRF answering discoveries from memory, beside nginx serving a static file of the same size, and beside other
//! NRFs whose command line is given.
//!
//! nginx does less: it decides nothing, and its file is in the page cache. It is what a very good server of HTTP/2 takes
//! for an answer of this size, the reference that an NRF should reach.

mod population;
mod servers;

use std::path::PathBuf;

use super::Other;
use super::Site;
use super::contest::{COMPARED, Comparison, Contest, Loads, Section};
use crate::run::{Progress, RunError};
use ::report::Check;

pub(super) use population::profiles;
pub(super) use servers::{ask, nginx, nrf, requests};

/// How to compare.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The loads.
    pub loads: Loads,
    /// Other NRFs.
    pub others: Vec<Other>,
    /// Settings of our NRF, laid over those that the bench makes.
    pub function_config: Option<PathBuf>,
    /// Where it runs.
    pub site: Site,
}

/// Name of our NRF as a subject, and of the reference.
const OURS: &str = "nrf";
const NGINX: &str = "nginx";

/// Compares them.
///
/// # Errors
/// When something does not start; [`RunError::Missing`] when nginx is not installed.
pub fn compare(settings: &Settings, progress: &mut Progress) -> Result<Comparison, RunError> {
    super::processes::find("nginx", "nginx-light")?;
    let place = settings.site.place()?;
    progress.status("starting the servers …");
    let rig = servers::Rig::start(&place, settings)?;
    let contest = Contest {
        title: "Discovery from memory beside a static file".to_owned(),
        subjects: &rig.subjects,
        reference: rig
            .subjects
            .iter()
            .position(|subject| subject.name == NGINX)
            .unwrap_or_default(),
        peers: Vec::new(),
        place: &place,
        loads: &settings.loads,
    };
    let section = contest.run(progress)?;
    let answer_bytes = rig.answer_bytes;
    rig.stop();
    Ok(Comparison::new(
        "make bench-nrf",
        vec![section],
        (0, answer_bytes),
        &settings.loads,
        place.function_cpus.clone(),
        checks,
    ))
}

/// What is wanted: at no load does a discovery cost more than the file.
fn checks(section: &Section) -> Vec<Check> {
    let failed: u64 = COMPARED
        .iter()
        .filter_map(|share| section.row(OURS, *share))
        .map(|row| row.failed)
        .sum();
    vec![
        section.compare(
            "processor time of a discovery by nginx's for a file".to_owned(),
            (OURS, &section.reference),
            1.0,
        ),
        Check::new(
            "discoveries without a right answer",
            "none",
            failed.to_string(),
            failed == 0,
        ),
    ]
}
