//! Numbers as names have them.

use std::fmt;

use numbers::{Key, Kind, MOST_DIGITS};

/// Up to 15 digits, as values from 0 to 9, in the order in which they are dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Digits {
    digits: [u8; MOST_DIGITS],
    length: usize,
}

impl Digits {
    /// A number of as many digits as there can be.
    pub(crate) const LONGEST: Self = Self {
        digits: [9; MOST_DIGITS],
        length: MOST_DIGITS,
    };

    /// Parses decimal digits in ASCII; `None` where there are others, or more than 15.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut digits = Self::default();
        for digit in text.bytes() {
            digits.push(digit)?;
        }
        Some(digits)
    }

    /// Adds a digit in ASCII behind the others.
    pub(crate) fn push(&mut self, digit: u8) -> Option<()> {
        let slot = self.digits.get_mut(self.length)?;
        *slot = digit.is_ascii_digit().then(|| digit - b'0')?;
        self.length += 1;
        Some(())
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        self.digits.get(..self.length).unwrap_or_default()
    }

    /// The first digits of it.
    pub(crate) fn prefix(&self, length: usize) -> Self {
        let mut prefix = Self::default();
        for digit in self.as_slice().iter().take(length) {
            // At most as many as `self` has.
            let _ = prefix.push(digit + b'0');
        }
        prefix
    }

    pub(crate) fn starts_with(&self, other: &Self) -> bool {
        self.as_slice().starts_with(other.as_slice())
    }

    /// As the map of numbers knows it; `None` without a digit.
    pub(crate) fn key(&self) -> Option<Key> {
        let number = self
            .as_slice()
            .iter()
            .fold(0, |number, digit| number * 10 + u64::from(*digit));
        Key::from_number(Kind::Msisdn, self.length, number)
    }
}

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().iter().try_for_each(|digit| write!(f, "{digit}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_keep_their_zeros_and_their_bound() {
        let digits = Digits::parse("00431").unwrap();
        assert_eq!(digits.to_string(), "00431");
        assert_eq!(digits.key().unwrap().length(), 5);
        assert_eq!(digits.prefix(2).to_string(), "00");
        assert!(digits.starts_with(&digits.prefix(3)));
        assert_eq!(Digits::parse("1234567890123456"), None);
        assert_eq!(Digits::parse("+43"), None);
        assert_eq!(Digits::default().key(), None);
    }
}
