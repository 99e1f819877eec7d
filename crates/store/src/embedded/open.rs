//! Opening the embedded engine: the directory, what it says of its tables and sites, the log, the threads.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use arc_swap::ArcSwapOption;
use crossbeam_channel::bounded;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::compact::Compactor;
use super::entry::{Entry, Kind};
use super::recover::{open_segments, replay, rewrite};
use super::segment::{Name, Segment, Segments, sync_directory};
use super::space::Space;
use super::writer::Writer;
use super::{Counters, Embedded, Shared};
use crate::config::Config;
use crate::engine::Opening;
use crate::error::{Error, hex};
use crate::record::IndexKeys;
use crate::schema::{TableDef, TableSchema};
use crate::version::Stamper;

const CATALOGUE: &str = "store.json";
const LOCK: &str = "store.lock";

/// What the numbers in the log mean. Kept in `store.json`, which is small and only written when it changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Catalogue {
    /// Grows when the files change in a way that older programs cannot read.
    format: u32,
    /// Names of sites by their number.
    sites: Vec<String>,
    /// Tables by their number.
    tables: Vec<CatalogueTable>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct CatalogueTable {
    name: String,
    /// Names of the indexes whose keys stand in the log, by their position.
    indexes: Vec<String>,
}

const FORMAT: u32 = 1;

pub(crate) fn open(config: &Config, opening: Opening) -> Result<Embedded, Error> {
    let begun = Instant::now();
    let directory = &config.embedded.directory;
    let at = |error: std::io::Error| Error::Open(format!("{}: {error}", directory.display()));
    std::fs::create_dir_all(directory).map_err(at)?;
    let lock = lock(directory)?;
    let before = read_catalogue(directory)?;
    let segments = open_segments(directory)?;
    let catalogue = catalogue(before.clone().unwrap_or_default(), &opening)?;
    if let Some(before) = &before {
        bring_up_to_date(directory, before, &opening.tables, &segments)?;
    }
    if before.as_ref() != Some(&catalogue) {
        write_catalogue(directory, &catalogue)?;
    }

    let shared = Arc::new(share(&catalogue, &opening, segments)?);
    let latest = replay(&shared)?;
    let newest = shared.segments.list().in_order().last().cloned();
    let active = match newest {
        // A file that compaction wrote is never written to again.
        Some(newest) if newest.compacted_at == 0 => newest,
        other => {
            let name = Name::fresh(other.map_or(1, |newest| newest.name.last + 1));
            let slot = shared.segments.take_slot()?;
            let fresh = Arc::new(Segment::create(name.path(directory), name, slot, 0).map_err(at)?);
            shared.segments.add(&fresh);
            fresh
        }
    };
    tracing::info!(
        directory = %directory.display(),
        segments = shared.segments.list().in_order().len(),
        milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        "the store is open"
    );

    let site = catalogue
        .sites
        .iter()
        .position(|site| **site == *opening.site)
        .unwrap_or_default();
    let (queue, messages) = bounded(config.queue_length.max(1));
    let (wake, woken) = bounded(1);
    let stopping = Arc::new(AtomicBool::new(false));
    let writer = Writer {
        shared: shared.clone(),
        directory: directory.clone(),
        config: config.embedded.clone(),
        // `catalogue` counts them.
        site: site as u16,
        stamper: Stamper::after(opening.clock, 0, latest),
        active,
        wake: wake.clone(),
        group: super::writer::Group::default(),
        failed: None,
    };
    let compactor = Compactor {
        shared: shared.clone(),
        directory: directory.clone(),
        config: config.embedded.clone(),
        writer: queue.clone(),
        stopping: stopping.clone(),
    };
    let start = |name: &str, body: Box<dyn FnOnce() + Send>| {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body);
        thread.map_err(|error| Error::Open(format!("cannot start thread {name}: {error}")))
    };
    let threads = vec![
        start("store-compact", Box::new(move || compactor.run(&woken)))?,
        start("store-writer", Box::new(move || writer.run(&messages)))?,
    ];
    Ok(Embedded {
        shared,
        queue_bytes: config.queue_bytes.as_usize(),
        queue: ArcSwapOption::from_pointee(queue),
        stopping,
        wake,
        threads: Mutex::new(threads),
        lock,
    })
}

fn lock(directory: &Path) -> Result<File, Error> {
    let path = directory.join(LOCK);
    let at = |error: &dyn std::fmt::Display| Error::Open(format!("{}: {error}", path.display()));
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|error| at(&error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(at(&"another process has this store open")),
        Err(std::fs::TryLockError::Error(error)) => Err(at(&error)),
    }
}

fn read_catalogue(directory: &Path) -> Result<Option<Catalogue>, Error> {
    let path = directory.join(CATALOGUE);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::Open(format!("{}: {error}", path.display()))),
    };
    let catalogue: Catalogue =
        serde_json::from_slice(&text).map_err(|error| Error::Open(format!("{}: {error}", path.display())))?;
    if catalogue.format != FORMAT {
        return Err(Error::Open(format!(
            "{}: written in format {}, this program reads format {FORMAT}",
            path.display(),
            catalogue.format
        )));
    }
    Ok(Some(catalogue))
}

fn write_catalogue(directory: &Path, catalogue: &Catalogue) -> Result<(), Error> {
    let (path, temporary) = (directory.join(CATALOGUE), directory.join("store.json.tmp"));
    let write = || -> std::io::Result<()> {
        std::fs::write(&temporary, serde_json::to_vec_pretty(catalogue)?)?;
        File::open(&temporary)?.sync_all()?;
        std::fs::rename(&temporary, &path)?;
        sync_directory(&path)
    };
    write().map_err(|error| Error::Open(format!("{}: {error}", path.display())))
}

/// The catalogue with this site and these tables.
fn catalogue(mut catalogue: Catalogue, opening: &Opening) -> Result<Catalogue, Error> {
    catalogue.format = FORMAT;
    if !catalogue.sites.iter().any(|site| **site == *opening.site) {
        catalogue.sites.push(opening.site.to_string());
    }
    for table in &opening.tables {
        let entry = CatalogueTable {
            name: table.schema.name.to_owned(),
            indexes: index_names(table.schema),
        };
        match catalogue.tables.iter_mut().find(|known| known.name == entry.name) {
            Some(known) => *known = entry,
            None => catalogue.tables.push(entry),
        }
    }
    let limit = usize::from(u16::MAX);
    if catalogue.sites.len() > limit || catalogue.tables.len() > limit {
        return Err(Error::Open(format!("more than {limit} tables or names of sites")));
    }
    Ok(catalogue)
}

fn index_names(schema: &TableSchema) -> Vec<String> {
    schema.indexes.iter().map(|index| index.name.to_owned()).collect()
}

/// Rewrites the log when tables have other indexes than those whose keys it holds. A crash in the middle leaves
/// the old catalogue, so that the next start does it again.
fn bring_up_to_date(
    directory: &Path,
    before: &Catalogue,
    tables: &[TableDef],
    segments: &Segments,
) -> Result<(), Error> {
    let changed = |number: u16| {
        let known = before.tables.get(usize::from(number))?;
        let table = tables.iter().find(|table| table.schema.name == known.name)?;
        (index_names(table.schema) != known.indexes).then_some(table)
    };
    let numbers = 0..before.tables.len() as u16;
    let names: Vec<&str> = numbers
        .filter_map(changed)
        .map(|table| table.schema.name)
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    tracing::info!(tables = ?names, "the list of indexes has changed; rewriting the log");
    rewrite(directory, segments, |entry, out| {
        let (Kind::Put, Some(table)) = (entry.kind, changed(entry.table)) else {
            entry.encode(out);
            return Ok(());
        };
        let corrupt = |reason| Error::Corrupt {
            table: table.schema.name,
            key: hex(entry.key),
            reason,
        };
        let value = crate::compress::unpack(entry.value.to_vec(), usize::MAX).map_err(corrupt)?;
        let mut keys = IndexKeys::default();
        (table.reindex)(entry.key, &value, &mut keys).map_err(|error| corrupt(error.0))?;
        Entry {
            keys: keys.as_bytes(),
            ..*entry
        }
        .encode(out);
        Ok(())
    })
}

fn share(catalogue: &Catalogue, opening: &Opening, segments: Segments) -> Result<Shared, Error> {
    let schema = |name: &str| {
        opening
            .tables
            .iter()
            .map(|table| table.schema)
            .find(|schema| schema.name == name)
    };
    let spaces = catalogue.tables.iter().enumerate();
    // `catalogue` keeps the number of tables below 65,536.
    let spaces: Vec<Space> = spaces
        .map(|(number, table)| Space::new(number as u16, &table.name, schema(&table.name)))
        .collect();
    let opened = opening.tables.iter().map(|table| {
        let space = spaces.iter().find(|space| space.name == table.schema.name);
        space
            .map(|space| space.number)
            .ok_or_else(|| Error::Open(format!("table {} is lost", table.schema.name)))
    });
    Ok(Shared {
        opened: opened.collect::<Result<_, _>>()?,
        segments,
        spaces,
        sites: catalogue
            .sites
            .iter()
            .map(|site| Arc::from(site.as_str()))
            .collect(),
        counters: Counters::default(),
    })
}
