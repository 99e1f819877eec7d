//! Resources used up to a moment, and between two moments.

use std::time::{Duration, Instant};

use loadgen::Record;
use report::measure::Usage;
use simulators::Stats;

use super::rig::Place;

/// A run in which other processes took more than this of the function's cores is disturbed.
pub(super) const DISTURBED: f64 = 0.05;

/// Resources used up to a moment.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) at: Instant,
    pub(super) usage: Option<Usage>,
    /// Processor time of all processes on the function's cores.
    pub(super) busy: Option<Duration>,
    /// Processor time of all processes on the cores that the lab may use.
    pub(super) busy_everywhere: Option<Duration>,
    /// What a hypervisor took away from all of those.
    pub(super) stolen: Option<Duration>,
    pub(super) simulators: Vec<(Stats, Usage)>,
    /// Requests that each kind of outgoing traffic must have come to.
    pub(super) expected: Vec<u64>,
    /// Requests that each receiver of the function's own requests has counted.
    pub(super) egress: Vec<u64>,
    pub(super) databases: Vec<(String, Usage)>,
    pub(super) generator_cpu: Vec<Duration>,
    pub(super) generator_bytes: (u64, u64),
}

/// A measured part of a run.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) tps: f64,
    pub(super) record: Record,
    pub(super) before: Mark,
    pub(super) after: Mark,
    pub(super) lateness: Duration,
}

impl Window {
    pub(super) fn seconds(&self) -> f64 {
        self.after
            .at
            .duration_since(self.before.at)
            .as_secs_f64()
            .max(1e-3)
    }

    pub(super) fn cores(&self) -> f64 {
        let used = |mark: &Mark| mark.usage.map_or(Duration::ZERO, |usage| usage.cpu);
        used(&self.after).saturating_sub(used(&self.before)).as_secs_f64() / self.seconds()
    }

    /// Whether other processes took so much of the function's cores that a failure does not show its capacity.
    pub(super) fn is_disturbed(&self, place: &Place) -> bool {
        self.others(place) > DISTURBED
    }

    /// Cores that other processes took of those the function is kept to.
    pub(super) fn others(&self, place: &Place) -> f64 {
        match (self.before.busy, self.after.busy) {
            (Some(before), Some(after)) if !place.function_cpus.is_empty() && self.after.usage.is_some() => {
                (after.saturating_sub(before).as_secs_f64() / self.seconds() - self.cores()).max(0.0)
            }
            _ => 0.0,
        }
    }

    /// Cores that a hypervisor took away, and cores that processes of neither the function nor the lab used.
    pub(super) fn disturbances(&self) -> (f64, f64) {
        let cores = |of: &dyn Fn(&Mark) -> Option<Duration>| match (of(&self.before), of(&self.after)) {
            (Some(before), Some(after)) => after.saturating_sub(before).as_secs_f64() / self.seconds(),
            _ => 0.0,
        };
        let own = |mark: &Mark| {
            let lab = mark.simulators.iter().map(|(_, usage)| usage.cpu);
            let databases = mark.databases.iter().map(|(_, usage)| usage.cpu);
            let function = mark.usage.map(|usage| usage.cpu);
            let all = lab.chain(databases).chain(function);
            Some(all.chain(mark.generator_cpu.iter().copied()).sum())
        };
        let stolen = cores(&|mark| mark.stolen);
        let foreign = cores(&|mark| mark.busy_everywhere) - stolen - cores(&own);
        (stolen, foreign.max(0.0))
    }

    /// The share of its core that the busiest generator thread used.
    pub(super) fn generator_busy(&self) -> f64 {
        let pairs = self.after.generator_cpu.iter().zip(&self.before.generator_cpu);
        pairs
            .map(|(after, before)| after.saturating_sub(*before).as_secs_f64())
            .fold(0.0, f64::max)
            / self.seconds()
    }
}
