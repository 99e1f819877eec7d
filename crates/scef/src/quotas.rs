//! How much each SCS/AS has of what is limited.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use parking_lot::Mutex;
use store::{Error, Index, Record, Table};
use tokio::sync::{Mutex as Turns, MutexGuard as Turn};

use crate::clock::now;
use crate::record::Id;

/// Time between two counts of the records of one SCS/AS, where none of them expires earlier.
const PAUSE: Duration = Duration::from_secs(5);

/// Counts of records by SCS/AS: those of one are counted in the index of the store when it first creates something, so that a start reads
/// none. Expired records are counted until the limit is reached and they are counted again. One lock is enough: it is taken for requests that
/// create or delete something, which wait for an HSS as well.
#[derive(Debug, Default)]
pub(crate) struct Quota(Mutex<AHashMap<String, Held>>);

#[derive(Debug, Default)]
struct Held {
    count: usize,
    /// When they may be counted again.
    again: Option<Instant>,
}

impl Quota {
    /// Counts a record of an SCS/AS that was deleted.
    pub(crate) fn sub(&self, scs: &str) {
        let mut held = self.0.lock();
        let Some(one) = held.get_mut(scs) else { return };
        one.count = one.count.saturating_sub(1);
        if one.count == 0 {
            held.remove(scs);
        }
    }

    /// Counts one more record of an SCS/AS, if it has fewer than `most`.
    pub(crate) async fn take<T: Record>(
        &self,
        table: &Table<T>,
        index: Index,
        scs: &str,
        most: usize,
    ) -> Result<bool, Error> {
        if most == 0 {
            return Ok(false);
        }
        let is_known = self.0.lock().contains_key(scs);
        let known = match is_known {
            true => 0,
            false => table.count_of(index, scs.as_bytes()).await?,
        };
        {
            let mut held = self.0.lock();
            let now = Instant::now();
            // Another request may have counted them meanwhile.
            let one = held.entry(scs.to_owned()).or_insert_with(|| Held {
                count: usize::try_from(known).unwrap_or(usize::MAX),
                again: None,
            });
            if one.count < most {
                one.count += 1;
                return Ok(true);
            }
            if one.again.is_some_and(|again| now < again) {
                return Ok(false);
            }
            one.again = Some(now + PAUSE);
        }
        let found = table.find(index, scs.as_bytes(), most).await?;
        let first = found.iter().filter_map(|one| one.record.expires()).min();
        let found = found.len();
        let mut held = self.0.lock();
        let one = held.entry(scs.to_owned()).or_default();
        one.count = found.max(1);
        if found >= most {
            let expires = first.map(|at| Duration::from_micros(at.saturating_sub(now())));
            one.again = Some(Instant::now() + expires.unwrap_or(PAUSE).min(PAUSE));
            return Ok(false);
        }
        one.count = found + 1;
        Ok(true)
    }
}

/// Devices take turns at their buffers: what one has is counted, and then more is stored. Devices of a place wait for each other.
#[derive(Debug)]
pub(crate) struct Buffers([Turns<()>; 256]);

impl Default for Buffers {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Turns::default()))
    }
}

impl Buffers {
    /// Waits for the turn of the device of a NIDD configuration.
    pub(crate) async fn turn(&self, configuration: Id) -> Turn<'_, ()> {
        // The last octet is chance.
        let [.., place] = configuration.key();
        self.0[usize::from(place)].lock().await
    }

    /// Waits for the turns of several devices: in one order, so that requests for groups do not wait for each other for ever.
    pub(crate) async fn turns(&self, configurations: impl Iterator<Item = Id>) -> Vec<Turn<'_, ()>> {
        let place = |one: Id| {
            let [.., place] = one.key();
            usize::from(place)
        };
        let places: BTreeSet<usize> = configurations.map(place).collect();
        let mut turns = Vec::with_capacity(places.len());
        for place in places {
            turns.push(self.0[place].lock().await);
        }
        turns
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::Trigger;
    use crate::repository::Repository;

    async fn repository(directory: &std::path::Path) -> Repository {
        let mut config = store::Config::default();
        config.embedded.directory = directory.to_owned();
        Repository::open(&config).await.unwrap()
    }

    fn trigger(number: u32, scs: &str) -> Trigger {
        Trigger {
            id: Id::new(u64::from(number)),
            scs: scs.to_owned(),
            document: json!({}),
            imsi: String::new(),
            sms_sc: String::new(),
            references: vec![number],
            pending: false,
            replaced: false,
            ends: u64::MAX,
            scs_of_tsp: None,
        }
    }

    #[test]
    fn an_scs_as_that_may_have_nothing_is_not_counted() {
        testpeer::local(async {
            let directory = tempfile::tempdir().unwrap();
            let repository = repository(directory.path()).await;
            let quota = Quota::default();
            for most in [0, 1] {
                let taken = quota.take(&repository.triggers, Trigger::SCS, "as1", most).await;
                assert_eq!(taken.unwrap(), most > 0);
                assert_eq!(quota.0.lock().len(), most);
            }
            repository.store().clone().close().await;
        });
    }

    #[test]
    fn what_an_scs_as_had_before_is_counted_with_its_next() {
        testpeer::local(async {
            let directory = tempfile::tempdir().unwrap();
            let repository = repository(directory.path()).await;
            let own = [trigger(1, "as1"), trigger(2, "as1"), trigger(3, "as10")];
            for one in &own {
                assert!(repository.insert(&repository.triggers, one).await.unwrap());
            }
            for (scs, most, expected) in [
                ("as1", 2, false),
                ("as1", 3, true),
                ("as10", 2, true),
                ("as", 1, true),
            ] {
                let quota = Quota::default();
                let taken = quota.take(&repository.triggers, Trigger::SCS, scs, most).await;
                assert_eq!(taken.unwrap(), expected, "{scs}, of {most}");
                let counted = own.iter().filter(|one| one.scs == scs).count() + usize::from(expected);
                assert_eq!(quota.0.lock()[scs].count, counted, "{scs}");
            }
            repository.store().clone().close().await;
        });
    }
}
