//! Tracking areas and AMF identities (TS 29.571 §5.4.4.4, §5.4.4.56; TS 29.510 §6.1.6.2.28, .29).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::hex::hex;
use crate::pattern::Pattern;
use crate::plmn::{Nid, PlmnId, PlmnIdNid};

macro_rules! hex_text {
    ($(#[$meta:meta])* $name:ident, $lengths:expr, $expected:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name {
            value: u32,
            digits: u8,
        }
        impl $name {
            /// Reads the hexadecimal digits.
            ///
            /// # Errors
            /// What was expected instead.
            pub fn parse(text: &str) -> Result<Self, &'static str> {
                // At most six digits, hence 24 bits, and a length that fits a byte.
                hex(text, $lengths)
                    .map(|value| Self { value: value as u32, digits: text.len() as u8 })
                    .ok_or(concat!("expected ", $expected))
            }

            /// The number the digits stand for.
            #[must_use]
            pub fn value(&self) -> u32 {
                self.value
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:0width$x}", self.value, width = usize::from(self.digits))
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

hex_text! {
    /// A tracking area code: four (EPS) or six hexadecimal digits.
    Tac, &[4, 6], "four or six hexadecimal digits"
}
hex_text! {
    /// An AMF id: region (8 bits), set (10 bits), pointer (6 bits), in six hexadecimal digits.
    AmfId, &[6], "six hexadecimal digits"
}

impl AmfId {
    /// The region, two hexadecimal digits on the wire.
    #[must_use]
    pub fn region(&self) -> u8 {
        // 24 bits shifted by 16 leave 8.
        (self.value >> 16) as u8
    }

    /// The set within the region, ten bits.
    #[must_use]
    pub fn set(&self) -> u16 {
        // Masked to ten bits.
        ((self.value >> 6) & 0x3ff) as u16
    }
}

/// A tracking area (TS 29.571 §5.4.4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tai {
    /// The PLMN it belongs to.
    pub plmn_id: PlmnId,
    /// Its code.
    pub tac: Tac,
    /// With it, the SNPN it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nid: Option<Nid>,
}

/// A range of codes, by start and end or by pattern (TS 29.510 §6.1.6.2.29).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TacRange {
    /// First code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Tac>,
    /// Last code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Tac>,
    /// Instead of both, an expression over the digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
}

impl TacRange {
    /// Whether a code may lie in both ranges. Of a pattern only the same pattern is known to have some in common.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let lies = |one: &Self, in_range: &Self| {
            let ends = [&one.start, &one.end];
            ends.into_iter().flatten().any(|code| in_range.contains(code))
        };
        self == other || lies(self, other) || lies(other, self)
    }

    /// Whether the code lies in the range. Codes of different length never compare.
    #[must_use]
    pub fn contains(&self, tac: &Tac) -> bool {
        if let (Some(start), Some(end)) = (&self.start, &self.end)
            && start.digits == tac.digits
            && (start.value..=end.value).contains(&tac.value)
        {
            return true;
        }
        self.pattern.as_ref().is_some_and(|pattern| {
            let text = tac.to_string();
            // Hexadecimal digits have two spellings; a pattern may be written for either.
            pattern.matches(&text) || pattern.matches(&text.to_ascii_uppercase())
        })
    }
}

/// Tracking areas of one PLMN (TS 29.510 §6.1.6.2.28).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaiRange {
    /// The PLMN.
    pub plmn_id: PlmnId,
    /// Its ranges of codes.
    pub tac_range_list: Vec<TacRange>,
    /// With it, the SNPN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nid: Option<Nid>,
}

impl TaiRange {
    /// Whether an area may lie in both.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let ranges = &other.tac_range_list;
        self.plmn_id == other.plmn_id
            && self.nid == other.nid
            && self
                .tac_range_list
                .iter()
                .any(|range| ranges.iter().any(|other| range.overlaps(other)))
    }

    /// Whether the area lies in one of the ranges.
    #[must_use]
    pub fn contains(&self, tai: &Tai) -> bool {
        self.plmn_id == tai.plmn_id
            && self.nid == tai.nid
            && self.tac_range_list.iter().any(|range| range.contains(&tai.tac))
    }
}

/// A globally unique AMF identity (TS 29.571 §5.4.4.56).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Guami {
    /// The network.
    pub plmn_id: PlmnIdNid,
    /// The AMF in it.
    pub amf_id: AmfId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amf_ids_take_apart() {
        let id = AmfId::parse("cafe00").unwrap();
        assert_eq!((id.region(), id.set()), (0xca, 0x3f8));
        assert!(AmfId::parse("cafe0").is_err());
        assert!(AmfId::parse("+afe00").is_err());
    }

    #[test]
    fn tracking_area_ranges() {
        let range: TaiRange = serde_json::from_str(
            r#"{"plmnId":{"mcc":"240","mnc":"01"},"tacRangeList":[{"start":"000100","end":"0001FF"},{"pattern":"^00AB[0-9A-F]{2}$"}]}"#,
        )
        .unwrap();
        let tai = |mnc: &str, tac: &str| Tai {
            plmn_id: PlmnId::new("240", mnc).unwrap(),
            tac: Tac::parse(tac).unwrap(),
            nid: None,
        };
        assert!(range.contains(&tai("01", "000180")));
        assert!(range.contains(&tai("01", "00ab7f")));
        assert!(!range.contains(&tai("02", "000180")));
        assert!(!range.contains(&tai("01", "0180")), "codes of another length");
        assert!(!range.contains(&tai("01", "000200")));
    }
}
