//! Bindings in the store.

use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use function::records::{Attempt, ChangeFault, Turns};
use store::{
    Batch, Condition, Conflict, Error, Index, Record, Scan, Store, Stored, Table, TableDef, Version,
};
use tokio::sync::Mutex;

use crate::binding::{
    BindingId, Document, Form, FormRecord, Forms, MbsBinding, PcfBinding, Place, Query, RxSession,
    SamePcfGuard, Selection, Subscription, UeBinding, select,
};
use crate::operator::OperatorSettings;
use crate::owed::OwedRecord;

/// How many records a table has, as far as this instance knows.
#[derive(Clone, Debug, Default)]
pub struct Held(Arc<AtomicUsize>);

impl Held {
    /// This number.
    #[must_use]
    pub fn get(&self) -> usize {
        self.0.load(Relaxed)
    }

    pub(crate) fn set(&self, count: usize) {
        self.0.store(count, Relaxed);
    }

    pub(crate) fn add(&self, more: usize) {
        self.0.fetch_add(more, Relaxed);
    }

    pub(crate) fn sub(&self, fewer: usize) {
        // Another instance may have written what goes here.
        let _ = self
            .0
            .fetch_update(Relaxed, Relaxed, |held| Some(held.saturating_sub(fewer)));
    }
}

/// The tables of a BSF. Clones share them.
#[derive(Clone, Debug)]
pub struct Repository {
    store: Store,
    /// PDU sessions.
    pub sessions: Table<PcfBinding>,
    /// UEs.
    pub ues: Table<UeBinding>,
    /// MBS sessions.
    pub mbs: Table<MbsBinding>,
    /// Subscriptions.
    pub subscriptions: Table<Subscription>,
    /// Paths of Rx sessions.
    pub(crate) paths: Table<RxSession>,
    /// Changes of which subscribers may not have been notified.
    pub(crate) owed: Table<OwedRecord>,
    /// How many of those there are.
    pub paths_held: Held,
    guards: Table<SamePcfGuard>,
    forms_table: Table<FormRecord>,
    forms: Arc<Forms>,
    /// Whether there is a subscription.
    watched: Arc<AtomicBool>,
    /// Changes that others have overtaken wait here for one another.
    pub(crate) turns: Turns,
    /// The end of the last count of paths, and how long it took.
    counted: Arc<Mutex<Option<(Instant, Duration)>>>,
    packed: bool,
    most: usize,
}

/// A record that may be found by addresses.
pub trait Addressed: Record {
    /// The forms of these, which the store must know for the record to be found.
    fn address_forms(&self) -> impl Iterator<Item = Form> + '_ {
        std::iter::empty()
    }

    /// The mark of a change that has made this record, where subscribers are notified of it.
    fn owed(&self) -> Option<OwedRecord> {
        None
    }
}

impl Addressed for PcfBinding {
    fn address_forms(&self) -> impl Iterator<Item = Form> + '_ {
        self.forms()
    }

    fn owed(&self) -> Option<OwedRecord> {
        Some(OwedRecord::present(self.0.id))
    }
}
impl Addressed for UeBinding {
    fn owed(&self) -> Option<OwedRecord> {
        Some(OwedRecord::present(self.0.id))
    }
}
impl Addressed for MbsBinding {}
impl Addressed for Subscription {}

/// A guard as it was read.
#[derive(Debug)]
pub struct GuardState {
    guard: SamePcfGuard,
    /// `None`: it was never written.
    version: Option<Version>,
}

/// Where the first `most` records of a key do not decide, a multiple of that is read, in steps of
/// [`STEP`] times as many.
const WIDEST: usize = 64;
/// The same for a subscriber without an address: each of the sessions is read, and a UE has a handful.
const WIDEST_OF_SUBSCRIBER: usize = 8;
const STEP: usize = 8;

/// When a PCF wrote a binding last; audits write it as well.
fn written(stored: &Stored<PcfBinding>) -> u64 {
    let audited = stored.record.0.audited();
    audited.map_or(stored.modified(), |audited| audited.written)
}

/// Share of the time that counts of paths may take, as a divisor.
const COUNTING: u32 = 20;
/// Records of a page of a count.
const PAGE: usize = 200;

impl Repository {
    /// Opens the store. `most`: bindings of one address or subscriber that a query reads.
    ///
    /// # Errors
    /// When the store cannot be opened or read.
    pub async fn open(config: &store::Config, most: usize) -> Result<Self, Error> {
        let tables = [
            TableDef::of::<PcfBinding>(),
            TableDef::of::<UeBinding>(),
            TableDef::of::<MbsBinding>(),
            TableDef::of::<Subscription>(),
            TableDef::of::<FormRecord>(),
            TableDef::of::<RxSession>(),
            TableDef::of::<SamePcfGuard>(),
            TableDef::of::<OperatorSettings>(),
            TableDef::of::<OwedRecord>(),
        ];
        let store = Store::open(config, &tables).await?;
        let repository = Self {
            sessions: store.table()?,
            ues: store.table()?,
            mbs: store.table()?,
            subscriptions: store.table()?,
            paths: store.table()?,
            owed: store.table()?,
            paths_held: Held::default(),
            guards: store.table()?,
            forms_table: store.table()?,
            forms: Arc::default(),
            watched: Arc::default(),
            turns: Turns::default(),
            counted: Arc::default(),
            // Databases have JSON, which other tools read.
            packed: config.engine == store::EngineKind::Embedded,
            most: most.max(2),
            store,
        };
        repository.refresh().await?;
        Ok(repository)
    }

    /// Counts the paths in the store. Those that this instance adds meanwhile may be counted at the next time only: too low a
    /// count deletes nothing. Returns how many pages it has read.
    pub(crate) async fn count_paths(&self) -> Result<u32, Error> {
        let held = &self.paths_held;
        let before = held.get();
        let (mut count, mut pages, mut next) = (0, 0, Some(Scan::all(PAGE)));
        while let Some(scan) = next {
            let page = self.paths.scan(&scan).await?;
            pages += 1;
            count += page.records.len();
            next = page.next;
            tokio::task::yield_now().await;
        }
        let ended = before.saturating_sub(held.get());
        held.set(count.saturating_sub(ended));
        Ok(pages)
    }

    /// Counts the paths again where other instances end some of them, unless a count has ended just now: counting takes a share
    /// of the time. One page costs no more than a look-up, however long a busy database took for it.
    pub(crate) async fn recount_paths(&self) -> Result<(), Error> {
        if !self.is_shared() {
            return Ok(());
        }
        let mut counted = self.counted.lock().await;
        if counted.is_some_and(|(end, took)| end.elapsed() < took * COUNTING) {
            return Ok(());
        }
        let begun = Instant::now();
        let pages = self.count_paths().await?;
        *counted = (pages > 1).then(|| (Instant::now(), begun.elapsed()));
        Ok(())
    }

    /// Reads again what other instances on the same database may have changed: forms of addresses, and
    /// whether there are subscriptions.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn refresh(&self) -> Result<(), Error> {
        let mut next = Some(Scan::all(500));
        while let Some(scan) = next {
            let page = self.forms_table.scan(&scan).await?;
            page.records.iter().for_each(|form| self.forms.add(form.record.0));
            next = page.next;
        }
        let any = self.subscriptions.scan(&Scan::all(1)).await?;
        self.watched.store(!any.records.is_empty(), Relaxed);
        Ok(())
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Whether other instances may use the same store.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        // One process at a time opens the embedded engine; its records are packed.
        !self.packed
    }

    /// Whether there is a subscription.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        // Another instance on a shared store may have got the first one just now: only a query shows it.
        self.is_shared() || self.watched.load(Relaxed)
    }

    /// From now on there is a subscription.
    pub fn watch(&self) {
        self.watched.store(true, Relaxed);
    }

    /// A new document for this store.
    #[must_use]
    pub fn document(&self, id: BindingId, value: serde_json::Value) -> Document {
        Document::new(id, value, self.packed)
    }

    /// Adds to a batch what a record needs to be found: forms of addresses that did not occur before. Those in
    /// `already` are in the batch.
    fn learn(&self, batch: &mut Batch, record: &impl Addressed, already: &[Form]) -> Vec<Form> {
        let mut fresh: Vec<Form> = Vec::new();
        for form in record.address_forms() {
            if !self.forms.has(form) && !already.contains(&form) && !fresh.contains(&form) {
                batch.put(&self.forms_table, &FormRecord(form), Condition::Always);
                fresh.push(form);
            }
        }
        fresh
    }

    /// Writes a new record, durably.
    ///
    /// # Errors
    /// When it was not written.
    pub async fn add<T: Addressed>(&self, table: &Table<T>, record: &T) -> Result<Version, Error> {
        let mut batch = Batch::default();
        batch.insert(table, record);
        self.commit(batch, record).await
    }

    /// Commits a batch that writes this record.
    async fn commit(&self, mut batch: Batch, record: &impl Addressed) -> Result<Version, Error> {
        let fresh = self.learn(&mut batch, record, &[]);
        self.owe(&mut batch, record.owed());
        let version = self.store.commit(batch).await?;
        fresh.into_iter().for_each(|form| self.forms.add(form));
        Ok(version)
    }

    /// Adds the mark of a change to its batch. A BSF on a database puts none: another one may have the store.
    pub(crate) fn owe(&self, batch: &mut Batch, mark: Option<OwedRecord>) {
        if let Some(mark) = mark.filter(|_| !self.is_shared() && self.is_watched()) {
            batch.put(&self.owed, &mark, Condition::Always);
        }
    }

    /// The state of the guard of a subscriber ([`SamePcfGuard`]), to be read before the bindings that it guards.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn guard_of(&self, supi: &str) -> Result<GuardState, Error> {
        let guard = SamePcfGuard::of(supi);
        let held = self.guards.get(&guard.key()).await?;
        Ok(GuardState {
            guard,
            version: held.map(|held| held.version),
        })
    }

    /// Writes a session's new binding, durably, unless another one was written under the guard since it was read: false.
    ///
    /// # Errors
    /// When it was not written.
    pub async fn add_guarded(&self, binding: &PcfBinding, state: GuardState) -> Result<bool, Error> {
        let mut batch = Batch::default();
        batch.insert(&self.sessions, binding);
        let condition = state.version.map_or(Condition::Absent, Condition::Version);
        batch.put(&self.guards, &state.guard, condition);
        match self.commit(batch, binding).await {
            Ok(_) => Ok(true),
            Err(Error::Conflict { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes bindings of sessions together, over those of the same identity; the future resolves when they are
    /// durable. They are on their way at once, so that a caller may have several such groups under way.
    pub fn put_sessions(&self, bindings: &[PcfBinding]) -> impl Future<Output = Result<(), Error>> + use<> {
        let mut batch = Batch::default();
        let mut fresh: Vec<Form> = Vec::new();
        for binding in bindings {
            batch.put(&self.sessions, binding, Condition::Always);
            fresh.extend(self.learn(&mut batch, binding, &fresh));
        }
        let (written, forms) = (self.store.commit(batch), self.forms.clone());
        async move {
            written.await?;
            fresh.into_iter().for_each(|form| forms.add(form));
            Ok(())
        }
    }

    /// Changes a record, however many others change it at the same time: what it was, and what it is. `None`: there is
    /// none.
    ///
    /// # Errors
    /// What `change` says, or that it could not be written.
    pub async fn change<T: Addressed, F>(
        &self,
        table: &Table<T>,
        id: BindingId,
        change: impl Fn(&T) -> Result<T, F>,
    ) -> Result<Option<(T, T)>, ChangeFault<F>> {
        let attempt = async || {
            let Some(stored) = table.get(&id.0).await? else {
                return Ok(Attempt::Done(None));
            };
            let changed = change(&stored.record).map_err(ChangeFault::Refused)?;
            let mut batch = Batch::default();
            batch.update(table, &changed, stored.version);
            match self.commit(batch, &changed).await {
                Ok(_) => Ok(Attempt::Done(Some((stored.record, changed)))),
                Err(Error::Conflict { .. }) => Ok(Attempt::Overtaken),
                Err(error) => Err(error.into()),
            }
        };
        self.turns.change(&id.0, attempt).await
    }

    /// Deletes a record; false when there was none.
    ///
    /// # Errors
    /// When it could not be deleted.
    pub async fn remove<T: Record>(&self, table: &Table<T>, id: BindingId) -> Result<bool, Error> {
        self.remove_owing(table, id, None).await
    }

    /// As [`Repository::remove`], with the mark of the removal.
    pub(crate) async fn remove_owing<T: Record>(
        &self,
        table: &Table<T>,
        id: BindingId,
        mark: Option<OwedRecord>,
    ) -> Result<bool, Error> {
        let mut batch = Batch::default();
        batch.delete(table, &id.0, Condition::Present);
        self.owe(&mut batch, mark);
        match self.store.commit(batch).await {
            Ok(_) => Ok(true),
            Err(Error::Conflict {
                conflict: Conflict::Absent,
                ..
            }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes the binding of a session as it was read; false when it was written or deleted since.
    pub(crate) async fn remove_unchanged(&self, stored: &Stored<PcfBinding>) -> Result<bool, Error> {
        let mut batch = Batch::default();
        let unchanged = Condition::Version(stored.version);
        batch.delete(&self.sessions, &stored.record.key(), unchanged);
        self.owe(&mut batch, Some(OwedRecord::of_session(&stored.record)));
        match self.store.commit(batch).await {
            Ok(_) => Ok(true),
            Err(Error::Conflict { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The bindings that match a question, the most specific prefix only, the most recent first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn matching(&self, query: &Query) -> Result<Vec<PcfBinding>, Error> {
        if let Some(place) = query.places().next() {
            return self.at(place, query).await;
        }
        let (index, identity) = match (&query.supi, &query.gpsi) {
            (Some(supi), _) => (PcfBinding::SUPI, supi),
            (None, Some(gpsi)) => (PcfBinding::GPSI, gpsi),
            (None, None) => return Ok(Vec::new()),
        };
        self.under(
            index,
            &PcfBinding::identity_key(identity),
            query,
            WIDEST_OF_SUBSCRIBER,
        )
        .await
    }

    /// What is under a key and matches, that which a PCF wrote last first: a session may have taken an address after
    /// one that was begun later and left behind.
    async fn under(
        &self,
        index: Index,
        key: &[u8],
        query: &Query,
        widest: usize,
    ) -> Result<Vec<PcfBinding>, Error> {
        let mut limit = self.most;
        loop {
            let mut found = self.sessions.find(index, key, limit).await?;
            let all = found.len() < limit || limit >= self.most.saturating_mul(widest);
            found.retain(|stored| query.matches(&stored.record));
            found.sort_by_key(|stored| Reverse((written(stored), stored.version)));
            let matching: Vec<PcfBinding> = found.into_iter().map(|stored| stored.record).collect();
            // Further ones cannot change that.
            if all || matches!(select(&matching, query), Selection::Ambiguous) {
                return Ok(matching);
            }
            limit = limit.saturating_mul(STEP);
        }
    }

    /// The records under a key, all but an excessive number.
    async fn all_under<T: Record>(
        &self,
        table: &Table<T>,
        index: Index,
        key: &[u8],
    ) -> Result<Vec<Stored<T>>, Error> {
        let mut limit = self.most;
        loop {
            let found = table.find(index, key, limit).await?;
            if found.len() < limit || limit >= self.most.saturating_mul(WIDEST) {
                return Ok(found);
            }
            limit = limit.saturating_mul(STEP);
        }
    }

    /// Longest prefix first; of each length, the UE's own address before routes behind it.
    async fn at(&self, place: Place, query: &Query) -> Result<Vec<PcfBinding>, Error> {
        let (own, longest) = match place {
            Place::V4(..) => (PcfBinding::IPV4, 32),
            Place::V6(prefix) => (PcfBinding::IPV6, prefix.length()),
            Place::Mac(_) => (PcfBinding::MAC, 48),
        };
        for length in (0..=longest).rev() {
            let (is_own, is_further) = match place {
                Place::V4(..) => (length == 32, self.forms.has(Form::RouteV4(length))),
                Place::V6(_) => (
                    self.forms.has(Form::V6(length)),
                    self.forms.has(Form::FurtherV6(length)),
                ),
                Place::Mac(_) => (length == 48, length == 48 && self.forms.has(Form::FurtherMac)),
            };
            let cut = place.cut(length);
            if is_own {
                let found = self.under(own, &cut.key(), query, WIDEST).await?;
                if !found.is_empty() {
                    return Ok(found);
                }
            }
            if is_further {
                let found = self
                    .under(PcfBinding::FURTHER, &cut.further_key(), query, WIDEST)
                    .await?;
                if !found.is_empty() {
                    return Ok(found);
                }
            }
        }
        Ok(Vec::new())
    }

    /// The bindings of a subscriber's sessions with their versions, for who must know which came first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn of_subscriber(&self, supi: &str) -> Result<Vec<Stored<PcfBinding>>, Error> {
        let key = PcfBinding::identity_key(supi);
        let found = self.all_under(&self.sessions, PcfBinding::SUPI, &key).await?;
        Ok(found
            .into_iter()
            .filter(|one| one.0.text_of("supi") == Some(supi))
            .collect())
    }

    /// The bindings under a key of [`PcfBinding::PCF`].
    pub(crate) async fn of_pcf(&self, key: &[u8]) -> Result<Vec<Stored<PcfBinding>>, Error> {
        self.all_under(&self.sessions, PcfBinding::PCF, key).await
    }

    /// The subscriptions to the bindings of a subscriber.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn subscribers_of(&self, supi: &str) -> Result<Vec<Subscription>, Error> {
        let key = PcfBinding::identity_key(supi);
        let found = self
            .all_under(&self.subscriptions, Subscription::SUPI, &key)
            .await?;
        let records = found.into_iter().map(|stored| stored.record);
        Ok(records
            .filter(|one| one.0.text_of("supi") == Some(supi))
            .collect())
    }
}
