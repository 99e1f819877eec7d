//! What an operator offers for background data transfers.

use std::borrow::Cow;

use jiff::tz::TimeZone;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use settings::{ByteSize, Faults, Validate};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Area;
use crate::mapping::BitRate;

/// Policies of background data transfers (Npcf_BDTPolicyControl, TS 29.554), which an application service provider negotiates
/// through an NEF. Without a window the service is not offered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Model {
    /// Times of day at which transfers are offered, those first that the operator prefers.
    pub windows: Vec<Window>,
    /// Times and areas in which the network is below what the operator wants. Providers that have selected a transfer policy there, and
    /// want warnings, are sent others to select from.
    pub degraded: Vec<Degradation>,
    /// Transfer policies of one answer, at most.
    pub max_policies: usize,
    /// Whether the UDR gets the transfer policies that are selected (`bdt-data`, TS 29.519 §5.2.9), where `pds.udr` is enabled.
    pub update_udr: bool,
}

/// A time of day at which transfers are offered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Window {
    /// Its name; what is reserved of `volume` is kept by it.
    pub name: String,
    /// When it begins (`23:00`).
    pub from: TimeOfDay,
    /// When it ends, on the next day where that is not after `from`.
    pub to: TimeOfDay,
    /// The time zone of `from` and `to`, a name of the IANA database (`Europe/Berlin`).
    #[serde(default = "utc")]
    pub zone: String,
    /// The days on which it begins; none: every day.
    #[serde(default)]
    pub days: Vec<Day>,
    /// The rating group of its transfers (`ratingGroup`).
    pub rating_group: u32,
    /// Bit rate of all uplink transfers of one policy together (`maxBitRateUl`); a request that needs more is not offered the window.
    #[serde(default)]
    pub max_bit_rate_ul: Option<BitRate>,
    /// As `maxBitRateUl`, of downlink transfers (`maxBitRateDl`).
    #[serde(default)]
    pub max_bit_rate_dl: Option<BitRate>,
    /// Volume of all policies that are selected for one occurrence of the window; what has no room is not offered. None: no limit.
    #[serde(default)]
    pub volume: Option<ByteSize>,
    /// Where it is offered; a request for other areas, or for none, is not offered it. Without items: everywhere.
    #[serde(default)]
    pub area: Area,
    /// DNNs of requests that are offered it, without operator identifier; none: all.
    #[serde(default)]
    pub dnns: Vec<String>,
}

/// A time in which the network is below what the operator wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Degradation {
    /// When it begins (`2026-12-01T22:00:00Z`).
    pub from: Moment,
    /// When it ends.
    pub to: Moment,
    /// Where; without items: everywhere.
    #[serde(default)]
    pub area: Area,
}

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Day {
    /// Monday.
    Monday,
    /// Tuesday.
    Tuesday,
    /// Wednesday.
    Wednesday,
    /// Thursday.
    Thursday,
    /// Friday.
    Friday,
    /// Saturday.
    Saturday,
    /// Sunday.
    Sunday,
}

/// Hour and minute of a day (`23:00`), as minutes since midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeOfDay(pub u16);

/// A moment as RFC 3339 has it, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Moment(pub i64);

fn utc() -> String {
    "UTC".to_owned()
}

impl Default for Model {
    fn default() -> Self {
        Self {
            windows: Vec::new(),
            degraded: Vec::new(),
            max_policies: 8,
            update_udr: true,
        }
    }
}

/// Windows of a configuration: each is looked through for each request.
const MOST_WINDOWS: usize = 64;
/// Transfer policies of an answer.
const MOST_POLICIES: usize = 64;

impl Validate for Model {
    fn validate(&self, faults: &mut Faults) {
        if self.windows.len() > MOST_WINDOWS {
            let most = format!("at most {MOST_WINDOWS}");
            faults.at("windows").say("has too many windows", most);
        }
        if self.max_policies == 0 || self.max_policies > MOST_POLICIES {
            let bounds = format!("1 to {MOST_POLICIES}");
            faults.at("maxPolicies").say("is out of bounds", bounds);
        }
        for (at, window) in self.windows.iter().enumerate() {
            let place = format!("windows[{at}]");
            let is_known = self
                .windows
                .iter()
                .take(at)
                .any(|known| known.name == window.name);
            if window.name.is_empty() || is_known {
                faults
                    .at(format!("{place}.name"))
                    .say("is empty or another window's", "a name of its own");
            }
            if window.time_zone().is_none() {
                faults
                    .at(format!("{place}.zone"))
                    .say("is unknown", "a time zone such as Europe/Berlin");
            }
            judge(&window.area, &place, faults);
        }
        for (at, degradation) in self.degraded.iter().enumerate() {
            let place = format!("degraded[{at}]");
            if degradation.to <= degradation.from {
                faults
                    .at(format!("{place}.to"))
                    .say("is not after `from`", "a later time");
            }
            judge(&degradation.area, &place, faults);
        }
    }
}

fn judge(area: &Area, place: &str, faults: &mut Faults) {
    if let Some((name, text)) = area.fault() {
        let expected = "MCC, MNC and identity, as 001-01-0000a1";
        faults
            .at(format!("{place}.area.{name}"))
            .say(format!("has {text:?}"), expected);
    }
}

impl Window {
    /// Its time zone; `None`: there is none of that name.
    #[must_use]
    pub fn time_zone(&self) -> Option<TimeZone> {
        TimeZone::get(&self.zone).ok()
    }
}

impl Day {
    /// The day whose number is this, from Monday, 0, on.
    pub(super) fn numbered(number: i8) -> Self {
        match number {
            0 => Self::Monday,
            1 => Self::Tuesday,
            2 => Self::Wednesday,
            3 => Self::Thursday,
            4 => Self::Friday,
            5 => Self::Saturday,
            _ => Self::Sunday,
        }
    }
}

impl TryFrom<String> for TimeOfDay {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let number = |part: &str, most: u16| {
            let digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse::<u16>()
                .ok()
                .filter(|number| digits && *number <= most)
        };
        let (hour, minute) = text.split_once(':').unwrap_or_default();
        match (number(hour, 23), number(minute, 59)) {
            (Some(hour), Some(minute)) => Ok(Self(hour * 60 + minute)),
            _ => Err("expected a time of day such as `23:00`"),
        }
    }
}

impl From<TimeOfDay> for String {
    fn from(TimeOfDay(minutes): TimeOfDay) -> Self {
        format!("{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

impl TryFrom<String> for Moment {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let moment = OffsetDateTime::parse(&text, &Rfc3339);
        let moment = moment.map_err(|_| "expected a date and time such as `2026-12-01T22:00:00Z`")?;
        Ok(Self(moment.unix_timestamp()))
    }
}

impl From<Moment> for String {
    fn from(Moment(seconds): Moment) -> Self {
        // What was read lies within the years that can be written.
        let moment = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        moment.format(&Rfc3339).unwrap_or_default()
    }
}

impl JsonSchema for TimeOfDay {
    fn schema_name() -> Cow<'static, str> {
        "TimeOfDay".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "Hour and minute of a day.",
            "pattern": r"^\d\d:\d\d$",
        })
    }
}

impl JsonSchema for Moment {
    fn schema_name() -> Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A date and time of RFC 3339.",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        for text in ["00:00", "23:59", "05:30"] {
            assert_eq!(String::from(TimeOfDay::try_from(text.to_owned()).unwrap()), text);
        }
        for wrong in ["24:00", "5:30", "05:60", "0530", "", "+5:30"] {
            assert!(TimeOfDay::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
        let moment = Moment::try_from("2026-12-01T23:00:00+01:00".to_owned()).unwrap();
        assert_eq!(String::from(moment), "2026-12-01T22:00:00Z");
        assert!(Moment::try_from("2026-12-01".to_owned()).is_err());
    }
}
