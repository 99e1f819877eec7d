//! The data in effect, together with what is kept of them.

use std::path::Path;
use std::sync::Arc;

use super::directory::{Directory, Position};
use super::taking::Taking;
use super::transaction::Transaction;
use crate::data::{Data, Holder};

/// Bytes of the log after which the data are rewritten: some three million transactions, seconds of a start.
const MOST_LOG_BYTES: u64 = 256 << 20;

/// Changes the data that workers read, and keeps them. It waits for the disk.
#[derive(Debug)]
pub(crate) struct Keeper {
    holder: Arc<Holder>,
    directory: Directory,
    max_names: usize,
    now: Option<Now>,
}

#[derive(Debug)]
struct Now {
    data: Arc<Data>,
    journal: String,
    offset: u64,
    /// The offset from which on they are those of one moment: parts of them are of before it, and others as of it.
    through: u64,
    /// Whether workers read them.
    is_in_effect: bool,
}

impl Keeper {
    /// Opens a directory; its data are in effect from now on.
    ///
    /// # Errors
    /// When the directory cannot be used.
    pub(crate) fn open(path: &Path, max_names: usize, holder: Arc<Holder>) -> Result<Self, String> {
        let (directory, position) = Directory::open(path, max_names)?;
        let mut keeper = Self {
            holder,
            directory,
            max_names,
            now: None,
        };
        if let Some(position) = position {
            position.data.set_old(true);
            let through = position.offset;
            keeper.adopt(position, through);
        }
        Ok(keeper)
    }

    /// The data have what the servers have, or no server answers.
    pub(crate) fn settle(&mut self) {
        self.put_into_effect(true);
        if let Some(now) = &self.now {
            now.data.set_old(false);
        }
    }

    /// Whether there are data that workers read, and the newest ones are.
    pub(crate) fn is_in_effect(&self) -> bool {
        self.now.as_ref().is_some_and(|now| now.is_in_effect)
    }

    /// Has workers read the data, unless their parts are as of several moments yet; with `anyway` also then.
    fn put_into_effect(&mut self, anyway: bool) {
        if let Some(now) = &mut self.now
            && !now.is_in_effect
            && (anyway || now.offset >= now.through)
        {
            self.holder.store(now.data.clone());
            now.is_in_effect = true;
        }
    }

    fn adopt(&mut self, position: Position, through: u64) {
        let Position {
            data,
            journal,
            offset,
        } = position;
        self.now = Some(Now {
            data: Arc::new(data),
            journal,
            offset,
            through,
            is_in_effect: false,
        });
        self.put_into_effect(false);
    }

    /// The identity of the journal, and the offset in it; none: there are no data.
    pub(crate) fn position(&self) -> Option<(&str, u64)> {
        self.now.as_ref().map(|now| (now.journal.as_str(), now.offset))
    }

    /// Puts the transactions of an answer into effect, each of them a line; returns how many. All of them are checked first.
    ///
    /// # Errors
    /// When one is not a transaction, does not follow the one before it, or cannot be put into effect: all data must be taken
    /// again. Those before it may be in effect.
    pub(crate) fn apply(&mut self, body: &[u8]) -> Result<u64, String> {
        let Some(now) = &mut self.now else {
            return Err("there are no data".to_owned());
        };
        let lines: Vec<&[u8]> = body
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .collect();
        let mut all = Transaction::default();
        let mut offset = now.offset;
        for line in &lines {
            let one = Transaction::parse(line)?;
            if Some(one.offset) != offset.checked_add(1) {
                return Err(format!("offset {} behind {offset}", one.offset));
            }
            offset = one.offset;
            all.numbers.extend(one.numbers);
            all.names.extend(one.names);
        }
        if lines.is_empty() {
            return Ok(0);
        }
        // A change that is refused must not be in the log, which could not be replayed.
        now.data.change(&all.numbers, all.names, offset, self.max_names)?;
        self.directory.append(&lines).map_err(|error| error.to_string())?;
        now.offset = offset;
        let count = lines.len() as u64;
        self.put_into_effect(false);
        if self.directory.log_bytes() > MOST_LOG_BYTES {
            self.rewrite()?;
        }
        Ok(count)
    }

    /// Begins to take all subscribers; the data stay as they are.
    ///
    /// # Errors
    /// When files cannot be written.
    pub(crate) fn begin(&self) -> Result<Taking, String> {
        self.directory.begin()
    }

    /// Takes all subscribers in place of the data; returns the offset from which on they are in effect.
    ///
    /// # Errors
    /// What is wrong with them; the data stay as they are.
    pub(crate) fn complete(&mut self, taking: Taking) -> Result<u64, String> {
        let through = taking.through();
        let position = self.directory.complete(taking)?;
        self.adopt(position, through);
        Ok(through)
    }

    fn rewrite(&mut self) -> Result<(), String> {
        let Some(now) = &self.now else { return Ok(()) };
        let through = now.through;
        let position = self.directory.rewrite(&now.data, now.offset)?;
        self.adopt(position, through);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use numbers::{Key, Kind};

    use super::*;

    const TEXT: &str =
        "#signalbox-numbers,1\nimsi,001010000000001,hss1\nname,a@b,hss1\nname,c@d,hss1\n#end,3\n";
    const LINES: &str = r#"{"offset": 6, "changes": [{"imsi": "001010000000001", "destinations": null}]}
{"offset": 7, "changes": [{"imsi": "001010000000002", "destinations": "hss2"}, {"name": "a@b", "destinations": "hss2"}]}
{"offset": 8, "changes": [{"name": "c@d", "destinations": null}]}
"#;

    fn open(path: &Path) -> (Keeper, Arc<Holder>) {
        let holder = Arc::new(Holder::default());
        (Keeper::open(path, 10, holder.clone()).unwrap(), holder)
    }

    /// Takes a text as the only part.
    fn take(keeper: &mut Keeper, text: &str, journal: &str, offset: u64) -> Result<u64, String> {
        let mut taking = keeper.begin()?;
        taking.add(&mut text.as_bytes(), journal, offset)?;
        keeper.complete(taking)
    }

    /// Destinations of two IMSIs and two names.
    fn found(holder: &Holder) -> [Option<String>; 4] {
        let data = holder.load();
        let data = data.as_ref().unwrap();
        let number = |digits: &[u8]| {
            let id = data.map.find(Key::new(Kind::Imsi, digits).unwrap()).unwrap()?;
            Some(data.map.set(id)?.to_string())
        };
        let name = |name: &str| {
            let found = data.names.find(name, |set| Some(set.to_string()));
            found.unwrap_or_else(|damaged| Some(damaged.to_string()))
        };
        let numbers = [number(b"001010000000001"), number(b"001010000000002")];
        let [first, second] = numbers;
        [first, second, name("a@b"), name("c@d")]
    }

    #[test]
    fn files_of_subscribers_are_for_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (mut keeper, _) = open(&path);
        take(&mut keeper, TEXT, "j1", 5).unwrap();
        let mut seen = 0;
        for rewritten in [false, true] {
            if rewritten {
                keeper.rewrite().unwrap();
            }
            assert_eq!(keeper.apply(LINES.as_bytes()).is_ok(), !rewritten);
            for entry in std::fs::read_dir(&path).unwrap() {
                let file = entry.unwrap().path();
                assert_eq!(mode(&file), 0o600, "{}", file.display());
                seen += 1;
            }
        }
        // Lock, the files that count, numbers, names and log, each time.
        assert_eq!((mode(&path), seen), (0o700, 10));
    }

    #[test]
    fn data_are_the_same_after_transactions_a_rewriting_and_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let (mut keeper, holder) = open(folder.path());
        take(&mut keeper, TEXT, "j1", 5).unwrap();
        assert_eq!(keeper.apply(LINES.as_bytes()), Ok(3));
        let expected = [None, Some("hss2".to_owned()), Some("hss2".to_owned()), None];
        assert_eq!(found(&holder), expected);
        keeper.rewrite().unwrap();
        assert_eq!((found(&holder), keeper.position()), (expected, Some(("j1", 8))));
        assert_eq!(keeper.directory.log_bytes(), 0);
        let next = r#"{"offset": 9, "changes": [{"name": "c@d", "destinations": "hss3"}]}"#;
        assert_eq!(keeper.apply(next.as_bytes()), Ok(1));
        // One process at a time.
        assert!(Keeper::open(folder.path(), 10, Arc::default()).is_err());
        drop(keeper);
        let (keeper, holder) = open(folder.path());
        assert_eq!(keeper.position(), Some(("j1", 9)));
        let [.., last] = found(&holder);
        assert_eq!(last.as_deref(), Some("hss3"));
        let names = std::fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["2.log", "2.names", "2.num", "current", "lock"]);
    }

    #[test]
    fn nothing_of_an_answer_with_a_wrong_line_is_in_effect() {
        let folder = tempfile::tempdir().unwrap();
        let (mut keeper, holder) = open(folder.path());
        take(&mut keeper, TEXT, "j1", 5).unwrap();
        let before = found(&holder);
        for (from, to) in [
            ("\"offset\": 7", "\"offset\": 8"),
            ("001010000000002", "00101000000000x"),
            ("c@d", ""),
        ] {
            assert!(keeper.apply(LINES.replace(from, to).as_bytes()).is_err());
            assert_eq!(
                (found(&holder), keeper.position()),
                (before.clone(), Some(("j1", 5)))
            );
        }
        // A text that is cut, and more names than are permitted.
        assert!(take(&mut keeper, &TEXT.replace("#end,3\n", ""), "j1", 9).is_err());
        let names: String = (0..11).map(|at| format!("name,{at}@b,hss1\n")).collect();
        let wrong = take(&mut keeper, &names, "j1", 9).unwrap_err();
        assert!(wrong.contains("maxNames (10)"), "{wrong}");
        let changes: Vec<String> = (0..11)
            .map(|at| format!(r#"{{"name": "{at}@b", "destinations": "hss1"}}"#))
            .collect();
        let line = format!(r#"{{"offset": 6, "changes": [{}]}}"#, changes.join(","));
        let wrong = keeper.apply(line.as_bytes()).unwrap_err();
        assert!(wrong.contains("maxNames (10)"), "{wrong}");
        assert_eq!(
            (found(&holder), keeper.position()),
            (before.clone(), Some(("j1", 5)))
        );
        // Nor after a restart.
        drop(keeper);
        let (keeper, holder) = open(folder.path());
        assert_eq!((found(&holder), keeper.position()), (before, Some(("j1", 5))));
    }

    #[test]
    fn changed_names_are_not_new_ones_at_the_bound() {
        let folder = tempfile::tempdir().unwrap();
        let (mut keeper, holder) = open(folder.path());
        let names: String = (0..10).map(|at| format!("name,{at}@b,hss1\n")).collect();
        let text = format!("#signalbox-numbers,1\n{names}#end,10\n");
        take(&mut keeper, &text, "j1", 5).unwrap();
        let mut offset = 5;
        let mut apply = |changes: &[(&str, &str)]| {
            let record = |(name, to): &(&str, &str)| format!(r#"{{"name": "{name}", "destinations": {to}}}"#);
            let records: Vec<String> = changes.iter().map(record).collect();
            let line = format!(
                r#"{{"offset": {}, "changes": [{}]}}"#,
                offset + 1,
                records.join(",")
            );
            let applied = keeper.apply(line.as_bytes());
            offset += u64::from(applied.is_ok());
            applied.is_ok()
        };
        let count = || holder.load().as_ref().unwrap().names.len();
        assert!(apply(&[("0@b", r#""hss2""#)]) && count() == 10);
        assert!(apply(&[("0@b", r#""hss3""#), ("0@b", r#""hss4""#)]) && count() == 10);
        assert!(!apply(&[("x@b", r#""hss2""#)]) && count() == 10);
        assert!(apply(&[("1@b", "null"), ("unknown@b", "null")]) && count() == 9);
        assert!(apply(&[("x@b", r#""hss2""#)]) && count() == 10);
        assert!(apply(&[("x@b", "null"), ("1@b", r#""hss1""#)]) && count() == 10);
        keeper.rewrite().unwrap();
        assert_eq!(holder.load().as_ref().unwrap().names.len(), 10);
    }

    #[test]
    fn parts_of_several_offsets_are_in_effect_from_the_last_of_them_on() {
        let folder = tempfile::tempdir().unwrap();
        let (mut keeper, holder) = open(folder.path());
        // Transaction 7 was in effect when the names were read, and 6 was not when the numbers were.
        let parts = [
            (5, "#signalbox-numbers,1\nimsi,001010000000001,hss1\n#end,1\n"),
            (7, "#signalbox-numbers,1\nname,a@b,hss2\nname,c@d,hss1\n#end,2\n"),
        ];
        let mut taking = keeper.begin().unwrap();
        for (offset, part) in parts {
            taking.add(&mut part.as_bytes(), "j1", offset).unwrap();
        }
        assert_eq!(keeper.complete(taking), Ok(7));
        assert_eq!(keeper.position(), Some(("j1", 5)));
        assert!(!keeper.is_in_effect() && holder.load().is_none());
        let lines: Vec<&str> = LINES.lines().collect();
        assert_eq!(keeper.apply(lines[0].as_bytes()), Ok(1));
        assert!(!keeper.is_in_effect());
        assert_eq!(keeper.apply(lines[1].as_bytes()), Ok(1));
        let hss = |name: &str| Some(name.to_owned());
        assert_eq!(found(&holder), [None, hss("hss2"), hss("hss2"), hss("hss1")]);
        // Where no server answers any more they are in effect as they are.
        let mut taking = keeper.begin().unwrap();
        for (offset, part) in parts {
            taking.add(&mut part.as_bytes(), "j1", offset).unwrap();
        }
        keeper.complete(taking).unwrap();
        assert_eq!(found(&holder)[0], None, "those before");
        keeper.settle();
        assert_eq!(found(&holder)[0], hss("hss1"));
        // What does not belong together is refused, and changes nothing.
        let text = &mut parts[0].1.as_bytes();
        for (journal, offset, reason) in [("j2", 9, "journal j2"), ("j1", 4, "behind the first one")] {
            let mut taking = keeper.begin().unwrap();
            taking.add(&mut parts[1].1.as_bytes(), "j1", 5).unwrap();
            let wrong = taking.add(text, journal, offset).unwrap_err();
            assert!(wrong.contains(reason), "{wrong}");
        }
        assert_eq!(keeper.position(), Some(("j1", 5)));
    }

    #[test]
    fn a_flipped_bit_of_what_is_kept_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (mut keeper, _) = open(folder.path());
        take(&mut keeper, TEXT, "j1", 5).unwrap();
        keeper.apply(LINES.as_bytes()).unwrap();
        drop(keeper);
        let expected = {
            let (keeper, holder) = open(folder.path());
            (
                keeper.position().map(|(id, at)| (id.to_owned(), at)),
                found(&holder),
            )
        };
        for (file, step) in [("current", 3), ("1.names", 23)] {
            let path = folder.path().join(file);
            let before = std::fs::read(&path).unwrap();
            for bit in (0..before.len() * 8).step_by(step) {
                let mut damaged = before.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                std::fs::write(&path, &damaged).unwrap();
                let (keeper, holder) = open(folder.path());
                let Some((id, at)) = keeper.position() else {
                    continue;
                };
                assert_eq!(
                    Some((id.to_owned(), at)),
                    expected.0,
                    "{}",
                    damaged.escape_ascii()
                );
                for (one, expected) in found(&holder).into_iter().zip(&expected.1) {
                    let is_damaged = one.as_ref().is_some_and(|one| one.contains("damaged"));
                    assert!(is_damaged || one == *expected, "bit {bit}: {one:?}");
                }
            }
            std::fs::write(&path, before).unwrap();
        }
    }

    #[test]
    fn damage_of_what_is_kept_leads_to_no_data() {
        let folder = tempfile::tempdir().unwrap();
        let (mut keeper, _) = open(folder.path());
        take(&mut keeper, TEXT, "j1", 5).unwrap();
        drop(keeper);
        for (file, bytes) in [("1.names", &b"SBXNAME"[..]), ("1.num", b"x"), ("current", b"{")] {
            let path = folder.path().join(file);
            let before = std::fs::read(&path).unwrap();
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(open(folder.path()).0.position(), None, "{file}");
            std::fs::write(&path, before).unwrap();
        }
        assert_eq!(open(folder.path()).0.position(), Some(("j1", 5)));
    }
}
