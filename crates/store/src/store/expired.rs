//! Inserts over records whose lifetime is over. Reads leave such a record out before the sweep has removed it, so an insert
//! must not find it either.
//!
//! Engines know versions, not lifetimes. The conflict of an insert is therefore checked here, and the insert is repeated
//! under the condition that the expired record is still the one that was checked.

use super::{Store, has_expired, record_of};
use crate::batch::{Batch, Condition, Judge};
use crate::error::{Conflict, Error};
use crate::record::Record;
use crate::reply::{Receipt, Reply};
use crate::schema::TableId;
use crate::version::Version;

/// Attempts of a batch for each of its operations; others may write, or the sweep removes, what it checks.
const ATTEMPTS: usize = 4;

/// Commits a batch with inserts of records that may exist but have expired.
pub(super) fn commit(store: Store, batch: Batch) -> Receipt {
    // Begun now, so that the batches of a caller keep their order.
    let first = store.submit(batch.clone());
    Receipt::later(async move {
        match first.await {
            Err(Error::Conflict {
                operation,
                table,
                conflict,
            }) => repeat(&store, batch, (operation, table, conflict)).await,
            outcome => outcome,
        }
    })
}

/// Repeats a batch after a conflict, as long as expired records cause it.
async fn repeat(
    store: &Store,
    mut batch: Batch,
    mut conflict: (usize, &'static str, Conflict),
) -> Result<Version, Error> {
    for _ in 0..ATTEMPTS * batch.len() {
        let (position, table, why) = conflict;
        let refused = |conflict| Error::Conflict {
            operation: position,
            table,
            conflict,
        };
        let operation = batch.operations.get_mut(position);
        let Some((operation, judge)) = operation.and_then(|one| one.expired.map(|judge| (one, judge))) else {
            return Err(refused(why));
        };
        // The caller asked for an absent record.
        let why = match why {
            Conflict::Changed(version) => Conflict::Exists(version),
            other => other,
        };
        operation.condition = match &why {
            Conflict::Exists(_) => {
                let expired = store.expired_version(operation.table, &operation.key, judge);
                match expired.await? {
                    Some(version) => Condition::Version(version),
                    None => return Err(refused(why)),
                }
            }
            // The sweep has removed it meanwhile.
            Conflict::Absent => Condition::Absent,
            _ => return Err(refused(why)),
        };
        match store.submit(batch.clone()).await {
            Err(Error::Conflict {
                operation,
                table,
                conflict: again,
            }) => conflict = (operation, table, again),
            outcome => return outcome,
        }
    }
    let (operation, table, conflict) = conflict;
    Err(Error::Conflict {
        operation,
        table,
        conflict,
    })
}

impl Store {
    /// The version of a record that has expired; `None` where it has not, or does not exist.
    fn expired_version(&self, table: TableId, key: &[u8], judge: Judge) -> Reply<Option<Version>> {
        let (limit, now) = (self.0.max_bytes, self.0.clock.micros());
        self.0
            .engine
            .get(table, key)
            .decode(&self.0.dictionaries, move |row, dictionaries| {
                let Some(row) = row else { return Ok(None) };
                let version = row.version;
                Ok(judge(&row.key, row.value, now, limit, dictionaries)?.then_some(version))
            })
    }
}

impl Batch {
    /// An expired record counts as absent in the operation that was added last.
    pub(super) fn judge_expired<T: Record>(&mut self, condition: Condition) {
        if T::EXPIRY.is_some()
            && condition == Condition::Absent
            && let Some(last) = self.operations.last_mut()
        {
            last.expired = Some(|key, value, now, limit, dictionaries| {
                record_of::<T>(key, value, limit, dictionaries).map(|record| has_expired(&record, now))
            });
        }
    }
}
