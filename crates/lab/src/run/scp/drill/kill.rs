//! One producer of a set is killed, stays down for a quarter of the time, and restarts.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::{missed, read, total};
use crate::run::children::Simulator;
use crate::run::drill::{Drill, Judgement, Outcome};
use crate::run::figure;
use crate::run::rig::{Place, RigError};
use crate::run::scp::producers::producer_settings;
use ::report::Check;
use callmodel::scp::ScpModel;
use loadgen::engine::TlsFiles;
use report::measure::Metrics;

/// When, in parts of the length: killed, back, and in its place again.
const KILLED: f64 = 0.25;
const BACK: f64 = 0.5;
const SETTLED: f64 = 0.75;
/// The least part of its share before that a producer must have again.
const SHARE_AGAIN: f64 = 0.8;
/// How an attempt ends whose request had been sent when the producer died.
pub(super) const SENT: [&str; 3] = ["reset", "timeout", "other"];
const ATTEMPTS: &str = "signalbox_scp_attempts_total";
const REROUTES: &str = "signalbox_scp_reroutes_total";

/// The drill.
pub(in crate::run::scp) struct KillProducer {
    place: Place,
    admin: SocketAddr,
    victim: Option<Simulator>,
    settings: simulators::Settings,
    /// Of all producers, the victim first.
    producers: Vec<SocketAddr>,
    /// API names and operations that may be repeated whatever became of the first attempt.
    repeatable: Vec<String>,
    /// Metrics of the SCP: at the start, after the kill, after the restart, and when traffic should be as before.
    marks: Vec<Metrics>,
    came_back: Option<Instant>,
    recovered: Option<Duration>,
}

impl KillProducer {
    pub(in crate::run::scp) fn new(
        model: &ScpModel,
        place: &Place,
        admin: SocketAddr,
        victim: Simulator,
        producers: Vec<SocketAddr>,
        tls: Option<&TlsFiles>,
    ) -> Self {
        let repeatable = model.interfaces.iter();
        let repeatable = repeatable.filter(|one| model.repeatable.contains(&one.service));
        Self {
            place: place.clone(),
            admin,
            settings: producer_settings(model, producers[0].into(), tls),
            victim: Some(victim),
            repeatable: repeatable.map(|one| one.name.clone()).collect(),
            producers,
            marks: Vec::new(),
            came_back: None,
            recovered: None,
        }
    }

    /// Whether requests of this operation must never fail: PUT, and what the operator calls repeatable.
    fn is_safe(&self, name: &str) -> bool {
        name.contains(" PUT")
            || self
                .repeatable
                .iter()
                .any(|one| name.starts_with(&format!("{one} ")))
    }

    /// What each producer has answered well between two marks, as its share of all.
    fn shares(&self, from: &Metrics, to: &Metrics) -> Vec<f64> {
        let well = |at: &SocketAddr| {
            let at = at.to_string();
            let labels = [("producer", at.as_str()), ("outcome", "2xx")];
            to.sum(ATTEMPTS, &labels) - from.sum(ATTEMPTS, &labels)
        };
        let counts: Vec<f64> = self.producers.iter().map(well).collect();
        let all: f64 = counts.iter().sum::<f64>().max(1.0);
        counts.iter().map(|count| count / all).collect()
    }
}

impl Drill for KillProducer {
    fn act(&mut self, at: Duration, length: Duration, _: &mut [Simulator]) -> Result<(), RigError> {
        let part = at.as_secs_f64() / length.as_secs_f64().max(1e-3);
        match self.marks.len() {
            0 => self.marks.push(read(self.admin)?),
            1 if part >= KILLED => {
                self.marks.push(read(self.admin)?);
                // Dropping it kills the process: no connection is closed in order.
                self.victim = None;
            }
            2 if part >= BACK => {
                self.marks.push(read(self.admin)?);
                let place = &self.place;
                let name = "producer-1-again";
                let again = Simulator::start(
                    &place.program,
                    name,
                    &self.settings,
                    &place.lab_cpus,
                    &place.folder,
                )?;
                self.came_back = Some(Instant::now());
                self.victim = Some(again);
            }
            3 => {
                if let (Some(victim), Some(back), None) = (&mut self.victim, self.came_back, self.recovered)
                    && victim.stats()?.requests > 0
                {
                    self.recovered = Some(back.elapsed());
                }
                if part >= SETTLED {
                    self.marks.push(read(self.admin)?);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn judge(&mut self, outcome: &Outcome<'_>) -> Judgement {
        let end = read(self.admin).unwrap_or_default();
        let [start, killed, back, settled] = &self.marks[..] else {
            return missed("a producer is killed and comes back");
        };
        let safe = total(outcome, |name| self.is_safe(name));
        let others = total(outcome, |name| !self.is_safe(name));
        let victim = self.producers[0].to_string();
        let ended = |outcome: &str| {
            let labels = [("producer", victim.as_str()), ("outcome", outcome)];
            end.sum(ATTEMPTS, &labels) - start.sum(ATTEMPTS, &labels)
        };
        let sent: f64 = SENT.iter().map(|outcome| ended(outcome)).sum();
        let rerouted = end.sum(REROUTES, &[]) - start.sum(REROUTES, &[]);
        let before = self.shares(start, killed);
        let during = self.shares(killed, back);
        let after = self.shares(settled, &end);
        let checks = vec![
            Check::new(
                "idempotent and repeatable requests",
                "none fails",
                format!("{} of {} failed", safe.failures(), figure(safe.offered as f64)),
                safe.failures() == 0 && safe.offered > 0,
            ),
            Check::new(
                "other requests",
                "none fails but those that the killed producer had and did not answer",
                format!(
                    "{} of {} failed; it had {}",
                    others.failures(),
                    figure(others.offered as f64),
                    figure(sent)
                ),
                others.failures() as f64 <= sent,
            ),
            Check::new(
                "rerouted",
                "attempts at another producer are counted",
                format!(
                    "{}; of the killed producer's attempts {} were not connected and {} were lost in flight",
                    figure(rerouted),
                    figure(ended("connect")),
                    figure(sent)
                ),
                rerouted > 0.0,
            ),
            Check::new(
                "traffic while it is gone",
                "the others have all of it",
                in_words(&during),
                during[0] < 0.02,
            ),
            Check::new(
                "traffic when it is back",
                format!("at least {:.0}% of its share before", SHARE_AGAIN * 100.0),
                format!(
                    "{} (before: {}){}",
                    in_words(&after),
                    in_words(&before),
                    self.recovered.map_or(String::new(), |after| format!(
                        "; first request {} s after it was back",
                        figure(after.as_secs_f64())
                    ))
                ),
                after[0] >= SHARE_AGAIN * before[0] && before[0] > 0.0,
            )
            .of_time(),
            Check::new(
                "requests when it is back",
                "it gets some again",
                in_words(&after),
                after[0] > 0.0 && before[0] > 0.0,
            ),
        ];
        let notes = vec![
            format!(
                "shares of the producers, the killed one first: before {}, while it is gone {}, at the end {}",
                in_words(&before),
                in_words(&during),
                in_words(&after)
            ),
            "killed (SIGKILL) at a quarter of the time, started again at half of it; ejected for 1 s at first, a \
             broken circuit is tried again after 500 ms"
                .to_owned(),
        ];
        Judgement {
            checks,
            notes,
            spares_bounds: false,
            destinations: None,
        }
    }
}

fn in_words(shares: &[f64]) -> String {
    let shares: Vec<String> = shares
        .iter()
        .map(|share| format!("{:.1}%", share * 100.0))
        .collect();
    shares.join(" / ")
}
