//! Opening the embedded engine: directory, spaces, site numbers, and the list of indexes.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use parking_lot::Mutex;

use super::layout::{Envelope, entry, unique_entry};
use super::writer::{Writer, read};
use super::{Counters, Embedded, Space};
use crate::config::Config;
use crate::engine::Opening;
use crate::error::Error;
use crate::record::IndexKeys;
use crate::schema::{TableDef, TableSchema};
use crate::version::Stamper;

/// Records rewritten in one write while indexes are brought up to date.
const REINDEX_STEP: usize = 1_000;

pub(crate) fn open(config: &Config, opening: Opening) -> Result<Embedded, Error> {
    let embedded = &config.embedded;
    let at = |error: fjall::Error| Error::Open(format!("{}: {error}", embedded.directory.display()));
    std::fs::create_dir_all(&embedded.directory)
        .map_err(|error| Error::Open(format!("{}: {error}", embedded.directory.display())))?;
    let database = Database::builder(&embedded.directory)
        .cache_size(embedded.cache.bytes())
        .max_journaling_size(embedded.journal.bytes().max(64 << 20))
        .worker_threads(embedded.background_threads.max(1))
        .open()
        .map_err(at)?;
    let options = || KeyspaceCreateOptions::default().max_memtable_size(embedded.memtable.bytes());
    let meta = database
        .keyspace("store.meta", KeyspaceCreateOptions::default)
        .map_err(at)?;
    let (sites, site) = site_number(&meta, &opening.site)?;
    let sites = Arc::new(sites);
    let mut spaces = Vec::with_capacity(opening.tables.len());
    for table in &opening.tables {
        let name = table.schema.name;
        let space = Space {
            schema: table.schema,
            rows: database.keyspace(&format!("{name}.rows"), options).map_err(at)?,
            keys: database.keyspace(&format!("{name}.keys"), options).map_err(at)?,
            sites: sites.clone(),
        };
        bring_up_to_date(&database, &meta, &space, table)?;
        spaces.push(space);
    }
    database.persist(PersistMode::SyncAll).map_err(at)?;

    let spaces = Arc::new(spaces);
    let counters = Arc::new(Counters::default());
    let (queue, jobs) = crossbeam_channel::bounded(config.queue_length.max(1));
    let writer = Writer {
        database: database.clone(),
        spaces: spaces.clone(),
        config: embedded.clone(),
        site,
        stamper: Stamper::new(opening.clock, 0),
        counters: counters.clone(),
    };
    let thread = std::thread::Builder::new()
        .name("store-writer".to_owned())
        .spawn(move || writer.run(&jobs))
        .map_err(|error| Error::Open(format!("cannot start the writer thread: {error}")))?;
    Ok(Embedded {
        database,
        spaces,
        counters,
        queue_bytes: config.queue_bytes.as_usize(),
        queue: ArcSwapOption::from_pointee(queue),
        writer: Mutex::new(Some(thread)),
    })
}

/// Names of sites by number, and the number of this one; a new name gets the next number.
fn site_number(meta: &Keyspace, own: &str) -> Result<(Vec<Arc<str>>, u16), Error> {
    let mut names = Vec::new();
    while let Some(name) = read(meta, format!("site.{}", names.len()).as_bytes())? {
        names.push(Arc::from(String::from_utf8_lossy(&name).as_ref()));
    }
    let number = match names.iter().position(|name: &Arc<str>| &**name == own) {
        Some(number) => number,
        None => {
            let number = names.len();
            meta.insert(format!("site.{number}"), own)
                .map_err(|error| Error::Open(error.to_string()))?;
            names.push(Arc::from(own));
            number
        }
    };
    let number = u16::try_from(number).map_err(|_| Error::Open("more than 65,535 site names".to_owned()))?;
    Ok((names, number))
}

/// The list of indexes as text, compared between releases.
fn describe(schema: &TableSchema) -> String {
    let mut text = String::new();
    for index in schema.indexes {
        text.push_str(index.name);
        text.push_str(if index.unique { ":unique " } else { ":many " });
    }
    text.push_str(if schema.by_modified { "modified" } else { "" });
    text
}

/// Rebuilds the index entries of a table whose list of indexes is not the one it was written with.
///
/// A crash in the middle leaves the old description, so the next start begins again.
fn bring_up_to_date(
    database: &Database,
    meta: &Keyspace,
    space: &Space,
    table: &TableDef,
) -> Result<(), Error> {
    let failed = |error: fjall::Error| Error::Open(format!("table {}: {error}", space.schema.name));
    let name = format!("indexes.{}", space.schema.name);
    let wanted = describe(space.schema);
    match read(meta, name.as_bytes())? {
        Some(found) if *found == *wanted.as_bytes() => return Ok(()),
        Some(found) => {
            let found = String::from_utf8_lossy(&found).into_owned();
            tracing::info!(table = space.schema.name, found, wanted, "rebuilding indexes");
            space.keys.clear().map_err(failed)?;
            reindex(database, space, table)?;
        }
        None => {}
    }
    meta.insert(name, wanted).map_err(failed)
}

fn reindex(database: &Database, space: &Space, table: &TableDef) -> Result<(), Error> {
    let failed = |error: fjall::Error| Error::Open(format!("table {}: {error}", space.schema.name));
    let mut batch = database.batch();
    let mut records = 0u64;
    for guard in space.rows.iter() {
        let (key, bytes) = guard.into_inner().map_err(failed)?;
        let old = Envelope::decode(&bytes).map_err(|reason| space.corrupt(&key, reason))?;
        let value = crate::compress::unpack(old.value.to_vec(), usize::MAX)
            .map_err(|reason| space.corrupt(&key, reason))?;
        let mut keys = IndexKeys::default();
        (table.reindex)(&key, &value, &mut keys).map_err(|error| space.corrupt(&key, error.0))?;
        for (index, index_key) in keys.iter() {
            let schema = space.schema.indexes.get(usize::from(index.0)).ok_or_else(|| {
                Error::Open(format!("table {} has no index {}", space.schema.name, index.0))
            })?;
            if schema.unique {
                batch.insert(&space.keys, unique_entry(index, index_key), &*key);
            } else {
                batch.insert(&space.keys, entry(index, index_key, &key), &[][..]);
            }
        }
        if space.schema.by_modified {
            batch.insert(
                &space.keys,
                super::layout::modified_entry(old.version, &key),
                &[][..],
            );
        }
        let row = Envelope {
            keys: keys.as_bytes(),
            ..old
        }
        .encode();
        batch.insert(&space.rows, &*key, row);
        records += 1;
        if batch.len() >= REINDEX_STEP {
            std::mem::replace(&mut batch, database.batch())
                .commit()
                .map_err(failed)?;
        }
    }
    batch.commit().map_err(failed)?;
    tracing::info!(table = space.schema.name, records, "indexes rebuilt");
    Ok(())
}
