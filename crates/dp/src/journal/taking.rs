//! All subscribers of a server, taken part by part.
//!
//! Each part is as of the moment of its request. The first one has the earliest offset: with the transactions behind it, which set and
//! remove whole records, all parts are as of one offset once that of the last part is reached.

use std::io::BufRead;

use ahash::AHashMap;
use numbers::csv::{self, Entry, ImportError, Mistake};
use numbers::{DestinationSet, Key, Kind, MOST_SETS, NameWriter, SetId, Writer};

/// Subscribers that were taken so far: numbers and names in files of their own, which do not count yet.
#[derive(Debug)]
pub(crate) struct Taking {
    numbers: Writer,
    names: NameWriter,
    max_names: usize,
    sets: AHashMap<Box<str>, SetId>,
    numbers_count: u64,
    /// Journal and offset of the first part.
    first: Option<(String, u64)>,
    /// Offset of the latest part.
    through: u64,
}

/// All subscribers, of which the files are whole.
pub(super) struct Taken {
    pub(super) journal: String,
    /// From which on the journal is needed.
    pub(super) offset: u64,
    pub(super) numbers: u64,
    pub(super) names: u64,
}

impl Taking {
    pub(super) fn new(numbers: Writer, names: NameWriter, max_names: usize) -> Self {
        Self {
            numbers,
            names,
            max_names,
            sets: AHashMap::new(),
            numbers_count: 0,
            first: None,
            through: 0,
        }
    }

    /// The offset from which on the subscribers are those of one moment.
    pub(super) const fn through(&self) -> u64 {
        self.through
    }

    /// Adds a part, which is as of an offset of a journal.
    ///
    /// # Errors
    /// When it does not belong to the first part; or names its first line that is wrong.
    pub(crate) fn add(&mut self, text: &mut impl BufRead, journal: &str, offset: u64) -> Result<(), String> {
        let (id, first) = self.first.get_or_insert_with(|| (journal.to_owned(), offset));
        if id != journal {
            return Err(format!("a part is of journal {journal}, the first one of {id}"));
        }
        if offset < *first {
            return Err(format!(
                "a part is as of offset {offset}, behind the first one of {first}"
            ));
        }
        self.through = self.through.max(offset);
        csv::entries(text, |line, entry| self.take(line, entry))
            .map(drop)
            .map_err(|error| error.to_string())
    }

    fn take(&mut self, line: u64, entry: Entry<'_>) -> Result<(), ImportError> {
        let wrong = |what: String| Mistake::at(line, what);
        let parsed = |text: &str| DestinationSet::parse(text).map_err(|error| wrong(error.to_string()));
        if entry.kind == "name" {
            let set = parsed(entry.destinations)?;
            if self.names.len() >= self.max_names as u64 {
                return Err(wrong(format!("more than maxNames ({}) names", self.max_names)));
            }
            let name = entry.value.to_ascii_lowercase();
            let pushed = self.names.push(name.as_bytes(), &set);
            return pushed.map_err(|error| wrong(error.to_string()));
        }
        let kind = entry.kind.parse::<Kind>();
        let key = kind.and_then(|kind| Key::new(kind, entry.value.as_bytes()));
        let key = key.map_err(|error| wrong(error.to_string()))?;
        let set = match self.sets.get(entry.destinations) {
            Some(set) => *set,
            None => {
                let set = self.numbers.intern(&parsed(entry.destinations)?);
                let set = set.map_err(|error| wrong(error.to_string()))?;
                // The same set may have several texts.
                if self.sets.len() == MOST_SETS {
                    self.sets.clear();
                }
                self.sets.insert(entry.destinations.into(), set);
                set
            }
        };
        self.numbers_count += 1;
        let pushed = self.numbers.push(key, set);
        pushed.map_err(|error| wrong(error.to_string()))
    }

    /// Ends the files.
    pub(super) fn finish(self) -> Result<Taken, String> {
        let (journal, offset) = self.first.ok_or("no part was taken")?;
        self.numbers.finish().map_err(|error| error.to_string())?;
        let names = self.names.finish().map_err(|error| error.to_string())?;
        Ok(Taken {
            journal,
            offset,
            numbers: self.numbers_count,
            names,
        })
    }
}
