//! Subscribers of a text: numbers, names and ranges, each with the position of its destinations.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use ahash::AHashMap;
use numbers::csv::{Entry, ImportError, Mistake, entries};
use numbers::{DestinationSet, Key, Kind, Names, NamesBuilder};

use super::ranges::Ranges;
use super::targets::{ByName, Targets};
use crate::address::Address;
use crate::config::Entity;

/// Names have a table for each entity; two of the tables stay empty, since numbers have one of their own.
const ENTITIES: usize = Entity::ALL.len();

/// What a text lists.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    targets: Vec<Targets>,
    numbers: Vec<Key>,
    /// Of the numbers, in their order.
    values: Vec<u16>,
    names: [Names; ENTITIES],
    ranges: Ranges,
}

impl Listed {
    /// Reads a file of at most `most` entries.
    ///
    /// # Errors
    /// Names the first line that is wrong.
    pub(crate) fn open(path: &Path, most: usize, by_name: &ByName) -> Result<Self, String> {
        dsr_app::appended::refuse_other(path)?;
        let file = File::open(path).map_err(|error| error.to_string())?;
        Self::read(&mut BufReader::with_capacity(1 << 20, file), most, by_name)
            .map_err(|error| error.to_string())
    }

    fn read(input: &mut impl BufRead, most: usize, by_name: &ByName) -> Result<Self, ImportError> {
        let mut collected = Collected {
            most,
            by_name,
            ..Collected::new(by_name)
        };
        entries(input, |line, entry| {
            collected
                .add(line, entry)
                .map_err(|wrong| Mistake::at(line, wrong))
        })?;
        collected.finish()
    }

    /// The destinations of an address, compared whole.
    pub(crate) fn exact(&self, address: &Address) -> Option<&Targets> {
        let value = match address {
            Address::Number(key) => {
                let at = self.numbers.binary_search(key).ok()?;
                *self.values.get(at)?
            }
            Address::Name(entity, name) => self.name(*entity, name)?,
        };
        self.targets.get(usize::from(value))
    }

    /// Those of a name.
    pub(crate) fn named(&self, entity: Entity, name: &str) -> Option<&Targets> {
        self.targets.get(usize::from(self.name(entity, name)?))
    }

    fn name(&self, entity: Entity, name: &str) -> Option<u16> {
        self.names.get(entity as usize)?.find(name.as_bytes())
    }

    /// The destinations of the range that holds a number, and how many digits the range has.
    pub(crate) fn range(&self, key: Key) -> Option<(&Targets, usize)> {
        let (value, count) = self.ranges.find(key)?;
        Some((self.targets.get(usize::from(value))?, count))
    }

    /// Name, entries and bytes of each table.
    pub(crate) fn tables(&self) -> [(&'static str, usize, usize); 3] {
        let each = size_of::<Key>() + size_of::<u16>();
        let names = self.names.iter().map(Names::len).sum();
        let bytes = self.names.iter().map(Names::bytes).sum();
        let (ranges, range_bytes) = self.ranges.size();
        [
            ("subscribers", self.numbers.len(), self.numbers.len() * each),
            ("names", names, bytes),
            ("ranges", ranges, range_bytes),
        ]
    }
}

/// Entries that are being read.
struct Collected<'n> {
    most: usize,
    count: usize,
    by_name: &'n ByName,
    targets: Vec<Targets>,
    /// Positions among `targets` by the text of destinations.
    texts: AHashMap<Box<str>, u16>,
    numbers: Vec<(Key, u16, u64)>,
    names: [NamesBuilder; ENTITIES],
    ranges: Ranges,
}

impl<'n> Collected<'n> {
    fn new(by_name: &'n ByName) -> Self {
        Self {
            most: 0,
            count: 0,
            by_name,
            targets: Vec::new(),
            texts: AHashMap::new(),
            numbers: Vec::new(),
            names: Default::default(),
            ranges: Ranges::default(),
        }
    }

    fn add(&mut self, line: u64, entry: Entry<'_>) -> Result<(), String> {
        self.count += 1;
        if self.count > self.most {
            return Err(format!(
                "more entries than maxEntries ({}) permits; raise it, or move numbers into the file of `numbers`",
                self.most
            ));
        }
        let entity = Entity::from_word(entry.kind)?;
        let value = self.value(entry.destinations)?;
        let kind = match entity {
            Entity::Imsi => Some(Kind::Imsi),
            Entity::Msisdn => Some(Kind::Msisdn),
            _ => None,
        };
        if let Some(kind) = kind
            && Ranges::is_range(entry.value)
        {
            return self.ranges.add(kind, entry.value, value, line);
        }
        match Address::parse(entity, entry.value)? {
            Address::Number(key) => self.numbers.push((key, value, line)),
            Address::Name(entity, name) => {
                if let Some(names) = self.names.get_mut(entity as usize) {
                    let added = names.add(name.as_bytes(), value, line);
                    added.map_err(|error| error.to_string())?;
                }
            }
        }
        Ok(())
    }

    /// The position of destinations, which are added when they are new.
    fn value(&mut self, text: &str) -> Result<u16, String> {
        if let Some(known) = self.texts.get(text) {
            return Ok(*known);
        }
        let set = DestinationSet::parse(text).map_err(|error| error.to_string())?;
        let targets = Targets::new(&set, self.by_name)?;
        let at = u16::try_from(self.targets.len())
            .map_err(|_| "more than 65,536 different texts of destinations".to_owned())?;
        self.targets.push(targets);
        self.texts.insert(text.into(), at);
        Ok(at)
    }

    fn finish(mut self) -> Result<Listed, ImportError> {
        self.numbers.sort_unstable_by_key(|(key, _, line)| (*key, *line));
        for pair in self.numbers.windows(2) {
            if let [(key, _, first), (other, _, line)] = pair
                && key == other
            {
                let wrong = format!("{key} is there twice; first on line {first}");
                return Err(Mistake::at(*line, wrong));
            }
        }
        self.ranges
            .sort()
            .map_err(|(line, other)| Mistake::at(line, format!("the range overlaps that of line {other}")))?;
        let mut names: [Names; ENTITIES] = Default::default();
        for (table, builder) in names.iter_mut().zip(self.names) {
            *table = builder.finish().map_err(|error| match error {
                numbers::NameError::Twice { line, .. } => Mistake::at(line, error),
                other => Mistake::at(0, other),
            })?;
        }
        Ok(Listed {
            targets: self.targets,
            values: self.numbers.iter().map(|(_, value, _)| *value).collect(),
            numbers: self.numbers.iter().map(|(key, _, _)| *key).collect(),
            names,
            ranges: self.ranges,
        })
    }
}
