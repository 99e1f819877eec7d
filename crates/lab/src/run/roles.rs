//! Processor time of a function by the roles of its threads, sampled each second.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ::report::RoleFigures;
use report::measure::Thread;

/// What the threads of a function have used since [`Roles::clear`].
#[derive(Debug, Default)]
pub(super) struct Roles {
    /// When the last sample was taken, and the processor time of each thread then.
    last: Option<(Instant, BTreeMap<u32, Duration>)>,
    by_role: BTreeMap<String, Role>,
    measured: Duration,
}

#[derive(Debug, Default)]
struct Role {
    threads: u32,
    cpu: Duration,
    cores_max: f64,
}

impl Roles {
    /// Forgets all roles.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds what was used since the last sample; the first one only begins.
    pub(super) fn sample(&mut self, now: Instant, threads: &[Thread]) {
        let cpu = threads.iter().map(|thread| (thread.id, thread.cpu)).collect();
        let Some((then, before)) = self.last.replace((now, cpu)) else {
            return;
        };
        let passed = now.saturating_duration_since(then);
        if passed.is_zero() {
            return;
        }
        self.measured += passed;
        let mut used = BTreeMap::<&str, (u32, Duration)>::new();
        for thread in threads {
            let before = before.get(&thread.id).copied().unwrap_or_default();
            let (count, cpu) = used.entry(role_of(&thread.name)).or_default();
            *count += 1;
            *cpu += thread.cpu.saturating_sub(before);
        }
        for (name, (count, cpu)) in used {
            let role = self.by_role.entry(name.to_owned()).or_default();
            role.threads = role.threads.max(count);
            role.cpu += cpu;
            role.cores_max = role.cores_max.max(cpu.as_secs_f64() / passed.as_secs_f64());
        }
    }

    /// The figures of each role that has used anything, the most first.
    pub(super) fn figures(&self) -> Vec<RoleFigures> {
        let seconds = self.measured.as_secs_f64().max(1e-3);
        let rounded = |number: f64| (number * 1000.0).round() / 1000.0;
        let mut figures: Vec<RoleFigures> = self
            .by_role
            .iter()
            .map(|(name, role)| RoleFigures {
                name: name.clone(),
                threads: role.threads,
                cpu_cores_avg: rounded(role.cpu.as_secs_f64() / seconds),
                cpu_cores_max: rounded(role.cores_max),
            })
            .filter(|one| one.cpu_cores_max > 0.0)
            .collect();
        figures.sort_by(|a, b| b.cpu_cores_avg.total_cmp(&a.cpu_cores_avg));
        figures
    }
}

/// The name of a thread without its number: `scp-3` is one of `scp`.
fn role_of(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((role, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            role
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(id: u32, name: &str, millis: u64) -> Thread {
        Thread {
            id,
            name: name.to_owned(),
            cpu: Duration::from_millis(millis),
        }
    }

    #[test]
    fn threads_of_one_role_are_added_up() {
        let mut roles = Roles::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        roles.sample(at(0), &[thread(1, "scp-0", 500), thread(2, "scp-control", 10)]);
        let second = [
            thread(1, "scp-0", 1000),
            thread(2, "scp-control", 10),
            thread(3, "scp-1", 300),
        ];
        roles.sample(at(1), &second);
        roles.sample(at(2), &[thread(1, "scp-0", 1100), thread(3, "scp-1", 400)]);
        let figures = roles.figures();
        assert_eq!(figures.len(), 1, "{figures:?}");
        let workers = &figures[0];
        assert_eq!((workers.name.as_str(), workers.threads), ("scp", 2));
        assert!((workers.cpu_cores_avg - 0.5).abs() < 1e-9, "{workers:?}");
        assert!((workers.cpu_cores_max - 0.8).abs() < 1e-9, "{workers:?}");
    }
}
