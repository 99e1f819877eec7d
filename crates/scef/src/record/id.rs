//! Identities of records: the time of creation and chance, so that the order of ids is that of creation.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An identity of a record; 32 hexadecimal digits in URIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Id(u128);

impl Id {
    /// The first one of all.
    pub(crate) const MIN: Self = Self(0);
    /// The last one of all.
    pub(crate) const MAX: Self = Self(u128::MAX);

    /// A new one, at this time (microseconds since 1970).
    pub(crate) fn new(now: u64) -> Self {
        let (_, chance) = uuid::Uuid::new_v4().as_u64_pair();
        Self(u128::from(now) << 64 | u128::from(chance))
    }

    /// The identity that a text in a URI stands for.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = u128::from_str_radix(text, 16).ok()?;
        digits.then_some(Self(id))
    }

    /// The key of its record.
    pub(crate) fn key(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl From<Id> for String {
    fn from(id: Id) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for Id {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        Self::parse(&text).ok_or("expected 32 hexadecimal digits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written_and_ordered_by_time() {
        let (first, second) = (Id::new(1), Id::new(2));
        assert_eq!(Id::parse(&first.to_string()), Some(first));
        assert!(first < second && first.key() < second.key());
        for wrong in [
            "",
            "1",
            &"g".repeat(32),
            &"0".repeat(33),
            &format!("+{}", "1".repeat(31)),
        ] {
            assert_eq!(Id::parse(wrong), None, "{wrong}");
        }
    }
}
