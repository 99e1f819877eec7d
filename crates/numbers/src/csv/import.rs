//! From text to a file of numbers.

use std::collections::HashMap;
use std::io::{self, BufRead};
use std::path::Path;

use super::entries::entries;
use super::error::{ImportError, Mistake};
use crate::error::Error;
use crate::file::{Writer, Written};
use crate::key::{Key, Kind};
use crate::sets::{DestinationSet, SetId};
use crate::sorter::Sorter;

/// Texts of destinations that are cached: enough for those of a network, and a bound for a file in which each is different.
const CACHED_TEXTS: usize = 100_000;
/// Lines between two calls of `progress`.
const STEP: u64 = 1 << 16;

/// How a file is imported.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Sort the numbers, which may come in any order. Otherwise they must ascend by kind, number of digits, number.
    pub sort: bool,
    /// Bytes of memory for sorting; what does not fit is spilled beside the new file.
    pub sort_memory: usize,
}

/// How far an import is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Lines that were read.
    Read(u64),
    /// Numbers that were merged behind the last line, when they are sorted.
    Merged {
        /// So far.
        numbers: u64,
        /// Of all.
        of: u64,
    },
}

/// Imports lines into a new file of numbers at `path`, which replaces one that is there when all is well. `progress` is
/// called now and then, and ends the import when it returns an error.
///
/// # Errors
/// Names the first line that is wrong, with the reason; nothing has changed then.
pub fn import(
    mut input: impl BufRead,
    path: &Path,
    options: Options,
    mut progress: impl FnMut(Progress) -> io::Result<()>,
) -> Result<Written, ImportError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut target = Target {
        writer: Writer::create(path)?,
        sorter: options.sort.then(|| Sorter::new(folder, options.sort_memory)),
        texts: HashMap::new(),
    };
    let of = read(&mut input, &mut target, &mut progress)?;
    target.finish(of, &mut progress)
}

/// Reads all lines; returns the count of numbers.
fn read(
    input: &mut impl BufRead,
    target: &mut Target,
    progress: &mut impl FnMut(Progress) -> io::Result<()>,
) -> Result<u64, ImportError> {
    let (lines, count) = entries(input, |line, entry| {
        let kind = entry.kind.parse::<Kind>();
        let key = kind.and_then(|kind| Key::new(kind, entry.value.as_bytes()));
        let key = key.map_err(|error| Mistake::at(line, error))?;
        target.push(key, entry.destinations, line)?;
        if line % STEP == 0 {
            progress(Progress::Read(line)).map_err(ImportError::Read)?;
        }
        Ok(())
    })?;
    progress(Progress::Read(lines)).map_err(ImportError::Read)?;
    Ok(count)
}

/// Where numbers go.
struct Target {
    writer: Writer,
    sorter: Option<Sorter>,
    texts: HashMap<Box<str>, SetId>,
}

impl Target {
    fn push(&mut self, key: Key, destinations: &str, line: u64) -> Result<(), ImportError> {
        let set = match self.texts.get(destinations) {
            Some(set) => *set,
            None => self.intern(destinations, line)?,
        };
        match &mut self.sorter {
            Some(sorter) => Ok(sorter.push((key, set, line))?),
            None => self.writer.push(key, set).map_err(|error| match error {
                Error::Order { .. } => Mistake::at(line, format!("{error}; --sort takes any order")),
                Error::Twice(_) => Mistake::at(line, error),
                other => ImportError::Write(other),
            }),
        }
    }

    fn intern(&mut self, destinations: &str, line: u64) -> Result<SetId, ImportError> {
        let set = DestinationSet::parse(destinations).map_err(|error| Mistake::at(line, error))?;
        let id = self
            .writer
            .intern(&set)
            .map_err(|error| Mistake::at(line, error))?;
        if self.texts.len() == CACHED_TEXTS {
            self.texts.clear();
        }
        self.texts.insert(destinations.into(), id);
        Ok(id)
    }

    fn finish(
        self,
        of: u64,
        progress: &mut impl FnMut(Progress) -> io::Result<()>,
    ) -> Result<Written, ImportError> {
        let mut writer = self.writer;
        if let Some(sorter) = self.sorter {
            let mut before: Option<(Key, u64)> = None;
            let mut numbers = 0;
            sorter.finish(|(key, set, line)| {
                if let Some((_, first)) = before.filter(|(before, _)| *before == key) {
                    return Err(ImportError::Twice { key, line, first });
                }
                before = Some((key, line));
                numbers += 1;
                if numbers % STEP == 0 {
                    progress(Progress::Merged { numbers, of }).map_err(ImportError::Read)?;
                }
                Ok(writer.push(key, set)?)
            })?;
        }
        Ok(writer.finish()?)
    }
}
