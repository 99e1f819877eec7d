//! What is not confirmed yet, RARs of PCEFs, notifications of SMFs and AMFs and messages to AFs: written with the change that it is about,
//! so that it is repeated when the process ends that was to send it, or the consumer is away for long. No IO.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{DecodeError, Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

use super::af_message::AfMessage;
use super::{AssociationId, repetition};

/// A RAR or notification that is not confirmed.
#[derive(Clone, Debug, PartialEq)]
pub struct Unconfirmed {
    /// When another process takes it up, in milliseconds since 1970: after all attempts of the first one.
    pub due: u64,
    /// The session.
    pub id: AssociationId,
    /// What distinguishes it from others of the session.
    pub number: u64,
    /// Entries (`pccRules`, `umDecs`) that it removes; of a notification all of its nulls.
    pub removed: Value,
    /// How often it was taken up.
    pub taken: u32,
    /// The cause for which the consumer is to end the association; it is confirmed by that end.
    pub release: Option<String>,
    /// A message to an AF; `None`: it is to the consumer.
    pub af: Option<AfMessage>,
}

/// The form of a record in bytes; the rest is its key.
#[derive(Serialize, Deserialize)]
struct Body {
    due: u64,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    removed: Value,
    #[serde(default, skip_serializing_if = "is_zero")]
    taken: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    release: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    af: Option<AfMessage>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Unconfirmed {
    /// By the time at which they are due.
    pub const DUE: Index = Index(0);

    /// A request to end an association, for a cause of `SmPolicyAssociationReleaseCause` or its kin: one for each cause.
    #[must_use]
    pub fn release(id: AssociationId, cause: &str, due: u64) -> Self {
        Self {
            due,
            id,
            number: repetition::hash(cause.bytes()),
            removed: Value::Null,
            taken: 0,
            release: Some(cause.to_owned()),
            af: None,
        }
    }

    /// Its key.
    #[must_use]
    pub fn key_of(id: AssociationId, number: u64) -> Key {
        let mut key = Key::from_slice(&id.0);
        key.extend_from_slice(&number.to_be_bytes());
        key
    }
}

impl Record for Unconfirmed {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_unconfirmed",
        indexes: &[IndexSchema::many("due").ordered()],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Self::key_of(self.id, self.number)
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Self::DUE, &self.due.to_be_bytes());
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let body = Body {
            due: self.due,
            removed: self.removed.clone(),
            taken: self.taken,
            release: self.release.clone(),
            af: self.af.clone(),
        };
        // Values of serde_json: what cannot fail to be JSON.
        out.extend(serde_json::to_vec(&body).unwrap_or_default());
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let wrong = || {
            DecodeError(format!(
                "a key of 24 bytes is expected, this one has {}",
                key.len()
            ))
        };
        let (id, number) = key.split_first_chunk::<16>().ok_or_else(wrong)?;
        let number = <[u8; 8]>::try_from(number).map_err(|_| wrong())?;
        let body: Body = serde_json::from_slice(value).map_err(|error| DecodeError(error.to_string()))?;
        Ok(Self {
            due: body.due,
            id: AssociationId(*id),
            number: u64::from_be_bytes(number),
            removed: body.removed,
            taken: body.taken,
            release: body.release,
            af: body.af,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::af_message::AfInterface;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let one = Unconfirmed {
            due: 300,
            id: AssociationId([7; 16]),
            number: 9,
            removed: json!({"pccRules": {"a": {}}}),
            taken: 3,
            release: Some("UE_SUBSCRIPTION".to_owned()),
            af: Some(AfMessage {
                session: "7".to_owned(),
                ends: true,
                by: AfInterface::Rx("pcscf.example".to_owned(), "AQAA".to_owned()),
            }),
        };
        let mut bytes = Vec::new();
        one.encode(&mut bytes);
        assert_eq!(Unconfirmed::decode(&one.key(), &bytes), Ok(one.clone()));
        assert!(Unconfirmed::decode(b"short", &bytes).is_err());
    }

    #[test]
    fn an_association_has_one_request_to_end_it_for_a_cause() {
        let release = |cause: &str, due: u64| Unconfirmed::release(AssociationId([7; 16]), cause, due);
        assert_eq!(
            release("UE_SUBSCRIPTION", 1).key(),
            release("UE_SUBSCRIPTION", 2).key()
        );
        assert_ne!(
            release("UE_SUBSCRIPTION", 1).key(),
            release("UNSPECIFIED", 1).key()
        );
    }
}
