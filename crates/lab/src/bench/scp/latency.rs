//! The time that proxies add, with the lab's own generator: an open loop, whose latencies count from when a request
//! was to be sent, so that nothing that a user would have waited for is left out. `direct` is the same generator and
//! the same producers without a proxy, at the same rate. Both need a core; how busy the cores are is part of the
//! result.

use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use rand::rngs::SmallRng;

use super::h2load::PATH;
use super::{ANSWER_BYTES, REQUEST_BYTES, Settings, Subject, proxies};
use crate::callmodel::Arrivals;
use crate::load::{Answer, Draft, Fault, Generator, Interest, Plan, Record, Ticket, Workload};
use crate::measure;
use crate::run::{Place, RunError};

/// Shares of the most that Model C carries, at which latency is measured; the last is half load.
pub(super) const SHARES: [f64; 3] = [0.10, 0.25, 0.50];
/// Grid of arrivals: finer than the generator's usual one, as requests that leave together queue behind each other.
const TICK: Duration = Duration::from_micros(100);
/// Before anything is looked at, and how long the last answers may take.
const SETTLE: Duration = Duration::from_millis(700);
const DRAIN: Duration = Duration::from_secs(3);
const SEED: u64 = 29_500;

/// What came of a rate at one subject, over all rounds.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    pub(super) offered: u64,
    pub(super) succeeded: u64,
    pub(super) seconds: f64,
    /// In microseconds.
    pub(super) latency: Histogram<u64>,
    /// Of the proxy.
    pub(super) cpu: Duration,
    /// Of the generator's thread.
    pub(super) generator: Duration,
    /// Of anybody on the proxies' cores, and on the lab's.
    pub(super) busy: (Duration, Duration),
}

impl Default for Phase {
    fn default() -> Self {
        Self {
            offered: 0,
            succeeded: 0,
            seconds: 0.0,
            latency: Histogram::new(3).unwrap_or_else(|_| unreachable!("three digits are a valid precision")),
            cpu: Duration::ZERO,
            generator: Duration::ZERO,
            busy: (Duration::ZERO, Duration::ZERO),
        }
    }
}

impl Phase {
    pub(super) fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.succeeded += other.succeeded;
        self.seconds += other.seconds;
        self.latency += &other.latency;
        self.cpu += other.cpu;
        self.generator += other.generator;
        self.busy.0 += other.busy.0;
        self.busy.1 += other.busy.1;
    }

    /// A part of the time, of so many cores.
    fn of_cores(&self, used: Duration, cores: usize) -> f64 {
        used.as_secs_f64() / (self.seconds * cores as f64).max(1e-3)
    }

    /// Use of the proxies' cores and of the lab's, and of its core by the generator; 0 to 1 each.
    pub(super) fn busy(&self, place: &Place) -> (f64, f64, f64) {
        (
            self.of_cores(self.busy.0, place.function_cpus.len()),
            self.of_cores(self.busy.1, place.lab_cpus.len()),
            self.of_cores(self.generator, 1),
        )
    }
}

/// One rate at one subject, once.
pub(super) fn measure(
    rig: &proxies::Rig,
    at: usize,
    settings: &Settings,
    place: &Place,
    rate: f64,
) -> Result<Phase, RunError> {
    let subject = &rig.subjects[at];
    let plan = Plan {
        targets: vec![subject.address],
        authority: subject.address.to_string(),
        connections: settings.connections,
        timeout: Duration::from_secs(5),
        max_in_flight: 20_000,
        arrivals: Arrivals::Poisson,
        seed: SEED,
        cpus: place.lab_cpus.clone(),
        tick: TICK,
        tls: None,
    };
    let workload = Box::new(Relayed::new(subject));
    let generator = Generator::start(&plan, vec![workload]).map_err(RunError::Generator)?;
    let mut watch = Watch::default();
    // Connections first, then a little load that is not looked at.
    watch.pass(&generator, Duration::from_millis(200))?;
    generator.set(rate, 0);
    watch.pass(&generator, SETTLE)?;
    let busy = || {
        let of = |cpus: &[usize]| measure::busy(cpus).unwrap_or_default();
        (of(&place.function_cpus), of(&place.lab_cpus))
    };
    let (before, cpu, generator_cpu) = (busy(), rig.cpu(at), watch.cpu);
    let began = Instant::now();
    generator.set(rate, 1);
    watch.pass(&generator, settings.duration)?;
    let seconds = began.elapsed().as_secs_f64();
    let (after, cpu) = (busy(), rig.cpu(at).saturating_sub(cpu));
    generator.set(0.0, 2);
    watch.drain(&generator)?;
    let generator_cpu = watch.cpu.saturating_sub(generator_cpu);
    for snapshot in generator.stop().map_err(RunError::Generator)? {
        watch.take(&snapshot);
    }
    let total = watch.record.total();
    let mut phase = Phase {
        offered: total.offered,
        succeeded: total.succeeded,
        seconds,
        cpu,
        generator: generator_cpu,
        busy: (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1)),
        ..Phase::default()
    };
    for value in total.latency.iter_recorded() {
        // A value beyond an hour is no latency; the generator gives up long before.
        let _ = phase.latency.record_n(
            value.value_iterated_to().max(1),
            u64::from(value.count_at_value()),
        );
    }
    Ok(phase)
}

/// Takes in what the generator tells of the measured part.
#[derive(Default)]
struct Watch {
    record: Record,
    in_flight: u64,
    cpu: Duration,
}

impl Watch {
    fn pass(&mut self, generator: &Generator, length: Duration) -> Result<(), RunError> {
        let end = Instant::now() + length;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            for snapshot in generator.snapshots(left.min(Duration::from_millis(50))) {
                self.take(&snapshot);
            }
            if !generator.is_alive() {
                return Err(RunError::Generator(std::io::Error::other("a thread has ended")));
            }
            if left.is_zero() {
                return Ok(());
            }
        }
    }

    fn take(&mut self, snapshot: &crate::load::Snapshot) {
        self.in_flight = snapshot.in_flight;
        self.cpu = snapshot.cpu;
        if snapshot.step == 1 {
            self.record.merge(&snapshot.record);
        }
    }

    fn drain(&mut self, generator: &Generator) -> Result<(), RunError> {
        let end = Instant::now() + DRAIN;
        loop {
            // A generator tells once a second.
            self.pass(generator, Duration::from_millis(1100))?;
            if self.in_flight == 0 || Instant::now() > end {
                return Ok(());
            }
        }
    }
}

/// The request that `h2load` sends as well.
struct Relayed {
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

impl Relayed {
    fn new(subject: &Subject) -> Self {
        let mut headers = vec![("user-agent", "AMF-bench".to_owned())];
        headers.extend(subject.headers.iter().cloned());
        Self {
            headers,
            body: super::body().into(),
        }
    }
}

impl Workload for Relayed {
    fn operations(&self) -> Vec<String> {
        vec!["relayed".to_owned()]
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        self.headers.clone()
    }

    fn next(&mut self, _: &mut SmallRng, draft: &mut Draft) -> Ticket {
        draft.method = "POST";
        draft.path.extend_from_slice(PATH.as_bytes());
        draft.content_type = Some("application/json");
        draft.body = self.body.clone();
        debug_assert_eq!(draft.body.len(), REQUEST_BYTES);
        Ticket::default()
    }

    fn interest(&mut self, _: &Ticket, _: u16, _: Option<u64>) -> Interest {
        Interest::Skip
    }

    fn judge(&mut self, _: &Ticket, answer: &Answer<'_>) -> Result<(), Fault> {
        match answer.status == 201 && answer.length == u64::from(ANSWER_BYTES) {
            true => Ok(()),
            false => Err(Fault::Status),
        }
    }
}
