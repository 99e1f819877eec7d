//! The newest entries in memory: bounded in number and bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Subject;

/// Entries that a search gives at most; the newest.
const FOUND: usize = 1_000;

/// An entry, as a line of JSON.
#[derive(Debug)]
struct Held {
    subject: Arc<Subject>,
    line: Arc<str>,
}

/// The newest entries. Only traced subscribers reach it.
#[derive(Debug)]
pub(crate) struct Ring {
    entries: Mutex<(VecDeque<Held>, usize)>,
    most: usize,
    most_bytes: usize,
}

impl Ring {
    pub(super) fn new(most: usize, most_bytes: usize) -> Self {
        Self {
            entries: Mutex::default(),
            most,
            most_bytes,
        }
    }

    /// Takes an entry; the oldest give way.
    pub(super) fn push(&self, subject: Arc<Subject>, line: Arc<str>) {
        let mut entries = self.entries.lock();
        let (held, bytes) = &mut *entries;
        *bytes += line.len();
        held.push_back(Held { subject, line });
        while held.len() > self.most || *bytes > self.most_bytes {
            let Some(oldest) = held.pop_front() else { break };
            *bytes -= oldest.line.len();
        }
    }

    /// Entries about a subscriber or an association, the oldest first.
    pub(super) fn search(&self, wanted: &str) -> Vec<Arc<str>> {
        let entries = self.entries.lock();
        let fits = |one: &&Held| one.subject.is(wanted);
        let newest = entries.0.iter().rev().filter(fits).take(FOUND);
        let mut found: Vec<Arc<str>> = newest.map(|one| one.line.clone()).collect();
        found.reverse();
        found
    }

    /// Entries, and their bytes.
    pub(super) fn size(&self) -> (usize, usize) {
        let entries = self.entries.lock();
        (entries.0.len(), entries.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::association::AssociationId;

    #[test]
    fn the_oldest_entries_give_way() {
        let ring = Ring::new(3, 10);
        let subject = Arc::new(Subject {
            supi: Some("imsi-1".into()),
            gpsi: None,
            association: Some(AssociationId([7; 16])),
        });
        for line in ["aa", "bb", "cc", "dd"] {
            ring.push(subject.clone(), line.into());
        }
        assert_eq!(ring.search("imsi-1").concat_lines(), "bbccdd");
        assert_eq!(
            ring.search(&AssociationId([7; 16]).to_string()).concat_lines(),
            "bbccdd"
        );
        assert!(ring.search("imsi-2").is_empty());
        ring.push(subject, "eeeeeeee".into());
        assert_eq!(ring.size(), (2, 10));
    }

    trait Lines {
        fn concat_lines(&self) -> String;
    }

    impl Lines for Vec<Arc<str>> {
        fn concat_lines(&self) -> String {
            self.iter().map(|line| &**line).collect()
        }
    }
}
