//! Who has a record: what is read of each record at the start, without its document.

use std::marker::PhantomData;

use serde::Deserialize;
use store::{DecodeError, Index, IndexKeys, Key, Record, TableSchema};

/// Who has a record of another type. It is only read.
pub(crate) struct Holder<T> {
    pub(crate) key: Key,
    /// The SCS/AS.
    pub(crate) scs: String,
    /// The HSS or the SMS-SC has not confirmed it.
    pub(crate) pending: bool,
    expires: Option<u64>,
    of: PhantomData<fn() -> T>,
}

/// The members of a record that are read; the others are skipped.
#[derive(Deserialize)]
struct Members {
    scs: String,
    #[serde(default)]
    pending: bool,
    expires: Option<u64>,
}

impl<T: Record> Record for Holder<T> {
    const TABLE: &'static TableSchema = T::TABLE;
    const EXPIRY: Option<Index> = T::EXPIRY;

    fn key(&self) -> Key {
        self.key.clone()
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn expires(&self) -> Option<u64> {
        self.expires
    }

    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let members = serde_json::from_slice(value);
        let members: Members = members.map_err(|error| DecodeError(error.to_string()))?;
        Ok(Self {
            key: Key::from_slice(key),
            scs: members.scs,
            pending: members.pending,
            expires: members.expires,
            of: PhantomData,
        })
    }
}
