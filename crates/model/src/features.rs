//! `SupportedFeatures`: a bit mask in hexadecimal, feature 1 in the last digit (TS 29.500 §6.6.2).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;

/// Longest mask accepted, in hexadecimal digits: 1,024 features are far beyond any API.
pub const MAX_DIGITS: usize = 256;

/// A set of feature numbers, counted from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SupportedFeatures {
    /// Little-endian words; no trailing zero words, so that equal sets are equal.
    words: SmallVec<[u64; 2]>,
}

impl SupportedFeatures {
    /// Reads the hexadecimal mask; the empty text is the empty set.
    ///
    /// # Errors
    /// When a character is not hexadecimal or the text is too long.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.len() > MAX_DIGITS || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err("expected hexadecimal digits (a feature mask), at most 256");
        }
        let mut words = SmallVec::new();
        let mut end = text.len();
        while end > 0 {
            let start = end.saturating_sub(16);
            // At most sixteen hexadecimal digits, checked above.
            words.push(u64::from_str_radix(&text[start..end], 16).unwrap_or(0));
            end = start;
        }
        let mut set = Self { words };
        set.trim();
        Ok(set)
    }

    /// The set of these feature numbers.
    #[must_use]
    pub fn of(numbers: &[usize]) -> Self {
        let mut set = Self::default();
        for number in numbers {
            let bit = number - 1;
            if set.words.len() <= bit / 64 {
                set.words.resize(bit / 64 + 1, 0);
            }
            set.words[bit / 64] |= 1 << (bit % 64);
        }
        set
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }

    /// Whether the feature is in the set.
    #[must_use]
    pub fn has(&self, number: usize) -> bool {
        let bit = number.saturating_sub(1);
        self.words
            .get(bit / 64)
            .is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    /// Whether every feature of `other` is in this set.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        other
            .words
            .iter()
            .enumerate()
            .all(|(i, word)| word & !self.words.get(i).copied().unwrap_or(0) == 0)
    }

    /// The features both sides have.
    #[must_use]
    pub fn common(&self, other: &Self) -> Self {
        let mut set = Self {
            words: self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect(),
        };
        set.trim();
        set
    }

    /// Whether no feature is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

impl fmt::Display for SupportedFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words.split_last() {
            None => f.write_str("0"),
            Some((last, rest)) => {
                write!(f, "{last:X}")?;
                rest.iter().rev().try_for_each(|word| write!(f, "{word:016X}"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for SupportedFeatures {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl Serialize for SupportedFeatures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks() {
        let five = SupportedFeatures::parse("15").unwrap();
        assert!(five.has(1) && five.has(3) && five.has(5) && !five.has(2) && !five.has(0x1_0000));
        assert_eq!(five.to_string(), "15");
        assert_eq!(SupportedFeatures::parse("00015").unwrap(), five);
        assert_eq!(SupportedFeatures::of(&[1, 3, 5]), five);
        let wide = SupportedFeatures::parse("100000000000000015").unwrap();
        assert!(wide.has(69) && wide.contains(&five) && !five.contains(&wide));
        assert_eq!(wide.common(&five), five);
        assert_eq!(wide.to_string(), "100000000000000015");
        assert!(SupportedFeatures::parse("").unwrap().is_empty());
        assert!(SupportedFeatures::parse("0x1").is_err());
        assert!(five.contains(&SupportedFeatures::default()));
    }
}
