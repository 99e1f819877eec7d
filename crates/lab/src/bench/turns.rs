//! Relays under one load in turns: each near the most that it carries, and all at one rate.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::phase::{Loaded, Phase};
use crate::run::{Place, Progress, RunError, figure};
use loadgen::{Generator, Plan, TICK, Traffic};

/// How long a request may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);
/// Requests that may be without an answer at once.
const MOST_IN_FLIGHT: u32 = 20_000;
/// Seed of everything random.
const SEED: u64 = 6733;
/// The rate of the measured rounds, of the highest that held.
const OF_KNEE: f64 = 0.8;
/// The equal rate for all, of the highest that the slowest holds.
const OF_SLOWEST: f64 = 0.8;

/// Starts the generator of a relay, which sends nothing yet.
pub(super) fn generator(
    address: SocketAddr,
    connections: u32,
    traffic: Vec<Traffic>,
    place: &Place,
) -> Result<Generator, RunError> {
    generator_with(MOST_IN_FLIGHT, (address, connections), traffic, place)
}

/// As [`generator`], with this bound of requests that may be without an answer at once.
pub(super) fn generator_with(
    max_in_flight: u32,
    (address, connections): (SocketAddr, u32),
    traffic: Vec<Traffic>,
    place: &Place,
) -> Result<Generator, RunError> {
    let plan = Plan {
        targets: vec![address],
        authority: address.to_string(),
        connections,
        timeout: TIMEOUT,
        max_in_flight,
        arrivals: loadgen::Arrivals::Poisson,
        seed: SEED,
        cpus: place.lab_cpus.clone(),
        tick: TICK,
        tls: None,
        sources: Vec::new(),
    };
    Generator::start(&plan, traffic).map_err(RunError::Generator)
}

/// How relays are loaded.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    /// How often each is measured.
    pub rounds: u32,
    /// How long each time.
    pub duration: Duration,
    /// Requests per second for all; none: as many as each carries.
    pub rate: Option<f64>,
}

/// What was measured of one relay.
pub(super) struct Measured {
    pub(super) name: &'static str,
    /// The highest rate that held for a moment, if it was searched for.
    pub(super) knee: Option<f64>,
    /// Most of that.
    rate: f64,
    /// At that rate.
    pub(super) full: Phase,
    /// At the rate that all hold.
    pub(super) equal: Phase,
}

/// One program under one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The program.
    pub name: String,
    /// Processor time per request, in microseconds.
    pub cpu_us_per_request: f64,
    /// Requests served rightly per second.
    pub rps: f64,
    /// Median latency, the simulators' own included.
    pub p50_ms: f64,
    /// 99th percentile of it.
    pub p99_ms: f64,
    /// Cores in use on average.
    pub cores: f64,
    /// Cores that other processes took of those that the program was kept to.
    pub other_cores: f64,
    /// Share of the requests that were served rightly.
    pub success: f64,
    /// The highest rate that held for a moment, if it was searched for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub knee_rps: Option<f64>,
}

impl Row {
    pub(super) fn new(measured: &Measured, phase: &Phase) -> Self {
        Self {
            name: measured.name.to_owned(),
            cpu_us_per_request: round(phase.cpu_us_per_request(), 3),
            rps: round(phase.rps(), 1),
            p50_ms: phase.quantile_ms(0.5),
            p99_ms: phase.quantile_ms(0.99),
            cores: round(phase.cores(), 3),
            other_cores: round(phase.others(), 3),
            success: round(phase.success(), 6),
            knee_rps: measured.knee.map(|knee| round(knee, 0)),
        }
    }
}

/// The rows of all relays: near the most that each carries, and at one rate.
pub(super) fn rows(measured: &[Measured]) -> [Vec<Row>; 2] {
    let at = |part: fn(&Measured) -> &Phase| measured.iter().map(|one| Row::new(one, part(one))).collect();
    [at(|one| &one.full), at(|one| &one.equal)]
}

/// What went wrong near the most that each carries, by examples.
pub(super) fn examples(measured: &[Measured]) -> Vec<String> {
    let each = measured
        .iter()
        .flat_map(|one| one.full.examples.iter().take(3).map(|text| (one.name, text)));
    each.map(|(name, text)| format!("{name}: {text}")).collect()
}

/// Processor time per request of one program by that of another.
pub(super) fn times<'r>(rows: impl IntoIterator<Item = &'r Row, IntoIter: Clone>, of: &str, by: &str) -> f64 {
    let rows = rows.into_iter();
    let cpu = |name: &str| {
        let row = rows.clone().find(|row| row.name == name);
        row.map_or(f64::NAN, |row| row.cpu_us_per_request)
    };
    cpu(of) / cpu(by).max(1e-9)
}

/// Rows at both loads as those of a Markdown table, with ratios to a reference first; a request stands for this number of messages.
pub(super) fn table((full, equal): (&[Row], &[Row]), reference: &str, messages: f64) -> String {
    let loads = [("near the most", full), ("at one rate", equal)];
    let each = loads.iter().flat_map(|(load, rows)| {
        rows.iter().map(move |row| {
            format!(
                "| {load} | {} | **{:.3}** | {:.2} | {} | {} | {} |\n",
                row.name,
                times(*rows, &row.name, reference),
                row.cpu_us_per_request / messages,
                figure(row.rps),
                figure(row.p50_ms),
                figure(row.p99_ms)
            )
        })
    });
    each.collect()
}

pub(super) fn round(number: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (number * factor).round() / factor
}

impl Turns {
    /// Measures each relay in turn, and stops all.
    pub(super) fn measure(
        &self,
        mut relays: Vec<Loaded>,
        place: &Place,
        progress: &mut Progress,
    ) -> Result<Vec<Measured>, RunError> {
        let mut knees = Vec::new();
        for relay in relays.iter_mut() {
            relay.await_answers(progress)?;
            knees.push(match self.rate {
                Some(_) => None,
                None => Some(relay.knee(place, progress)?),
            });
            if let Some(Some(knee)) = knees.last() {
                progress.note(&format!(
                    "{}: holds {} requests per second",
                    relay.name,
                    figure(*knee)
                ));
            }
        }
        let slowest = knees.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        let equal = self.rate.unwrap_or(slowest * OF_SLOWEST);
        let mut measured: Vec<Measured> = relays
            .iter()
            .zip(&knees)
            .map(|(relay, knee)| Measured {
                name: relay.name,
                knee: *knee,
                rate: knee.map_or(equal, |knee| knee * OF_KNEE),
                full: Phase::default(),
                equal: Phase::default(),
            })
            .collect();
        for round in 1..=self.rounds {
            for (relay, of) in relays.iter_mut().zip(&mut measured) {
                for (rate, sum) in [(of.rate, &mut of.full), (equal, &mut of.equal)] {
                    progress.status(&format!(
                        "round {round} of {}: {} at {} requests per second",
                        self.rounds,
                        relay.name,
                        figure(rate)
                    ));
                    let phase = relay.load(rate, self.duration, place)?;
                    progress.note(&format!("round {round}: {:<12} {}", relay.name, phase.in_words()));
                    sum.add(&phase);
                }
            }
        }
        for relay in relays {
            relay.stop()?;
        }
        Ok(measured)
    }
}
