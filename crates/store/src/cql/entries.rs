//! Entries of indexes. An entry is a hint: it is written before its record and removed after it, and whether the record
//! has the key, since the same version, is seen on the record.

use super::client::Failure;
use super::core::Core;
use super::image::{HeldKey, Image, signed};
use super::plan::Keys;
use super::tables::{CqlIndex, Entries, Pages};
use super::together::{Request, all};
use crate::engine::PageRequest;

/// An entry: the key in the index, the record, the version with which the record got the key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) key: Vec<u8>,
    pub(super) id: Vec<u8>,
    pub(super) entry: u64,
}

impl Core {
    fn shard(&self, id: &[u8]) -> i32 {
        i32::try_from(crc32fast::hash(id) % u32::from(self.shards)).unwrap_or(0)
    }

    /// Writes entries; they are there when it returns.
    pub(super) async fn insert_entries(&self, keys: &Keys) -> Result<(), Failure> {
        all(self.write_entries(keys, true)).await.into_iter().collect()
    }

    /// Removes entries, as far as possible: one that stays is found and removed by a reader.
    pub(super) async fn remove_entries(&self, keys: &Keys) {
        all(self.write_entries(keys, false)).await;
    }

    fn write_entries<'a>(&'a self, keys: &'a Keys, insert: bool) -> Vec<Request<'a, Result<(), Failure>>> {
        let mut writes: Vec<Request<'a, _>> = Vec::with_capacity(keys.len());
        for (table, id, held) in keys {
            let index = self.tables.tables[*table].by_tag(held.tag);
            if let Some(entries) = index.and_then(|index| index.entries.as_ref()) {
                writes.push(Box::pin(
                    self.write_entry(entries, id, &held.key, held.entry, insert),
                ));
            }
        }
        writes
    }

    async fn write_entry(
        &self,
        entries: &Entries,
        id: &[u8],
        key: &[u8],
        entry: u64,
        insert: bool,
    ) -> Result<(), Failure> {
        let statement = if insert { &entries.insert } else { &entries.delete };
        let entry = signed(entry);
        match entries.pages {
            Some(_) => {
                self.client
                    .run(statement, (self.shard(id), key, id, entry))
                    .await?
            }
            None => self.client.run(statement, (partition(key), id, entry)).await?,
        };
        Ok(())
    }

    /// Entries of a key behind a place, at most `limit` (of each shard), in the order of records.
    pub(super) async fn find_entries(
        &self,
        entries: &Entries,
        key: &[u8],
        after: (&[u8], u64),
        limit: i32,
    ) -> Result<Vec<Entry>, Failure> {
        let (id, entry) = (after.0, signed(after.1));
        let mut found: Vec<(Vec<u8>, i64)> = Vec::new();
        if entries.pages.is_some() {
            let mut shards: Vec<Request<'_, _>> = Vec::new();
            for shard in 0..i32::from(self.shards) {
                let values = (shard, key, id, entry, limit);
                shards.push(Box::pin(
                    self.client.rows::<(Vec<u8>, i64)>(&entries.find, values),
                ));
            }
            for rows in all(shards).await {
                found.extend(rows?);
            }
            found.sort_unstable();
        } else {
            found = self
                .client
                .rows(&entries.find, (partition(key), id, entry, limit))
                .await?;
        }
        let entry = |(id, entry): (Vec<u8>, i64)| Entry {
            key: key.to_vec(),
            id,
            entry: entry.cast_unsigned(),
        };
        Ok(found.into_iter().map(entry).collect())
    }

    /// The next entries in the order of keys, at most `limit`.
    pub(super) async fn page_of_entries(
        &self,
        entries: &Entries,
        request: &PageRequest,
        after: Option<&Entry>,
        limit: usize,
    ) -> Result<Vec<Entry>, Failure> {
        let Some(pages) = &entries.pages else {
            return Err(Failure::Failed("the index is not ordered".to_owned()));
        };
        let rows = i32::try_from(limit).unwrap_or(i32::MAX);
        let mut shards: Vec<Request<'_, _>> = Vec::new();
        for shard in 0..i32::from(self.shards) {
            shards.push(Box::pin(self.page_of_shard(pages, request, after, rows, shard)));
        }
        let mut found = Vec::new();
        for rows in all(shards).await {
            found.extend(rows?.into_iter().map(|(key, id, entry)| Entry {
                key,
                id,
                entry: entry.cast_unsigned(),
            }));
        }
        found.sort_unstable();
        found.truncate(limit);
        Ok(found)
    }

    async fn page_of_shard(
        &self,
        pages: &Pages,
        request: &PageRequest,
        after: Option<&Entry>,
        rows: i32,
        shard: i32,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>, i64)>, Failure> {
        let client = &self.client;
        let from = request.from.as_deref().unwrap_or_default();
        match (after, &request.to) {
            (Some(place), None) => {
                let values = (shard, &place.key, &place.id, signed(place.entry), rows);
                client.rows(&pages.after[0], values).await
            }
            (Some(place), Some(to)) => {
                let values = (shard, &place.key, &place.id, signed(place.entry), to, rows);
                client.rows(&pages.after[1], values).await
            }
            (None, None) => client.rows(&pages.from[0], (shard, from, rows)).await,
            (None, Some(to)) => client.rows(&pages.from[1], (shard, from, to, rows)).await,
        }
    }

    /// The record of an entry, if it has the key; an entry that no record will ever want again is removed.
    pub(super) async fn record_of(
        &self,
        number: usize,
        index: &CqlIndex,
        entry: &Entry,
    ) -> Result<Option<Image>, Failure> {
        let image = self.get(self.tables.tables[number].rows, &entry.id).await?;
        if let Some(image) = image
            && image.holds(index.tag, &entry.key, Some(entry.entry))
        {
            return Ok(Some(image));
        }
        if self.is_leftover(entry.entry) {
            let held = HeldKey {
                tag: index.tag,
                entry: entry.entry,
                key: entry.key.clone(),
            };
            self.remove_entries(&vec![(number, entry.id.clone(), held)]).await;
        }
        Ok(None)
    }
}

/// A key as the key of a partition, which must not be empty.
pub(super) fn partition(key: &[u8]) -> Vec<u8> {
    let mut partition = Vec::with_capacity(key.len() + 1);
    partition.push(b'k');
    partition.extend_from_slice(key);
    partition
}
