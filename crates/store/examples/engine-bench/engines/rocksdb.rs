//! RocksDB: a tree of logs (LSM) in C++, with values in its sorted tables or, as files of blobs, beside them.

use std::path::Path;

use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB, DBCompressionType, IteratorMode,
    Options, PrefixRange, ReadOptions, WaitForCompactOptions, WriteBatch, WriteOptions,
};

use super::{CACHE, Engine, Outcome, changed_since, entries, entries_of, is_before, prefix, row};
use crate::work::Bytes;

/// Bytes of a dictionary for compression, and of the values from which it is trained: ours has as many.
const DICTIONARY: i32 = 16 << 10;
const TRAINING: i32 = 100 * DICTIONARY;
/// `WINDOW_BITS` and level as RocksDB has them when nothing is set.
const WINDOW_BITS: i32 = -14;
const DEFAULT_LEVEL: i32 = 32_767;

/// Where values lie.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// In the sorted tables, which compaction writes again and again.
    InTables,
    /// Those of 1 KiB and more in files of their own: only their places are sorted.
    InBlobs,
    /// As before; the write-ahead log, which has them before, is compressed as well.
    InBlobsAndLogCompressed,
}

pub(super) struct RocksDb(DB);

impl RocksDb {
    pub(super) fn open(directory: &Path, values: Values) -> Outcome<RocksDb> {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        options.set_max_background_jobs(2);
        if values == Values::InBlobsAndLogCompressed {
            options.set_wal_compression_type(DBCompressionType::Zstd);
        }
        let cache = Cache::new_lru_cache(CACHE);
        let mut table = BlockBasedOptions::default();
        table.set_block_cache(&cache);
        table.set_block_size(16 << 10);
        table.set_bloom_filter(10.0, false);
        // So that the cache bounds them.
        table.set_cache_index_and_filter_blocks(true);
        table.set_pin_l0_filter_and_index_blocks_in_cache(true);
        let mut family = Options::default();
        family.set_write_buffer_size(64 << 20);
        family.set_block_based_table_factory(&table);
        family.set_compression_type(DBCompressionType::Lz4);
        family.set_bottommost_compression_type(DBCompressionType::Zstd);
        let mut rows = family.clone();
        if values != Values::InTables {
            rows.set_enable_blob_files(true);
            rows.set_min_blob_size(1 << 10);
            rows.set_blob_compression_type(DBCompressionType::Zstd);
            rows.set_enable_blob_gc(true);
        } else {
            rows.set_bottommost_compression_options(WINDOW_BITS, DEFAULT_LEVEL, 0, DICTIONARY, true);
            rows.set_bottommost_zstd_max_train_bytes(TRAINING, true);
        }
        let families = [("rows", rows), ("keys", family), ("default", Options::default())];
        let families = families.map(|(name, options)| ColumnFamilyDescriptor::new(name, options));
        Ok(RocksDb(DB::open_cf_descriptors(&options, directory, families)?))
    }

    fn family(&self, name: &str) -> Outcome<&ColumnFamily> {
        self.0.cf_handle(name).ok_or_else(|| name.to_owned().into())
    }

    /// A write that is on the disk, record and index keys together, when it returns.
    fn write(&self, batch: WriteBatch) -> Outcome<()> {
        let mut options = WriteOptions::default();
        options.set_sync(true);
        Ok(self.0.write_opt(batch, &options)?)
    }
}

impl Engine for RocksDb {
    fn insert(&mut self, group: &[Bytes]) -> Outcome<()> {
        let (rows, keys) = (self.family("rows")?, self.family("keys")?);
        let mut batch = WriteBatch::default();
        for record in group {
            let entries = entries(record);
            batch.put_cf(rows, &record.id, row(record, &entries));
            for entry in entries {
                batch.put_cf(keys, entry, []);
            }
        }
        self.write(batch)
    }

    fn update(&mut self, group: &[Bytes]) -> Outcome<()> {
        let (rows, keys) = (self.family("rows")?, self.family("keys")?);
        let mut batch = WriteBatch::default();
        for record in group {
            let before = self.0.get_pinned_cf(rows, &record.id)?;
            let before = before.filter(|before| is_before(before, record));
            let before = before.ok_or_else(|| changed_since(record))?;
            let (old, new) = (entries_of(&before), entries(record));
            for entry in old.iter().filter(|entry| !new.iter().any(|new| new == *entry)) {
                batch.delete_cf(keys, entry);
            }
            batch.put_cf(rows, &record.id, row(record, &new));
            for entry in new.iter().filter(|entry| !old.contains(&entry.as_slice())) {
                batch.put_cf(keys, entry, []);
            }
        }
        self.write(batch)
    }

    fn get(&mut self, id: &[u8]) -> Outcome<Option<Vec<u8>>> {
        Ok(self.0.get_cf(self.family("rows")?, id)?)
    }

    fn find(&mut self, index: u8, key: &[u8]) -> Outcome<Option<Vec<u8>>> {
        let prefix = prefix(index, key);
        let mut options = ReadOptions::default();
        options.set_iterate_range(PrefixRange(prefix.as_slice()));
        let keys = self.family("keys")?;
        let mut found = self.0.iterator_cf_opt(keys, options, IteratorMode::Start);
        let Some(entry) = found.next().transpose()? else {
            return Ok(None);
        };
        Ok(self.0.get_cf(self.family("rows")?, &entry.0[prefix.len()..])?)
    }

    fn delete(&mut self, group: &[Vec<u8>]) -> Outcome<()> {
        let (rows, keys) = (self.family("rows")?, self.family("keys")?);
        let mut batch = WriteBatch::default();
        for id in group {
            let Some(row) = self.0.get_pinned_cf(rows, id)? else {
                continue;
            };
            for entry in entries_of(&row) {
                batch.delete_cf(keys, entry);
            }
            batch.delete_cf(rows, id);
        }
        self.write(batch)
    }

    fn settle(&mut self) -> Outcome<bool> {
        let mut options = WaitForCompactOptions::default();
        options.set_flush(true);
        self.0.wait_for_compact(&options)?;
        Ok(true)
    }
}
