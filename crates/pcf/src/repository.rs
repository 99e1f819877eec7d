//! Associations in the store. A request is answered when its write is durable.
//!
//! A change is written on condition that no other writer has changed the association since it was read, so that each
//! association has one writer at a time across all workers and instances.

mod bdt;
mod beside;

pub(crate) use bdt::Beside;

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use sbi::json::is_deeper_than;
use store::{
    Batch, Clock, Condition, Conflict, Error, Index, Record as _, Scan, Store, Stored, Table, TableDef,
    Unreadable, Version,
};

use crate::association::address::{UeAddress, text_key};
use crate::association::bdt::{BdtLoad, BdtPolicy};
use crate::association::bound::SessionBinding;
use crate::association::due::{DeliveryDue, Renewal};
use crate::association::ended::EndedSession;
use crate::association::ledger::{Draft, Ledger};
use crate::association::owed_end::OwedEnd;
use crate::association::subscriber_state::SubscriberState;
use crate::association::sy::SyShare;
use crate::association::unconfirmed::Unconfirmed;
use crate::association::{Association, AssociationId, Kind, claims};
use crate::operator::{OperatorSettings, TracedSubscribers};
use crate::unreadable::UnreadableAssociations;

/// Levels of an encoded association: below what its decoder reads (127), so that what is written can be read.
const MOST_LEVELS: usize = 120;
/// What the PCF itself adds to an association (deliveries, bindings, the audit) may take this many bytes beyond the bound.
const OWN: usize = 16 * 1_024;
/// The bound where the settings name none.
const LARGEST: usize = 256 * 1_024;
/// Associations of a page of a walk over all of them.
const PAGE: usize = 256;

/// A session that ends, as it was read with its binding at the BSF.
#[derive(Debug)]
pub struct Ending {
    /// The association.
    pub stored: Stored<Association>,
    /// Its binding; `Some(None)`: it has no record of one, `None`: nothing was read.
    binding: Option<Option<Stored<SessionBinding>>>,
}

impl Ending {
    /// The URI of its binding.
    #[must_use]
    pub fn uri(&self) -> Option<String> {
        match self.binding.as_ref()? {
            Some(known) => known.record.uri.clone(),
            None => SessionBinding::of_earlier_release(&self.stored.record)?.uri,
        }
    }
}

/// Who makes an association larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    /// What a consumer, an AF or a source of data sends.
    Request,
    /// The PCF itself.
    Own,
}

/// What has become of a new association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is durable.
    Written,
    /// Another writer has changed what it was made of.
    Overtaken,
    /// Another association has what it claims.
    Claimed,
}

/// The store of a PCF. Clones share it.
#[derive(Clone, Debug)]
pub struct Repository {
    store: Store,
    associations: Table<Association>,
    traced: Table<TracedSubscribers>,
    ledgers: Table<Ledger>,
    states: Table<SubscriberState>,
    sy: Table<SyShare>,
    unconfirmed: Table<Unconfirmed>,
    renewals: Table<Renewal>,
    deliveries: Table<DeliveryDue>,
    bindings: Table<SessionBinding>,
    ended: Table<EndedSession>,
    owed_ends: Table<OwedEnd>,
    bdt: Table<BdtPolicy>,
    bdt_loads: Table<BdtLoad>,
    /// The time of what expires.
    clock: Clock,
    most: usize,
    /// Bytes of an association.
    largest: usize,
    unreadable: Arc<UnreadableAssociations>,
    /// The PCF that removes what its associations leave behind, and how long its own attempts take, in milliseconds.
    ends: (u64, u64),
}

impl Repository {
    /// Opens the store. `most`: associations of one address or subscriber that a query reads.
    ///
    /// # Errors
    /// When the store cannot be opened or read.
    pub async fn open(config: &store::Config, most: usize) -> Result<Self, Error> {
        let tables = [
            TableDef::of::<Association>(),
            TableDef::of::<OperatorSettings>(),
            TableDef::of::<Ledger>(),
            TableDef::of::<SyShare>(),
            TableDef::of::<TracedSubscribers>(),
            TableDef::of::<Unconfirmed>(),
            TableDef::of::<EndedSession>(),
            TableDef::of::<SubscriberState>(),
            TableDef::of::<Renewal>(),
            TableDef::of::<DeliveryDue>(),
            TableDef::of::<SessionBinding>(),
            TableDef::of::<OwedEnd>(),
            TableDef::of::<BdtPolicy>(),
            TableDef::of::<BdtLoad>(),
        ];
        let store = Store::open(config, &tables).await?;
        Ok(Self {
            associations: store.table()?,
            traced: store.table()?,
            ledgers: store.table()?,
            states: store.table()?,
            sy: store.table()?,
            unconfirmed: store.table()?,
            renewals: store.table()?,
            deliveries: store.table()?,
            bindings: store.table()?,
            ended: store.table()?,
            owed_ends: store.table()?,
            bdt: store.table()?,
            bdt_loads: store.table()?,
            clock: Clock::default(),
            most: most.max(2),
            largest: LARGEST,
            unreadable: Arc::default(),
            ends: (0, 0),
            store,
        })
    }

    /// With associations of this many bytes at most, all their parts together.
    #[must_use]
    pub fn with_largest(mut self, bytes: usize) -> Self {
        self.largest = bytes;
        self
    }

    /// As the PCF of this instance, whose own attempts at removing what an ended association leaves behind take this long.
    #[must_use]
    pub fn with_ends(mut self, instance: &str, lease: Duration) -> Self {
        let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        self.ends = (OwedEnd::number_of(instance), lease);
        self
    }

    /// Associations that cannot be read.
    pub(crate) fn unreadable(&self) -> &Arc<UnreadableAssociations> {
        &self.unreadable
    }

    /// All associations that cannot be read, with the reason: reads every record.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn find_unreadable(&self) -> Result<Vec<(AssociationId, String)>, Error> {
        let mut all = Vec::new();
        let mut next = Some(Scan::all(PAGE).beside_unreadable());
        while let Some(scan) = next {
            let page = self.associations.scan(&scan).await?;
            for one in page.unreadable {
                self.unreadable.note(&one);
                let id = <[u8; 16]>::try_from(&*one.key).unwrap_or_default();
                all.push((AssociationId(id), one.error.to_string()));
            }
            next = page.next;
            tokio::task::yield_now().await;
        }
        Ok(all)
    }

    /// Deletes an association by its identity alone, whether it can be read or not, durably.
    ///
    /// # Errors
    /// When it could not be deleted.
    pub async fn discard(&self, id: AssociationId) -> Result<(), Error> {
        let mut batch = Batch::default();
        batch.delete(&self.associations, &id.0, Condition::Always);
        batch.delete(&self.bindings, &id.0, Condition::Always);
        self.store.commit(batch).await?;
        self.unreadable.removed(id);
        Ok(())
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The table of associations, for scans.
    #[must_use]
    pub fn associations(&self) -> &Table<Association> {
        &self.associations
    }

    /// Writes associations whatever is there, durably.
    pub(crate) fn put(
        &self,
        associations: &[Association],
    ) -> impl Future<Output = Result<(), Error>> + use<> {
        let mut batch = Batch::default();
        let judged = associations.iter().try_for_each(|association| {
            batch.put_judged(&self.associations, association, Condition::Always, readable)
        });
        let written = judged.map(|()| self.store.commit(batch));
        async move { written?.await.map(drop) }
    }

    /// The association of an identity.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn get(&self, id: AssociationId) -> Result<Option<Stored<Association>>, Error> {
        let found = self.associations.get(&id.0).await;
        found.inspect_err(|error| {
            if matches!(error, Error::Corrupt { .. }) {
                self.unreadable.met(&id.0, error);
            }
        })
    }

    /// The binding of a session at the BSF, as far as a record of its own has it.
    pub(crate) async fn binding(&self, id: AssociationId) -> Result<Option<Stored<SessionBinding>>, Error> {
        self.bindings.get(&id.0).await
    }

    /// Keeps the binding of a session that stands, over the version that was read, durably; false when another writer was faster,
    /// or the session has ended.
    pub(crate) async fn keep_binding(
        &self,
        binding: &SessionBinding,
        version: Option<Version>,
    ) -> Result<bool, Error> {
        let mut batch = Batch::default();
        batch.require(&self.associations, &binding.id.0, Condition::Present);
        let condition = version.map_or(Condition::Absent, Condition::Version);
        batch.put_judged(&self.bindings, binding, condition, readable)?;
        written(self.store.commit(batch).await)
    }

    /// An association that is to end, with its binding where `with_binding`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn ending(&self, stored: Stored<Association>, with_binding: bool) -> Result<Ending, Error> {
        let is_session = matches!(stored.record.kind, Kind::Sm | Kind::Gx);
        let binding = match with_binding && is_session {
            true => Some(self.binding(stored.record.id).await?),
            false => None,
        };
        Ok(Ending { stored, binding })
    }

    /// Writes a new association in the place of others, whose AF sessions end, with what is left of these for their TDFs and what
    /// it changes of the records of its subscriber, durably and together.
    ///
    /// # Errors
    /// When it was not written for another reason than another writer.
    pub async fn add(
        &self,
        association: &Association,
        replaced: &[Ending],
        left: &[Association],
        draft: &Draft,
    ) -> Result<Added, Error> {
        let mut batch = Batch::default();
        for old in replaced {
            self.delete(&mut batch, old);
        }
        for new in left {
            batch.insert(&self.associations, new);
            self.put_due(&mut batch, None, new);
        }
        let fits = |bytes: &[u8]| {
            self.fits(bytes.len(), None, Growth::Request)
                .and_then(|()| readable(bytes))
        };
        batch.put_judged(&self.associations, association, Condition::Absent, fits)?;
        self.put_due(&mut batch, None, association);
        self.put_draft(&mut batch, draft)?;
        match self.store.commit(batch).await {
            Err(Error::Conflict {
                conflict: Conflict::Unique { .. },
                ..
            }) => Ok(Added::Claimed),
            outcome => Ok(match written(outcome)? {
                true => Added::Written,
                false => Added::Overtaken,
            }),
        }
    }

    /// The associations that have what a new one claims.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn holders(&self, association: &Association) -> Result<Vec<Stored<Association>>, Error> {
        let mut holders: Vec<Stored<Association>> = Vec::new();
        for claim in claims::of(association) {
            let found = self
                .associations
                .find_readable(Association::CLAIM, &text_key(&claim), 1)
                .await?;
            for one in found.unreadable {
                // It would keep the session from being established for ever.
                self.unreadable.note(&one);
                self.discard_version(&one).await?;
            }
            for one in found.records {
                let is_listed = holders.iter().any(|held| held.record.id == one.record.id);
                if !is_listed && one.record.id != association.id {
                    holders.push(one);
                }
            }
        }
        Ok(holders)
    }

    /// Writes an association over the version that it was made of, what it changes of the records of its subscriber and the RAR that
    /// it causes, durably and together; false when another writer was faster.
    ///
    /// # Errors
    /// When it was not written for another reason.
    pub(crate) async fn update(
        &self,
        (before, association): (&Association, &Association),
        version: Version,
        growth: Growth,
        draft: &Draft,
        unconfirmed: Option<&Unconfirmed>,
    ) -> Result<bool, Error> {
        let mut batch = Batch::default();
        self.put_due(&mut batch, Some(before), association);
        let fits = |bytes: &[u8]| {
            self.fits(bytes.len(), Some(before), growth)
                .and_then(|()| readable(bytes))
        };
        batch.put_judged(&self.associations, association, Condition::Version(version), fits)?;
        if let Some(one) = unconfirmed {
            batch.insert(&self.unconfirmed, one);
        }
        self.put_draft(&mut batch, draft)?;
        written(self.store.commit(batch).await)
    }

    /// Whether an association may have this many bytes. One that is larger already may be changed, and reduced.
    fn fits(&self, bytes: usize, before: Option<&Association>, growth: Growth) -> Result<(), Error> {
        if bytes <= self.largest {
            return Ok(());
        }
        let mut old = Vec::new();
        if let Some(before) = before {
            before.encode(&mut old);
        }
        let most = match growth {
            Growth::Request if bytes <= old.len() => return Ok(()),
            Growth::Request => self.largest,
            Growth::Own => self.largest.max(old.len()) + OWN,
        };
        match bytes <= most {
            true => Ok(()),
            false => Err(Error::Invalid(format!(
                "the policy association would have {bytes} bytes with all its application sessions, more than {} (maxAssociationSize)",
                self.largest
            ))),
        }
    }

    async fn discard_version(&self, one: &Unreadable) -> Result<(), Error> {
        let mut batch = Batch::default();
        batch.delete(&self.associations, &one.key, Condition::Version(one.version));
        batch.delete(&self.bindings, &one.key, Condition::Always);
        if written(self.store.commit(batch).await)?
            && let Ok(id) = (&*one.key).try_into()
        {
            self.unreadable.removed(AssociationId(id));
        }
        Ok(())
    }

    /// Deletes an association as it was read, and writes that its AF sessions have ended, what it changes of the records of its
    /// subscriber and what is left of it for its TDF, durably and together; false when another writer was faster.
    ///
    /// # Errors
    /// When it was not deleted for another reason.
    pub async fn remove(
        &self,
        ending: &Ending,
        draft: &Draft,
        left: Option<&Association>,
    ) -> Result<bool, Error> {
        let mut batch = Batch::default();
        self.delete(&mut batch, ending);
        if let Some(left) = left {
            batch.insert(&self.associations, left);
        }
        self.put_draft(&mut batch, draft)?;
        written(self.store.commit(batch).await)
    }

    fn delete(&self, batch: &mut Batch, ending: &Ending) {
        let due = (self.clock.micros() / 1_000).saturating_add(self.ends.1);
        for one in OwedEnd::of(&ending.stored.record, ending.uri(), (self.ends.0, due)) {
            batch.put(&self.owed_ends, &one, Condition::Always);
        }
        let Ending { stored, binding } = ending;
        let key = &stored.record.id.0;
        // A binding that another worker keeps meanwhile would stay at the BSF.
        match binding {
            Some(Some(known)) => batch.delete(&self.bindings, key, Condition::Version(known.version)),
            Some(None) => batch.require(&self.bindings, key, Condition::Absent),
            None if matches!(stored.record.kind, Kind::Sm | Kind::Gx) => {
                batch.delete(&self.bindings, key, Condition::Always);
            }
            None => {}
        }
        batch.delete(
            &self.associations,
            &stored.record.id.0,
            Condition::Version(stored.version),
        );
        if Renewal::of(&stored.record).is_some() {
            batch.delete(&self.renewals, &stored.record.id.0, Condition::Always);
        }
        if DeliveryDue::of(&stored.record).is_some() {
            batch.delete(&self.deliveries, &stored.record.id.0, Condition::Always);
        }
        for ended in EndedSession::of(&stored.record, self.clock.micros()) {
            batch.put(&self.ended, &ended, Condition::Always);
        }
    }

    /// Adds when subscriptions and deliveries of an association are due. That no subscription is due any more the sweep finds out.
    fn put_due(&self, batch: &mut Batch, before: Option<&Association>, association: &Association) {
        if let Some(renewal) = Renewal::of(association) {
            batch.put(&self.renewals, &renewal, Condition::Always);
        }
        let before = before.and_then(DeliveryDue::of);
        match DeliveryDue::of(association) {
            Some(due) if before != Some(due) => batch.put(&self.deliveries, &due, Condition::Always),
            None if before.is_some() => {
                batch.delete(&self.deliveries, &association.id.0, Condition::Always);
            }
            _ => {}
        }
    }

    /// Adds the messages to AFs that a request causes, and what it changes of the records of its subscriber, each on condition that it is
    /// as it was read.
    fn put_draft(&self, batch: &mut Batch, draft: &Draft) -> Result<(), Error> {
        for one in &draft.owed {
            batch.put(&self.unconfirmed, one, Condition::Always);
        }
        let condition = |version: Option<Version>| version.map_or(Condition::Absent, Condition::Version);
        if let Some(ledger) = draft.to_write() {
            batch.put_judged(&self.ledgers, ledger, condition(draft.version), readable)?;
        }
        match (draft.state.to_write(), draft.state.version()) {
            (Some(state), Some(version)) if state.variables.is_empty() => {
                let key = SubscriberState::key_of(&state.subscriber);
                batch.delete(&self.states, &key, Condition::Version(version));
            }
            (Some(state), version) if !state.variables.is_empty() => {
                batch.put_judged(&self.states, state, condition(version), readable)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The associations of a subscriber by its SUPI, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn of_supi(&self, supi: &str) -> Result<Vec<Stored<Association>>, Error> {
        let found = self.under(Association::SUPI, &text_key(supi)).await?;
        Ok(retained(found, |one| one.text_of("supi") == Some(supi)))
    }

    /// The associations of a subscriber by its GPSI, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn of_gpsi(&self, gpsi: &str) -> Result<Vec<Stored<Association>>, Error> {
        let found = self.under(Association::GPSI, &text_key(gpsi)).await?;
        Ok(retained(found, |one| one.text_of("gpsi") == Some(gpsi)))
    }

    /// The associations by the name that another protocol gave (`Session-Id` of Gx), the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn of_name(&self, name: &str) -> Result<Vec<Stored<Association>>, Error> {
        let found = self.under(Association::NAME, &text_key(name)).await?;
        Ok(retained(found, |one| one.names().any(|own| own == name)))
    }

    /// The sessions that have an address, the newest first: those of the most specific prefix. `domain` is the IP domain of
    /// an IPv4 address; without one, sessions of every domain are found.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn at(
        &self,
        address: UeAddress,
        domain: Option<&str>,
    ) -> Result<Vec<Stored<Association>>, Error> {
        for key in address.searches(domain) {
            let found = self.under(Association::ADDRESS, &key).await?;
            let found = retained(found, |one| address.is_of(one, domain));
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    }

    /// As [`Repository::at`], where there are some those in a DNN alone.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn at_in(
        &self,
        address: UeAddress,
        domain: Option<&str>,
        dnn: Option<&str>,
    ) -> Result<Vec<Stored<Association>>, Error> {
        if let Some(dnn) = dnn {
            let found = self.under(Association::ADDRESS, &address.search_in(dnn)).await?;
            let found = retained(found, |one| address.is_of(one, domain));
            if !found.is_empty() {
                return Ok(found);
            }
        }
        // Without a DNN, or written by an earlier release.
        self.at(address, domain).await
    }

    async fn under(&self, index: Index, key: &[u8]) -> Result<Vec<Stored<Association>>, Error> {
        let found = self.associations.find_readable(index, key, self.most).await?;
        for one in &found.unreadable {
            self.unreadable.note(one);
        }
        Ok(found.records)
    }
}

/// Refuses to write what could not be read again.
fn readable(bytes: &[u8]) -> Result<(), Error> {
    match is_deeper_than(bytes, MOST_LEVELS) {
        true => Err(Error::Invalid(format!(
            "the record would be nested deeper than {MOST_LEVELS} levels"
        ))),
        false => Ok(()),
    }
}

fn retained(
    mut found: Vec<Stored<Association>>,
    test: impl Fn(&Association) -> bool,
) -> Vec<Stored<Association>> {
    found.retain(|stored| test(&stored.record));
    found.sort_by_key(|stored| Reverse(stored.created));
    found
}

/// Whether a conditional write was carried out.
fn written(outcome: Result<Version, Error>) -> Result<bool, Error> {
    match outcome {
        Ok(_) => Ok(true),
        Err(Error::Conflict {
            conflict: Conflict::Changed(_) | Conflict::Absent | Conflict::Exists(_),
            ..
        }) => Ok(false),
        Err(error) => Err(error),
    }
}
