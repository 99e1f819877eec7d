//! Called party number and calling party number (Q.763 §3.9, §3.10), which INAP and CAP have too.

use crate::digits::Digits;

/// The numbering plan of E.164 (Q.763 §3.9).
const E164: u8 = 1;

/// A number of a party.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Number {
    /// Nature of address, seven bits.
    pub nature: u8,
    /// The second octet as it is: numbering plan, and what differs between called and calling number.
    pub indicators: u8,
    /// Address signals: 11, 12 and 15 (ST) are possible.
    pub digits: Digits,
}

impl Number {
    /// The second octet of a called party number that names E.164 and allows routing to an internal number.
    pub const E164: u8 = E164 << 4;

    /// Reads a parameter; `None` where it has no room for its indicators or its odd digit, or more than 40 digits.
    #[must_use]
    pub fn read(octets: &[u8]) -> Option<Self> {
        let [first, indicators, signals @ ..] = octets else {
            return None;
        };
        let odd = usize::from(first >> 7);
        let count = (signals.len() * 2).checked_sub(odd)?;
        Some(Self {
            nature: first & 0x7f,
            indicators: *indicators,
            digits: Digits::unpack(signals, count)?,
        })
    }

    /// Whether the plan is that of E.164.
    #[must_use]
    pub const fn is_e164(&self) -> bool {
        self.indicators >> 4 & 7 == E164
    }

    /// Appends the parameter.
    pub fn write(&self, out: &mut Vec<u8>) {
        let odd = (self.digits.len() as u8 & 1) << 7;
        out.extend([odd | self.nature & 0x7f, self.indicators]);
        out.extend_from_slice(self.digits.packed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_to_forty_digits_read_as_they_were_written() {
        for length in 0..=40 {
            let number = Number {
                nature: 3,
                indicators: 0x90,
                digits: Digits::parse(&"123456789f".repeat(4)[..length]).unwrap(),
            };
            let mut out = Vec::new();
            number.write(&mut out);
            assert_eq!(out.len(), 2 + length.div_ceil(2));
            assert_eq!(Number::read(&out), Some(number));
            assert!(number.is_e164());
        }
    }

    #[test]
    fn the_odd_digit_needs_an_octet() {
        for octets in [&[][..], &[0x83], &[0x83, 0x10], &[3; 23]] {
            assert_eq!(Number::read(octets), None, "{octets:02x?}");
        }
        let empty = Number::read(&[3, 0x10]).unwrap();
        assert!(empty.digits.is_empty());
        // The filler of an odd count is not a digit, whatever it is.
        let odd = Number::read(&[0x84, 0x10, 0x34, 0xf6]).unwrap();
        assert_eq!(odd.digits.to_string(), "436");
    }
}
