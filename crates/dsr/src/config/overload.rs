//! Overload control of a message processor.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Percent, Period, Validate};

use super::AnswerRule;
use super::profiles::{self, Plan};

/// Overload control of a message processor, by the CPU time of its thread in percent of a core, or of its part
/// of one where processors share cores. Changes while running.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Overload {
    /// The table of thresholds that `levels` without values of their own take.
    pub thresholds: Thresholds,
    /// Levels by rising load, with the share that is discarded at each.
    pub levels: Vec<OverloadLevel>,
    /// The order in which requests are discarded.
    pub policy: Policy,
    /// Requests of this DRMP priority or more important are never discarded by load.
    #[schemars(range(min = 0, max = 15))]
    pub spare_priority: u8,
    /// The time over which the load is averaged.
    pub average: Period,
    /// The answer to a discarded request.
    pub answer: AnswerRule,
    /// The profile that a message processor is planned for, by the guide's name: `18K_MPS`, `VM:35K_MPS`,
    /// `40K_MPS_FABR` and others; case and `VM:` do not count. Empty: `profileMps`.
    pub profile: String,
    /// Messages per second that a message processor is planned for, where no profile of the guide fits; 0: none.
    pub profile_mps: u32,
    /// In percent of the profile: requests above it are discarded, whatever the load.
    #[schemars(range(min = 100))]
    pub hard_limit_percent: u32,
    /// Whether clients that support DOIC get overload reports (RFC 7683).
    pub doic: bool,
    /// Validity of such a report.
    pub doic_validity: Period,
    /// Load and overload reports of servers.
    #[serde(alias = "heed")]
    #[schemars(extend("x-aliases" = ["heed"]))]
    pub server_reports: ServerReports,
    /// Reports of our load to peers.
    #[serde(alias = "tellLoad")]
    #[schemars(extend("x-aliases" = ["tellLoad"]))]
    pub advertise_load: AdvertiseLoad,
    /// Load to assume instead of the measured one, for a rehearsal of a level. Absent: measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed_load: Option<Percent>,
}

/// How load and overload reports of servers are used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ServerReports {
    /// Whether overload reports of servers and realms (OC-OLR, RFC 7683) reduce the traffic to them: requests that name
    /// no host go to other servers, others are refused, the least important first (RFC 7944). Requests of clients that
    /// support overload reports themselves are not refused.
    pub reports: bool,
    /// Whether the router requests reports on behalf of clients that do not support them: requests get an
    /// OC-Supported-Features, and the reports are removed from answers.
    pub ask: bool,
    /// Whether route groups send less to peers that report a load (Load, RFC 8583).
    pub loads: bool,
    /// The answer to a request that is abated because of a report (RFC 7683 §8).
    pub answer: AnswerRule,
}

impl Default for ServerReports {
    fn default() -> Self {
        Self {
            reports: true,
            ask: false,
            loads: true,
            answer: AnswerRule {
                result_code: 5012,
                vendor_id: 0,
                message: "the server is overloaded".to_owned(),
            },
        }
    }
}

/// Reports of our load to peers (RFC 8583): the free share of the message processor that has their connection. Peers use
/// it as a weight when they choose between us and others; no request is refused for it. Peers that are `untrusted` get
/// no report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct AdvertiseLoad {
    /// Whether answers carry a Load of type PEER, with 65535 for a processor that is idle and 0 for one that is full.
    pub enabled: bool,
    /// A load that has changed by this much is reported with the next answer to each peer.
    pub step: Percent,
    /// Interval at which an unchanged load is reported again, because peers expire it. 0s: every answer carries it.
    pub interval: Period,
}

impl Default for AdvertiseLoad {
    fn default() -> Self {
        Self {
            enabled: false,
            step: Percent::new(5.0),
            interval: Period::from_secs(5),
        }
    }
}

/// Thresholds of the levels DOC, CL1, CL2 and CL3 in percent: set/clear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Thresholds {
    /// 54/51, 60/57, 66/63, 72/69.
    #[default]
    Standard,
    /// 69/66, 75/72, 81/78, 87/84.
    Raised,
}

/// The order in which requests are discarded. Colours are those of `ingress` of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Policy {
    /// The least important; among equally important ones the yellow.
    #[default]
    ColourWithinPriority,
    /// The yellow; among those of a colour the least important.
    PriorityWithinColour,
    /// The least important, whatever their colour.
    PriorityOnly,
}

/// A level.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct OverloadLevel {
    /// Name in logs, alarms and metrics.
    pub name: String,
    /// The load at which the level begins; absent: by `thresholds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<Percent>,
    /// The level ends when the load has been below this for `abatement`; absent: by `thresholds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clear: Option<Percent>,
    /// How long the load must have been below `clear`; absent: 250ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abatement: Option<Period>,
    /// Severity of alarm 22200 at this level; absent: minor at the first, major at the second, critical above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<LevelSeverity>,
    /// The share of all requests that is discarded, in the order of `policy`.
    pub discard: Percent,
    /// Shares of classes of requests, instead of `discard`: the first entry that matches counts.
    pub classes: Vec<ClassDiscard>,
}

/// Severity of the alarm for a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LevelSeverity {
    /// Minor.
    Minor,
    /// Major.
    Major,
    /// Critical.
    Critical,
}

/// The share of some requests that is discarded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ClassDiscard {
    /// The most important DRMP priority of the class.
    #[schemars(range(min = 0, max = 15))]
    pub from_priority: u8,
    /// The least important DRMP priority of the class.
    #[schemars(range(min = 0, max = 15))]
    pub to_priority: u8,
    /// Only these; absent: both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub colour: Option<Colour>,
    /// The share.
    pub discard: Percent,
}

impl Default for ClassDiscard {
    fn default() -> Self {
        Self {
            from_priority: 0,
            to_priority: 15,
            colour: None,
            discard: Percent::default(),
        }
    }
}

/// Whether a request is within its connection's reserved rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Colour {
    /// Within.
    Green,
    /// Beyond.
    Yellow,
}

impl Default for Overload {
    fn default() -> Self {
        let level = |name: &str, discard| OverloadLevel {
            name: name.to_owned(),
            discard: Percent::new(discard),
            ..OverloadLevel::default()
        };
        Self {
            thresholds: Thresholds::default(),
            levels: vec![
                level("DOC", 5.0),
                level("CL1", 25.0),
                level("CL2", 50.0),
                level("CL3", 90.0),
            ],
            policy: Policy::default(),
            spare_priority: 1,
            average: Period::from_millis(300),
            answer: AnswerRule {
                result_code: 3004,
                vendor_id: 0,
                message: "overload".to_owned(),
            },
            profile: String::new(),
            profile_mps: 0,
            hard_limit_percent: 250,
            doic: true,
            doic_validity: Period::from_secs(5),
            server_reports: ServerReports::default(),
            advertise_load: AdvertiseLoad::default(),
            assumed_load: None,
        }
    }
}

impl Overload {
    /// What a message processor is planned for.
    #[must_use]
    pub fn plan(&self) -> Option<Plan> {
        if !self.profile.is_empty() {
            return profiles::find(&self.profile);
        }
        (self.profile_mps > 0).then_some(Plan {
            profile: None,
            mps: self.profile_mps,
        })
    }

    /// The levels with every value filled in.
    #[must_use]
    pub fn resolved(&self) -> Vec<overload::Level> {
        let standard = overload::Level::diameter();
        let raise = match self.thresholds {
            Thresholds::Standard => 0.0,
            // The second table is the first one, fifteen points up.
            Thresholds::Raised => 15.0,
        };
        let resolve = |(index, level): (usize, &OverloadLevel)| {
            let known = standard.get(index);
            let table = |value: fn(&overload::Level) -> Percent| {
                known.map_or(100.0, |known| value(known).percent() + raise)
            };
            let mut made = overload::Level::new(
                &level.name,
                level
                    .set
                    .map_or_else(|| table(|known| known.set), Percent::percent),
                level
                    .clear
                    .map_or_else(|| table(|known| known.clear), Percent::percent),
            );
            if let Some(abatement) = level.abatement {
                made.abatement = abatement;
            }
            made
        };
        self.levels.iter().enumerate().map(resolve).collect()
    }
}

impl Validate for Overload {
    fn validate(&self, faults: &mut Faults) {
        let resolved = self.resolved();
        for (index, pair) in resolved.windows(2).enumerate() {
            if let [lower, higher] = pair
                && higher.set <= lower.set
            {
                faults
                    .at(format!("levels[{}].set", index + 1))
                    .say("does not rise above the level before", "levels in rising order");
            }
        }
        for (index, level) in resolved.iter().enumerate() {
            if level.clear >= level.set {
                faults.at(format!("levels[{index}].clear")).say(
                    format!("{} is not below `set` ({})", level.clear, level.set),
                    "less than `set`",
                );
            }
        }
        if !self.profile.is_empty() && self.profile_mps > 0 {
            faults
                .at("profileMps")
                .say("and profile exclude one another", "one of them");
        }
        if !self.profile.is_empty() && self.plan().is_none() {
            let (said, expected) = profiles::fault(&self.profile);
            faults.at("profile").say(said, expected);
        }
        if self.server_reports.answer.result_code == 0 {
            faults.at("serverReports.answer.resultCode").say(
                "means no answer, and a client without an answer retries",
                "5012 (DIAMETER_UNABLE_TO_COMPLY) or 3004 (DIAMETER_TOO_BUSY)",
            );
        }
        for (l, level) in self.levels.iter().enumerate() {
            for (c, class) in level.classes.iter().enumerate() {
                if class.to_priority < class.from_priority {
                    faults
                        .at(format!("levels[{l}].classes[{c}].toPriority"))
                        .say("is more important than fromPriority", "at least fromPriority");
                }
            }
        }
    }
}
