//! Our PCF creating and deleting policy associations, beside PCFs of others whose command line is given.
//!
//! All have the same peers: an NRF at which they register and find a UDR and a BSF. Half of the requests are creations
//! (TS 29.507 §4.2.2, TS 29.512 §4.2.2), half deletions. A contest is held for AM and one for SM policies, for which all
//! start again; a PCF that does not create an association takes no part, and the result says what it answered.

mod pcfs;
mod requests;

pub(super) use pcfs::Counted;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use super::Other;
use super::Site;
use super::contest::{COMPARED, Comparison, Contest, Loads, Section};
use crate::run::{Progress, RigError, RunError};
use ::report::Check;
use workload::policy::Service;

/// How to compare.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The loads.
    pub loads: Loads,
    /// Other PCFs.
    pub others: Vec<Other>,
    /// Where the NRF of the comparison listens: other PCFs have it in their configuration.
    pub nrf: SocketAddr,
    /// Settings of our PCF, laid over those that the bench makes.
    pub function_config: Option<PathBuf>,
    /// Where it runs.
    pub site: Site,
}

/// Name of our PCF as a subject.
pub(super) const OURS: &str = "pcf";

/// The contests, and the folders of their settings and logs.
const SERVICES: [(Service, &str); 2] = [(Service::Am, "am"), (Service::Sm, "sm")];

/// Compares them.
///
/// # Errors
/// When something of ours does not start, or another PCF does not listen.
pub fn compare(settings: &Settings, progress: &mut Progress) -> Result<Comparison, RunError> {
    is_free(settings.nrf)?;
    let mut sections = Vec::new();
    let (mut bytes, mut cpus) = ((0, 0), Vec::new());
    for (service, folder) in SERVICES {
        let place = settings.site.part(folder)?;
        progress.status("starting the PCFs and their peers …");
        let mut rig = pcfs::Rig::start(&place, settings)?;
        let entry = rig.enter(service, progress)?;
        bytes = entry.bytes;
        let contest = Contest {
            title: title(service).to_owned(),
            // The first of the others; where there is none, ratios are to ourselves.
            reference: entry.subjects.len().saturating_sub(1).min(1),
            subjects: &entry.subjects,
            peers: rig.peers(),
            place: &place,
            loads: &settings.loads,
        };
        let section = contest.run(progress)?;
        sections.push(Section {
            notes: entry.absent,
            ..section
        });
        rig.stop();
        cpus = place.function_cpus;
    }
    Ok(Comparison::new(
        "make bench-pcf",
        sections,
        bytes,
        &settings.loads,
        cpus,
        checks,
    ))
}

/// Whether the NRF can have its address for itself: a function shares a port with another one of the same user.
fn is_free(nrf: SocketAddr) -> Result<(), RunError> {
    match TcpListener::bind(nrf) {
        Ok(_) => Ok(()),
        Err(error) => Err(RigError::Settings(format!(
            "--nrf-address: the NRF of the comparison cannot listen at {nrf} ({error}); end what listens there, or give \
             another address of this machine"
        ))
        .into()),
    }
}

fn title(service: Service) -> &'static str {
    match service {
        Service::Sm => "SM policies, created and deleted",
        Service::Am => "AM policies, created and deleted",
        Service::Ue => "UE policies, created and deleted",
    }
}

/// What is wanted: no request fails, and at no load do we take more than another PCF.
fn checks(section: &Section) -> Vec<Check> {
    let failed: u64 = COMPARED
        .iter()
        .filter_map(|share| section.row(OURS, *share))
        .map(|row| row.failed)
        .sum();
    let mut checks = vec![Check::new(
        format!("{}: our requests without a right answer", section.title),
        "none",
        failed.to_string(),
        failed == 0,
    )];
    for other in section.saturated.iter().filter(|row| row.name != OURS) {
        let what = format!("{}: our processor time by {}'s", section.title, other.name);
        checks.push(section.compare(what, (OURS, &other.name), 1.0));
    }
    checks
}
