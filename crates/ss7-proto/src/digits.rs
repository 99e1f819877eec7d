//! Digits of numbers: global titles (Q.713 §3.4.2.3) and MAP's TBCD (TS 29.002 §17.7.8). Both pack two in an octet, the first
//! in its low half, but above 9 they mean different things.

use std::fmt;

/// The most digits of a global title that is read.
pub const MAX_DIGITS: usize = 40;

/// Up to 40 semi-octets, packed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Digits {
    /// Semi-octets behind the last one are 0.
    packed: [u8; MAX_DIGITS / 2],
    length: u8,
}

impl Digits {
    /// Without any.
    pub const EMPTY: Self = Self {
        packed: [0; MAX_DIGITS / 2],
        length: 0,
    };

    /// The first `count` semi-octets of packed octets; `None` when there are not as many, or more than 40.
    #[inline]
    #[must_use]
    pub fn unpack(octets: &[u8], count: usize) -> Option<Self> {
        let used = octets.get(..count.div_ceil(2))?;
        let mut packed = [0; MAX_DIGITS / 2];
        packed.get_mut(..used.len())?.copy_from_slice(used);
        if !count.is_multiple_of(2) {
            packed[count / 2] &= 0x0f;
        }
        Some(Self {
            packed,
            length: count as u8,
        })
    }

    /// Reads text: 0 to 9 and a to f, as [`Digits`] are displayed. `None` for other characters and more than 40.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut digits = Self::EMPTY;
        for character in text.chars() {
            let digit = character
                .to_digit(16)
                .filter(|_| !character.is_ascii_uppercase())?;
            digits.push(digit as u8)?;
        }
        Some(digits)
    }

    /// Adds one semi-octet; `None` when there are 40 already.
    #[inline]
    #[must_use = "the digit may not have fitted"]
    pub fn push(&mut self, digit: u8) -> Option<()> {
        let shift = 4 * (self.length & 1);
        let octet = self.packed.get_mut(usize::from(self.length / 2))?;
        *octet |= (digit & 0x0f) << shift;
        self.length += 1;
        Some(())
    }

    /// How many.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// One semi-octet.
    #[inline]
    #[must_use]
    pub fn get(&self, place: usize) -> Option<u8> {
        if place >= self.len() {
            return None;
        }
        self.packed
            .get(place / 2)
            .map(|octet| octet >> (4 * (place & 1)) & 0x0f)
    }

    /// The semi-octets in their order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        (0..self.len()).filter_map(|place| self.get(place))
    }

    /// The first 32 as a number, the first most significant, 0 behind the last: the order of digits.
    #[must_use]
    pub(crate) fn leading(&self) -> u128 {
        // The halves of each octet change places.
        const LOW: u128 = u128::from_be_bytes([0x0f; 16]);
        let octets = self.packed.first_chunk::<16>().copied().unwrap_or_default();
        let number = u128::from_be_bytes(octets);
        (number & LOW) << 4 | number >> 4 & LOW
    }

    /// The packed octets, with filler 0.
    #[must_use]
    pub fn packed(&self) -> &[u8] {
        self.packed.get(..self.len().div_ceil(2)).unwrap_or_default()
    }

    /// Without a closing ST (15, end of pulsing): what rules match.
    #[inline]
    #[must_use]
    pub fn without_st(&self) -> Self {
        match self.len().checked_sub(1) {
            Some(last) if self.get(last) == Some(0x0f) => self.first(last),
            _ => *self,
        }
    }

    /// The first `count`, or all.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        Self::unpack(&self.packed, count.min(self.len())).unwrap_or(*self)
    }

    /// Whether these begin with `prefix`.
    #[must_use]
    pub fn starts_with(&self, prefix: &Self) -> bool {
        self.first(prefix.len()) == *prefix
    }

    /// Without the first `count`.
    #[must_use]
    pub fn skip(&self, count: usize) -> Self {
        let Some(length) = self.len().checked_sub(count) else {
            return Self::EMPTY;
        };
        let behind = self.packed.get(count / 2..).unwrap_or_default();
        if count.is_multiple_of(2) {
            return Self::unpack(behind, length).unwrap_or(Self::EMPTY);
        }
        let mut rest = Self {
            length: length as u8,
            ..Self::EMPTY
        };
        // Each octet takes the high half of one and the low half of the next; there is nothing behind the last digit.
        let next = behind.iter().skip(1).chain(&[0]);
        for ((slot, octet), next) in rest.packed.iter_mut().zip(behind).zip(next) {
            *slot = octet >> 4 | next << 4;
        }
        rest
    }

    /// These, then `more`; `None` when they are more than 40.
    #[must_use]
    pub fn join(mut self, more: &Self) -> Option<Self> {
        let at = self.len() / 2;
        let odd = !self.len().is_multiple_of(2);
        if self.len() + more.len() > MAX_DIGITS {
            return None;
        }
        self.length += more.length;
        let behind = self.packed.get_mut(at..)?;
        if !odd {
            behind
                .get_mut(..more.packed().len())?
                .copy_from_slice(more.packed());
            return Some(self);
        }
        let mut carried = behind.first().copied().unwrap_or_default();
        for (slot, octet) in behind.iter_mut().zip(more.packed.iter()) {
            *slot = carried | octet << 4;
            carried = octet >> 4;
        }
        Some(self)
    }
}

impl fmt::Debug for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Digits 0 to 9, and code 11, code 12 and ST of Q.713 as `b`, `c` and `f`.
impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|digit| write!(f, "{digit:x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_to_forty_digits() {
        let text = "1234567890".repeat(4);
        for length in 0..=40 {
            let digits = Digits::parse(&text[..length]).unwrap();
            assert_eq!(digits.to_string(), text[..length]);
            assert_eq!(Digits::unpack(digits.packed(), length), Some(digits));
            for cut in 0..=length {
                assert_eq!(digits.first(cut).join(&digits.skip(cut)), Some(digits));
                assert!(digits.starts_with(&digits.first(cut)));
                assert!(cut == length || !digits.first(cut).starts_with(&digits));
            }
        }
        assert_eq!(Digits::parse(&"1".repeat(41)), None);
        assert_eq!(Digits::unpack(&[0x11; 21], 41), None);
        assert_eq!(Digits::unpack(&[0x11], 3), None);
        assert_eq!(Digits::parse("12A"), None);
        assert_eq!(Digits::parse("43 1"), None);
    }

    #[test]
    fn st_at_the_end_alone() {
        let digits = Digits::parse("12f4f").unwrap();
        assert_eq!(digits.without_st().to_string(), "12f4");
        assert_eq!(digits.without_st().without_st().to_string(), "12f4");
        assert_eq!(Digits::EMPTY.without_st(), Digits::EMPTY);
    }
}
