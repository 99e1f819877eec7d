//! Guards of what one PCF may have for a subscriber (SamePcf, TS 29.521 §4.2.2.2).

use records::{DecodeError, IndexKeys, Key, Record, TableSchema};

/// The guard of a share of all subscribers. A binding with `paraCom` is written together with it, on condition that it
/// has not changed since the bindings of the subscriber were read: of two PCFs that register at the same moment, at
/// whatever instance, one must read them again. Guards are never deleted, and there are 65,536 of them at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamePcfGuard(u16);

impl SamePcfGuard {
    /// The guard of a subscriber.
    #[must_use]
    pub fn of(supi: &str) -> Self {
        let hash = crc32fast::hash(supi.as_bytes());
        Self((hash >> 16) as u16 ^ hash as u16)
    }
}

impl Record for SamePcfGuard {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "same_pcf_guard",
        indexes: &[],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&self.0.to_be_bytes())
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(key: &[u8], _: &[u8]) -> Result<Self, DecodeError> {
        let key = key
            .try_into()
            .map_err(|_| DecodeError("not a guard".to_owned()))?;
        Ok(Self(u16::from_be_bytes(key)))
    }
}
