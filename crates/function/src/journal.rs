//! Journals: lines of JSON that a thread of its own writes to files, in generations of bounded size.
//!
//! A line waits in a bounded queue; what finds no room is counted and dropped, so that no request waits for a disk. When the
//! files cannot be written, an alarm is active, earlier files stay as they are, and the thread tries again every minute.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use telemetry::{AlarmKind, Alarms};

use crate::generations::Generations;

/// Pause after an error, before new files are begun.
const RETRY: Duration = Duration::from_secs(60);
/// The ending of the files: lines of JSON.
pub(crate) const ENDING: &[&str] = &["jsonl"];

/// The files and the queue of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalFiles {
    /// Where the files are.
    pub directory: PathBuf,
    /// Name of the files, without their ending; also the subject of the alarm.
    pub name: &'static str,
    /// Number of files, at least 2; the oldest gives way to a new one.
    pub files: usize,
    /// Whether the newest file is continued after a start; otherwise a start begins a new one.
    pub continues: bool,
    /// Size after which a new file is begun.
    pub file_bytes: u64,
    /// Lines that wait to be written, at most.
    pub queue: usize,
    /// Bytes of these lines.
    pub queue_bytes: usize,
}

/// What has become of the lines of a journal.
#[derive(Debug, Default)]
pub struct JournalCounts {
    /// Lines that were handed to the operating system.
    pub written: AtomicU64,
    /// Lines that found no room in the queue.
    pub dropped: AtomicU64,
    /// Lines that were not written because of an error.
    pub unwritten: AtomicU64,
}

/// A journal. Its thread ends, after the last line, when it is dropped.
#[derive(Debug)]
pub struct Journal {
    sender: Option<SyncSender<Arc<str>>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    most_bytes: usize,
}

#[derive(Debug, Default)]
struct Shared {
    counts: JournalCounts,
    pending_bytes: AtomicUsize,
}

impl Journal {
    /// Starts the thread. The first line begins the first file.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(files: JournalFiles, alarms: Alarms, kind: &'static AlarmKind) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(files.queue);
        let shared = Arc::<Shared>::default();
        let most_bytes = files.queue_bytes;
        let writer = Writer {
            files,
            shared: shared.clone(),
            alarm: (alarms, kind),
            output: Output::None,
            retry: RETRY,
        };
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(&receiver))?;
        Ok(Self {
            sender: Some(sender),
            shared,
            thread: Some(thread),
            most_bytes,
        })
    }

    /// Takes a line, without its end; false: it found no room, and is counted.
    pub fn push(&self, line: Arc<str>) -> bool {
        let (bytes, pending) = (line.len(), &self.shared.pending_bytes);
        let before = pending.fetch_add(bytes, Ordering::Relaxed);
        let has_room = before + bytes <= self.most_bytes;
        let taken = has_room && self.sender.as_ref().is_some_and(|way| way.try_send(line).is_ok());
        if !taken {
            pending.fetch_sub(bytes, Ordering::Relaxed);
            self.shared.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    /// What has become of its lines.
    #[must_use]
    pub fn counts(&self) -> &JournalCounts {
        &self.shared.counts
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.sender = None;
        // An alarm of its own thread may hold the journal last.
        let current = std::thread::current().id();
        if let Some(thread) = self
            .thread
            .take()
            .filter(|thread| thread.thread().id() != current)
        {
            // A panic of the thread was logged by the thread.
            let _ = thread.join();
        }
    }
}

/// What the thread of a journal has.
struct Writer {
    files: JournalFiles,
    shared: Arc<Shared>,
    alarm: (Alarms, &'static AlarmKind),
    output: Output,
    retry: Duration,
}

/// What becomes of lines.
enum Output {
    /// No file was begun yet, or it is full.
    None,
    File {
        file: BufWriter<File>,
        left: u64,
        /// Lines that are buffered.
        lines: u64,
    },
    /// When another file is begun.
    Stopped(Instant),
}

impl Writer {
    fn run(mut self, lines: &Receiver<Arc<str>>) {
        while let Ok(line) = lines.recv() {
            self.take(&line);
            while let Ok(line) = lines.try_recv() {
                self.take(&line);
            }
            self.flush();
        }
    }

    fn take(&mut self, line: &str) {
        self.shared.pending_bytes.fetch_sub(line.len(), Ordering::Relaxed);
        let bytes = line.len() as u64 + 1;
        let is_full = match &self.output {
            Output::File { left, .. } => *left < bytes,
            _ => false,
        };
        if is_full {
            self.flush();
        }
        let begins = match &self.output {
            Output::None => true,
            Output::File { .. } => is_full,
            Output::Stopped(again) => Instant::now() >= *again,
        };
        if begins && !self.resume(bytes) {
            self.begin();
        }
        let Output::File { file, left, lines } = &mut self.output else {
            self.shared.counts.unwritten.fetch_add(1, Ordering::Relaxed);
            return;
        };
        *left = left.saturating_sub(bytes);
        *lines += 1;
        if let Err(error) = writeln!(file, "{line}") {
            self.stop(&error);
        }
    }

    /// Continues the newest file, once after the start, where it has room for this line.
    fn resume(&mut self, bytes: u64) -> bool {
        if !std::mem::take(&mut self.files.continues) {
            return false;
        }
        let JournalFiles {
            directory,
            name,
            file_bytes,
            ..
        } = &self.files;
        let path = directory.join(format!("{name}.{}", ENDING[0]));
        let open = || {
            if !std::fs::metadata(&path)?.is_file() {
                return Err(io::Error::other("no regular file"));
            }
            let file = File::options().read(true).append(true).open(path)?;
            let length = file.metadata()?.len();
            let mut last = [b'\n'];
            file.read_exact_at(&mut last[..length.min(1) as usize], length.saturating_sub(1))?;
            // What died while it wrote has left a part of a line, which the next one would continue.
            let room = match last == [b'\n'] {
                true => file_bytes.saturating_sub(length),
                false => 0,
            };
            io::Result::Ok((file, room))
        };
        let Ok((file, left)) = open() else { return false };
        if left < bytes {
            return false;
        }
        self.output = Output::File {
            file: BufWriter::new(file),
            left,
            lines: 0,
        };
        true
    }

    fn begin(&mut self) {
        let JournalFiles {
            directory,
            name,
            files,
            file_bytes,
            ..
        } = &self.files;
        let generations = Generations {
            directory,
            name,
            endings: ENDING,
            files: (*files).max(2),
        };
        let begun = generations
            .begin()
            .and_then(|mut files| files.pop().ok_or_else(|| io::Error::other("there is no file")));
        match begun {
            Ok(file) => {
                self.output = Output::File {
                    file: BufWriter::new(file),
                    left: *file_bytes,
                    lines: 0,
                };
                self.alarm.0.clear(self.alarm.1, name);
            }
            Err(error) => self.stop(&error),
        }
    }

    /// Hands what is buffered to the operating system.
    fn flush(&mut self) {
        let Output::File { file, lines, .. } = &mut self.output else {
            return;
        };
        match file.flush() {
            Ok(()) => {
                let count = std::mem::take(lines);
                self.shared.counts.written.fetch_add(count, Ordering::Relaxed);
            }
            Err(error) => self.stop(&error),
        }
    }

    /// An error: what is buffered is lost, the files stay as they are.
    fn stop(&mut self, error: &io::Error) {
        if let Output::File { file, lines, .. } = std::mem::replace(&mut self.output, Output::None) {
            self.shared.counts.unwritten.fetch_add(lines, Ordering::Relaxed);
            // Dropped as it is, it would write once more what has failed.
            drop(file.into_parts());
        }
        self.output = Output::Stopped(Instant::now() + self.retry);
        let name = self.files.name;
        tracing::error!(journal = name, %error, "journal cannot be written; its files stay as they are");
        self.alarm.0.raise(self.alarm.1, name, error.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::{Registry, Severity};

    const KIND: AlarmKind = AlarmKind {
        number: 1,
        name: "Journal",
        severity: Severity::Minor,
        text: "",
        advice: "",
    };

    fn writer(directory: &std::path::Path, alarms: &Alarms) -> Writer {
        Writer {
            files: JournalFiles {
                directory: directory.join("log"),
                name: "lines",
                files: 3,
                continues: false,
                file_bytes: 8,
                queue: 10,
                queue_bytes: 1_000,
            },
            shared: Arc::default(),
            alarm: (alarms.clone(), &KIND),
            output: Output::None,
            retry: Duration::ZERO,
        }
    }

    fn contents(directory: &std::path::Path) -> [String; 3] {
        ["lines.jsonl", "lines.1.jsonl", "lines.2.jsonl"]
            .map(|name| std::fs::read_to_string(directory.join("log").join(name)).unwrap_or_default())
    }

    fn put(writer: &mut Writer, line: &str) {
        writer
            .shared
            .pending_bytes
            .fetch_add(line.len(), Ordering::Relaxed);
        writer.take(line);
        writer.flush();
    }

    #[test]
    fn files_are_bounded_and_a_disk_without_room_costs_none_of_them() {
        let (folder, alarms) = (tempfile::tempdir().unwrap(), Alarms::new(&Registry::new()));
        let mut writer = writer(folder.path(), &alarms);
        for line in ["one", "two", "three", "four", "five"] {
            put(&mut writer, line);
        }
        assert_eq!(contents(folder.path()), ["five\n", "four\n", "three\n"]);
        // New files cannot be begun.
        let obstacle = folder.path().join("log/lines.new.jsonl");
        std::fs::create_dir(&obstacle).unwrap();
        put(&mut writer, "six");
        put(&mut writer, "seven");
        assert_eq!(contents(folder.path()), ["five\n", "four\n", "three\n"]);
        assert_eq!(alarms.active().len(), 1);
        assert_eq!(writer.shared.counts.unwritten.load(Ordering::Relaxed), 2);
        std::fs::remove_dir(&obstacle).unwrap();
        put(&mut writer, "eight");
        assert_eq!(contents(folder.path()), ["eight\n", "five\n", "four\n"]);
        assert!(alarms.active().is_empty());
        // A write to a file that is open fails.
        writer.output = Output::File {
            file: BufWriter::new(File::open("/dev/null").unwrap()),
            left: 100,
            lines: 0,
        };
        writer.retry = Duration::from_secs(3_600);
        put(&mut writer, "nine");
        put(&mut writer, "ten");
        assert_eq!(contents(folder.path()), ["eight\n", "five\n", "four\n"]);
        assert_eq!(writer.shared.counts.unwritten.load(Ordering::Relaxed), 4);
        assert_eq!(writer.shared.counts.written.load(Ordering::Relaxed), 6);
    }

    #[test]
    fn what_is_pending_is_written_at_the_end_and_what_finds_no_room_is_counted() {
        let (folder, alarms) = (tempfile::tempdir().unwrap(), Alarms::new(&Registry::new()));
        let files = JournalFiles {
            file_bytes: 1_000,
            ..writer(folder.path(), &alarms).files
        };
        let journal = Journal::start(files, alarms, &KIND).unwrap();
        assert!(!journal.push("x".repeat(2_000).into()));
        assert_eq!(journal.counts().dropped.load(Ordering::Relaxed), 1);
        assert!(journal.push("last".into()));
        drop(journal);
        assert_eq!(contents(folder.path())[0], "last\n");
    }
}
