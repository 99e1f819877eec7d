//! When something is due for an association: written with the association, so that it is known whichever process does it. No IO.

use std::fmt::Debug;
use std::marker::PhantomData;

use serde_json::Value;
use store::{DecodeError, Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

use super::{Association, AssociationId, ue_policy};

/// What is due for an association, for one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due<P> {
    /// The association; the key of the record.
    pub id: AssociationId,
    /// When, in milliseconds since 1970.
    pub due: u64,
    /// What is due.
    pub purpose: PhantomData<P>,
}

/// What is due.
pub trait Purpose: Copy + Debug + Eq + 'static {
    /// The table of its times.
    const TABLE: &'static TableSchema;

    /// When it is due for an association, in milliseconds since 1970; `None`: it is not.
    fn due(association: &Association) -> Option<u64>;
}

/// Subscriptions to the data of a subscriber are to be renewed, or sought again.
pub type Renewal = Due<Subscriptions>;
/// A UE policy is in flight to its UE.
pub type DeliveryDue = Due<UePolicies>;

/// The purpose of [`Renewal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subscriptions {}

impl Purpose for Subscriptions {
    const TABLE: &'static TableSchema = &table("pcf_renewal");

    fn due(association: &Association) -> Option<u64> {
        association.rooms.get("pds")?.get("due").and_then(Value::as_u64)
    }
}

/// The purpose of [`DeliveryDue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UePolicies {}

impl Purpose for UePolicies {
    const TABLE: &'static TableSchema = &table("pcf_ue_policy_due");

    fn due(association: &Association) -> Option<u64> {
        ue_policy::due(association)
    }
}

const fn table(name: &'static str) -> TableSchema {
    const DUE: &[IndexSchema] = &[IndexSchema::many("due").ordered()];
    TableSchema {
        name,
        indexes: DUE,
        by_modified: false,
        sql: None,
    }
}

impl<P: Purpose> Due<P> {
    /// By the time at which they are due.
    pub const DUE: Index = Index(0);

    /// What an association says; `None`: nothing is due.
    #[must_use]
    pub fn of(association: &Association) -> Option<Self> {
        Some(Self {
            id: association.id,
            due: P::due(association)?,
            purpose: PhantomData,
        })
    }
}

impl<P: Purpose> Record for Due<P> {
    const TABLE: &'static TableSchema = P::TABLE;

    fn key(&self) -> Key {
        Key::from_slice(&self.id.0)
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Self::DUE, &self.due.to_be_bytes());
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.due.to_be_bytes());
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let wrong = |_| DecodeError("a key of 16 bytes and a time of 8 are expected".to_owned());
        Ok(Self {
            id: AssociationId(key.try_into().map_err(wrong)?),
            due: u64::from_be_bytes(value.try_into().map_err(wrong)?),
            purpose: PhantomData,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut association = Association::new(Kind::Sm, json!({}));
        assert_eq!(Renewal::of(&association), None);
        association.rooms.insert("pds".to_owned(), json!({"due": 7}));
        let renewal = Renewal::of(&association).unwrap();
        let mut bytes = Vec::new();
        renewal.encode(&mut bytes);
        assert_eq!(Renewal::decode(&renewal.key(), &bytes), Ok(renewal));
        assert!(Renewal::decode(b"short", &bytes).is_err());
        assert_eq!(DeliveryDue::of(&association), None);
    }
}
