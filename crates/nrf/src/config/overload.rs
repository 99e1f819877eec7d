//! Overload control.

use function::sbi::Conveying;
use function::{Shedding, Step, WaitingTime};
use overload::Level;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Validate};

/// Which requests workers refuse under overload. They never refuse registrations and heart-beats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Overload {
    /// Discoveries, token requests and new subscriptions are refused, the least important first, when they wait too long.
    pub waiting: WaitingTime,
    /// Messages of this priority or more important (0 to 31, TS 29.500 §6.8) are never refused.
    #[schemars(range(max = 31))]
    pub spare_priority: u8,
    /// Levels of the CPU time of a worker, by rising load, at which shares of the requests are discarded whatever their
    /// waiting time.
    pub levels: Vec<OverloadLevel>,
    /// What answers report of the load of this NRF, with its NF instance as the scope.
    pub convey: Conveying,
}

impl Default for Overload {
    fn default() -> Self {
        Self {
            waiting: WaitingTime::default(),
            spare_priority: 4,
            levels: Vec::new(),
            convey: Conveying::default(),
        }
    }
}

/// One level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct OverloadLevel {
    /// The level begins at this load, in percent of a core.
    pub onset: u8,
    /// It ends below this load.
    pub abatement: u8,
    /// Share of discoveries that is discarded, in percent.
    pub discard_discovery: u8,
    /// Share of token requests that is discarded, in percent.
    pub discard_tokens: u8,
    /// Share of new subscriptions that is discarded, in percent. Registrations and heart-beats never are.
    pub discard_subscriptions: u8,
    /// At this level messages of this priority or more important (0 to 31) are never discarded; absent: those of
    /// `overload.sparePriority`.
    #[schemars(range(max = 31))]
    pub spare_priority: Option<u8>,
}

impl Default for OverloadLevel {
    fn default() -> Self {
        Self {
            onset: 90,
            abatement: 85,
            discard_discovery: 0,
            discard_tokens: 0,
            discard_subscriptions: 0,
            spare_priority: None,
        }
    }
}

impl Overload {
    /// What a worker refuses: classes are discoveries, token requests and new subscriptions, in this order.
    pub(crate) fn shedding(&self) -> Shedding {
        Shedding {
            waiting: self.waiting.clone(),
            steps: self.steps(),
            classes: 3,
            apart: false,
            spare: self.spare_priority,
            kept: Shedding::KEPT,
        }
    }

    fn steps(&self) -> Vec<Step> {
        let step = |(index, level): (usize, &OverloadLevel)| Step {
            level: Level::new(
                &format!("L{}", index + 1),
                level.onset.into(),
                level.abatement.into(),
            ),
            shares: [
                level.discard_discovery,
                level.discard_tokens,
                level.discard_subscriptions,
            ]
            .map(|percent| f64::from(percent) / 100.0)
            .to_vec(),
            spare: level.spare_priority,
        };
        self.levels.iter().enumerate().map(step).collect()
    }
}

impl Validate for Overload {
    fn validate(&self, faults: &mut Faults) {
        faults.within("waiting", &self.waiting);
        for (i, level) in self.levels.iter().enumerate() {
            if level.abatement >= level.onset {
                faults
                    .at(format!("levels[{i}].abatement"))
                    .say("is not below onset", "less than onset");
            }
            if [
                level.discard_discovery,
                level.discard_tokens,
                level.discard_subscriptions,
            ]
            .iter()
            .any(|p| *p > 100)
            {
                faults
                    .at(format!("levels[{i}]"))
                    .say("is above 100 percent", "0 to 100 percent");
            }
        }
    }
}
