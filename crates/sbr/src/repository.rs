//! What is asked of a repository, and written to it.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use model::Ipv6Prefix;
use store::{Batch, Clock, Condition, Error, Index, Store, Stored, Table};

use crate::config::Sbr;
use crate::conflict::{Tally, leading};
use crate::owed::{Debtor, Owed, Owing};
use crate::prefix::{KeyLength, Lengths};
use crate::recent::Recent;
use crate::reservation::Reservation;
use crate::session::{
    Addresses, BY_BINDING, BY_IMSI, BY_IPV4, BY_MSISDN, BY_PREFIX, Found, Party, Session, imsi_in,
};

/// Sessions under one address or number that are read: of the same address in several networks, of one subscriber. The store
/// gives them in an order of its own, and the newest that fits counts. What a request costs is bounded by it.
const CANDIDATES: usize = 256;
/// Pools in which a subscriber has as many sessions as may be, before they hide some of each other.
const POOLS: usize = 4;
/// Sessions of a subscriber that go for a new one, at most: more than begin at once.
const MOST_REMOVED: usize = 32;
/// Tries of a write that others make at the same time.
pub(crate) const TRIES: usize = 4;
/// Between two looks at the reservation of another router.
const PAUSE: Duration = Duration::from_millis(20);

/// A repository. Clones share it: one count, since each message clones it.
#[derive(Clone, Debug)]
pub struct Repository(pub(crate) Arc<Parts>);

/// What a repository has.
#[derive(Debug)]
pub(crate) struct Parts {
    /// Those that bind a subscriber.
    pub(crate) sessions: Table<Session>,
    /// The others.
    pub(crate) found: Table<Found>,
    pub(crate) reservations: Table<Reservation>,
    pub(crate) key_lengths: Table<KeyLength>,
    pub(crate) lengths: Lengths,
    pub(crate) held: Held,
    pub(crate) tally: Tally,
    pub(crate) recent: Recent,
    owed: Owed,
    clock: Clock,
    pub(crate) settings: Sbr,
    /// The name of this router in reservations; none: no other router writes to this store.
    owner: Option<u64>,
}

/// Sessions that are held, as of the last count.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// In the table of those that bind a subscriber.
    pub(crate) sessions: AtomicUsize,
    /// In that of the others.
    pub(crate) found: AtomicUsize,
}

/// Whether a server may be chosen for a subscriber.
#[derive(Clone, Debug)]
pub enum Reserved {
    /// It may: no session exists, and no other router chooses.
    Free,
    /// A session exists.
    Bound(Box<Session>),
    /// Another router chooses, and has not come to an end.
    Busy,
    /// Another request of the subscriber, in flight, has chosen this server.
    Chosen(Arc<Party>),
    /// There are as many sessions as may be.
    Full,
    /// The Session-Id is that of another session.
    Taken,
}

/// What became of a session that was to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It was kept.
    New,
    /// It was kept, and another session of its subscriber had to go.
    Instead,
    /// It was known: it began when it did, by the same rule, and its addresses are as they were.
    Again,
    /// It was known, and has other addresses now.
    Readdressed,
    /// It binds no subscriber, and there are as many such sessions as may be: it was not kept.
    Full,
    /// Its Session-Id is that of another session, which stays: it was not kept.
    Taken,
}

impl Repository {
    /// The repository in a store that was opened with [`tables`](crate::tables). With an `owner`, a number of its own, other
    /// routers write to the store.
    ///
    /// # Errors
    /// When the store has not its tables.
    pub fn new(store: &Store, settings: &Sbr, owner: Option<u64>) -> Result<Self, Error> {
        Ok(Self(Arc::new(Parts {
            sessions: store.table()?,
            found: store.table()?,
            reservations: store.table()?,
            key_lengths: store.table()?,
            lengths: Lengths::default(),
            held: Held::default(),
            tally: Tally::default(),
            recent: Recent::default(),
            owed: Owed::new(store, Debtor::Policy, owner.is_some())?,
            clock: Clock::default(),
            settings: settings.clone(),
            owner,
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
        self.0.held.sessions.load(Relaxed) + self.held_found()
    }

    /// Those of them that bind no subscriber: they were found by the binding of another one.
    #[must_use]
    pub fn held_found(&self) -> usize {
        self.0.held.found.load(Relaxed)
    }

    /// Whether one more session that binds its subscriber is one too many. The others do not count.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0.held.sessions.load(Relaxed) >= self.0.settings.max_sessions
    }

    /// The session of a Session-Id.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn session(&self, id: &[u8]) -> Result<Option<Session>, Error> {
        match self.0.sessions.get(id).try_now() {
            // It is one or the other.
            Ok(session) => match session? {
                Some(stored) => Ok(Some(stored.record)),
                None => Ok(self.0.found.get(id).await?.map(|stored| stored.record.0)),
            },
            Err(later) => {
                let (session, found) = tokio::try_join!(later, self.0.found.get(id))?;
                let found = || found.map(|stored| stored.record.0);
                Ok(session.map(|stored| stored.record).or_else(found))
            }
        }
    }

    /// What both tables have under a Session-Id, read at the same time.
    pub(crate) async fn stored(
        &self,
        id: &[u8],
    ) -> Result<(Option<Stored<Session>>, Option<Stored<Found>>), Error> {
        match self.0.sessions.get(id).try_now() {
            Ok(session) => Ok((session?, self.0.found.get(id).await?)),
            Err(later) => tokio::try_join!(later, self.0.found.get(id)),
        }
    }

    /// The session of a subscriber in a pool whose server new ones get.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn bound(&self, key: &[u8]) -> Result<Option<Session>, Error> {
        let found = self.of_subscriber(key).await?;
        let sessions = || found.iter().map(|stored| &stored.record);
        let leader = leading(sessions());
        if leader.is_some_and(|leader| sessions().any(|session| session.contradicts(leader))) {
            self.0.tally.older.fetch_add(1, Relaxed);
        }
        Ok(leader.cloned())
    }

    /// The sessions of a subscriber in a pool that have not yielded.
    pub(crate) async fn of_subscriber(&self, key: &[u8]) -> Result<Vec<Stored<Session>>, Error> {
        let mut found = self.all_of_subscriber(key).await?;
        found.retain(|stored| !stored.record.has_yielded());
        Ok(found)
    }

    /// The sessions of a subscriber in a pool. Of one without IMSI those that have yielded are not among them.
    pub(crate) async fn all_of_subscriber(&self, key: &[u8]) -> Result<Vec<Stored<Session>>, Error> {
        // Of two sites, each with as many as may be.
        let most = 2 * self.0.settings.max_sessions_per_subscriber + 1;
        let Some(imsi) = imsi_in(key) else {
            return self.0.sessions.find(BY_BINDING, key, most).await;
        };
        let most = CANDIDATES.max(POOLS * most);
        let mut found = self.0.sessions.find(BY_IMSI, imsi, most).await?;
        if found.len() >= most {
            self.0.tally.crowded.fetch_add(1, Relaxed);
        }
        let is_wanted = |session: &Session| session.binding.as_ref().is_some_and(|one| one.key == key);
        found.retain(|stored| is_wanted(&stored.record));
        Ok(found)
    }

    async fn found(&self, index: Index, key: &[u8]) -> Result<Vec<Session>, Error> {
        let found = self.0.sessions.find(index, key, CANDIDATES).await?;
        if found.len() >= CANDIDATES {
            self.0.tally.crowded.fetch_add(1, Relaxed);
        }
        let mut found: Vec<Session> = found.into_iter().map(|stored| stored.record).collect();
        // Of two bindings of a subscriber, sessions of the one that has won come first.
        found.sort_by_key(|session| (session.has_yielded(), std::cmp::Reverse(session.began)));
        Ok(found)
    }

    /// Sessions that bind this IMSI, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn by_imsi(&self, imsi: &str) -> Result<Vec<Session>, Error> {
        self.found(BY_IMSI, imsi.as_bytes()).await
    }

    /// Sessions that bind this MSISDN, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn by_msisdn(&self, msisdn: &str) -> Result<Vec<Session>, Error> {
        self.found(BY_MSISDN, msisdn.as_bytes()).await
    }

    /// Sessions with this IPv4 address, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn by_ipv4(&self, address: Ipv4Addr) -> Result<Vec<Session>, Error> {
        self.found(BY_IPV4, &address.octets()).await
    }

    /// Sessions with a prefix that holds this address or prefix: those of the longest one that do, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn by_prefix(&self, wanted: &Ipv6Prefix) -> Result<Vec<Session>, Error> {
        for key in self.0.lengths.keys(wanted) {
            let found = self.found(BY_PREFIX, &key).await?;
            let longest = |session: &Session| {
                let prefixes = session.binding.iter().flat_map(|binding| &binding.prefixes);
                let holding = prefixes.filter(|prefix| prefix.covers(wanted));
                holding.map(Ipv6Prefix::length).max()
            };
            let Some(most) = found.iter().filter_map(longest).max() else {
                continue;
            };
            let is_best = |session: &Session| longest(session) == Some(most);
            return Ok(found.into_iter().filter(is_best).collect());
        }
        Ok(Vec::new())
    }

    /// Reserves a subscriber before a server is chosen, until the session is kept or [`Repository::release`]. Waits for another
    /// router that chooses as long as `patience`.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn reserve(&self, key: &[u8], patience: Duration) -> Result<Reserved, Error> {
        let deadline = tokio::time::Instant::now().checked_add(patience);
        loop {
            if let Some(session) = self.bound(key).await? {
                return Ok(Reserved::Bound(Box::new(session)));
            }
            let Some(owner) = self.0.owner else {
                return Ok(Reserved::Free);
            };
            if self.is_reserved(key, owner).await? {
                // Another router may have come to an end in between.
                return Ok(match self.bound(key).await? {
                    Some(session) => {
                        self.release(key).await?;
                        Reserved::Bound(Box::new(session))
                    }
                    None => Reserved::Free,
                });
            }
            if deadline.is_some_and(|deadline| tokio::time::Instant::now() + PAUSE > deadline) {
                return Ok(Reserved::Busy);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Whether the reservation is ours: made now, or by an earlier request of this router.
    async fn is_reserved(&self, key: &[u8], owner: u64) -> Result<bool, Error> {
        let hold = u64::try_from(self.0.settings.reservation.duration().as_micros()).unwrap_or(u64::MAX);
        let reservation = Reservation {
            key: key.to_vec(),
            owner,
            expires: self.now().saturating_add(hold),
        };
        let mut batch = Batch::default();
        batch.insert(&self.0.reservations, &reservation);
        match self.0.sessions.store().commit(batch).await {
            Ok(_) => Ok(true),
            Err(Error::Conflict { .. }) => {
                let stands = self.0.reservations.get(key).await?;
                Ok(stands.is_some_and(|stands| stands.record.owner == owner))
            }
            Err(error) => Err(error),
        }
    }

    /// Gives a subscriber free that was reserved and has no session.
    ///
    /// # Errors
    /// When the store cannot be written; then the reservation ends by its time.
    pub async fn release(&self, key: &[u8]) -> Result<(), Error> {
        let Some(owner) = self.0.owner else { return Ok(()) };
        let Some(stands) = self.0.reservations.get(key).await? else {
            return Ok(());
        };
        if stands.record.owner != owner {
            return Ok(());
        }
        let mut batch = Batch::default();
        batch.delete(&self.0.reservations, key, Condition::Version(stands.version));
        match self.0.sessions.store().commit(batch).await {
            Ok(_) | Err(Error::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Keeps a session: it is durable when this returns, under all of its keys.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn keep(&self, session: Session) -> Result<Kept, Error> {
        self.keep_as(session, false).await
    }

    /// As [`Repository::keep`], of a session at another server than the one of its subscriber, which has failed or has passed it on
    /// (`is_moved`): new sessions follow it.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn keep_as(&self, session: Session, is_moved: bool) -> Result<Kept, Error> {
        let mut session = self.used(session);
        for _ in 1..TRIES {
            match self.try_keep(&mut session, is_moved).await {
                Err(Error::Conflict { .. }) => {}
                other => return other,
            }
        }
        self.try_keep(&mut session, is_moved).await
    }

    async fn try_keep(&self, session: &mut Session, is_moved: bool) -> Result<Kept, Error> {
        let (known, found) = self.stored(&session.id).await?;
        if session.binding.is_none() {
            let is_taken = known.is_some();
            return if is_taken {
                Ok(Kept::Taken)
            } else {
                self.keep_found(session, found).await
            };
        }
        if found.is_some() {
            return Ok(Kept::Taken);
        }
        let condition = match &known {
            Some(known) if !known.record.is_same(session) => return Ok(Kept::Taken),
            Some(known) => {
                session.repeats(&known.record);
                Condition::Version(known.version)
            }
            None => Condition::Absent,
        };
        let mut batch = Batch::default();
        let key = session.binding.as_ref().map(|binding| binding.key.clone());
        let key = key.unwrap_or_default();
        let (mut surplus, mut yielded) = (Vec::new(), 0);
        let before = known.as_ref().map(|known| &known.record);
        if !before.is_some_and(|before| before.is_at(session)) {
            let mut others = self.of_subscriber(&key).await?;
            // What it takes the place of leads it no more.
            if before.is_none() {
                surplus = self.surplus(&others);
            }
            others.retain(|other| !surplus.contains(&other.record.id));
            for oldest in &surplus {
                batch.delete(&self.0.sessions, oldest, Condition::Always);
            }
            // A repeated session that is elsewhere now moves its binding, unless that has yielded.
            let is_moved = before.map_or(is_moved, |before| !before.has_yielded());
            session.join(others.iter().map(|other| &other.record), is_moved);
            others.retain(|other| other.record.id != session.id);
            let yields = session.has_yielded() && !before.is_some_and(Session::has_yielded);
            yielded = u64::from(yields) + self.yield_to(session, &others, &mut batch);
        }
        // A request that repeats one has reserved nothing.
        if self.0.owner.is_some() && known.is_none() {
            batch.delete(&self.0.reservations, &key, Condition::Always);
        }
        batch.put(&self.0.sessions, session, condition);
        self.commit(batch, session).await?;
        self.0.tally.younger.fetch_add(yielded, Relaxed);
        Ok(match (known, surplus.len()) {
            (Some(_), _) => Kept::Again,
            (None, 0) => {
                self.0.held.sessions.fetch_add(1, Relaxed);
                Kept::New
            }
            (None, removed) => {
                let less = |held: usize| Some(held.saturating_sub(removed - 1));
                let _ = self.0.held.sessions.fetch_update(Relaxed, Relaxed, less);
                Kept::Instead
            }
        })
    }

    /// Keeps a session that binds no subscriber.
    async fn keep_found(&self, session: &mut Session, known: Option<Stored<Found>>) -> Result<Kept, Error> {
        let (condition, kept) = match &known {
            Some(known) if !known.record.0.is_same(session) => return Ok(Kept::Taken),
            Some(known) => {
                session.repeats(&known.record.0);
                (Condition::Version(known.version), Kept::Again)
            }
            None if self.held_found() >= self.0.settings.max_sessions => return Ok(Kept::Full),
            None => (Condition::Absent, Kept::New),
        };
        let mut batch = Batch::default();
        batch.put(&self.0.found, &Found(session.clone()), condition);
        self.0.sessions.store().commit(batch).await?;
        if kept == Kept::New {
            self.0.held.found.fetch_add(1, Relaxed);
        }
        Ok(kept)
    }

    /// Commits a session with the lengths of its prefixes, by which they are found.
    async fn commit(&self, mut batch: Batch, session: &Session) -> Result<(), Error> {
        let prefixes = session.binding.iter().flat_map(|binding| &binding.prefixes);
        let new_lengths: Vec<KeyLength> = prefixes
            .filter_map(|prefix| self.0.lengths.unknown(prefix))
            .collect();
        for length in &new_lengths {
            batch.put(&self.0.key_lengths, length, Condition::Always);
        }
        self.0.sessions.store().commit(batch).await?;
        new_lengths
            .into_iter()
            .for_each(|length| self.0.lengths.note(length));
        Ok(())
    }

    /// Changes the addresses of a session by what its client reports: it is found by them, durably, when this returns. What
    /// another client says, or of a session that is not known, changes nothing.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn report(
        &self,
        id: &[u8],
        application: u32,
        client: &Party,
        reported: &Addresses,
    ) -> Result<Kept, Error> {
        let mut tries = 1..TRIES;
        loop {
            let stored = self.0.sessions.get(id).await?;
            let Some(mut stored) = stored.filter(|stored| stored.record.is_of(application, client)) else {
                return Ok(Kept::Again);
            };
            let binding = stored.record.binding.as_mut();
            if !binding.is_some_and(|binding| binding.report(reported)) {
                return Ok(Kept::Again);
            }
            let session = self.used(stored.record);
            let mut batch = Batch::default();
            batch.update(&self.0.sessions, &session, stored.version);
            match self.commit(batch, &session).await {
                Err(Error::Conflict { .. }) if tries.next().is_some() => {}
                other => return other.map(|()| Kept::Readdressed),
            }
        }
    }

    /// Adds to a batch that those of these sessions yield that a session contradicts which leads, where this site has written them.
    /// How many.
    fn yield_to(&self, leader: &Session, others: &[Stored<Session>], batch: &mut Batch) -> u64 {
        let is_own = |other: &&Stored<Session>| *other.site == *self.0.settings.store.site;
        let yields = |other: &&Stored<Session>| !leader.has_yielded() && other.record.yields_to(leader);
        let mut count = 0;
        for other in others.iter().filter(is_own).filter(yields) {
            batch.update(&self.0.sessions, &other.record.clone().yielded(), other.version);
            count += 1;
        }
        count
    }

    /// Of the other sessions of a subscriber, the oldest ones that go for a new one: as many as are beyond the bound, since those that
    /// begin at once do not see one another.
    fn surplus(&self, others: &[Stored<Session>]) -> Vec<Vec<u8>> {
        let most = self.0.settings.max_sessions_per_subscriber;
        let over = (others.len() + 1).saturating_sub(most).min(MOST_REMOVED);
        if over == 0 {
            return Vec::new();
        }
        let mut by_age: Vec<&Session> = others.iter().map(|stored| &stored.record).collect();
        by_age.sort_unstable_by_key(|session| session.began);
        let oldest = by_age.into_iter().take(over);
        oldest.map(|session| session.id.clone()).collect()
    }
}

impl Owing for Repository {
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
