//! Sessions that end, are in use, or are stale.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use store::{Batch, Condition, Error, Record, Scan, Stored, Sweep, Table};

use crate::repository::Repository;
use crate::session::Session;

impl Repository {
    /// Ends a session. Whether it existed.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn end(&self, id: &[u8]) -> Result<bool, Error> {
        Ok(self.end_in(&self.sessions, &self.held.sessions, id).await?
            || self.end_in(&self.found, &self.held.found, id).await?)
    }

    async fn end_in<T: Record>(
        &self,
        table: &Table<T>,
        held: &AtomicUsize,
        id: &[u8],
    ) -> Result<bool, Error> {
        let mut batch = Batch::default();
        batch.delete(table, id, Condition::Present);
        match table.store().commit(batch).await {
            Ok(_) => {
                let less = |held: usize| Some(held.saturating_sub(1));
                let _ = held.fetch_update(Relaxed, Relaxed, less);
                Ok(true)
            }
            Err(Error::Conflict { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Notes that a session is in use, where that was not written for long.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn touch(&self, id: &[u8]) -> Result<(), Error> {
        let (session, found) = self.stored(id).await?;
        match (session, found) {
            (Some(stored), _) => self.touch_in(&self.sessions, stored).await,
            (None, Some(stored)) => self.touch_in(&self.found, stored).await,
            (None, None) => Ok(()),
        }
    }

    async fn touch_in<T: Record + From<Session> + Into<Session>>(
        &self,
        table: &Table<T>,
        stored: Stored<T>,
    ) -> Result<(), Error> {
        let (now, stale) = (self.now(), self.settings.stale.duration());
        let session: Session = stored.record.into();
        if !session.is_due(now, stale) {
            return Ok(());
        }
        let mut batch = Batch::default();
        batch.update(table, &T::from(session.used(now, stale)), stored.version);
        match table.store().commit(batch).await {
            // It has ended, or another has noted it.
            Ok(_) | Err(Error::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes what is stale and counts what is held, again and again; drop the future to end it.
    ///
    /// # Errors
    /// When the tables cannot be swept at all.
    pub async fn look_after(&self) -> Result<(), Error> {
        let sessions = Sweep::new(self.sessions.clone(), self.settings.sweep.clone())?;
        let found = Sweep::new(self.found.clone(), self.settings.sweep.clone())?;
        let reservations = Sweep::new(self.reservations.clone(), self.settings.sweep.clone())?;
        loop {
            let round = async {
                sessions.round().await?;
                found.round().await?;
                reservations.round().await?;
                self.refresh().await
            };
            if let Err(error) = round.await {
                tracing::warn!(%error, "stale sessions were not removed; the sweep begins again later");
            }
            tokio::time::sleep(self.settings.sweep.pause.duration()).await;
        }
    }

    /// Counts what is held, and reads which lengths of prefixes other routers and earlier runs have written.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn refresh(&self) -> Result<(), Error> {
        let counts = [
            (self.sessions.count().await?, &self.held.sessions),
            (self.found.count().await?, &self.held.found),
        ];
        for (count, held) in counts {
            held.store(usize::try_from(count).unwrap_or(usize::MAX), Relaxed);
        }
        // There are fewer than a page has.
        let lengths = self.key_lengths.scan(&Scan::all(64)).await?;
        lengths
            .records
            .iter()
            .for_each(|stored| self.lengths.note(stored.record));
        Ok(())
    }
}
