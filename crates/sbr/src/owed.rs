//! Ends of sessions that are owed to servers: a server has begun a session whose client has got a failure in place of its answer.
//!
//! Each is kept until the server has ended the session or does not take the end, on the disk as well: a router that has stopped sends
//! it when it has started again. Of a database, another router takes over what one that has stopped has left.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use store::{
    Batch, Condition, DecodeError, Error, IndexKeys, Key, Record, Scan, Store, Stored, Table, TableSchema,
};

use crate::session::{bytes, micros, number, put, text};

/// Ends that a router has at a time, at most.
pub(crate) const MOST: usize = 4_096;
/// Bytes of a request that ends a session, at most: with the identities of a subscriber it has a few hundred.
pub(crate) const MOST_BYTES: usize = 16 << 10;
/// Ends that are due at one moment, at most.
pub(crate) const MOST_DUE: usize = 64;
/// How often an end is sent, at most.
pub(crate) const ATTEMPTS: u8 = 10;
/// Between a failure and the next attempt.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);
/// Time after which an end is sent again of which nothing came: longer than a request lives in a router.
pub(crate) const SILENCE: Duration = Duration::from_secs(120);
/// Time after which a router that has an end in a database must have stopped: longer than all attempts take.
const ABANDONED: Duration = Duration::from_secs(1_800);
/// Ends that are read at a time.
const PAGE: usize = 256;

/// Whose sessions ends are of: a database has those of both in one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Debtor {
    /// A repository of policy sessions.
    Policy = 1,
    /// Sessions of online charging.
    Charging = 2,
}

/// The end of a session, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwedEnd {
    /// A number of its own.
    id: u64,
    /// The [`Debtor`].
    debtor: u8,
    /// When a router has taken it on, in microseconds since 1970.
    since: u64,
    /// Session-Id.
    session: Vec<u8>,
    /// The Diameter identity of its server.
    server: String,
    /// The message that ends it there.
    request: Vec<u8>,
}

/// An end that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueEnd {
    /// By which its outcome is reported.
    pub id: u64,
    /// The message.
    pub request: Vec<u8>,
    /// Whether a router that has stopped may have sent it before.
    pub is_inherited: bool,
}

/// What becomes of an end that was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// It is sent again, and has a record or is to be written.
    Due { is_written: bool },
    /// It has been sent too often.
    Over,
    /// It is not owed any more.
    Settled,
}

/// What has sessions whose ends may be owed.
pub trait Owing: Sync {
    /// Microseconds since 1970.
    fn now(&self) -> u64;

    /// Ends of sessions that are owed to servers.
    fn owed(&self) -> &Owed;

    /// When the session of a Session-Id began, in microseconds since 1970; none: it is not known.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn began(&self, id: &[u8]) -> impl Future<Output = Result<Option<u64>, Error>> + Send;
}

/// Ends that this router owes. Clones share them.
#[derive(Clone, Debug)]
pub struct Owed(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    table: Table<OwedEnd>,
    debtor: Debtor,
    /// Whether other routers write to the store.
    is_shared: bool,
    ends: Mutex<BTreeMap<u64, Pending>>,
    /// Length of `ends`: what has no end to send takes no lock.
    count: AtomicUsize,
    next: AtomicU64,
}

#[derive(Debug)]
struct Pending {
    end: OwedEnd,
    due: Instant,
    sent: u8,
    is_inherited: bool,
    is_written: bool,
}

impl Owed {
    /// Those of a store that was opened with the table of [`OwedEnd`].
    ///
    /// # Errors
    /// When the store has not the table.
    pub(crate) fn new(store: &Store, debtor: Debtor, is_shared: bool) -> Result<Self, Error> {
        Ok(Self(Arc::new(Inner {
            table: store.table()?,
            debtor,
            is_shared,
            ends: Mutex::default(),
            count: AtomicUsize::new(0),
            // Numbers of different runs and routers do not meet.
            next: AtomicU64::new(ahash::RandomState::new().hash_one(0_u8)),
        })))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.count.load(Relaxed) == 0
    }

    /// Changes the ends.
    fn with<T>(&self, change: impl FnOnce(&mut BTreeMap<u64, Pending>) -> T) -> T {
        let mut ends = self.0.ends.lock();
        let changed = change(&mut ends);
        self.0.count.store(ends.len(), Relaxed);
        changed
    }

    /// Adds the request that ends a session at its server. Its number; none: there are too many, or it is too long.
    pub(crate) fn add(
        &self,
        session: &[u8],
        server: &str,
        request: &[u8],
        (since, due): (u64, Instant),
    ) -> Option<u64> {
        if request.len() > MOST_BYTES {
            return None;
        }
        let end = OwedEnd {
            id: self.0.next.fetch_add(1, Relaxed),
            debtor: self.0.debtor as u8,
            since,
            session: session.to_vec(),
            server: server.to_owned(),
            request: request.to_vec(),
        };
        self.insert(end, due, false)
    }

    fn insert(&self, end: OwedEnd, due: Instant, is_inherited: bool) -> Option<u64> {
        let id = end.id;
        let pending = Pending {
            end,
            due,
            sent: 0,
            is_inherited,
            is_written: is_inherited,
        };
        self.with(|ends| {
            let has_room = ends.len() < MOST;
            has_room.then(|| {
                ends.insert(id, pending);
                id
            })
        })
    }

    /// Ends that are due, and the numbers of those of which nothing came too often.
    pub(crate) fn due(&self, now: Instant) -> (Vec<DueEnd>, Vec<u64>) {
        let (mut due, mut silent) = (Vec::new(), Vec::new());
        self.with(|ends| {
            for (id, pending) in ends.iter_mut().filter(|(_, pending)| pending.due <= now) {
                if due.len() >= MOST_DUE {
                    break;
                }
                if pending.sent >= ATTEMPTS {
                    silent.push(*id);
                    continue;
                }
                (pending.sent, pending.due) = (pending.sent + 1, now + SILENCE);
                due.push(DueEnd {
                    id: *id,
                    request: pending.end.request.clone(),
                    is_inherited: pending.is_inherited,
                });
            }
        });
        (due, silent)
    }

    /// An end was not taken: it is sent again as this request.
    pub(crate) fn again(&self, id: u64, request: &[u8], now: Instant) -> Again {
        self.with(|ends| match ends.get_mut(&id) {
            None => Again::Settled,
            Some(pending) if pending.sent >= ATTEMPTS => Again::Over,
            Some(pending) => {
                pending.end.request = request.to_vec();
                pending.due = now + PAUSE;
                Again::Due {
                    is_written: pending.is_written,
                }
            }
        })
    }

    /// Removes an end. Whether it was written; none: it was not there.
    pub(crate) fn remove(&self, id: u64) -> Option<bool> {
        let removed = self.with(|ends| ends.remove(&id));
        removed.map(|pending| pending.is_written)
    }

    /// The numbers of the ends of a session at this server, or at any (none).
    pub(crate) fn of_session(&self, session: &[u8], server: Option<&[u8]>) -> Vec<u64> {
        let is_there =
            |end: &OwedEnd| server.is_none_or(|server| server.eq_ignore_ascii_case(end.server.as_bytes()));
        let is_its = |end: &OwedEnd| end.session == session && is_there(end);
        self.with(|ends| {
            let its = ends.iter().filter(|(_, pending)| is_its(&pending.end));
            its.map(|(id, _)| *id).collect()
        })
    }

    /// Writes an end, if it is still owed then.
    pub(crate) async fn write(self, id: u64) {
        let Some(end) = self.with(|ends| ends.get(&id).map(|pending| pending.end.clone())) else {
            return;
        };
        let mut batch = Batch::default();
        batch.put(&self.0.table, &end, Condition::Always);
        // What cannot be written is sent all the same, and written with the next attempt.
        let is_written = self.0.table.store().commit(batch).await.is_ok();
        let is_owed = self.with(|ends| {
            let pending = ends.get_mut(&id);
            pending.map(|pending| pending.is_written |= is_written).is_some()
        });
        if is_written && !is_owed {
            self.delete(id).await;
        }
    }

    /// Deletes the record of an end that is not owed any more. One that stays is sent once more after a start: its server does not know
    /// the session then.
    pub(crate) async fn delete(self, id: u64) {
        let mut batch = Batch::default();
        batch.delete(&self.0.table, &id.to_be_bytes(), Condition::Always);
        let _ = self.0.table.store().commit(batch).await;
    }

    /// Number of ends that would not outlive this process.
    fn unwritten(&self) -> usize {
        self.with(|ends| ends.values().filter(|pending| !pending.is_written).count())
    }

    /// The process ends: says what is lost with it.
    pub(crate) fn close(&self) {
        let count = self.unwritten();
        if count > 0 {
            tracing::warn!(
                count,
                "sessions stay at their servers whose clients have got a failure; their ends could not be written"
            );
        }
    }

    /// The records in the store that no router sends: of this process, or of one that has stopped.
    async fn abandoned(&self, now: u64) -> Result<Vec<Stored<OwedEnd>>, Error> {
        let (mut found, mut next) = (Vec::new(), Some(Scan::all(PAGE)));
        while let Some(scan) = next {
            let page = self.0.table.scan(&scan).await?;
            let is_ours = |end: &OwedEnd| end.debtor == self.0.debtor as u8;
            let is_left =
                |end: &OwedEnd| !self.0.is_shared || end.since.saturating_add(micros(ABANDONED)) <= now;
            let is_known = |end: &OwedEnd| self.with(|ends| ends.contains_key(&end.id));
            let records = page.records.into_iter();
            found.extend(records.filter(|end| is_ours(end) && is_left(end) && !is_known(end)));
            found.truncate(MOST);
            next = page.next.filter(|_| found.len() < MOST);
        }
        Ok(found)
    }

    /// Takes on an end that was left. Of several routers, one does.
    async fn inherit(&self, left: Stored<OwedEnd>, now: u64) -> Result<(), Error> {
        let mut end = left.record;
        end.since = now;
        let mut batch = Batch::default();
        batch.update(&self.0.table, &end, left.version);
        match self.0.table.store().commit(batch).await {
            Ok(_) => {
                self.insert(end, Instant::now(), true);
                Ok(())
            }
            Err(Error::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Takes on the ends that were left in a store: of an embedded one at the start, of a database also later.
pub(crate) async fn take_over<S: Owing>(sessions: &S) -> Result<(), Error> {
    let (owed, now) = (sessions.owed(), sessions.now());
    for left in owed.abandoned(now).await? {
        // The client has begun the session again.
        let began = sessions.began(&left.session).await?;
        if began.is_some_and(|began| began >= left.since) {
            owed.clone().delete(left.id).await;
        } else {
            owed.inherit(left, now).await?;
        }
    }
    Ok(())
}

/// As [`take_over`], while this router runs: only others can have left something then.
pub(crate) async fn take_over_of_others<S: Owing>(sessions: &S) -> Result<(), Error> {
    match sessions.owed().0.is_shared {
        true => take_over(sessions).await,
        false => Ok(()),
    }
}

impl Record for OwedEnd {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "sbr_owed_end",
        indexes: &[],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&self.id.to_be_bytes())
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend([FORMAT, self.debtor]);
        out.extend(self.since.to_be_bytes());
        put(out, &self.session);
        put(out, self.server.as_bytes());
        out.extend(&self.request);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, DecodeError> {
        read(key, value).ok_or_else(|| DecodeError("the bytes are not the end of a session".to_owned()))
    }
}

/// The first byte of a record.
const FORMAT: u8 = 1;

fn read(key: &[u8], value: &[u8]) -> Option<OwedEnd> {
    let [FORMAT, debtor, rest @ ..] = value else {
        return None;
    };
    let mut rest = rest;
    let rest = &mut rest;
    Some(OwedEnd {
        id: u64::from_be_bytes(key.try_into().ok()?),
        debtor: *debtor,
        since: number(rest)?,
        session: bytes(rest)?.to_vec(),
        server: text(rest)?,
        request: rest.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_record_is_read_as_it_was_written(id: u64, since: u64, session: Vec<u8>, server in "[a-z]{0,9}", request: Vec<u8>) {
            let debtor = Debtor::Charging as u8;
            let end = OwedEnd { id, debtor, since, session, server, request };
            let mut bytes = Vec::new();
            end.encode(&mut bytes);
            prop_assert_eq!(OwedEnd::decode(&end.key(), &bytes).ok(), Some(end));
        }

        #[test]
        fn any_bytes_are_an_end_or_refused(key in proptest::collection::vec(any::<u8>(), 0..12), value: Vec<u8>) {
            let _ = OwedEnd::decode(&key, &value);
        }
    }
}
