//! A contest: several subjects under the same loads, in turns.
//!
//! 1. *Saturation*: a closed loop with a fixed number of requests in flight, as fast as each subject goes.
//! 2. *Open loop* at shares of what the reference carried, the same rates for all, over many client connections:
//!    requests leave on a schedule that does not wait for answers, and latency counts from when a request was to be
//!    sent.
//! 3. *Burst*: three times what the reference carried for a while, then half of it again.
//!
//! One generator makes all loads. A round in which a subject did not serve what was offered has *collapsed*: it is
//! reported as such and left out of every average.

mod burst;
mod compared;
mod load;
mod result;
mod rows;
mod text;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use crate::run::{Place, Progress, RunError, figure};
use loadgen::Workload;
use report::measure::Process;

pub(super) use compared::COMPARED;
use load::{Load, Sample};
pub use result::Comparison;
pub use rows::{Burst, Round, Row, Section, Window};

/// Shares of the most that the reference carries, at which all are measured in an open loop.
pub(super) const SHARES: [f64; 4] = [0.10, 0.25, 0.50, 0.75];
/// The share before and after a burst, and the burst.
const BASE_SHARE: f64 = 0.50;
const BURST_FACTOR: f64 = 3.0;

/// How to load the subjects of a contest.
#[derive(Clone, Debug)]
pub struct Loads {
    /// Rounds of each subject under each load.
    pub rounds: u32,
    /// Length of each round.
    pub duration: Duration,
    /// Connections of the closed loop.
    pub connections: u32,
    /// Requests in flight on each of them.
    pub streams: u32,
    /// Connections of the open loop.
    pub clients: u32,
    /// Length of a burst; zero: none.
    pub burst: Duration,
    /// What counts as the most, in requests per second, instead of what the reference carries.
    pub most: Option<f64>,
}

impl Loads {
    /// The same loads, each for a moment: checks that everything works, not how fast it is.
    #[must_use]
    pub fn quick(self) -> Self {
        Self {
            rounds: 1,
            duration: self.duration.min(Duration::from_secs(1)),
            burst: self.burst.min(Duration::from_secs(1)),
            ..self
        }
    }
}

/// Something that is measured.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) name: String,
    /// Addresses that requests go to, one per connection in turn.
    pub(super) targets: Vec<SocketAddr>,
    /// What it is asked.
    pub(super) source: Box<dyn Source>,
    /// Whose processor time counts; `None` for the peers without anything between.
    pub(super) process: Option<Process>,
}

/// Where the requests for a subject come from; each load begins with requests of its own.
pub(super) trait Source: fmt::Debug {
    /// The requests of one load, and the judge of their answers.
    fn workload(&self) -> Box<dyn Workload>;
}

/// The same requests over and over, and what a right answer is.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    pub(super) method: &'static str,
    /// Paths with their queries, used in turn.
    pub(super) paths: Vec<String>,
    /// Headers of all requests.
    pub(super) headers: Vec<(&'static str, String)>,
    /// Headers of one request, used in turn; may be empty.
    pub(super) rotating: Vec<(&'static str, String)>,
    /// A JSON body, if not empty.
    pub(super) body: Bytes,
    pub(super) status: u16,
    /// Bytes that the body of a right answer has.
    pub(super) answer_bytes: std::ops::RangeInclusive<u64>,
}

/// Subjects and the loads for them.
pub(super) struct Contest<'a> {
    pub(super) title: String,
    pub(super) subjects: &'a [Subject],
    /// Position of the subject whose figures the others are divided by.
    pub(super) reference: usize,
    /// Processes of the servers behind the subjects.
    pub(super) peers: Vec<Process>,
    pub(super) place: &'a Place,
    pub(super) loads: &'a Loads,
}

impl Contest<'_> {
    /// Runs all loads.
    ///
    /// # Errors
    /// When the generator fails.
    pub(super) fn run(&self, progress: &mut Progress) -> Result<Section, RunError> {
        let closed = Load::Closed {
            connections: self.loads.connections,
            streams: self.loads.streams,
        };
        for subject in self.subjects {
            progress.status(&format!("warming up {}", subject.name));
            load::measure(
                self,
                subject,
                closed,
                Duration::from_secs(1).min(self.loads.duration),
            )?;
        }
        progress.note(&format!("{}: as fast as each goes", self.title));
        let saturated = self.rounds(closed, progress)?;
        let carried = self.of_reference(&saturated).map_or(0.0, |samples| {
            samples.iter().map(Sample::rps).sum::<f64>() / samples.len().max(1) as f64
        });
        let most = self.loads.most.unwrap_or(carried);
        let mut open = Vec::new();
        for share in SHARES {
            let rate = (most * share).max(1.0);
            progress.note(&format!(
                "{}: {} % of the most, {} requests per second",
                self.title,
                figure(share * 100.0),
                figure(rate)
            ));
            let load = Load::Open {
                rate,
                connections: self.loads.clients,
            };
            open.push((share, rate, self.rounds(load, progress)?));
        }
        let bursts = self.bursts(most, progress)?;
        Ok(rows::section(self, most, &saturated, &open, bursts))
    }

    /// All rounds of one load: each subject once per round, so that a slow minute of the machine meets all of them.
    fn rounds(&self, load: Load, progress: &mut Progress) -> Result<Vec<Vec<Sample>>, RunError> {
        let mut samples: Vec<Vec<Sample>> = self.subjects.iter().map(|_| Vec::new()).collect();
        for round in 1..=self.loads.rounds {
            for (subject, samples) in self.subjects.iter().zip(&mut samples) {
                progress.status(&format!("round {round}: {}", subject.name));
                let sample = load::measure(self, subject, load, self.loads.duration)?;
                progress.note(&format!(
                    "  round {round}: {:<14} {}",
                    subject.name,
                    sample.in_words()
                ));
                samples.push(sample);
            }
        }
        Ok(samples)
    }

    fn of_reference<'s>(&self, samples: &'s [Vec<Sample>]) -> Option<&'s Vec<Sample>> {
        samples.get(self.reference)
    }

    fn bursts(&self, most: f64, progress: &mut Progress) -> Result<Vec<Burst>, RunError> {
        if self.loads.burst.is_zero() {
            return Ok(Vec::new());
        }
        let (base, peak) = ((most * BASE_SHARE).max(1.0), (most * BURST_FACTOR).max(1.0));
        progress.note(&format!(
            "{}: {} requests per second, for {} s {}, and again {}",
            self.title,
            figure(base),
            figure(self.loads.burst.as_secs_f64()),
            figure(peak),
            figure(base)
        ));
        let proxies = self.subjects.iter().filter(|subject| subject.process.is_some());
        proxies
            .map(|subject| {
                progress.status(&format!("a burst at {}", subject.name));
                let burst = burst::measure(self, subject, base, peak)?;
                progress.note(&format!(
                    "  {:<14} {}",
                    subject.name,
                    text::burst_in_words(&burst)
                ));
                Ok(burst)
            })
            .collect()
    }
}
