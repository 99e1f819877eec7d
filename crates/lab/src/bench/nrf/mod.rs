//! Our NRF answering discoveries from memory, beside nginx serving a static file of the same size, and beside other
//! NRFs whose command line is given.
//!
//! nginx does less: it decides nothing, and its file is in the page cache. It is what a very good server of HTTP/2 takes
//! for an answer of this size, the reference that an NRF should reach.

mod population;
mod servers;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use super::contest::{Comparison, Contest, Loads, Section};
use crate::run::{Options, Place, Progress, RunError};
use ::report::Check;

pub(super) use population::profiles;
pub(super) use servers::{ask, nginx, nrf, requests};

/// How to compare.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The loads.
    pub loads: Loads,
    /// Other NRFs.
    pub others: Vec<OtherNrf>,
    /// Cores of the servers; the generator gets the others. Empty: the scheduler decides.
    pub pin: Vec<usize>,
    /// Settings of our NRF, laid over those that the bench makes.
    pub function_config: Option<PathBuf>,
    /// Settings and logs go under this.
    pub out: PathBuf,
    /// The program that runs our NRF, instead of this one.
    pub program: Option<PathBuf>,
}

/// An NRF of others: written `NAME=ADDRESS=COMMAND LINE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherNrf {
    /// How the result names it.
    pub name: String,
    /// Where it serves HTTP/2 in cleartext.
    pub address: SocketAddr,
    /// What starts it in the foreground, for a shell.
    pub command: String,
}

impl FromStr for OtherNrf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, '=');
        let wanted = || {
            format!(
                "{text:?}: expected NAME=ADDRESS=COMMAND, as in open5gs=127.0.0.10:7777=open5gs-nrfd -c nrf.yaml"
            )
        };
        let mut next = || parts.next().filter(|part| !part.is_empty()).ok_or_else(wanted);
        let (name, address, command) = (next()?, next()?, next()?);
        Ok(Self {
            name: name.to_owned(),
            address: address.parse().map_err(|_| wanted())?,
            command: command.to_owned(),
        })
    }
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
    let place = Place::new(&Options {
        pin: settings.pin.clone(),
        out: settings.out.clone(),
        program: settings.program.clone(),
        ..Options::default()
    })?;
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
    const COMPARED: [Option<f64>; 4] = [None, Some(0.10), Some(0.25), Some(0.50)];
    let ratios = COMPARED.map(|share| section.row(OURS, share).and_then(|row| row.cpu_ratio));
    let text = ratios.map(|one| one.map_or_else(|| "collapsed".to_owned(), |one| format!("{one:.2}")));
    let failed: u64 = COMPARED
        .iter()
        .filter_map(|share| section.row(OURS, *share))
        .map(|row| row.failed)
        .sum();
    vec![
        Check::new(
            "processor time of a discovery by nginx's for a file, saturated and at 10, 25 and 50 %",
            "at most 1.00 each",
            text.join(", "),
            ratios.iter().all(|one| one.is_some_and(|one| one <= 1.0)),
        ),
        Check::new(
            "discoveries without a right answer",
            "none",
            failed.to_string(),
            failed == 0,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_nrf_is_a_name_an_address_and_a_command_line() {
        let other: OtherNrf = "open5gs=127.0.0.10:7777=open5gs-nrfd -c nrf.yaml -e x=y"
            .parse()
            .unwrap();
        assert_eq!(other.name, "open5gs");
        assert_eq!(other.address, SocketAddr::from(([127, 0, 0, 10], 7777)));
        assert_eq!(other.command, "open5gs-nrfd -c nrf.yaml -e x=y");
        for wrong in [
            "open5gs-nrfd",
            "a=b",
            "a=127.0.0.1:1=",
            "a=localhost:1=x",
            "=127.0.0.1:1=x",
        ] {
            let error = wrong.parse::<OtherNrf>().unwrap_err();
            assert!(error.contains("NAME=ADDRESS=COMMAND"), "{error}");
        }
    }
}
