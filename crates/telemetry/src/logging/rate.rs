//! How many lines one place in a program may write per second, so that a stranger who makes one place speak fills
//! no disk, and what other places say is seen all the same.
//!
//! A place is found in a table of fixed size without a lock; only events that are enabled get here.

use std::fmt;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata};

/// Places that are counted one by one; all further ones share the last.
const PLACES: usize = 1024;
/// Entries that are checked for a call site.
const PROBES: usize = 16;

/// A place and what it wrote.
#[derive(Debug, Default)]
struct Place {
    /// Hash of the place; 0 while the entry is free.
    key: AtomicU64,
    /// Second (upper half) and lines in it.
    window: AtomicU64,
    /// Lines that were suppressed and not reported yet.
    suppressed: AtomicU32,
    /// What it is called and whether it reports errors: set when its first line is suppressed.
    known: OnceLock<(String, bool)>,
}

/// The lines of a process, by place.
#[derive(Debug)]
pub struct Rate {
    start: Instant,
    most: AtomicU32,
    places: Box<[Place]>,
    total: AtomicU64,
}

impl Rate {
    /// At most `most` lines per second and place; 0 for any number.
    #[must_use]
    pub fn new(most: u32) -> Self {
        Self {
            start: Instant::now(),
            most: AtomicU32::new(most),
            places: (0..PLACES).map(|_| Place::default()).collect(),
            total: AtomicU64::new(0),
        }
    }

    /// Changes the bound.
    pub fn set(&self, most: u32) {
        self.most.store(most, Relaxed);
    }

    /// How many lines were suppressed since the start.
    #[must_use]
    pub fn suppressed(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// Whether this event may be written; `first` is called when it is the first line of its place that may not.
    pub(super) fn permits(&self, event: &Event<'_>, first: impl FnOnce()) -> bool {
        let most = self.most.load(Relaxed);
        if most == 0 {
            return true;
        }
        let origin = Origin::of(event);
        let Some(place) = self.place(origin.key()) else {
            return true;
        };
        let second = self.start.elapsed().as_secs() & u64::from(u32::MAX);
        let window = place.window.load(Relaxed);
        if window >> 32 != second {
            let begun = second << 32 | 1;
            if place
                .window
                .compare_exchange(window, begun, Relaxed, Relaxed)
                .is_ok()
            {
                return true;
            }
        }
        if place.window.fetch_add(1, Relaxed) & u64::from(u32::MAX) < u64::from(most) {
            return true;
        }
        self.total.fetch_add(1, Relaxed);
        if place.suppressed.fetch_add(1, Relaxed) == 0 {
            place
                .known
                .get_or_init(|| (origin.name(), *event.metadata().level() == Level::ERROR));
            first();
        }
        false
    }

    /// Reports what was suppressed since the last report: a line for each place, at `error` where it reports errors.
    pub fn report(&self) {
        for place in &self.places {
            let lines = place.suppressed.swap(0, Relaxed);
            if lines == 0 {
                continue;
            }
            let (name, is_error) = place
                .known
                .get()
                .map_or(("", false), |(name, error)| (name, *error));
            if is_error {
                tracing::error!(
                    place = name,
                    lines,
                    "log lines suppressed, beyond log.maxPerSecond"
                );
            } else {
                tracing::warn!(
                    place = name,
                    lines,
                    "log lines suppressed, beyond log.maxPerSecond"
                );
            }
        }
    }

    fn place(&self, key: u64) -> Option<&Place> {
        let start = key as usize % (PLACES - 1);
        for probe in 0..PROBES {
            let place = self.places.get((start + probe) % (PLACES - 1))?;
            let there = place.key.load(Relaxed);
            let mine = there == key
                || there == 0
                    && match place.key.compare_exchange(0, key, Relaxed, Relaxed) {
                        Ok(_) => true,
                        Err(other) => other == key,
                    };
            if mine {
                return Some(place);
            }
        }
        self.places.last()
    }
}

/// Where an event comes from.
#[derive(Debug)]
pub(super) struct Origin {
    metadata: &'static Metadata<'static>,
    /// The events that stand for records of the `log` crate share their metadata: their own fields say more.
    record: Option<Record>,
}

#[derive(Debug, Default, Hash)]
struct Record {
    target: String,
    file: String,
    line: u64,
}

impl Origin {
    pub(super) fn of(event: &Event<'_>) -> Self {
        let metadata = event.metadata();
        let mut origin = Self {
            metadata,
            record: None,
        };
        if metadata.target() == "log" && metadata.fields().field("log.target").is_some() {
            event.record(origin.record.insert(Record::default()));
        }
        origin
    }

    /// The module it names.
    pub(super) fn target(&self) -> &str {
        self.record
            .as_ref()
            .map_or(self.metadata.target(), |record| &record.target)
    }

    fn key(&self) -> u64 {
        let hash = BuildHasherDefault::<DefaultHasher>::default();
        let key = match &self.record {
            None => hash.hash_one(self.metadata.callsite()),
            Some(record) => hash.hash_one(record),
        };
        // 0 stands for a free entry.
        key.max(1)
    }

    fn name(&self) -> String {
        let target = self.target();
        let (file, line) = self.record.as_ref().map_or_else(
            || {
                let line = self.metadata.line().unwrap_or_default();
                (self.metadata.file().unwrap_or_default(), u64::from(line))
            },
            |record| (record.file.as_str(), record.line),
        );
        // The name of the file alone: the path is one of the machine that built this.
        let file = file.rsplit('/').next().unwrap_or_default();
        format!("{target} {file}:{line}")
    }
}

impl Visit for Record {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "log.target" => self.target.push_str(value),
            "log.file" => self.file.push_str(value),
            _ => {}
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "log.line" {
            self.line = value;
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}
