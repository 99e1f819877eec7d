//! The tables of an SDS: the journal's head and entries, and groups.

use store::{Batch, Condition, Error, Record, Scan, Store, Stored, Table, TableDef, Version};

use crate::record::{Entry, Group, Head};

/// Entries that are read or removed at once, at most.
pub(crate) const PAGE: usize = 500;

/// The tables. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    store: Store,
    heads: Table<Head>,
    journal: Table<Entry>,
    pub(crate) groups: Table<Group>,
}

/// A group that is written with a transaction.
#[derive(Clone, Debug)]
pub(crate) struct GroupWrite {
    /// Without a number: it is removed.
    pub(crate) group: Group,
    pub(crate) condition: Condition,
}

impl Repository {
    pub(crate) async fn open(config: &store::Config) -> Result<Self, Error> {
        let tables = [
            TableDef::of::<Head>(),
            TableDef::of::<Entry>(),
            TableDef::of::<Group>(),
        ];
        let store = Store::open(config, &tables).await?;
        Ok(Self {
            heads: store.table()?,
            journal: store.table()?,
            groups: store.table()?,
            store,
        })
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The head of the journal; none before the first server has started.
    pub(crate) async fn head(&self) -> Result<Option<Stored<Head>>, Error> {
        self.heads.get(Head::KEY).await
    }

    /// Creates the journal, unless another server has.
    pub(crate) async fn create(&self, head: &Head) -> Result<(), Error> {
        let mut batch = Batch::default();
        batch.insert(&self.heads, head);
        match self.store.commit(batch).await {
            Ok(_) | Err(Error::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Entries from this offset on, in order, one page at most.
    pub(crate) async fn entries(&self, from: u64, most: usize) -> Result<Vec<Stored<Entry>>, Error> {
        let scan = Scan::by_index(Entry::OFFSET, most.clamp(1, PAGE)).from_key(&from.to_be_bytes());
        Ok(self.journal.scan(&scan).await?.records)
    }

    /// Appends entries, which follow one another, behind the head of this version, with a group that belongs to them;
    /// returns the new version of the head.
    pub(crate) async fn append(
        &self,
        head: &Head,
        version: Version,
        entries: &[Entry],
        group: Option<&GroupWrite>,
    ) -> Result<Version, Error> {
        let mut batch = Batch::default();
        batch.update(&self.heads, head, version);
        for entry in entries {
            batch.insert(&self.journal, entry);
        }
        if let Some(GroupWrite { group, condition }) = group {
            if group.numbers.is_empty() {
                batch.delete(&self.groups, &group.key(), *condition);
            } else {
                batch.put(&self.groups, group, *condition);
            }
        }
        self.store.commit(batch).await
    }

    /// Removes entries, whose offsets are below the first one that the new head names.
    pub(crate) async fn trim(
        &self,
        head: &Head,
        version: Version,
        offsets: impl Iterator<Item = u64>,
    ) -> Result<Version, Error> {
        let mut batch = Batch::default();
        batch.update(&self.heads, head, version);
        for offset in offsets {
            batch.delete(&self.journal, &offset.to_be_bytes(), Condition::Always);
        }
        self.store.commit(batch).await
    }
}
