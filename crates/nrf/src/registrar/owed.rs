//! Changes that are durable and of which subscribers may not have been notified (TS 29.510 §5.2.2.6, TS 23.527 §6): an NRF
//! that dies in between notifies of them at its next start. NRFs of a cluster have a journal of their own.
//!
//! The batch of a change puts the mark, the end of its notifications takes it away. A notification that was delivered just
//! before the end is delivered again: the present state, which a subscriber may get any number of times.

use std::collections::VecDeque;
use std::sync::Arc;

use ahash::AHashMap;
use bytes::Bytes;
use model::NfInstanceId;
use registry::Entry;
use store::{Batch, Condition, DecodeError, IndexKeys, Record, Scan, Table, TableSchema};
use time::OffsetDateTime;

use super::{AMPLE, Key, Registrar};

/// Marks whose end is awaited at most. The marks of further changes stay until the next start.
const AWAITED: usize = 100_000;
/// Marks that are taken away in one batch at most.
const ENDED: usize = 256;

/// The mark of a change: this NF instance has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwedRecord {
    id: NfInstanceId,
    /// It was removed: its last profile.
    removed: Option<Bytes>,
}

impl Record for OwedRecord {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "nrf_owed",
        indexes: &[],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> store::Key {
        store::Key::from_slice(self.id.0.as_bytes())
    }

    fn index(&self, _keys: &mut IndexKeys) {}

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.removed.as_deref().unwrap_or_default());
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        let id = uuid::Uuid::from_slice(key).map_err(|error| DecodeError(error.to_string()))?;
        Ok(Self {
            id: NfInstanceId(id),
            removed: (!value.is_empty()).then(|| Bytes::copy_from_slice(value)),
        })
    }
}

/// The marks of this NRF.
pub(super) struct Owed {
    table: Table<OwedRecord>,
    /// Instances with a mark, with the number of the last notification that was pushed for their change.
    awaited: VecDeque<(u64, NfInstanceId)>,
    /// The last of them by instance: a later change takes the mark over.
    last: AHashMap<NfInstanceId, u64>,
}

impl Owed {
    pub(super) fn new(table: Table<OwedRecord>) -> Self {
        Self {
            table,
            awaited: VecDeque::new(),
            last: AHashMap::new(),
        }
    }
}

impl Registrar {
    /// Adds the mark to the batch of a change. `removed` is the last profile of an instance.
    pub(super) fn owe(&self, batch: &mut Batch, key: &Key, removed: Option<Bytes>) {
        if let (Some(owed), Key::Nf(id)) = (&self.owed, key)
            && !self.book.is_empty()
        {
            let record = OwedRecord { id: *id, removed };
            batch.put(&owed.table, &record, Condition::Always);
        }
    }

    /// The notifications of a change were pushed.
    pub(super) fn pushed(&mut self, id: NfInstanceId) {
        let pushed = self.notify.pushed();
        let owes = !self.book.is_empty();
        if let Some(owed) = self
            .owed
            .as_mut()
            .filter(|owed| owes && owed.awaited.len() < AWAITED)
        {
            owed.awaited.push_back((pushed, id));
            owed.last.insert(id, pushed);
        }
    }

    /// Takes marks away whose notifications have ended.
    pub(super) fn settle_owed(&mut self) {
        let ended = self.notify.settled();
        let Some(owed) = &mut self.owed else { return };
        let mut batch = Batch::default();
        let mut left = ENDED;
        while let Some((pushed, id)) = owed
            .awaited
            .pop_front_if(|(pushed, _)| left > 0 && *pushed <= ended)
        {
            // A change that is in flight has put its mark, or will.
            if owed.last.get(&id) != Some(&pushed) || self.busy.contains_key(&Key::Nf(id)) {
                continue;
            }
            owed.last.remove(&id);
            batch.delete(&owed.table, id.0.as_bytes(), Condition::Always);
            left -= 1;
        }
        if left < ENDED {
            // One that stays after a failure is owed at the next start.
            drop(self.store.commit(batch));
        }
    }

    /// Notifies of the changes whose marks the last run has left.
    pub(super) async fn pay_owed(&mut self) -> Result<(), store::Error> {
        let Some(owed) = &self.owed else { return Ok(()) };
        let table = owed.table.clone();
        let (snapshot, now) = (self.published.load_full(), OffsetDateTime::now_utc());
        let mut next = Some(Scan::all(256));
        while let Some(scan) = next {
            let page = table.scan(&scan).await?;
            for record in &page.records {
                let present = snapshot.get(&record.id);
                let last = match (present, &record.removed) {
                    (Some(entry), _) => Some(entry.clone()),
                    (None, Some(text)) => Entry::parse_within(text, AMPLE, |_| 0).ok().map(Arc::new),
                    (None, None) => None,
                };
                let instance = record.id.to_string();
                let concerned = self
                    .book
                    .iter()
                    .filter(|one| last.as_ref().is_some_and(|last| one.concerns(&last.profile)));
                for one in concerned {
                    if let Some(notification) =
                        self.book.present(&one.id, &instance, present, &self.root, now)
                    {
                        self.notify.push(notification);
                    }
                }
                self.pushed(record.id);
            }
            next = page.next;
        }
        Ok(())
    }
}
