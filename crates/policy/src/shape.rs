//! What the standard says of the data that decisions consist of: names of members and what they hold.
//!
//! TS 29.512 §5.6.2 (SM), TS 29.507 §5.6.2 (AM), TS 29.525 §5.6.2 and TS 29.522 §5.11.2.3 (UE), TS 29.571 (common data).

mod data;

use serde_json::Value as Json;

use crate::value::Value;

pub(crate) use data::{AM_POLICY, SM_POLICY, UE_POLICY};

/// The policy service that a project is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// Npcf_SMPolicyControl (TS 29.512), also Gx (TS 29.212).
    Sm,
    /// Npcf_AMPolicyControl (TS 29.507).
    Am,
    /// Npcf_UEPolicyControl (TS 29.525).
    Ue,
}

/// A part of a decision whose entries have identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Section {
    /// `sessRules`
    SessRules,
    /// `pccRules`
    PccRules,
    /// `qosDecs`
    QosDecs,
    /// `chgDecs`
    ChgDecs,
    /// `traffContDecs`
    TraffContDecs,
    /// `umDecs`
    UmDecs,
    /// `conds`
    Conds,
    /// ADC rules of a TDF by `adcRuleId`.
    AdcRules,
    /// URSP rules by `relatPrecedence`.
    UrspRules,
}

/// What a member holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Any,
    Bool,
    Text,
    /// An integer from 0 to this.
    Uint(u32),
    /// An integer of 64 bits, not negative.
    Volume,
    /// TS 29.571 §5.5.2: `10.5 Mbps`.
    BitRate,
    DateTime,
    /// One of these, or a value of a later release.
    Enum(&'static [&'static str]),
    List(&'static Kind),
    Map,
    Shape(&'static Shape),
}

/// A data type of the standard.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) members: &'static [(&'static str, Kind)],
    pub(crate) required: &'static [&'static str],
}

impl Service {
    pub(crate) const ALL: &'static [(&'static str, Self)] =
        &[("sm", Self::Sm), ("am", Self::Am), ("ue", Self::Ue)];

    /// Its name in projects: `sm`, `am` or `ue`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sm => "sm",
            Self::Am => "am",
            Self::Ue => "ue",
        }
    }

    /// The member of a decision that holds its triggers.
    pub(crate) fn triggers(self) -> &'static str {
        match self {
            Self::Sm => "policyCtrlReqTriggers",
            Self::Am | Self::Ue => "triggers",
        }
    }

    /// Triggers that the standard defines.
    pub(crate) fn known_triggers(self) -> &'static [&'static str] {
        match self {
            Self::Sm => data::SM_TRIGGERS,
            Self::Am => data::AM_TRIGGERS,
            Self::Ue => data::UE_TRIGGERS,
        }
    }

    /// The block that sets other members of the decision, and the type of these.
    pub(crate) fn members(self) -> (&'static str, &'static Shape) {
        match self {
            Self::Sm => ("smPolicy", &SM_POLICY),
            Self::Am => ("amPolicy", &AM_POLICY),
            Self::Ue => ("uePolicy", &UE_POLICY),
        }
    }
}

/// A section with its names.
pub(crate) struct Naming {
    pub(crate) section: Section,
    pub(crate) service: Service,
    /// The block that makes an entry.
    pub(crate) block: &'static str,
    /// The member of the decision.
    pub(crate) member: &'static str,
    /// The member of an entry that holds its identifier.
    pub(crate) id: &'static str,
    pub(crate) shape: &'static Shape,
}

impl Section {
    pub(crate) fn naming(self) -> &'static Naming {
        // Each section has its line in the table.
        data::SECTIONS
            .iter()
            .find(|naming| naming.section == self)
            .unwrap_or(&data::SECTIONS[0])
    }

    pub(crate) fn all() -> &'static [Naming] {
        data::SECTIONS
    }

    /// The member of a decision that holds its entries.
    #[must_use]
    pub fn member(self) -> &'static str {
        self.naming().member
    }
}

impl Shape {
    pub(crate) fn kind(&self, member: &str) -> Option<Kind> {
        let found = self.members.iter().find(|(name, _)| *name == member);
        found.map(|(_, kind)| *kind)
    }
}

impl Kind {
    /// What a person would call it.
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Any => "any value".to_owned(),
            Self::Bool => "true or false".to_owned(),
            Self::Text => "a text".to_owned(),
            Self::Uint(u32::MAX) => "an integer from 0".to_owned(),
            Self::Uint(most) => format!("an integer from 0 to {most}"),
            Self::Volume => "a number of bytes or seconds".to_owned(),
            Self::BitRate => "a bit rate such as `10.5 Mbps` (bps, Kbps, Mbps, Gbps, Tbps)".to_owned(),
            Self::DateTime => "a time such as `2026-01-31T12:00:00Z`".to_owned(),
            Self::Enum(names) => format!("one of {}", names.join(", ")),
            Self::List(inner) => format!("a list, each item {}", inner.describe()),
            Self::Map => "an object".to_owned(),
            Self::Shape(shape) => format!("an object of type {}", shape.name),
        }
    }

    /// Whether a value is of this kind; parts of lists and objects are not examined.
    pub(crate) fn admits(self, value: &Value<'_>) -> bool {
        match (self, value) {
            (Self::Any, _)
            | (Self::Bool, Value::False | Value::True)
            | (Self::Text | Self::Enum(_), Value::Text(_) | Value::Made(_))
            | (Self::List(_), Value::List(_) | Value::Json(Json::Array(_)))
            | (Self::Map | Self::Shape(_), Value::Object(_) | Value::Json(Json::Object(_))) => true,
            (Self::Uint(most), Value::Int(int)) => (0..=i64::from(most)).contains(int),
            (Self::Volume, Value::Int(int)) => *int >= 0,
            (Self::BitRate, value) => value.as_str().and_then(bit_rate).is_some(),
            (Self::DateTime, value) => value.as_str().is_some_and(is_date_time),
            _ => false,
        }
    }
}

/// Bits per second of a bit rate (TS 29.571 §5.5.2).
pub(crate) fn bit_rate(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(' ')?;
    let factor = match unit {
        "bps" => 1.0,
        "Kbps" => 1e3,
        "Mbps" => 1e6,
        "Gbps" => 1e9,
        "Tbps" => 1e12,
        _ => return None,
    };
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if !digits(whole) || !digits(fraction) || number.len() > 32 {
        return None;
    }
    Some(number.parse::<f64>().ok()? * factor)
}

/// The shortest bit rate of at most three decimals that is not above this many bits per second.
pub(crate) fn to_bit_rate(bits: f64) -> Option<String> {
    if !bits.is_finite() || !(0.0..1e18).contains(&bits) {
        return None;
    }
    let (factor, unit) = match bits {
        _ if bits >= 1e12 => (1e12, "Tbps"),
        _ if bits >= 1e9 => (1e9, "Gbps"),
        _ if bits >= 1e6 => (1e6, "Mbps"),
        _ if bits >= 1e3 => (1e3, "Kbps"),
        _ => (1.0, "bps"),
    };
    let thousandths = (bits / factor * 1000.0 + 1e-6).floor() as u64;
    let (whole, fraction) = (thousandths / 1000, thousandths % 1000);
    if fraction == 0 || factor == 1.0 {
        return Some(format!("{whole} {unit}"));
    }
    let fraction = format!("{fraction:03}");
    Some(format!("{whole}.{} {unit}", fraction.trim_end_matches('0')))
}

/// As RFC 3339 §5.6 has it; the parser would take any character between date and time. A leap second is valid, but
/// libraries of several languages refuse the whole document for it.
fn is_date_time(text: &str) -> bool {
    matches!(text.as_bytes().get(10), Some(b'T' | b't'))
        && text.get(17..19) != Some("60")
        && time::OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_that_every_reader_takes() {
        assert!(is_date_time("2027-03-29T02:30:00Z") && is_date_time("2027-03-29t02:30:00.5+01:00"));
        for bad in [
            "2027-03-29_02:30:00Z",
            "2027-03-29 02:30:00Z",
            "2016-12-31T23:59:60Z",
            "2027-03-29",
        ] {
            assert!(!is_date_time(bad), "{bad}");
        }
    }

    #[test]
    fn bit_rates_are_read_and_written() {
        for (text, bits) in [
            ("0 bps", 0.0),
            ("10.5 Mbps", 10.5e6),
            ("2 Tbps", 2e12),
            ("999 Kbps", 999e3),
        ] {
            assert_eq!(bit_rate(text), Some(bits));
            assert_eq!(to_bit_rate(bits).as_deref(), Some(text));
        }
        for text in [
            "10Mbps", "10 mbps", " 10 Mbps", "-1 bps", "1. bps", ".5 bps", "1e3 bps", "10 Mbps ",
        ] {
            assert_eq!(bit_rate(text), None, "{text}");
        }
        assert_eq!(to_bit_rate(1_234_567.0).as_deref(), Some("1.234 Mbps"));
        assert_eq!(to_bit_rate(f64::NAN), None);
    }
}
