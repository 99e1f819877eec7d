//! Opening the embedded engine: the directory, what it says of its tables and sites, the log, the threads.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use arc_swap::ArcSwapOption;
use crossbeam_channel::bounded;
use parking_lot::Mutex;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::catalogue::{CATALOGUE, Catalogue, index_names};
use super::checkpoint::{self, CHECKPOINT, Loaded};
use super::compact::{Compactor, TEMPORARY};
use super::entry::{Entry, Kind};
use super::export::dictionaries_in;
use super::files::{self, Listing};
use super::judge::Progress;
use super::lock::Lock;
use super::mark::{self, MARK, Mark, MarkFile};
use super::name::Name;
use super::recover::{Tail, replay, rewrite};
use super::reserve::Reserve;
use super::running::InProgress;
use super::segment::Segment;
use super::segments::{Need, Segments};
use super::space::Space;
use super::tail::ONLY_DELETIONS;
use super::writer::Writer;
use super::{Counters, Embedded, Shared, private};
use crate::config::Config;
use crate::engine::Opening;
use crate::error::{Error, hex};
use crate::record::{IndexKeys, TableDef};
use crate::trouble::Trouble;
use crate::version::Stamper;

/// Whether a file belongs to a store; the key with which an NRF signs tokens, the NF instance id and the journal of a function
/// lie beside its store.
fn is_ours(name: &str) -> bool {
    let of_the_log = name
        .split(".cut-")
        .next()
        .is_some_and(|log| Name::parse(log).is_some());
    of_the_log
        || name.starts_with("store.")
        || name == TEMPORARY
        || name.starts_with("token-key")
        || name.ends_with("-instance-id")
        || name
            .split('.')
            .next()
            .is_some_and(|first| first.ends_with("-journal"))
}

pub(crate) fn open(config: &Config, opening: Opening) -> Result<Embedded, Error> {
    let begun = Instant::now();
    let directory = &config.embedded.directory;
    let at = |error: std::io::Error| Error::Open(format!("{}: {error}", directory.display()));
    private::create_directory(directory).map_err(at)?;
    let lock = Lock::take(directory)?;
    private::tighten(directory, is_ours).map_err(at)?;
    let (before, mark, listing) = survey(directory)?;
    raise_descriptors(config.embedded.files);
    let files::Opened { segments, leftovers } =
        files::open(directory, &listing, mark, config.embedded.files)?;
    let catalogue = before.clone().unwrap_or_default().with(&opening)?;
    if let Some(before) = &before {
        bring_up_to_date(directory, before, &opening.tables, (&segments, mark))?;
    }
    let mut shared = share(&catalogue, &opening, segments)?;
    let Read { tail, loaded } = read_log(directory, &mut shared, (&catalogue, &opening, mark))?;
    let Tail { latest, open } = tail;
    let shared = Arc::new(shared);
    let listed = shared.segments.list();
    let unread: Vec<_> = listed
        .in_order()
        .iter()
        .filter(|file| loaded.is_whole(file))
        .cloned()
        .collect();
    drop(listed);
    shared.counters.unread.store(unread.len() as u64, Relaxed);
    // Nothing is written to the directory before all that is in it has been read.
    files::remove(&leftovers)?;
    let marked = match mark {
        Some(_) => MarkFile::open(directory),
        None => MarkFile::create(directory, Mark::default()),
    };
    let mut marked = marked.map_err(at)?;
    if before.as_ref() != Some(&catalogue) {
        catalogue.write(directory)?;
    }
    let (active, progress) = match open {
        Some((newest, progress)) => {
            // A process that was killed may have left a group that is not on the disk yet. It is shown from now on.
            newest.sync().map_err(at)?;
            (newest, progress)
        }
        None => {
            let list = shared.segments.list();
            let name = Name::fresh(list.in_order().last().map_or(1, |newest| newest.name.last + 1));
            let slot = shared.segments.take_slot(Need::Upkeep)?;
            let fresh = Arc::new(Segment::create(name.path(directory), name, slot, 0).map_err(at)?);
            shared.segments.add(&fresh);
            (fresh, Progress::default())
        }
    };
    let durable = Mark {
        segment: active.name.last,
        offset: active.length(),
    };
    marked.settle(durable).map_err(at)?;
    tracing::info!(
        directory = %directory.display(),
        segments = shared.segments.list().in_order().len(),
        unread = unread.len(),
        milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        "the store is open"
    );

    let site = catalogue
        .sites
        .iter()
        .position(|site| **site == *opening.site)
        .unwrap_or_default();
    let reserve = Reserve::take(directory, config.embedded.reserve.bytes());
    if reserve.is_released() {
        shared.trouble.begin(ONLY_DELETIONS);
    }
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
        sealed: false,
        reserved: shared.segments.is_full(),
        reserve,
        durable: durable.offset,
        mark: marked,
        progress,
        cut: None,
        wake: wake.clone(),
        group: super::writer::Group::default(),
        failed: None,
        tried: Instant::now(),
        fresh: loaded.is_complete(&shared),
    };
    let compactor = Compactor {
        shared: shared.clone(),
        directory: directory.clone(),
        config: config.embedded.clone(),
        writer: queue.clone(),
        stopping: stopping.clone(),
        checkpointed: loaded.place(),
        unread,
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
        directory: directory.clone(),
        copy_rate: config.embedded.compaction_rate.bytes(),
        copying: InProgress::default(),
    })
}

/// Each file of the log is a descriptor. Raises how many this process may have, as far as it may.
fn raise_descriptors(files: usize) {
    /// For all that is not the store's.
    const OTHERS: u64 = 1_024;
    let limit = getrlimit(Resource::Nofile);
    let wanted = files as u64 + OTHERS;
    let most = limit.maximum.unwrap_or(u64::MAX);
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let raised = Rlimit {
        current: Some(wanted.min(most)),
        ..limit
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "failed to raise the limit of open files");
    } else if most < wanted {
        tracing::warn!(
            limit = most,
            wanted,
            "the log may become more files than this process may have open (ulimit -Hn, LimitNOFILE)"
        );
    }
}

/// The log, read.
struct Read {
    tail: Tail,
    loaded: Loaded,
}

/// Fills the indexes: from the checkpoint and what was written after it, or from the whole log.
fn read_log(
    directory: &Path,
    shared: &mut Shared,
    (catalogue, opening, mark): (&Catalogue, &Opening, Option<Mark>),
) -> Result<Read, Error> {
    let loaded = checkpoint::load(directory, shared);
    let read = loaded.and_then(|loaded| match loaded {
        None => Ok(None),
        Some(loaded) => match replay(shared, mark, Some(&loaded)) {
            Ok(tail) => Ok(Some(Read { tail, loaded })),
            Err(error) => Err(error.to_string()),
        },
    });
    match read {
        Ok(Some(read)) => return Ok(read),
        Ok(None) => {}
        Err(reason) => {
            tracing::warn!(
                file = %directory.join(CHECKPOINT).display(),
                reason,
                "the checkpoint cannot be used; reading the whole log"
            );
            shared.spaces = spaces(catalogue, opening);
            shared
                .segments
                .list()
                .in_order()
                .iter()
                .for_each(|file| file.reset());
        }
    }
    let tail = replay(shared, mark, None)?;
    Ok(Read {
        tail,
        loaded: Loaded::default(),
    })
}

/// What a directory holds, as far as its small files and the names of the others say.
fn survey(directory: &Path) -> Result<(Option<Catalogue>, Option<Mark>, Listing), Error> {
    let listing = Listing::read(directory)?;
    let (catalogue, mark) = (Catalogue::read(directory)?, mark::read(directory)?);
    let lost = |name: &str| Err(files::refuse(&directory.join(name), 0, "the file is missing"));
    match &catalogue {
        None if !listing.is_empty() || mark.is_some_and(|mark| mark.segment > 0) => lost(CATALOGUE),
        Some(catalogue) if catalogue.has_mark() && mark.is_none() => lost(MARK),
        _ => Ok((catalogue, mark, listing)),
    }
}

/// Rewrites the log when tables have other indexes than those whose keys it holds. Before the first file is written, the
/// catalogue says of these tables that they have none of either list: after a crash in the middle the next start does it
/// again, also that of the earlier release.
fn bring_up_to_date(
    directory: &Path,
    before: &Catalogue,
    tables: &[TableDef],
    (segments, mark): (&Segments, Option<Mark>),
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
    let dictionaries = dictionaries_in(segments.list().in_order(), before)?;
    let begin = || before.clone().being_rewritten(&names).write(directory);
    rewrite(directory, segments, mark, begin, |entry, out| {
        let (Kind::Put, Some(table)) = (entry.kind, changed(entry.table)) else {
            entry.encode(out);
            return Ok(());
        };
        let corrupt = |reason| Error::Corrupt {
            table: table.schema.name,
            key: hex(entry.key),
            reason,
        };
        let value = crate::compress::unpack(entry.value.to_vec(), usize::MAX, |id| {
            dictionaries.get(&id).cloned()
        })
        .map_err(corrupt)?;
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

fn spaces(catalogue: &Catalogue, opening: &Opening) -> Vec<Space> {
    let opened = |name: &str| opening.tables.iter().find(|table| table.schema.name == name);
    let spaces = catalogue.tables.iter().enumerate();
    // `catalogue` keeps the number of tables below 65,536.
    spaces
        .map(|(number, table)| Space::new(number as u16, &table.name, opened(&table.name)))
        .collect()
}

fn share(catalogue: &Catalogue, opening: &Opening, segments: Segments) -> Result<Shared, Error> {
    let spaces = spaces(catalogue, opening);
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
        trouble: Trouble::default(),
    })
}
