//! Sessions that end, are in use, or are stale.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use store::{Batch, Condition, Error, Record, Scan, Stored, Sweep, Table};

use crate::owed::take_over_of_others;
use crate::repository::Repository;
use crate::reservation::Reservation;
use crate::session::{BY_EXPIRY, Found, Session, micros};

impl Repository {
    /// Ends a session. Whether it existed.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn end(&self, id: &[u8]) -> Result<bool, Error> {
        Ok(remove(&self.0.sessions, &self.0.held.sessions, id).await?
            || remove(&self.0.found, &self.0.held.found, id).await?)
    }

    /// As [`Repository::end`], of a session that was read: it is in one table, and the other is not asked.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn end_read(&self, session: &Session) -> Result<bool, Error> {
        match session.binding {
            Some(_) => remove(&self.0.sessions, &self.0.held.sessions, &session.id).await,
            None => remove(&self.0.found, &self.0.held.found, &session.id).await,
        }
    }

    /// Ends the sessions that bind a subscriber to this server, under a [`binding_key`](crate::binding_key). How many.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn unbind(&self, key: &[u8], server: &str) -> Result<u64, Error> {
        let mut ended = 0;
        for stored in self.all_of_subscriber(key).await? {
            let session = &stored.record;
            if session.server.host.eq_ignore_ascii_case(server) {
                ended += u64::from(remove(&self.0.sessions, &self.0.held.sessions, &session.id).await?);
            }
        }
        Ok(ended)
    }

    /// Whether the use of a session was checked in this 64th of the time until it is stale: [`Repository::touch`] need not read it. The
    /// caller checks it now.
    #[must_use]
    pub fn was_used(&self, id: &[u8]) -> bool {
        let part = (micros(self.0.settings.stale.duration()) / 64).max(1);
        self.0.recent.is_seen(id, self.now() / part)
    }

    /// Notes that a session is in use, where that was not written for long.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn touch(&self, id: &[u8]) -> Result<(), Error> {
        let (session, found) = self.stored(id).await?;
        match (session, found) {
            (Some(stored), _) => self.touch_in(&self.0.sessions, stored).await,
            (None, Some(stored)) => self.touch_in(&self.0.found, stored).await,
            (None, None) => Ok(()),
        }
    }

    async fn touch_in<T: Record + From<Session> + Into<Session>>(
        &self,
        table: &Table<T>,
        stored: Stored<T>,
    ) -> Result<(), Error> {
        let session: Session = stored.record.into();
        if !self.is_due(&session) {
            return Ok(());
        }
        let mut batch = Batch::default();
        batch.update(table, &T::from(self.used(session)), stored.version);
        match table.store().commit(batch).await {
            // It has ended, or another has noted it.
            Ok(_) | Err(Error::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether the use of a session is written now: it was not for long.
    #[must_use]
    pub fn is_due(&self, session: &Session) -> bool {
        let stale = self.0.settings.stale.duration();
        session.is_due(self.now(), self.lifetime(session), stale)
    }

    /// The session, used now.
    pub(crate) fn used(&self, session: Session) -> Session {
        let lifetime = self.lifetime(&session);
        session.used(self.now(), lifetime)
    }

    /// Time after which a session that is not used is removed. Of one that binds its subscriber, its gateway is asked before.
    fn lifetime(&self, session: &Session) -> Duration {
        let is_asked = self.0.settings.audit_rate > 0 && session.binding.is_some();
        self.0.settings.stale.duration() * if is_asked { 2 } else { 1 }
    }

    /// Stale sessions that bind their subscribers, beginning with one that expires at this time (microseconds since 1970), in the
    /// order in which they expire: at most `most`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn stale(&self, from: u64, most: usize) -> Result<Vec<Session>, Error> {
        let now = self.now();
        let end = now.saturating_add(micros(self.0.settings.stale.duration()));
        let from = from.max(now);
        let scan = Scan::by_index(BY_EXPIRY, most);
        let scan = scan.from_key(&from.to_be_bytes()).to_key(&end.to_be_bytes());
        let page = self.0.sessions.scan(&scan).await?;
        Ok(page.records.into_iter().map(|stored| stored.record).collect())
    }

    /// Whether a session exists and has not been used since it is stale.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn is_stale(&self, id: &[u8]) -> Result<bool, Error> {
        let end = self
            .now()
            .saturating_add(micros(self.0.settings.stale.duration()));
        let stored = self.0.sessions.get(id).await?;
        Ok(stored.is_some_and(|stored| stored.record.expires < end))
    }

    /// Removes what is stale, counts what is held and settles conflicts with other sites, again and again; drop the future to end
    /// it.
    ///
    /// # Errors
    /// When the tables cannot be swept at all.
    pub async fn look_after(&self) -> Result<(), Error> {
        let sessions = Sweep::new(self.0.sessions.clone(), self.0.settings.sweep.clone())?;
        let found = Sweep::new(self.0.found.clone(), self.0.settings.sweep.clone())?;
        let reservations = Sweep::new(self.0.reservations.clone(), self.0.settings.sweep.clone())?;
        tokio::join!(
            self.sweep(&sessions, &found, &reservations),
            self.look_for_conflicts()
        );
        Ok(())
    }

    async fn sweep(
        &self,
        sessions: &Sweep<Session>,
        found: &Sweep<Found>,
        reservations: &Sweep<Reservation>,
    ) {
        loop {
            let round = async {
                sessions.round().await?;
                found.round().await?;
                reservations.round().await?;
                take_over_of_others(self).await?;
                self.refresh().await
            };
            if let Err(error) = round.await {
                tracing::warn!(%error, "stale sessions were not removed; the sweep begins again later");
            }
            tokio::time::sleep(self.0.settings.sweep.pause.duration()).await;
        }
    }

    /// Counts what is held, and reads which lengths of prefixes other routers and earlier runs have written.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn refresh(&self) -> Result<(), Error> {
        count(&self.0.sessions, &self.0.held.sessions).await?;
        count(&self.0.found, &self.0.held.found).await?;
        // There are fewer than a page has.
        let lengths = self.0.key_lengths.scan(&Scan::all(64)).await?;
        lengths
            .records
            .iter()
            .for_each(|stored| self.0.lengths.note(stored.record));
        Ok(())
    }
}

/// Removes a session of a table of which this many are held. Whether it existed.
pub(crate) async fn remove<T: Record>(
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

/// Counts what a table holds.
pub(crate) async fn count<T: Record>(table: &Table<T>, held: &AtomicUsize) -> Result<(), Error> {
    let count = table.count().await?;
    held.store(usize::try_from(count).unwrap_or(usize::MAX), Relaxed);
    Ok(())
}
