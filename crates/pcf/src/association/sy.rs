//! The Sy session of a subscriber (TS 29.219 §4.1), which all of its sessions share: who has it, and the counters as the OCS
//! has reported them last. No IO.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{DecodeError, IndexKeys, Key, Record, TableSchema};

use super::{AssociationId, address};

/// Sessions that a record names at most; those beyond it are found by the name of the Sy session.
const MOST: usize = 256;

/// A Sy session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SySession {
    /// Session-Id.
    pub session_id: String,
    /// Origin-Host of the OCS.
    pub host: String,
    /// Origin-Realm of the OCS.
    pub realm: String,
    /// The counters that were asked for; none: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
}

/// A session that shares the Sy session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its identity.
    pub id: String,
    /// When it joined, in milliseconds since 1970.
    pub since: i64,
}

/// The Sy session of a subscriber, as the store keeps it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SyShare {
    /// SUPI; the key of the record.
    pub subscriber: String,
    /// The session.
    pub session: SySession,
    /// `PolicyCounterInfo` by identifier.
    pub counters: Map<String, Value>,
    /// Another one after each change of the counters, from 1.
    pub serial: u64,
    /// The sessions that share it.
    pub members: Vec<Member>,
}

impl SyShare {
    /// The key of a subscriber's record.
    #[must_use]
    pub fn key_of(subscriber: &str) -> Key {
        address::text_key(subscriber)
    }

    /// A session shares it from now on.
    pub fn join(&mut self, id: AssociationId, now: i64) {
        if self.members.len() < MOST {
            let id = id.to_string();
            self.members.push(Member { id, since: now });
        }
    }

    /// A session shares it no more. Others stay that `live` names, or that have joined after `recent` and are about to be
    /// stored.
    pub fn leave(&mut self, id: AssociationId, live: &[AssociationId], recent: i64) {
        let own = id.to_string();
        let live: Vec<String> = live.iter().map(ToString::to_string).collect();
        self.members
            .retain(|member| member.id != own && (member.since >= recent || live.contains(&member.id)));
    }
}

impl Record for SyShare {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "pcf_sy",
        indexes: &[],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Self::key_of(&self.subscriber)
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn encode(&self, out: &mut Vec<u8>) {
        // Values of serde_json and texts: what cannot fail to be JSON.
        out.extend(serde_json::to_vec(self).unwrap_or_default());
    }

    fn decode(_: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        serde_json::from_slice(value).map_err(|error| DecodeError(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_session_leaves_nobody_but_those_that_are_about_to_be_stored() {
        let id = |number| AssociationId([number; 16]);
        let mut share = SyShare::default();
        for (number, since) in [(1, 10), (2, 10), (3, 90), (4, 10)] {
            share.join(id(number), since);
        }
        // 2 lives, 3 is being created, 4 never came to be.
        share.leave(id(1), &[id(2)], 50);
        let left: Vec<i64> = share.members.iter().map(|member| member.since).collect();
        assert_eq!(left, [10, 90]);
        share.leave(id(3), &[], 50);
        assert!(share.members.is_empty());
        for number in 0..=255 {
            share.join(id(number), 1);
        }
        share.join(id(0), 1);
        assert_eq!(share.members.len(), MOST);
        let mut bytes = Vec::new();
        share.encode(&mut bytes);
        assert_eq!(SyShare::decode(b"", &bytes), Ok(share));
    }
}
