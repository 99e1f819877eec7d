//! Digits of MAP: TBCD-STRING and AddressString (TS 29.002 §17.7.8). Above 9 they have other letters than digits of SCCP.

use std::fmt;

use crate::digits::Digits;

/// A TBCD-STRING: 0 to 9, `*`, `#`, `a`, `b`, `c`; 15 is filler.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tbcd<'a>(&'a [u8]);

impl<'a> Tbcd<'a> {
    /// Over these octets.
    #[must_use]
    pub const fn new(octets: &'a [u8]) -> Self {
        Self(octets)
    }

    /// The semi-octets up to the first filler, for rules; 10 to 14 stand as they are. `None` for more than 40.
    #[must_use]
    pub fn digits(&self) -> Option<Digits> {
        let halves = |octet: &u8| [octet & 0x0f, octet >> 4];
        let count = self
            .0
            .iter()
            .flat_map(halves)
            .take_while(|digit| *digit != 0x0f)
            .count();
        Digits::unpack(self.0, count)
    }
}

impl fmt::Debug for Tbcd<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Tbcd<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LETTERS: &[u8; 15] = b"0123456789*#abc";
        for digit in self.0.iter().flat_map(|octet| [octet & 0x0f, octet >> 4]) {
            match LETTERS.get(usize::from(digit)) {
                Some(letter) => write!(f, "{}", char::from(*letter))?,
                None => return Ok(()),
            }
        }
        Ok(())
    }
}

/// An AddressString: nature and plan before the digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AddressString<'a> {
    /// Nature of address: 1 = international, 2 = national. Other numbers than in SCCP.
    pub nature: u8,
    /// Numbering plan: 1 = E.164, 6 = land mobile (E.212).
    pub plan: u8,
    /// The digits.
    pub number: Tbcd<'a>,
}

impl<'a> AddressString<'a> {
    /// Reads one; `None` without an octet.
    #[must_use]
    pub fn read(octets: &'a [u8]) -> Option<Self> {
        let (first, number) = octets.split_first()?;
        Some(Self {
            nature: first >> 4 & 7,
            plan: first & 0x0f,
            number: Tbcd::new(number),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_differ_from_those_of_sccp() {
        let octets = [0x34, 0xba, 0xdc, 0xfe];
        assert_eq!(Tbcd::new(&octets).to_string(), "43*#abc");
        assert_eq!(Tbcd::new(&octets).digits().unwrap().to_string(), "43abcde");
        assert_eq!(Tbcd::new(&[0xf1, 0x22]).to_string(), "1");
        assert_eq!(Tbcd::new(&[0x11; 21]).digits(), None);
    }

    #[test]
    fn address_strings() {
        let address = AddressString::read(&[0x91, 0x34, 0x66, 0xf0]).unwrap();
        assert_eq!((address.nature, address.plan), (1, 1));
        assert_eq!(address.number.to_string(), "43660");
        assert_eq!(AddressString::read(&[]), None);
    }
}
