//! Our SCP, HAProxy and nghttpx as proxies between the same clients and the same producers.
//!
//! All proxies run all the time on the same cores, an NRF, the producers and the generator on the others. `scp-model-c`
//! names the producer by its API root, `scp-model-d` has it discovered; `direct` is the generator without a proxy. Each
//! number of producers is a [`contest`](super::contest) of its own, with nghttpx as the reference.

mod checks;
mod proxies;

use std::path::PathBuf;

use super::Site;
use super::contest::{Comparison, Contest, Loads, Requests};
use crate::run::{Progress, RunError};

use proxies::PATH;
pub(super) use proxies::{HAPROXY, MODEL_C, MODEL_D, NGHTTPX, Producers, await_learning, model_d, nrf, scp};

/// How to compare.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The loads.
    pub loads: Loads,
    /// Numbers of producers; a contest for each.
    pub producers: Vec<u32>,
    /// Settings of the SCP, laid over those that the bench makes.
    pub function_config: Option<PathBuf>,
    /// Where it runs.
    pub site: Site,
}

/// Bytes of a request's body and of an answer's.
const REQUEST_BYTES: usize = 4_200;
const ANSWER_BYTES: u32 = 4_800;

/// The request that all proxies relay.
fn requests() -> Requests {
    Requests {
        method: "POST",
        paths: vec![PATH.to_owned()],
        headers: Vec::new(),
        rotating: Vec::new(),
        body: format!("{{\"data\":\"{}\"}}", "x".repeat(REQUEST_BYTES - 11)).into(),
        status: 201,
        answer_bytes: u64::from(ANSWER_BYTES)..=u64::from(ANSWER_BYTES),
    }
}

/// Compares them.
///
/// # Errors
/// When something does not start; [`RunError::Missing`] when a program is not installed.
pub fn compare(settings: &Settings, progress: &mut Progress) -> Result<Comparison, RunError> {
    super::processes::find("haproxy", "haproxy")?;
    super::processes::find("nghttpx", "nghttp2-proxy")?;
    let mut sections = Vec::new();
    let mut cpus = Vec::new();
    for count in &settings.producers {
        let place = settings.site.part(&format!("producers-{count}"))?;
        progress.status(&format!("starting the proxies and {count} producers …"));
        let rig = proxies::Rig::start(&place, *count, settings.function_config.as_deref())?;
        let contest = Contest {
            title: match count {
                1 => "1 producer".to_owned(),
                _ => format!("{count} producers"),
            },
            subjects: &rig.subjects,
            reference: rig.reference,
            peers: vec![rig.producers.process()],
            place: &place,
            loads: &settings.loads,
        };
        sections.push(contest.run(progress)?);
        rig.stop();
        cpus = place.function_cpus;
    }
    Ok(Comparison::new(
        "make bench-scp",
        sections,
        (REQUEST_BYTES as u64, u64::from(ANSWER_BYTES)),
        &settings.loads,
        cpus,
        checks::checks,
    ))
}
