//! The file of changes: a line for each, with a checksum. In front of several that belong together is a line with their number.
//! What a crash has cut is a last line without its end, and lines of a number that is not there whole: neither was acknowledged.
//! Anything else is damage, and refused.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use numbers::{Change, DestinationSet, Journal, Key, Kind};
use tempfile::NamedTempFile;

const NAME: &str = "changes.log";
const LOCK: &str = "lock";
/// What was cut from the end of the log, one cut behind the other.
const CUT: &str = "changes.log.cut";

/// The file, at its end.
pub(super) struct Log {
    directory: PathBuf,
    file: File,
    length: u64,
    lines: usize,
    /// Why it cannot be written any more: what is on disk is unknown after a failed `fsync`.
    failure: Option<String>,
    /// Why the last change was not written, though the next one may be.
    trouble: Option<String>,
    lock: File,
}

impl Log {
    /// Opens the log of a directory, which is made where it does not exist, and returns its changes.
    pub(super) fn open(directory: &Path) -> Result<(Self, Vec<Change>), String> {
        let wrong = |error: io::Error| format!("directory: {}: {error}", directory.display());
        std::fs::create_dir_all(directory).map_err(wrong)?;
        let options = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .clone();
        let lock = options.open(directory.join(LOCK)).map_err(wrong)?;
        lock.try_lock()
            .map_err(|_| format!("directory: {}: another process uses it", directory.display()))?;
        let path = directory.join(NAME);
        let mut file = options.open(&path).map_err(wrong)?;
        let mut octets = Vec::new();
        file.read_to_end(&mut octets).map_err(wrong)?;
        let (changes, length) =
            read(&octets).map_err(|what| format!("directory: {}: {what}", path.display()))?;
        if length < octets.len() {
            let cut = octets.get(length..).unwrap_or_default();
            keep(&directory.join(CUT), cut).map_err(wrong)?;
            tracing::warn!(
                cut = cut.len(),
                "the end of the log of changed numbers was not written whole; it is moved to {CUT}"
            );
        }
        file.set_len(length as u64)
            .and_then(|()| file.sync_all())
            .map_err(wrong)?;
        file.seek(SeekFrom::End(0)).map_err(wrong)?;
        sync_directory(directory).map_err(wrong)?;
        let log = Self {
            directory: directory.to_owned(),
            file,
            length: length as u64,
            lines: changes.len(),
            failure: None,
            trouble: None,
            lock,
        };
        Ok((log, changes))
    }

    pub(super) fn lines(&self) -> usize {
        self.lines
    }

    /// Lets another process use the directory.
    pub(super) fn close(&mut self) {
        self.failure = Some("the server is stopping".to_owned());
        // By hand: a process that was forked at this moment holds the file until it executes another program.
        if let Err(error) = self.lock.unlock() {
            tracing::debug!(%error, "lock of the directory of changed numbers not released");
        }
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.failure.clone().or_else(|| self.trouble.clone())
    }

    /// Replaces all lines.
    pub(super) fn rewrite(&mut self, changes: impl Iterator<Item = Change>) -> io::Result<()> {
        let mut new = NamedTempFile::new_in(&self.directory)?;
        let mut writer = BufWriter::new(new.as_file_mut());
        let (mut lines, mut length) = (0, 0);
        for change in changes {
            let line = line(&change);
            writer.write_all(line.as_bytes())?;
            length += line.len() as u64;
            lines += 1;
        }
        writer.flush()?;
        drop(writer);
        new.as_file().sync_all()?;
        let file = new
            .persist(self.directory.join(NAME))
            .map_err(|error| error.error)?;
        (self.file, self.length, self.lines) = (file, length, lines);
        if let Err(error) = sync_directory(&self.directory) {
            // Which of both files a crash would leave is unknown.
            self.failure = Some(error.to_string());
            return Err(error);
        }
        Ok(())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.close();
    }
}

impl Journal for Log {
    fn append(&mut self, changes: &[Change]) -> io::Result<u64> {
        if let Some(failure) = &self.failure {
            return Err(io::Error::other(format!(
                "{failure}; restart the server when the disk is sound"
            )));
        }
        let mut text = match changes.len() {
            0 | 1 => String::new(),
            count => summed(&format!("{BATCH},{count},")),
        };
        text.extend(changes.iter().map(line));
        if let Err(error) = self.file.write_all(text.as_bytes()) {
            // A full disk: what was written of it must not be read.
            let undone = self
                .file
                .set_len(self.length)
                .and_then(|()| self.file.seek(SeekFrom::Start(self.length)));
            self.failure = undone.err().map(|error| error.to_string());
            self.trouble = Some(error.to_string());
            return Err(error);
        }
        if let Err(error) = self.file.sync_data() {
            self.failure = Some(error.to_string());
            return Err(error);
        }
        self.trouble = None;
        self.length += text.len() as u64;
        self.lines += changes.len();
        Ok(self.length)
    }

    fn trim(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// `put,NUMBER,DESTINATIONS,SUM` or `remove,NUMBER,,SUM`.
fn line(change: &Change) -> String {
    let digits = |key: &Key| format!("{:0length$}", key.number(), length = key.length());
    let text = match change {
        Change::Put { key, set } => format!("put,{},{set}", digits(key)),
        Change::Remove { key } => format!("remove,{},", digits(key)),
    };
    summed(&text)
}

/// A line with its checksum.
fn summed(text: &str) -> String {
    format!("{text},{:08x}\n", crc32c::crc32c(text.as_bytes()))
}

/// Appends octets to a file of their own.
fn keep(path: &Path, octets: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(octets)?;
    file.sync_all()
}

/// The verb of the line in front of changes that belong together: `batch,NUMBER OF LINES,,SUM`.
const BATCH: &str = "batch";

#[derive(Debug, PartialEq)]
enum Line {
    Change(Change),
    Batch(usize),
}

/// The changes, and the octets that they take.
fn read(octets: &[u8]) -> Result<(Vec<Change>, usize), String> {
    let (mut changes, mut length) = (Vec::new(), 0);
    // Changes that belong together, how many are missing, and their octets.
    let (mut together, mut missing, mut pending) = (Vec::new(), 0_usize, 0);
    for (number, piece) in octets.split_inclusive(|octet| *octet == b'\n').enumerate() {
        let damaged = || format!("line {} is damaged; restore the file", number + 1);
        let Some(text) = piece.strip_suffix(b"\n") else {
            break;
        };
        pending += piece.len();
        match parse(text).ok_or_else(damaged)? {
            Line::Batch(count) if missing == 0 => missing = count,
            Line::Batch(_) => return Err(damaged()),
            Line::Change(change) => {
                together.push(change);
                missing = missing.saturating_sub(1);
            }
        }
        if missing == 0 {
            changes.append(&mut together);
            length += std::mem::take(&mut pending);
        }
    }
    Ok((changes, length))
}

fn parse(line: &[u8]) -> Option<Line> {
    let line = std::str::from_utf8(line).ok()?;
    let (text, sum) = line.rsplit_once(',')?;
    if sum.len() != 8 || u32::from_str_radix(sum, 16).ok()? != crc32c::crc32c(text.as_bytes()) {
        return None;
    }
    let (verb, rest) = text.split_once(',')?;
    let (digits, destinations) = rest.split_once(',')?;
    let key = || Key::new(Kind::Msisdn, digits.as_bytes()).ok();
    match verb {
        "put" => Some(Line::Change(Change::Put {
            key: key()?,
            set: DestinationSet::parse(destinations).ok()?,
        })),
        "remove" => Some(Line::Change(Change::Remove { key: key()? })),
        BATCH => digits.parse().ok().map(Line::Batch),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(digits: &str) -> Change {
        Change::Put {
            key: Key::new(Kind::Msisdn, digits.as_bytes()).unwrap(),
            set: DestinationSet::parse("ims,rn=+4366099").unwrap(),
        }
    }

    #[test]
    fn an_end_that_was_not_written_whole_is_cut_wherever_it_ends() {
        let remove = Change::Remove {
            key: put("001").key(),
        };
        let whole = [put("001"), remove, put("436601")];
        let text: String = whole.iter().map(line).collect();
        let first_two = line(&whole[0]).len() + line(&whole[1]).len();
        for end in first_two..text.len() {
            let (changes, length) = read(&text.as_bytes()[..end]).unwrap();
            assert_eq!((changes.as_slice(), length), (&whole[..2], first_two), "{end}");
        }
        assert_eq!(read(text.as_bytes()).unwrap(), (whole.to_vec(), text.len()));
    }

    #[test]
    fn damage_before_the_end_is_refused() {
        let mut octets: Vec<u8> = [put("43660"), put("43661")]
            .iter()
            .flat_map(|one| line(one).into_bytes())
            .collect();
        octets[6] ^= 1;
        assert!(read(&octets).unwrap_err().contains("line 1"));
        // The last line as well: it was written whole, and perhaps acknowledged.
        octets[6] ^= 1;
        let last = octets.len() - 12;
        octets[last] ^= 1;
        assert!(read(&octets).unwrap_err().contains("line 2"));
        let batch = summed("batch,2,");
        let nested = format!("{batch}{batch}{}", line(&put("43660")));
        assert!(read(nested.as_bytes()).unwrap_err().contains("line 2"));
    }

    #[test]
    fn changes_of_one_request_are_there_together_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let (mut log, _) = Log::open(folder.path()).unwrap();
        log.append(&[put("43660")]).unwrap();
        log.append(&[put("43661"), put("43662"), put("43663")]).unwrap();
        drop(log);
        let octets = std::fs::read(&path).unwrap();
        let first = line(&put("43660")).len();
        for end in first..octets.len() {
            let (changes, length) = read(&octets[..end]).unwrap();
            assert_eq!((changes.len(), length), (1, first), "{end}");
        }
        assert_eq!(read(&octets).unwrap().0.len(), 4);
        // What is cut is kept.
        std::fs::write(&path, &octets[..octets.len() - 1]).unwrap();
        assert_eq!(Log::open(folder.path()).unwrap().1, [put("43660")]);
        assert_eq!(std::fs::read(&path).unwrap(), octets[..first]);
        let cut = std::fs::read(folder.path().join(CUT)).unwrap();
        assert_eq!(cut, octets[first..octets.len() - 1]);
    }

    /// A sealed file is as a full disk: it does not grow, and is otherwise sound.
    #[test]
    fn a_full_disk_is_trouble_until_a_change_is_written() {
        use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
        let folder = tempfile::tempdir().unwrap();
        let (mut log, _) = Log::open(folder.path()).unwrap();
        let full = File::from(memfd_create("full", MemfdFlags::ALLOW_SEALING).unwrap());
        fcntl_add_seals(&full, SealFlags::GROW).unwrap();
        let disk = std::mem::replace(&mut log.file, full);
        assert!(log.append(&[put("43660")]).is_err());
        assert!(log.failure().is_some());
        log.file = disk;
        log.append(&[put("43661")]).unwrap();
        assert_eq!(log.failure(), None);
        drop(log);
        assert_eq!(Log::open(folder.path()).unwrap().1, [put("43661")]);
    }

    #[test]
    fn one_process_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let (mut log, _) = Log::open(folder.path()).unwrap();
        log.append(&[put("43660")]).unwrap();
        assert!(Log::open(folder.path()).is_err_and(|error| error.contains("another process")));
        drop(log);
        let (mut log, changes) = Log::open(folder.path()).unwrap();
        assert_eq!(changes, [put("43660")]);
        log.rewrite([put("43661")].into_iter()).unwrap();
        log.append(&[put("43662")]).unwrap();
        drop(log);
        assert_eq!(Log::open(folder.path()).unwrap().1, [put("43661"), put("43662")]);
    }
}
