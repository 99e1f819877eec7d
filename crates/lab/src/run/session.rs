//! The measured part of a run.

use std::time::{Duration, Instant};

use time::OffsetDateTime;

use super::children::Guarded;
use super::drill::{Outcome, Part, PartRecord};
use super::progress::Progress;
use super::ramp::Ramp;
use super::rig::{Place, Received, Rig};
use super::roles::Roles;
use super::window::{Mark, Window};
use super::{Options, RunError, figure};
use super::{judge, knee};
use ::report::{Point, Report, Series, Step};
use callmodel::Found;
use loadgen::{Arrivals, Generator, Plan, Record, Snapshot, TICK};
use report::measure::Connections;
use simulators::Stats;

/// Time that answers may take after the last request.
const DRAIN: Duration = Duration::from_secs(6);
/// Warm-up and length of a step of the search; only the second part is measured.
const SETTLE: Duration = Duration::from_millis(1500);
const LOOK: Duration = Duration::from_secs(3);
/// Number of lower rates that are tried when a rate does not hold for long.
const TRIES: u32 = 5;
/// Number of repetitions of a failed part when other processes took the function's cores meanwhile.
const REPEATS: u32 = 2;
/// Part of a run to which requests count that are not measured, such as the warm-up.
const WARMUP: u32 = 0;

/// The rate at which a search for the knee begins, for a model of this many transactions per second.
pub(super) fn search_start(full: f64) -> f64 {
    (full / 16.0).max(500.0)
}

/// A run in progress.
pub(super) struct Session<'a> {
    found: &'a Found,
    options: &'a Options,
    place: &'a Place,
    rig: Rig,
    generator: Generator,
    names: Vec<String>,
    progress: &'a mut Progress,
    step: u32,
    records: Vec<(u32, Record)>,
    timeline: Vec<Point>,
    /// Counts of the second in progress.
    second: Second,
    last_cpu: Option<(Instant, Duration)>,
    generator_cpu: Vec<Duration>,
    generator_bytes: Vec<(u64, u64)>,
    lateness: Duration,
    rss_max: u64,
    /// Samples of resident memory, and their sum.
    rss: (u32, f64),
    roles: Roles,
    connections: Connections,
    connections_asked: u32,
    in_flight: Vec<u64>,
    measuring: bool,
    /// When the time began in which the drill acts.
    acting: Option<Instant>,
    /// All cores that the lab may use.
    cpus: Vec<usize>,
    /// Counters at the end of the search, before the measured part.
    baseline: Option<Mark>,
}

#[derive(Default)]
struct Second {
    begun: Duration,
    last: Duration,
    record: Record,
    generator_cpu: Duration,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        found: &'a Found,
        options: &'a Options,
        place: &'a Place,
        mut rig: Rig,
        progress: &'a mut Progress,
    ) -> Result<Self, RunError> {
        let load = &found.model.load;
        let asked = options.connections.or(rig.connections);
        let connections_asked = asked.unwrap_or(load.connections);
        let plan = Plan {
            targets: rig.targets(),
            authority: rig.address.to_string(),
            connections: connections_asked,
            timeout: load.timeout.duration(),
            max_in_flight: load.max_in_flight.max(rig.in_flight.unwrap_or(0)),
            arrivals: match load.arrivals {
                callmodel::Arrivals::Poisson => Arrivals::Poisson,
                callmodel::Arrivals::Constant => Arrivals::Constant,
            },
            seed: load.seed,
            cpus: place.lab_cpus.clone(),
            tick: TICK,
            tls: rig.tls.clone(),
            sources: rig.sources.clone(),
        };
        let workloads = std::mem::take(&mut rig.workloads);
        let names = workloads.first().map(|w| w.operations()).unwrap_or_default();
        let threads = workloads.len();
        let generator = Generator::start(&plan, workloads).map_err(RunError::Generator)?;
        Ok(Self {
            found,
            options,
            place,
            rig,
            generator,
            names,
            progress,
            step: WARMUP,
            records: Vec::new(),
            timeline: Vec::new(),
            second: Second::default(),
            last_cpu: None,
            generator_cpu: vec![Duration::ZERO; threads],
            generator_bytes: vec![(0, 0); threads],
            lateness: Duration::ZERO,
            rss_max: 0,
            rss: (0, 0.0),
            roles: Roles::default(),
            connections: Connections::default(),
            connections_asked,
            in_flight: vec![0; threads],
            measuring: false,
            acting: None,
            // Without them, foreign load stays unknown.
            cpus: report::measure::cpus().unwrap_or_default(),
            baseline: None,
        })
    }

    /// Runs at this rate, or searches for the knee and runs there.
    pub(super) fn run(mut self, tps: Option<f64>) -> Result<(Report, Series), RunError> {
        let (tps, steps, limited_by) = match tps {
            Some(tps) => (tps, Vec::new(), None),
            None => {
                let (tps, steps, why) = self.search()?;
                (tps, steps, Some(why))
            }
        };
        let mut tps = tps;
        let factor = self.rig.drill.as_ref().map_or(1.0, |drill| drill.factor());
        let multiple = (factor - 1.0).abs() > f64::EPSILON;
        let (mut tries, mut repeats) = (0, 0);
        loop {
            if limited_by.is_some() {
                // Requests of the search must neither load the function nor be counted in the measured part.
                self.drain()?;
                self.baseline = Some(self.mark()?);
            }
            let started = OffsetDateTime::now_utc();
            let (window, parts) = self.measure(tps, !multiple)?;
            // A rate that held for three seconds need not hold for long: then a slightly lower rate is the knee. Where
            // other processes took the function's cores, the step shows nothing and is repeated.
            if limited_by.is_some() && tries < TRIES && self.verdict_on(&window).is_some() {
                let disturbed = window.is_disturbed(self.place) && repeats < REPEATS;
                let words = if disturbed {
                    "was disturbed by other processes; again"
                } else {
                    "did not hold for long; trying less"
                };
                self.progress.note(&format!("{} TPS {words}", figure(tps)));
                if disturbed {
                    repeats += 1;
                } else {
                    tps *= 0.95;
                    tries += 1;
                }
                continue;
            }
            if !multiple {
                return self.finish(started, (window, parts), None, steps, limited_by);
            }
            let rss = self.rss_max;
            let started = OffsetDateTime::now_utc();
            let over = self.measure(tps * factor, true)?;
            return self.finish(started, over, Some((window, rss)), steps, limited_by);
        }
    }

    /// The parts that the drill has, if it has any.
    fn parts(&self) -> Vec<Part> {
        self.rig
            .drill
            .as_ref()
            .map_or_else(Vec::new, |drill| drill.parts())
    }

    /// Warms up, measures and waits for the last answers. `acts`: whether the drill acts meanwhile.
    fn measure(&mut self, tps: f64, acts: bool) -> Result<(Window, Vec<PartRecord>), RunError> {
        let mut parts = self.parts();
        let apart = !parts.is_empty();
        if !apart {
            parts.push(Part::new("measuring", 1.0, 1.0));
        }
        let shares: f64 = parts.iter().map(|part| part.share).sum::<f64>().max(1e-9);
        let first = tps * parts.first().map_or(1.0, |part| part.factor);
        self.step_to(first, WARMUP);
        self.pass(
            self.options.warmup,
            &format!("warming up at {} TPS", figure(first)),
        )?;
        self.measuring = true;
        (self.lateness, self.rss_max) = (Duration::ZERO, 0);
        self.rss = (0, 0.0);
        self.roles.clear();
        self.roles.sample(Instant::now(), &self.rig.threads());
        let before = self.mark()?;
        self.acting = acts.then(Instant::now);
        let mut records: Vec<(u32, PartRecord)> = Vec::new();
        let mut begun = Instant::now();
        for mut part in parts {
            let rate = tps * part.factor;
            let words = format!("{}: {} TPS", part.name, figure(rate));
            if let Some(begin) = &mut part.begin {
                self.progress.status(&format!("{words}, beginning …"));
                begin(&mut self.rig.simulators)?;
            }
            self.step += 1;
            self.step_to(rate, self.step);
            // The part before went on while this one was begun.
            let now = Instant::now();
            if let Some((_, last)) = records.last_mut() {
                last.length = now.duration_since(begun);
            }
            begun = now;
            self.pass(self.options.duration.mul_f64(part.share / shares), &words)?;
            if apart {
                self.progress.note(&words);
            }
            let record = PartRecord {
                name: part.name,
                factor: part.factor,
                length: begun.elapsed(),
                record: Record::default(),
            };
            records.push((self.step, record));
        }
        self.acting = None;
        self.look_at_connections();
        let after = self.mark()?;
        self.measuring = false;
        self.drain()?;
        let mut whole = Record::new(self.names.len());
        let (mut weighted, mut seconds) = (0.0, 0.0);
        let mut measured = Vec::new();
        for (step, mut part) in records {
            part.record = self.take(step);
            whole.merge(&part.record);
            weighted += part.factor * part.length.as_secs_f64();
            seconds += part.length.as_secs_f64();
            measured.push(part);
        }
        let window = Window {
            tps: tps * weighted / f64::max(seconds, 1e-9),
            record: whole,
            before,
            after,
            lateness: self.lateness,
        };
        Ok((window, measured))
    }

    fn step_to(&mut self, tps: f64, step: u32) {
        self.generator.set(tps, step);
    }

    /// Stops sending and waits for the outstanding answers.
    fn drain(&mut self) -> Result<(), RunError> {
        self.step_to(0.0, WARMUP);
        let end = Instant::now() + DRAIN;
        loop {
            self.pass(Duration::from_millis(1100), "waiting for the last answers")?;
            if self.in_flight.iter().all(|count| *count == 0) || Instant::now() > end {
                return Ok(());
            }
        }
    }

    /// Searches for the knee: the highest rate that held, the steps, and the reason why a higher one failed.
    fn search(&mut self) -> Result<(f64, Vec<Step>, String), RunError> {
        let mut ramp = Ramp::new(search_start(self.found.model.ingress_tps()));
        let mut steps: Vec<Step> = Vec::new();
        let mut repeats = 0;
        while let Some(tps) = ramp.next() {
            self.step_to(tps, WARMUP);
            self.pass(SETTLE, &format!("searching: {} TPS", figure(tps)))?;
            self.step += 1;
            let step = self.step;
            self.lateness = Duration::ZERO;
            self.step_to(tps, step);
            let before = self.mark()?;
            self.pass(LOOK, &format!("searching: {} TPS", figure(tps)))?;
            let after = self.mark()?;
            // The answers of the last requests count; requests go on, so that nothing falls idle meanwhile.
            self.step_to(tps * 0.5, WARMUP);
            let patience = self
                .found
                .model
                .bounds
                .knee_p99
                .duration()
                .min(Duration::from_secs(2));
            self.pass(
                patience + Duration::from_millis(1100),
                &format!("searching: {} TPS", figure(tps)),
            )?;
            let window = Window {
                tps,
                record: self.take(step),
                before,
                after,
                lateness: self.lateness,
            };
            let failed = self.verdict_on(&window);
            let tried = knee::step(&window, self.place, failed.clone());
            self.progress.note(&knee::step_in_words(&tried));
            steps.push(tried);
            if failed.is_some() {
                self.drain()?;
                if window.is_disturbed(self.place) && repeats < REPEATS {
                    repeats += 1;
                    continue;
                }
            }
            repeats = 0;
            ramp.record(failed.is_none());
        }
        let limited_by = knee::limit(&steps, self.place, self.rig.function.is_some());
        match ramp.best() {
            Some(best) => Ok((best, steps, limited_by)),
            None => Err(RunError::NoKnee {
                tps: figure(steps.last().map_or(0.0, |s| s.tps)),
                why: steps.last().and_then(|s| s.failed.clone()).unwrap_or_default(),
            }),
        }
    }

    /// Why this window is beyond the knee; `None` when it is not.
    fn verdict_on(&self, window: &Window) -> Option<String> {
        knee::beyond_knee(window, &self.found.model.bounds)
    }

    /// What was used up to now.
    fn mark(&mut self) -> Result<Mark, RunError> {
        let mut simulators = Vec::new();
        for simulator in &mut self.rig.simulators {
            simulators.push((
                simulator.stats()?,
                simulator.process().usage().unwrap_or_default(),
            ));
        }
        let usage = self.rig.usage();
        let egress = self.rig.egress.iter().map(|one| match &one.count {
            Received::Simulator(at) => simulators
                .get(*at)
                .map_or(0, |(stats, _): &(Stats, _)| stats.requests),
            Received::Function(counter) => (counter.0)(),
        });
        let egress = egress.collect();
        Ok(Mark {
            at: Instant::now(),
            usage,
            busy: report::measure::busy(&self.place.function_cpus),
            busy_everywhere: report::measure::busy(&self.cpus),
            stolen: report::measure::stolen(&self.cpus),
            simulators,
            expected: self.rig.outgoing.iter().map(|one| (one.expected.0)()).collect(),
            egress,
            databases: self.rig.databases(),
            generator_cpu: self.generator_cpu.clone(),
            generator_bytes: self
                .generator_bytes
                .iter()
                .fold((0, 0), |sum, b| (sum.0 + b.0, sum.1 + b.1)),
        })
    }

    fn look_at_connections(&mut self) {
        self.connections = Connections::default();
        for process in self.rig.processes() {
            let Connections { incoming, outgoing } = process.process().connections();
            self.connections.incoming += incoming;
            self.connections.outgoing += outgoing;
        }
    }

    fn take(&mut self, step: u32) -> Record {
        let at = self.records.iter().position(|(s, _)| *s == step);
        at.map_or_else(
            || Record::new(self.names.len()),
            |at| self.records.swap_remove(at).1,
        )
    }

    /// Runs for this length, and collects what the generator reports.
    fn pass(&mut self, length: Duration, what: &str) -> Result<(), RunError> {
        let end = Instant::now() + length;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let snapshots = self.generator.snapshots(left.min(Duration::from_millis(100)));
            for snapshot in snapshots {
                self.take_in(snapshot, what);
            }
            if !self.generator.is_alive() {
                return Err(RunError::Generator(std::io::Error::other("a thread has ended")));
            }
            if let Some(function) = self.rig.processes().find_map(|f| (!f.is_alive()).then_some(f)) {
                return Err(function.gone("ended under load".to_owned()).into());
            }
            if let (Some(drill), Some(began)) = (&mut self.rig.drill, self.acting) {
                let (at, length) = (began.elapsed(), self.options.duration);
                drill.act(at, length, &mut self.rig.simulators)?;
            }
            if left.is_zero() {
                return Ok(());
            }
        }
    }

    fn take_in(&mut self, snapshot: Snapshot, what: &str) {
        let Snapshot {
            step,
            at,
            record,
            in_flight,
            lateness,
            cpu,
            bytes,
            thread,
            ..
        } = snapshot;
        self.generator_cpu[thread] = cpu;
        self.generator_bytes[thread] = bytes;
        self.in_flight[thread] = in_flight;
        self.lateness = self.lateness.max(lateness);
        // A thread may report two parts of the run with one timestamp: a second is over when the timestamp has
        // advanced.
        let last = self.second.last;
        let length = last.saturating_sub(self.second.begun);
        if at > last && length >= Duration::from_millis(900) {
            self.close_second(last, length, what);
        }
        self.second.last = self.second.last.max(at);
        self.second.record.merge(&record);
        if step != WARMUP {
            match self.records.iter_mut().find(|(s, _)| *s == step) {
                Some((_, all)) => all.merge(&record),
                None => self.records.push((step, record)),
            }
        }
    }

    /// Adds a point of the last second to the timeline.
    fn close_second(&mut self, at: Duration, length: Duration, what: &str) {
        let seconds = length.as_secs_f64();
        let generator_cpu: Duration = self.generator_cpu.iter().sum();
        let second = Second {
            begun: at,
            last: at,
            record: Record::default(),
            generator_cpu,
        };
        let Second {
            record,
            generator_cpu: before,
            ..
        } = std::mem::replace(&mut self.second, second);
        let generator_cpu = generator_cpu.saturating_sub(before).as_secs_f64() / seconds;
        let total = record.total();
        let usage = self.rig.usage();
        let now = Instant::now();
        let mut cpu = 0.0;
        if let Some(usage) = usage {
            self.rss_max = self.rss_max.max(usage.rss);
            if self.measuring {
                self.rss = (self.rss.0 + 1, self.rss.1 + usage.rss as f64);
                self.roles.sample(now, &self.rig.threads());
            }
            if let Some((then, before)) = self.last_cpu {
                cpu = usage.cpu.saturating_sub(before).as_secs_f64()
                    / now.duration_since(then).as_secs_f64().max(1e-3);
            }
            self.last_cpu = Some((now, usage.cpu));
        }
        let quantile = |q| total.latency.value_at_quantile(q) as f64 / 1000.0;
        let point = Point {
            t: at.as_secs_f64(),
            measured: self.measuring,
            offered: total.offered as f64 / seconds,
            achieved: total.succeeded as f64 / seconds,
            failed: total.failures() as f64 / seconds,
            p50: quantile(0.5),
            p99: quantile(0.99),
            cpu,
            generator_cpu,
            in_flight: self.in_flight.iter().sum(),
        };
        self.timeline.push(point);
        self.progress.status(&format!(
            "{what}: {} offered, {} achieved, {} failed/s, p50 {} ms, p99 {} ms, {} cores",
            figure(point.offered),
            figure(point.achieved),
            figure(point.failed),
            figure(point.p50),
            figure(point.p99),
            figure(point.cpu),
        ));
    }

    fn finish(
        mut self,
        started: OffsetDateTime,
        (window, parts): (Window, Vec<PartRecord>),
        reference: Option<(Window, u64)>,
        steps: Vec<Step>,
        limited_by: Option<String>,
    ) -> Result<(Report, Series), RunError> {
        // Notifications wait a little longer for their peers than answers do.
        self.pass(Duration::from_millis(500), "waiting for the last answers")?;
        let end = self.mark()?;
        let (reference, rss_before) = reference.map_or((None, 0), |(window, rss)| (Some(window), rss));
        let outcome = Outcome {
            names: &self.names,
            parts: &parts,
            end: &end,
            window: &window,
            reference: reference.as_ref(),
            rss: (self.rss_max, rss_before),
        };
        let drill = self.rig.drill.as_mut();
        let judgement = drill.map_or_else(Default::default, |drill| drill.judge(&outcome));
        let facts = judge::Facts {
            found: self.found,
            place: self.place,
            rig: &self.rig,
            names: &self.names,
            started,
            window: &window,
            reference: reference.as_ref(),
            judgement,
            baseline: self.baseline.as_ref(),
            end: &end,
            rss_max: self.rss_max,
            rss_avg: self.rss.1 / f64::from(self.rss.0.max(1)),
            roles: self.roles.figures(),
            connections: self.connections,
            connections_asked: self.connections_asked,
            timeline: self.timeline,
            steps,
            limited_by,
        };
        let judged = judge::report(facts);
        self.generator.stop().map_err(RunError::Generator)?;
        for process in self.rig.function.into_iter().chain(self.rig.sites) {
            process.stop();
        }
        self.rig.beside.into_iter().for_each(Guarded::stop);
        Ok(judged)
    }
}
