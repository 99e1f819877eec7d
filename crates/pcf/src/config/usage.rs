//! Quotas of subscribers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Period, Validate};

/// Quotas of subscribers, which usage monitoring over N7 and Gx draws down (TS 29.512 §4.2.6.5.3, TS 29.212 §4.5.16). What is
/// left outlives sessions, and all sessions of a subscriber share it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Usage {
    /// Whether quotas are drawn down.
    pub enabled: bool,
    /// Limits of every subscriber, by identifier, beside those of its policy data (`umDataLimits`), which go first.
    pub limits: BTreeMap<String, UsageLimit>,
    /// Largest volume that a session may use before it reports; 0: all that is left.
    pub portion: ByteSize,
    /// Longest time that a session may use before it reports; 0: all that is left.
    pub time_portion: Period,
    /// How long a subscriber's quotas are kept after its last report; at least the longest period of a limit.
    pub retention: Period,
    /// Whether the UDR gets what is left of the limits that it has (PATCH of `sm-data`, TS 29.519 §5.2.4).
    pub update_udr: bool,
    /// Subscribers of which a worker writes to the UDR at once; of further ones the next report is written.
    pub max_updates: usize,
    /// Attempts of such a write.
    pub attempts: u32,
    /// Pause before another attempt.
    pub retry_pause: Period,
}

/// A limit of every subscriber.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct UsageLimit {
    /// Whether the whole session is measured, or the rules that refer to its keys.
    pub level: UsageLevel,
    /// Monitoring keys that are measured against it; none: its identifier is the key.
    pub keys: Vec<String>,
    /// DNNs (APNs) that it applies to; none: all.
    pub dnns: Vec<String>,
    /// Volume of both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_volume: Option<ByteSize>,
    /// Volume from the UE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink_volume: Option<ByteSize>,
    /// Volume to the UE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub downlink_volume: Option<ByteSize>,
    /// Time of use, in whole seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Period>,
    /// When it is whole again, counted from the first session of the subscriber; absent: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<UsagePeriod>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UsageLevel {
    /// The whole session.
    #[default]
    Session,
    /// The rules that refer to a key of the limit (`refUmData`).
    Service,
}

/// How long a quota lasts (TS 29.519 `Periodicity`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UsagePeriod {
    /// A year.
    Yearly,
    /// A month.
    Monthly,
    /// A week.
    Weekly,
    /// A day.
    Daily,
    /// An hour.
    Hourly,
}

impl UsagePeriod {
    /// Its name in TS 29.519.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Yearly => "YEARLY",
            Self::Monthly => "MONTHLY",
            Self::Weekly => "WEEKLY",
            Self::Daily => "DAILY",
            Self::Hourly => "HOURLY",
        }
    }
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            enabled: true,
            limits: BTreeMap::new(),
            portion: ByteSize::mib(100),
            time_portion: Period::from_secs(0),
            retention: Period::from_secs(400 * 86_400),
            update_udr: true,
            max_updates: 1_000,
            attempts: 3,
            retry_pause: Period::from_secs(1),
        }
    }
}

impl Validate for Usage {
    fn validate(&self, faults: &mut Faults) {
        for (id, limit) in &self.limits {
            let volumes = [limit.total_volume, limit.uplink_volume, limit.downlink_volume];
            if volumes.iter().all(Option::is_none) && limit.duration.is_none() {
                faults.at(format!("limits.{id}")).say(
                    "limits nothing",
                    "totalVolume, uplinkVolume, downlinkVolume or duration",
                );
            }
        }
        if self.retention.is_zero() {
            faults.at("retention").say("is 0", "some time, such as 400d");
        }
        for (name, value) in [
            ("maxUpdates", self.max_updates),
            ("attempts", self.attempts as usize),
        ] {
            if value == 0 {
                faults.at(name).say("is 0", "at least 1");
            }
        }
    }
}
