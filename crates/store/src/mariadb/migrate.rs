//! The database's own tables, and those of the store: creating them, and bringing them up to date.
//!
//! Each step can be repeated: of several processes that start at the same time, all may take it.

use std::collections::BTreeSet;

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;

use super::sql::{SqlIndexTable, SqlTable};
use crate::compress;
use crate::error::{Error, hex};
use crate::record::IndexKeys;
use crate::schema::MAX_KEY;

/// The version of the layout that this program knows. Grows with each step added to [`steps`].
const LAYOUT: u32 = 1;

/// Rows whose index keys are computed anew in one transaction.
const REINDEX_STEP: usize = 500;

fn at(what: &str) -> impl Fn(mysql_async::Error) -> Error + '_ {
    move |error| Error::Open(format!("{what}: {error}"))
}

/// What leads from one version of the layout to the next.
fn steps(version: u32, engine: &str) -> Vec<String> {
    match version {
        0 => vec![
            // One row for each transaction that may still be asked for, see `write`.
            format!(
                "CREATE TABLE IF NOT EXISTS signalbox_commits (stamp BINARY(16) NOT NULL PRIMARY KEY) ENGINE={engine}"
            ),
            // One row a site, see `heartbeat`.
            format!(
                "CREATE TABLE IF NOT EXISTS signalbox_heartbeat (site_id VARCHAR(128) NOT NULL PRIMARY KEY, \
                 beat BIGINT UNSIGNED NOT NULL) ENGINE={engine} DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_bin"
            ),
            // Which indexes each table was written with.
            format!(
                "CREATE TABLE IF NOT EXISTS signalbox_tables (name VARCHAR(64) NOT NULL PRIMARY KEY, \
                 indexes TEXT NOT NULL) ENGINE={engine} DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_bin"
            ),
        ],
        _ => Vec::new(),
    }
}

/// Creates or updates everything the store needs.
pub(super) async fn migrate(conn: &mut Conn, tables: &[SqlTable], engine: &str) -> Result<(), Error> {
    let create = format!(
        "CREATE TABLE IF NOT EXISTS signalbox_schema (id INT NOT NULL PRIMARY KEY, version INT UNSIGNED NOT NULL) ENGINE={engine}"
    );
    conn.query_drop(create).await.map_err(at("signalbox_schema"))?;
    let found: Option<u32> = conn
        .query_first("SELECT version FROM signalbox_schema WHERE id = 1")
        .await
        .map_err(at("signalbox_schema"))?;
    let found = found.unwrap_or(0);
    if found > LAYOUT {
        return Err(Error::Open(format!(
            "the database has layout {found}, this program knows layouts up to {LAYOUT}: it needs a newer program"
        )));
    }
    for version in found..LAYOUT {
        for step in steps(version, engine) {
            conn.query_drop(&step).await.map_err(at(&step))?;
        }
        let done = format!(
            "INSERT INTO signalbox_schema VALUES (1, {0}) ON DUPLICATE KEY UPDATE version = GREATEST(version, {0})",
            version + 1
        );
        conn.query_drop(done).await.map_err(at("signalbox_schema"))?;
        tracing::info!(layout = version + 1, "the database has a new layout");
    }
    for table in tables {
        create_table(conn, table, engine).await?;
    }
    Ok(())
}

async fn create_table(conn: &mut Conn, table: &SqlTable, engine: &str) -> Result<(), Error> {
    let name = table.name;
    conn.query_drop(definition(table, engine))
        .await
        .map_err(at(name))?;
    for (_, index, side) in table.side_tables() {
        conn.query_drop(side_definition(table, index, side, engine))
            .await
            .map_err(at(side))?;
    }
    let wanted = describe(table);
    let found: Option<String> = conn
        .exec_first("SELECT indexes FROM signalbox_tables WHERE name = ?", (name,))
        .await
        .map_err(at("signalbox_tables"))?;
    if found.as_deref() == Some(wanted.as_str()) {
        return Ok(());
    }
    if let Some(found) = found {
        tracing::info!(table = name, found, wanted, "bringing the indexes up to date");
        alter(conn, table).await?;
        reindex(conn, table).await?;
    }
    conn.exec_drop(
        "INSERT INTO signalbox_tables VALUES (?, ?) ON DUPLICATE KEY UPDATE indexes = VALUES(indexes)",
        (name, wanted),
    )
    .await
    .map_err(at("signalbox_tables"))
}

fn describe(table: &SqlTable) -> String {
    let mut text: Vec<String> = table
        .indexes
        .iter()
        .map(|index| {
            let kind = if index.unique { "unique" } else { "many" };
            let side = if index.side.is_some() { " multi" } else { "" };
            format!("{} {kind}{side}", index.column)
        })
        .collect();
    if table.def.schema.by_modified {
        text.push("modified".to_owned());
    }
    text.join(", ")
}

/// Columns that come with the list of indexes, with their types.
fn index_columns(table: &SqlTable) -> Vec<(String, String)> {
    let own = table.indexes.iter().filter(|index| index.side.is_none());
    own.map(|index| {
        (
            index.column.clone(),
            format!("{} DEFAULT NULL", index.column_type),
        )
    })
    .collect()
}

/// Keys that come with the list of indexes: name and definition.
fn index_keys(table: &SqlTable) -> Vec<(String, String)> {
    let own = table.indexes.iter().filter(|index| index.side.is_none());
    let mut keys: Vec<(String, String)> = own
        .map(|index| {
            let (name, column) = (index.key_name.clone(), &index.column);
            let definition = if index.unique {
                format!("UNIQUE KEY `{name}` (`{column}`)")
            } else {
                format!("KEY `{name}` (`{column}`, `{}`)", table.created)
            };
            (name, definition)
        })
        .collect();
    if table.def.schema.by_modified {
        keys.push((
            "modified".to_owned(),
            format!("KEY `modified` (`{}`)", table.version),
        ));
    }
    keys
}

fn definition(table: &SqlTable, engine: &str) -> String {
    let created = if table.mapped {
        "datetime(6)"
    } else {
        "bigint unsigned"
    };
    let mut parts = vec![
        format!("`{}` {} NOT NULL", table.id.name, table.id.sql_type),
        format!("`{}` bigint unsigned NOT NULL", table.version),
        format!("`{}` {created} NOT NULL", table.created),
        "`site_id` varchar(128) DEFAULT NULL".to_owned(),
        format!("`{}` longblob NOT NULL", table.value),
    ];
    parts.extend(
        table
            .modified
            .map(|column| format!("`{column}` bigint unsigned DEFAULT NULL")),
    );
    parts.extend(
        index_columns(table)
            .into_iter()
            .map(|(name, kind)| format!("`{name}` {kind}")),
    );
    parts.extend(
        table
            .extra
            .iter()
            .map(|column| format!("`{}` {} DEFAULT NULL", column.name, column.sql_type)),
    );
    parts.push(format!("PRIMARY KEY (`{}`)", table.id.name));
    parts.extend(index_keys(table).into_iter().map(|(_, definition)| definition));
    parts.extend(
        table
            .keys
            .iter()
            .map(|(name, column)| format!("KEY `{name}` (`{column}`)")),
    );
    format!(
        "CREATE TABLE IF NOT EXISTS `{}` ({}) ENGINE={engine} DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_bin",
        table.name,
        parts.join(", ")
    )
}

fn side_definition(table: &SqlTable, index: &SqlIndexTable, side: &str, engine: &str) -> String {
    let (id, column) = (table.id.name, &index.column);
    let primary = if index.unique {
        format!("`{column}`")
    } else {
        format!("`{column}`, `{id}`")
    };
    format!(
        "CREATE TABLE IF NOT EXISTS `{side}` (`{column}` {} NOT NULL, `{id}` {} NOT NULL, PRIMARY KEY ({primary}), \
         KEY `{id}` (`{id}`)) ENGINE={engine} DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_bin",
        index.column_type, table.id.sql_type
    )
}

/// Adds columns and keys that are not there.
async fn alter(conn: &mut Conn, table: &SqlTable) -> Result<(), Error> {
    let name = table.name;
    let names = |what: &'static str| {
        format!(
            "SELECT DISTINCT {what}_name FROM information_schema.{} WHERE table_schema = DATABASE() AND table_name = ?",
            if what == "column" { "columns" } else { "statistics" }
        )
    };
    let columns: Vec<String> = conn.exec(names("column"), (name,)).await.map_err(at(name))?;
    let keys: Vec<String> = conn.exec(names("index"), (name,)).await.map_err(at(name))?;
    let (columns, keys): (BTreeSet<String>, BTreeSet<String>) =
        (columns.into_iter().collect(), keys.into_iter().collect());
    let mut parts: Vec<String> = index_columns(table)
        .into_iter()
        .filter(|(name, _)| !columns.contains(name))
        .map(|(name, kind)| format!("ADD COLUMN `{name}` {kind}"))
        .collect();
    let missing = index_keys(table)
        .into_iter()
        .filter(|(name, _)| !keys.contains(name));
    parts.extend(missing.map(|(_, definition)| format!("ADD {definition}")));
    if parts.is_empty() {
        return Ok(());
    }
    conn.query_drop(format!("ALTER TABLE `{name}` {}", parts.join(", ")))
        .await
        .map_err(at(name))
}

/// Computes the index columns of every row anew. A row that changes meanwhile was written with the new ones.
async fn reindex(conn: &mut Conn, table: &SqlTable) -> Result<(), Error> {
    let (name, id) = (table.name, table.id.name);
    let page = format!(
        "SELECT `{id}`, `{}`, `{}` FROM `{name}` WHERE `{id}` > ? ORDER BY `{id}` LIMIT {REINDEX_STEP}",
        table.version, table.value
    );
    let own: Vec<(usize, &SqlIndexTable)> = table
        .indexes
        .iter()
        .enumerate()
        .filter(|(_, index)| index.side.is_none())
        .collect();
    let sets: Vec<String> = own
        .iter()
        .map(|(_, index)| format!("`{}` = ?", index.column))
        .collect();
    let update = format!(
        "UPDATE `{name}` SET {} WHERE `{id}` = ? AND `{}` = ?",
        sets.join(", "),
        table.version
    );
    let mut after = Vec::new();
    let mut records = 0u64;
    loop {
        let rows: Vec<(Vec<u8>, u64, Vec<u8>)> = conn.exec(&page, (after,)).await.map_err(at(name))?;
        let Some((last, ..)) = rows.last() else { break };
        after = last.clone();
        records += rows.len() as u64;
        let mut updates = Vec::with_capacity(rows.len());
        let mut sides: Vec<Vec<(mysql_async::Value, Vec<u8>)>> =
            table.indexes.iter().map(|_| Vec::new()).collect();
        for (key, version, value) in rows {
            let keys = keys_of(table, &key, value)?;
            let mut values: Vec<mysql_async::Value> = Vec::with_capacity(own.len() + 2);
            for (position, index) in &own {
                let found = keys.iter().find(|(of, _)| usize::from(of.0) == *position);
                values.push(found.map_or(mysql_async::Value::NULL, |(_, key)| index.key_value(key)));
            }
            for (position, index, _) in table.side_tables() {
                let own = keys.iter().filter(|(of, _)| usize::from(of.0) == position);
                sides[position].extend(own.map(|(_, of)| (index.key_value(of), key.clone())));
            }
            values.push(key.into());
            values.push(version.into());
            updates.push(values);
        }
        if !own.is_empty() {
            conn.exec_batch(&update, updates).await.map_err(at(name))?;
        }
        for (position, index, side) in table.side_tables() {
            let insert = format!(
                "INSERT IGNORE INTO `{side}` (`{}`, `{id}`) VALUES (?, ?)",
                index.column
            );
            let rows = std::mem::take(&mut sides[position]);
            if !rows.is_empty() {
                conn.exec_batch(insert, rows).await.map_err(at(side))?;
            }
        }
    }
    tracing::info!(table = name, records, "indexes are up to date");
    Ok(())
}

fn keys_of(table: &SqlTable, key: &[u8], value: Vec<u8>) -> Result<IndexKeys, Error> {
    let corrupt = |reason| Error::Corrupt {
        table: table.name,
        key: hex(key),
        reason,
    };
    let value = compress::unpack(value, usize::MAX).map_err(corrupt)?;
    let mut keys = IndexKeys::default();
    (table.def.reindex)(key, &value, &mut keys).map_err(|error| corrupt(error.0))?;
    match keys.longest() {
        longest if longest > MAX_KEY => Err(corrupt(format!("an index key of {longest} bytes"))),
        _ => Ok(keys),
    }
}
