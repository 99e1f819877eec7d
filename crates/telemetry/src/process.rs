//! This process as the system sees it: CPU time, memory, descriptors, threads, and the build it runs.

use std::time::Duration;

use crate::metrics::{Alert, Registry, When};

crate::declare! {
    /// Metrics of the process.
    pub METRICS;
    counter CPU = "signalbox_process_cpu_seconds_total" []: "CPU time that this process has used, in user and kernel mode.";
    gauge RESIDENT = "signalbox_process_resident_memory_bytes" []: "Memory of this process that is in RAM.";
    gauge DESCRIPTORS = "signalbox_process_open_descriptors" []: "File descriptors that are open.";
    gauge THREADS = "signalbox_process_threads" []: "Threads of this process.";
    gauge STARTED = "signalbox_process_start_time_seconds" []: "When this process started, in seconds since 1970.",
        alert Alert::major(When::ChangesAbove(2), 0, "The process restarts over and over: the last lines of its log before each start have the reason.");
    gauge BUILD = "signalbox_build_info" ["version", "commit"]: "The build that this process runs; always 1.";
}

/// CPU time and memory of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time used so far.
    pub cpu: Duration,
    /// Bytes in RAM.
    pub resident: u64,
    /// Threads.
    pub threads: u64,
    /// When it started, in clock ticks since the machine did.
    started: u64,
}

/// What this process uses; `None` where there is no `/proc`.
#[must_use]
pub fn usage() -> Option<Usage> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    parse_stat(
        &stat,
        rustix::param::clock_ticks_per_second(),
        rustix::param::page_size() as u64,
    )
}

/// Reads `/proc/<pid>/stat` (proc_pid_stat(5)).
fn parse_stat(stat: &str, ticks: u64, page: u64) -> Option<Usage> {
    // The name in parentheses may hold anything, parentheses too: fields count from the last one.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // Field 3 of the manual is the first one here.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let ticks = ticks.max(1);
    let spent = field(14)?.checked_add(field(15)?)?;
    Some(Usage {
        cpu: Duration::from_nanos(u64::try_from(u128::from(spent) * 1_000_000_000 / u128::from(ticks)).ok()?),
        threads: field(20)?,
        started: field(22)?,
        resident: field(24)?.checked_mul(page)?,
    })
}

/// Seconds since 1970 at which the process started.
fn start_time() -> f64 {
    let started = usage().map_or(0, |usage| usage.started) as f64;
    let boot = std::fs::read_to_string("/proc/stat")
        .ok()
        .and_then(|stat| {
            stat.lines()
                .find_map(|line| line.strip_prefix("btime ")?.trim().parse::<f64>().ok())
        })
        .unwrap_or_default();
    boot + started / rustix::param::clock_ticks_per_second().max(1) as f64
}

/// Registers the metrics of this process, which runs this build.
pub fn register(registry: &Registry, version: &str, commit: &str) {
    registry.gauges(&BUILD).get(&[version, commit]).set(1.0);
    registry.observe(&CPU, || usage().unwrap_or_default().cpu.as_secs_f64());
    registry.observe(&RESIDENT, || usage().unwrap_or_default().resident as f64);
    registry.observe(&THREADS, || usage().unwrap_or_default().threads as f64);
    registry.observe(&DESCRIPTORS, || {
        std::fs::read_dir("/proc/self/fd").map_or(0.0, |entries| entries.count() as f64)
    });
    let started = start_time();
    registry.observe(&STARTED, move || started);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_stat_are_found_behind_an_odd_name() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 9 0 4242 1000 300 184467 1 1 0";
        let usage = parse_stat(stat, 100, 4096).unwrap();
        assert_eq!(
            usage,
            Usage {
                cpu: Duration::from_secs(3),
                resident: 300 * 4096,
                threads: 9,
                started: 4242
            }
        );
        for odd in [
            "",
            "7 (x",
            "7 (x) S",
            "7 (x) S a b c d e f g h i j k l m n o p q r s t u v",
        ] {
            assert_eq!(parse_stat(odd, 100, 4096), None, "{odd}");
        }
    }

    #[test]
    fn this_process_uses_something() {
        let registry = Registry::new();
        register(&registry, "1.2.3", "abc1234");
        assert!(usage().unwrap().resident > 0);
        let page = registry.render();
        assert!(page.contains("signalbox_process_threads"));
        assert!(
            page.contains("signalbox_build_info{version=\"1.2.3\",commit=\"abc1234\"} 1"),
            "{page}"
        );
        assert!(start_time() > 1e9);
    }
}
