//! Conflicts with what other sites have written: found when their records have come.
//!
//! Each site marks the sessions that it has written itself, so that a conflict counts once.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use store::{Batch, EngineKind, Error, Scan, Stored};

use crate::conflict::{Counts, leading};
use crate::repository::Repository;
use crate::session::{Session, micros};

/// Time by which clocks of sites may differ, and in which what a site has written is applied here, beside its measured delay.
const SLACK: Duration = Duration::from_secs(60);
/// Sessions that are read at a time.
const PAGE: usize = 256;

impl Repository {
    /// What has happened since this was called last.
    #[must_use]
    pub fn take_counts(&self) -> Counts {
        self.0.tally.take()
    }

    /// Checks the sessions of this site for older bindings of other sites, again and again; drop the future to end it.
    pub(crate) async fn look_for_conflicts(&self) {
        let mut from = 0;
        loop {
            match self.check_all(from).await {
                Ok(next) => from = next,
                Err(error) => {
                    tracing::warn!(%error, "bindings were not compared with those of other sites; the check begins again later");
                }
            }
            tokio::time::sleep(self.0.settings.sweep.pause.duration()).await;
        }
    }

    /// Checks the sessions that were written from this time on (microseconds since 1970). Returns the time from which on the next
    /// round has to: what other sites had written before is here now. Without another site there is nothing to check.
    async fn check_all(&self, from: u64) -> Result<u64, Error> {
        let begun = self.now();
        let delays = self.0.sessions.store().stats().replication_delay;
        let Some(behind) = delays.iter().map(|(_, delay)| *delay).max() else {
            return Ok(from);
        };
        let rate = self.0.settings.sweep.rate.max(1);
        let mut next = Some(Scan::all(PAGE));
        while let Some(scan) = next {
            let page_begun = tokio::time::Instant::now();
            let page = self.0.sessions.scan(&scan).await?;
            let read = u32::try_from(page.records.len()).unwrap_or(u32::MAX);
            for stored in page.records {
                if stored.modified() >= from {
                    self.check(stored).await?;
                }
            }
            next = page.next;
            tokio::time::sleep_until(page_begun + Duration::from_secs(1) * read / rate).await;
        }
        // A cluster delivers what it has kept for a site in no order.
        let is_in_order = self.0.settings.store.engine == EngineKind::Mariadb;
        let known = begun.saturating_sub(micros(behind + SLACK));
        Ok(if is_in_order { known } else { 0 })
    }

    /// Has a session of this site yield where an older binding of its subscriber leads.
    async fn check(&self, stored: Stored<Session>) -> Result<(), Error> {
        let binding = stored.record.binding.as_ref();
        let Some(binding) =
            binding.filter(|binding| !binding.has_yielded && *stored.site == *self.0.settings.store.site)
        else {
            return Ok(());
        };
        let found = self.of_subscriber(&binding.key).await?;
        let leader = leading(found.iter().map(|stored| &stored.record));
        if !leader.is_some_and(|leader| stored.record.contradicts(leader)) {
            return Ok(());
        }
        let mut batch = Batch::default();
        batch.update(&self.0.sessions, &stored.record.yielded(), stored.version);
        match self.0.sessions.store().commit(batch).await {
            Ok(_) => {
                self.0.tally.younger.fetch_add(1, Relaxed);
                Ok(())
            }
            // It has ended, or was written: then the next round finds it.
            Err(Error::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
