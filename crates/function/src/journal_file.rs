//! The journal of a function in its data directory, so that a restart continues it.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use telemetry::journal::Entry;
use telemetry::{AlarmKind, Alarms, Severity};

use crate::generations::Generations;
use crate::journal::{ENDING, Journal, JournalFiles};

/// Every alarm about the journal.
pub const ALARMS: &[AlarmKind] = &[UNWRITTEN];

/// The number is ours.
const UNWRITTEN: AlarmKind = AlarmKind {
    number: 10527,
    name: "Journal Not Written",
    severity: Severity::Minor,
    text: "The journal of changes cannot be written to the data directory: entries from now on end with the process.",
    advice: "Make room in the directory that the function keeps its data in, or correct its permissions; writing resumes within a minute.",
};

/// Files of a journal: the one that is written, and the one before.
const FILES: usize = 2;
/// Bytes of each; about 5,000 entries.
const FILE_BYTES: u64 = 1 << 20;
/// Entries that wait for the disk.
const QUEUE: usize = 1_024;

/// Continues the journal of `alarms` from the files `NAME.jsonl` in this directory, and keeps it there until the returned
/// files are dropped.
///
/// # Errors
/// When the thread that writes cannot be started.
pub fn keep(alarms: &Alarms, directory: &Path, name: &'static str) -> std::io::Result<Arc<Journal>> {
    let generations = generations(directory, name);
    alarms.journal().recover(text(&generations).lines());
    let files = JournalFiles {
        directory: directory.to_owned(),
        name,
        files: FILES,
        continues: true,
        file_bytes: FILE_BYTES,
        queue: QUEUE,
        queue_bytes: FILE_BYTES as usize,
    };
    let files = Arc::new(Journal::start(files, alarms.clone(), &UNWRITTEN)?);
    let weak = Arc::downgrade(&files);
    alarms.journal().keep_in(Box::new(move |line| {
        if let Some(files) = weak.upgrade() {
            files.push(line.into());
        }
    }));
    Ok(files)
}

/// The entries that a function has kept in this directory, for those who ask while it does not run.
#[must_use]
pub fn read(directory: &Path, name: &str) -> Vec<Entry> {
    let journal = telemetry::Journal::new();
    journal.recover(text(&generations(directory, name)).lines());
    journal.after(0)
}

fn generations<'a>(directory: &'a Path, name: &'a str) -> Generations<'a> {
    Generations {
        directory,
        name,
        endings: ENDING,
        files: FILES,
    }
}

/// What the files have, the oldest first.
fn text(generations: &Generations<'_>) -> String {
    let each = (0..FILES).rev().map(|generation| {
        let path = generations.path(generation, ENDING[0]);
        // A line that was not written whole takes none of the next file with it.
        end_of(&path).unwrap_or_default() + "\n"
    });
    each.collect()
}

/// What a file ends with, within its bound: another program may have made it larger.
fn end_of(path: &Path) -> std::io::Result<String> {
    // The opening of a pipe would wait for a writer.
    let length = std::fs::metadata(path)?;
    if !length.is_file() {
        return Err(std::io::Error::other("no regular file"));
    }
    let length = length.len();
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(length.saturating_sub(FILE_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use telemetry::Registry;
    use telemetry::journal::Kind;

    use super::*;

    #[test]
    fn a_restart_continues_the_journal() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("nrf");
        for start in 1..=3 {
            let alarms = Alarms::new(&Registry::new());
            let files = keep(&alarms, &directory, "nrf-journal").unwrap();
            alarms
                .journal()
                .record(Kind::Started, "nrf", &format!("start {start}"));
            let all = alarms.journal().after(0);
            let numbers: Vec<u64> = all.iter().map(|one| one.sequence).collect();
            assert_eq!(numbers, (1..=start).collect::<Vec<_>>());
            assert_eq!(all[0].detail, "start 1");
            assert!(alarms.active().is_empty());
            // What follows the end is not kept.
            drop(files);
            alarms.journal().record(Kind::Stopped, "nrf", "");
            let text = std::fs::read_to_string(directory.join("nrf-journal.jsonl")).unwrap();
            assert_eq!(text.lines().count() as u64, start);
        }
    }

    #[test]
    fn a_directory_that_cannot_be_written_costs_the_files_alone() {
        let folder = tempfile::tempdir().unwrap();
        let obstacle = folder.path().join("file");
        std::fs::write(&obstacle, "").unwrap();
        let alarms = Alarms::new(&Registry::new());
        let files = keep(&alarms, &obstacle.join("nrf"), "nrf-journal").unwrap();
        alarms.journal().record(Kind::Started, "nrf", "");
        drop(files);
        assert_eq!(alarms.active()[0].number, 10527);
        assert_eq!(alarms.journal().after(0).len(), 2, "the start, and the alarm");
    }

    #[test]
    fn a_line_that_was_not_written_whole_costs_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let alarms = Alarms::new(&Registry::new());
        let files = keep(&alarms, folder.path(), "nrf-journal").unwrap();
        alarms.journal().record(Kind::Started, "nrf", "whole");
        drop(files);
        std::fs::write(folder.path().join("nrf-journal.1.jsonl"), "{\"sequence\":9,\"ti").unwrap();
        let entries = read(folder.path(), "nrf-journal");
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].detail, "whole");
    }
}
