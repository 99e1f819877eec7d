//! The files of traces: generations for each trigger point.
//!
//! Earlier files give way only to new ones that have room on the disk: after an error the files stay as they are, and the
//! writer stops for that point.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use diameter::capture::Capture;
use diameter::proto::{Dictionary, Message, text};
use function::generations::Generations;

use super::{Cache, Record};
use crate::config::{Trace, TracePoint};

/// Pause after an error, before the files of a point are opened again.
const RETRY: Duration = Duration::from_secs(60);

/// Writes records.
#[derive(Debug)]
pub(crate) struct Writer {
    points: BTreeMap<String, Output>,
    retry: Duration,
    unwritten: u64,
}

/// What becomes of the records of a point.
#[derive(Debug)]
enum Output {
    Files(Files),
    Stopped(Stop),
}

/// Why no record of a point is written.
#[derive(Debug)]
struct Stop {
    reason: String,
    /// When new files are begun. `None`: never, as they would replace the only ones of the point; removing it from the
    /// settings ends the stop.
    again: Option<Instant>,
}

#[derive(Debug)]
struct Files {
    capture: Capture<BufWriter<File>>,
    log: BufWriter<File>,
    left: u64,
}

/// The endings of the files of a point.
const ENDINGS: [&str; 2] = ["pcapng", "log"];

/// The files of a point.
fn generations<'a>(directory: &'a Path, point: &'a TracePoint) -> Generations<'a> {
    Generations {
        directory,
        name: &point.name,
        endings: &ENDINGS,
        files: point.files,
    }
}

impl Files {
    /// Begins new files. Those that are there become earlier ones, unless the new ones cannot be created or have no room.
    fn open(directory: &Path, point: &TracePoint) -> io::Result<Self> {
        let mut begun = generations(directory, point).begin()?.into_iter();
        let mut next = || begun.next().ok_or_else(|| io::Error::other("a file is missing"));
        Ok(Self {
            capture: Capture::new(BufWriter::new(next()?))?,
            log: BufWriter::new(next()?),
            left: point.messages,
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.capture.flush()?;
        self.log.flush()
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

impl Default for Writer {
    fn default() -> Self {
        Self {
            points: BTreeMap::new(),
            retry: RETRY,
            unwritten: 0,
        }
    }
}

impl Writer {
    /// Writes a record, and caches it to be searched.
    pub(crate) fn take(&mut self, trace: &Trace, cache: &Cache, record: Record) {
        self.write(trace, &record);
        if let Some(point) = trace.points.get(usize::from(record.point)) {
            cache.add(trace, &point.name, record);
        }
    }

    /// Hands what is buffered to the operating system; ends the files of points that are gone.
    pub(crate) fn flush(&mut self, trace: &Trace) {
        let retry = self.retry;
        self.points.retain(|name, output| {
            let point = trace.points.iter().find(|point| point.name == *name);
            if let Output::Files(files) = output
                && let Err(error) = files.flush()
            {
                *output = stop(name, &error, again(point, retry));
            }
            point.is_some()
        });
    }

    /// Points whose records are not written, with the reasons.
    pub(crate) fn stopped(&self) -> impl Iterator<Item = (&str, &str)> {
        self.points.iter().filter_map(|(name, output)| match output {
            Output::Files(_) => None,
            Output::Stopped(stop) => Some((name.as_str(), stop.reason.as_str())),
        })
    }

    /// Number of records that were not written because of an error, since the last call.
    pub(crate) fn take_unwritten(&mut self) -> u64 {
        std::mem::take(&mut self.unwritten)
    }

    /// Writes a record of the point at its position in `trace`. An error is logged once, and stops the point.
    fn write(&mut self, trace: &Trace, record: &Record) {
        let Some(point) = trace.points.get(usize::from(record.point)) else {
            return;
        };
        let name = &point.name;
        // Full files give way to new ones, where the point may have several.
        if point.files > 1
            && let Some(Output::Files(files)) = self.points.get_mut(name)
            && files.left == 0
        {
            match files.flush() {
                Ok(()) => self.points.remove(name),
                Err(error) => {
                    let stopped = stop(name, &error, again(Some(point), self.retry));
                    self.points.insert(name.clone(), stopped)
                }
            };
        }
        let opens = match self.points.get(name) {
            None => true,
            Some(Output::Files(_)) => false,
            Some(Output::Stopped(stop)) => stop.again.is_some_and(|again| Instant::now() >= again),
        };
        if opens {
            let opened = match Files::open(&trace.directory, point) {
                Ok(files) => Output::Files(files),
                // Nothing was replaced, so another attempt loses nothing.
                Err(error) => stop(name, &error, Some(Instant::now() + self.retry)),
            };
            self.points.insert(name.clone(), opened);
        }
        let written = match self.points.get_mut(name) {
            Some(Output::Files(files)) => files.write(record),
            _ => {
                self.unwritten += 1;
                return;
            }
        };
        if let Err(error) = written {
            self.unwritten += 1;
            let stopped = stop(name, &error, again(Some(point), self.retry));
            self.points.insert(name.clone(), stopped);
        }
    }
}

/// When new files may follow ones that could not be written to the end.
fn again(point: Option<&TracePoint>, retry: Duration) -> Option<Instant> {
    point
        .filter(|point| point.files > 1)
        .map(|_| Instant::now() + retry)
}

fn stop(name: &str, error: &io::Error, again: Option<Instant>) -> Output {
    tracing::error!(point = name, %error, "trace cannot be written; its files stay as they are");
    Output::Stopped(Stop {
        reason: error.to_string(),
        again,
    })
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

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

    fn record(number: usize) -> Record {
        let local = "127.0.0.1:3868".parse().unwrap();
        Record {
            at: SystemTime::UNIX_EPOCH,
            point: 0,
            what: "request in",
            peer: format!("peer{number}").into(),
            from: local,
            to: local,
            // Larger than the buffers of the files.
            message: vec![0; 20_000],
        }
    }

    /// A disk without room must not cost the traces that are on it.
    #[test]
    fn an_error_leaves_the_files_that_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let point = TracePoint {
            name: "point".to_owned(),
            files: 3,
            messages: 1,
            ..TracePoint::default()
        };
        let trace = Trace {
            directory: folder.path().to_owned(),
            points: vec![point],
            ..Trace::default()
        };
        let mut writer = Writer {
            retry: Duration::ZERO,
            ..Writer::default()
        };
        let contents = || {
            let files = generations(folder.path(), &trace.points[0]);
            let read =
                |generation| std::fs::read_to_string(files.path(generation, "log")).unwrap_or_default();
            [0, 1, 2].map(|generation| {
                let text = read(generation);
                text.split(' ').nth(4).unwrap_or_default().to_owned()
            })
        };
        for number in 0..4 {
            writer.write(&trace, &record(number));
        }
        writer.flush(&trace);
        assert_eq!(contents(), ["peer3", "peer2", "peer1"]);
        // New files cannot be created.
        let obstacle = folder.path().join("point.new.log");
        std::fs::create_dir(&obstacle).unwrap();
        for number in 4..8 {
            writer.write(&trace, &record(number));
            writer.flush(&trace);
        }
        assert_eq!(contents(), ["peer3", "peer2", "peer1"]);
        assert_eq!((writer.stopped().count(), writer.take_unwritten()), (1, 4));
        // The files are open, and a write fails.
        std::fs::remove_dir(&obstacle).unwrap();
        writer.write(&trace, &record(8));
        writer.flush(&trace);
        assert_eq!((writer.stopped().count(), writer.take_unwritten()), (0, 0));
        assert_eq!(contents(), ["peer8", "peer3", "peer2"]);
        let unwritable = || BufWriter::new(File::open("/dev/null").unwrap());
        let Some(Output::Files(files)) = writer.points.get_mut("point") else {
            panic!("{writer:?}");
        };
        (files.log, files.left) = (unwritable(), 1);
        writer.retry = Duration::from_secs(3_600);
        for number in 9..12 {
            writer.write(&trace, &record(number));
            writer.flush(&trace);
        }
        assert_eq!(contents(), ["peer8", "peer3", "peer2"]);
        assert_eq!(
            writer.stopped().map(|(name, _)| name).collect::<Vec<_>>(),
            ["point"]
        );
        assert!(writer.take_unwritten() >= 2);
    }
}
