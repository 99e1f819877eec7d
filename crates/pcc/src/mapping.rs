//! What an operator makes of the media that AFs ask for (TS 29.513 §7.3).

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::rate;

/// QoS and charging of the services of AFs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Mapping {
    /// Classes by `medType` (`AUDIO`, `VIDEO`, `DATA`, `APPLICATION`, `CONTROL`, `TEXT`, `MESSAGE`, `OTHER`). What is given
    /// here replaces the default class of that type; types without one have that of `OTHER`.
    pub media: BTreeMap<String, Class>,
    /// The class of flows that carry signalling of the AF (`flowUsage` `AF_SIGNALLING`).
    pub signalling: Class,
    /// Classes by application (`afAppId`), which come before those by `medType`.
    pub applications: BTreeMap<String, Class>,
    /// Classes that AFs name (`qosReference`, `altSerReqs`), which come before all others.
    pub references: BTreeMap<String, Class>,
    /// Sponsors that AFs may name (`sponId`); empty: any.
    pub sponsors: Vec<String>,
    /// Highest priority that an AF may raise a flow to (`resPrio`), as ARP priority level from 1 (highest) to 15; a request of a
    /// higher one gets this one. The class itself may have a higher one.
    #[schemars(range(min = 1, max = 15))]
    pub highest_priority: u8,
    /// Whether AFs decide on pre-emption (`preemptCap`, `preemptVuln`); where not, the class alone does.
    pub af_preemption: bool,
    /// Most that an AF may ask for in one direction of a flow whose class has no `maxBitRate`; a request of more is refused. None: no
    /// limit.
    pub max_bit_rate: Option<BitRate>,
    /// Whether the services that a subscriber may use (`allowedServices` of its policy data) bound what AFs ask for: an
    /// `afAppId` that is not among them is refused (`REQUESTED_SERVICE_NOT_AUTHORIZED`, 5063).
    pub allowed_services: bool,
    /// Precedence of the first rule of an AF session; smaller ones come first. Signalling has this, media one more.
    pub precedence: u32,
    /// AF sessions of one session of a UE, over N5 and Rx together; one more is refused
    /// (`REQUESTED_SERVICE_TEMPORARILY_NOT_AUTHORIZED`, 4261).
    pub sessions: usize,
    /// Media components of an AF session; one with more is refused.
    pub components: usize,
    /// Flows of a media component; one with more is refused.
    pub flows: usize,
}

/// QoS and charging of one kind of media.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Class {
    /// 5QI, which is the QCI on Gx. Those with a guaranteed bit rate are 1 to 4, 65 to 67, 71 to 76 and 82 to 90.
    #[serde(rename = "5qi")]
    #[schemars(range(min = 1, max = 254))]
    pub five_qi: u8,
    /// Allocation and retention priority.
    pub arp: Arp,
    /// Bit rate of a direction for which the AF gives none, where the 5QI has a guaranteed bit rate.
    pub default_bit_rate: BitRate,
    /// Most that an AF may ask for in one direction of a flow; a request of more is refused. None: no limit.
    pub max_bit_rate: Option<BitRate>,
    /// Whether AFs may use the class at all; where not, `REQUESTED_SERVICE_NOT_AUTHORIZED`.
    pub allowed: bool,
    /// Rating group; none: the flow is charged as the rest of the session.
    pub rating_group: Option<u32>,
    /// Whether the flow is charged online. Only with a rating group.
    pub online: bool,
    /// Whether the flow is charged offline. Only with a rating group.
    pub offline: bool,
}

/// Allocation and retention priority (TS 29.571 §5.5.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Arp {
    /// 1 (highest) to 15.
    #[schemars(range(min = 1, max = 15))]
    pub priority_level: u8,
    /// Whether the flow may take resources of others.
    pub preempts: bool,
    /// Whether others may take its resources.
    pub preemptable: bool,
}

/// A bit rate (`64 Kbps`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BitRate(pub u64);

impl Default for Arp {
    fn default() -> Self {
        Self {
            priority_level: 9,
            preempts: false,
            preemptable: true,
        }
    }
}

impl Default for Class {
    fn default() -> Self {
        Self {
            five_qi: 9,
            arp: Arp::default(),
            default_bit_rate: BitRate(64_000),
            max_bit_rate: None,
            allowed: true,
            rating_group: None,
            online: false,
            offline: false,
        }
    }
}

impl Default for Mapping {
    fn default() -> Self {
        let class = |five_qi, priority_level, default_bit_rate| Class {
            five_qi,
            arp: Arp {
                priority_level,
                preempts: priority_level < 9,
                preemptable: priority_level >= 9,
            },
            default_bit_rate: BitRate(default_bit_rate),
            ..Class::default()
        };
        Self {
            media: BTreeMap::new(),
            signalling: class(5, 1, 64_000),
            applications: BTreeMap::new(),
            references: BTreeMap::new(),
            sponsors: Vec::new(),
            highest_priority: 1,
            af_preemption: true,
            max_bit_rate: None,
            allowed_services: false,
            precedence: 50,
            sessions: 32,
            components: 32,
            flows: 32,
        }
    }
}

impl Mapping {
    /// The class of a `medType`.
    pub(crate) fn media_class(&self, kind: &str) -> Cow<'_, Class> {
        if let Some(class) = self.media.get(kind) {
            return Cow::Borrowed(class);
        }
        let (five_qi, priority_level, bit_rate) = match kind {
            "AUDIO" => (1, 2, 64_000),
            "VIDEO" => (2, 4, 512_000),
            "APPLICATION" => (2, 9, 512_000),
            "CONTROL" | "DATA" => (6, 9, 64_000),
            "TEXT" | "MESSAGE" => (8, 9, 64_000),
            _ => {
                return match self.media.get("OTHER") {
                    Some(class) => Cow::Borrowed(class),
                    None => Cow::Owned(Class::default()),
                };
            }
        };
        Cow::Owned(Class {
            five_qi,
            arp: Arp {
                priority_level,
                preempts: priority_level < 9,
                preemptable: priority_level >= 9,
            },
            default_bit_rate: BitRate(bit_rate),
            ..Class::default()
        })
    }
}

impl Class {
    /// Whether flows of the class have a guaranteed bit rate (TS 23.501 table 5.7.4-1, TS 23.203 table 6.1.7).
    pub(crate) const fn is_guaranteed(&self) -> bool {
        is_guaranteed(self.five_qi)
    }
}

/// Whether a standardized 5QI or QCI has a guaranteed bit rate.
pub(crate) const fn is_guaranteed(five_qi: u8) -> bool {
    matches!(five_qi, 1..=4 | 65..=67 | 71..=76 | 82..=90)
}

impl TryFrom<String> for BitRate {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        rate::bits(&text)
            .map(Self)
            .ok_or("expected a bit rate such as `64 Kbps`")
    }
}

impl From<BitRate> for String {
    fn from(rate: BitRate) -> Self {
        rate::text(rate.0)
    }
}

impl JsonSchema for BitRate {
    fn schema_name() -> Cow<'static, str> {
        "BitRate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A bit rate: a number, a blank, and bps, Kbps, Mbps, Gbps or Tbps.",
            "pattern": r"^\d+(\.\d+)? (bps|Kbps|Mbps|Gbps|Tbps)$",
        })
    }
}
