//! The machine a run was made on.

use serde::{Deserialize, Serialize};

/// The machine a run was made on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// What the processor calls itself.
    pub cpu_model: String,
    /// Cores that the lab may use.
    pub cores: usize,
    /// Memory in MiB.
    pub memory_mb: u64,
    /// Name and release of the operating system's kernel.
    pub kernel: String,
    /// Architecture of the processor.
    pub architecture: String,
}

/// Clock source of the kernel, and the frequency of the first core in MHz; empty and 0 where unknown.
#[must_use]
pub fn clock() -> (String, f64) {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let cpus = read("/proc/cpuinfo");
    let mhz = cpus.lines().find_map(|line| {
        let (_, value) = line.strip_prefix("cpu MHz")?.split_once(':')?;
        value.trim().parse().ok()
    });
    (source.trim().to_owned(), mhz.unwrap_or(0.0))
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn this() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let value = |text: &str, key: &str| {
            text.lines()
                .find_map(|line| {
                    line.strip_prefix(key)?
                        .split_once(':')
                        .map(|(_, value)| value.trim().to_owned())
                })
                .unwrap_or_default()
        };
        let memory = value(&read("/proc/meminfo"), "MemTotal");
        let system = rustix::system::uname();
        Self {
            cpu_model: value(&read("/proc/cpuinfo"), "model name"),
            cores: super::cpus().map_or(0, |cpus| cpus.len()),
            memory_mb: memory
                .split(' ')
                .next()
                .and_then(|kb| kb.parse::<u64>().ok())
                .unwrap_or(0)
                / 1024,
            kernel: format!(
                "{} {}",
                system.sysname().to_string_lossy(),
                system.release().to_string_lossy()
            ),
            architecture: system.machine().to_string_lossy().into_owned(),
        }
    }
}
