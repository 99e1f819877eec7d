//! Index columns and index tables, computed again from the records.
//!
//! When a program knows another list of indexes than the one a table was written with, it computes the keys of all
//! records before it serves ([`all`]). Programs of the earlier release may still be writing then, without the new
//! indexes, until each of them has been replaced: for as long as `upgradeWindow` the records that were written since
//! the list changed are searched for the ones whose column [`INDEXED`] shows another list ([`Repair`]).

use std::collections::HashMap;
use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Value};

use super::migrate::{UPGRADES, at};
use super::sql::{INDEXED, SIDE_VERSION, SqlIndexTable, SqlTable};
use crate::compress;
use crate::error::{Error, hex};
use crate::record::IndexKeys;
use crate::schema::MAX_KEY;
use crate::version::Version;

/// Records whose index keys are computed at a time.
const STEP: usize = 500;

/// Key, version and value of a record.
type Row = (Vec<u8>, u64, Vec<u8>);

/// Computes the index keys of all records. One that changes meanwhile is left to who changes it.
pub(super) async fn all(conn: &mut Conn, table: &SqlTable) -> Result<(), Error> {
    let (name, id) = (table.name, table.id.name);
    let page = format!(
        "SELECT `{id}`, `{}`, `{}` FROM `{name}` WHERE `{id}` > ? ORDER BY `{id}` LIMIT {STEP}",
        table.version, table.value
    );
    let mut after = Vec::new();
    let mut records = 0u64;
    loop {
        let rows: Vec<Row> = conn.exec(&page, (after,)).await.map_err(at(name))?;
        let Some((last, ..)) = rows.last() else { break };
        after = last.clone();
        records += rows.len() as u64;
        write(conn, table, rows).await?;
    }
    tracing::info!(table = name, records, "indexes are up to date");
    Ok(())
}

/// Finds records that programs of an earlier release have written since the list of indexes changed.
pub(super) struct Repair {
    window: Duration,
    passes: u32,
    /// Where the next search begins, by table.
    next: HashMap<&'static str, Version>,
}

/// How far apart clocks of processes may be, and how long a transaction may take: a record of an earlier time does not
/// appear behind the search.
const OVERLAP: Duration = Duration::from_secs(60);

/// A table that is not indexed by time is read whole by a search: only each of this number.
const RARELY: u32 = 10;

impl Repair {
    pub(super) fn new(window: Duration) -> Repair {
        Repair {
            window,
            passes: 0,
            next: HashMap::new(),
        }
    }

    /// Searches once; the number of records that were found.
    pub(super) async fn pass(
        &mut self,
        conn: &mut Conn,
        tables: &[SqlTable],
        now: u64,
    ) -> Result<u64, Error> {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let select = format!("SELECT name, since, indexes FROM {UPGRADES} NATURAL JOIN signalbox_tables");
        let changes: Vec<(String, u64, String)> = conn.query(select).await.map_err(at(UPGRADES))?;
        self.passes = self.passes.wrapping_add(1);
        let mut found = 0;
        for (name, since, list) in changes {
            let table = tables.iter().find(|table| table.name == name);
            // Of two lists, the one that was taken up last.
            let Some(table) = table.filter(|table| table.describe() == list) else {
                continue;
            };
            let rare = !table.def.schema.by_modified && !self.passes.is_multiple_of(RARELY);
            if rare || now > since.saturating_add(micros(self.window)) {
                continue;
            }
            let first = Version::at(since.saturating_sub(micros(OVERLAP)));
            let from = self.next.get(table.name).copied().unwrap_or_default().max(first);
            found += search(conn, table, from).await?;
            let next = Version::at(now.saturating_sub(micros(OVERLAP)));
            self.next.insert(table.name, next);
        }
        Ok(found)
    }
}

/// Computes the index keys of records that were written with another list, from a version on.
async fn search(conn: &mut Conn, table: &SqlTable, mut from: Version) -> Result<u64, Error> {
    let (name, version) = (table.name, table.version);
    let page = format!(
        "SELECT `{}`, `{version}`, `{}` FROM `{name}` WHERE `{version}` >= ? AND NOT (`{INDEXED}` <=> (`{version}` ^ ?)) \
         ORDER BY `{version}` LIMIT {STEP}",
        table.id.name, table.value
    );
    let mut records = 0;
    loop {
        let rows: Vec<Row> = conn.exec(&page, (from.0, table.mark)).await.map_err(at(name))?;
        let Some((_, last, _)) = rows.last() else { break };
        let (count, last) = (rows.len(), Version(*last));
        write(conn, table, rows).await?;
        records += count as u64;
        // Those of one version stay in reach until they are written; one that cannot be is not waited for.
        if count < STEP || last == from {
            break;
        }
        from = last;
    }
    if records > 0 {
        tracing::info!(table = name, records, "records of an earlier release are indexed");
    }
    Ok(records)
}

async fn write(conn: &mut Conn, table: &SqlTable, rows: Vec<Row>) -> Result<(), Error> {
    let (name, id) = (table.name, table.id.name);
    let own: Vec<(usize, &SqlIndexTable)> = table
        .indexes
        .iter()
        .enumerate()
        .filter(|(_, index)| index.side.is_none())
        .collect();
    let mut updates = Vec::with_capacity(rows.len());
    let mut versions = Vec::with_capacity(rows.len());
    let mut sides: Vec<Vec<Vec<Value>>> = table.indexes.iter().map(|_| Vec::new()).collect();
    for (key, version, value) in rows {
        let keys = keys_of(table, &key, value)?;
        let mut values: Vec<Value> = Vec::with_capacity(own.len() + 3);
        values.push((version ^ table.mark).into());
        for (position, index) in &own {
            let found = keys.iter().find(|(of, _)| usize::from(of.0) == *position);
            values.push(found.map_or(Value::NULL, |(_, key)| index.key_value(key)));
        }
        for (position, index, _) in table.side_tables() {
            let own = keys.iter().filter(|(of, _)| usize::from(of.0) == position);
            let entry = |of: &[u8]| vec![index.key_value(of), Value::from(&key), Value::from(version)];
            sides[position].extend(own.map(|(_, of)| entry(of)));
        }
        versions.push((key.clone(), version));
        values.extend([key.into(), version.into()]);
        updates.push(values);
    }
    // First the tables of indexes: the mark says that they are written.
    for (position, index, side) in table.side_tables() {
        let earlier = format!("DELETE FROM `{side}` WHERE `{id}` = ? AND `{SIDE_VERSION}` < ?");
        conn.exec_batch(earlier, versions.clone())
            .await
            .map_err(at(side))?;
        let rows = std::mem::take(&mut sides[position]);
        if !rows.is_empty() {
            let insert = format!(
                "INSERT IGNORE INTO `{side}` (`{}`, `{id}`, `{SIDE_VERSION}`) VALUES (?, ?, ?)",
                index.column
            );
            conn.exec_batch(insert, rows).await.map_err(at(side))?;
        }
    }
    let sets = own.iter().map(|(_, index)| format!(", `{}` = ?", index.column));
    let update = format!(
        "UPDATE `{name}` SET `{INDEXED}` = ?{} WHERE `{id}` = ? AND `{}` = ?",
        sets.collect::<String>(),
        table.version
    );
    conn.exec_batch(update, updates).await.map_err(at(name))
}

fn keys_of(table: &SqlTable, key: &[u8], value: Vec<u8>) -> Result<IndexKeys, Error> {
    let corrupt = |reason| Error::Corrupt {
        table: table.name,
        key: hex(key),
        reason,
    };
    let value = compress::unpack(value, usize::MAX, |_| None).map_err(corrupt)?;
    let mut keys = IndexKeys::default();
    (table.def.reindex)(key, &value, &mut keys).map_err(|error| corrupt(error.0))?;
    match keys.longest() {
        longest if longest > MAX_KEY => Err(corrupt(format!("an index key of {longest} bytes"))),
        _ => Ok(keys),
    }
}
