//! The score of this instance.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period, Validate};
use telemetry::Severity;

/// How well this instance does, as one figure from 0 to 100 for dashboards and for what spreads traffic: the
/// mean of what follows by these weights. A weight of 0 leaves a criterion out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Scoring {
    /// Time over which requests are counted for a score.
    pub interval: Period,
    /// Weight of the share of requests that did not fail for a reason of ours.
    pub success: u32,
    /// Weight of the CPU time that the busiest worker has left.
    pub load: u32,
    /// Weight of the mean time to an answer of Nbsf_Management and Rx.
    pub latency: u32,
    /// Mean time up to which the latency is as good as can be; twice as long is half as good.
    pub latency_target: Period,
    /// Weight of the replication delay of other sites (database).
    pub replication: u32,
    /// Delay up to which the replication is as good as can be; twice as long is half as good.
    pub replication_target: Period,
    /// Weight of the alarms that are active at this instance.
    pub alarms: u32,
    /// Points that each active alarm takes from the 100 of this criterion, by its severity.
    pub alarm_points: AlarmPoints,
}

/// Points that active alarms take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct AlarmPoints {
    /// Each critical alarm: service is lost.
    #[schemars(range(max = 100))]
    pub critical: u32,
    /// Each major alarm: service is impaired.
    #[schemars(range(max = 100))]
    pub major: u32,
    /// Each minor alarm: something is impaired that service does not depend on yet.
    #[schemars(range(max = 100))]
    pub minor: u32,
    /// Each alarm that is worth knowing.
    #[schemars(range(max = 100))]
    pub info: u32,
}

impl AlarmPoints {
    /// Points of an alarm.
    #[must_use]
    pub fn of(&self, severity: Severity) -> u32 {
        match severity {
            Severity::Critical => self.critical,
            Severity::Major => self.major,
            Severity::Minor => self.minor,
            Severity::Info => self.info,
        }
    }
}

impl Default for AlarmPoints {
    fn default() -> Self {
        Self {
            critical: 100,
            major: 50,
            minor: 10,
            info: 0,
        }
    }
}

impl Default for Scoring {
    fn default() -> Self {
        Self {
            interval: Period::from_secs(10),
            success: 40,
            load: 20,
            latency: 20,
            latency_target: Period::from_millis(20),
            replication: 20,
            replication_target: Period::from_secs(5),
            alarms: 20,
            alarm_points: AlarmPoints::default(),
        }
    }
}

impl Validate for Scoring {
    fn validate(&self, faults: &mut Faults) {
        if self.interval.is_zero() {
            faults.at("interval").say("is 0", "some time, such as 10s");
        }
        let weights = [
            self.success,
            self.load,
            self.latency,
            self.replication,
            self.alarms,
        ];
        if weights.iter().all(|weight| *weight == 0) {
            faults
                .at("success")
                .say("has no weight, nor has anything else", "one weight above 0");
        }
    }
}
