//! When the subscriptions of an association to the data of its subscriber are to be renewed, or sought again: written with the
//! association, so that it is known whichever process does it. No IO.

use serde_json::Value;
use store::{DecodeError, Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

use super::{Association, AssociationId};

/// What is due for an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The association; the key of the record.
    pub id: AssociationId,
    /// When, in milliseconds since 1970.
    pub due: u64,
}

impl Renewal {
    /// By the time at which they are due.
    pub const DUE: Index = Index(0);

    /// What an association says; `None`: nothing is due.
    #[must_use]
    pub fn of(association: &Association) -> Option<Self> {
        let due = association.rooms.get("pds")?.get("due").and_then(Value::as_u64)?;
        Some(Self {
            id: association.id,
            due,
        })
    }
}

impl Record for Renewal {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_renewal",
        indexes: &[IndexSchema::many("due").ordered()],
        by_modified: false,
        sql: None,
    };

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
    }
}
