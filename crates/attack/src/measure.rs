//! What a process costs, as the kernel counts it (`proc(5)`).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Ticks of processor time per second as `/proc` shows it; the same on every Linux that we run on.
const TICKS: f64 = 100.0;

/// Resident memory in KiB.
#[must_use]
pub fn rss_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Processor time, user and system together, in seconds.
#[must_use]
pub fn cpu_s(pid: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything.
    let rest = stat.rsplit_once(')')?.1;
    let mut fields = rest.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS)
}

/// Length of a file in bytes.
#[must_use]
pub fn file_bytes(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Watches the resident memory of a process from a thread of its own.
#[derive(Debug)]
pub struct Watch {
    peak: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to watch. When the process holds more than `limit_kib`, it is killed: the machine is not the victim.
    #[must_use]
    pub fn begin(pid: u32, limit_kib: u64) -> Self {
        let (peak, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (its_peak, its_stop) = (peak.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            while !its_stop.load(Ordering::Relaxed) {
                let rss = rss_kib(pid).unwrap_or(0);
                its_peak.fetch_max(rss, Ordering::Relaxed);
                if rss > limit_kib {
                    let _ = std::process::Command::new("kill")
                        .args(["-KILL", &pid.to_string()])
                        .status();
                    return;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        Self {
            peak,
            stop,
            thread: Some(thread),
        }
    }

    /// Ends the watch; the most that was resident, in KiB.
    #[must_use]
    pub fn end(mut self) -> u64 {
        self.finish();
        self.peak.load(Ordering::Relaxed)
    }

    fn finish(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_process_can_be_measured() {
        let own = std::process::id();
        assert!(rss_kib(own).unwrap() > 100);
        assert!(cpu_s(own).is_some());
        let watch = Watch::begin(own, u64::MAX);
        std::thread::sleep(Duration::from_millis(30));
        assert!(watch.end() > 100);
        assert_eq!(rss_kib(u32::MAX), None);
    }
}
