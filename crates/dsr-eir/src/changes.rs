//! Entries that operators change one by one beside the traffic. They are kept in a file of their own, which is read after
//! the lists and goes before them: a change is acknowledged when it is on the disk.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ahash::AHashMap;
use arc_swap::ArcSwap;
use dsr_app::appended::{Appended, OpenOnce, has_room};
use smallvec::SmallVec;

use crate::{Status, digits, equipment};

/// Parts of the table; a change copies one of them, so that lookups need no lock.
const SHARDS: usize = 1024;

/// A change: a list, or none for an entry that is on no list any more.
pub(crate) type Listed = Option<Status>;

/// The changes of one IMEI.
#[derive(Clone, Debug, Default)]
struct Entry {
    alone: Option<Listed>,
    /// By IMSI.
    pairs: SmallVec<[(u64, Listed); 1]>,
}

/// The changes of a file, shared by all who have it open.
#[derive(Debug)]
pub(crate) struct Changes {
    entries: Entries,
    file: Appended,
}

#[derive(Debug)]
struct Entries {
    shards: Box<[ArcSwap<AHashMap<u64, Entry>>]>,
    count: AtomicUsize,
}

static OPEN: OpenOnce<Changes> = OpenOnce::new();

impl Changes {
    /// Opens the file of changes, and reads it unless it is open already.
    ///
    /// # Errors
    /// When it cannot be read and written, or has an invalid line.
    pub(crate) fn open(path: &Path) -> Result<Arc<Self>, String> {
        OPEN.get(path, || {
            let entries = Entries::default();
            let file = Appended::open(path, |line| {
                entries.apply(Change::parse(line)?);
                Ok(())
            })?;
            Ok(Self { entries, file })
        })
    }

    /// Makes a change durable, then effective; `most` IMEIs may have changes.
    ///
    /// # Errors
    /// When it cannot be written; it is not in effect then.
    pub(crate) fn make(&self, change: Change, most: usize) -> Result<(), String> {
        let mut file = self.file.lock();
        if self.entries.find(change.imei).is_none() {
            has_room(self.len(), most, "lists")?;
        }
        file.append(&change.line())?;
        self.entries.apply(change);
        Ok(())
    }

    /// The change of an IMEI alone, if it was changed.
    pub(crate) fn alone(&self, imei: u64) -> Option<Listed> {
        self.entries.find(imei)?.alone
    }

    /// The change of a pair.
    pub(crate) fn pair(&self, imei: u64, imsi: u64) -> Option<Listed> {
        let entry = self.entries.find(imei)?;
        let pair = entry.pairs.iter().find(|(known, _)| *known == imsi);
        pair.map(|(_, listed)| *listed)
    }

    /// Whether an IMEI was paired with any IMSI.
    pub(crate) fn has_pair(&self, imei: u64) -> bool {
        let entry = self.entries.find(imei);
        entry.is_some_and(|entry| entry.pairs.iter().any(|(_, listed)| listed.is_some()))
    }

    /// The number of IMEIs with changes.
    pub(crate) fn len(&self) -> usize {
        self.entries.count.load(Ordering::Relaxed)
    }
}

impl Default for Entries {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| ArcSwap::default()).collect(),
            count: AtomicUsize::new(0),
        }
    }
}

impl Entries {
    fn apply(&self, change: Change) {
        let shard = self.shard(change.imei);
        let mut entries = AHashMap::clone(&shard.load());
        let entry = entries.entry(change.imei).or_insert_with(|| {
            self.count.fetch_add(1, Ordering::Relaxed);
            Entry::default()
        });
        match change.imsi {
            None => entry.alone = Some(change.listed),
            Some(imsi) => {
                entry.pairs.retain(|(known, _)| *known != imsi);
                entry.pairs.push((imsi, change.listed));
            }
        }
        shard.store(Arc::new(entries));
    }

    fn shard(&self, imei: u64) -> &ArcSwap<AHashMap<u64, Entry>> {
        // Below SHARDS, which is how many there are. Serial numbers are the lowest digits.
        &self.shards[(imei % SHARDS as u64) as usize]
    }

    fn find(&self, imei: u64) -> Option<Entry> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.shard(imei).load().get(&imei).cloned()
    }
}

/// A change of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    imei: u64,
    /// As [`digits`] reads it.
    imsi: Option<u64>,
    listed: Listed,
    /// As it is written.
    subject: String,
}

impl Change {
    /// The change of `IMEI` or `IMEI-IMSI` to this list: white, grey, black, or none for no list.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn new(subject: &str, list: &str) -> Result<Self, String> {
        let (imei, imsi) = match subject.split_once('-') {
            Some((imei, imsi)) => (imei, Some(imsi)),
            None => (subject, None),
        };
        let number = equipment(imei.as_bytes());
        let number = number.ok_or_else(|| format!("`{imei}` is not an IMEI; use 14 to 16 digits"))?;
        let subscriber = imsi.map(|imsi| {
            let read = digits(imsi.as_bytes());
            read.ok_or_else(|| format!("`{imsi}` is not an IMSI; use up to 15 digits"))
        });
        let listed = match list {
            "white" => Some(Status::White),
            "grey" => Some(Status::Grey),
            "black" => Some(Status::Black),
            "none" => None,
            other => return Err(format!("`{other}` is not a list; use white, grey, black or none")),
        };
        Ok(Self {
            imei: number,
            imsi: subscriber.transpose()?,
            listed,
            subject: subject.to_owned(),
        })
    }

    fn parse(line: &str) -> Result<Self, String> {
        let (list, subject) = line
            .split_once(',')
            .ok_or("expected LIST,IMEI or LIST,IMEI-IMSI")?;
        Self::new(subject, list)
    }

    fn line(&self) -> String {
        let list = self.listed.map_or("none", Status::as_str);
        format!("{list},{}\n", self.subject)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write as _;

    use super::*;

    const IMEI: u64 = 35_209_900_176_148;

    #[test]
    fn changes_are_there_after_a_restart_and_a_torn_line_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("changes.csv");
        let changes = Changes::open(&path).unwrap();
        for (subject, list) in [
            ("35209900176148", "black"),
            ("352099001761481-001010000000001", "white"),
            ("35209900176149", "grey"),
            ("35209900176149", "none"),
        ] {
            changes.make(Change::new(subject, list).unwrap(), 2).unwrap();
        }
        let wrong = changes.make(Change::new("35209900176150", "grey").unwrap(), 2);
        assert!(wrong.unwrap_err().contains("maxChanges"));
        assert!(
            Arc::ptr_eq(&changes, &Changes::open(&path).unwrap()),
            "one for all"
        );
        let seen = |changes: &Changes| {
            let imsi = digits(b"001010000000001").unwrap();
            assert_eq!(changes.alone(IMEI), Some(Some(Status::Black)));
            assert_eq!(changes.pair(IMEI, imsi), Some(Some(Status::White)));
            assert!(changes.has_pair(IMEI) && !changes.has_pair(IMEI + 1));
            assert_eq!(changes.alone(IMEI + 1), Some(None));
            assert_eq!((changes.alone(IMEI + 2), changes.len()), (None, 2));
        };
        seen(&changes);
        drop(changes);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"black,352099001").unwrap();
        let again = Changes::open(&path).unwrap();
        seen(&again);
        again
            .make(Change::new("35209900176148", "black").unwrap(), 2)
            .unwrap();
        drop(again);
        seen(&Changes::open(&path).unwrap());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (subject, list, part) in [
            ("352099", "black", "IMEI"),
            ("35209900176148-x", "black", "IMSI"),
            ("35209900176148", "red", "list"),
        ] {
            let wrong = Change::new(subject, list).unwrap_err();
            assert!(wrong.contains(part), "{wrong}");
        }
    }
}
