//! PLMN and SNPN identities (TS 29.571 §5.4.4.3, §5.4.4.33; TS 23.003 §2.2, §12.7).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::pattern::Pattern;

/// A PLMN: three digits of country, two or three of network. Two bytes each, compared as numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlmnId {
    mcc: u16,
    mnc: u16,
    /// Two- and three-digit MNCs are different networks: 01 is not 001.
    mnc_digits: u8,
}

/// Why a text is not a PLMN.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an MCC of three digits and an MNC of two or three digits")]
pub struct InvalidPlmn;

impl PlmnId {
    /// A PLMN from its digits.
    ///
    /// # Errors
    /// When `mcc` is not three digits or `mnc` not two or three.
    pub fn new(mcc: &str, mnc: &str) -> Result<Self, InvalidPlmn> {
        if mcc.len() != 3 || !(2..=3).contains(&mnc.len()) {
            return Err(InvalidPlmn);
        }
        Ok(Self {
            mcc: digits(mcc)?,
            mnc: digits(mnc)?,
            mnc_digits: mnc.len() as u8,
        })
    }

    /// From the digits run together (`24001`, `310410`), as [`PlmnRange`] and IMSI prefixes have them.
    ///
    /// # Errors
    /// When the text is not five or six digits.
    pub fn from_digits(text: &str) -> Result<Self, InvalidPlmn> {
        if !text.is_ascii() || !(5..=6).contains(&text.len()) {
            return Err(InvalidPlmn);
        }
        Self::new(&text[..3], &text[3..])
    }

    /// The mobile country code, three digits.
    #[must_use]
    pub fn mcc(&self) -> String {
        format!("{:03}", self.mcc)
    }

    /// The mobile network code, two or three digits.
    #[must_use]
    pub fn mnc(&self) -> String {
        format!("{:0width$}", self.mnc, width = usize::from(self.mnc_digits))
    }

    /// Digits run together, as identifiers and [`PlmnRange`] use them.
    #[must_use]
    pub fn to_digits(&self) -> String {
        self.mcc() + &self.mnc()
    }
}

fn digits(text: &str) -> Result<u16, InvalidPlmn> {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        text.parse().map_err(|_| InvalidPlmn)
    } else {
        Err(InvalidPlmn)
    }
}

/// `mcc-mnc`, the form of map keys (TS 29.571 §5.4.4.3).
impl fmt::Display for PlmnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:03}-{:0width$}",
            self.mcc,
            self.mnc,
            width = usize::from(self.mnc_digits)
        )
    }
}

impl fmt::Debug for PlmnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Reads `mcc-mnc` or the digits run together.
impl FromStr for PlmnId {
    type Err = InvalidPlmn;
    fn from_str(text: &str) -> Result<Self, InvalidPlmn> {
        match text.split_once('-') {
            Some((mcc, mnc)) => Self::new(mcc, mnc),
            None => Self::from_digits(text),
        }
    }
}

impl<'de> Deserialize<'de> for PlmnId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        PlmnIdNid::deserialize(deserializer).map(|both| both.plmn)
    }
}

impl Serialize for PlmnId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        PlmnIdNid {
            plmn: *self,
            nid: None,
        }
        .serialize(serializer)
    }
}

/// A network identifier of an SNPN: eleven hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Nid(u64);

impl Nid {
    /// From eleven hexadecimal digits; case does not matter.
    ///
    /// # Errors
    /// When the text is anything else.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        crate::hex::hex(text, &[11])
            .map(Self)
            .ok_or("expected eleven hexadecimal digits")
    }
}

impl fmt::Display for Nid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:011x}", self.0)
    }
}

impl<'de> Deserialize<'de> for Nid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl Serialize for Nid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A PLMN, or with a network identifier an SNPN (TS 29.571 §5.4.4.33).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PlmnIdNid {
    /// The PLMN part.
    pub plmn: PlmnId,
    /// Present for an SNPN.
    pub nid: Option<Nid>,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    mcc: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    mnc: std::borrow::Cow<'a, str>,
    #[serde(default)]
    nid: Option<Nid>,
}

impl<'de> Deserialize<'de> for PlmnIdNid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        Ok(Self {
            plmn: PlmnId::new(&wire.mcc, &wire.mnc).map_err(serde::de::Error::custom)?,
            nid: wire.nid,
        })
    }
}

impl Serialize for PlmnIdNid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut out = serializer.serialize_struct("PlmnIdNid", 2 + usize::from(self.nid.is_some()))?;
        out.serialize_field("mcc", &self.plmn.mcc())?;
        out.serialize_field("mnc", &self.plmn.mnc())?;
        match &self.nid {
            Some(nid) => out.serialize_field("nid", nid)?,
            None => out.skip_field("nid")?,
        }
        out.end()
    }
}

/// A range of PLMNs, by start and end or by pattern over the digits run together (TS 29.510 §6.1.6.2.30).
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct PlmnRange {
    #[serde(default)]
    start: Option<String>,
    #[serde(default)]
    end: Option<String>,
    #[serde(default)]
    pattern: Option<Pattern>,
}

impl PlmnRange {
    /// Whether the PLMN lies in the range. The ends may differ in length: `12300` to `123999` has every MNC of MCC 123
    /// (TS 29.510 §6.1.6.2.34).
    #[must_use]
    pub fn contains(&self, plmn: &PlmnId) -> bool {
        let text = plmn.to_digits();
        let within = match (&self.start, &self.end) {
            (Some(start), Some(end)) => {
                // Digits compare as text: what begins with `end` and goes on is longer, and behind it.
                (start.len()..=end.len()).contains(&text.len()) && *start <= text && text <= *end
            }
            _ => false,
        };
        within || self.pattern.as_ref().is_some_and(|p| p.matches(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_two_digit_mnc_is_not_a_three_digit_one() {
        let two = PlmnId::new("240", "01").unwrap();
        let three = PlmnId::new("240", "001").unwrap();
        assert_ne!(two, three);
        assert_eq!(two.to_string(), "240-01");
        assert_eq!("240-001".parse::<PlmnId>().unwrap(), three);
        assert_eq!(
            serde_json::to_string(&three).unwrap(),
            r#"{"mcc":"240","mnc":"001"}"#
        );
    }

    #[test]
    fn bad_plmns_are_refused() {
        for bad in [
            r#"{"mcc":"24","mnc":"01"}"#,
            r#"{"mcc":"240","mnc":"1"}"#,
            r#"{"mcc":"2x0","mnc":"01"}"#,
            "{}",
            "[]",
            r#"{"mcc":240,"mnc":"01"}"#,
            r#"{"mcc":"+24","mnc":"01"}"#,
        ] {
            assert!(serde_json::from_str::<PlmnId>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn plmn_ranges() {
        let range: PlmnRange = serde_json::from_str(r#"{"start":"24001","end":"24010"}"#).unwrap();
        assert!(range.contains(&PlmnId::new("240", "07").unwrap()));
        assert!(!range.contains(&PlmnId::new("240", "007").unwrap()));
        let range: PlmnRange = serde_json::from_str(r#"{"start":"24000","end":"240999"}"#).unwrap();
        for (mcc, mnc, inside) in [
            ("240", "00", true),
            ("240", "99", true),
            ("240", "007", true),
            ("240", "999", true),
            ("241", "00", false),
            ("239", "999", false),
        ] {
            assert_eq!(
                range.contains(&PlmnId::new(mcc, mnc).unwrap()),
                inside,
                "{mcc}-{mnc}"
            );
        }
        let range: PlmnRange = serde_json::from_str(r#"{"pattern":"^240[0-9]{2}$"}"#).unwrap();
        assert!(range.contains(&PlmnId::new("240", "99").unwrap()));
        assert!(!range.contains(&PlmnId::new("241", "99").unwrap()));
    }
}
