//! Processors and memory of the machine, as Linux reports them in `/proc`.

/// Idle and all ticks of the machine's processors.
pub(super) fn cpu_ticks() -> Option<(u64, u64)> {
    parse_stat(&std::fs::read_to_string("/proc/stat").ok()?)
}

fn parse_stat(text: &str) -> Option<(u64, u64)> {
    let fields: Vec<u64> = text
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal; what guests use is counted in user.
    let idle = fields.get(3)? + fields.get(4)?;
    Some((idle, fields.iter().take(8).sum()))
}

/// Memory in use, in percent.
pub(super) fn memory_percent() -> Option<f64> {
    parse_meminfo(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse_meminfo(text: &str) -> Option<f64> {
    let of = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let (total, available) = (of("MemTotal:")?, of("MemAvailable:")?);
    (total > 0.0).then(|| 100.0 * (1.0 - available / total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_read() {
        assert_eq!(parse_stat("cpu  10 0 5 80 5 0 0 0 7 0\ncpu0 1"), Some((85, 100)));
        assert_eq!(parse_stat("cpu"), None);
        assert_eq!(
            parse_meminfo("MemTotal: 200 kB\nMemFree: 1 kB\nMemAvailable: 50 kB\n"),
            Some(75.0)
        );
        assert_eq!(parse_meminfo(""), None);
    }
}
