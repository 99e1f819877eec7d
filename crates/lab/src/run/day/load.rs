//! Requests of all kinds on a schedule that does not wait for them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::kinds::{Consumer, Kind, Targets};
use loadgen::{FailureKind, Record};

/// Requests that are later than this are left out: after an outage the schedule goes on, and no burst follows.
const LATEST: Duration = Duration::from_secs(1);
/// Failures that are listed one by one; further ones are counted.
const MOST: usize = 100_000;
/// Consumers of a kind.
const CONSUMERS: (f64, f64) = (4.0, 48.0);
/// Requests a second that one consumer sends.
const RATE_OF_ONE: f64 = 12.0;

/// A request that failed.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) kind: Kind,
    pub(super) sent: Instant,
    pub(super) ended: Instant,
    pub(super) why: String,
}

/// What came of the requests.
pub(super) struct Load {
    stop: AtomicBool,
    record: Mutex<Record>,
    /// Requests since the last point of the timeline.
    recent: Mutex<Record>,
    failures: Mutex<Vec<Failure>>,
    /// Requests that were left out.
    pub(super) left_out: AtomicU64,
    /// When a request of each kind was last answered rightly, in microseconds since the begin.
    answered: [AtomicU64; Kind::ALL.len()],
    begun: Instant,
}

impl Load {
    pub(super) fn new() -> Self {
        Self {
            stop: AtomicBool::new(false),
            record: Mutex::new(Record::new(Kind::ALL.len())),
            recent: Mutex::new(Record::new(Kind::ALL.len())),
            failures: Mutex::default(),
            left_out: AtomicU64::new(0),
            answered: Default::default(),
            begun: Instant::now(),
        }
    }

    /// Starts the consumers; they end with [`Load::stop`].
    pub(super) fn start<'scope>(
        &'scope self,
        scope: &'scope std::thread::Scope<'scope, '_>,
        targets: &'scope Targets,
        rate: f64,
    ) {
        for (at, (kind, share)) in Kind::ALL.into_iter().enumerate() {
            let rate = rate * share;
            let count = (rate / RATE_OF_ONE).clamp(CONSUMERS.0, CONSUMERS.1) as usize;
            let next = std::sync::Arc::<AtomicU64>::default();
            for number in 0..count {
                let next = next.clone();
                scope.spawn(move || {
                    let mut consumer = Consumer::new(kind, number, targets);
                    self.send(&mut consumer, (at, kind), rate, &next);
                });
            }
        }
    }

    fn send(&self, consumer: &mut Consumer, (at, kind): (usize, Kind), rate: f64, next: &AtomicU64) {
        while !self.stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let intended = self.begun + Duration::from_secs_f64(number as f64 / rate);
            if intended.elapsed() > LATEST {
                self.left_out.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            std::thread::sleep(intended.saturating_duration_since(Instant::now()));
            let sent = Instant::now();
            let outcome = consumer.ask(number);
            let took = u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX);
            for record in [&self.record, &self.recent] {
                let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(record) = record.operations.get_mut(at) else {
                    continue;
                };
                record.offered += 1;
                record.time(took);
                match &outcome {
                    Ok(()) => record.succeeded += 1,
                    Err(_) => record.fail(FailureKind::Wrong),
                }
            }
            match outcome {
                Ok(()) => {
                    let now = self.begun.elapsed().as_micros();
                    self.answered[at].store(u64::try_from(now).unwrap_or(u64::MAX), Ordering::Relaxed);
                }
                Err(why) => {
                    let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
                    if failures.len() < MOST {
                        let ended = Instant::now();
                        failures.push(Failure {
                            kind,
                            sent,
                            ended,
                            why,
                        });
                    }
                }
            }
        }
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether a request of each kind that was answered after this moment was right.
    pub(super) fn all_answered_since(&self, moment: Instant) -> bool {
        let since = u64::try_from(moment.duration_since(self.begun).as_micros()).unwrap_or(u64::MAX);
        let mut answered = self.answered.iter();
        answered.all(|at| at.load(Ordering::Relaxed) > since)
    }

    /// The requests that failed from `from` to `to`: what an incident breaks may have been sent before.
    pub(super) fn failures(&self, from: Instant, to: Instant) -> Vec<Failure> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let within = failures.iter().filter(|one| one.ended >= from && one.ended < to);
        within.cloned().collect()
    }

    /// All requests up to now.
    pub(super) fn record(&self) -> Record {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The requests since the last call of this.
    pub(super) fn take_recent(&self) -> Record {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *recent, Record::new(Kind::ALL.len()))
    }
}
