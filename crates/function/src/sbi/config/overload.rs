//! Overload control.

use overload::{CongestionLevels, Level, WaitingTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Validate};

use crate::sbi::Conveying;
use crate::shedder::{Shedding, Step};

/// Classes of requests: [`Overload::SBI`] and [`Overload::DIAMETER`].
const CLASSES: usize = 2;

/// Requests that are refused: above a rate, or by priority when workers have too much to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Overload {
    /// Whether requests are refused when workers have too much to do.
    pub enabled: bool,
    /// Requests, and Diameter requests that begin a session, are refused, the least important first, when they wait too long.
    pub waiting: WaitingTime,
    /// Levels of the CPU time of a worker, by rising load, at which a share of the requests is discarded whatever their
    /// waiting time.
    pub levels: Vec<OverloadLevel>,
    /// Messages of this priority or more important (0 to 31, TS 29.500 §6.8) are never refused.
    #[schemars(range(max = 31))]
    pub spare_priority: u8,
    /// Requests a second that are accepted, all workers together; 0: any number.
    pub ingress_rate: u32,
    /// Requests a second that are accepted of one consumer, distinguished by its `User-Agent`; 0: any number. Every
    /// worker has its share of it.
    pub consumer_rate: u32,
    /// Consumers that each worker distinguishes; further ones share one rate.
    pub max_consumers: usize,
    /// Consumers that have another rate.
    pub consumers: Vec<ConsumerRate>,
    /// What answers report of the own load and overload.
    pub convey: Conveying,
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
        Self {
            enabled: true,
            waiting: WaitingTime::default(),
            levels: Vec::new(),
            spare_priority: 4,
            ingress_rate: 0,
            consumer_rate: 0,
            max_consumers: 1_000,
            consumers: Vec::new(),
            convey: Conveying::default(),
        }
    }
}

impl Overload {
    /// Class of requests of service-based interfaces.
    pub const SBI: usize = 0;
    /// Class of Diameter requests that begin a session.
    pub const DIAMETER: usize = 1;

    /// What a worker refuses.
    #[must_use]
    pub fn shedding(&self) -> Shedding {
        let step = |one: &OverloadLevel| Step {
            level: one.level.clone(),
            shares: vec![one.discard.fraction(); CLASSES],
            spare: None,
        };
        Shedding {
            waiting: self.waiting.clone(),
            steps: self.levels.iter().map(step).collect(),
            classes: CLASSES,
            apart: true,
            spare: self.spare_priority,
            kept: Shedding::KEPT,
        }
    }
}

impl Validate for Overload {
    fn validate(&self, faults: &mut Faults) {
        faults.within("waiting", &self.waiting);
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
