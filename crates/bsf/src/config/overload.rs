//! Overload control.

use overload::{CongestionLevels, Level};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Validate};

/// Requests that are not worked on: above a rate, or by priority when the CPU is loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Overload {
    /// Whether requests are discarded at congestion levels.
    pub enabled: bool,
    /// Levels by rising load; the load is the CPU time of a worker in percent of a core.
    pub levels: Vec<OverloadLevel>,
    /// Messages of this priority or more important (0 to 31, TS 29.500 §6.8) are never discarded.
    pub spare_priority: u8,
    /// Requests a second that are accepted, all workers together; 0: any number.
    pub ingress_rate: u32,
    /// Requests a second that are accepted of one consumer, told apart by `User-Agent`; 0: any number. Every
    /// worker has its share of it.
    pub consumer_rate: u32,
    /// Consumers that each worker tells apart; further ones share one rate.
    pub max_consumers: usize,
    /// Consumers that have another rate.
    pub consumers: Vec<ConsumerRate>,
}

/// The rate of a consumer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ConsumerRate {
    /// Its whole `User-Agent`, or an NF type, whose consumers then share the rate.
    pub consumer: String,
    /// Requests a second; 0: any number.
    pub rate: u32,
}

/// One level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct OverloadLevel {
    /// When it begins and ends.
    pub level: Level,
    /// Share of requests that is discarded, the least important first.
    pub discard: Percent,
}

impl Default for Overload {
    fn default() -> Self {
        let level = |name, set, clear, discard| OverloadLevel {
            level: Level::new(name, set, clear),
            discard: Percent::new(discard),
        };
        Self {
            enabled: false,
            levels: vec![
                level("L1", 85.0, 80.0, 10.0),
                level("L2", 92.0, 88.0, 30.0),
                level("L3", 97.0, 94.0, 60.0),
            ],
            spare_priority: 4,
            ingress_rate: 0,
            consumer_rate: 0,
            max_consumers: 1_000,
            consumers: Vec::new(),
        }
    }
}

impl Validate for Overload {
    fn validate(&self, faults: &mut Faults) {
        if self.max_consumers == 0 {
            faults.at("maxConsumers").say("is 0", "at least 1");
        }
        let levels: Vec<Level> = self.levels.iter().map(|one| one.level.clone()).collect();
        let mut inner = Faults::default();
        CongestionLevels::validate(&levels, &mut inner);
        if let Some(fault) = inner.into_vec().into_iter().next() {
            faults.at("levels").say(fault.what, fault.expected);
        }
    }
}
