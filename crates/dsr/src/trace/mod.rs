//! Traces: transactions that fit a trigger point are written with all their messages, as text and as pcapng. The newest
//! stay in memory, to be searched (`cache`), also over several routers (`collect`).
//!
//! Workers hand copies to the control thread through a bounded queue; what does not fit is counted, not waited
//! for.

mod cache;
mod collect;

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use diameter::capture::Capture;
use diameter::proto::{Dictionary, Message, text};

use crate::config::{Trace, TracePoint};
pub(crate) use cache::Cache;
pub(crate) use collect::collect;

/// Messages that wait to be written.
pub(crate) const QUEUE: usize = 8192;

/// A message to be written.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) at: SystemTime,
    /// Position of the trigger point.
    pub(crate) point: u8,
    /// `request in`, `request out`, `answer in`, `answer out`.
    pub(crate) what: &'static str,
    pub(crate) peer: Box<str>,
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) message: Vec<u8>,
}

/// Writes records.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    files: BTreeMap<String, Files>,
}

#[derive(Debug)]
struct Files {
    capture: Capture<BufWriter<File>>,
    log: BufWriter<File>,
    left: u64,
}

/// The endings of the files of a point.
const ENDINGS: [&str; 2] = ["pcapng", "log"];

/// A file of a point: that which is written, or an earlier one, the newest of these first.
fn path(directory: &Path, name: &str, generation: usize, ending: &str) -> PathBuf {
    directory.join(match generation {
        0 => format!("{name}.{ending}"),
        earlier => format!("{name}.{earlier}.{ending}"),
    })
}

/// Makes room for new files: those that are there become earlier ones, the earliest goes.
fn rotate(directory: &Path, point: &TracePoint) -> io::Result<()> {
    for ending in ENDINGS {
        for generation in (1..point.files).rev() {
            let from = path(directory, &point.name, generation - 1, ending);
            match std::fs::rename(from, path(directory, &point.name, generation, ending)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Creates a file that only its owner may read, or empties the one that is there.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    // The mode counts only for a file that was created.
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

impl Files {
    fn open(directory: &Path, point: &TracePoint) -> io::Result<Self> {
        // Messages name subscribers.
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        rotate(directory, point)?;
        let file = |ending: &str| create_private(&path(directory, &point.name, 0, ending));
        Ok(Self {
            capture: Capture::new(BufWriter::new(file("pcapng")?))?,
            log: BufWriter::new(file("log")?),
            left: point.messages,
        })
    }

    fn write(&mut self, record: &Record) -> io::Result<()> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(());
        };
        self.left = left;
        let Record {
            at,
            what,
            peer,
            from,
            to,
            message,
            ..
        } = record;
        self.capture
            .message(*at, *from, *to, &[message], &format!("{what} {peer}"))?;
        let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        writeln!(
            self.log,
            "# {}.{:06} {what} {peer} {from} > {to}",
            since.as_secs(),
            since.subsec_micros()
        )?;
        match Message::parse(message.as_slice()) {
            Ok(message) => writeln!(self.log, "{}\n", text::print(&message, Dictionary::standard())),
            Err(fault) => writeln!(self.log, "# {fault}\n"),
        }
    }
}

impl Writer {
    /// Writes a record of the point at its position in `trace`. What cannot be written is logged once.
    fn write(&mut self, trace: &Trace, record: &Record) {
        let Some(point) = trace.points.get(usize::from(record.point)) else {
            return;
        };
        // Full files give way to new ones, where the point may have several.
        if point.files > 1 && self.files.get(&point.name).is_some_and(|files| files.left == 0) {
            self.flush(trace);
            self.files.remove(&point.name);
        }
        if !self.files.contains_key(&point.name) {
            match Files::open(&trace.directory, point) {
                Ok(files) => {
                    self.files.insert(point.name.clone(), files);
                }
                Err(error) => {
                    let directory = trace.directory.display();
                    return tracing::error!(%error, %directory, point = point.name, "trace cannot be written");
                }
            }
        }
        if let Some(files) = self.files.get_mut(&point.name)
            && let Err(error) = files.write(record)
        {
            tracing::error!(%error, point = point.name, "trace cannot be written");
            files.left = 0;
        }
    }

    /// Writes a record, and caches it to be searched.
    pub(crate) fn take(&mut self, trace: &Trace, cache: &Cache, record: Record) {
        self.write(trace, &record);
        if let Some(point) = trace.points.get(usize::from(record.point)) {
            cache.add(trace, &point.name, record);
        }
    }

    /// Hands what is buffered to the operating system; ends the files of points that are gone.
    pub(crate) fn flush(&mut self, trace: &Trace) {
        self.files.retain(|name, files| {
            let flushed = files.capture.flush().and_then(|()| files.log.flush());
            if let Err(error) = flushed {
                tracing::error!(%error, point = name, "trace cannot be written");
            }
            trace.points.iter().any(|point| point.name == *name)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_may_read_traces() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("a/trace");
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        for _ in 0..2 {
            let point = TracePoint {
                name: "point".to_owned(),
                ..TracePoint::default()
            };
            Files::open(&directory, &point).unwrap();
            assert_eq!(mode(&directory), 0o700);
            for ending in ["pcapng", "log"] {
                let file = directory.join(format!("point.{ending}"));
                assert_eq!(mode(&file), 0o600);
                // As an earlier release left it.
                std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
            }
        }
    }
}
