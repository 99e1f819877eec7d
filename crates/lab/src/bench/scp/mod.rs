//! Our SCP, HAProxy and nghttpx as proxies between the same clients and the same producer.
//!
//! For processor time the client is `h2load`, as fast as it goes, with a fixed number of requests in flight; all
//! proxies run all the time on the same cores, and are loaded one after the other, round by round. `direct` is the
//! same client without a proxy. For the time that each adds it is the lab's own generator, an open loop at a tenth, a
//! quarter and half of what our SCP carries ([`latency`]).

mod h2load;
mod latency;
mod proxies;
mod result;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::run::{Options, Place, Progress, RunError, figure};

use h2load::Load;
pub use result::{Comparison, LatencyRow, Row};

/// How to compare.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How often each is measured.
    pub rounds: u32,
    /// How long each time.
    pub duration: Duration,
    /// Cores of the proxies; client and producers get the others. Empty: the scheduler decides.
    pub pin: Vec<usize>,
    /// Connections of the client.
    pub connections: u32,
    /// Requests in flight on each.
    pub streams: u32,
    /// Settings and logs go under this.
    pub out: PathBuf,
    /// The program that runs our SCP and the simulators, instead of this one.
    pub program: Option<PathBuf>,
}

/// Bytes of a request's body and of an answer's.
const REQUEST_BYTES: usize = 4_200;
const ANSWER_BYTES: u32 = 4_800;

/// Something that is measured: where the client goes, with which headers, and whose processor time counts.
struct Subject {
    name: &'static str,
    address: SocketAddr,
    headers: Vec<(&'static str, String)>,
    /// Position of its process; `None` without a proxy.
    proxy: Option<usize>,
    full: result::Sum,
    /// At each of [`latency::SHARES`].
    latency: [latency::Phase; 3],
}

/// The body of a request.
fn body() -> String {
    format!("{{\"data\":\"{}\"}}", "x".repeat(REQUEST_BYTES - 11))
}

/// Compares them.
///
/// # Errors
/// When something does not start; [`RunError::Missing`] when a program is not installed.
pub fn compare(settings: &Settings, progress: &mut Progress) -> Result<Comparison, RunError> {
    proxies::find()?;
    let place = Place::new(&Options {
        pin: settings.pin.clone(),
        out: settings.out.clone(),
        program: settings.program.clone(),
        ..Options::default()
    })?;
    progress.status("starting the proxies and the producers …");
    let mut rig = proxies::Rig::start(&place)?;
    let mut load = Load::new(&place, settings)?;
    for subject in &rig.subjects {
        progress.status(&format!("warming up {}", subject.name));
        load.run(subject, Duration::from_secs(1))?;
    }
    for round in 1..=settings.rounds {
        for at in 0..rig.subjects.len() {
            flood(&mut rig, at, &mut load, settings.duration, round, progress)?;
        }
    }
    let most = rig.subjects[0].full.rps();
    for (number, share) in latency::SHARES.into_iter().enumerate() {
        let rate = (most * share).max(1.0);
        for round in 1..=settings.rounds {
            for at in 0..rig.subjects.len() {
                let name = rig.subjects[at].name;
                progress.status(&format!(
                    "round {round}: {name} at {} requests per second",
                    figure(rate)
                ));
                let phase = latency::measure(&rig, at, settings, &place, rate)?;
                progress.note(&format!(
                    "round {round}: {name:<12} {:>6.0} requests/s, p50 {:.3} ms, p99 {:.3} ms, {} failed",
                    phase.succeeded as f64 / phase.seconds.max(1e-3),
                    phase.latency.value_at_quantile(0.5) as f64 / 1e3,
                    phase.latency.value_at_quantile(0.99) as f64 / 1e3,
                    phase.offered.saturating_sub(phase.succeeded)
                ));
                rig.subjects[at].latency[number].add(&phase);
            }
        }
    }
    let made = result::comparison(&rig.subjects, most, settings, &place);
    rig.stop();
    Ok(made)
}

/// One subject, as fast as it goes.
fn flood(
    rig: &mut proxies::Rig,
    at: usize,
    load: &mut Load,
    duration: Duration,
    round: u32,
    progress: &mut Progress,
) -> Result<(), RunError> {
    let name = rig.subjects[at].name;
    progress.status(&format!("round {round}: {name}, as fast as it goes"));
    let before = rig.cpu(at);
    let began = Instant::now();
    let mut phase = load.run(&rig.subjects[at], duration)?;
    phase.seconds = began.elapsed().as_secs_f64();
    phase.cpu = rig.cpu(at).saturating_sub(before);
    progress.note(&format!("round {round}: {name:<12} {}", phase.in_words()));
    rig.subjects[at].full.add(phase);
    Ok(())
}
