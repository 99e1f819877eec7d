//! Numbers and names with their destinations.

mod names;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::{ArcSwapOption, Guard};
use numbers::{Change, DestinationSet, Load, Map};
use settings::Faults;

use crate::config::Config;

pub(crate) use names::NameTable;

/// What is known of subscribers. Changes are seen by all workers at once.
#[derive(Debug)]
pub struct Data {
    pub(crate) map: Map,
    pub(crate) names: NameTable,
    /// Of a process before, and no server has been asked yet what has changed since.
    is_old: AtomicBool,
}

/// A change of one name; none: it is unknown from now on.
pub(crate) type NameChange = (Box<str>, Option<Arc<DestinationSet>>);

/// The data that are in effect; none: they are not loaded yet.
#[derive(Debug, Default)]
pub struct Holder(ArcSwapOption<Data>);

impl Holder {
    pub(crate) fn load(&self) -> Guard<Option<Arc<Data>>> {
        self.0.load()
    }

    pub(crate) fn store(&self, data: Arc<Data>) {
        self.0.store(Some(data));
    }
}

/// Judges the files of a configuration.
pub fn check_files(config: &Config, faults: &mut Faults) {
    if let Err(wrong) = Data::open(config.numbers.as_deref(), None, 0) {
        faults
            .at("dp.numbers")
            .say(wrong, "a file of `signalbox numbers import`");
    }
    if let Err(wrong) = Data::open(None, config.names.as_deref(), config.max_names) {
        faults
            .at("dp.names")
            .say(wrong, "a text of names without mistakes");
    }
}

impl Data {
    /// Reads the files of a configuration; none: it names no file.
    ///
    /// # Errors
    /// When one cannot be used, with the line where there is one.
    pub(crate) fn of_files(config: &Config) -> Result<Option<Self>, String> {
        if config.numbers.is_none() && config.names.is_none() {
            return Ok(None);
        }
        Self::open(
            config.numbers.as_deref(),
            config.names.as_deref(),
            config.max_names,
        )
        .map(Some)
    }

    /// Opens a file of numbers, and reads a text of names.
    ///
    /// # Errors
    /// When one cannot be used, with the line where there is one.
    pub(crate) fn open(numbers: Option<&Path>, names: Option<&Path>, most: usize) -> Result<Self, String> {
        Self::with(numbers, names.map(|path| (path, NameTable::open(path, most))))
    }

    /// Opens files that the processor has written.
    ///
    /// # Errors
    /// When one cannot be used.
    pub(crate) fn kept(numbers: Option<&Path>, names: Option<&Path>, most: usize) -> Result<Self, String> {
        Self::with(numbers, names.map(|path| (path, NameTable::kept(path, most))))
    }

    fn with(
        numbers: Option<&Path>,
        names: Option<(&Path, Result<NameTable, String>)>,
    ) -> Result<Self, String> {
        let map = match numbers {
            Some(path) => {
                let map = Map::open(path, None, Load::Mapped).map_err(|error| error.to_string())?;
                for warning in map.warnings() {
                    tracing::warn!(file = %path.display(), %warning, "file of numbers is damaged");
                }
                map
            }
            None => Map::empty(),
        };
        let names = names.map(|(path, table)| table.map_err(|wrong| format!("{}: {wrong}", path.display())));
        let names = names.transpose()?.unwrap_or_default();
        Ok(Self {
            map,
            names,
            is_old: AtomicBool::new(false),
        })
    }

    /// Whether changes may be missing that a server has: what is unknown here may be known there.
    pub(crate) fn is_old(&self) -> bool {
        self.is_old.load(Ordering::Relaxed)
    }

    pub(crate) fn set_old(&self, is_old: bool) {
        self.is_old.store(is_old, Ordering::Relaxed);
    }

    /// Changes numbers and names; the changes end at this offset of a journal.
    ///
    /// # Errors
    /// When a number cannot be changed, or there would be more than `most` names; nothing has changed then. The
    /// same where an entry is damaged.
    pub(crate) fn change(
        &self,
        numbers: &[Change],
        names: Vec<NameChange>,
        offset: u64,
        most: usize,
    ) -> Result<(), String> {
        let damaged = |damaged: numbers::DamagedNames| damaged.to_string();
        if !self.names.admits(&names, most).map_err(damaged)? {
            return Err(format!("more than maxNames ({most}) names"));
        }
        self.map
            .replay(numbers, offset)
            .map_err(|error| error.to_string())?;
        self.names.change(names).map_err(damaged)
    }
}
