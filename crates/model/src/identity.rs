//! Subscriber and instance identities, and the ranges they fall into (TS 29.510 §6.1.6.2.7, §6.1.6.2.8).

use serde::{Deserialize, Serialize};

use crate::pattern::Pattern;

/// The identity of an NF instance, a UUID (TS 29.571 §5.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NfInstanceId(pub uuid::Uuid);

impl NfInstanceId {
    /// Reads the hyphenated form of a UUID, in either case.
    ///
    /// # Errors
    /// What was expected instead.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const EXPECTED: &str = "expected a UUID such as 4947a69a-f61b-4bc1-b9da-47c9c5d14b64";
        if text.len() != 36 {
            return Err(EXPECTED);
        }
        uuid::Uuid::try_parse(text).map(Self).map_err(|_| EXPECTED)
    }
}

impl std::fmt::Display for NfInstanceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.0, f)
    }
}

/// A range of identities: either all numbers from `start` to `end`, or those a pattern matches.
///
/// The numeric form is over the digits of the identity (`240010000000001` of `imsi-240010000000001`), both
/// ends included; the pattern is over the whole text (`^imsi-24001[0-9]+$`). Where `end` has more digits than `start`
/// (`491700` to `4917999999999`, TS 29.510 §6.1.6.2.34 has an example), the range has the numbers of each length between
/// whose first digits lie between those of both ends.
#[derive(Clone, Debug, PartialEq)]
pub enum IdentityRange {
    /// Digits from start to end.
    Numbers {
        /// First number.
        start: Digits,
        /// Last number.
        end: Digits,
    },
    /// Whatever the expression matches.
    Pattern(Pattern),
}

/// Why a range is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeFault {
    /// Neither form is complete.
    #[error("expected either start and end, or pattern")]
    Incomplete,
    /// Not digits, or more than any identity has.
    #[error("expected 1 to 38 decimal digits in start and end")]
    NotDigits,
    /// Would match nothing.
    #[error("expected start to be at most end, and to have no more digits")]
    Backwards,
}

/// A number with its leading zeros: `0046` is not `46`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digits {
    length: u8,
    value: u128,
}

impl Digits {
    /// Reads 1 to 38 decimal digits (38 always fit 128 bits).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || text.len() > 38 {
            return None;
        }
        let mut value = 0u128;
        for byte in text.bytes() {
            if !byte.is_ascii_digit() {
                return None;
            }
            value = value * 10 + u128::from(byte - b'0');
        }
        // At most 38, checked above.
        Some(Self {
            length: text.len() as u8,
            value,
        })
    }

    /// Whether the number lies between two others, both included, which may have fewer and more digits.
    #[must_use]
    pub fn is_between(self, start: Self, end: Self) -> bool {
        let (first, last) = (start.padded(self.length), end.cut(self.length));
        let (Some(first), Some(last)) = (first, last) else {
            return false;
        };
        (first.value..=last.value).contains(&self.value)
    }

    /// This number and as many zeros as make this length; `None` when it is longer.
    fn padded(self, length: u8) -> Option<Self> {
        let zeros = length.checked_sub(self.length)?;
        // At most 38 digits.
        let value = self.value * 10u128.pow(u32::from(zeros));
        Some(Self { length, value })
    }

    /// The first digits of this number; `None` when it is shorter.
    fn cut(self, length: u8) -> Option<Self> {
        let rest = self.length.checked_sub(length)?;
        let value = self.value / 10u128.pow(u32::from(rest));
        Some(Self { length, value })
    }

    /// The digits of an identity: after its prefix (`imsi-`, `msisdn-`), or the whole text.
    #[must_use]
    pub fn of_identity(identity: &str) -> Option<Self> {
        let digits = identity.split_once('-').map_or(identity, |(_, rest)| rest);
        Self::parse(digits.strip_prefix('+').unwrap_or(digits))
    }
}

impl IdentityRange {
    /// Builds a range from the members it has on the wire.
    ///
    /// # Errors
    /// When neither form is complete, or it could match nothing.
    pub fn new(start: Option<&str>, end: Option<&str>, pattern: Option<Pattern>) -> Result<Self, RangeFault> {
        match (start, end, pattern) {
            (Some(start), Some(end), None) => {
                let start = Digits::parse(start).ok_or(RangeFault::NotDigits)?;
                let end = Digits::parse(end).ok_or(RangeFault::NotDigits)?;
                match end.is_between(start, end) {
                    true => Ok(Self::Numbers { start, end }),
                    false => Err(RangeFault::Backwards),
                }
            }
            (None, None, Some(pattern)) => Ok(Self::Pattern(pattern)),
            _ => Err(RangeFault::Incomplete),
        }
    }

    /// First and last number of each length that the range has numbers of; none for a pattern.
    pub fn spans(&self) -> impl Iterator<Item = (Digits, Digits)> {
        let (start, end) = match self {
            Self::Numbers { start, end } => (Some(*start), Some(*end)),
            Self::Pattern(_) => (None, None),
        };
        let ends = start.zip(end);
        let lengths = ends.map(|(start, end)| start.length..=end.length);
        let lengths = lengths.into_iter().flatten();
        lengths.filter_map(move |length| {
            let (start, end) = ends?;
            Some((start.padded(length)?, end.cut(length)?))
        })
    }

    /// Whether an identity may lie in both ranges. Of a pattern only the same pattern is known to have some in common.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let lies = |(start, end): (Digits, Digits), one: &Self| match one {
            Self::Numbers {
                start: first,
                end: last,
            } => start.is_between(*first, *last) || end.is_between(*first, *last),
            Self::Pattern(_) => false,
        };
        self == other
            || self.spans().any(|span| lies(span, other))
            || other.spans().any(|span| lies(span, self))
    }

    /// Whether the identity lies in the range.
    #[must_use]
    pub fn contains(&self, identity: &str) -> bool {
        self.contains_parsed(identity, Digits::of_identity(identity))
    }

    /// As [`contains`](Self::contains), for a caller that checks many ranges and has taken the digits out once.
    #[must_use]
    pub fn contains_parsed(&self, identity: &str, digits: Option<Digits>) -> bool {
        match self {
            Self::Numbers { start, end } => digits.is_some_and(|number| number.is_between(*start, *end)),
            Self::Pattern(pattern) => pattern.matches(identity),
        }
    }
}

impl<'de> Deserialize<'de> for IdentityRange {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire<'a> {
            #[serde(default, borrow)]
            start: Option<std::borrow::Cow<'a, str>>,
            #[serde(default, borrow)]
            end: Option<std::borrow::Cow<'a, str>>,
            #[serde(default)]
            pattern: Option<Pattern>,
        }
        let wire = Wire::deserialize(deserializer)?;
        Self::new(wire.start.as_deref(), wire.end.as_deref(), wire.pattern).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numeric_ranges_compare_digits_of_one_length() {
        let range: IdentityRange =
            serde_json::from_str(r#"{"start":"240010000000000","end":"240010000009999"}"#).unwrap();
        assert!(range.contains("imsi-240010000005000"));
        assert!(range.contains("240010000005000"));
        assert!(!range.contains("imsi-24001000000500"));
        assert!(!range.contains("imsi-240010000010000"));
        assert!(!range.contains("nai-someone@example.com"));
        let range: IdentityRange =
            serde_json::from_str(r#"{"start":"46700000000","end":"46799999999"}"#).unwrap();
        assert!(range.contains("msisdn-46712345678"));
    }

    #[test]
    fn ends_of_a_range_may_differ_in_length() {
        let range: IdentityRange =
            serde_json::from_str(r#"{"start":"491700","end":"4917999999999"}"#).unwrap();
        for inside in [
            "491700",
            "4917123",
            "491799999999",
            "4917000000000",
            "4917999999999",
        ] {
            assert!(range.contains(&format!("msisdn-{inside}")), "{inside}");
        }
        for outside in ["49170", "49169999", "491800", "4918000000000", "49171234567890"] {
            assert!(!range.contains(&format!("msisdn-{outside}")), "{outside}");
        }
        assert_eq!(range.spans().count(), 8);
        for (start, end) in range.spans() {
            assert!(end.is_between(start, end) && start.is_between(start, end));
        }
    }

    #[test]
    fn ranges_overlap_where_they_have_numbers_in_common() {
        let range = |start, end| IdentityRange::new(Some(start), Some(end), None).unwrap();
        let overlap = |a: &IdentityRange, b: &IdentityRange| {
            assert_eq!(a.overlaps(b), b.overlaps(a));
            a.overlaps(b)
        };
        let tens = range("4670", "4679");
        for other in [
            range("4675", "4690"),
            range("4600", "4699"),
            range("4673", "4673"),
            range("467", "46799"),
        ] {
            assert!(overlap(&tens, &other), "{other:?}");
        }
        for other in [
            range("4680", "4690"),
            range("467", "467"),
            range("46700", "46799"),
        ] {
            assert!(!overlap(&tens, &other), "{other:?}");
        }
        let pattern = |text: &str| -> IdentityRange {
            serde_json::from_value(serde_json::json!({"pattern": text})).unwrap()
        };
        assert!(overlap(&pattern("^a"), &pattern("^a")));
        assert!(!overlap(&pattern("^a"), &pattern("^ab")) && !overlap(&pattern("^a"), &tens));
    }

    #[test]
    fn patterns_see_the_whole_identity() {
        let range: IdentityRange = serde_json::from_str(r#"{"pattern":"^nai-.+@company\\.com$"}"#).unwrap();
        assert!(range.contains("nai-123@company.com") && !range.contains("nai-123@other.com"));
    }

    #[test]
    fn ranges_that_could_match_nothing_are_refused() {
        for (bad, why) in [
            ("{}", RangeFault::Incomplete),
            (r#"{"start":"1"}"#, RangeFault::Incomplete),
            (r#"{"start":"1","end":"2","pattern":"x"}"#, RangeFault::Incomplete),
            (r#"{"start":"2","end":"1"}"#, RangeFault::Backwards),
            (r#"{"start":"10","end":"2"}"#, RangeFault::Backwards),
            (r#"{"start":"2","end":"10"}"#, RangeFault::Backwards),
            (r#"{"start":"a","end":"b"}"#, RangeFault::NotDigits),
            (r#"{"start":"","end":""}"#, RangeFault::NotDigits),
        ] {
            let error = serde_json::from_str::<IdentityRange>(bad)
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(&why.to_string()), "{bad}: {error}");
        }
    }
}
