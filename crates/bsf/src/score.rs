//! The score of this instance: how well it does, from what it has measured of itself.

use std::time::Duration;

use serde::Serialize;
use telemetry::alarms::Alarm;

use crate::config::{AlarmPoints, Scoring};

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
    /// Alarms that are active.
    pub alarms: f64,
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
    /// Points that active alarms take together.
    pub(crate) alarm_points: u32,
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
        let alarms = f64::from(100 - measured.alarm_points.min(100));
        let parts = [
            (settings.success, success),
            (settings.load, load),
            (settings.latency, latency),
            (settings.replication, replication),
            (settings.alarms, alarms),
        ];
        let weights: f64 = parts.iter().map(|(weight, _)| f64::from(*weight)).sum();
        let sum: f64 = parts.iter().map(|(weight, part)| f64::from(*weight) * part).sum();
        Self {
            score: sum / weights.max(1.0),
            success,
            load,
            latency,
            replication,
            alarms,
        }
    }

    /// The parts, by their names.
    pub(crate) fn parts(&self) -> [(&'static str, f64); 5] {
        [
            ("success", self.success),
            ("load", self.load),
            ("latency", self.latency),
            ("replication", self.replication),
            ("alarms", self.alarms),
        ]
    }
}

/// Points that alarms take together.
pub(crate) fn points_of(alarms: &[Alarm], points: &AlarmPoints) -> u32 {
    alarms.iter().map(|alarm| points.of(alarm.severity)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::{AlarmKind, Alarms, Registry, Severity};

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
            alarm_points: 60,
        };
        let parts = Score::of(&settings, &busy);
        assert_eq!(
            (parts.success, parts.load, parts.latency, parts.replication),
            (50.0, 50.0, 50.0, 10.0)
        );
        assert_eq!(parts.alarms, 40.0);
        let sum = 40.0 * 50.0 + 20.0 * 50.0 + 20.0 * 50.0 + 20.0 * 10.0 + 20.0 * 40.0;
        assert!((parts.score - sum / 120.0).abs() < 1e-9);
        let only_load = Scoring {
            success: 0,
            latency: 0,
            replication: 0,
            alarms: 0,
            ..settings.clone()
        };
        assert_eq!(Score::of(&only_load, &busy).score, 50.0);
    }

    #[test]
    fn alarms_count_by_their_severity_while_they_are_active() {
        const LOST: AlarmKind = AlarmKind {
            number: 1,
            name: "Lost",
            severity: Severity::Critical,
            text: "",
            advice: "",
        };
        let settings = Scoring {
            success: 0,
            load: 0,
            latency: 0,
            replication: 0,
            alarm_points: AlarmPoints {
                critical: 60,
                major: 30,
                minor: 5,
                info: 1,
            },
            ..Scoring::default()
        };
        let alarms = Alarms::new(&Registry::new());
        let score = || {
            let alarm_points = points_of(&alarms.active(), &settings.alarm_points);
            let measured = Measured {
                alarm_points,
                ..Measured::default()
            };
            Score::of(&settings, &measured).score
        };
        for (severity, instance, expected) in [
            (Severity::Info, "a", 99.0),
            (Severity::Minor, "b", 94.0),
            (Severity::Major, "c", 64.0),
            (Severity::Critical, "d", 4.0),
            // Not below 0.
            (Severity::Critical, "e", 0.0),
            // An alarm that becomes milder.
            (Severity::Info, "e", 3.0),
        ] {
            alarms.raise_as(&LOST, severity, instance, "");
            assert_eq!(score(), expected, "{severity} {instance}");
        }
        for instance in ["a", "b", "c", "d", "e"] {
            alarms.clear(&LOST, instance);
        }
        assert_eq!(score(), 100.0);
    }
}
