//! The file of changes: a line for each, with a checksum. What a crash has cut is the end of the file, which was not
//! acknowledged; damage before it is refused.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use numbers::{Change, DestinationSet, Journal, Key, Kind};
use tempfile::NamedTempFile;

const NAME: &str = "changes.log";
const LOCK: &str = "lock";

/// The file, at its end.
pub(super) struct Log {
    directory: PathBuf,
    file: File,
    length: u64,
    lines: usize,
    /// Why it cannot be written any more: what is on disk is unknown after a failed `fsync`.
    failure: Option<String>,
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
            let cut = octets.len() - length;
            tracing::warn!(
                cut,
                "the end of the log of changed numbers was not written whole; it is cut"
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
        self.failure.clone()
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
        let text: String = changes.iter().map(line).collect();
        if let Err(error) = self.file.write_all(text.as_bytes()) {
            // A full disk: what was written of it must not be read.
            let undone = self
                .file
                .set_len(self.length)
                .and_then(|()| self.file.seek(SeekFrom::Start(self.length)));
            self.failure = undone.err().map(|error| error.to_string());
            return Err(error);
        }
        if let Err(error) = self.file.sync_data() {
            self.failure = Some(error.to_string());
            return Err(error);
        }
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
    format!("{text},{:08x}\n", crc32c::crc32c(text.as_bytes()))
}

/// The changes, and the octets that they take.
fn read(octets: &[u8]) -> Result<(Vec<Change>, usize), String> {
    let (mut changes, mut length) = (Vec::new(), 0);
    for (number, piece) in octets.split_inclusive(|octet| *octet == b'\n').enumerate() {
        let Some(change) = parse(piece) else {
            let rest = octets.get(length + piece.len()..).unwrap_or_default();
            if rest
                .split_inclusive(|octet| *octet == b'\n')
                .any(|piece| parse(piece).is_some())
            {
                return Err(format!("line {} is damaged; restore the file", number + 1));
            }
            break;
        };
        changes.push(change);
        length += piece.len();
    }
    Ok((changes, length))
}

fn parse(line: &[u8]) -> Option<Change> {
    let line = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let (text, sum) = line.rsplit_once(',')?;
    if sum.len() != 8 || u32::from_str_radix(sum, 16).ok()? != crc32c::crc32c(text.as_bytes()) {
        return None;
    }
    let (verb, rest) = text.split_once(',')?;
    let (digits, destinations) = rest.split_once(',')?;
    let key = Key::new(Kind::Msisdn, digits.as_bytes()).ok()?;
    match verb {
        "put" => Some(Change::Put {
            key,
            set: DestinationSet::parse(destinations).ok()?,
        }),
        "remove" => Some(Change::Remove { key }),
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
