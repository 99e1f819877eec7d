//! A table, and the records that its rows hold.

use std::fmt;
use std::marker::PhantomData;

use super::{Page, Scan, Store};
use crate::batch::NewRow;
use crate::compress;
use crate::dictionary::Dictionaries;
use crate::engine::{Engine, Order, Row};
use crate::error::{Error, hex};
use crate::record::{Key, Record, Stored};
use crate::reply::Reply;
use crate::schema::{Index, TableId};
use crate::version::Version;

/// A table of one record type. Cheap to clone.
pub struct Table<T> {
    pub(super) store: Store,
    pub(super) id: TableId,
    pub(super) columns: bool,
    pub(super) record: PhantomData<fn() -> T>,
}

impl<T> Clone for Table<T> {
    fn clone(&self) -> Table<T> {
        Table {
            store: self.store.clone(),
            id: self.id,
            columns: self.columns,
            record: PhantomData,
        }
    }
}

impl<T: Record> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({})", T::TABLE.name)
    }
}

impl<T: Record> Table<T> {
    /// About how many records there are; a database estimates it.
    pub fn count(&self) -> Reply<u64> {
        self.engine().count(self.id)
    }

    /// About how many records have this key in an index, expired ones included. The embedded engine counts in memory; a record that was
    /// just changed may be counted by its key before.
    pub fn count_of(&self, index: Index, key: &[u8]) -> Reply<u64> {
        self.engine().count_of(self.id, index, key)
    }

    /// The record of a primary key.
    pub fn get(&self, key: &[u8]) -> Reply<Option<Stored<T>>> {
        let (limit, now) = (self.store.0.max_bytes, self.now());
        self.engine()
            .get(self.id, key)
            .decode(&self.store.0.dictionaries, move |row, dictionaries| {
                let decoded = row.map(|row| decode(row, now, limit, dictionaries)).transpose()?;
                Ok(decoded.flatten())
            })
    }

    /// Records under a key of an index, newest (by creation) first, at most `limit`. When more share the key,
    /// which of them are returned is not said.
    pub fn find(&self, index: Index, key: &[u8], limit: usize) -> Reply<Vec<Stored<T>>> {
        let (bytes, now) = (self.store.0.max_bytes, self.now());
        self.engine().find(self.id, index, key, limit).decode(
            &self.store.0.dictionaries,
            move |rows, dictionaries| {
                let rows = rows.into_iter();
                rows.filter_map(|row| decode(row, now, bytes, dictionaries).transpose())
                    .collect()
            },
        )
    }

    /// As [`Table::find`], beside records that cannot be read, which would make that fail.
    pub fn find_readable(&self, index: Index, key: &[u8], limit: usize) -> Reply<Found<T>> {
        let (bytes, now) = (self.store.0.max_bytes, self.now());
        self.engine().find(self.id, index, key, limit).decode(
            &self.store.0.dictionaries,
            move |rows, dictionaries| {
                let mut found = Found {
                    records: Vec::new(),
                    unreadable: Vec::new(),
                };
                for row in rows {
                    let (row_key, version) = (Key::from_slice(&row.key), row.version);
                    match decode(row, now, bytes, dictionaries) {
                        Ok(record) => found.records.extend(record),
                        Err(error) => found.unreadable.push(Unreadable::new(row_key, version, error)?),
                    }
                }
                Ok(found)
            },
        )
    }

    /// One page of records: all in no order that is promised, or by an index, or by modification.
    ///
    /// A scan that takes several pages is not a snapshot: it sees each record that existed during all of the
    /// scan, and perhaps those that came or changed meanwhile.
    pub fn scan(&self, scan: &Scan) -> Reply<Page<T>> {
        let known = match scan.request.order {
            Order::Primary => true,
            Order::Modified => T::TABLE.by_modified,
            Order::Index(index) => T::TABLE
                .indexes
                .get(usize::from(index.0))
                .is_some_and(|index| index.ordered),
        };
        if !known {
            let fault = format!(
                "table {} does not keep this order ({:?})",
                T::TABLE.name,
                scan.request.order
            );
            return Reply::now(Err(Error::Invalid(fault)));
        }
        let (limit, now, order) = (self.store.0.max_bytes, self.now(), scan.clone());
        self.engine()
            .page(self.id, scan.request.clone())
            .decode(&self.store.0.dictionaries, move |page, dictionaries| {
                Page::decode(page, order, now, limit, dictionaries)
            })
    }

    /// The store this table belongs to.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn encode(&self, record: &T) -> NewRow {
        match self.encode_judged(record, |_| Ok::<_, std::convert::Infallible>(())) {
            Ok(row) => row,
            Err(never) => match never {},
        }
    }

    pub(super) fn encode_judged<F>(
        &self,
        record: &T,
        judge: impl FnOnce(&[u8]) -> Result<(), F>,
    ) -> Result<NewRow, F> {
        let mut row = NewRow::default();
        record.all_keys(&mut row.keys);
        record.encode(&mut row.value);
        judge(&row.value)?;
        row.value = self.pack(std::mem::take(&mut row.value));
        if self.columns {
            record.columns(&mut row.columns);
        }
        Ok(row)
    }

    /// A value as the engine gets it.
    fn pack(&self, value: Vec<u8>) -> Vec<u8> {
        let inner = &self.store.0;
        let Some(above) = inner.compress_above.filter(|above| value.len() > *above) else {
            return compress::pack(value, None, None);
        };
        let dictionary = inner.dictionaries.of(self.id);
        if dictionary.is_none()
            && let Some(samples) = inner.dictionaries.gather(self.id, &value)
        {
            inner.make_dictionary(self.id, samples);
        }
        let dictionary = dictionary.as_ref().map(|(id, bytes)| (*id, &**bytes));
        compress::pack(value, Some(above), dictionary)
    }

    /// The time that records expire by; 0 where those of this table do not.
    pub(crate) fn now(&self) -> u64 {
        match T::EXPIRY {
            Some(_) => self.store.0.clock.micros(),
            None => 0,
        }
    }

    /// Keys and versions of some records that have expired now.
    pub(crate) fn expired(&self, most: usize) -> Reply<Vec<(Key, Version)>> {
        let Some(index) = T::EXPIRY else {
            return Reply::now(Ok(Vec::new()));
        };
        let end = self.now().saturating_add(1).to_be_bytes();
        let scan = Scan::by_index(index, most).to_key(&end);
        let page = self.engine().page(self.id, scan.request);
        page.decode(&self.store.0.dictionaries, |page, _| {
            let rows = page.rows.into_iter();
            Ok(rows.map(|row| (Key::from_slice(&row.key), row.version)).collect())
        })
    }

    fn engine(&self) -> &dyn Engine {
        &*self.store.0.engine
    }
}

/// A record that cannot be read: written by another program, or a defect.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// Its primary key.
    pub key: Key,
    /// Its version.
    pub version: Version,
    /// Why ([`Error::Corrupt`]).
    pub error: Error,
}

impl Unreadable {
    /// # Errors
    /// An error that is not about the record.
    pub(super) fn new(key: Key, version: Version, error: Error) -> Result<Self, Error> {
        match error {
            error @ Error::Corrupt { .. } => Ok(Self { key, version, error }),
            error => Err(error),
        }
    }
}

/// Records under a key of an index.
#[derive(Clone, Debug)]
pub struct Found<T> {
    /// Those that can be read.
    pub records: Vec<Stored<T>>,
    /// The others.
    pub unreadable: Vec<Unreadable>,
}

/// The record of a row; `None` where it has expired `now`.
pub(super) fn decode<T: Record>(
    row: Row,
    now: u64,
    limit: usize,
    dictionaries: &Dictionaries,
) -> Result<Option<Stored<T>>, Error> {
    let record = record_of::<T>(&row.key, row.value, limit, dictionaries)?;
    if has_expired(&record, now) {
        return Ok(None);
    }
    Ok(Some(Stored {
        record,
        version: row.version,
        created: row.created,
        site: row.site,
    }))
}

pub(super) fn has_expired<T: Record>(record: &T, now: u64) -> bool {
    T::EXPIRY.is_some() && record.expires().is_some_and(|at| at <= now)
}

/// The record of a key and a stored value.
pub(super) fn record_of<T: Record>(
    key: &[u8],
    value: Vec<u8>,
    limit: usize,
    dictionaries: &Dictionaries,
) -> Result<T, Error> {
    let corrupt = |reason: String| Error::Corrupt {
        table: T::TABLE.name,
        key: hex(key),
        reason,
    };
    let value = compress::unpack(value, limit, |id| dictionaries.get(id)).map_err(corrupt)?;
    T::decode(key, &value).map_err(|error| corrupt(error.0))
}
