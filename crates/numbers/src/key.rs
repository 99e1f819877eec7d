//! Keys: a kind and 1 to 15 digits.

use std::fmt;
use std::str::FromStr;

/// Most digits of a number (TS 23.003 §2.2 for an IMSI, ITU-T E.164 §6 for an MSISDN).
pub const MOST_DIGITS: usize = 15;

/// Numbers that a block covers: those that differ in the low 16 bits alone.
pub(crate) const BLOCK_BITS: u32 = 16;

const NUMBER_BITS: u32 = 50;
const LENGTH_BITS: u32 = 4;

/// What a number names. The codes are part of the file format; their order is the order of a sorted import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// International Mobile Equipment Identity without or with its check digit (TS 23.003 §6.2.1).
    Imei = 1,
    /// International Mobile Subscriber Identity (TS 23.003 §2.2).
    Imsi = 2,
    /// Mobile Subscriber ISDN Number in international form, without `+` (TS 23.003 §3.3).
    Msisdn = 3,
}

impl Kind {
    /// Every kind, in the order of a sorted import.
    pub const ALL: [Self; 3] = [Self::Imei, Self::Imsi, Self::Msisdn];

    /// The name in files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Imei => "imei",
            Self::Imsi => "imsi",
            Self::Msisdn => "msisdn",
        }
    }

    fn from_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u64 == code)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let named = |kind: &Self| kind.name().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(named).ok_or(KeyError::Kind)
    }
}

/// Why a text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The kind is unknown.
    #[error("unknown kind; use imei, imsi or msisdn")]
    Kind,
    /// It is empty.
    #[error("the number is empty; expected 1 to 15 digits")]
    Empty,
    /// A character is not a decimal digit; its position from 1.
    #[error("character {0} of the number is not a digit; expected 1 to 15 digits")]
    NotADigit(usize),
    /// There are more digits than [`MOST_DIGITS`].
    #[error("the number has {0} digits; expected 1 to 15")]
    TooLong(usize),
}

/// A kind and 1 to 15 digits; the number of digits is part of it: `001` is not `1`.
///
/// 64 bits: kind (10), number of digits (4), the digits as an integer (50). Keys are in the order of kind, number of
/// digits, digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

impl Key {
    /// Parses decimal digits, in ASCII.
    ///
    /// # Errors
    /// When there are none, more than 15, or another character.
    pub fn new(kind: Kind, digits: &[u8]) -> Result<Self, KeyError> {
        if digits.is_empty() {
            return Err(KeyError::Empty);
        }
        if let Some(place) = digits.iter().position(|digit| !digit.is_ascii_digit()) {
            return Err(KeyError::NotADigit(place + 1));
        }
        if digits.len() > MOST_DIGITS {
            return Err(KeyError::TooLong(digits.len()));
        }
        let number = digits
            .iter()
            .fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
        Ok(Self::assemble(kind, digits.len() as u64, number))
    }

    /// The key of a number that is padded with zeros to `length` digits; `None` where it does not fit.
    #[must_use]
    pub fn from_number(kind: Kind, length: usize, number: u64) -> Option<Self> {
        let fits = (1..=MOST_DIGITS).contains(&length) && number < 10_u64.pow(length as u32);
        fits.then(|| Self::assemble(kind, length as u64, number))
    }

    const fn assemble(kind: Kind, length: u64, number: u64) -> Self {
        Self((kind as u64) << (NUMBER_BITS + LENGTH_BITS) | length << NUMBER_BITS | number)
    }

    /// The key of 64 bits that a file has; `None` when they are none.
    pub(crate) fn from_raw(raw: u64) -> Option<Self> {
        let kind = Kind::from_code(raw >> (NUMBER_BITS + LENGTH_BITS))?;
        let length = raw >> NUMBER_BITS & ((1 << LENGTH_BITS) - 1);
        Self::from_number(kind, length as usize, raw & ((1 << NUMBER_BITS) - 1))
    }

    pub(crate) const fn raw(self) -> u64 {
        self.0
    }

    /// The block that covers it.
    pub(crate) const fn block(self) -> u64 {
        self.0 >> BLOCK_BITS
    }

    /// Its place in the block.
    pub(crate) const fn low(self) -> u16 {
        self.0 as u16
    }

    /// What it names.
    #[must_use]
    pub fn kind(self) -> Kind {
        // Every constructor has put the code of a kind there.
        Kind::from_code(self.0 >> (NUMBER_BITS + LENGTH_BITS)).unwrap_or(Kind::Imei)
    }

    /// The number of digits, 1 to 15.
    #[must_use]
    pub const fn length(self) -> usize {
        (self.0 >> NUMBER_BITS & ((1 << LENGTH_BITS) - 1)) as usize
    }

    /// The digits as an integer, without leading zeros.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0 & ((1 << NUMBER_BITS) - 1)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{},{:0length$}",
            self.kind(),
            self.number(),
            length = self.length()
        )
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The numbers that a block covers, for messages: `imsi of 15 digits, 001010000000000 to 001010000065535`.
pub(crate) struct BlockName(pub(crate) u64);

impl fmt::Display for BlockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = Key(self.0 << BLOCK_BITS);
        let Some(kind) = Kind::from_code(first.0 >> (NUMBER_BITS + LENGTH_BITS)) else {
            return write!(f, "block {:#x}", self.0);
        };
        let length = first.length();
        let last = first.number() | ((1 << BLOCK_BITS) - 1);
        write!(
            f,
            "{kind} of {length} digits, {:0length$} to {last:0length$}",
            first.number()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_part_of_the_key() {
        let key = |digits: &str| Key::new(Kind::Imsi, digits.as_bytes()).unwrap();
        assert_ne!(key("001"), key("1"));
        assert!(key("9") < key("001"));
        assert_eq!(key("001").to_string(), "imsi,001");
        assert_eq!(key("999999999999999").number(), 999_999_999_999_999);
        assert_eq!(Key::from_raw(key("0001").raw()), Some(key("0001")));
    }

    #[test]
    fn what_is_not_a_number_is_refused_with_the_reason() {
        let refused = |digits: &str| Key::new(Kind::Msisdn, digits.as_bytes()).unwrap_err();
        assert_eq!(refused(""), KeyError::Empty);
        assert_eq!(refused("49A"), KeyError::NotADigit(3));
        assert_eq!(refused("+49"), KeyError::NotADigit(1));
        assert_eq!(refused("4٣"), KeyError::NotADigit(2));
        assert_eq!(refused("1234567890123456"), KeyError::TooLong(16));
        assert_eq!("imsj".parse::<Kind>(), Err(KeyError::Kind));
    }

    #[test]
    fn no_bits_but_those_of_keys_are_taken_from_a_file() {
        for raw in [
            0,
            u64::MAX,
            1 << 54,
            2 << 54 | 1 << 50 | 10,
            2 << 54 | 15 << 50 | ((1 << 50) - 1),
        ] {
            assert_eq!(Key::from_raw(raw), None, "{raw:#x}");
        }
    }
}
