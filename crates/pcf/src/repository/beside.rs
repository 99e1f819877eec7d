//! Records beside associations: of subscribers, of what is due, of operators.

use store::{Batch, Condition, Error, Record, Scan, Stored, Table, Version};

use super::{Repository, readable, written};
use crate::association::AssociationId;
use crate::association::due::{DeliveryDue, Renewal};
use crate::association::ended::EndedSession;
use crate::association::ledger::Ledger;
use crate::association::owed_end::OwedEnd;
use crate::association::subscriber_state::SubscriberState;
use crate::association::sy::SyShare;
use crate::association::unconfirmed::Unconfirmed;
use crate::operator::TracedSubscribers;

impl Repository {
    /// About how many records each table has.
    pub(crate) async fn counts(&self) -> Result<Vec<(&'static str, u64)>, Error> {
        async fn count<T: Record>(table: &Table<T>) -> Result<(&'static str, u64), Error> {
            Ok((T::TABLE.name, table.count().await?))
        }
        Ok(vec![
            count(&self.associations).await?,
            count(&self.ledgers).await?,
            count(&self.states).await?,
            count(&self.sy).await?,
            count(&self.bindings).await?,
            count(&self.unconfirmed).await?,
            count(&self.renewals).await?,
            count(&self.deliveries).await?,
            count(&self.ended).await?,
            count(&self.owed_ends).await?,
            count(&self.bdt).await?,
        ])
    }

    /// The table of ledgers, for the sweep.
    pub(crate) fn ledgers(&self) -> &Table<Ledger> {
        &self.ledgers
    }

    /// The table of AF sessions that ended with the session of their UE, for the sweep.
    pub(crate) fn ended_sessions(&self) -> &Table<EndedSession> {
        &self.ended
    }

    /// Whether an AF session ended lately with the session of its UE and its AF has not terminated it yet, as it does now.
    pub(crate) async fn confirm_end(&self, name: &str) -> Result<bool, Error> {
        let key = EndedSession::key_of(name);
        let stored = self.ended.get(&key).await?;
        let Some(stored) = stored.filter(|stored| stored.record.name == name) else {
            return Ok(false);
        };
        let mut batch = Batch::default();
        batch.delete(&self.ended, &key, Condition::Version(stored.version));
        written(self.store.commit(batch).await)
    }

    /// The ledger of a subscriber.
    pub(crate) async fn ledger(&self, subscriber: &str) -> Result<Option<Stored<Ledger>>, Error> {
        let stored = self.ledgers.get(&Ledger::key_of(subscriber)).await?;
        Ok(stored.filter(|stored| stored.record.subscriber == subscriber))
    }

    /// Writes a ledger in the place of one that was read; false: another writer was faster.
    pub(crate) async fn put_ledger(&self, ledger: &Ledger, version: Version) -> Result<bool, Error> {
        let mut batch = Batch::default();
        batch.put_judged(&self.ledgers, ledger, Condition::Version(version), readable)?;
        written(self.store.commit(batch).await)
    }

    /// The table of state variables, for the sweep.
    pub(crate) fn states(&self) -> &Table<SubscriberState> {
        &self.states
    }

    /// The state variables of a subscriber.
    pub(crate) async fn state(&self, subscriber: &str) -> Result<Option<Stored<SubscriberState>>, Error> {
        let stored = self.states.get(&SubscriberState::key_of(subscriber)).await?;
        Ok(stored.filter(|stored| stored.record.subscriber == subscriber))
    }

    /// Deletes the state variables of a subscriber.
    pub(crate) async fn remove_state(&self, subscriber: &str) -> Result<(), Error> {
        let mut batch = Batch::default();
        let key = SubscriberState::key_of(subscriber);
        batch.delete(&self.states, &key, Condition::Always);
        self.store.commit(batch).await.map(drop)
    }

    /// RARs that are due, some at a time.
    pub(crate) async fn overdue(&self, now: u64, most: usize) -> Result<Vec<Stored<Unconfirmed>>, Error> {
        let scan = Scan::by_index(Unconfirmed::DUE, most).to_key(&now.to_be_bytes());
        Ok(self.unconfirmed.scan(&scan).await?.records)
    }

    /// Has a RAR due later, durably; false when another process was faster, or it is confirmed.
    pub(crate) async fn postpone(&self, next: &Unconfirmed, version: Version) -> Result<bool, Error> {
        let mut batch = Batch::default();
        batch.update(&self.unconfirmed, next, version);
        written(self.store.commit(batch).await)
    }

    /// Keeps what is to be sent, durably.
    pub(crate) async fn owe(&self, one: &Unconfirmed) -> Result<(), Error> {
        let mut batch = Batch::default();
        batch.put(&self.unconfirmed, one, Condition::Always);
        self.store.commit(batch).await.map(drop)
    }

    /// A RAR is confirmed, or given up.
    pub(crate) async fn confirm(&self, id: AssociationId, number: u64) -> Result<(), Error> {
        let mut batch = Batch::default();
        let key = Unconfirmed::key_of(id, number);
        batch.delete(&self.unconfirmed, &key, Condition::Always);
        self.store.commit(batch).await.map(drop)
    }

    /// The table of what ended associations have left behind.
    pub(crate) fn owed_ends(&self) -> &Table<OwedEnd> {
        &self.owed_ends
    }

    /// How long the attempts of the worker that ends an association take, in milliseconds.
    pub(crate) fn end_lease(&self) -> u64 {
        self.ends.1
    }

    /// Has a removal due later, durably; false when another process was faster, or it is done.
    pub(crate) async fn postpone_end(&self, next: &OwedEnd, version: Version) -> Result<bool, Error> {
        let mut batch = Batch::default();
        batch.update(&self.owed_ends, next, version);
        written(self.store.commit(batch).await)
    }

    /// These are removed.
    pub(crate) async fn settle_ends(&self, ends: &[OwedEnd]) -> Result<(), Error> {
        if ends.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::default();
        for one in ends {
            batch.delete(&self.owed_ends, &one.key(), Condition::Always);
        }
        self.store.commit(batch).await.map(drop)
    }

    /// Associations whose subscriptions are due, some at a time.
    pub(crate) async fn renewals(&self, now: u64, most: usize) -> Result<Vec<Stored<Renewal>>, Error> {
        let scan = Scan::by_index(Renewal::DUE, most).to_key(&now.to_be_bytes());
        Ok(self.renewals.scan(&scan).await?.records)
    }

    /// Has subscriptions due later, durably; false when another process was faster.
    pub(crate) async fn postpone_renewal(&self, next: &Renewal, version: Version) -> Result<bool, Error> {
        let mut batch = Batch::default();
        batch.update(&self.renewals, next, version);
        written(self.store.commit(batch).await)
    }

    /// Nothing is due for an association.
    pub(crate) async fn forget_renewal(&self, id: AssociationId) -> Result<(), Error> {
        let mut batch = Batch::default();
        batch.delete(&self.renewals, &id.0, Condition::Always);
        self.store.commit(batch).await.map(drop)
    }

    /// The table of deliveries of UE policies in flight.
    pub(crate) fn deliveries(&self) -> &Table<DeliveryDue> {
        &self.deliveries
    }

    /// No delivery is in flight for an association that is gone.
    pub(crate) async fn forget_delivery(&self, id: AssociationId) -> Result<(), Error> {
        let mut batch = Batch::default();
        batch.require(&self.associations, &id.0, Condition::Absent);
        batch.delete(&self.deliveries, &id.0, Condition::Always);
        written(self.store.commit(batch).await).map(drop)
    }

    /// The Sy session of a subscriber.
    pub(crate) async fn sy(&self, subscriber: &str) -> Result<Option<Stored<SyShare>>, Error> {
        let stored = self.sy.get(&SyShare::key_of(subscriber)).await?;
        Ok(stored.filter(|stored| stored.record.subscriber == subscriber))
    }

    /// Writes the Sy session of a subscriber over the version that it was made of, or as a new one, durably; false when another
    /// writer was faster.
    pub(crate) async fn put_sy(&self, share: &SyShare, version: Option<Version>) -> Result<bool, Error> {
        let mut batch = Batch::default();
        let condition = version.map_or(Condition::Absent, Condition::Version);
        batch.put(&self.sy, share, condition);
        written(self.store.commit(batch).await)
    }

    /// Deletes the Sy session of a subscriber of this version, durably; false when another writer was faster.
    pub(crate) async fn remove_sy(&self, subscriber: &str, version: Version) -> Result<bool, Error> {
        let mut batch = Batch::default();
        batch.delete(
            &self.sy,
            &SyShare::key_of(subscriber),
            Condition::Version(version),
        );
        written(self.store.commit(batch).await)
    }

    /// Subscribers that an operator traces at an instance.
    pub(crate) async fn traced(&self, nf_instance_id: &str) -> Result<Vec<String>, Error> {
        let stored = self.traced.get(nf_instance_id.as_bytes()).await?;
        Ok(stored.map(|stored| stored.record.subscribers).unwrap_or_default())
    }

    /// Writes the subscribers that an operator traces at an instance, durably.
    pub(crate) async fn keep_traced(
        &self,
        nf_instance_id: &str,
        subscribers: &[String],
    ) -> Result<(), Error> {
        let record = TracedSubscribers {
            nf_instance_id: nf_instance_id.to_owned(),
            subscribers: subscribers.to_vec(),
        };
        let mut batch = Batch::default();
        batch.put(&self.traced, &record, Condition::Always);
        self.store.commit(batch).await.map(drop)
    }
}
