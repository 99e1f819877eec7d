//! A text of records that is loaded whole: the first data of a journal, or the checkpoint of another server.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use numbers::csv::{Entry, ImportError, Mistake, entries};
use numbers::{DestinationSet, Error, SetError, Writer};

use super::names::Names;
use crate::record::Head;
use crate::subject::Subject;

/// Bytes of the beginning of a text in which `#journal` and `#offset` stand.
const BEGINNING: u64 = 1_024;
/// The offset that a text may have at most: transactions behind it have offsets as well.
const MOST_OFFSET: u64 = 1 << 62;
/// Between two lines in the log, in lines of the text.
const REPORT: u64 = 10_000_000;

/// What a text says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The journal that it is a state of.
    pub(crate) journal: Option<String>,
    /// The offset of the state.
    pub(crate) offset: Option<u64>,
}

impl Origin {
    /// Reads the comments at the beginning of a text.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let mut origin = Self::default();
        let beginning = BufReader::new(File::open(path)?.take(BEGINNING));
        for line in beginning.split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            if !line.starts_with('#') {
                break;
            }
            if let Some(id) = line.strip_prefix("#journal,") {
                origin.journal = Some(id.trim_end().to_owned());
            }
            if let Some(offset) = line.strip_prefix("#offset,") {
                origin.offset = Some(offset_of(offset.trim_end())?);
            }
        }
        Ok(origin)
    }

    /// Why this journal does not lead on from the text; none: it does.
    pub(super) fn unfit(&self, journal: &Head) -> Option<String> {
        let Head {
            id,
            offset: last,
            first,
        } = journal;
        if self.journal.as_ref() != Some(id) {
            return Some(format!(
                "the store has journal {id}, and this is not a checkpoint of it (#journal,{id}); nothing was replaced. \
                 Send the records to /records, or use a checkpoint of a server with this journal"
            ));
        }
        let offset = self.offset?;
        if offset > *last {
            return Some(format!(
                "a checkpoint of offset {offset}, and the journal of the store ends with transaction {last}; nothing was \
                 replaced. Expected offset {} to {last}: use an older one, or wait until the store has the transactions",
                first.saturating_sub(1)
            ));
        }
        (offset.saturating_add(1) < *first).then(|| {
            format!(
                "a checkpoint of offset {offset}, and the journal of the store begins with transaction {first}; nothing \
                 was replaced. Use a newer one"
            )
        })
    }
}

fn offset_of(text: &str) -> io::Result<u64> {
    let offset = text.parse().ok().filter(|offset| *offset <= MOST_OFFSET);
    offset.ok_or_else(|| {
        io::Error::other(format!(
            "#offset,{text}: expected an offset of 0 to {MOST_OFFSET}"
        ))
    })
}

/// Loads a text: its numbers into a file at `numbers`, which is a state up to `offset`; returns its names.
///
/// # Errors
/// Names the first line that is wrong; the file is as it was.
pub(super) fn load(text: &Path, numbers: &Path, offset: u64) -> Result<Names, ImportError> {
    let mut input = BufReader::with_capacity(1 << 20, File::open(text).map_err(ImportError::Read)?);
    let mut writer = Writer::create(numbers)?;
    let names = read(&mut input, Some(&mut writer))?;
    writer.finish_at(offset)?;
    Ok(names)
}

/// Reads a text of names alone.
pub(super) fn names(text: &Path) -> Result<Names, ImportError> {
    read(
        &mut BufReader::new(File::open(text).map_err(ImportError::Read)?),
        None,
    )
}

fn read(input: &mut impl io::BufRead, mut writer: Option<&mut Writer>) -> Result<Names, ImportError> {
    let mut names = Names::default();
    entries(
        input,
        |line,
         Entry {
             kind,
             value,
             destinations,
         }| {
            if line % REPORT == 0 {
                tracing::info!(lines = line, "loading records");
            }
            let subject = Subject::parse(kind, value).map_err(|error| Mistake::at(line, error))?;
            let set = DestinationSet::parse(destinations).map_err(|error| Mistake::at(line, error))?;
            match (subject, &mut writer) {
                (Subject::Name(name), _) => {
                    if names.find(&name).is_some() {
                        return Err(Mistake::at(line, format!("{name} is there twice")));
                    }
                    let full = |error: SetError| Mistake::at(line, error);
                    names.change(&name, Some(&set)).map_err(full)
                }
                (Subject::Number(key), Some(writer)) => {
                    let pushed = writer.intern(&set).and_then(|id| writer.push(key, id));
                    pushed.map_err(|error| match error {
                        Error::Io { .. } | Error::Busy(_) => ImportError::Write(error),
                        other => Mistake::at(line, other),
                    })
                }
                (Subject::Number(_), None) => Err(Mistake::at(line, "a number among names")),
            }
        },
    )?;
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_fits_the_journal_that_leads_on_from_it() {
        let journal = Head {
            id: "j1".to_owned(),
            offset: 20,
            first: 8,
        };
        let unfit = |id: Option<&str>, offset| {
            let id = id.map(str::to_owned);
            let origin = Origin { journal: id, offset };
            origin.unfit(&journal)
        };
        assert_eq!(unfit(Some("j1"), Some(7)), None);
        assert!(unfit(Some("j1"), Some(6)).is_some_and(|why| why.contains("begins with transaction 8")));
        assert_eq!(unfit(Some("j1"), Some(20)), None);
        assert!(unfit(Some("j1"), Some(21)).is_some_and(|why| why.contains("Expected offset 7 to 20")));
        assert!(unfit(Some("j2"), Some(7)).is_some_and(|why| why.contains("the store has journal j1")));
        assert!(unfit(None, None).is_some_and(|why| why.contains("/records")));
    }
}
