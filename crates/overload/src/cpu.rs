//! CPU load: CPU time that a thread or process has used, as a share of the time that passed.

use std::time::{Duration, Instant};

/// Turns readings of CPU time into load.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuLoad {
    last: Option<(Instant, Duration)>,
}

impl CpuLoad {
    /// Creates a meter without a reading.
    #[must_use]
    pub const fn new() -> Self {
        Self { last: None }
    }

    /// Takes a reading: CPU time used since the thread or process began. Returns the load since the last
    /// reading in percent of one core (of a process with several threads it may exceed 100); `None` for the
    /// first reading, and when no time has passed.
    pub fn feed(&mut self, used: Duration, now: Instant) -> Option<f64> {
        let (then, before) = self.last.replace((now, used))?;
        let wall = now.saturating_duration_since(then).as_secs_f64();
        let busy = used.saturating_sub(before).as_secs_f64();
        (wall > 0.0).then(|| 100.0 * busy / wall)
    }
}

/// Readers of CPU time from `/proc`, the only IO of this crate.
pub mod read {
    use std::time::Duration;

    /// CPU time of the calling thread; `None` where the system does not report it.
    #[must_use]
    pub fn thread() -> Option<Duration> {
        schedstat("/proc/thread-self/schedstat")
    }

    /// CPU time of this process: the sum of its threads that live.
    #[must_use]
    pub fn process() -> Option<Duration> {
        let mut sum = Duration::ZERO;
        for task in std::fs::read_dir("/proc/self/task").ok()? {
            let path = task.ok()?.path().join("schedstat");
            // A thread may end while the list is read.
            sum += schedstat(path).unwrap_or_default();
        }
        Some(sum)
    }

    /// The first number of schedstat is the time on the CPU in nanoseconds: finer than the ticks of `stat`.
    fn schedstat(path: impl AsRef<std::path::Path>) -> Option<Duration> {
        let text = std::fs::read_to_string(path).ok()?;
        let nanos = text.split_whitespace().next()?.parse().ok()?;
        Some(Duration::from_nanos(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_used_time_over_passed_time() {
        let start = Instant::now();
        let mut load = CpuLoad::new();
        assert_eq!(load.feed(Duration::from_secs(5), start), None);
        assert_eq!(load.feed(Duration::from_secs(5), start), None);
        let later = start + Duration::from_secs(2);
        assert_eq!(load.feed(Duration::from_secs(6), later), Some(50.0));
        // A reading that went backwards counts as a load of 0.
        assert_eq!(
            load.feed(Duration::from_secs(1), later + Duration::from_secs(1)),
            Some(0.0)
        );
    }

    #[test]
    fn this_thread_uses_time() {
        if let (Some(before), Some(process)) = (read::thread(), read::process()) {
            let mut sum = 0_u64;
            while read::thread().unwrap() == before {
                sum = (0..100_000).fold(sum, u64::wrapping_add);
            }
            assert!(process > Duration::ZERO, "{sum}");
        }
    }
}
