//! Application contexts.

use std::fmt;

/// The octets of an object identifier that names an application context.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ApplicationContext<'a>(&'a [u8]);

/// `0.4.0.0.1.0`: itu-t, identified-organization, etsi, mobileDomain, gsm-Network, ac-Id (TS 29.002 §17.3.3).
const MAP: &[u8] = &[4, 0, 0, 1, 0];

impl<'a> ApplicationContext<'a> {
    /// From the octets.
    #[must_use]
    pub const fn new(octets: &'a [u8]) -> Self {
        Self(octets)
    }

    /// The octets.
    #[must_use]
    pub const fn octets(&self) -> &'a [u8] {
        self.0
    }

    /// Number and version of an application context of MAP: (1, 3) is networkLocUp version 3.
    #[must_use]
    pub fn map(&self) -> Option<(u8, u8)> {
        match self.0.strip_prefix(MAP)? {
            [context @ 0..0x80, version @ 0..0x80] => Some((*context, *version)),
            _ => None,
        }
    }
}

/// The beginning of object identifiers, up to 16 octets: `0.4.0.0.1.0.1` is networkLocUp in each version.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ContextPrefix {
    octets: [u8; 16],
    length: u8,
}

impl ContextPrefix {
    /// Reads numbers with dots, two or more; `None` for others, and for what has no form as an object identifier (X.690 §8.19).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut prefix = Self {
            octets: [0; 16],
            length: 0,
        };
        let number = |text: &str| {
            let is_decimal = !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit());
            text.parse::<u32>().ok().filter(|_| is_decimal)
        };
        let (first, rest) = text.split_once('.')?;
        let mut rest = rest.split('.');
        let (first, second) = (number(first)?, number(rest.next()?)?);
        if first > 2 || (first < 2 && second >= 40) {
            return None;
        }
        prefix.push(u64::from(first) * 40 + u64::from(second))?;
        for arc in rest {
            prefix.push(number(arc)?.into())?;
        }
        Some(prefix)
    }

    /// Appends a number, seven bits an octet, the last one without the highest bit.
    fn push(&mut self, number: u64) -> Option<()> {
        let groups = (64 - number.leading_zeros()).div_ceil(7).max(1);
        for group in (0..groups).rev() {
            let more = if group > 0 { 0x80 } else { 0 };
            *self.octets.get_mut(usize::from(self.length))? = (number >> (7 * group) & 0x7f) as u8 | more;
            self.length += 1;
        }
        Some(())
    }

    fn octets(&self) -> &[u8] {
        self.octets.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// Whether an application context begins so. Each number ends by itself, so that one is never taken for part of a longer one.
    #[must_use]
    pub fn fits(&self, context: ApplicationContext<'_>) -> bool {
        context.octets().starts_with(self.octets())
    }

    /// Octets of the object identifier: of two that fit, the longer one says more.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether it has none; one that was read has some.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// Numbers with dots.
impl fmt::Display for ApplicationContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut number: u64 = 0;
        let mut first = true;
        for octet in self.0 {
            number = number << 7 | u64::from(octet & 0x7f);
            if octet & 0x80 != 0 {
                continue;
            }
            if first {
                let arc = (number / 40).min(2);
                write!(f, "{arc}.{}", number - 40 * arc)?;
                first = false;
            } else {
                write!(f, ".{number}")?;
            }
            number = 0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_context() {
        let octets = [4, 0, 0, 1, 0, 1, 3];
        let context = ApplicationContext::new(&octets);
        assert_eq!(context.to_string(), "0.4.0.0.1.0.1.3");
        for (text, fits) in [
            ("0.4", true),
            ("0.4.0.0.1.0.1", true),
            ("0.4.0.0.1.0.1.3", true),
            ("0.4.0.0.1.0.1.2", false),
            ("0.4.0.0.1.0.1.3.0", false),
            ("0.4.0.0.1.0.14", false),
        ] {
            assert_eq!(ContextPrefix::parse(text).unwrap().fits(context), fits, "{text}");
        }
        let long = [0x04, 0x81, 0x01];
        assert!(
            ContextPrefix::parse("0.4.129")
                .unwrap()
                .fits(ApplicationContext::new(&long))
        );
        assert!(
            !ContextPrefix::parse("0.4.1")
                .unwrap()
                .fits(ApplicationContext::new(&long))
        );
        for octets in [
            &[0x88, 0x37][..],
            &[0x2a, 0x86, 0x48],
            &[4, 0x8f, 0xff, 0xff, 0xff, 0x7f],
        ] {
            let shown = ApplicationContext::new(octets).to_string();
            assert_eq!(ContextPrefix::parse(&shown).unwrap().octets(), octets, "{shown}");
        }
    }

    #[test]
    fn what_names_no_context() {
        let long = ["1"; 20].join(".");
        for text in [
            "",
            "0",
            "0.",
            ".4",
            "0.4.",
            "3.1",
            "0.40",
            "0.+4",
            "0.4.x",
            "0.4.4294967296",
            &long,
        ] {
            assert_eq!(ContextPrefix::parse(text), None, "{text}");
        }
    }
}
