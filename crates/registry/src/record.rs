//! What the store keeps: profiles and subscriptions.

use bytes::Bytes;
use records::{DecodeError, IndexKeys, Key, Record, TableSchema};

/// A registered profile: its assigned timer and its JSON text.
#[derive(Clone, Debug)]
pub struct ProfileRecord {
    /// Its NF instance.
    pub id: uuid::Uuid,
    /// The profile as [`Entry::document`](crate::Entry::document) writes it, with the status that its owner gave it.
    pub document: Bytes,
    /// Whether the NRF has suspended it.
    pub suspended: bool,
}

/// Stands before the JSON text of a suspended profile.
const SUSPENDED: u8 = b'S';

/// A subscription: its JSON text, id and validity inside.
#[derive(Clone, Debug)]
pub struct SubscriptionRecord {
    /// Its `subscriptionId`.
    pub id: String,
    /// A `SubscriptionData` (TS 29.510 §6.1.6.2.16).
    pub document: Bytes,
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
        if self.suspended {
            out.push(SUSPENDED);
        }
        out.extend_from_slice(&self.document);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let id = uuid::Uuid::from_slice(key).map_err(|error| DecodeError(error.to_string()))?;
        let (document, suspended) = match value.strip_prefix(&[SUSPENDED]) {
            Some(document) => (document, true),
            None => (value, false),
        };
        Ok(Self {
            id,
            document: Bytes::copy_from_slice(document),
            suspended,
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
