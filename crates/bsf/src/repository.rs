//! Bindings in the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use sbi::problem::{Cause, Problem};
use store::{Batch, Condition, Conflict, Error, Index, Record, Scan, Store, Stored, Table, TableDef};

use crate::binding::{
    BindingId, Document, Form, FormRecord, Forms, MbsBinding, PcfBinding, Place, Query, Subscription,
    UeBinding,
};
use crate::rx::KeptPath;

/// How many records a table has, as far as this instance knows.
#[derive(Clone, Debug, Default)]
pub struct Held(Arc<AtomicUsize>);

impl Held {
    /// So many.
    #[must_use]
    pub fn get(&self) -> usize {
        self.0.load(Relaxed)
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
    /// Who wants to be told.
    pub subscriptions: Table<Subscription>,
    /// Paths of Rx sessions.
    pub(crate) paths: Table<KeptPath>,
    /// How many of those there are.
    pub paths_held: Held,
    forms_table: Table<FormRecord>,
    forms: Arc<Forms>,
    /// Whether anybody wants to be told of anything.
    watched: Arc<AtomicBool>,
    packed: bool,
    most: usize,
}

/// Tries of a change that others keep overtaking.
const TRIES: usize = 5;

impl Repository {
    /// Opens the store. `most`: bindings of one address or subscriber that are looked at.
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
            TableDef::of::<KeptPath>(),
        ];
        let store = Store::open(config, &tables).await?;
        let repository = Self {
            sessions: store.table()?,
            ues: store.table()?,
            mbs: store.table()?,
            subscriptions: store.table()?,
            paths: store.table()?,
            paths_held: Held::default(),
            forms_table: store.table()?,
            forms: Arc::default(),
            watched: Arc::default(),
            // Databases have JSON, which other tools read.
            packed: config.engine == store::EngineKind::Embedded,
            most: most.max(2),
            store,
        };
        repository.refresh().await?;
        Ok(repository)
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

    /// Whether anybody wants to be told of anything.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.watched.load(Relaxed)
    }

    /// From now on somebody wants to be told.
    pub fn watch(&self) {
        self.watched.store(true, Relaxed);
    }

    /// A new document for this store.
    #[must_use]
    pub fn document(&self, id: BindingId, value: serde_json::Value) -> Document {
        Document::new(id, value, self.packed)
    }

    /// Adds to a batch what a session's binding needs to be found: forms of addresses never seen before.
    /// Those in `already` are in the batch.
    fn learn(&self, batch: &mut Batch, binding: &PcfBinding, already: &[Form]) -> Vec<Form> {
        let mut fresh: Vec<Form> = Vec::new();
        for form in binding.forms() {
            if !self.forms.has(form) && !already.contains(&form) && !fresh.contains(&form) {
                batch.put(&self.forms_table, &FormRecord(form), Condition::Always);
                fresh.push(form);
            }
        }
        fresh
    }

    /// Writes a session's new binding, durably.
    ///
    /// # Errors
    /// When it was not written.
    pub async fn add_session(&self, binding: &PcfBinding) -> Result<store::Version, Error> {
        let mut batch = Batch::default();
        batch.insert(&self.sessions, binding);
        let fresh = self.learn(&mut batch, binding, &[]);
        let version = self.store.commit(batch).await?;
        fresh.into_iter().for_each(|form| self.forms.add(form));
        Ok(version)
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

    /// Changes a session's binding, however many others change it at the same time. `None`: there is none.
    ///
    /// # Errors
    /// What `change` says, or that it could not be written.
    pub async fn change_session(
        &self,
        id: BindingId,
        change: impl Fn(&Document) -> Result<Document, Problem>,
    ) -> Result<Option<PcfBinding>, Problem> {
        for _ in 0..TRIES {
            let Some(stored) = self.sessions.get(&id.0).await.map_err(problem)? else {
                return Ok(None);
            };
            let changed = PcfBinding(change(&stored.record.0)?);
            let mut batch = Batch::default();
            batch.update(&self.sessions, &changed, stored.version);
            let fresh = self.learn(&mut batch, &changed, &[]);
            match self.store.commit(batch).await {
                Ok(_) => {
                    fresh.into_iter().for_each(|form| self.forms.add(form));
                    return Ok(Some(changed));
                }
                Err(Error::Conflict { .. }) => {}
                Err(error) => return Err(problem(error)),
            }
        }
        Err(Problem::new(Cause::Conflict).detail("others keep changing this binding; try again"))
    }

    /// As [`Repository::change_session`], of any other table.
    ///
    /// # Errors
    /// What `change` says, or that it could not be written.
    pub async fn change<T: Record>(
        &self,
        table: &Table<T>,
        id: BindingId,
        change: impl Fn(&T) -> Result<T, Problem>,
    ) -> Result<Option<T>, Problem> {
        for _ in 0..TRIES {
            let Some(stored) = table.get(&id.0).await.map_err(problem)? else {
                return Ok(None);
            };
            let changed = change(&stored.record)?;
            let mut batch = Batch::default();
            batch.update(table, &changed, stored.version);
            match self.store.commit(batch).await {
                Ok(_) => return Ok(Some(changed)),
                Err(Error::Conflict { .. }) => {}
                Err(error) => return Err(problem(error)),
            }
        }
        Err(Problem::new(Cause::Conflict).detail("others keep changing this resource; try again"))
    }

    /// Writes a new record of any other table.
    ///
    /// # Errors
    /// When it was not written.
    pub async fn add<T: Record>(&self, table: &Table<T>, record: &T) -> Result<(), Error> {
        let mut batch = Batch::default();
        batch.insert(table, record);
        self.store.commit(batch).await.map(drop)
    }

    /// Deletes a record; false when there was none.
    ///
    /// # Errors
    /// When it could not be deleted.
    pub async fn remove<T: Record>(&self, table: &Table<T>, id: BindingId) -> Result<bool, Problem> {
        let mut batch = Batch::default();
        batch.delete(table, &id.0, Condition::Present);
        match self.store.commit(batch).await {
            Ok(_) => Ok(true),
            Err(Error::Conflict {
                conflict: Conflict::Absent,
                ..
            }) => Ok(false),
            Err(error) => Err(problem(error)),
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
        self.under(index, &PcfBinding::identity_key(identity), query)
            .await
    }

    async fn under(&self, index: Index, key: &[u8], query: &Query) -> Result<Vec<PcfBinding>, Error> {
        let found = self.sessions.find(index, key, self.most).await?;
        let records = found.into_iter().map(|stored| stored.record);
        Ok(records.filter(|binding| query.matches(binding)).collect())
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
                let found = self.under(own, &cut.key(), query).await?;
                if !found.is_empty() {
                    return Ok(found);
                }
            }
            if is_further {
                let found = self.under(PcfBinding::FURTHER, &cut.further_key(), query).await?;
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
        let found = self.sessions.find(PcfBinding::SUPI, &key, self.most).await?;
        Ok(found
            .into_iter()
            .filter(|one| one.0.text_of("supi") == Some(supi))
            .collect())
    }

    /// Who wants to be told of a subscriber.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn subscribers_of(&self, supi: &str) -> Result<Vec<Subscription>, Error> {
        let key = PcfBinding::identity_key(supi);
        let found = self
            .subscriptions
            .find(Subscription::SUPI, &key, self.most)
            .await?;
        let records = found.into_iter().map(|stored| stored.record);
        Ok(records
            .filter(|one| one.0.text_of("supi") == Some(supi))
            .collect())
    }
}

/// What a consumer is told of an error of the store.
#[must_use]
pub fn problem(error: Error) -> Problem {
    match error {
        Error::Overflow { .. } => Problem::new(Cause::NfCongestion).detail("too many writes wait; try later"),
        Error::Unavailable { maybe_applied, .. } => {
            // The store says once that it is not available, not for each request.
            tracing::debug!(%error, "a request failed");
            let detail = match maybe_applied {
                true => "the database failed in the middle; the request may have been carried out",
                false => "the database is not available; nothing was done, try later",
            };
            Problem::of_status(http::StatusCode::SERVICE_UNAVAILABLE).detail(detail)
        }
        Error::Invalid(reason) => Problem::new(Cause::PayloadTooLarge).detail(reason),
        error => {
            match error {
                Error::Engine(_) | Error::Closed => tracing::debug!(%error, "a request failed"),
                _ => tracing::error!(%error, "a request failed"),
            }
            Problem::new(Cause::SystemFailure)
        }
    }
}
