//! One load at one subject, once.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;

use super::{Contest, Requests, Source, Subject};
use crate::run::{RunError, figure};
use loadgen::{
    Answer, Arrivals, Draft, FailureKind, Fault, Generator, Interest, OperationRecord, Plan, Record,
    Snapshot, Ticket, Workload,
};
use report::measure::{self, Process, Usage};

/// Grid of arrivals: finer than the generator's usual one, as requests that leave together queue behind each other.
const TICK: Duration = Duration::from_micros(100);
/// Time for the connections, then load that does not count, and how long the last answers may take.
const CONNECT: Duration = Duration::from_millis(200);
pub(super) const SETTLE: Duration = Duration::from_millis(700);
/// How long the generator may take to report that it has seen a change; it reports once a second in any case.
const SEEN: Duration = Duration::from_millis(1_500);
const DRAIN: Duration = Duration::from_secs(3);
const TIMEOUT: Duration = Duration::from_secs(5);
/// Requests in flight at once; more are failures of the kind "not sent".
const MOST_IN_FLIGHT: u32 = 20_000;
const SEED: u64 = 29_500;
/// A round has collapsed when this share of the offered requests, and what is offered in this time, has no right answer
/// at its end.
const UNSERVED_SHARE: f64 = 0.01;
const UNSERVED_TIME: f64 = 0.1;

/// What a subject is loaded with.
#[derive(Clone, Copy, Debug)]
pub(super) enum Load {
    /// As fast as it goes, with a fixed number of requests in flight.
    Closed { connections: u32, streams: u32 },
    /// Requests per second on a schedule.
    Open { rate: f64, connections: u32 },
}

impl Load {
    fn connections(self) -> u32 {
        match self {
            Self::Closed { connections, .. } | Self::Open { connections, .. } => connections,
        }
    }

    fn rate(self) -> Option<f64> {
        match self {
            Self::Closed { .. } => None,
            Self::Open { rate, .. } => Some(rate),
        }
    }
}

/// What came of a load.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    /// Requests per second of the schedule; `None` in a closed loop.
    pub(super) rate: Option<f64>,
    pub(super) total: OperationRecord,
    /// Right answers in the measured time, also to requests from before it.
    pub(super) served: u64,
    /// Right answers by the end of the measured time to requests that were offered in it.
    pub(super) in_time: u64,
    pub(super) seconds: f64,
    /// Processor time of the subject in user mode, and the kernel's for it.
    pub(super) user: Duration,
    pub(super) kernel: Duration,
    /// Processor time of the generator, and of the processes behind the subject.
    pub(super) generator: Duration,
    pub(super) peers: Duration,
    /// Use of the subjects' cores and of the lab's, by anything.
    pub(super) busy: (Duration, Duration),
}

impl Sample {
    pub(super) fn rps(&self) -> f64 {
        self.served as f64 / self.seconds.max(1e-3)
    }

    /// Whether the subject did not serve what was offered.
    pub(super) fn has_collapsed(&self) -> bool {
        let unserved = self.total.offered.saturating_sub(self.in_time) as f64;
        self.rate.is_some_and(|rate| {
            unserved > (self.total.offered as f64 * UNSERVED_SHARE).max(rate * UNSERVED_TIME)
        })
    }

    /// Requests without a right answer, also after the measured time.
    pub(super) fn failed(&self) -> u64 {
        self.total.offered.saturating_sub(self.total.succeeded)
    }

    /// Requests that were refused, with status 429 or 503.
    pub(super) fn refused(&self) -> u64 {
        self.total.failed[FailureKind::Refused as usize]
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.rate = other.rate;
        self.total.merge(&other.total);
        self.served += other.served;
        self.in_time += other.in_time;
        self.seconds += other.seconds;
        self.user += other.user;
        self.kernel += other.kernel;
        self.generator += other.generator;
        self.peers += other.peers;
        self.busy.0 += other.busy.0;
        self.busy.1 += other.busy.1;
    }

    /// Microseconds per served request.
    pub(super) fn each(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e6 / self.served.max(1) as f64
    }

    pub(super) fn quantile_ms(&self, quantile: f64) -> f64 {
        self.total.latency.value_at_quantile(quantile) as f64 / 1e3
    }

    pub(super) fn in_words(&self) -> String {
        format!(
            "{}{:>8} requests/s, {:>5.1} + {:>4.1} µs each, p50 {:.3} ms, p99 {:.3} ms, {} failed{}",
            if self.has_collapsed() { "COLLAPSED " } else { "" },
            figure(self.rps()),
            self.each(self.user),
            self.each(self.kernel),
            self.quantile_ms(0.5),
            self.quantile_ms(0.99),
            self.failed(),
            match self.refused() {
                0 => String::new(),
                refused => format!(", {refused} of them refused"),
            }
        )
    }
}

/// Loads a subject for a while.
pub(super) fn measure(
    contest: &Contest<'_>,
    subject: &Subject,
    load: Load,
    duration: Duration,
) -> Result<Sample, RunError> {
    const MEASURED: u32 = 1;
    let mut session = Session::start(contest, subject, load.connections())?;
    session.set(load, 0);
    session.pass(SETTLE.min(duration))?;
    let place = contest.place;
    let busy = || [&place.function_cpus, &place.lab_cpus].map(|cpus| measure::busy(cpus).unwrap_or_default());
    let peers = || {
        contest
            .peers
            .iter()
            .map(|peer| used(Some(*peer)).cpu)
            .sum::<Duration>()
    };
    session.begin(load, MEASURED)?;
    let before = (used(subject.process), busy(), peers());
    session.pass(duration)?;
    session.finish()?;
    let after = (used(subject.process), busy(), peers());
    let mut ended = session.end()?;
    let of_step = ended.steps.remove(&MEASURED).unwrap_or_default();
    let user = after.0.user.saturating_sub(before.0.user);
    Ok(Sample {
        rate: load.rate(),
        served: ended.served,
        in_time: ended.in_time.unwrap_or(of_step.total().succeeded),
        total: of_step.total(),
        seconds: ended.seconds,
        user,
        kernel: after.0.cpu.saturating_sub(before.0.cpu).saturating_sub(user),
        generator: ended.generator,
        peers: after.2.saturating_sub(before.2),
        busy: (
            after.1[0].saturating_sub(before.1[0]),
            after.1[1].saturating_sub(before.1[1]),
        ),
    })
}

fn used(process: Option<Process>) -> Usage {
    process.and_then(|process| process.usage()).unwrap_or_default()
}

/// A generator at work, and what it has reported by step.
pub(super) struct Session {
    generator: Generator,
    steps: BTreeMap<u32, Record>,
    /// The step that requests count for.
    step: u32,
    /// When the measured time began and ended, as the generator saw it; it reports what came before at both moments.
    began: Moment,
    ended: Moment,
    /// Right answers between them.
    served: u64,
    /// Right answers to requests of the last step, by the end.
    in_time: Option<u64>,
    in_flight: u64,
}

impl Session {
    /// Connects to a subject.
    pub(super) fn start(
        contest: &Contest<'_>,
        subject: &Subject,
        connections: u32,
    ) -> Result<Self, RunError> {
        let Some(first) = subject.targets.first() else {
            return Err(RunError::Empty);
        };
        let plan = Plan {
            targets: subject.targets.clone(),
            authority: first.to_string(),
            // Each target has a connection.
            connections: connections.max(subject.targets.len() as u32),
            timeout: TIMEOUT,
            max_in_flight: MOST_IN_FLIGHT,
            arrivals: Arrivals::Poisson,
            seed: SEED,
            cpus: contest.place.lab_cpus.clone(),
            tick: TICK,
            tls: None,
            sources: Vec::new(),
        };
        let generator =
            Generator::start(&plan, vec![subject.source.workload()]).map_err(RunError::Generator)?;
        let mut session = Self {
            generator,
            steps: BTreeMap::new(),
            step: 0,
            began: Moment::default(),
            ended: Moment::default(),
            served: 0,
            in_time: None,
            in_flight: 0,
        };
        session.pass(CONNECT)?;
        Ok(session)
    }

    /// Changes the load; its requests count for `step`.
    pub(super) fn set(&mut self, load: Load, step: u32) {
        self.step = step;
        match load {
            Load::Closed { connections, streams } => {
                self.generator.saturate(connections.saturating_mul(streams), step);
            }
            Load::Open { rate, .. } => self.generator.set(rate, step),
        }
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, length: Duration) -> Result<(), RunError> {
        let end = Instant::now() + length;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            self.take_all(left.min(Duration::from_millis(50)))?;
            if left.is_zero() {
                return Ok(());
            }
        }
    }

    /// Changes the load and begins the measured time; returns when the generator has seen it.
    fn begin(&mut self, load: Load, step: u32) -> Result<(), RunError> {
        self.began.asked = Some(self.generator.elapsed());
        self.set(load, step);
        self.await_seen(|session| &session.began)
    }

    /// Sends nothing more and ends the measured time; returns when the generator has seen it.
    fn finish(&mut self) -> Result<(), RunError> {
        self.ended.asked = Some(self.generator.elapsed());
        self.generator.set(0.0, self.step.saturating_add(1));
        self.await_seen(|session| &session.ended)
    }

    /// Waits until the generator has reported at a moment. A busy generator is late; what it sends until then counts,
    /// so the measured time is the generator's.
    fn await_seen(&mut self, moment: fn(&Self) -> &Moment) -> Result<(), RunError> {
        let end = Instant::now() + SEEN;
        while moment(self).seen.is_none() && Instant::now() < end {
            self.take_all(Duration::from_millis(5))?;
        }
        Ok(())
    }

    /// Takes in what the generator reports within this time.
    fn take_all(&mut self, patience: Duration) -> Result<(), RunError> {
        for snapshot in self.generator.snapshots(patience) {
            self.take(&snapshot);
        }
        if self.generator.is_alive() {
            Ok(())
        } else {
            Err(RunError::Generator(std::io::Error::other("a thread has ended")))
        }
    }

    fn take(&mut self, snapshot: &Snapshot) {
        self.in_flight = snapshot.in_flight;
        let record = self.steps.entry(snapshot.step).or_default();
        record.merge(&snapshot.record);
        if self.began.is_before(snapshot.at) && !self.ended.is_before(snapshot.at) {
            self.served += snapshot.record.total().succeeded;
        }
        for moment in [&mut self.began, &mut self.ended] {
            if moment.seen == Some(snapshot.at) {
                moment.cpu = snapshot.cpu;
            }
        }
        if snapshot.step == self.step && self.ended.seen.is_some() {
            self.in_time.get_or_insert(record.total().succeeded);
        }
    }

    /// Sends nothing more, takes in the last answers and ends the generator.
    pub(super) fn end(mut self) -> Result<Ended, RunError> {
        if self.ended.asked.is_none() {
            self.finish()?;
        }
        let end = Instant::now() + DRAIN;
        loop {
            // A generator reports once a second, if there is something to report.
            self.pass(Duration::from_millis(100))?;
            let reported = self.in_time.is_some();
            if (reported && self.in_flight == 0) || Instant::now() > end {
                break;
            }
        }
        let Self {
            generator,
            mut steps,
            served,
            in_time,
            began,
            ended,
            ..
        } = self;
        for snapshot in generator.stop().map_err(RunError::Generator)? {
            steps.entry(snapshot.step).or_default().merge(&snapshot.record);
        }
        Ok(Ended {
            steps,
            seconds: Moment::between(&began, &ended).as_secs_f64(),
            generator: ended.cpu.saturating_sub(began.cpu),
            served,
            in_time,
        })
    }
}

/// What a generator has reported when it ended.
pub(super) struct Ended {
    pub(super) steps: BTreeMap<u32, Record>,
    /// The measured time, as the generator saw it.
    seconds: f64,
    served: u64,
    in_time: Option<u64>,
    /// Processor time of the generator in the measured time.
    generator: Duration,
}

/// A moment at which the generator was asked to report.
#[derive(Debug, Default)]
struct Moment {
    asked: Option<Duration>,
    /// When it did.
    seen: Option<Duration>,
    /// Processor time of the generator by then.
    cpu: Duration,
}

impl Moment {
    /// The time between two moments as the generator saw them; where it has not reported, as it was asked.
    fn between(began: &Self, ended: &Self) -> Duration {
        let at = |moment: &Self| moment.seen.or(moment.asked).unwrap_or_default();
        at(ended).saturating_sub(at(began))
    }

    /// Whether a report of this time is of what came after the moment.
    fn is_before(&mut self, at: Duration) -> bool {
        if self.asked.is_some_and(|asked| at >= asked) {
            self.seen.get_or_insert(at);
        }
        self.seen.is_some_and(|seen| at > seen)
    }
}

/// The requests of a subject, in turn.
struct InTurn {
    requests: Requests,
    path: usize,
    rotating: usize,
}

impl InTurn {
    fn new(requests: Requests) -> Self {
        Self {
            requests,
            path: 0,
            rotating: 0,
        }
    }
}

/// The next element in turn.
fn next<'a, T>(all: &'a [T], at: &mut usize) -> Option<&'a T> {
    let found = all.get(*at).or_else(|| all.first());
    *at = if *at + 1 < all.len() { *at + 1 } else { 0 };
    found
}

impl Source for Requests {
    fn workload(&self) -> Box<dyn Workload> {
        Box::new(InTurn::new(self.clone()))
    }
}

impl Workload for InTurn {
    fn operations(&self) -> Vec<String> {
        vec!["request".to_owned()]
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![("user-agent", "AMF-bench".to_owned())];
        headers.extend(self.requests.headers.iter().cloned());
        headers
    }

    fn next(&mut self, _: &mut SmallRng, draft: &mut Draft) -> Ticket {
        draft.method = self.requests.method;
        if let Some(path) = next(&self.requests.paths, &mut self.path) {
            draft.path.extend_from_slice(path.as_bytes());
        }
        draft
            .headers
            .extend(next(&self.requests.rotating, &mut self.rotating).cloned());
        if !self.requests.body.is_empty() {
            draft.content_type = Some("application/json");
            draft.body = self.requests.body.clone();
        }
        Ticket::default()
    }

    fn interest(&mut self, _: &Ticket, _: u16, _: Option<u64>) -> Interest {
        Interest::Skip
    }

    fn judge(&mut self, _: &Ticket, answer: &Answer<'_>) -> Result<(), Fault> {
        if answer.status != self.requests.status {
            Err(Fault::Status)
        } else if !self.requests.answer_bytes.contains(&answer.length) {
            Err(Fault::Body(format!("{} bytes", answer.length)))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rate: Option<f64>, offered: u64, served: u64) -> Sample {
        Sample {
            rate,
            total: OperationRecord {
                offered,
                succeeded: offered,
                ..OperationRecord::default()
            },
            served,
            in_time: served,
            seconds: 5.0,
            ..Sample::default()
        }
    }

    #[test]
    fn a_round_that_serves_less_than_was_offered_has_collapsed() {
        assert!(!sample(Some(1000.0), 5000, 4950).has_collapsed());
        // A tenth of a second of work may be in flight at the end.
        assert!(!sample(Some(1000.0), 5000, 4901).has_collapsed());
        assert!(sample(Some(1000.0), 5000, 4850).has_collapsed());
        // Answers that come after the end do not help.
        assert!(sample(Some(27_000.0), 135_000, 85_000).has_collapsed());
        // A closed loop offers no more than is served.
        assert!(!sample(None, 5000, 4000).has_collapsed());
    }

    #[test]
    fn a_report_at_a_moment_is_of_what_came_before() {
        let at = Duration::from_millis;
        let mut moment = Moment::default();
        assert!(!moment.is_before(at(5)));
        moment.asked = Some(at(10));
        assert!(!moment.is_before(at(9)));
        // Two reports of one moment, one for each step.
        assert!(!moment.is_before(at(11)) && !moment.is_before(at(11)));
        assert!(moment.is_before(at(12)));
    }

    #[test]
    fn the_measured_time_is_the_generators() {
        let at = |asked, seen: Option<u64>| Moment {
            asked: Some(Duration::from_millis(asked)),
            seen: seen.map(Duration::from_millis),
            cpu: Duration::ZERO,
        };
        let between = |began, ended| Moment::between(&began, &ended).as_millis();
        assert_eq!(between(at(1_000, Some(1_001)), at(6_000, Some(6_002))), 5_001);
        // A generator that saw the end five seconds late counted answers for ten.
        assert_eq!(between(at(1_000, Some(1_000)), at(6_000, Some(11_000))), 10_000);
        assert_eq!(between(at(1_000, None), at(6_000, None)), 5_000);
    }

    #[test]
    fn paths_and_headers_are_used_in_turn() {
        let mut workload = InTurn::new(Requests {
            method: "GET",
            paths: vec!["/a".to_owned(), "/b".to_owned()],
            headers: Vec::new(),
            rotating: (0..3).map(|n| ("x", n.to_string())).collect(),
            body: bytes::Bytes::new(),
            status: 200,
            answer_bytes: 10..=12,
        });
        let mut random = rand::SeedableRng::seed_from_u64(1);
        let seen: Vec<String> = (0..4)
            .map(|_| {
                let mut draft = Draft::default();
                workload.next(&mut random, &mut draft);
                format!("{}{}", String::from_utf8_lossy(&draft.path), draft.headers[0].1)
            })
            .collect();
        assert_eq!(seen, ["/a0", "/b1", "/a2", "/b0"]);
        let mut verdict = |status, length| {
            let answer = Answer {
                status,
                length,
                body: None,
            };
            workload.judge(&Ticket::default(), &answer)
        };
        assert_eq!(verdict(200, 11), Ok(()));
        assert_eq!(verdict(404, 11), Err(Fault::Status));
        assert!(matches!(verdict(200, 13), Err(Fault::Body(_))));
    }
}
