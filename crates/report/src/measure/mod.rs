//! Measurement of processes from outside: processor time, memory, connections, and the machine they run on.

mod machine;
mod metrics;
mod process;

use std::io;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity};

pub use machine::{Machine, clock};
pub use metrics::Metrics;
pub use process::{Connections, Process, Thread, Usage};

/// The cores that this process may use.
///
/// # Errors
/// When the system does not report them.
pub fn cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// Processor time that any process has used on these cores since the machine booted, interrupts included; `None` when
/// the system does not report it. Time that a hypervisor took away counts as used.
#[must_use]
pub fn busy(cpus: &[usize]) -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let ticks = busy_ticks(&text, cpus);
    Some(Duration::from_secs_f64(
        ticks as f64 / rustix::param::clock_ticks_per_second().max(1) as f64,
    ))
}

/// Time that a hypervisor has taken away from these cores since the machine booted; `None` when the system does not
/// report it.
#[must_use]
pub fn stolen(cpus: &[usize]) -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let ticks = stolen_ticks(&text, cpus);
    Some(Duration::from_secs_f64(
        ticks as f64 / rustix::param::clock_ticks_per_second().max(1) as f64,
    ))
}

/// The eighth column of each core in `/proc/stat`.
fn stolen_ticks(stat: &str, cpus: &[usize]) -> u64 {
    let core = |line: &str| -> Option<u64> {
        let mut fields = line.split_whitespace();
        let number: usize = fields.next()?.strip_prefix("cpu")?.parse().ok()?;
        cpus.contains(&number)
            .then(|| fields.nth(7)?.parse().ok())
            .flatten()
    };
    stat.lines().filter_map(core).sum()
}

/// Ticks of `/proc/stat` (proc_stat(5)) that were neither idle nor waiting for a disk. Time of guests is part
/// of user time already.
fn busy_ticks(stat: &str, cpus: &[usize]) -> u64 {
    const IDLE: usize = 3;
    const WAITING: usize = 4;
    const GUESTS: usize = 8;
    let core = |line: &str| -> Option<u64> {
        let mut fields = line.split_whitespace();
        let number: usize = fields.next()?.strip_prefix("cpu")?.parse().ok()?;
        let counted = fields
            .take(GUESTS)
            .enumerate()
            .filter(|(at, _)| *at != IDLE && *at != WAITING);
        cpus.contains(&number)
            .then(|| counted.filter_map(|(_, ticks)| ticks.parse::<u64>().ok()).sum())
    };
    stat.lines().filter_map(core).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_all_but_idle_and_waiting_on_the_cores_asked_for() {
        let stat = "cpu 9 9 9 9\ncpu0 1 2 4 1000 1000 8 16 32 5000 0\ncpu1 64 0 0 1 1 0 0 0 0 0\nintr 7\n";
        assert_eq!(busy_ticks(stat, &[0]), 63);
        assert_eq!(busy_ticks(stat, &[0, 1]), 127);
        assert_eq!(busy_ticks(stat, &[2]), 0);
        assert_eq!(stolen_ticks(stat, &[0, 1]), 32);
        assert!(busy(&cpus().unwrap()).unwrap() > Duration::ZERO);
    }
}
