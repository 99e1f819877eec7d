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
