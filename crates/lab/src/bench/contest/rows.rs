//! What a contest came to, as written to the result file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Contest;
use super::load::Sample;
use loadgen::FailureKind;

/// One subject under one load, once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// The subject did not serve what was offered.
    pub collapsed: bool,
    /// Requests of the schedule per second.
    pub offered_rps: f64,
    /// Requests answered rightly per second in the round.
    pub rps: f64,
    /// Processor time of the subject per served request, in microseconds.
    pub cpu_us_per_request: f64,
    /// Median latency.
    pub p50_ms: f64,
    /// 99th percentile of it.
    pub p99_ms: f64,
    /// Requests without a right answer.
    pub failed: u64,
}

/// One subject under one load, over all rounds that held. What has no value, because no round held, is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The subject.
    pub name: String,
    /// Part of the most that the reference carries; null in a closed loop.
    pub share: Option<f64>,
    /// Requests of the schedule per second; null in a closed loop.
    pub offered_rps: Option<f64>,
    /// Rounds in which the subject did not serve what was offered; no other figure but `failed`, `failures` and `rounds`
    /// includes them.
    pub collapsed_rounds: u32,
    /// Processor time per request by that of the reference under the same load.
    pub cpu_ratio: Option<f64>,
    /// Processor time of the subject per served request, in microseconds; 0 without a process.
    pub cpu_us_per_request: Option<f64>,
    /// The part of it in user mode.
    pub cpu_user_us_per_request: Option<f64>,
    /// The part of it in the kernel.
    pub cpu_kernel_us_per_request: Option<f64>,
    /// Requests answered rightly per second.
    pub rps: Option<f64>,
    /// Median latency, from when a request was to be sent to the end of its answer.
    pub p50_ms: Option<f64>,
    /// 99th percentile of it.
    pub p99_ms: Option<f64>,
    /// 99.9th percentile of it.
    pub p999_ms: Option<f64>,
    /// The median less that of `direct`.
    pub added_p50_ms: Option<f64>,
    /// The 99th percentile less that of `direct`.
    pub added_p99_ms: Option<f64>,
    /// Requests without a right answer, in all rounds.
    pub failed: u64,
    /// Those that were refused with status 429 or 503.
    #[serde(default)]
    pub refused: u64,
    /// All by kind, as far as the kind is known.
    pub failures: BTreeMap<String, u64>,
    /// Use of the subjects' cores by anything, 0 to 1; 0 when they are not pinned.
    pub cores_busy: Option<f64>,
    /// Use of the cores of generator and peers by anything, 0 to 1; 0 when they are not pinned.
    pub lab_cores_busy: Option<f64>,
    /// Processor time of the generator per served request, in microseconds.
    pub generator_us_per_request: Option<f64>,
    /// Processor time of the peers behind the subject per served request, in microseconds.
    pub peers_us_per_request: Option<f64>,
    /// Each round.
    pub rounds: Vec<Round>,
}

/// A tenth of a second after a burst.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Seconds from the end of the burst.
    pub at_s: f64,
    /// Requests of the schedule.
    pub offered: u64,
    /// Those answered rightly before the next window was over.
    pub served: u64,
    /// 99th percentile of their latency.
    pub p99_ms: f64,
}

/// What a burst did to a subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Burst {
    /// The subject.
    pub name: String,
    /// Requests per second before and after the burst.
    pub base_rps: f64,
    /// Requests per second of the burst.
    pub burst_rps: f64,
    /// How long the burst lasted.
    pub burst_s: f64,
    /// The subject served what was offered before the burst.
    pub held_before: bool,
    /// 99th percentile of the latency before the burst: the median of its windows.
    pub p99_before_ms: f64,
    /// The longest that counts as before: twice that, or the longest of a window before.
    pub p99_limit_ms: f64,
    /// Requests answered rightly per second during the burst.
    pub served_during_rps: f64,
    /// 99th percentile of the latency during the burst.
    pub p99_during_ms: f64,
    /// Requests of the burst without a right answer.
    pub failed_during: u64,
    /// Seconds from the end of the burst until throughput and 99th percentile were as before, for half a second; null
    /// when that did not come.
    pub recovered_s: Option<f64>,
    /// What came after the burst.
    pub after: Vec<Window>,
}

/// One contest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// What was compared.
    pub title: String,
    /// The subject whose figures the others are divided by.
    pub reference: String,
    /// Requests per second that the reference carried in the closed loop, or that were given instead.
    pub most_rps: f64,
    /// Each as fast as it goes with the same requests in flight.
    pub saturated: Vec<Row>,
    /// Each in an open loop at shares of `most_rps`.
    pub open: Vec<Row>,
    /// Each before, in and after a burst.
    pub bursts: Vec<Burst>,
    /// What a reader must know beside the figures: who took no part, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Section {
    /// A row of the closed loop, or of the open loop at this share.
    #[must_use]
    pub fn row(&self, name: &str, share: Option<f64>) -> Option<&Row> {
        let rows = if share.is_some() {
            &self.open
        } else {
            &self.saturated
        };
        rows.iter().find(|row| row.name == name && row.share == share)
    }

    /// The rows of each load, the closed loop first.
    pub(super) fn loads(&self) -> impl Iterator<Item = &[Row]> {
        std::iter::once(&self.saturated[..]).chain(self.open.chunk_by(|a, b| a.share == b.share))
    }
}

pub(super) fn section(
    contest: &Contest<'_>,
    most: f64,
    saturated: &[Vec<Sample>],
    open: &[(f64, f64, Vec<Vec<Sample>>)],
    bursts: Vec<Burst>,
) -> Section {
    Section {
        title: contest.title.clone(),
        reference: contest.subjects[contest.reference].name.clone(),
        most_rps: round(most, 0),
        saturated: rows(contest, None, saturated),
        open: open
            .iter()
            .flat_map(|(share, rate, samples)| rows(contest, Some((*share, *rate)), samples))
            .collect(),
        bursts,
        notes: Vec::new(),
    }
}

/// The rows of one load.
fn rows(contest: &Contest<'_>, load: Option<(f64, f64)>, samples: &[Vec<Sample>]) -> Vec<Row> {
    let held: Vec<Option<Sample>> = samples.iter().map(|rounds| sum_of_held(rounds)).collect();
    let cpu = |sample: &Sample| sample.each(sample.user + sample.kernel);
    let reference = held.get(contest.reference).and_then(Option::as_ref).map(cpu);
    let direct = contest
        .subjects
        .iter()
        .position(|subject| subject.process.is_none())
        .and_then(|at| held.get(at)?.as_ref());
    let all = contest.subjects.iter().zip(samples).zip(&held);
    all.map(|((subject, samples), held)| {
        let value = |of: &dyn Fn(&Sample) -> f64, digits| held.as_ref().map(|held| round(of(held), digits));
        let added = |quantile| {
            let (held, direct) = (held.as_ref()?, direct?);
            Some(round(
                held.quantile_ms(quantile) - direct.quantile_ms(quantile),
                3,
            ))
        };
        let of_cores = |used: std::time::Duration, cores: usize, sample: &Sample| {
            used.as_secs_f64() / (sample.seconds * cores.max(1) as f64).max(1e-3)
        };
        let place = contest.place;
        Row {
            name: subject.name.clone(),
            share: load.map(|(share, _)| share),
            offered_rps: load.map(|(_, rate)| round(rate, 0)),
            collapsed_rounds: samples.iter().filter(|sample| sample.has_collapsed()).count() as u32,
            cpu_ratio: held
                .as_ref()
                .zip(reference)
                .filter(|(_, reference)| subject.process.is_some() && *reference > 0.0)
                .map(|(held, reference)| round(cpu(held) / reference, 3)),
            cpu_us_per_request: value(&cpu, 2),
            cpu_user_us_per_request: value(&|one| one.each(one.user), 2),
            cpu_kernel_us_per_request: value(&|one| one.each(one.kernel), 2),
            rps: value(&Sample::rps, 0),
            p50_ms: value(&|one| one.quantile_ms(0.5), 3),
            p99_ms: value(&|one| one.quantile_ms(0.99), 3),
            p999_ms: value(&|one| one.quantile_ms(0.999), 3),
            added_p50_ms: added(0.5),
            added_p99_ms: added(0.99),
            failed: samples.iter().map(Sample::failed).sum(),
            refused: samples.iter().map(Sample::refused).sum(),
            failures: failures(samples),
            cores_busy: value(&|one| of_cores(one.busy.0, place.function_cpus.len(), one), 3),
            lab_cores_busy: value(&|one| of_cores(one.busy.1, place.lab_cpus.len(), one), 3),
            generator_us_per_request: value(&|one| one.each(one.generator), 2),
            peers_us_per_request: value(&|one| one.each(one.peers), 2),
            rounds: samples.iter().map(of_round).collect(),
        }
    })
    .collect()
}

/// All rounds that held, in one; `None` when none did.
fn sum_of_held(samples: &[Sample]) -> Option<Sample> {
    let mut held = samples.iter().filter(|sample| !sample.has_collapsed());
    let mut sum = held.next()?.clone();
    held.for_each(|sample| sum.add(sample));
    Some(sum)
}

fn failures(samples: &[Sample]) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for sample in samples {
        for (kind, count) in FailureKind::ALL.iter().zip(sample.total.failed) {
            if count > 0 {
                *all.entry(kind.name().to_owned()).or_default() += count;
            }
        }
    }
    all
}

fn of_round(sample: &Sample) -> Round {
    Round {
        collapsed: sample.has_collapsed(),
        offered_rps: round(sample.total.offered as f64 / sample.seconds.max(1e-3), 0),
        rps: round(sample.rps(), 0),
        cpu_us_per_request: round(sample.each(sample.user + sample.kernel), 2),
        p50_ms: sample.quantile_ms(0.5),
        p99_ms: sample.quantile_ms(0.99),
        failed: sample.failed(),
    }
}

pub(in crate::bench) fn round(value: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (value * factor).round() / factor
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadgen::OperationRecord;
    use std::time::Duration;

    fn sample(offered: u64, served: u64, user_ms: u64) -> Sample {
        Sample {
            rate: Some(1000.0),
            total: OperationRecord {
                offered,
                succeeded: served,
                failed: [0, 0, 0, 0, 0, offered - served, 0],
                ..OperationRecord::default()
            },
            served,
            in_time: served,
            seconds: 10.0,
            user: Duration::from_millis(user_ms),
            ..Sample::default()
        }
    }

    #[test]
    fn a_round_that_collapsed_is_in_no_average_but_in_the_failures() {
        let rounds = [
            sample(10_000, 10_000, 300),
            sample(10_000, 6_000, 900),
            sample(10_000, 10_000, 500),
        ];
        let held = sum_of_held(&rounds).unwrap();
        assert_eq!((held.served, held.failed()), (20_000, 0));
        assert_eq!(held.each(held.user), 40.0);
        assert_eq!(failures(&rounds).get("not sent"), Some(&4_000));
        assert!(of_round(&rounds[1]).collapsed);
        assert_eq!(sum_of_held(&rounds[1..2]).map(|held| held.served), None);
    }
}
