//! A bad day: mixed traffic through four functions while one incident follows the other.

mod disk;
mod incidents;
mod judge;
mod kinds;
mod load;
mod mme;
mod network;
mod watch;

use std::time::{Duration, Instant};

use time::OffsetDateTime;

use self::judge::{Facts, Passed};
use self::load::Load;
use self::network::Network;
use self::watch::State;
use super::rig::Place;
use super::{Options, Progress, RigError, RunError};
use ::report::{Point, Report, Series};
use callmodel::Found;
use callmodel::bad_day::{BadDayModel, Incident};

/// How long anything may take: the first requests, a report, the return of everything.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at alarms and readiness.
const TURN: Duration = Duration::from_millis(50);
/// Without failures for this long, requests are answered as before.
const CALM: Duration = Duration::from_secs(1);
/// Between two points of the timeline.
const POINT: Duration = Duration::from_millis(1000);

/// Runs the day. The length is shared out among the incidents; each lasts until it is reported.
///
/// # Errors
/// When something does not start, or no requests are answered before the first incident.
pub(super) fn run(
    found: &Found,
    model: &BadDayModel,
    options: &Options,
    place: &Place,
    rate: Option<f64>,
    progress: &mut Progress,
) -> Result<(Report, Series), RunError> {
    let refuse = |why: &str| RunError::from(RigError::Settings(why.to_owned()));
    let rate =
        rate.ok_or_else(|| refuse("--rate max: a run with incidents searches for no rate; give one"))?;
    if options.target.is_some() {
        return Err(refuse(
            "--target: the functions of a bad day are killed; the lab starts all of them",
        ));
    }
    progress.status("starting four functions and their peers …");
    let mut network = Network::start(model, place)?;
    let targets = network.targets(found.model.load.timeout.duration())?;
    let load = Load::new();
    let started = OffsetDateTime::now_utc();
    let mut day = Day {
        load: &load,
        points: Vec::new(),
        sampled: Instant::now(),
        begun: Instant::now(),
        hold: options.duration / u32::try_from(model.incidents.len().max(1)).unwrap_or(1),
        passed: Vec::new(),
    };
    let lived = std::thread::scope(|scope| {
        load.start(scope, &targets, rate);
        let lived = day.live(model, &mut network, progress);
        load.stop();
        lived
    });
    lived?;
    let facts = Facts {
        found,
        model,
        place,
        started,
        network: &network,
        load: &load,
        passed: &day.passed,
        seconds: day.begun.elapsed().as_secs_f64(),
        rate,
    };
    let (points, (report, mut series)) = (day.points, judge::report(&facts));
    series.timeline = points;
    network.stop();
    Ok((report, series))
}

/// The course of the day.
struct Day<'a> {
    load: &'a Load,
    points: Vec<Point>,
    sampled: Instant,
    begun: Instant,
    /// How long each incident lasts at least.
    hold: Duration,
    passed: Vec<Passed>,
}

impl Day<'_> {
    fn live(
        &mut self,
        model: &BadDayModel,
        network: &mut Network,
        progress: &mut Progress,
    ) -> Result<(), RunError> {
        progress.status("waiting until requests of all kinds are answered …");
        let usual = self.wait(PATIENCE, |load| {
            // Connections that a function has not made yet are alarms of their own.
            let states = states(network);
            let is_calm = states
                .iter()
                .all(|state| state.alarms.is_empty() && state.readiness.0 == 200);
            is_calm && calm(load, Instant::now() - CALM)
        });
        if usual.is_none() {
            let now = Instant::now();
            let failures = self.load.failures(now - CALM, now);
            let why = failures.first().map_or_else(String::new, |failure| {
                format!(": {} {}", failure.kind.name(), failure.why)
            });
            let alarms: Vec<_> = states(network)
                .into_iter()
                .flat_map(|state| state.alarms)
                .collect();
            return Err(RigError::Settings(format!(
                "requests are not all answered within {} s{why}; alarms {alarms:?}",
                PATIENCE.as_secs()
            ))
            .into());
        }
        for incident in &model.incidents {
            if network.impossible.iter().any(|(one, _)| one == incident) {
                continue;
            }
            progress.status(&format!("{} …", incidents::name(*incident)));
            let passed = self.pass(*incident, network)?;
            self.passed.push(passed);
        }
        Ok(())
    }

    /// One incident, from its begin until all is as before.
    fn pass(&mut self, incident: Incident, network: &mut Network) -> Result<Passed, RigError> {
        let before = states(network);
        let wanted = incidents::reported(incident);
        let begun = Instant::now();
        incidents::begin(incident, network)?;
        let (mut alarm, mut readiness) = (None, None);
        let hold = self.hold;
        self.wait(PATIENCE, |_| {
            if let Some(wanted) = wanted {
                let at = network.functions().iter().position(|one| one.name == wanted.by);
                let now = at
                    .map(|at| State::of(network.functions()[at].admin))
                    .unwrap_or_default();
                let before = at.and_then(|at| before.get(at));
                if now.has(wanted.alarm) {
                    alarm.get_or_insert_with(|| begun.elapsed());
                }
                if before.is_some_and(|before| before.readiness != now.readiness) {
                    readiness.get_or_insert_with(|| begun.elapsed());
                }
            }
            let has_reported =
                wanted.is_none_or(|wanted| alarm.is_some() && (readiness.is_some() || !wanted.readiness));
            has_reported && begun.elapsed() >= hold
        });
        incidents::end(incident, network)?;
        let ended = Instant::now();
        let cleared = self.wait(PATIENCE, |_| states(network) == before);
        let now = if cleared.is_some() {
            Vec::new()
        } else {
            states(network)
        };
        let named = network.functions().map(|function| function.name).into_iter();
        let differences = named.zip(before.iter().zip(&now));
        let differences = differences
            .filter(|(_, (before, now))| before != now)
            .map(|(name, (before, now))| format!("{name}: {}", now.since(before)));
        let differences: Vec<String> = differences.collect();
        self.wait(PATIENCE, |load| {
            calm(load, ended.max(Instant::now() - CALM)) && ended.elapsed() >= CALM
        });
        Ok(Passed {
            incident,
            begun,
            ended,
            over: Instant::now(),
            alarm,
            readiness,
            cleared,
            differences,
        })
    }

    /// Waits until this holds, and returns after how long; `None` when it does not in time.
    fn wait(&mut self, patience: Duration, mut holds: impl FnMut(&Load) -> bool) -> Option<Duration> {
        let begun = Instant::now();
        loop {
            self.sample();
            if holds(self.load) {
                return Some(begun.elapsed());
            }
            if begun.elapsed() > patience {
                return None;
            }
            std::thread::sleep(TURN);
        }
    }

    /// Takes a point of the timeline when it is time for one.
    fn sample(&mut self) {
        let seconds = self.sampled.elapsed().as_secs_f64();
        if seconds < POINT.as_secs_f64() {
            return;
        }
        self.sampled = Instant::now();
        let total = self.load.take_recent().total();
        let quantile = |q| total.latency.value_at_quantile(q) as f64 / 1000.0;
        self.points.push(Point {
            t: self.begun.elapsed().as_secs_f64(),
            measured: true,
            offered: total.offered as f64 / seconds,
            achieved: total.succeeded as f64 / seconds,
            failed: total.failures() as f64 / seconds,
            p50: quantile(0.5),
            p99: quantile(0.99),
            ..Point::default()
        });
    }
}

/// Whether requests of each kind were answered rightly since this moment, and none failed that was sent since.
fn calm(load: &Load, since: Instant) -> bool {
    load.all_answered_since(since) && load.failures(since, Instant::now()).is_empty()
}

fn states(network: &Network) -> Vec<State> {
    let functions = network.functions();
    functions
        .iter()
        .map(|function| State::of(function.admin))
        .collect()
}
