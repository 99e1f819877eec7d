//! Expiry of the paths of Rx sessions in the store: bounded in number, and in the time since they were used last.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use store::{Clock, Record as _, Scan};

use super::Agent;
use super::sessions::Path;
use crate::binding::RxSession;
use crate::config::Rx;
use crate::events::{Counters, Event};
use crate::live::Live;
use crate::repository::Repository;

/// Interval between checks for expired paths.
const INTERVAL: Duration = Duration::from_secs(1);
/// Paths read or deleted at a time, and the pause after each such page.
const PAGE: usize = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// How often paths are counted that other instances write as well, and the shortest time between two counts.
const RECOUNT: Duration = Duration::from_secs(600);
const RECOUNT_AT_MOST: Duration = Duration::from_secs(10);

/// Deletes paths that are too old, and the oldest when there are too many, until dropped.
pub(crate) async fn tidy(repository: Repository, live: Arc<Live>, counters: Arc<Counters>) {
    let mut expiry = Expiry {
        shared: repository.is_shared(),
        repository,
        counters,
        counted: None,
    };
    loop {
        let settings = live.load().config.rx.clone();
        if let Err(error) = expiry.round(&settings).await {
            tracing::warn!(%error, "failed to expire paths of Rx sessions");
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

impl Agent {
    /// Writes to the store that a path is in use, when a quarter of its lifetime has gone since that was written last.
    pub(super) fn renew(&self, session: &[u8], path: &Path) {
        let (now, worker) = (Clock::default().micros(), self.front.worker());
        let lifetime = worker.config().rx.session_lifetime.duration();
        let lifetime = u64::try_from(lifetime.as_micros()).unwrap_or(u64::MAX);
        if now.saturating_sub(path.renewed) < lifetime / 4 {
            return;
        }
        let Some(record) = RxSession::new(session, &path.af, &path.pcf, now) else {
            return;
        };
        let renewed = Path {
            renewed: now,
            ..path.clone()
        };
        self.sessions
            .borrow_mut()
            .insert(&Bytes::copy_from_slice(session), renewed);
        let mut batch = store::Batch::default();
        // One that has ended does not come back.
        batch.put(&self.repository.paths, &record, store::Condition::Present);
        let receipt = self.repository.store().commit(batch);
        tokio::task::spawn_local(async move {
            match receipt.await {
                Ok(_) | Err(store::Error::Conflict { .. }) => {}
                Err(error) => tracing::warn!(%error, "failed to renew the path of an Rx session"),
            }
        });
    }
}

struct Expiry {
    repository: Repository,
    counters: Arc<Counters>,
    /// Other instances begin and end sessions in the same table, which the count of this one does not notice.
    shared: bool,
    counted: Option<Instant>,
}

impl Expiry {
    async fn round(&mut self, settings: &Rx) -> Result<(), store::Error> {
        let held = &self.repository.paths_held;
        let excess = held.get() > settings.max_sessions;
        let due = match self.counted.map(|at| at.elapsed()) {
            None => true,
            Some(_) if !self.shared => false,
            Some(age) => age >= RECOUNT || excess && age >= RECOUNT_AT_MOST,
        };
        if due {
            self.repository.count_paths().await?;
            self.counted = Some(Instant::now());
        }
        // With others at the table only a count of just now says that there are too many.
        self.forget(settings, !self.shared || due).await
    }

    async fn forget(&self, settings: &Rx, count_is_sure: bool) -> Result<(), store::Error> {
        let repository = &self.repository;
        let age = u64::try_from(settings.session_lifetime.duration().as_micros()).unwrap_or(u64::MAX);
        let mut limit = 1;
        loop {
            let oldest = Clock::default().micros().saturating_sub(age);
            let excess = match count_is_sure {
                true => repository.paths_held.get().saturating_sub(settings.max_sessions),
                false => 0,
            };
            if excess > 0 {
                limit = PAGE;
            }
            let scan = Scan::by_index(RxSession::BEGAN, limit);
            let page = repository.paths.scan(&scan).await?;
            let dropped: Vec<_> = page
                .records
                .iter()
                .enumerate()
                .filter(|(place, path)| *place < excess || path.record.began < oldest)
                .collect();
            limit = PAGE;
            if dropped.is_empty() {
                return Ok(());
            }
            let mut batch = store::Batch::default();
            for (_, path) in &dropped {
                batch.delete(&repository.paths, &path.record.key(), store::Condition::Always);
            }
            repository.store().commit(batch).await?;
            repository.paths_held.sub(dropped.len());
            dropped
                .iter()
                .for_each(|_| self.counters.count(Event::RxSessionExpired));
            tokio::time::sleep(PAUSE).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Condition;

    async fn paths(repository: &Repository) -> usize {
        let page = repository.paths.scan(&Scan::all(1_000)).await.unwrap();
        page.records.len()
    }

    /// Other instances end sessions that this one began, and begin some that it ends: its own count drifts.
    #[tokio::test]
    async fn a_count_that_has_drifted_deletes_no_living_path() {
        let directory = tempfile::tempdir().unwrap();
        let mut config = store::Config::default();
        config.embedded.directory = directory.path().to_owned();
        let repository = Repository::open(&config, 8).await.unwrap();
        let settings = Rx {
            max_sessions: 20,
            ..Rx::default()
        };
        let now = Clock::default().micros();
        let add = async |number: u64| {
            let id = format!("af;1;{number}");
            let path = RxSession::new(id.as_bytes(), "af", "pcf", now + number).unwrap();
            let mut batch = store::Batch::default();
            batch.put(&repository.paths, &path, Condition::Always);
            repository.store().commit(batch).await.unwrap();
        };
        for number in 0..10 {
            add(number).await;
        }
        let mut expiry = Expiry {
            repository: repository.clone(),
            counters: Arc::default(),
            shared: true,
            counted: None,
        };
        expiry.round(&settings).await.unwrap();
        assert_eq!((paths(&repository).await, repository.paths_held.get()), (10, 10));
        // Sessions that this instance began and others ended.
        repository.paths_held.add(500);
        expiry.round(&settings).await.unwrap();
        assert_eq!(paths(&repository).await, 10, "none is excessive before a count");
        expiry.counted = Instant::now().checked_sub(RECOUNT_AT_MOST);
        expiry.round(&settings).await.unwrap();
        assert_eq!((paths(&repository).await, repository.paths_held.get()), (10, 10));
        // Sessions that others began: found by the next count, and the oldest go.
        for number in 10..50 {
            add(number).await;
        }
        expiry.counted = Instant::now().checked_sub(RECOUNT);
        expiry.round(&settings).await.unwrap();
        assert_eq!((paths(&repository).await, repository.paths_held.get()), (20, 20));
        let oldest = repository
            .paths
            .scan(&Scan::by_index(RxSession::BEGAN, 1))
            .await
            .unwrap();
        assert_eq!(oldest.records[0].began, now + 30);
    }
}
