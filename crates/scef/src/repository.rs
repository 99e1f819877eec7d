//! The tables of an SCEF.

use store::{Batch, Condition, Error, Index, Record, Scan, Store, Stored, Table, TableDef, Version};

use crate::clock::now;
use crate::record::{
    Answered, Configuration, Connection, Downlink, Gathering, GroupDelivery, GroupOutcome, Id, Notice,
    Subscription, Trigger, TriggerReport,
};

/// Records of one page of a scan.
const PAGE: usize = 500;
/// Connections and NIDD configurations of one device, at most.
const OF_DEVICE: usize = 64;
/// Members of a group with a NIDD configuration, at most.
pub(crate) const MEMBERS: usize = 1_000;

/// The tables of an SCEF. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    store: Store,
    pub(crate) subscriptions: Table<Subscription>,
    pub(crate) configurations: Table<Configuration>,
    pub(crate) connections: Table<Connection>,
    pub(crate) downlinks: Table<Downlink>,
    pub(crate) triggers: Table<Trigger>,
    pub(crate) reports: Table<TriggerReport>,
    pub(crate) gatherings: Table<Gathering>,
    pub(crate) group_deliveries: Table<GroupDelivery>,
    pub(crate) group_outcomes: Table<GroupOutcome>,
    pub(crate) notices: Table<Notice>,
    pub(crate) answers: Table<Answered>,
}

impl Repository {
    /// Opens the store.
    pub(crate) async fn open(config: &store::Config) -> Result<Self, Error> {
        let tables = [
            TableDef::of::<Subscription>(),
            TableDef::of::<Configuration>(),
            TableDef::of::<Connection>(),
            TableDef::of::<Downlink>(),
            TableDef::of::<Trigger>(),
            TableDef::of::<TriggerReport>(),
            TableDef::of::<Gathering>(),
            TableDef::of::<GroupDelivery>(),
            TableDef::of::<GroupOutcome>(),
            TableDef::of::<Notice>(),
            TableDef::of::<Answered>(),
        ];
        let store = Store::open(config, &tables).await?;
        Ok(Self {
            subscriptions: store.table()?,
            configurations: store.table()?,
            connections: store.table()?,
            downlinks: store.table()?,
            triggers: store.table()?,
            reports: store.table()?,
            gatherings: store.table()?,
            group_deliveries: store.table()?,
            group_outcomes: store.table()?,
            notices: store.table()?,
            answers: store.table()?,
            store,
        })
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Commits a batch; false when a condition of it does not hold.
    pub(crate) async fn commit(&self, batch: Batch) -> Result<bool, Error> {
        Ok(self.version_of(batch).await?.is_some())
    }

    async fn version_of(&self, batch: Batch) -> Result<Option<Version>, Error> {
        match self.store.commit(batch).await {
            Ok(version) => Ok(Some(version)),
            Err(Error::Conflict { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a new record; false if another record has its key or a unique one.
    pub(crate) async fn insert<T: Record>(&self, table: &Table<T>, record: &T) -> Result<bool, Error> {
        let mut batch = Batch::default();
        batch.insert(table, record);
        self.commit(batch).await
    }

    /// Replaces a record as it was read: the record as it is stored now, `None` if it has changed since.
    pub(crate) async fn update<T: Record>(
        &self,
        table: &Table<T>,
        before: &Stored<T>,
        record: T,
    ) -> Result<Option<Stored<T>>, Error> {
        let mut batch = Batch::default();
        batch.update(table, &record, before.version);
        let version = self.version_of(batch).await?;
        Ok(version.map(|version| Stored {
            record,
            version,
            created: before.created,
            site: before.site.clone(),
        }))
    }

    /// Deletes a record; false if it does not exist.
    pub(crate) async fn remove<T: Record>(&self, table: &Table<T>, key: &[u8]) -> Result<bool, Error> {
        let mut batch = Batch::default();
        batch.delete(table, key, Condition::Present);
        self.commit(batch).await
    }

    /// Deletes a record as it was read; false when it has changed since.
    pub(crate) async fn remove_as_read<T: Record>(
        &self,
        table: &Table<T>,
        found: &Stored<T>,
    ) -> Result<bool, Error> {
        let mut batch = Batch::default();
        delete_as_read(&mut batch, table, found);
        self.commit(batch).await
    }

    /// All records of a table, page by page.
    pub(crate) async fn each<T: Record>(
        &self,
        table: &Table<T>,
        mut then: impl FnMut(Stored<T>),
    ) -> Result<(), Error> {
        let mut next = Some(Scan::all(PAGE));
        while let Some(scan) = next {
            let page = table.scan(&scan).await?;
            page.records.into_iter().for_each(&mut then);
            next = page.next;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// The connections of a NIDD configuration.
    pub(crate) async fn connections_of(&self, configuration: Id) -> Result<Vec<Stored<Connection>>, Error> {
        let key = configuration.key();
        self.connections
            .find(Connection::CONFIGURATION, &key, OF_DEVICE)
            .await
    }

    /// The NIDD configurations of a device.
    pub(crate) async fn configurations_of(&self, imsi: &str) -> Result<Vec<Stored<Configuration>>, Error> {
        self.configurations
            .find(Configuration::IMSI, imsi.as_bytes(), OF_DEVICE)
            .await
    }

    /// The NIDD configurations of the members of a group.
    pub(crate) async fn members_of(&self, group: Id) -> Result<Vec<Stored<Configuration>>, Error> {
        self.configurations
            .find(Configuration::GROUP, &group.key(), MEMBERS)
            .await
    }

    /// Records of a table whose time, by this index, is over.
    pub(crate) async fn over<T: Record>(
        &self,
        table: &Table<T>,
        ends: Index,
        most: usize,
    ) -> Result<Vec<Stored<T>>, Error> {
        let end = now().saturating_add(1).to_be_bytes();
        let scan = Scan::by_index(ends, most).to_key(&end);
        Ok(table.scan(&scan).await?.records)
    }

    /// The data for the device of a NIDD configuration, in the order of acceptance.
    pub(crate) async fn downlinks_of(
        &self,
        configuration: Id,
        most: usize,
    ) -> Result<Vec<Stored<Downlink>>, Error> {
        let found = self
            .downlinks
            .find(Downlink::CONFIGURATION, &configuration.key(), most);
        let mut found = found.await?;
        found.sort_by_key(|one| one.record.id);
        Ok(found)
    }

    /// Configurations with data that something is to be done with now, each as often as it has such data, page by page.
    pub(crate) async fn each_due(&self, most: usize, mut then: impl FnMut(Id)) -> Result<(), Error> {
        let end = now().saturating_add(1).to_be_bytes();
        let mut next = Some(Scan::by_index(Downlink::DUE, most).to_key(&end));
        while let Some(scan) = next {
            let page = self.downlinks.scan(&scan).await?;
            page.records.iter().for_each(|one| then(one.record.configuration));
            next = page.next;
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// Deletes a record as it was read, within a batch.
pub(crate) fn delete_as_read<T: Record>(batch: &mut Batch, table: &Table<T>, found: &Stored<T>) {
    batch.delete(table, &found.record.key(), Condition::Version(found.version));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::record::Status;

    #[test]
    fn configurations_with_data_that_is_due_are_found_beyond_a_page() {
        testpeer::local(async {
            let directory = tempfile::tempdir().unwrap();
            let mut config = store::Config::default();
            config.embedded.directory = directory.path().to_owned();
            let repository = Repository::open(&config).await.unwrap();
            let later = now() + 3_600_000_000;
            let mut expected = BTreeSet::new();
            for number in 0..8 {
                let due = if number % 4 == 3 { later } else { number };
                let downlink = Downlink {
                    id: Id::new(number),
                    configuration: Id::new(100 + number),
                    scs: "as1".to_owned(),
                    target: String::new(),
                    document: serde_json::json!({}),
                    status: Status::Buffering,
                    buffered: true,
                    expires: later,
                    due,
                    sent: None,
                    group: None,
                };
                assert!(repository.insert(&repository.downlinks, &downlink).await.unwrap());
                expected.extend((due < later).then_some(downlink.configuration));
            }
            for most in [1, 2, 6, 100] {
                let mut found = Vec::new();
                repository.each_due(most, |one| found.push(one)).await.unwrap();
                assert_eq!(found.len(), expected.len(), "pages of {most}");
                assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
            }
            repository.store().clone().close().await;
        });
    }
}
