//! Unique keys of records whose lifetime is over. Reads leave such a record out before the sweep has removed it, so it must not
//! keep a key from another record either.
//!
//! Engines judge the lifetime of the records that a batch names, and of no others. The conflict about a unique key is therefore
//! checked here, and the batch is repeated with the removal of the expired holder, provided that the holder is still the
//! version that was checked.

use super::Store;
use super::table::{has_expired, record_of};
use crate::batch::{Batch, Change, Condition, Lifetime, Operation};
use crate::engine::Row;
use crate::error::{Conflict, Error};
use crate::record::{Key, Record};
use crate::reply::Receipt;
use crate::schema::Index;

/// Attempts of a batch for each of its operations; others may write, or the sweep removes, what it checks.
const ATTEMPTS: usize = 4;

/// Commits a batch of records whose unique keys may have expired holders.
pub(super) fn commit(store: Store, mut batch: Batch) -> Receipt {
    // Begun now, so that the batches of a caller keep their order.
    let first = store.submit(batch.clone());
    Receipt::later(async move {
        let own = batch.len();
        let mut outcome = first.await;
        let mut refusal = None;
        for _ in 0..ATTEMPTS * own {
            match &outcome {
                Err(Error::Conflict { operation, .. }) if *operation >= own => {
                    // Another process has written or removed this holder: the next attempt shows which.
                    batch.operations.remove(*operation);
                }
                Err(Error::Conflict {
                    operation,
                    conflict: Conflict::Unique { index, .. },
                    ..
                }) => {
                    if !store
                        .remove_expired_holders(&mut batch, *operation, index)
                        .await?
                    {
                        return outcome;
                    }
                    refusal = outcome.err();
                }
                _ => return outcome,
            }
            outcome = store.submit(batch.clone()).await;
        }
        match (outcome, refusal) {
            (Err(Error::Conflict { operation, .. }), Some(refusal)) if operation >= own => Err(refusal),
            (outcome, _) => outcome,
        }
    })
}

/// The record that keeps a unique key from an operation.
enum Holder {
    /// None: it has been removed since the conflict, or the batch removes it.
    Removed,
    Expired(Row),
    Live,
}

impl Store {
    /// Adds the removal of the expired records that keep keys of this index from a batch; `refused` is the operation that an
    /// engine names, a database perhaps another than the one with the conflict. Whether another attempt may succeed.
    async fn remove_expired_holders(
        &self,
        batch: &mut Batch,
        refused: usize,
        index: &str,
    ) -> Result<bool, Error> {
        let table = batch.operations[refused].table;
        let Some(schema) = self.0.tables.get(usize::from(table.0)) else {
            return Ok(false);
        };
        let (mut expired, mut is_free) = (Vec::new(), true);
        for (position, operation) in batch.operations.iter().enumerate() {
            let Change::Put(put) = &operation.change else {
                continue;
            };
            let held = |number: Index| schema.indexes.get(usize::from(number.0));
            let keys = put.keys.iter();
            for (number, key) in keys.filter(|(number, _)| held(*number).is_some_and(|it| it.name == index)) {
                match self.holder(batch, operation, number, key).await? {
                    Holder::Expired(row) => expired.push(row),
                    Holder::Live if position == refused => is_free = false,
                    Holder::Live | Holder::Removed => {}
                }
            }
        }
        let added = !expired.is_empty();
        // One record may keep several keys.
        expired.sort_unstable_by(|one: &Row, other| one.key.cmp(&other.key));
        expired.dedup_by(|one, other| one.key == other.key);
        for row in expired {
            let condition = Condition::Version(row.version);
            batch.push(table, Key::from_slice(&row.key), condition, Change::Delete);
        }
        Ok(added || is_free)
    }

    /// The record that has a key which an operation gives to another one.
    async fn holder(
        &self,
        batch: &Batch,
        operation: &Operation,
        index: Index,
        key: &[u8],
    ) -> Result<Holder, Error> {
        let Some(Lifetime {
            judge: Some(judge), ..
        }) = operation.lifetime
        else {
            return Ok(Holder::Live);
        };
        let (table, limit, now) = (operation.table, self.0.max_bytes, batch.now);
        let same = batch.operations.iter().filter(|one| one.table == table);
        let named: Vec<Key> = same.map(|one| one.key.clone()).collect();
        let rows = self.0.engine.find(table, index, key, 1);
        let holder = rows.decode(&self.0.dictionaries, move |rows, dictionaries| {
            let mut rows = rows.into_iter();
            let Some(row) = rows.find(|row| named.iter().all(|key| **key != *row.key)) else {
                return Ok(Holder::Removed);
            };
            let expired = judge(&row.key, row.value.clone(), now, limit, dictionaries)?;
            Ok(if expired {
                Holder::Expired(row)
            } else {
                Holder::Live
            })
        });
        holder.await
    }
}

impl Batch {
    /// An expired record counts as absent in the operation that was added last.
    pub(super) fn judge_lifetime<T: Record>(&mut self) {
        let (Some(index), Some(last)) = (T::EXPIRY, self.operations.last_mut()) else {
            return;
        };
        let unique = T::TABLE.indexes.iter().any(|index| index.unique);
        last.lifetime = Some(Lifetime {
            index,
            judge: unique.then_some(|key, value, now, limit, dictionaries| {
                record_of::<T>(key, value, limit, dictionaries).map(|record| has_expired(&record, now))
            }),
        });
    }
}
