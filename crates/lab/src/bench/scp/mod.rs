//! Our SCP, HAProxy and nghttpx as proxies between the same clients and the same producer.
//!
//! The client is `h2load`, as fast as it goes, with a fixed number of requests in flight; all proxies run all
//! the time on the same cores, and are loaded one after the other, round by round. `direct` is the same client
//! without a proxy. At half of what the slowest carries each is measured again for the time it adds.

mod h2load;
mod proxies;
mod result;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::run::{Options, Place, Progress, Rate, RunError, figure};

use h2load::Load;
pub use result::{Comparison, Row};

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
    headers: Vec<String>,
    /// Position of its process; `None` without a proxy.
    proxy: Option<usize>,
    full: result::Sum,
    half: result::Sum,
}

/// Compares them.
///
/// # Errors
/// When something does not start; [`RunError::Missing`] when a program is not installed.
pub fn compare(settings: &Settings, progress: &mut Progress) -> Result<Comparison, RunError> {
    proxies::find()?;
    let place = Place::new(&Options {
        rate: Rate::Max,
        duration: settings.duration,
        warmup: Duration::ZERO,
        pin: settings.pin.clone(),
        connections: None,
        sessions: None,
        generators: 1,
        out: settings.out.clone(),
        program: settings.program.clone(),
        target: None,
        function_config: None,
    })?;
    progress.status("starting the proxies and the producers …");
    let mut rig = proxies::Rig::start(&place)?;
    let mut load = Load::new(&place, settings)?;
    for subject in &rig.subjects {
        progress.status(&format!("warming up {}", subject.name));
        load.run(subject, Duration::from_secs(1), None)?;
    }
    for round in 1..=settings.rounds {
        for at in 0..rig.subjects.len() {
            measure(&mut rig, at, &mut load, settings.duration, None, round, progress)?;
        }
    }
    let slowest = rig
        .subjects
        .iter()
        .map(|one| one.full.rps())
        .fold(f64::INFINITY, f64::min);
    let half = slowest / 2.0;
    for round in 1..=settings.rounds {
        for at in 0..rig.subjects.len() {
            measure(
                &mut rig,
                at,
                &mut load,
                settings.duration,
                Some(half),
                round,
                progress,
            )?;
        }
    }
    let made = result::comparison(&rig.subjects, half, settings, &place);
    rig.stop();
    Ok(made)
}

fn measure(
    rig: &mut proxies::Rig,
    at: usize,
    load: &mut Load,
    duration: Duration,
    rate: Option<f64>,
    round: u32,
    progress: &mut Progress,
) -> Result<(), RunError> {
    let name = rig.subjects[at].name;
    let words = match rate {
        Some(rate) => format!("round {round}: {name} at {} requests per second", figure(rate)),
        None => format!("round {round}: {name}, as fast as it goes"),
    };
    progress.status(&words);
    let before = rig.cpu(at);
    let began = Instant::now();
    let mut phase = load.run(&rig.subjects[at], duration, rate)?;
    phase.seconds = began.elapsed().as_secs_f64();
    phase.cpu = rig.cpu(at).saturating_sub(before);
    progress.note(&format!("round {round}: {name:<12} {}", phase.in_words()));
    let subject = &mut rig.subjects[at];
    match rate {
        Some(_) => subject.half.add(phase),
        None => subject.full.add(phase),
    }
    Ok(())
}
