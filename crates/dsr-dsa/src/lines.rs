//! Lines about findings: one JSON object each, without authentication information.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use diameter_proto::Dictionary;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::facts::Facts;
use crate::measure::Measure;
use crate::network::Network;

/// Bound on lines that wait for the disk.
const MAX_QUEUED: usize = 1024;
/// Bound on a value of a message in a line.
const MAX_VALUE: usize = 128;

/// Where lines go.
#[derive(Debug)]
pub(crate) struct Lines {
    sink: Sink,
    /// Lines that the thread could not write, until a worker counts them.
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Sink {
    Log,
    /// The thread that writes the file.
    File(SyncSender<String>),
    /// A replay, which takes them after each message.
    Replay(Mutex<Replayed>),
}

#[derive(Debug)]
struct Replayed {
    at: SystemTime,
    lines: Vec<Value>,
}

impl Lines {
    /// Lines for a replay.
    pub(crate) fn for_replay() -> Self {
        Self {
            sink: Sink::Replay(Mutex::new(Replayed {
                at: UNIX_EPOCH,
                lines: Vec::new(),
            })),
            lost: Arc::default(),
        }
    }

    /// Lines in a file, or without one in the log. A thread of its own writes the file: workers wait for no disk.
    pub(crate) fn new(file: Option<&Path>, max_bytes: u64) -> Result<Self, String> {
        let lost = Arc::<AtomicU64>::default();
        let Some(path) = file else {
            return Ok(Self {
                sink: Sink::Log,
                lost,
            });
        };
        let opened = open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let (sender, receiver) = sync_channel(MAX_QUEUED);
        let path = path.to_owned();
        let unwritten = lost.clone();
        let write = move || write_all(&receiver, &path, opened, max_bytes, &unwritten);
        thread::Builder::new()
            .name("dsa-findings".to_owned())
            .spawn(write)
            .map_err(|error| error.to_string())?;
        let sink = Sink::File(sender);
        Ok(Self { sink, lost })
    }

    /// The lines of a replay since the last call. The next ones are of this time.
    pub(crate) fn take(&self, at: SystemTime) -> Vec<Value> {
        match &self.sink {
            Sink::Replay(replayed) => {
                let mut replayed = replayed.lock();
                replayed.at = at;
                std::mem::take(&mut replayed.lines)
            }
            Sink::Log | Sink::File(_) => Vec::new(),
        }
    }

    /// Lines that were taken and could not be written, each counted once.
    pub(crate) fn take_lost(&self) -> u64 {
        match self.lost.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.lost.swap(0, Ordering::Relaxed),
        }
    }

    /// Takes a line; returns whether it waits for the disk, or is in the log.
    pub(crate) fn put(&self, line: Value) -> bool {
        match &self.sink {
            Sink::File(sender) => sender.try_send(line.to_string()).is_ok(),
            Sink::Log => {
                tracing::warn!(target: "dsa", finding = %line, "message found to be wrong");
                true
            }
            Sink::Replay(replayed) => {
                replayed.lock().lines.push(line);
                true
            }
        }
    }

    /// The time of what is found now.
    pub(crate) fn time(&self) -> SystemTime {
        match &self.sink {
            Sink::Replay(replayed) => replayed.lock().at,
            Sink::Log | Sink::File(_) => SystemTime::now(),
        }
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    if crate::csv::is_other(path) {
        return Err(std::io::Error::other("is not a regular file"));
    }
    OpenOptions::new().create(true).append(true).open(path)
}

/// Whether a file is the one of that path still: it may have been moved or deleted.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    let both = file.metadata().ok().zip(std::fs::metadata(path).ok());
    both.is_some_and(|(file, path)| (file.dev(), file.ino()) == (path.dev(), path.ino()))
}

fn write_all(lines: &Receiver<String>, path: &Path, opened: File, max_bytes: u64, lost: &AtomicU64) {
    let mut file = Some(opened);
    for mut line in lines {
        line.push('\n');
        file = file.filter(|file| is_at(file, path));
        if file.is_none() {
            file = open(path).ok();
        }
        let length = file
            .as_ref()
            .and_then(|file| file.metadata().ok())
            .map_or(0, |data| data.len());
        if length > 0 && length + line.len() as u64 > max_bytes {
            let mut old = path.as_os_str().to_owned();
            old.push(".1");
            file = None;
            if let Err(error) = std::fs::rename(path, PathBuf::from(old)) {
                tracing::warn!(%error, path = %path.display(), "file of findings not renamed");
            }
        }
        if file.is_none() {
            file = open(path).ok();
        }
        let written = file.as_mut().map(|file| file.write_all(line.as_bytes()));
        if !matches!(written, Some(Ok(()))) {
            tracing::warn!(path = %path.display(), "finding not written");
            lost.fetch_add(1, Ordering::Relaxed);
            file = None;
        }
    }
}

/// A finding.
pub(crate) struct About<'a> {
    pub(crate) at: SystemTime,
    pub(crate) facts: &'a Facts<'a>,
    pub(crate) measure: Measure,
    pub(crate) partner: &'a str,
    pub(crate) peer: &'a str,
    pub(crate) direction: &'static str,
    pub(crate) outcome: &'static str,
    pub(crate) reason: &'a str,
}

impl About<'_> {
    /// The line.
    pub(crate) fn line(&self) -> Value {
        let facts = self.facts;
        let command = Dictionary::standard().command(facts.command, facts.application);
        let command = command.map(|known| known.short_name(facts.is_request));
        let time = self.at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut line = Map::new();
        let mut put = |name: &str, value: Value| {
            if !value.is_null() {
                line.insert(name.to_owned(), value);
            }
        };
        put("time", json!(time.as_secs_f64()));
        put("measure", json!(self.measure.as_str()));
        put("category", json!(self.measure.category()));
        put("outcome", json!(self.outcome));
        put("reason", json!(self.reason));
        put("partner", json!(self.partner));
        put("peer", json!(self.peer));
        put("direction", json!(self.direction));
        put("applicationId", json!(facts.application));
        put("commandCode", json!(facts.command));
        put("command", json!(command));
        put("isRequest", json!(facts.is_request));
        for (name, value) in [
            ("sessionId", facts.session_id.shown()),
            ("originHost", facts.origin_host.shown()),
            ("originRealm", facts.origin_realm.shown()),
            ("destinationHost", facts.destination_host.shown()),
            ("destinationRealm", facts.destination_realm.shown()),
            ("userName", facts.user_name.shown()),
        ] {
            put(name, value.map_or(Value::Null, text));
        }
        put(
            "imsi",
            facts
                .imsi
                .as_ref()
                .map_or(Value::Null, |imsi| text(imsi.as_bytes())),
        );
        let visited = facts.visited.shown().and_then(Network::of_visited);
        put(
            "visitedNetwork",
            visited.map_or(Value::Null, |network| json!(network.to_string())),
        );
        Value::Object(line)
    }
}

/// A value of a message: what is not text is replaced, what is long is cut.
fn text(value: &[u8]) -> Value {
    let shown = value.get(..MAX_VALUE).unwrap_or(value);
    let mut text = String::from_utf8_lossy(shown).into_owned();
    if shown.len() < value.len() {
        text.push('…');
    }
    Value::String(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn lines_go_to_the_path_when_its_file_was_moved() {
        let folder = tempfile::tempdir().unwrap();
        let (file, moved) = (folder.path().join("findings.jsonl"), folder.path().join("old"));
        let lines = Lines::new(Some(&file), 1_000).unwrap();
        let has = |path: &Path, text: &str| {
            let deadline = Instant::now() + Duration::from_secs(60);
            while !std::fs::read_to_string(path).is_ok_and(|found| found == text) {
                assert!(Instant::now() < deadline, "{}", path.display());
                thread::sleep(Duration::from_millis(5));
            }
        };
        assert!(lines.put("first".into()));
        has(&file, "\"first\"\n");
        std::fs::rename(&file, &moved).unwrap();
        assert!(lines.put("second".into()));
        has(&file, "\"second\"\n");
        has(&moved, "\"first\"\n");
        std::fs::remove_file(&file).unwrap();
        assert!(lines.put("third".into()));
        has(&file, "\"third\"\n");
    }

    #[test]
    fn lines_that_cannot_be_written_count_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("findings.jsonl");
        let lines = Lines::new(Some(&file), 1).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let wait = |is_done: &mut dyn FnMut() -> bool| {
            while !is_done() {
                assert!(Instant::now() < deadline);
                thread::sleep(Duration::from_millis(5));
            }
        };
        assert!(lines.put("first".into()));
        wait(&mut || std::fs::read_to_string(&file).is_ok_and(|text| text == "\"first\"\n"));
        assert_eq!(lines.take_lost(), 0);
        drop(folder);
        // The file has reached its size, and there is no directory for the next one.
        assert!(lines.put("second".into()) && lines.put("third".into()));
        let mut lost = 0;
        wait(&mut || {
            lost += lines.take_lost();
            lost == 2
        });
        assert_eq!(lines.take_lost(), 0);
    }
}
