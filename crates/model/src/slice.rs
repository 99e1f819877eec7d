//! Network slices (TS 29.571 §5.4.4.2, §5.4.4.57 … ; TS 29.510 §6.1.6.2.38).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::hex::hex;
use crate::plmn::{Nid, PlmnId, PlmnIdNid};

/// A single slice: type and, perhaps, differentiator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Snssai {
    /// Slice/service type.
    pub sst: u8,
    /// Slice differentiator, 24 bits.
    pub sd: Option<u32>,
}

impl fmt::Debug for Snssai {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `sst` or `sst-sd`, the form of map keys (TS 29.571 §5.4.4.2).
impl fmt::Display for Snssai {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sd {
            Some(sd) => write!(f, "{}-{sd:06x}", self.sst),
            None => write!(f, "{}", self.sst),
        }
    }
}

impl FromStr for Snssai {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected an SST of 0 to 255, or SST-SD with six hexadecimal digits";
        let (sst, sd) = match text.split_once('-') {
            Some((sst, sd)) => (sst, Some(parse_sd(sd).ok_or(EXPECTED)?)),
            None => (text, None),
        };
        Ok(Self {
            sst: sst.parse().map_err(|_| EXPECTED)?,
            sd,
        })
    }
}

fn parse_sd(text: &str) -> Option<u32> {
    // Six hexadecimal digits are 24 bits.
    hex(text, &[6]).map(|value| value as u32)
}

/// A range of slice differentiators, both ends included (TS 29.571 §5.4.4.58).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SdRange {
    /// First differentiator.
    pub start: u32,
    /// Last differentiator.
    pub end: u32,
}

/// A slice, or a family of slices: a range of differentiators or any differentiator (TS 29.571 §5.4.4.57).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtSnssai {
    /// The slice type and the differentiator as given.
    pub snssai: Snssai,
    /// Differentiators beside `snssai.sd`.
    pub sd_ranges: Vec<SdRange>,
    /// Every differentiator of this type.
    pub wildcard_sd: bool,
}

impl ExtSnssai {
    /// Whether the slice is one of this family.
    #[must_use]
    pub fn contains(&self, slice: &Snssai) -> bool {
        if self.snssai.sst != slice.sst {
            return false;
        }
        self.wildcard_sd
            || self.snssai.sd == slice.sd
            || slice.sd.is_some_and(|sd| {
                self.sd_ranges
                    .iter()
                    .any(|range| (range.start..=range.end).contains(&sd))
            })
    }

    /// Whether the two families have a slice in common.
    #[must_use]
    pub fn overlaps(&self, other: &ExtSnssai) -> bool {
        if self.snssai.sst != other.snssai.sst {
            return false;
        }
        self.wildcard_sd
            || other.wildcard_sd
            || self.contains(&other.snssai)
            || other.contains(&self.snssai)
            || self.sd_ranges.iter().any(|a| {
                other
                    .sd_ranges
                    .iter()
                    .any(|b| a.start <= b.end && b.start <= a.end)
            })
    }
}

impl From<Snssai> for ExtSnssai {
    fn from(snssai: Snssai) -> Self {
        Self {
            snssai,
            sd_ranges: Vec::new(),
            wildcard_sd: false,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireRange {
    start: String,
    end: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    sst: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sd: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sd_ranges: Vec<WireRange>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    wildcard_sd: bool,
}

impl<'de> Deserialize<'de> for ExtSnssai {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let wire = Wire::deserialize(deserializer)?;
        let sd = |text: &str| {
            parse_sd(text).ok_or_else(|| D::Error::custom("expected an SD of six hexadecimal digits"))
        };
        let ranges = wire
            .sd_ranges
            .iter()
            .map(|range| {
                Ok(SdRange {
                    start: sd(&range.start)?,
                    end: sd(&range.end)?,
                })
            })
            .collect::<Result<_, D::Error>>()?;
        Ok(Self {
            snssai: Snssai {
                sst: wire.sst,
                sd: wire.sd.as_deref().map(sd).transpose()?,
            },
            sd_ranges: ranges,
            wildcard_sd: wire.wildcard_sd,
        })
    }
}

impl Serialize for ExtSnssai {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sd = |value: u32| format!("{value:06x}");
        Wire {
            sst: self.snssai.sst,
            sd: self.snssai.sd.map(sd),
            sd_ranges: self
                .sd_ranges
                .iter()
                .map(|range| WireRange {
                    start: sd(range.start),
                    end: sd(range.end),
                })
                .collect(),
            wildcard_sd: self.wildcard_sd,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Snssai {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ExtSnssai::deserialize(deserializer).map(|ext| ext.snssai)
    }
}

impl Serialize for Snssai {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ExtSnssai::from(*self).serialize(serializer)
    }
}

/// The slices of one PLMN or SNPN (TS 29.510 §6.1.6.2.38).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlmnSnssai {
    /// The PLMN.
    pub plmn_id: PlmnId,
    /// Its slices.
    #[serde(rename = "sNssaiList")]
    pub snssais: Vec<ExtSnssai>,
    /// With it, the SNPN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nid: Option<Nid>,
}

impl PlmnSnssai {
    /// The network the slices belong to.
    #[must_use]
    pub fn network(&self) -> PlmnIdNid {
        PlmnIdNid {
            plmn: self.plmn_id,
            nid: self.nid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ext(text: &str) -> ExtSnssai {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn families_of_slices() {
        let one = ext(r#"{"sst":1,"sd":"00000A"}"#);
        assert_eq!(one.snssai, "1-00000a".parse().unwrap());
        assert!(one.contains(&"1-00000a".parse().unwrap()));
        assert!(!one.contains(&"1".parse().unwrap()));
        let range = ext(r#"{"sst":1,"sd":"000000","sdRanges":[{"start":"000010","end":"00001f"}]}"#);
        assert!(range.contains(&"1-000015".parse().unwrap()));
        assert!(range.contains(&"1-000000".parse().unwrap()));
        assert!(!range.contains(&"1-000020".parse().unwrap()));
        assert!(!range.overlaps(&one));
        assert!(range.overlaps(&ext(r#"{"sst":1,"sd":"00001f"}"#)));
        assert!(ext(r#"{"sst":1,"sd":"ffffff","wildcardSd":true}"#).overlaps(&one));
        assert!(!ext(r#"{"sst":2,"wildcardSd":true}"#).overlaps(&one));
        assert_eq!(serde_json::to_string(&one).unwrap(), r#"{"sst":1,"sd":"00000a"}"#);
    }

    #[test]
    fn bad_slices_are_refused() {
        for bad in [
            "{}",
            r#"{"sst":256}"#,
            r#"{"sst":-1}"#,
            r#"{"sst":1,"sd":"1"}"#,
            r#"{"sst":"1"}"#,
        ] {
            assert!(serde_json::from_str::<ExtSnssai>(bad).is_err(), "{bad}");
        }
        assert!("1-xyz".parse::<Snssai>().is_err());
    }
}
