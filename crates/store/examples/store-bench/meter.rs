//! What a phase cost: time, CPU of the whole process, memory, disk.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// A phase being measured.
pub(crate) struct Meter {
    begun: Instant,
    cpu: Duration,
}

impl Meter {
    pub(crate) fn start() -> Meter {
        Meter {
            begun: Instant::now(),
            cpu: cpu_time(),
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// One line: what, how many, how fast, CPU each, memory.
    pub(crate) fn report(&self, what: &str, count: u64) -> String {
        let (took, cpu) = (
            self.elapsed().as_secs_f64(),
            (cpu_time() - self.cpu).as_secs_f64(),
        );
        format!(
            "{what:<34} {count:>10} in {took:>7.2} s  {:>9.0}/s  cpu {:>6.2} us each  rss {:>6} MB (anonymous {} MB)",
            count as f64 / took,
            cpu * 1e6 / count as f64,
            memory("VmRSS:"),
            memory("RssAnon:"),
        )
    }
}

/// CPU time of all threads of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// A line of `/proc/self/status`, in MB.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        .unwrap_or(0)
        / 1_024
}

/// Bytes of all files below a directory.
pub(crate) fn disk(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(entries) = std::fs::read_dir(directory) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => disk(&entry.path()),
            // Blocks, not length: journals are preallocated.
            Ok(metadata) => metadata.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}
