//! The keyspace and its tables: creating them, and bringing indexes up to date.
//!
//! Of several processes that start at the same time one defines tables; a cluster does not always settle two definitions
//! of one table.

use std::time::{Duration, Instant};

use super::client::{Client, Failure};
use super::core::Core;
use super::image::{HeldKey, Image, Kind, keys_of};
use super::plan::{Fault, Participant, Plan};
use super::tables::{CqlTable, Tables};
use crate::compress;
use crate::config::CassandraConfig;
use crate::engine::{Order, PageRequest};
use crate::error::{Error, hex};
use crate::record::{IndexKeys, TableDef};
use crate::schema::TableId;

/// The version of the layout that this program knows.
const LAYOUT: i32 = 1;
/// Rows of `signalbox_schema`: the layout, and the lock of the process that defines tables.
const SCHEMA: i32 = 1;
const LOCK: i32 = 2;
/// Seconds after which the lock of a process that has crashed is free.
const LOCK_TTL: i32 = 60;
const PATIENCE: Duration = Duration::from_secs(90);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

fn at(what: &str) -> impl Fn(Failure) -> Error + '_ {
    move |failure| Error::Open(format!("{what}: {}", failure.reason()))
}

/// Repeats a statement on `signalbox_schema` until it succeeds, for at most `retryFor`: a node of a busy cluster may not know
/// the table yet when another one has created it.
async fn repeat<T>(
    config: &CassandraConfig,
    schema: &str,
    mut statement: impl AsyncFnMut() -> Result<T, Failure>,
) -> Result<T, Error> {
    let begun = Instant::now();
    loop {
        match statement().await {
            Ok(done) => return Ok(done),
            Err(failure) if begun.elapsed() > config.retry_for.duration() => return Err(at(schema)(failure)),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Creates what is absent; the tables, and the number of shards of ordered indexes.
pub(super) async fn migrate(
    client: &Client,
    config: &CassandraConfig,
    defs: &[TableDef],
) -> Result<(Tables, u16), Error> {
    let keyspace = &config.keyspace;
    if !config.create_keyspace.is_empty()
        && client
            .session
            .get_cluster_state()
            .get_keyspace(keyspace)
            .is_none()
    {
        let replicas = config.create_keyspace.iter();
        let replicas: String = replicas
            .map(|(name, count)| format!(", '{name}': {count}"))
            .collect();
        client
            .define(&format!(
                "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {{'class': 'NetworkTopologyStrategy'{replicas}}}"
            ))
            .await?;
    }
    let schema = format!("{keyspace}.signalbox_schema");
    let columns = "(id int PRIMARY KEY, version int, shards int)";
    client
        .create(&schema, &format!("CREATE TABLE IF NOT EXISTS {schema} {columns}"))
        .await?;
    let insert = client
        .prepare(format!(
            "INSERT INTO {schema} (id, version, shards) VALUES (?, ?, ?) IF NOT EXISTS USING TTL ?"
        ))
        .await?;
    let begun = Instant::now();
    let lock = async || client.applied(&insert, (LOCK, LAYOUT, 0i32, LOCK_TTL)).await;
    while !repeat(config, &schema, lock).await? {
        if begun.elapsed() > PATIENCE {
            let fault = "another process defines tables and does not come to an end";
            return Err(Error::Open(format!("{schema}: {fault}")));
        }
        tokio::time::sleep(PAUSE).await;
    }
    let opened = define(client, config, defs, &schema, &insert).await;
    let unlock = client
        .prepare(format!("DELETE FROM {schema} WHERE id = ? IF EXISTS"))
        .await?;
    // One that stays is free when its time is over.
    let _ = client.applied(&unlock, (LOCK,)).await;
    opened
}

async fn define(
    client: &Client,
    config: &CassandraConfig,
    defs: &[TableDef],
    schema: &str,
    insert: &scylla::statement::prepared::PreparedStatement,
) -> Result<(Tables, u16), Error> {
    let values = (SCHEMA, LAYOUT, i32::from(config.shards), 0i32);
    repeat(config, schema, async || client.applied(insert, values).await).await?;
    let select = client
        .prepare_serial(format!("SELECT version, shards FROM {schema} WHERE id = ?"))
        .await?;
    let read = async || client.rows(&select, (SCHEMA,)).await;
    let found: Vec<(i32, i32)> = repeat(config, schema, read).await?;
    let (version, shards) = found
        .first()
        .copied()
        .unwrap_or((LAYOUT, i32::from(config.shards)));
    if version > LAYOUT {
        return Err(Error::Open(format!(
            "the keyspace has layout {version}, this program knows layouts up to {LAYOUT}: it needs a newer program"
        )));
    }
    let keyspace = &config.keyspace;
    // What another process has defined meanwhile.
    client.refresh().await?;
    for (name, columns) in [
        ("signalbox_heartbeat", "(site text PRIMARY KEY, beat bigint)"),
        ("signalbox_tables", "(name text PRIMARY KEY, indexes text)"),
    ] {
        let name = format!("{keyspace}.{name}");
        let create = format!("CREATE TABLE IF NOT EXISTS {name} {columns}");
        client.create(&name, &create).await?;
    }
    let tables = Tables::open(client, keyspace, defs).await?;
    let shards = u16::try_from(shards).ok().filter(|shards| *shards > 0);
    let shards = shards.ok_or_else(|| Error::Open(format!("{schema}: the number of shards is lost")))?;
    if shards != config.shards {
        tracing::info!(
            shards,
            setting = config.shards,
            "the keyspace was created with another number of shards, which stays"
        );
    }
    Ok((tables, shards))
}

/// Records read at a time.
const PAGE: usize = 200;

impl Core {
    /// Computes the index keys of all records of tables whose list of indexes has changed.
    pub(super) async fn reindex(&self) -> Result<(), Error> {
        let name = format!("{}.signalbox_tables", self.config.keyspace);
        let select = format!("SELECT indexes FROM {name} WHERE name = ?");
        let select = self.client.prepare(select).await?;
        let insert = format!("INSERT INTO {name} (name, indexes) VALUES (?, ?)");
        let insert = self.client.prepare(insert).await?;
        for (position, table) in self.tables.tables.iter().enumerate() {
            let wanted = describe(table);
            let found: Vec<(Option<String>,)> = self
                .client
                .rows(&select, (table.name,))
                .await
                .map_err(at(&name))?;
            let found = found.into_iter().next().and_then(|(indexes,)| indexes);
            if found.as_ref() == Some(&wanted) {
                continue;
            }
            if let Some(found) = found {
                tracing::info!(
                    table = table.name,
                    found,
                    wanted,
                    "bringing the indexes up to date"
                );
                // Tables are numbered with 16 bits by `Store::table`.
                self.reindex_table(TableId(position as u16), table).await?;
            }
            let values = (table.name, &wanted);
            self.client.run(&insert, values).await.map_err(at(&name))?;
        }
        Ok(())
    }

    async fn reindex_table(&self, id: TableId, table: &CqlTable) -> Result<(), Error> {
        let mut request = PageRequest {
            order: Order::Primary,
            from: None,
            to: None,
            after: None,
            limit: PAGE,
        };
        loop {
            let deadline = self.deadline();
            let page = loop {
                match self.page_of_all(table, &request).await {
                    Ok(page) => break page,
                    Err(failure) => self.read_again(failure, deadline).await?,
                }
            };
            for row in page.rows {
                self.reindex_record(id, table, &row.key).await?;
            }
            match page.next {
                Some(place) => request.after = Some(place),
                None => return Ok(()),
            }
        }
    }

    /// Writes a record again with the keys of today; its version and value stay.
    async fn reindex_record(&self, id: TableId, table: &CqlTable, key: &[u8]) -> Result<(), Error> {
        let deadline = Instant::now() + self.config.retry_for.duration();
        loop {
            let attempt = async {
                let loaded = self.unlocked(table.rows, key).await?;
                let Some(mut plan) = loaded
                    .image
                    .map(|image| reindexed(id, table, key, image))
                    .transpose()?
                    .flatten()
                else {
                    return Ok(None);
                };
                // A claim may be left from the last time that the table had this index.
                let claims = plan.participants.iter_mut();
                for claim in claims.filter(|participant| participant.rows != table.rows) {
                    claim.expected = self.unlocked(claim.rows, &claim.key).await?.version();
                    if let (Some(image), Some(stored)) = (&mut claim.image, claim.expected) {
                        image.version = image.version.beyond(stored);
                    }
                }
                let transaction = self.carry_out(&plan, deadline).await?;
                self.tidy(&plan, transaction).await;
                Ok(Some(()))
            };
            match attempt.await {
                Ok(_) => return Ok(()),
                Err(Fault::Again(_)) if Instant::now() < deadline => {}
                Err(Fault::Conflict(error)) => return Err(error),
                Err(Fault::Again(reason) | Fault::Doubt(reason)) => {
                    return Err(Error::Open(format!("table {}: {reason}", table.name)));
                }
                Err(Fault::Final(failure)) => return Err(at(table.name)(failure)),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// What is to be written so that a record has its keys; `None` where it has.
fn reindexed(id: TableId, table: &CqlTable, key: &[u8], image: Image) -> Result<Option<Plan>, Fault> {
    let corrupt = |reason| {
        Fault::Conflict(Error::Corrupt {
            table: table.name,
            key: hex(key),
            reason,
        })
    };
    let value = compress::unpack(image.value.clone(), usize::MAX, |_| None).map_err(corrupt)?;
    let mut keys = IndexKeys::default();
    (table.def.reindex)(key, &value, &mut keys).map_err(|error| corrupt(error.0))?;
    let keys = keys_of(&table.def, &keys, image.version, Some(&image));
    if keys == image.keys {
        return Ok(None);
    }
    let number = usize::from(id.0);
    let named = |held: &HeldKey| (number, key.to_vec(), held.clone());
    let added: Vec<&HeldKey> = keys.iter().filter(|held| !image.keys.contains(held)).collect();
    let claims = added.iter().filter_map(|held| {
        let rows = table.by_tag(held.tag)?.claims?;
        Some(Participant {
            rows,
            key: super::entries::partition(&held.key),
            expected: None,
            kind: Kind::Put,
            image: Some(Image {
                value: key.to_vec(),
                keys: Vec::new(),
                ..image.clone()
            }),
        })
    });
    let mut participants: Vec<Participant> = claims.collect();
    let removed = image.keys.iter().filter(|held| !keys.contains(held));
    Ok(Some(Plan {
        version: image.version,
        added: added.iter().map(|held| named(held)).collect(),
        removed: removed.map(named).collect(),
        participants: {
            participants.push(Participant {
                rows: table.rows,
                key: key.to_vec(),
                expected: Some(image.version),
                kind: Kind::Put,
                image: Some(Image { keys, ..image }),
            });
            participants
        },
    }))
}

/// The list of indexes, as text.
fn describe(table: &CqlTable) -> String {
    let indexes = table.indexes.iter().enumerate().map(|(position, index)| {
        let schema = table.def.schema.indexes.get(position);
        let unique = if index.claims.is_some() { " unique" } else { "" };
        let ordered = schema.is_some_and(|schema| schema.ordered);
        format!("{}{unique}{}", index.name, if ordered { " ordered" } else { "" })
    });
    indexes.collect::<Vec<_>>().join(", ")
}
