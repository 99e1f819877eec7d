//! This crate.

use std::path::Path;

use settings::ByteSize;
use store::{Batch, Condition, Config, EmbeddedConfig, Store, Table, TableDef};

use super::{Engine, Outcome, changed_since};
use crate::work::{Bytes, Work};

pub(super) struct Own<W> {
    runtime: tokio::runtime::Runtime,
    store: Store,
    table: Table<W>,
}

impl<W: Work> Own<W> {
    pub(super) fn open(directory: &Path) -> Outcome<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let embedded = EmbeddedConfig {
            directory: directory.to_owned(),
            // The others' groups follow one another without a pause as well.
            group_interval: settings::Period::from_millis(0),
            ..EmbeddedConfig::default()
        };
        let config = Config {
            // Large values only, as functions do.
            compress_above: ByteSize(1_024),
            embedded,
            ..Config::default()
        };
        let store = runtime.block_on(Store::open(&config, &[TableDef::of::<W>()]))?;
        let table = store.table()?;
        Ok(Self {
            runtime,
            store,
            table,
        })
    }

    fn commit(&self, batches: Vec<Batch>) -> Outcome<()> {
        let receipts: Vec<_> = batches
            .into_iter()
            .map(|batch| self.store.commit(batch))
            .collect();
        receipts
            .into_iter()
            .try_for_each(|receipt| receipt.wait().map(|_| ()))?;
        Ok(())
    }
}

impl<W: Work> Engine for Own<W> {
    fn insert(&mut self, group: &[Bytes]) -> Outcome<()> {
        let batches = group.iter().map(|bytes| {
            let mut batch = Batch::default();
            batch.insert(&self.table, &W::take(bytes));
            batch
        });
        let batches = batches.collect();
        self.commit(batches)
    }

    fn update(&mut self, group: &[Bytes]) -> Outcome<()> {
        let mut batches = Vec::with_capacity(group.len());
        for bytes in group {
            let stored = self.runtime.block_on(self.table.get(&bytes.id))?;
            let stored = stored.ok_or_else(|| changed_since(bytes))?;
            let mut batch = Batch::default();
            batch.put(&self.table, &W::take(bytes), Condition::Version(stored.version));
            batches.push(batch);
        }
        self.commit(batches)
    }

    fn get(&mut self, id: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let found = self.runtime.block_on(self.table.get(id))?;
        Ok(found.map(|stored| stored.record.answer()))
    }

    fn find(&mut self, index: u8, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let found = self
            .runtime
            .block_on(self.table.find(store::Index(index), key, 1))?;
        Ok(found.into_iter().next().map(|stored| stored.record.answer()))
    }

    fn delete(&mut self, group: &[Vec<u8>]) -> Outcome<()> {
        let batches = group.iter().map(|id| {
            let mut batch = Batch::default();
            batch.delete(&self.table, id, Condition::Always);
            batch
        });
        let batches = batches.collect();
        self.commit(batches)
    }
}
