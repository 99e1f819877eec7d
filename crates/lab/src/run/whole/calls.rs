//! Calls on a schedule that does not wait for them: callers take the next one when its time has come.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::functions::Core;
use super::timeline::Timeline;
use super::ue;
use crate::call::{Board, Caller, Legs, Peers};
use crate::run::{Progress, RigError, RunError, figure};
use loadgen::{FailureKind, Record};
use report::Point;
use report::measure::{Metrics, Process, Usage};

/// Callers; a call takes a caller from its first leg to its last one.
const MOST_CALLERS: usize = 64;
/// Between two lines of progress.
const TURN: Duration = Duration::from_millis(500);

/// How many calls, and for how long.
pub(super) struct Plan {
    pub(super) rate: f64,
    pub(super) duration: Duration,
    pub(super) warmup: Duration,
    pub(super) subscribers: u64,
    pub(super) cpus: Vec<usize>,
}

/// What functions had done and used at a moment.
pub(super) struct Moment {
    pub(super) usage: Vec<Usage>,
    pub(super) metrics: Vec<Metrics>,
    /// Processor time that all processes had used on these cores, what a hypervisor had taken away from them, and what the
    /// run itself had used: functions, simulators, callers.
    pub(super) machine: Option<(Duration, Duration, Duration)>,
}

impl Moment {
    fn now(core: &Core) -> Result<Self, RigError> {
        let mut metrics = Vec::new();
        for function in &core.functions {
            let read = Metrics::read(function.admin);
            metrics.push(read.ok_or_else(|| {
                RigError::Settings(format!("the {} does not report its metrics", function.name))
            })?);
        }
        Ok(Self {
            usage: core
                .functions
                .iter()
                .map(super::functions::Function::usage)
                .collect(),
            metrics,
            machine: machine(core),
        })
    }
}

fn machine(core: &Core) -> Option<(Duration, Duration, Duration)> {
    let cpus = report::measure::cpus().ok()?;
    let (all, stolen) = (report::measure::busy(&cpus)?, report::measure::stolen(&cpus)?);
    let simulators = core.simulators.iter();
    let simulators = simulators.filter_map(|simulator| simulator.process().usage());
    let own = std::iter::once(Process::new(std::process::id()).usage()?);
    let functions = core.functions.iter().map(super::functions::Function::usage);
    let run = functions.chain(simulators).chain(own).map(|usage| usage.cpu);
    Some((all, stolen, run.sum()))
}

/// What came of the calls.
pub(super) struct Made {
    pub(super) legs: Legs,
    /// Whole calls, from the intended time on.
    pub(super) calls: Record,
    pub(super) before: Moment,
    pub(super) after: Moment,
    pub(super) seconds: f64,
    pub(super) callers: usize,
    /// Notifications that the SMF, the AMF and the AF received.
    pub(super) notified: u64,
    /// What became of the calls, by second; those of the warm-up come first.
    pub(super) timeline: Vec<Point>,
}

/// What callers share.
struct Shared {
    next: AtomicU64,
    legs: Mutex<Legs>,
    calls: Mutex<Record>,
    /// Calls since the last point of the timeline.
    recent: Mutex<Record>,
}

/// Makes the calls of a plan, after those of its warm-up.
pub(super) fn make(
    plan: &Plan,
    peers: &Peers,
    board: &Board,
    core: &Core,
    progress: &mut Progress,
) -> Result<Made, RunError> {
    // Enough that a call may take two seconds.
    let count = ((plan.rate * 2.0).ceil() as usize).clamp(2, MOST_CALLERS);
    let mut callers: Vec<Caller> = (1..=count)
        .map(|number| Caller::new(peers.clone(), number, board.address(), board.notices()))
        .collect();
    let mut timeline = Timeline::new(core);
    if !plan.warmup.is_zero() {
        let words = format!("warming up with {} calls a second", figure(plan.rate));
        part(
            plan,
            plan.warmup,
            0,
            &mut callers,
            (progress, &words, &mut timeline),
        );
    }
    timeline.measure();
    let before = Moment::now(core)?;
    let notified = board.notices().received();
    let words = format!("measuring: {} calls a second", figure(plan.rate));
    let begun = Instant::now();
    // Numbers of the warm-up end before these.
    let first = (plan.rate * plan.warmup.as_secs_f64()).ceil() as u64 + 1;
    let (legs, calls) = part(
        plan,
        plan.duration,
        first,
        &mut callers,
        (progress, &words, &mut timeline),
    );
    let seconds = begun.elapsed().as_secs_f64();
    Ok(Made {
        legs,
        calls,
        after: Moment::now(core)?,
        before,
        seconds,
        callers: count,
        notified: board.notices().received() - notified,
        timeline: timeline.points,
    })
}

/// Makes the calls of this length, numbered from `first` on, and waits for the last one.
fn part(
    plan: &Plan,
    length: Duration,
    first: u64,
    callers: &mut [Caller],
    (progress, words, timeline): (&mut Progress, &str, &mut Timeline<'_>),
) -> (Legs, Record) {
    let count = ((plan.rate * length.as_secs_f64()).round() as u64).max(1);
    let shared = Shared {
        next: AtomicU64::new(0),
        recent: Mutex::new(Record::new(1)),
        legs: Mutex::default(),
        calls: Mutex::new(Record::new(1)),
    };
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for caller in callers {
            let shared = &shared;
            scope.spawn(move || {
                if !plan.cpus.is_empty() {
                    // A caller on another core only disturbs the measurement.
                    let _ = loadgen::pin_current_thread(&plan.cpus);
                }
                calls(plan, shared, caller, (begun, first, count));
            });
        }
        while shared.next.load(Ordering::Relaxed) < count {
            std::thread::sleep(TURN.min(length));
            let calls = shared.calls.lock().unwrap_or_else(PoisonError::into_inner);
            let total = calls.total();
            progress.status(&format!(
                "{words}: {} of {count} made, {} failed",
                total.offered,
                total.failures()
            ));
            drop(calls);
            timeline.sample(count, &shared.next, &shared.recent);
        }
    });
    timeline.sample(count, &shared.next, &shared.recent);
    let legs = shared.legs.into_inner().unwrap_or_else(PoisonError::into_inner);
    let calls = shared.calls.into_inner().unwrap_or_else(PoisonError::into_inner);
    (legs, calls)
}

/// The calls of one caller.
fn calls(plan: &Plan, shared: &Shared, caller: &mut Caller, (begun, first, count): (Instant, u64, u64)) {
    let mut legs = Legs::default();
    loop {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            break;
        }
        let intended = begun + Duration::from_secs_f64(number as f64 / plan.rate);
        std::thread::sleep(intended.saturating_duration_since(Instant::now()));
        let ue = ue(first + number, plan.subscribers);
        let made = caller
            .begin(ue, &mut legs)
            .and_then(|call| caller.end(&call, &mut legs));
        let took = u64::try_from(intended.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mut one = Record::new(1);
        if let Some(record) = one.operations.first_mut() {
            record.offered = 1;
            record.time(took);
            match &made {
                Ok(()) => record.succeeded = 1,
                Err(_) => record.fail(FailureKind::Wrong),
            }
        }
        one.examples.extend(made.err());
        for record in [&shared.calls, &shared.recent] {
            record.lock().unwrap_or_else(PoisonError::into_inner).merge(&one);
        }
    }
    shared
        .legs
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .merge(&legs);
}
