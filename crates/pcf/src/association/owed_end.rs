//! What an association that has ended leaves behind at other functions: subscriptions, and its binding. Written in the batch that deletes it, so
//! that another process removes what the first one has not. No IO.

use serde::{Deserialize, Serialize};
use store::{DecodeError, Index, IndexKeys, IndexSchema, Key, Record, TableSchema};

use super::{Association, AssociationId, repetition, ue_policy};

/// Who has a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Owner {
    /// A binding (TS 29.521).
    Bsf,
    /// A subscription to policy data (TS 29.519).
    Udr,
    /// A subscription to policy counters (TS 29.594).
    Chf,
    /// A subscription to messages of a UE (TS 29.518).
    Amf,
}

/// A resource that is to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwedEnd {
    /// The association that it was made for.
    pub id: AssociationId,
    /// Who has it.
    pub owner: Owner,
    /// The PCF that removes it, as a number of its instance.
    pub by: u64,
    /// Its URI.
    pub uri: String,
    /// When it is attempted again, in milliseconds since 1970.
    pub due: u64,
    /// Attempts that were made of what was due.
    pub taken: u32,
}

/// The form of a record in bytes; the rest is its key.
#[derive(Serialize, Deserialize)]
struct Body {
    by: u64,
    uri: String,
    due: u64,
    #[serde(default)]
    taken: u32,
}

impl OwedEnd {
    /// By the PCF that removes it, and the time at which it is due.
    pub const DUE: Index = Index(0);

    /// Those of an association that ends, with the URI of its binding.
    pub fn of(
        association: &Association,
        binding: Option<String>,
        (by, due): (u64, u64),
    ) -> impl Iterator<Item = Self> {
        let room = association.rooms.get("pds");
        let held = |name: &str| room?.get(name)?.as_str().map(str::to_owned);
        let amf = ue_policy::Delivery::of(association).and_then(|delivery| delivery.subscription);
        let all = [
            (Owner::Bsf, binding),
            (Owner::Udr, held("udr")),
            (Owner::Chf, held("chf")),
            (Owner::Amf, amf),
        ];
        let id = association.id;
        all.into_iter().filter_map(move |(owner, uri)| {
            let uri = uri?;
            let taken = 0;
            Some(Self {
                id,
                owner,
                by,
                uri,
                due,
                taken,
            })
        })
    }

    /// The number of an instance.
    #[must_use]
    pub fn number_of(instance: &str) -> u64 {
        repetition::hash(instance.bytes())
    }

    /// The keys of an instance in [`Self::DUE`] until a time.
    #[must_use]
    pub fn until(by: u64, due: u64) -> ([u8; 16], [u8; 16]) {
        let key = |due: u64| {
            let mut key = [0; 16];
            key[..8].copy_from_slice(&by.to_be_bytes());
            key[8..].copy_from_slice(&due.to_be_bytes());
            key
        };
        (key(0), key(due))
    }
}

impl Record for OwedEnd {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_owed_end",
        indexes: &[IndexSchema::many("due").ordered()],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        let mut key = Key::from_slice(&self.id.0);
        key.push(match self.owner {
            Owner::Bsf => 0,
            Owner::Udr => 1,
            Owner::Chf => 2,
            Owner::Amf => 3,
        });
        key
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Self::DUE, &Self::until(self.by, self.due).1);
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let body = Body {
            by: self.by,
            uri: self.uri.clone(),
            due: self.due,
            taken: self.taken,
        };
        // Texts and numbers: what cannot fail to be JSON.
        out.extend(serde_json::to_vec(&body).unwrap_or_default());
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let wrong = || {
            DecodeError(format!(
                "a key of 17 bytes is expected, this one has {}",
                key.len()
            ))
        };
        let (id, owner) = key.split_first_chunk::<16>().ok_or_else(wrong)?;
        let body: Body = serde_json::from_slice(value).map_err(|error| DecodeError(error.to_string()))?;
        Ok(Self {
            id: AssociationId(*id),
            owner: match owner {
                [0] => Owner::Bsf,
                [1] => Owner::Udr,
                [2] => Owner::Chf,
                [3] => Owner::Amf,
                _ => return Err(wrong()),
            },
            by: body.by,
            uri: body.uri,
            due: body.due,
            taken: body.taken,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;
    use serde_json::json;

    #[test]
    fn each_resource_of_an_association_has_its_record() {
        let mut association = Association::new(Kind::Sm, json!(null));
        association.rooms.insert(
            "pds".to_owned(),
            json!({"udr": "http://u/1", "chf": "http://c/2"}),
        );
        let binding = Some("http://b/3".to_owned());
        let all: Vec<OwedEnd> = OwedEnd::of(&association, binding, (7, 9)).collect();
        let uris: Vec<&str> = all.iter().map(|one| one.uri.as_str()).collect();
        assert_eq!(uris, ["http://b/3", "http://u/1", "http://c/2"]);
        for one in &all {
            let mut bytes = Vec::new();
            one.encode(&mut bytes);
            assert_eq!(OwedEnd::decode(&one.key(), &bytes), Ok(one.clone()));
        }
        assert!(OwedEnd::decode(b"short", b"{}").is_err());
        let (from, to) = OwedEnd::until(7, 9);
        assert!(from < to && to < OwedEnd::until(8, 0).0);
    }
}
