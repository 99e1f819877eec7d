//! The journal of a function in its data directory, so that a restart continues it.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use telemetry::journal::Entry;
use telemetry::{AlarmKind, Alarms, Severity};

use crate::generations::Generations;
use crate::journal::{ENDING, Journal, JournalFiles};

/// Every alarm about the journal.
pub const ALARMS: &[AlarmKind] = &[UNWRITTEN, UNREAD];

/// The number is ours.
const UNWRITTEN: AlarmKind = AlarmKind {
    number: 10527,
    name: "Journal Not Written",
    severity: Severity::Minor,
    text: "The journal of changes cannot be written to the data directory: entries from now on end with the process.",
    advice: "Make room in the directory that the function keeps its data in, or correct its permissions; writing resumes within a minute.",
};

/// The number is ours.
const UNREAD: AlarmKind = AlarmKind {
    number: 10528,
    name: "Journal Not Read",
    severity: Severity::Minor,
    text: "A file of the journal of changes, or lines of it, could not be read at the start: what it has is not shown. New entries are written.",
    advice: "Correct the permissions of the file that the detail names, or move it away; the alarm clears with the next start that reads all of it.",
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
    let faults = recover(alarms.journal(), &generations);
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
    // After the sink: the journal has it as well.
    for fault in &faults {
        tracing::warn!(
            journal = name,
            reason = fault,
            "journal cannot be read whole; new entries are written"
        );
    }
    if !faults.is_empty() {
        alarms.raise(&UNREAD, name, faults.join("; "));
    }
    Ok(files)
}

/// The entries that a function has kept in this directory, for those who ask while it does not run, and what of its files
/// cannot be read.
#[must_use]
pub fn read(directory: &Path, name: &str) -> (Vec<Entry>, Vec<String>) {
    let journal = telemetry::Journal::new();
    let faults = recover(&journal, &generations(directory, name));
    (journal.after(0), faults)
}

fn generations<'a>(directory: &'a Path, name: &'a str) -> Generations<'a> {
    Generations {
        directory,
        name,
        endings: ENDING,
        files: FILES,
    }
}

/// Gives a journal what the files have, the oldest first. Returns what of them cannot be read, by file.
fn recover(journal: &telemetry::Journal, generations: &Generations<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    for generation in (0..FILES).rev() {
        let path = generations.path(generation, ENDING[0]);
        match end_of(&path) {
            Ok(text) => {
                let strange = journal.recover(text.lines());
                if strange > 0 {
                    faults.push(format!("{}: {strange} lines are not entries", path.display()));
                }
            }
            // Before the first change, and before the first file was full. Where there can be none, the writer says so.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => faults.push(format!("{}: {error}", path.display())),
        }
    }
    faults
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
    let text = String::from_utf8_lossy(&bytes);
    // The first line begins before the bound, and the last one was being written when the process died.
    let text = match length > FILE_BYTES {
        true => text.split_once('\n').map_or("", |(_, whole)| whole),
        false => &text,
    };
    let is_cut = |line: &&str| serde_json::from_str::<Entry>(line).is_err();
    let (whole, last) = text.rsplit_once('\n').unwrap_or(("", text));
    Ok(if is_cut(&last) { whole } else { text }.to_owned())
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
        let (entries, faults) = read(folder.path(), "nrf-journal");
        assert_eq!((entries.len(), faults.len()), (1, 0));
        assert_eq!(entries[0].detail, "whole");
    }

    /// A process that died while it wrote has left a part of a line, which must not take the next entry with it.
    #[test]
    fn a_cut_line_is_not_continued_and_is_no_fault() {
        let folder = tempfile::tempdir().unwrap();
        let cut = "{\"sequence\":9,\"ti";
        std::fs::write(folder.path().join("nrf-journal.jsonl"), cut).unwrap();
        for starts in 1..=2 {
            let alarms = Alarms::new(&Registry::new());
            let files = keep(&alarms, folder.path(), "nrf-journal").unwrap();
            alarms.journal().record(Kind::Started, "nrf", "");
            drop(files);
            assert!(alarms.active().is_empty());
            let (entries, faults) = read(folder.path(), "nrf-journal");
            assert_eq!((entries.len(), faults), (starts, Vec::new()));
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let begin = || {
            let alarms = Alarms::new(&Registry::new());
            drop(keep(&alarms, folder.path(), "nrf-journal").unwrap());
            alarms.active()
        };
        assert!(begin().is_empty(), "there is no file yet");
        // Permissions keep no file from root, who may run this; a circle of links does.
        for name in ["circle", "nrf-journal.jsonl", "nrf-journal.1.jsonl"] {
            std::os::unix::fs::symlink(path("circle"), path(name)).unwrap();
        }
        let active = begin();
        assert_eq!((active.len(), active[0].number), (1, 10528), "{active:?}");
        for name in ["nrf-journal.jsonl: ", "nrf-journal.1.jsonl: "] {
            assert!(active[0].detail.contains(name), "{}", active[0].detail);
        }
        let (entries, faults) = read(folder.path(), "nrf-journal");
        // The alarm went to a new file; what was in the way is the one before.
        assert_eq!((entries.len(), faults.len()), (1, 1), "{faults:?}");
        std::fs::remove_file(path("nrf-journal.1.jsonl")).unwrap();
        std::fs::create_dir(path("nrf-journal.1.jsonl")).unwrap();
        let active = begin();
        assert!(
            active[0].detail.contains("1.jsonl: no regular file"),
            "{}",
            active[0].detail
        );
        std::fs::remove_dir(path("nrf-journal.1.jsonl")).unwrap();
        assert!(begin().is_empty(), "repaired");
        // Not written by this program.
        std::fs::write(path("nrf-journal.1.jsonl"), b"\xff\x00\nrubbish\n{}\n[]\n").unwrap();
        let active = begin();
        assert!(
            active[0].detail.contains("nrf-journal.1.jsonl: 4 lines"),
            "{}",
            active[0].detail
        );
    }
}
