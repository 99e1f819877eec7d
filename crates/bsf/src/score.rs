//! The score of this instance: how well it does, from what it has measured of itself.

use std::time::Duration;

use serde::Serialize;

use crate::config::Scoring;

/// A score and what it is made of: each from 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Score {
    /// The mean of the others by their weights.
    pub score: f64,
    /// Requests that did not fail for a reason of ours.
    pub success: f64,
    /// CPU time that the busiest worker has left.
    pub load: f64,
    /// Time to an answer.
    pub latency: f64,
    /// Replication delay of other sites.
    pub replication: f64,
}

/// What has been measured in an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    /// Requests answered, and of those how many failed for a reason of ours.
    pub(crate) requests: u64,
    pub(crate) failures: u64,
    /// Time to all answers together.
    pub(crate) time: Duration,
    /// In percent of a core.
    pub(crate) load: u32,
    /// Of the site that is most behind.
    pub(crate) delay: Duration,
}

/// All of it up to the target, then the less the longer.
fn within(target: Duration, taken: Duration) -> f64 {
    match taken <= target {
        true => 100.0,
        false => 100.0 * target.as_secs_f64() / taken.as_secs_f64(),
    }
}

impl Score {
    pub(crate) fn of(settings: &Scoring, measured: &Measured) -> Self {
        let requests = measured.requests.max(1);
        let mean = Duration::from_secs_f64(measured.time.as_secs_f64() / requests as f64);
        let success = 100.0 * (1.0 - measured.failures.min(requests) as f64 / requests as f64);
        let load = f64::from(100 - measured.load.min(100));
        let latency = within(settings.latency_target.duration(), mean);
        let replication = within(settings.replication_target.duration(), measured.delay);
        let parts = [
            (settings.success, success),
            (settings.load, load),
            (settings.latency, latency),
            (settings.replication, replication),
        ];
        let weights: f64 = parts.iter().map(|(weight, _)| f64::from(*weight)).sum();
        let sum: f64 = parts.iter().map(|(weight, part)| f64::from(*weight) * part).sum();
        Self {
            score: sum / weights.max(1.0),
            success,
            load,
            latency,
            replication,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_worse_scores_less() {
        let settings = Scoring::default();
        let score = |measured: Measured| Score::of(&settings, &measured).score;
        let idle = Measured::default();
        assert_eq!(score(idle), 100.0);
        let busy = Measured {
            requests: 100,
            failures: 50,
            time: Duration::from_secs(4),
            load: 50,
            delay: Duration::from_secs(50),
        };
        let parts = Score::of(&settings, &busy);
        assert_eq!(
            (parts.success, parts.load, parts.latency, parts.replication),
            (50.0, 50.0, 50.0, 10.0)
        );
        assert!((parts.score - (0.4 * 50.0 + 0.2 * 50.0 + 0.2 * 50.0 + 0.2 * 10.0)).abs() < 1e-9);
        let only_load = Scoring {
            success: 0,
            latency: 0,
            replication: 0,
            ..settings.clone()
        };
        assert_eq!(Score::of(&only_load, &busy).score, 50.0);
    }
}
