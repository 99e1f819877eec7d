//! Tables of the keyspace and their statements.
//!
//! | table | rows |
//! |---|---|
//! | `TABLE` | the records |
//! | `TABLE__INDEX` | a unique index: one row for each key, the claim of its holder, written like a record |
//! | `TABLE__INDEX_entries`, ordered `TABLE__INDEX_order` | any other index: an entry for each key of each record, a hint that the reader verifies on the record |
//! | `TABLE__modified_order` | the order by modification, as an index |
//! | `signalbox_transactions` | transactions that are decided and not finished, see [`super::transaction`] |

use scylla::statement::prepared::PreparedStatement;

use super::client::Client;
use super::image::{COLUMNS, MODIFIED, tag};
use crate::error::Error;
use crate::record::TableDef;
use crate::schema::{Index, IndexSchema};

/// Statements on rows: of records or claims.
pub(super) struct Rows {
    pub(super) name: String,
    pub(super) get: PreparedStatement,
    pub(super) get_serial: PreparedStatement,
    pub(super) scan: PreparedStatement,
    pub(super) put: PreparedStatement,
    pub(super) delete: PreparedStatement,
    pub(super) prepare: PreparedStatement,
    pub(super) finish_put: PreparedStatement,
    pub(super) finish_delete: PreparedStatement,
    pub(super) finish_keep: PreparedStatement,
    /// The index with the time until which a row counts.
    pub(super) expiry: Option<u32>,
}

/// Statements on the entries of an index.
pub(super) struct Entries {
    pub(super) insert: PreparedStatement,
    pub(super) delete: PreparedStatement,
    pub(super) find: PreparedStatement,
    /// In order: from a key, and behind an entry; each without an end and with one. Only for ordered indexes.
    pub(super) pages: Option<Pages>,
}

pub(super) struct Pages {
    pub(super) from: [PreparedStatement; 2],
    pub(super) after: [PreparedStatement; 2],
}

/// An index of a table.
pub(super) struct CqlIndex {
    pub(super) tag: u32,
    pub(super) name: &'static str,
    /// Position of the claims in [`Tables::rows`], of a unique index.
    pub(super) claims: Option<usize>,
    pub(super) entries: Option<Entries>,
}

pub(super) struct CqlTable {
    pub(super) def: TableDef,
    pub(super) name: &'static str,
    /// Position in [`Tables::rows`].
    pub(super) rows: usize,
    /// In the order of the schema, then the order by modification.
    pub(super) indexes: Vec<CqlIndex>,
}

impl CqlTable {
    pub(super) fn index(&self, index: Index) -> Option<&CqlIndex> {
        self.indexes.get(usize::from(index.0))
    }

    pub(super) fn modified(&self) -> Option<&CqlIndex> {
        self.by_tag(tag(&MODIFIED))
    }

    pub(super) fn by_tag(&self, tag: u32) -> Option<&CqlIndex> {
        self.indexes.iter().find(|index| index.tag == tag)
    }
}

/// Statements on transactions.
pub(super) struct Decisions {
    pub(super) decide: PreparedStatement,
    pub(super) get: PreparedStatement,
    pub(super) get_serial: PreparedStatement,
    pub(super) forget: PreparedStatement,
}

pub(super) struct Tables {
    pub(super) tables: Vec<CqlTable>,
    pub(super) rows: Vec<Rows>,
    pub(super) decisions: Decisions,
    /// How many rows the answering node has, about.
    pub(super) estimates: PreparedStatement,
}

/// Table of transactions.
pub(super) const TRANSACTIONS: &str = "signalbox_transactions";

impl Tables {
    /// Creates what is absent and prepares the statements.
    pub(super) async fn open(client: &Client, keyspace: &str, defs: &[TableDef]) -> Result<Tables, Error> {
        let (mut tables, mut rows) = (Vec::new(), Vec::new());
        for def in defs {
            let schema = def.schema;
            let mut tags: Vec<u32> = schema.indexes.iter().map(tag).collect();
            tags.push(tag(&MODIFIED));
            tags.sort_unstable();
            if tags.windows(2).any(|two| two[0] == two[1]) {
                return Err(Error::Open(format!(
                    "table {}: the names of two indexes have one checksum; rename one",
                    schema.name
                )));
            }
            let expiry = def
                .expiry
                .and_then(|index| schema.indexes.get(usize::from(index.0)));
            let own = rows.len();
            rows.push(open_rows(client, format!("{keyspace}.{}", schema.name), expiry).await?);
            let mut indexes = Vec::new();
            for index in schema.indexes {
                let name = format!("{keyspace}.{}__{}", schema.name, index.name);
                let mut claims = None;
                if index.unique {
                    claims = Some(rows.len());
                    rows.push(open_rows(client, name.clone(), None).await?);
                }
                let entries = match !index.unique || index.ordered {
                    true => Some(open_entries(client, &name, index.ordered).await?),
                    false => None,
                };
                indexes.push(CqlIndex {
                    tag: tag(index),
                    name: index.name,
                    claims,
                    entries,
                });
            }
            if schema.by_modified {
                let name = format!("{keyspace}.{}__modified", schema.name);
                indexes.push(CqlIndex {
                    tag: tag(&MODIFIED),
                    name: MODIFIED.name,
                    claims: None,
                    entries: Some(open_entries(client, &name, true).await?),
                });
            }
            tables.push(CqlTable {
                def: *def,
                name: schema.name,
                rows: own,
                indexes,
            });
        }
        let decisions = open_decisions(client, &format!("{keyspace}.{TRANSACTIONS}")).await?;
        let estimates =
            "SELECT partitions_count FROM system.size_estimates WHERE keyspace_name = ? AND table_name = ?";
        Ok(Tables {
            tables,
            rows,
            decisions,
            estimates: client.prepare(estimates.to_owned()).await?,
        })
    }

    pub(super) fn rows_named(&self, name: &str) -> Option<usize> {
        self.rows.iter().position(|rows| rows.name == name)
    }
}

async fn open_rows(client: &Client, name: String, expiry: Option<&IndexSchema>) -> Result<Rows, Error> {
    // `prior` is the version before, `tx` and `n_…` what a transaction is about to write.
    client
        .create(&name, &format!(
            "CREATE TABLE IF NOT EXISTS {name} (id blob PRIMARY KEY, version bigint, created bigint, site text, \
             value blob, keys blob, prior bigint, tx blob, n_kind tinyint, n_version bigint, n_created bigint, \
             n_site text, n_value blob, n_keys blob)"
        ))
        .await?;
    let get = format!("SELECT {COLUMNS} FROM {name} WHERE id = ?");
    let image = "version = ?, created = ?, site = ?, value = ?, keys = ?, prior = ?";
    let no_intent = "tx = null, n_kind = null, n_version = null, n_created = null, n_site = null, n_value = null, \
                     n_keys = null";
    Ok(Rows {
        get: client.prepare(get.clone()).await?,
        get_serial: client.prepare_serial(get).await?,
        scan: client.prepare(format!("SELECT {COLUMNS} FROM {name}")).await?,
        put: client
            .prepare(format!(
                "UPDATE {name} USING TTL ? SET {image}, tx = null WHERE id = ? IF version = ? AND tx = null"
            ))
            .await?,
        delete: client
            .prepare(format!(
                "DELETE FROM {name} WHERE id = ? IF version = ? AND tx = null"
            ))
            .await?,
        prepare: client
            .prepare(format!(
                "UPDATE {name} SET tx = ?, n_kind = ?, n_version = ?, n_created = ?, n_site = ?, n_value = ?, \
                 n_keys = ? WHERE id = ? IF version = ? AND tx = null"
            ))
            .await?,
        finish_put: client
            .prepare(format!(
                "UPDATE {name} USING TTL ? SET {image}, {no_intent} WHERE id = ? IF tx = ?"
            ))
            .await?,
        finish_delete: client
            .prepare(format!("DELETE FROM {name} WHERE id = ? IF tx = ?"))
            .await?,
        finish_keep: client
            .prepare(format!("UPDATE {name} SET {no_intent} WHERE id = ? IF tx = ?"))
            .await?,
        expiry: expiry.map(tag),
        name,
    })
}

/// Seconds after which the removal of an entry is forgotten. A removed entry that comes back from a node that has missed
/// its removal is only a hint that does not hold, so this need not be long, and short keeps scans quick.
pub(super) const ENTRY_GRACE: u32 = 3_600;

async fn open_entries(client: &Client, name: &str, ordered: bool) -> Result<Entries, Error> {
    let name = format!("{name}_{}", if ordered { "order" } else { "entries" });
    let (shard, primary) = if ordered {
        ("shard int, ", "shard, k, id, entry")
    } else {
        ("", "k, id, entry")
    };
    client
        .create(&name, &format!(
            "CREATE TABLE IF NOT EXISTS {name} ({shard}k blob, id blob, entry bigint, PRIMARY KEY ({primary})) \
             WITH gc_grace_seconds = {ENTRY_GRACE}"
        ))
        .await?;
    let (columns, marks, of_shard) = if ordered {
        ("shard, k, id, entry", "?, ?, ?, ?", "shard = ? AND ")
    } else {
        ("k, id, entry", "?, ?, ?", "")
    };
    let pages = if ordered {
        let select = format!("SELECT k, id, entry FROM {name} WHERE shard = ?");
        let statement = |bounds: &str| client.prepare(format!("{select} AND {bounds} LIMIT ?"));
        Some(Pages {
            from: [
                statement("(k) >= (?)").await?,
                statement("(k) >= (?) AND (k) < (?)").await?,
            ],
            after: [
                statement("(k, id, entry) > (?, ?, ?)").await?,
                statement("(k, id, entry) > (?, ?, ?) AND (k) < (?)").await?,
            ],
        })
    } else {
        None
    };
    Ok(Entries {
        insert: client
            .prepare(format!("INSERT INTO {name} ({columns}) VALUES ({marks})"))
            .await?,
        delete: client
            .prepare(format!(
                "DELETE FROM {name} WHERE {of_shard}k = ? AND id = ? AND entry = ?"
            ))
            .await?,
        find: client
            .prepare(format!(
                "SELECT id, entry FROM {name} WHERE {of_shard}k = ? AND (id, entry) > (?, ?) LIMIT ?"
            ))
            .await?,
        pages,
    })
}

async fn open_decisions(client: &Client, name: &str) -> Result<Decisions, Error> {
    client
        .create(
            name,
            &format!(
                "CREATE TABLE IF NOT EXISTS {name} (id blob PRIMARY KEY, state tinyint, participants blob) \
             WITH gc_grace_seconds = {ENTRY_GRACE}"
            ),
        )
        .await?;
    let get = format!("SELECT state, participants FROM {name} WHERE id = ?");
    Ok(Decisions {
        decide: client
            .prepare(format!(
                "INSERT INTO {name} (id, state, participants) VALUES (?, ?, ?) IF NOT EXISTS"
            ))
            .await?,
        get: client.prepare(get.clone()).await?,
        get_serial: client.prepare_serial(get).await?,
        forget: client.prepare(format!("DELETE FROM {name} WHERE id = ?")).await?,
    })
}
