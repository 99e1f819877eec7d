//! The binding of a session at the BSF: where it is and which addresses it has. Written when the BSF has answered, without the
//! association, and deleted in the batch that deletes that. No IO.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{DecodeError, IndexKeys, Key, Record, TableSchema};

use super::{Association, AssociationId};

/// The room of an association in which earlier releases kept its binding.
const ROOM: &str = "bsf";

/// What the BSF has of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionBinding {
    /// The session; the key of the record.
    #[serde(skip, default = "nil")]
    pub id: AssociationId,
    /// The URI of the binding. Absent: it was removed, since the session has no address; that is another statement than no record,
    /// with which what an earlier release has kept counts.
    #[serde(rename = "binding", default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The members of the binding that follow the session.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub addresses: Map<String, Value>,
}

fn nil() -> AssociationId {
    AssociationId([0; 16])
}

impl SessionBinding {
    /// The binding that an earlier release has kept in an association.
    #[must_use]
    pub fn of_earlier_release(association: &Association) -> Option<Self> {
        let room = association.rooms.get(ROOM)?;
        Some(Self {
            id: association.id,
            uri: Some(room.get("binding")?.as_str()?.to_owned()),
            addresses: room
                .get("addresses")
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default(),
        })
    }
}

impl Record for SessionBinding {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_binding",
        indexes: &[],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&self.id.0)
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn encode(&self, out: &mut Vec<u8>) {
        // Texts and values of serde_json: what cannot fail to be JSON.
        out.extend(serde_json::to_vec(self).unwrap_or_default());
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let id = key
            .try_into()
            .map_err(|_| DecodeError("a key of 16 bytes is expected".to_owned()))?;
        let binding: Self = serde_json::from_slice(value).map_err(|error| DecodeError(error.to_string()))?;
        Ok(Self {
            id: AssociationId(id),
            ..binding
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_record_is_read_as_it_was_written_and_that_of_an_earlier_release_too() {
        let mut association = Association::new(Kind::Sm, json!({}));
        assert_eq!(SessionBinding::of_earlier_release(&association), None);
        let room = json!({"binding": "http://bsf/1", "addresses": {"ipv4Addr": "10.0.0.1"}});
        association.rooms.insert(ROOM.to_owned(), room);
        let binding = SessionBinding::of_earlier_release(&association).unwrap();
        let none = SessionBinding {
            uri: None,
            addresses: Map::new(),
            ..binding
        };
        for one in [binding, none] {
            let mut bytes = Vec::new();
            one.encode(&mut bytes);
            assert_eq!(SessionBinding::decode(&one.key(), &bytes), Ok(one));
        }
        assert!(SessionBinding::decode(b"short", b"{}").is_err());
        assert!(SessionBinding::decode(&[0; 16], b"[1").is_err());
    }
}
