//! The drill in which three times the capacity is offered, for functions that refuse the least important first.

use std::net::SocketAddr;
use std::time::Duration;

use super::children::Simulator;
use super::drill::{Drill, Judgement, Outcome};
use super::figure;
use super::rig::RigError;
use super::window::Window;
use ::report::Check;
use callmodel::PriorityShare;
use loadgen::OperationRecord;
use report::measure::Metrics;

/// How many times the rate is offered.
const TIMES: f64 = 3.0;
/// The least goodput, of that at the rate itself.
const GOODPUT: f64 = 0.9;
/// If this share of a priority is served …
const SOME: f64 = 0.1;
/// … at least this share of each more important one must be.
const NEARLY_ALL: f64 = 0.9;
/// The longest 99th percentile of priorities that are served: this many times that at the rate itself, or this long.
const LATE_TIMES: f64 = 10.0;
const LATE_MS: f64 = 100.0;
/// How much more memory than before may be in use: twice as much, and this many bytes.
const MEMORY: u64 = 64 << 20;

/// A function as this drill sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject {
    /// Its name in checks.
    pub(super) name: &'static str,
    /// What it counts of requests that it refuses because it has too much to do.
    pub(super) refused: &'static [Refused],
}

/// A counter of refused requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refused {
    /// Words for it.
    pub(super) words: &'static str,
    /// Its name.
    pub(super) metric: &'static str,
    /// Labels of the series that count.
    pub(super) labels: &'static [(&'static str, &'static str)],
}

/// The drill.
pub(super) struct Overload {
    subject: Subject,
    /// Where its metrics are.
    admin: SocketAddr,
    /// The most important first.
    priorities: Vec<u8>,
    start: Option<Metrics>,
}

impl Overload {
    pub(super) fn new(subject: Subject, priorities: &[PriorityShare], admin: SocketAddr) -> Self {
        let mut priorities: Vec<u8> = priorities.iter().map(|one| one.priority).collect();
        priorities.sort_unstable();
        priorities.dedup();
        Self {
            subject,
            admin,
            priorities,
            start: None,
        }
    }
}

impl Drill for Overload {
    fn factor(&self) -> f64 {
        TIMES
    }

    fn act(&mut self, _: Duration, _: Duration, _: &mut [Simulator]) -> Result<(), RigError> {
        if self.start.is_none() {
            self.start = Metrics::read(self.admin);
        }
        Ok(())
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let window = outcome.window;
        let reference = outcome.reference.unwrap_or(window);
        let rate = |window: &Window| window.record.total().succeeded as f64 / window.seconds();
        let (most, goodput) = (rate(reference), rate(window));
        // Share of each priority that was served, the most important first.
        let served: Vec<(u8, f64, f64)> = self
            .priorities
            .iter()
            .map(|priority| {
                let of = of_priority(outcome.names, window, *priority);
                let share = of.succeeded as f64 / (of.offered as f64).max(1.0);
                (*priority, share, of.succeeded as f64 / window.seconds())
            })
            .collect();
        let in_order = served
            .windows(2)
            .all(|pair| pair[1].1 < SOME || pair[0].1 >= NEARLY_ALL);
        let p99 = |window: &Window| {
            served
                .iter()
                .filter(|(_, share, _)| *share >= NEARLY_ALL)
                .map(|(priority, ..)| {
                    let of = of_priority(outcome.names, window, *priority);
                    of.latency.value_at_quantile(0.99) as f64 / 1e3
                })
                .fold(0.0, f64::max)
        };
        let (late, limit) = (p99(window), (p99(reference) * LATE_TIMES).max(LATE_MS));
        let words: Vec<String> = served
            .iter()
            .map(|(priority, share, rate)| {
                format!("priority {priority}: {:.1}%, {}/s", share * 100.0, figure(*rate))
            })
            .collect();
        let end = Metrics::read(self.admin).unwrap_or_default();
        let start = self.start.take().unwrap_or_default();
        let refused: Vec<(&str, f64)> = self
            .subject
            .refused
            .iter()
            .map(|one| {
                let of = |metrics: &Metrics| metrics.sum(one.metric, one.labels);
                (one.words, of(&end) - of(&start))
            })
            .collect();
        let discarded: f64 = refused.iter().map(|(_, count)| count).sum();
        let refused: Vec<String> = refused
            .iter()
            .map(|(words, count)| format!("{} {words}", figure(*count)))
            .collect();
        let mb = |bytes: u64| figure(bytes as f64 / f64::from(1 << 20));
        let (rss, before) = outcome.rss;
        let checks = vec![
            Check::new(
                "goodput at three times the rate",
                format!(
                    "at least {:.0}% of {} TPS, the goodput at the rate itself",
                    GOODPUT * 100.0,
                    figure(most)
                ),
                format!(
                    "{} TPS, {:.1}%",
                    figure(goodput),
                    goodput / most.max(1e-9) * 100.0
                ),
                goodput >= GOODPUT * most,
            )
            .of_time(),
            Check::new(
                "low priority is shed first",
                format!(
                    "where {:.0}% of a priority are served, {:.0}% of the more important ones are",
                    SOME * 100.0,
                    NEARLY_ALL * 100.0
                ),
                words.join("; "),
                in_order,
            ),
            Check::new(
                "p99 of the priorities that are served",
                format!("at most {} ms", figure(limit)),
                format!("{} ms", figure(late)),
                late <= limit,
            )
            .of_time(),
            Check::new(
                "what is shed is refused",
                format!("the {} counts requests that it discarded", self.subject.name),
                refused.join(", "),
                discarded > 0.0,
            ),
            Check::new(
                "memory",
                format!("at most twice that of before and {} MiB", MEMORY >> 20),
                format!("{} MiB; {} MiB at the rate itself", mb(rss), mb(before)),
                rss <= before.saturating_mul(2) + MEMORY,
            ),
        ];
        Judgement {
            checks,
            notes: vec![format!(
                "goodput of each priority at three times the rate: {}",
                words.join("; ")
            )],
            spares_bounds: true,
            destinations: None,
        }
    }
}

/// The requests of a priority: those whose names end with it, or go on after a space.
fn of_priority(names: &[String], window: &Window, priority: u8) -> OperationRecord {
    let mut total = OperationRecord::default();
    for (name, record) in names.iter().zip(&window.record.operations) {
        if has_priority(name, priority) {
            total.merge(record);
        }
    }
    total
}

fn has_priority(operation: &str, priority: u8) -> bool {
    let Some((_, rest)) = operation.split_once(", priority ") else {
        return false;
    };
    rest.split(' ').next() == Some(&priority.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_of_the_priority_that_they_name() {
        for (name, priority, has) in [
            ("N7, priority 2 (C)", 2, true),
            ("bindingCreate, priority 2", 2, true),
            ("N7, priority 24 (C)", 2, false),
            ("bindingCreate, priority 24", 2, false),
            ("bindingCreate", 2, false),
        ] {
            assert_eq!(has_priority(name, priority), has, "{name}");
        }
    }
}
