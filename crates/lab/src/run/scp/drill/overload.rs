//! Three times the capacity is offered.

use std::net::SocketAddr;
use std::time::Duration;

use super::sum;
use crate::run::children::Simulator;
use crate::run::drill::{Drill, Judgement, Outcome};
use crate::run::figure;
use crate::run::rig::RigError;
use ::report::Check;
use callmodel::scp::ScpModel;
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
const REFUSED: &str = "signalbox_scp_refused_total";

/// The drill.
pub(in crate::run::scp) struct Overload {
    admin: SocketAddr,
    /// The most important first.
    priorities: Vec<u8>,
    start: Option<Metrics>,
}

impl Overload {
    pub(in crate::run::scp) fn new(model: &ScpModel, admin: SocketAddr) -> Self {
        let mut priorities: Vec<u8> = model.priorities.iter().map(|one| one.priority).collect();
        priorities.sort_unstable();
        priorities.dedup();
        Self {
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
        let rate =
            |window: &crate::run::window::Window| window.record.total().succeeded as f64 / window.seconds();
        let (most, goodput) = (rate(reference), rate(window));
        // Share of each priority that was served, the most important first.
        let served: Vec<(u8, f64, f64)> = self
            .priorities
            .iter()
            .map(|priority| {
                let name = format!(", priority {priority} ");
                let of = sum(outcome.names, &window.record.operations, |one| {
                    one.contains(&name)
                });
                let share = of.succeeded as f64 / (of.offered as f64).max(1.0);
                (*priority, share, of.succeeded as f64 / window.seconds())
            })
            .collect();
        let in_order = served
            .windows(2)
            .all(|pair| pair[1].1 < SOME || pair[0].1 >= NEARLY_ALL);
        let p99 = |window: &crate::run::window::Window| {
            served
                .iter()
                .filter(|(_, share, _)| *share >= NEARLY_ALL)
                .map(|(priority, ..)| {
                    let name = format!(", priority {priority} ");
                    let of = sum(outcome.names, &window.record.operations, |one| {
                        one.contains(&name)
                    });
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
        let refused = |reason: &str| {
            let labels = [("reason", reason)];
            end.sum(REFUSED, &labels) - start.sum(REFUSED, &labels)
        };
        let discarded = refused("overload") + refused("inFlight");
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
            ),
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
            ),
            Check::new(
                "what is shed is refused",
                "the SCP counts requests that it discarded",
                format!(
                    "{} for overload, {} because too many were under way",
                    figure(refused("overload")),
                    figure(refused("inFlight"))
                ),
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
