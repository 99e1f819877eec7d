//! Sessions of online charging: which server has which, by its Session-Id alone (RFC 8506).

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use store::{
    Batch, Clock, Condition, DecodeError, Error, Index, IndexKeys, IndexSchema, Key, Record, Stored, Sweep,
    Table, TableSchema,
};

use crate::config::Charging;
use crate::owed::{Debtor, Owed, Owing, take_over_of_others};
use crate::repository::{Kept, TRIES};
use crate::session::{Party, micros, number, party, put, text};
use crate::upkeep::{count, remove};

/// A session of online charging.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChargingSession {
    /// Session-Id (RFC 6733 §8.8).
    pub id: Vec<u8>,
    /// Who began it.
    pub client: Party,
    /// Who has it.
    pub server: Party,
    /// The pool that its server was chosen from.
    pub pool: String,
    /// The rule by which it has its server, in words.
    pub rule: String,
    /// Whether its last answer permits that another server takes it over (CC-Session-Failover, RFC 8506 §8.4).
    pub has_failover: bool,
    /// When it began, in microseconds since 1970.
    pub began: u64,
    /// When it expires unless it is used, in microseconds since 1970.
    pub expires: u64,
}

/// Sessions of online charging in a store. Clones share them: one count, since each message clones them.
#[derive(Clone, Debug)]
pub struct ChargingSessions(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    sessions: Table<ChargingSession>,
    held: AtomicUsize,
    owed: Owed,
    clock: Clock,
    settings: Charging,
}

/// What an answer changes of its session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Another server has it, by this rule.
    pub moved: Option<(Party, String)>,
    /// Whether another server may take it over.
    pub has_failover: Option<bool>,
}

impl ChargingSessions {
    /// Those of a store that was opened with their tables. `is_shared`: other routers write to it.
    ///
    /// # Errors
    /// When the store has not the tables.
    pub fn new(store: &store::Store, settings: &Charging, is_shared: bool) -> Result<Self, Error> {
        Ok(Self(Arc::new(Parts {
            sessions: store.table()?,
            held: AtomicUsize::new(0),
            owed: Owed::new(store, Debtor::Charging, is_shared)?,
            clock: Clock::default(),
            settings: settings.clone(),
        })))
    }

    /// Microseconds since 1970.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.0.clock.micros()
    }

    /// Sessions that are held, as of the last count.
    #[must_use]
    pub fn held(&self) -> usize {
        self.0.held.load(Relaxed)
    }

    /// Whether one more session is one too many.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.held() >= self.0.settings.max_sessions
    }

    /// The session of a Session-Id.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn session(&self, id: &[u8]) -> Result<Option<ChargingSession>, Error> {
        Ok(self.0.sessions.get(id).await?.map(|stored| stored.record))
    }

    /// Keeps a session: it is durable when this returns. One of the same client that is known keeps its beginning and,
    /// with its server, its rule.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn keep(&self, session: &ChargingSession) -> Result<Kept, Error> {
        let mut tries = 0;
        loop {
            let known = self.0.sessions.get(&session.id).await?;
            let mut record = self.used(session.clone());
            let condition = match &known {
                Some(known) if !known.record.is_of(&session.client.host) => return Ok(Kept::Taken),
                Some(known) => {
                    record.began = known.record.began;
                    if record.server.host == known.record.server.host {
                        record.rule.clone_from(&known.record.rule);
                    }
                    Condition::Version(known.version)
                }
                None => Condition::Absent,
            };
            let mut batch = Batch::default();
            batch.put(&self.0.sessions, &record, condition);
            tries += 1;
            match self.0.sessions.store().commit(batch).await {
                Ok(_) if known.is_some() => return Ok(Kept::Again),
                Ok(_) => {
                    self.0.held.fetch_add(1, Relaxed);
                    return Ok(Kept::New);
                }
                Err(Error::Conflict { .. }) if tries < TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Changes a session. Whether it exists; the change is durable when this returns.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn change(&self, id: &[u8], change: &Change) -> Result<bool, Error> {
        let mut tries = 0;
        loop {
            let Some(Stored { record, version, .. }) = self.0.sessions.get(id).await? else {
                return Ok(false);
            };
            let mut record = self.used(record);
            if let Some((server, rule)) = &change.moved {
                (record.server, record.rule) = (server.clone(), rule.clone());
            }
            record.has_failover = change.has_failover.unwrap_or(record.has_failover);
            let mut batch = Batch::default();
            batch.update(&self.0.sessions, &record, version);
            tries += 1;
            match self.0.sessions.store().commit(batch).await {
                Ok(_) => return Ok(true),
                Err(Error::Conflict { .. }) if tries < TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends a session, if `may` agrees. Whether it did.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn end(&self, id: &[u8], may: impl FnOnce(&ChargingSession) -> bool) -> Result<bool, Error> {
        let found = self.0.sessions.get(id).await?;
        if !found.is_some_and(|stored| may(&stored.record)) {
            return Ok(false);
        }
        remove(&self.0.sessions, &self.0.held, id).await
    }

    /// Whether the use of a session is written now: an eighth of its time is over.
    #[must_use]
    pub fn is_due(&self, session: &ChargingSession) -> bool {
        let stale = micros(self.0.settings.stale.duration());
        session.expires.saturating_sub(self.now()) < stale - stale / 8
    }

    fn used(&self, mut session: ChargingSession) -> ChargingSession {
        session.expires = self
            .now()
            .saturating_add(micros(self.0.settings.stale.duration()));
        session
    }

    /// Removes what is stale and counts what is held, again and again; drop the future to end it.
    ///
    /// # Errors
    /// When the table cannot be swept at all.
    pub async fn look_after(&self) -> Result<(), Error> {
        let sweep = Sweep::new(self.0.sessions.clone(), self.0.settings.sweep.clone())?;
        loop {
            if let Err(error) = self.round(&sweep).await {
                tracing::warn!(%error, "stale sessions were not removed; the sweep begins again later");
            }
            tokio::time::sleep(self.0.settings.sweep.pause.duration()).await;
        }
    }

    async fn round(&self, sweep: &Sweep<ChargingSession>) -> Result<(), Error> {
        sweep.round().await?;
        take_over_of_others(self).await?;
        self.refresh().await
    }

    /// Counts what is held.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn refresh(&self) -> Result<(), Error> {
        count(&self.0.sessions, &self.0.held).await
    }
}

impl Owing for ChargingSessions {
    fn now(&self) -> u64 {
        self.0.clock.micros()
    }

    fn owed(&self) -> &Owed {
        &self.0.owed
    }

    async fn began(&self, id: &[u8]) -> Result<Option<u64>, Error> {
        Ok(self.session(id).await?.map(|session| session.began))
    }
}

impl ChargingSession {
    /// Whether a client of this name has begun it.
    #[must_use]
    pub fn is_of(&self, client: &str) -> bool {
        self.client.host.eq_ignore_ascii_case(client)
    }
}

const BY_EXPIRY: Index = Index(0);

impl Record for ChargingSession {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "sbr_charging",
        indexes: &[IndexSchema::many("expiry").ordered()],
        by_modified: false,
        sql: None,
    };
    const EXPIRY: Option<Index> = Some(BY_EXPIRY);

    fn key(&self) -> Key {
        Key::from_slice(&self.id)
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn expires(&self) -> Option<u64> {
        Some(self.expires)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend([FORMAT, u8::from(self.has_failover)]);
        out.extend(self.began.to_be_bytes());
        out.extend(self.expires.to_be_bytes());
        let (client, server) = (&self.client, &self.server);
        let texts = [&client.host, &client.realm, &server.host, &server.realm];
        for one in texts.into_iter().chain([&self.pool, &self.rule]) {
            put(out, one.as_bytes());
        }
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        read(key, value).ok_or_else(|| DecodeError("the bytes are not a charging session".to_owned()))
    }
}

/// The first byte of a record.
const FORMAT: u8 = 1;

fn read(key: &[u8], value: &[u8]) -> Option<ChargingSession> {
    let [FORMAT, has_failover, rest @ ..] = value else {
        return None;
    };
    let mut rest = rest;
    let rest = &mut rest;
    let (began, expires) = (number(rest)?, number(rest)?);
    Some(ChargingSession {
        id: key.to_vec(),
        client: party(rest)?,
        server: party(rest)?,
        pool: text(rest)?,
        rule: text(rest)?,
        has_failover: *has_failover == 1,
        began,
        expires,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn party(host: &str) -> Party {
        Party {
            host: host.to_owned(),
            realm: "example".to_owned(),
        }
    }

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_written(pool in "[a-z]{0,9}", rule in ".{0,9}", has_failover: bool, began: u64, expires: u64) {
            let session = ChargingSession {
                id: b"pgw.example;1;2".to_vec(),
                client: party("pgw"),
                server: party("ocs1"),
                pool,
                rule,
                has_failover,
                began,
                expires,
            };
            let mut bytes = Vec::new();
            session.encode(&mut bytes);
            prop_assert_eq!(ChargingSession::decode(&session.key(), &bytes).ok(), Some(session));
        }

        #[test]
        fn any_bytes_are_a_session_or_refused(value in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = ChargingSession::decode(b"a", &value);
        }
    }
}
