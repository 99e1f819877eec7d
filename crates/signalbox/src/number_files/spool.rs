//! Numbers of a directory as text, in a file without a name, each behind the name of its entry.

use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufRead as _, BufReader, BufWriter, Seek as _, Write as _};
use std::path::Path;

/// Begins the line with the name of an entry, which is a comment of the text.
const NAME: &str = "# entry ";
/// Bytes of a name that are kept: a line has a bound.
const MOST_NAME: usize = 4_096;
/// Records that are compared at once, about: some 300 MB of memory.
pub(super) const MOST_SEEN: u64 = 14_000_000;

/// The text, which is written whole before it is read.
pub(super) struct Spool {
    file: BufWriter<File>,
    entries: u64,
    lines: u64,
    bytes: u64,
}

impl Spool {
    /// An empty one on the disk of this folder.
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        let file = tempfile::tempfile_in(folder)?;
        Ok(Self {
            file: BufWriter::with_capacity(1 << 20, file),
            entries: 0,
            lines: 0,
            bytes: 0,
        })
    }

    /// Appends the lines of an entry.
    pub(super) fn push(&mut self, name: &str, lines: &[String]) -> io::Result<()> {
        // A name with another line in it would be two.
        let name: String = name.chars().filter(|each| !each.is_control()).collect();
        let name = name
            .get(..name.floor_char_boundary(MOST_NAME))
            .unwrap_or_default();
        let mut text = format!("{NAME}{name}\n");
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        self.entries += 1;
        self.lines += lines.len() as u64;
        self.bytes += text.len() as u64;
        self.file.write_all(text.as_bytes())
    }

    /// How many entries it has.
    pub(super) const fn entries(&self) -> u64 {
        self.entries
    }

    /// How many lines of numbers it has.
    pub(super) const fn lines(&self) -> u64 {
        self.lines
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The text from its beginning.
    pub(super) fn reader(&mut self) -> io::Result<&File> {
        self.file.flush()?;
        self.file.get_mut().rewind()?;
        Ok(self.file.get_ref())
    }

    /// The first record that is there twice, its line, and that of the earlier one. The text is read once for each
    /// `most_seen` records.
    pub(super) fn first_twice(&mut self, most_seen: u64) -> io::Result<Option<(String, u64, u64)>> {
        loop {
            let found = self.first_hash_twice(most_seen)?;
            let Some((record, _, first)) = &found else {
                return Ok(None);
            };
            let earlier = BufReader::new(self.reader()?).lines();
            let earlier = earlier.take(usize::try_from(*first).unwrap_or(usize::MAX)).last();
            if earlier.transpose()?.as_deref().and_then(record_of) == Some(record.as_str()) {
                return Ok(found);
            }
            // Two records with one hash: they have others the next time.
        }
    }

    fn first_hash_twice(&mut self, most_seen: u64) -> io::Result<Option<(String, u64, u64)>> {
        let (hasher, parts) = (RandomState::new(), self.lines.div_ceil(most_seen));
        let mut found: Option<(String, u64, u64)> = None;
        for part in 0..parts {
            let mut seen: HashMap<u64, u64> = HashMap::new();
            for (line, text) in (1..).zip(BufReader::new(self.reader()?).lines()) {
                if found.as_ref().is_some_and(|(_, found, _)| *found <= line) {
                    break;
                }
                let text = text?;
                let Some(record) = record_of(&text) else { continue };
                let hash = hasher.hash_one(record);
                if hash % parts == part
                    && let Some(first) = seen.insert(hash, line)
                {
                    found = Some((record.to_owned(), line, first));
                }
            }
        }
        Ok(found)
    }

    /// The records from the beginning, each as a line.
    pub(super) fn records(&mut self) -> io::Result<impl Iterator<Item = io::Result<String>>> {
        let lines = BufReader::with_capacity(1 << 20, self.reader()?).lines();
        Ok(lines.filter(|line| line.as_ref().is_ok_and(|line| record_of(line).is_some()) || line.is_err()))
    }

    /// The name of the entry that a line belongs to.
    pub(super) fn entry_of(&mut self, line: u64) -> io::Result<String> {
        let mut name = String::new();
        let lines = BufReader::new(self.reader()?).lines();
        for text in lines.take(usize::try_from(line).unwrap_or(usize::MAX)) {
            if let Some(found) = text?.strip_prefix(NAME) {
                name = found.to_owned();
            }
        }
        Ok(name)
    }
}

/// Kind and number of a line; none: it is the name of an entry.
fn record_of(line: &str) -> Option<&str> {
    let (kind, rest) = line.split_once(',').filter(|_| !line.starts_with(NAME))?;
    let (value, _) = rest.split_once(',')?;
    line.get(..kind.len() + 1 + value.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_name_of_its_entry() {
        let mut spool = Spool::new(&std::env::temp_dir()).unwrap();
        let lines = |numbers: &[&str]| {
            numbers
                .iter()
                .map(|one| format!("imsi,{one},a"))
                .collect::<Vec<_>>()
        };
        spool.push("cn=one\n#end,1", &lines(&["1", "2"])).unwrap();
        spool.push(&"\u{e9}".repeat(3_000), &lines(&["3"])).unwrap();
        for (line, name) in [
            (2, "cn=one#end,1"),
            (3, "cn=one#end,1"),
            (5, &*"\u{e9}".repeat(2_048)),
        ] {
            assert_eq!(spool.entry_of(line).unwrap(), name);
        }
        let text = io::read_to_string(spool.reader().unwrap()).unwrap();
        assert_eq!((text.len() as u64, text.lines().count()), (spool.bytes(), 5));
        assert_eq!((spool.entries(), spool.lines()), (2, 3));
        assert_eq!(spool.first_twice(MOST_SEEN).unwrap(), None);
        let records: Vec<String> = spool.records().unwrap().map(Result::unwrap).collect();
        assert_eq!(records, ["imsi,1,a", "imsi,2,a", "imsi,3,a"]);
    }

    #[test]
    fn a_record_that_is_there_twice_is_found() {
        let mut spool = Spool::new(&std::env::temp_dir()).unwrap();
        for (entry, line) in [
            ("one", "name,a@b,x"),
            ("two", "name,a@c,x"),
            ("three", "name,a@b,y"),
        ] {
            spool.push(entry, &[line.to_owned()]).unwrap();
        }
        spool.push("four", &["name,a@c,z".to_owned()]).unwrap();
        for most_seen in [MOST_SEEN, 2, 1] {
            assert_eq!(
                spool.first_twice(most_seen).unwrap(),
                Some(("name,a@b".to_owned(), 6, 2))
            );
        }
    }
}
