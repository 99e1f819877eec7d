//! The database's own tables, and those of the store: creating them, and bringing them up to date.
//!
//! Each step can be repeated: of several processes that start at the same time, all may take it. The same holds for
//! sites: a change of a table reaches the other sites by replication, where it may have been made already, and must
//! not fail there. MariaDB has `IF NOT EXISTS` for that, other servers of the protocol do not.

use std::collections::BTreeSet;

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;

use super::sql::{INDEXED, SIDE_VERSION, SqlIndexTable, SqlTable};
use super::{reindex, triggers};
use crate::error::Error;
use crate::version::Clock;

/// The version of the layout that this program knows. Grows with each step added to [`steps`].
const LAYOUT: u32 = 1;

pub(super) fn at(what: &str) -> impl Fn(mysql_async::Error) -> Error + '_ {
    move |error| Error::Open(format!("{what}: {error}"))
}

fn not_ours(table: &str) -> impl Fn(mysql_async::Error) -> Error + '_ {
    move |error| {
        Error::Open(format!(
            "the table {table} is not one of this program, or is damaged: {error}"
        ))
    }
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
pub(super) async fn migrate(
    conn: &mut Conn,
    tables: &[SqlTable],
    engine: &str,
    clock: &Clock,
) -> Result<(), Error> {
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
    // Not a step of the layout: programs that know nothing of it need not be kept out.
    let upgrades = format!(
        "CREATE TABLE IF NOT EXISTS {UPGRADES} (name VARCHAR(64) NOT NULL PRIMARY KEY, since BIGINT UNSIGNED NOT NULL) \
         ENGINE={engine} DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_bin"
    );
    conn.query_drop(upgrades).await.map_err(at(UPGRADES))?;
    for table in tables {
        create_table(conn, table, engine, clock).await?;
    }
    for table in tables {
        for probe in table.probes() {
            conn.query_drop(probe).await.map_err(not_ours(table.name))?;
        }
    }
    triggers::create(conn, tables).await
}

/// When the list of indexes of a table changed last, see [`reindex`].
pub(super) const UPGRADES: &str = "signalbox_upgrades";

async fn create_table(conn: &mut Conn, table: &SqlTable, engine: &str, clock: &Clock) -> Result<(), Error> {
    let name = table.name;
    conn.query_drop(definition(table, engine))
        .await
        .map_err(at(name))?;
    for (_, index, side) in table.side_tables() {
        conn.query_drop(side_definition(table, index, side, engine))
            .await
            .map_err(at(side))?;
    }
    let wanted = table.describe();
    let found: Option<String> = conn
        .exec_first("SELECT indexes FROM signalbox_tables WHERE name = ?", (name,))
        .await
        .map_err(at("signalbox_tables"))?;
    let changed = found.as_ref().is_some_and(|found| *found != wanted);
    // Before anything is added to it: a table of this name may be another program's.
    conn.query_drop(table.first_probe())
        .await
        .map_err(not_ours(name))?;
    alter(conn, table, changed).await?;
    if let Some(found) = found {
        if !changed {
            return Ok(());
        }
        tracing::info!(table = name, found, wanted, "bringing the indexes up to date");
        // Before the rows are read: whatever is written from now on is looked at again, see `reindex`.
        let since =
            format!("INSERT INTO {UPGRADES} VALUES (?, ?) ON DUPLICATE KEY UPDATE since = VALUES(since)");
        conn.exec_drop(since, (name, clock.micros()))
            .await
            .map_err(at(UPGRADES))?;
        reindex::all(conn, table).await?;
    }
    conn.exec_drop(
        "INSERT INTO signalbox_tables VALUES (?, ?) ON DUPLICATE KEY UPDATE indexes = VALUES(indexes)",
        (name, wanted),
    )
    .await
    .map_err(at("signalbox_tables"))
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

/// A key that comes with the list of indexes.
struct SqlKey {
    kind: &'static str,
    name: String,
    columns: String,
}

fn index_keys(table: &SqlTable) -> Vec<SqlKey> {
    let own = table.indexes.iter().filter(|index| index.side.is_none());
    let mut keys: Vec<SqlKey> = own
        .map(|index| {
            let (name, column) = (index.key_name.clone(), &index.column);
            let (kind, columns) = if index.unique {
                ("UNIQUE KEY", format!("`{column}`"))
            } else {
                ("KEY", format!("`{column}`, `{}`", table.created))
            };
            SqlKey { kind, name, columns }
        })
        .collect();
    if table.def.schema.by_modified {
        keys.push(SqlKey {
            kind: "KEY",
            name: "modified".to_owned(),
            columns: format!("`{}`", table.version),
        });
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
        format!("`{INDEXED}` {INDEXED_TYPE}"),
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
    let keys = index_keys(table).into_iter();
    parts.extend(keys.map(|key| format!("{} `{}` ({})", key.kind, key.name, key.columns)));
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

const INDEXED_TYPE: &str = "bigint unsigned DEFAULT NULL";
const SIDE_VERSION_TYPE: &str = "bigint unsigned NOT NULL DEFAULT 0";

fn side_definition(table: &SqlTable, index: &SqlIndexTable, side: &str, engine: &str) -> String {
    let (id, column) = (table.id.name, &index.column);
    format!(
        "CREATE TABLE IF NOT EXISTS `{side}` (`{column}` {} NOT NULL, `{id}` {} NOT NULL, \
         `{SIDE_VERSION}` {SIDE_VERSION_TYPE}, PRIMARY KEY ({}), \
         KEY `{id}` (`{id}`)) ENGINE={engine} DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_bin",
        index.column_type,
        table.id.sql_type,
        side_primary(table, index)
    )
}

fn side_primary(table: &SqlTable, index: &SqlIndexTable) -> String {
    if index.unique {
        format!("`{}`", index.column)
    } else {
        format!("`{}`, `{}`, `{SIDE_VERSION}`", index.column, table.id.name)
    }
}

/// Adds columns that are absent, and with another list of indexes its keys.
async fn alter(conn: &mut Conn, table: &SqlTable, changed: bool) -> Result<(), Error> {
    let version: Option<String> = conn
        .query_first("SELECT VERSION()")
        .await
        .map_err(at("VERSION()"))?;
    let guard = if version.is_some_and(|version| version.contains("MariaDB")) {
        "IF NOT EXISTS "
    } else {
        ""
    };
    let columns = names(conn, "column", table.name).await?;
    let mut parts = Vec::new();
    if !columns.contains(INDEXED) {
        parts.push(format!("ADD COLUMN {guard}`{INDEXED}` {INDEXED_TYPE}"));
    }
    if changed {
        let own = index_columns(table).into_iter();
        let missing = own.filter(|(name, _)| !columns.contains(name));
        parts.extend(missing.map(|(name, kind)| format!("ADD COLUMN {guard}`{name}` {kind}")));
        let keys = names(conn, "index", table.name).await?;
        let missing = index_keys(table)
            .into_iter()
            .filter(|key| !keys.contains(&key.name));
        parts.extend(missing.map(|key| format!("ADD {} {guard}`{}` ({})", key.kind, key.name, key.columns)));
    }
    change(conn, table.name, &parts).await?;
    for (_, index, side) in table.side_tables() {
        if !names(conn, "column", side).await?.contains(SIDE_VERSION) {
            let primary = side_primary(table, index);
            let parts = [
                format!("ADD COLUMN {guard}`{SIDE_VERSION}` {SIDE_VERSION_TYPE}"),
                "DROP PRIMARY KEY".to_owned(),
                format!("ADD PRIMARY KEY ({primary})"),
            ];
            change(conn, side, &parts).await?;
        }
    }
    Ok(())
}

/// Names of a table's columns (`column`) or keys (`index`).
async fn names(conn: &mut Conn, what: &str, table: &str) -> Result<BTreeSet<String>, Error> {
    let list = if what == "column" { "columns" } else { "statistics" };
    let select = format!(
        "SELECT DISTINCT {what}_name FROM information_schema.{list} WHERE table_schema = DATABASE() AND table_name = ?"
    );
    let names: Vec<String> = conn.exec(select, (table,)).await.map_err(at(table))?;
    Ok(names.into_iter().collect())
}

async fn change(conn: &mut Conn, table: &str, parts: &[String]) -> Result<(), Error> {
    if parts.is_empty() {
        return Ok(());
    }
    let changed = conn
        .query_drop(format!("ALTER TABLE `{table}` {}", parts.join(", ")))
        .await;
    match changed {
        // ER_DUP_FIELDNAME, ER_DUP_KEYNAME: another process has been faster.
        Err(mysql_async::Error::Server(error)) if matches!(error.code, 1060 | 1061) => Ok(()),
        changed => changed.map_err(at(table)),
    }
}
