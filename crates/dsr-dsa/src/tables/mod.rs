//! The tables of an operator, compiled into what a message is compared with.
//!
//! | file | what is there |
//! |---|---|
//! | `checks` | which measures are on, for whom, and what they do |
//! | `partners` | foreign peers and realms |
//! | `subscribers` | networks of subscribers |
//! | `commands` | applications and commands |
//! | `avps` | AVPs by application, command and kind of message |
//! | `distance` | times between countries |
//! | `exceptions` | what measures let pass |

mod avps;
mod checks;
mod commands;
mod distance;
mod exceptions;
mod partners;
mod subscribers;

use std::path::Path;

use dsr_app::Table;

use crate::csv::{self, Row, Sheet};
use crate::measure::Measure;

pub(crate) use avps::{Program, is_identity};
pub(crate) use checks::{Check, Mode};
pub(crate) use distance::Distances;
pub(crate) use partners::{Direction, UNLISTED};

use avps::Avps;
use checks::Checks;
use commands::Commands;
use exceptions::Exceptions;
use partners::Partners;
use subscribers::Subscribers;

/// Mistakes that are named at once.
const MAX_MISTAKES: usize = 20;

/// Everything that a message is compared with.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) checks: Checks,
    pub(crate) partners: Partners,
    pub(crate) subscribers: Subscribers,
    pub(crate) commands: Commands,
    pub(crate) avps: Avps,
    pub(crate) distances: Distances,
    pub(crate) exceptions: Exceptions,
    counts: Vec<Table>,
}

impl Tables {
    /// Reads the tables of a directory.
    ///
    /// # Errors
    /// Each mistake, with file, line and reason: also rows that can never match.
    pub(crate) fn load(directory: &Path) -> Result<Self, String> {
        let mut reading = Reading {
            directory,
            mistakes: Vec::new(),
            counts: Vec::new(),
        };
        if !directory.is_dir() {
            return Err(format!("{}: is not a directory", directory.display()));
        }
        let partners = Partners::load(&mut reading);
        let checks = Checks::load(&mut reading, &partners);
        let subscribers = Subscribers::load(&mut reading);
        let commands = Commands::load(&mut reading);
        let blocked = |application: u32, command: u32| checks.blocks(&commands, application, command);
        let avps = Avps::load(&mut reading, &blocked);
        let distances = Distances::load(&mut reading);
        let exceptions = Exceptions::load(&mut reading, &checks);
        needs(&mut reading, &checks);
        unknown(&mut reading);
        if reading.mistakes.is_empty() {
            return Ok(Self {
                checks,
                partners,
                subscribers,
                commands,
                avps,
                distances,
                exceptions,
                counts: reading.counts,
            });
        }
        let more = reading.mistakes.len().saturating_sub(MAX_MISTAKES);
        reading.mistakes.truncate(MAX_MISTAKES);
        if more > 0 {
            reading.mistakes.push(format!("and {more} more"));
        }
        let mistakes = reading.mistakes.join("; ");
        Err(format!("{}: {mistakes}", directory.display()))
    }

    /// Whether a measure is on.
    pub(crate) fn has_measures(&self) -> bool {
        self.checks.iter().next().is_some()
    }

    /// Names and numbers of rows.
    pub(crate) fn counts(&self) -> &[Table] {
        &self.counts
    }
}

/// Tables that measures which are on cannot do without.
fn needs(reading: &mut Reading<'_>, checks: &Checks) {
    for check in checks.iter() {
        let Some(table) = check.measure.table() else {
            continue;
        };
        if reading
            .counts
            .iter()
            .all(|count| count.name != table || count.entries == 0)
        {
            let measure = check.measure.as_str();
            reading.say(
                "Security_Countermeasure_Config",
                check.line,
                format!(
                    "{measure} is on, but {table} has no rows: it would find fault with everything or nothing"
                ),
            );
        }
    }
}

/// Files that no table has its name from: a measure would be without what an operator has written.
fn unknown(reading: &mut Reading<'_>) {
    let Ok(entries) = std::fs::read_dir(reading.directory) else {
        return;
    };
    for entry in entries.map_while(Result::ok) {
        let file = entry.file_name();
        let file = file.to_string_lossy();
        // Editors and packages leave hidden files.
        let name = match file.rsplit_once('.') {
            Some((name, end)) if end.eq_ignore_ascii_case("csv") && !name.is_empty() => name,
            _ => continue,
        };
        if name.starts_with('.')
            || (file.ends_with(".csv") && reading.counts.iter().any(|count| count.name == name))
        {
            continue;
        }
        let nearest = reading
            .counts
            .iter()
            .min_by_key(|count| distance(count.name, name));
        let nearest = nearest.map_or("", |count| count.name);
        let mistake = format!("{file}: is the name of no table; did you mean {nearest}.csv?");
        reading.mistakes.push(mistake);
    }
}

/// How many letters of one name have to change for the other (Levenshtein), whatever their case.
fn distance(one: &str, other: &str) -> usize {
    let other = other.to_ascii_lowercase();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.to_ascii_lowercase().bytes().enumerate() {
        let mut before = at;
        let mut last = at + 1;
        for (cell, wanted) in row.iter_mut().skip(1).zip(other.bytes()) {
            let kept = before + usize::from(letter != wanted);
            before = *cell;
            last = kept.min(before + 1).min(last + 1);
            *cell = last;
        }
        if let Some(first) = row.first_mut() {
            *first = at + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

/// The reading of a directory.
pub(crate) struct Reading<'d> {
    directory: &'d Path,
    mistakes: Vec<String>,
    counts: Vec<Table>,
}

impl Reading<'_> {
    fn sheet(&mut self, name: &'static str, columns: &[&str], required: usize) -> Sheet {
        let sheet = csv::read(self.directory, name, columns, required, &mut self.mistakes);
        let (entries, bytes) = (sheet.rows.len(), 0);
        self.counts.push(Table { name, entries, bytes });
        sheet
    }

    fn say(&mut self, table: &str, line: usize, mistake: impl AsRef<str>) {
        self.mistakes
            .push(format!("{table}.csv:{line}: {}", mistake.as_ref()));
    }

    /// Reads each row; what is wrong with one does not keep the others from being read.
    fn each(&mut self, sheet: &Sheet, mut read: impl FnMut(&Row) -> Result<(), String>) {
        for row in &sheet.rows {
            if let Err(mistake) = read(row) {
                self.say(sheet.name, row.line, mistake);
            }
        }
    }
}

/// A number of a field.
fn number<N: std::str::FromStr>(row: &Row, column: usize, what: &str) -> Result<N, String> {
    let text = row.field(column);
    text.parse().map_err(|_| format!("`{text}` is not {what}"))
}

/// A mobile country code that is assigned.
fn country(text: &str) -> Result<u16, String> {
    let code = text.parse().ok().filter(|_| text.len() == 3);
    code.filter(|code| crate::world::is_assigned(*code))
        .ok_or_else(|| format!("`{text}` is not an assigned MCC: the row can never match"))
}

/// A network of an assigned country.
fn network(text: &str) -> Result<crate::network::Network, String> {
    let network = crate::network::Network::parse(text)
        .ok_or_else(|| format!("`{text}` is not MCC and MNC; use 5 or 6 digits"))?;
    country(&text[..3])?;
    Ok(network)
}

/// The measures of a field: names, or `*`.
fn measures(row: &Row, column: usize) -> Result<Vec<Measure>, String> {
    if row.field(column) == "*" {
        return Ok(Measure::ALL.to_vec());
    }
    let named = row
        .list(column)
        .map(|name| Measure::from_name(name).ok_or_else(|| format!("unknown measure `{name}`")));
    let named: Vec<_> = named.collect::<Result<_, _>>()?;
    if named.is_empty() {
        return Err("names no measure; use names with semicolons between, or *".to_owned());
    }
    Ok(named)
}
