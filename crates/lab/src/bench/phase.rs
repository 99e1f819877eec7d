//! Loads one program for a while, and measures what it uses meanwhile.

use std::time::{Duration, Instant};

use crate::run::{Guarded, Place, Progress, Ramp, RunError, figure};
use loadgen::{Generator, OperationRecord, Record};
use report::measure;

/// Warm-up of a step: its requests are not measured.
const SETTLE: Duration = Duration::from_millis(700);
/// A step of the search for the highest rate.
const LOOK: Duration = Duration::from_millis(1500);
/// Time that the last answers may take.
const DRAIN: Duration = Duration::from_secs(6);
/// The lowest rate of the search.
const FIRST: f64 = 2000.0;
/// The least share of requests that must be answered rightly.
const SUCCESS: f64 = 0.999;
/// The longest 99th percentile while searching.
const P99_MS: f64 = 100.0;
/// Time that the program may take until it answers the first requests.
const PATIENCE: Duration = Duration::from_secs(30);

/// Part of the run whose requests are not measured.
const ASIDE: u32 = 0;

/// A program, and the generator that loads it.
pub(super) struct Loaded {
    pub(super) name: &'static str,
    function: Guarded,
    generator: Generator,
    step: u32,
    in_flight: u64,
    generator_cpu: Duration,
}

/// Results of one or several steps of load.
#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    pub(super) total: OperationRecord,
    pub(super) seconds: f64,
    /// Of the program.
    pub(super) cpu: Duration,
    /// Processor time of all processes on the cores of the program.
    pub(super) busy: Duration,
    /// Of the generator.
    pub(super) generator: Duration,
    pub(super) examples: Vec<String>,
}

impl Phase {
    pub(super) fn add(&mut self, other: &Self) {
        self.total.merge(&other.total);
        self.seconds += other.seconds;
        self.cpu += other.cpu;
        self.busy += other.busy;
        self.generator += other.generator;
        self.examples.extend(other.examples.iter().take(3).cloned());
    }

    pub(super) fn rps(&self) -> f64 {
        self.total.succeeded as f64 / self.seconds.max(1e-3)
    }

    pub(super) fn cpu_us_per_request(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.total.succeeded.max(1) as f64
    }

    pub(super) fn success(&self) -> f64 {
        self.total.succeeded as f64 / self.total.offered.max(1) as f64
    }

    pub(super) fn quantile_ms(&self, quantile: f64) -> f64 {
        self.total.latency.value_at_quantile(quantile) as f64 / 1000.0
    }

    pub(super) fn cores(&self) -> f64 {
        self.cpu.as_secs_f64() / self.seconds.max(1e-3)
    }

    /// Cores that other processes took of the program's.
    pub(super) fn others(&self) -> f64 {
        self.busy.saturating_sub(self.cpu).as_secs_f64() / self.seconds.max(1e-3)
    }

    pub(super) fn in_words(&self) -> String {
        format!(
            "{:>8} requests/s, {:>5} µs of processor time each, p99 {} ms, {:.2} cores, generator {:.0}% busy",
            figure(self.rps()),
            figure(self.cpu_us_per_request()),
            figure(self.quantile_ms(0.99)),
            self.cores(),
            self.generator.as_secs_f64() * 100.0 / self.seconds.max(1e-3)
        )
    }

    /// Why this load exceeds the capacity of the program; `None` when it does not.
    fn too_much(&self, rate: f64) -> Option<&'static str> {
        if self.success() < SUCCESS {
            Some("not all are answered")
        } else if self.quantile_ms(0.99) > P99_MS {
            Some("answers are late")
        } else if (self.total.offered as f64) < rate * self.seconds * 0.95 {
            Some("the generator is at its limit")
        } else {
            None
        }
    }
}

impl Loaded {
    pub(super) fn new(name: &'static str, function: Guarded, generator: Generator) -> Self {
        Self {
            name,
            function,
            generator,
            step: ASIDE,
            in_flight: 0,
            generator_cpu: Duration::ZERO,
        }
    }

    /// What the program has used since its start.
    pub(super) fn usage(&self) -> Option<measure::Usage> {
        self.function.process().usage()
    }

    /// Waits until everything is connected: requests are answered.
    pub(super) fn await_answers(&mut self, progress: &mut Progress) -> Result<(), RunError> {
        let end = Instant::now() + PATIENCE;
        progress.status(&format!("waiting for {} …", self.name));
        loop {
            let record = self.send(100.0, Duration::from_millis(300))?;
            let total = record.total();
            if total.succeeded > 0 && total.succeeded == total.offered {
                return Ok(());
            }
            if Instant::now() > end {
                let what = format!("does not answer all requests: {:?}", record.examples);
                return Err(self.function.gone(what).into());
            }
        }
    }

    /// Searches for the highest rate that holds.
    pub(super) fn knee(&mut self, place: &Place, progress: &mut Progress) -> Result<f64, RunError> {
        let mut ramp = Ramp::new(FIRST);
        while let Some(rate) = ramp.next() {
            progress.status(&format!(
                "searching: {} at {} requests per second",
                self.name,
                figure(rate)
            ));
            let mut phase = self.load(rate, LOOK, place)?;
            // Other processes on the machine make a step fail now and then: a step counts as failed when it fails
            // twice.
            if phase.too_much(rate).is_some() {
                phase = self.load(rate, LOOK, place)?;
            }
            let why = phase.too_much(rate);
            progress.note(&format!(
                "{:<12} {}{}",
                self.name,
                phase.in_words(),
                why.map_or(String::new(), |why| format!(" ({why})"))
            ));
            ramp.record(why.is_none());
        }
        ramp.best().ok_or_else(|| RunError::NoKnee {
            tps: figure(FIRST),
            why: format!("{} did not hold it", self.name),
        })
    }

    /// Loads the program at this rate, and measures what it uses.
    pub(super) fn load(&mut self, rate: f64, length: Duration, place: &Place) -> Result<Phase, RunError> {
        self.generator.set(rate, ASIDE);
        self.pass(SETTLE, &mut Record::default())?;
        let used = |function: &Guarded| function.process().usage().map_or(Duration::ZERO, |u| u.cpu);
        let busy = || measure::busy(&place.function_cpus).unwrap_or_default();
        let generator_before = self.generator_cpu;
        let (begun, cpu, all) = (Instant::now(), used(&self.function), busy());
        self.step += 1;
        self.generator.set(rate, self.step);
        let mut record = Record::default();
        self.pass(length, &mut record)?;
        let (seconds, cpu, all) = (
            begun.elapsed().as_secs_f64(),
            used(&self.function).saturating_sub(cpu),
            busy().saturating_sub(all),
        );
        self.drain(&mut record)?;
        Ok(Phase {
            total: record.total(),
            seconds,
            cpu,
            busy: all,
            generator: self.generator_cpu.saturating_sub(generator_before),
            examples: record.examples,
        })
    }

    /// Sends for a while, and waits for the answers.
    fn send(&mut self, rate: f64, length: Duration) -> Result<Record, RunError> {
        self.step += 1;
        self.generator.set(rate, self.step);
        let mut record = Record::default();
        self.pass(length, &mut record)?;
        self.drain(&mut record)?;
        Ok(record)
    }

    fn drain(&mut self, record: &mut Record) -> Result<(), RunError> {
        self.generator.set(0.0, ASIDE);
        let end = Instant::now() + DRAIN;
        loop {
            // A generator reports once a second.
            self.pass(Duration::from_millis(1100), record)?;
            if self.in_flight == 0 || Instant::now() > end {
                return Ok(());
            }
        }
    }

    /// Runs for this length; `record` collects what the generator reports of the step in progress.
    fn pass(&mut self, length: Duration, record: &mut Record) -> Result<(), RunError> {
        let end = Instant::now() + length;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            for snapshot in self.generator.snapshots(left.min(Duration::from_millis(50))) {
                self.in_flight = snapshot.in_flight;
                self.generator_cpu = snapshot.cpu;
                if snapshot.step == self.step && self.step != ASIDE {
                    record.merge(&snapshot.record);
                }
            }
            if !self.generator.is_alive() {
                return Err(RunError::Generator(std::io::Error::other("a thread has ended")));
            }
            if !self.function.is_alive() {
                return Err(self.function.gone("ended under load".to_owned()).into());
            }
            if left.is_zero() {
                return Ok(());
            }
        }
    }

    pub(super) fn stop(self) -> Result<(), RunError> {
        self.generator.stop().map_err(RunError::Generator)?;
        self.function.stop();
        Ok(())
    }
}
