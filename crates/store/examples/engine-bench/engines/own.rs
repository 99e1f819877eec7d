//! This crate.

use std::path::Path;

use store::{Batch, Condition, Config, EmbeddedConfig, Store, Table, TableDef};

use super::{Engine, Outcome};
use crate::Bytes;
use crate::binding::Binding;

pub(super) struct Own {
    runtime: tokio::runtime::Runtime,
    store: Store,
    table: Table<Binding>,
    next: u64,
}

impl Own {
    pub(super) fn open(directory: &Path) -> Outcome<Own> {
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
            embedded,
            ..Config::default()
        };
        let store = runtime.block_on(Store::open(&config, &[TableDef::of::<Binding>()]))?;
        let table = store.table()?;
        Ok(Own {
            runtime,
            store,
            table,
            next: 0,
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

impl Engine for Own {
    fn insert(&mut self, group: &[Bytes]) -> Outcome<()> {
        let batches = group.iter().map(|_| {
            let mut batch = Batch::default();
            batch.insert(&self.table, &Binding::new(self.next));
            self.next += 1;
            batch
        });
        let batches = batches.collect();
        self.commit(batches)
    }

    fn get(&mut self, id: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let found = self.runtime.block_on(self.table.get(id))?;
        Ok(found.map(|stored| stored.number.to_le_bytes().to_vec()))
    }

    fn find(&mut self, index: u8, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let found = self
            .runtime
            .block_on(self.table.find(store::Index(index), key, 1))?;
        Ok(found.first().map(|stored| stored.number.to_le_bytes().to_vec()))
    }

    fn delete(&mut self, group: &[[u8; 16]]) -> Outcome<()> {
        let batches = group.iter().map(|id| {
            let mut batch = Batch::default();
            batch.delete(&self.table, id, Condition::Always);
            batch
        });
        let batches = batches.collect();
        self.commit(batches)
    }
}
