//! Changes that are durable and of which subscribers may not have been notified (TS 29.521 §4.2.8, TS 23.527 §6): a BSF on the
//! embedded store that dies in between notifies of them at its next start.
//!
//! The batch of a change puts a mark, the end of its notifications takes it away. A notification that was delivered just before the
//! end is delivered again: the present state, which a subscriber may get any number of times.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use parking_lot::Mutex;
use store::{DecodeError, IndexKeys, Key, Record, TableSchema};

use crate::binding::{BindingId, Document, PcfBinding, UeBinding};

/// Marks whose end is awaited at most. The marks of further changes stay until the next start.
const AWAITED: usize = 100_000;
/// Marks that are taken away in a round at most.
const ENDED: usize = 1_000;

/// What a removed binding was of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Session = 1,
    Ue = 2,
}

/// The mark of a change: this binding has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwedRecord {
    pub(crate) id: BindingId,
    /// It was removed: its last representation.
    pub(crate) removed: Option<(Kind, Bytes)>,
}

impl OwedRecord {
    /// The binding is there.
    pub(crate) fn present(id: BindingId) -> Self {
        Self { id, removed: None }
    }

    /// The binding of a session is removed.
    pub(crate) fn of_session(binding: &PcfBinding) -> Self {
        Self::removed(Kind::Session, &binding.0)
    }

    /// The binding of a UE is removed.
    pub(crate) fn of_ue(binding: &UeBinding) -> Self {
        Self::removed(Kind::Ue, &binding.0)
    }

    fn removed(kind: Kind, document: &Document) -> Self {
        Self {
            id: document.id,
            removed: Some((kind, document.text().clone())),
        }
    }
}

impl Record for OwedRecord {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "bsf_owed",
        indexes: &[],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&self.id.0)
    }

    fn index(&self, _keys: &mut IndexKeys) {}

    fn encode(&self, out: &mut Vec<u8>) {
        if let Some((kind, text)) = &self.removed {
            out.push(*kind as u8);
            out.extend_from_slice(text);
        }
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let id = key
            .try_into()
            .map_err(|_| DecodeError("not an identity".to_owned()))?;
        let removed = match value.split_first() {
            None => None,
            Some((1, text)) => Some((Kind::Session, Bytes::copy_from_slice(text))),
            Some((2, text)) => Some((Kind::Ue, Bytes::copy_from_slice(text))),
            Some(_) => return Err(DecodeError("a mark of another release".to_owned())),
        };
        Ok(Self {
            id: BindingId(id),
            removed,
        })
    }
}

/// The marks whose notifications are pushed and not ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owed(Arc<Mutex<VecDeque<Awaited>>>);

/// A change whose notifications are pushed.
#[derive(Debug)]
pub(crate) struct Awaited {
    /// The number of the last notification that was pushed.
    pushed: u64,
    pub(crate) id: BindingId,
    /// When it was pushed, in microseconds since 1970: a mark that is more recent is that of a later change.
    pub(crate) at: u64,
}

impl Owed {
    /// The notifications of a change were pushed.
    pub(crate) fn pushed(&self, pushed: u64, id: BindingId) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let at = now.map_or(0, |now| u64::try_from(now.as_micros()).unwrap_or(u64::MAX));
        let mut awaited = self.0.lock();
        if awaited.len() < AWAITED {
            awaited.push_back(Awaited { pushed, id, at });
        }
    }

    /// Changes whose notifications have ended, without those of which a later change is awaited.
    pub(crate) fn ended(&self, settled: u64) -> Vec<Awaited> {
        let mut awaited = self.0.lock();
        let count = awaited
            .iter()
            .take(ENDED)
            .take_while(|one| one.pushed <= settled)
            .count();
        let ended: Vec<Awaited> = awaited.drain(..count).collect();
        let is_last = |one: &Awaited| !awaited.iter().take(ENDED).any(|later| later.id == one.id);
        ended.into_iter().filter(is_last).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn marks_come_back_as_they_were_written() {
        let document = Document::new(BindingId([7; 16]), json!({"supi": "imsi-1"}), true);
        let marks = [
            OwedRecord::present(BindingId([7; 16])),
            OwedRecord::of_session(&PcfBinding(document.clone())),
            OwedRecord::of_ue(&UeBinding(document)),
        ];
        for mark in marks {
            let mut out = Vec::new();
            mark.encode(&mut out);
            assert_eq!(OwedRecord::decode(&mark.key(), &out).unwrap(), mark);
        }
        assert!(OwedRecord::decode(&[7; 16], b"\x09{}").is_err());
        assert!(OwedRecord::decode(b"short", b"").is_err());
    }

    #[test]
    fn a_mark_ends_with_the_last_change_of_its_binding() {
        let owed = Owed::default();
        let [one, other] = [1, 2].map(|number| BindingId([number; 16]));
        for (pushed, id) in [(1, one), (2, other), (5, one)] {
            owed.pushed(pushed, id);
        }
        let ended = |settled| -> Vec<BindingId> { owed.ended(settled).iter().map(|one| one.id).collect() };
        assert_eq!(ended(0), []);
        // A later change of the first one is awaited.
        assert_eq!(ended(3), [other]);
        assert_eq!(ended(5), [one]);
        assert_eq!(ended(9), []);
    }
}
