//! What the store keeps: profiles and subscriptions.

use bytes::Bytes;
use store::{DecodeError, IndexKeys, Key, Record, TableSchema};

/// A registered profile: its assigned timer and its JSON text.
#[derive(Clone, Debug)]
pub(crate) struct ProfileRecord {
    pub(crate) id: uuid::Uuid,
    pub(crate) document: Bytes,
}

/// A subscription: its JSON text, id and validity inside.
#[derive(Clone, Debug)]
pub(crate) struct SubscriptionRecord {
    pub(crate) id: String,
    pub(crate) document: Bytes,
}

impl Record for ProfileRecord {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "nrf_profiles",
        indexes: &[],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(self.id.as_bytes())
    }

    fn index(&self, _keys: &mut IndexKeys) {}

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.document);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let id = uuid::Uuid::from_slice(key).map_err(|error| DecodeError(error.to_string()))?;
        Ok(Self {
            id,
            document: Bytes::copy_from_slice(value),
        })
    }
}

impl Record for SubscriptionRecord {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "nrf_subscriptions",
        indexes: &[],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(self.id.as_bytes())
    }

    fn index(&self, _keys: &mut IndexKeys) {}

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.document);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let id = String::from_utf8(key.to_vec()).map_err(|error| DecodeError(error.to_string()))?;
        Ok(Self {
            id,
            document: Bytes::copy_from_slice(value),
        })
    }
}
