//! What the members of a cluster write for one another.

use bytes::Bytes;
use model::NfInstanceId;
use serde::{Deserialize, Serialize};
use store::{DecodeError, IndexKeys, Record, TableSchema};
use uuid::Uuid;

/// Whose state a change is about: changes of one key follow each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// An NF instance.
    Nf(NfInstanceId),
    /// A subscription.
    Subscription(String),
}

/// An entry of the journal: this NF instance or subscription has changed. Its version is that of the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangeRecord {
    pub(crate) key: Key,
    /// It was removed; of an NF instance its last profile.
    pub(crate) removed: Option<Bytes>,
}

/// Whether a member takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Standing {
    /// It does.
    Active,
    /// It has stopped.
    Left,
    /// Another member found its record standing still.
    Dead,
}

/// A running NRF. Each start is a member of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MemberRecord {
    #[serde(skip)]
    pub(crate) id: Uuid,
    /// `nfInstanceId` of the NRF.
    pub(crate) instance: String,
    /// Root of its URIs.
    pub(crate) root: String,
    /// From which moment on it owns subscriptions and instances, in microseconds since 1970.
    pub(crate) since: u64,
    /// Subscribers have been notified of all changes up to this moment that it had to notify of.
    pub(crate) delivered: u64,
    /// How many records of beats it has written; the last ones are stored.
    pub(crate) beats: u64,
    pub(crate) standing: Standing,
}

/// A heart-beat that another member received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Beat {
    pub(crate) id: NfInstanceId,
    /// When, in microseconds since 1970.
    pub(crate) at: u64,
    pub(crate) load: Option<u8>,
    pub(crate) load_time_stamp: Option<Box<str>>,
}

/// Heart-beats that a member received between two polls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BeatRecord {
    pub(crate) member: Uuid,
    /// Its number, from 1. It replaces the one [`SLOTS`](Self::SLOTS) before it.
    pub(crate) number: u64,
    pub(crate) beats: Vec<Beat>,
}

const CHANGES: TableSchema = TableSchema {
    name: "nrf_changes",
    indexes: &[],
    by_modified: true,
    sql: None,
};
const MEMBERS: TableSchema = TableSchema {
    name: "nrf_members",
    indexes: &[],
    by_modified: false,
    sql: None,
};
const BEATS: TableSchema = TableSchema {
    name: "nrf_beats",
    indexes: &[],
    by_modified: true,
    sql: None,
};

const NF: u8 = b'n';
const SUBSCRIPTION: u8 = b's';

impl Key {
    fn encode(&self) -> store::Key {
        let (kind, id) = match self {
            Self::Nf(id) => (NF, &id.0.as_bytes()[..]),
            Self::Subscription(id) => (SUBSCRIPTION, id.as_bytes()),
        };
        let mut key = store::Key::from_slice(&[kind]);
        key.extend_from_slice(id);
        key
    }

    fn decode(key: &[u8]) -> Option<Self> {
        let (kind, id) = key.split_first()?;
        match *kind {
            NF => Some(Self::Nf(NfInstanceId(Uuid::from_slice(id).ok()?))),
            SUBSCRIPTION => Some(Self::Subscription(String::from_utf8(id.to_vec()).ok()?)),
            _ => None,
        }
    }
}

impl ChangeRecord {
    /// The key of the entry about this.
    pub(crate) fn key_of(key: &Key) -> store::Key {
        key.encode()
    }
}

impl Record for ChangeRecord {
    const TABLE: &'static TableSchema = &CHANGES;

    fn key(&self) -> store::Key {
        self.key.encode()
    }

    fn index(&self, _keys: &mut IndexKeys) {}

    fn encode(&self, out: &mut Vec<u8>) {
        if let Some(last) = &self.removed {
            out.push(1);
            out.extend_from_slice(last);
        } else {
            out.push(0);
        }
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let read = || {
            let removed = match value.split_first()? {
                (0, _) => None,
                (1, last) => Some(Bytes::copy_from_slice(last)),
                _ => return None,
            };
            let key = Key::decode(key)?;
            Some(Self { key, removed })
        };
        read().ok_or_else(|| DecodeError("not an entry of the journal".to_owned()))
    }
}

impl Record for MemberRecord {
    const TABLE: &'static TableSchema = &MEMBERS;

    fn key(&self) -> store::Key {
        store::Key::from_slice(self.id.as_bytes())
    }

    fn index(&self, _keys: &mut IndexKeys) {}

    fn encode(&self, out: &mut Vec<u8>) {
        // Texts and numbers: what cannot fail to be JSON.
        out.extend(serde_json::to_vec(self).unwrap_or_default());
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let fault = |error: &dyn std::fmt::Display| DecodeError(error.to_string());
        let id = Uuid::from_slice(key).map_err(|error| fault(&error))?;
        let record: Self = serde_json::from_slice(value).map_err(|error| fault(&error))?;
        Ok(Self { id, ..record })
    }
}

impl BeatRecord {
    /// How many records a member keeps: what another member can be late by.
    pub(crate) const SLOTS: u64 = 64;
    /// Most heart-beats of a record; more wait for the next one.
    pub(crate) const LARGEST: usize = 20_000;

    /// The key of the record of this number.
    pub(crate) fn key_of(member: Uuid, number: u64) -> store::Key {
        let mut key = store::Key::from_slice(member.as_bytes());
        key.extend_from_slice(&(number % Self::SLOTS).to_be_bytes());
        key
    }
}

/// Says that a beat has no load.
const NO_LOAD: u8 = u8::MAX;

impl Record for BeatRecord {
    const TABLE: &'static TableSchema = &BEATS;

    fn key(&self) -> store::Key {
        Self::key_of(self.member, self.number)
    }

    fn index(&self, _keys: &mut IndexKeys) {}

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.to_be_bytes());
        for beat in &self.beats {
            out.extend_from_slice(beat.id.0.as_bytes());
            out.extend_from_slice(&beat.at.to_be_bytes());
            out.push(beat.load.unwrap_or(NO_LOAD));
            // A date and time; a longer text was refused when the heart-beat came.
            let stamp = beat.load_time_stamp.as_deref().unwrap_or_default();
            let stamp = if stamp.len() <= usize::from(u8::MAX) {
                stamp
            } else {
                ""
            };
            out.push(stamp.len() as u8);
            out.extend_from_slice(stamp.as_bytes());
        }
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let read = || {
            let (member, _) = key.split_first_chunk::<16>()?;
            let (number, mut rest) = value.split_first_chunk::<8>()?;
            let mut beats = Vec::new();
            while let Some((id, more)) = rest.split_first_chunk::<16>() {
                let (at, more) = more.split_first_chunk::<8>()?;
                let ([load, length], more) = more.split_first_chunk::<2>()?;
                let (stamp, more) = more.split_at_checked(usize::from(*length))?;
                let stamp = std::str::from_utf8(stamp).ok()?;
                beats.push(Beat {
                    id: NfInstanceId(Uuid::from_bytes(*id)),
                    at: u64::from_be_bytes(*at),
                    load: (*load != NO_LOAD).then_some(*load),
                    load_time_stamp: (!stamp.is_empty()).then(|| stamp.into()),
                });
                rest = more;
            }
            rest.is_empty().then(|| Self {
                member: Uuid::from_bytes(*member),
                number: u64::from_be_bytes(*number),
                beats,
            })
        };
        read().ok_or_else(|| DecodeError("not a record of heart-beats".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn again<T: Record>(record: &T) -> T {
        let mut value = Vec::new();
        record.encode(&mut value);
        T::decode(&record.key(), &value).unwrap()
    }

    fn id(number: u128) -> NfInstanceId {
        NfInstanceId(Uuid::from_u128(number))
    }

    proptest! {
        #[test]
        fn changes_are_read_as_they_were_written(nf in any::<bool>(), number in any::<u128>(), name in "[a-z0-9-]{1,40}", removed in any::<Option<Vec<u8>>>()) {
            let key = if nf { Key::Nf(id(number)) } else { Key::Subscription(name) };
            let record = ChangeRecord { key, removed: removed.map(Bytes::from) };
            prop_assert_eq!(again(&record), record);
        }

        #[test]
        fn beats_are_read_as_they_were_written(member in any::<u128>(), number in any::<u64>(), all in prop::collection::vec((any::<u128>(), any::<u64>(), prop::option::of(0u8..=100), prop::option::of("[0-9TZ:.-]{1,40}")), 0..20)) {
            let beats = all.into_iter().map(|(number, at, load, stamp)| Beat { id: id(number), at, load, load_time_stamp: stamp.map(Into::into) });
            let record = BeatRecord { member: Uuid::from_u128(member), number, beats: beats.collect() };
            prop_assert_eq!(again(&record), record);
        }

        #[test]
        fn foreign_bytes_are_refused_without_a_panic(key in any::<Vec<u8>>(), value in any::<Vec<u8>>()) {
            let _ = ChangeRecord::decode(&key, &value);
            let _ = BeatRecord::decode(&key, &value);
            let _ = MemberRecord::decode(&key, &value);
        }
    }

    #[test]
    fn members_are_read_as_they_were_written() {
        let record = MemberRecord {
            id: Uuid::from_u128(7),
            instance: "4947a69a-f61b-4bc1-b9da-47c9c5d14b64".to_owned(),
            root: "http://nrf-1:8010".to_owned(),
            since: 1,
            delivered: 2,
            beats: 3,
            standing: Standing::Dead,
        };
        assert_eq!(again(&record), record);
    }
}
