//! The data on the disk of a server: numbers, their changed blocks, names, and the journal that they belong to.
//!
//! | on the disk | what it has |
//! |---|---|
//! | `numbers.num`, `numbers.changes` | numbers, and the blocks that were changed since, each with its offset |
//! | `names.csv` | names |
//! | `state.json` | identity of the journal, offset of the names and their count; written after the names |
//! | `load.csv` | from an operator: a whole state, which replaces all others at the start, and is `loaded.csv` then |
//!
//! A crash between two files leaves some of them at a later offset than others. The journal is applied again from the earliest one
//! on; what is applied twice has the same result.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use numbers::csv::{ImportError, TextWriter};
use numbers::{Load, Map, NoJournal};
use serde::{Deserialize, Serialize};

use super::Data;
use super::load::{self, Origin};
use super::names::Names;
use crate::record::Head;
use crate::subject::NAME;

/// The files of a server. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    directory: PathBuf,
    /// Locked as long as the server runs.
    _lock: Arc<Lock>,
}

/// The lock of a directory. A call releases it: a process that another thread is just starting holds a copy of the descriptor
/// until it runs its own program.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // The end of the process releases it in any case.
        let _ = self.0.unlock();
    }
}

/// What `state.json` has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    journal: String,
    names: u64,
    /// Names in `names.csv`, which does not count where there are none.
    #[serde(default)]
    count: Option<u64>,
    /// CRC-32C of the others.
    #[serde(default)]
    sum: Option<u32>,
}

impl State {
    /// With the checksum that it should have.
    fn summed(mut self) -> Self {
        self.sum = None;
        // Strings and numbers always have a form in JSON.
        let text = serde_json::to_vec(&self).unwrap_or_default();
        self.sum = Some(crc32c::crc32c(&text));
        self
    }

    fn parse(text: &[u8]) -> Result<Self, String> {
        let state: Self = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if state.sum.is_some() && state != state.clone().summed() {
            return Err("has another checksum than it says; put a checkpoint of another server into the directory as load.csv".to_owned());
        }
        Ok(state)
    }
}

/// Why the data cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FilesError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error(transparent)]
    Numbers(#[from] numbers::Error),
    #[error("{}: {error}", path.display())]
    Text { path: PathBuf, error: ImportError },
    #[error("{}: {reason}", path.display())]
    State { path: PathBuf, reason: String },
}

impl FilesError {
    /// The thread that wrote has ended.
    pub(crate) fn interrupted() -> Self {
        let reason = "the writing was interrupted".to_owned();
        Self::State {
            path: PathBuf::new(),
            reason,
        }
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> FilesError {
    |error| FilesError::Io {
        path: path.to_owned(),
        error,
    }
}

impl Files {
    /// The files in a directory, which is created.
    pub(crate) fn new(directory: &Path) -> Result<Self, FilesError> {
        use std::os::unix::fs::DirBuilderExt as _;
        // Numbers of subscribers: for their owner alone.
        let created = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory);
        created.map_err(at(directory))?;
        let path = directory.join("lock");
        let mut options = File::options();
        let lock = options.write(true).create(true).truncate(false).open(&path);
        let lock = lock.map_err(at(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(at(&path)(error)),
            Err(TryLockError::WouldBlock) => {
                let reason = "another process uses this directory".to_owned();
                return Err(FilesError::State { path, reason });
            }
        }
        Ok(Self {
            directory: directory.to_owned(),
            _lock: Arc::new(Lock(lock)),
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Writes a new base without the sets that no number has any more, where more than three quarters of all that there may be are
    /// in the table. Blocks.
    pub(crate) fn free_sets(&self, data: &Data) -> Result<(), FilesError> {
        let before = data.map().sets().len();
        if before <= numbers::MOST_SETS / 4 * 3 {
            return Ok(());
        }
        let (base, next) = (self.path("numbers.num"), self.path("numbers.next"));
        let rewrite = |map: &Map| {
            map.rewrite(&next)?;
            Ok(Map::open(&next, None, Load::Mapped)?)
        };
        // A crash between both leaves changes of the base before: the base has them.
        let publish = || fs::rename(&next, &base).map_err(at(&base));
        if !data.replace_map(rewrite, publish)? {
            tracing::info!(before, "destination sets are freed later: too much is written");
            return remove(&next);
        }
        self.sync()?;
        remove(&self.path("numbers.changes"))?;
        let after = data.map().sets().len();
        tracing::info!(
            before,
            after,
            "destination sets that no number has any more are freed"
        );
        Ok(())
    }

    /// Reads the data, and the identity of the journal that they belong to; none where there are no data yet. `stored` is the
    /// head of the journal in the store.
    pub(crate) fn open(&self, stored: Option<&Head>) -> Result<(Data, Option<String>), FilesError> {
        self.load(stored)?;
        let Some(state) = self.state()? else {
            return Ok((Data::new(Map::empty(), Names::default(), 0), None));
        };
        let map = self.numbers()?;
        let text = self.path("names.csv");
        let names = if state.count.map_or_else(|| text.exists(), |count| count > 0) {
            expect(&text)?;
            load::names(&text).map_err(|error| FilesError::Text { path: text, error })?
        } else {
            Names::default()
        };
        // Without numbers there is no file that has an offset.
        let offset = match map.size() {
            (_, 0) => state.names,
            _ => map.position().min(state.names),
        };
        Ok((Data::new(map, names, offset), Some(state.journal)))
    }

    fn numbers(&self) -> Result<Map, FilesError> {
        let (base, changes) = (self.path("numbers.num"), self.path("numbers.changes"));
        expect(&base)?;
        let open = || match Map::open(&base, changes.exists().then_some(&*changes), Load::Mapped) {
            // A crash has left the changes of the base before: the base has them.
            Err(numbers::Error::OtherBase { .. }) => Map::open(&base, None, Load::Mapped),
            other => other,
        };
        let map = open()?;
        for warning in map.warnings() {
            tracing::warn!(warning, "numbers are damaged");
        }
        let size = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
        // A new base is without the sets that no number has any more.
        let is_full = changes.exists() && map.sets().len() > numbers::MOST_SETS / 2;
        if size(&changes) <= size(&base) / 2 && !is_full {
            return Ok(map);
        }
        // Changed blocks stay in memory; those of a base are mapped.
        match map.rewrite(&base) {
            Ok(_) => {}
            // Its own numbers are refused; all others serve as they are.
            Err(error @ (numbers::Error::Damaged(_) | numbers::Error::OtherBase { .. })) => {
                tracing::warn!(path = %base.display(), %error, "the numbers are not rewritten");
                return Ok(map);
            }
            Err(error) => return Err(error.into()),
        }
        fs::remove_file(&changes).map_err(at(&changes))?;
        Ok(Map::open(&base, None, Load::Mapped)?)
    }

    fn state(&self) -> Result<Option<State>, FilesError> {
        let path = self.path("state.json");
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(at(&path)(error)),
        };
        let state = State::parse(&text).map(Some);
        state.map_err(|reason| FilesError::State { path, reason })
    }

    /// Replaces the data by those of `load.csv`, where an operator has put one.
    ///
    /// # Errors
    /// Where it cannot be used, or the journal of the store does not lead on from it; the data are as before.
    fn load(&self, stored: Option<&Head>) -> Result<(), FilesError> {
        let text = self.path("load.csv");
        if !text.exists() {
            return Ok(());
        }
        let origin = Origin::read(&text).map_err(at(&text))?;
        if let Some(reason) = stored.and_then(|stored| origin.unfit(stored)) {
            return Err(FilesError::State { path: text, reason });
        }
        // Data without a journal count as its first transaction: no processor takes an empty state for the beginning.
        let (journal, offset) = match (origin.journal, origin.offset) {
            (Some(journal), Some(offset)) => (journal, offset),
            (None, None) => (uuid::Uuid::new_v4().to_string(), 1),
            _ => {
                let reason = "has one of the lines #journal and #offset; expected both, or none".to_owned();
                return Err(FilesError::State { path: text, reason });
            }
        };
        tracing::info!(journal, offset, path = %text.display(), "loading records");
        // A text that is wrong changes nothing. A crash behind it finds the text, and loads again.
        let loaded = load::load(&text, &self.path("numbers.num"), offset);
        let names = loaded.map_err(|error| FilesError::Text {
            path: text.clone(),
            error,
        })?;
        remove(&self.path("numbers.changes"))?;
        self.write_names(&names, offset, &journal)?;
        fs::rename(&text, self.path("loaded.csv")).map_err(at(&text))
    }

    /// Writes the data as they are now; returns the offset from which on the journal is needed. Blocks.
    pub(crate) fn checkpoint(&self, data: &Data, journal: &str) -> Result<u64, FilesError> {
        let (offset, names) = data.names();
        // Before the names: a state stands for numbers of its offset, or later ones.
        let (base, map) = (self.path("numbers.num"), data.map());
        match map.size() {
            (_, 0) => map.rewrite(&base)?,
            _ => map.checkpoint(&self.path("numbers.changes"), &mut NoJournal::default())?,
        };
        self.write_names(&names, offset, journal)?;
        Ok(offset)
    }

    fn write_names(&self, names: &Names, offset: u64, journal: &str) -> Result<(), FilesError> {
        let path = self.path("names.csv");
        if names.len() > 0 {
            self.write(&path, |out| {
                let mut text = TextWriter::new(out)?;
                for (name, set) in names.above(None) {
                    text.entry(format_args!("{NAME},{name},{set}"))?;
                }
                text.end()
            })?;
        }
        let state = State {
            journal: journal.to_owned(),
            names: offset,
            count: Some(names.len()),
            sum: None,
        };
        let state = state.summed();
        self.write(&self.path("state.json"), |out| {
            Ok(serde_json::to_writer(out, &state)?)
        })?;
        // Behind the state: one that has names is not without them.
        if names.len() == 0 { remove(&path) } else { Ok(()) }
    }

    /// Writes a file as a whole: under another name, synced, renamed.
    fn write(
        &self,
        path: &Path,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), FilesError> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let new = path.with_added_extension("new");
        let mut options = File::options();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let written = options.open(&new).and_then(|file| {
            let mut out = BufWriter::with_capacity(1 << 20, file);
            write(&mut out)?;
            out.flush()?;
            out.get_ref().sync_all()
        });
        written.map_err(at(&new))?;
        fs::rename(&new, path).map_err(at(path))?;
        self.sync()
    }

    fn sync(&self) -> Result<(), FilesError> {
        let synced = File::open(&self.directory).and_then(|folder| folder.sync_all());
        synced.map_err(at(&self.directory))
    }
}

/// Refuses where a file is missing, whose records would be taken for removed ones.
fn expect(path: &Path) -> Result<(), FilesError> {
    if path.exists() {
        return Ok(());
    }
    let reason = "is missing, though state.json is there; restore it, or put a checkpoint of another server into the \
                  directory as load.csv";
    Err(FilesError::State {
        path: path.to_owned(),
        reason: reason.to_owned(),
    })
}

fn remove(path: &Path) -> Result<(), FilesError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(path)(error)),
        _ => Ok(()),
    }
}
