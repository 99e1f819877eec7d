//! Traces: transactions that fit a trigger point are written with all their messages, as text and as pcapng.
//!
//! Workers hand copies to the control thread through a bounded queue; what does not fit is counted, not waited
//! for.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::SystemTime;

use diameter::capture::Capture;
use diameter::proto::{Dictionary, Message, text};

use crate::config::Trace;

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
    fn open(directory: &Path, name: &str, messages: u64) -> io::Result<Self> {
        // Messages name subscribers.
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let file = |ending: &str| create_private(&directory.join(format!("{name}.{ending}")));
        Ok(Self {
            capture: Capture::new(BufWriter::new(file("pcapng")?))?,
            log: BufWriter::new(file("log")?),
            left: messages,
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
    pub(crate) fn write(&mut self, trace: &Trace, record: &Record) {
        let Some(point) = trace.points.get(usize::from(record.point)) else {
            return;
        };
        if !self.files.contains_key(&point.name) {
            match Files::open(&trace.directory, &point.name, point.messages) {
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
            Files::open(&directory, "point", 1).unwrap();
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
