//! What a load came to.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Settings;
use crate::bench::phase::Phase;
use crate::run::database::Outcome;
use crate::run::figure;
use ::report::Check;
use loadgen::FailureKind;
use report::measure::Machine;

/// Look-ups that a second of processor time has to be enough for: ten times those of the guide's database processor.
const BAR: f64 = 800_000.0;
/// Failures that a busy machine explains.
const LATE: [FailureKind; 3] = [FailureKind::Timeout, FailureKind::Overflow, FailureKind::Refused];
/// The p99 with changes beside the load may be this many times that without, or this many milliseconds.
const TIMES: f64 = 1.5;
const LEAST_MS: f64 = 2.0;

/// A database processor under load; `target/bench/dp.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Numbers of the processor.
    pub numbers: u64,
    /// Connections to it.
    pub connections: u32,
    /// Seconds until server and processor were ready.
    pub ready_seconds: f64,
    /// Resident memory of the processor in the end, in bytes.
    pub resident_bytes: u64,
    /// The first one without changes, then minute by minute.
    pub parts: Vec<Part>,
    /// Changes beside the load; none: there were none.
    pub writes: Option<Visible>,
    /// Cores that the server has used meanwhile.
    pub server_cores: f64,
    /// The cores that the processor was kept to.
    pub pinned_cpus: Vec<usize>,
    /// Where it was measured.
    pub machine: Machine,
    /// What is wanted.
    pub checks: Vec<Check>,
    /// What went wrong, by examples.
    pub notes: Vec<String>,
}

/// A part of the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// What it is.
    pub name: String,
    /// How long it was.
    pub seconds: f64,
    /// Right answers a second.
    pub rps: f64,
    /// Look-ups without a right answer.
    pub failed: u64,
    /// Those of them that were answered wrongly, or lost with a connection; the others were late, or not sent in time.
    pub wrong: u64,
    /// Processor time of the processor's process for each look-up, kernel included.
    pub cpu_us_per_lookup: f64,
    /// Cores that it has used.
    pub cores: f64,
    /// Latencies in milliseconds, from the moment at which a look-up was to be sent.
    pub p50_ms: f64,
    /// The same.
    pub p99_ms: f64,
    /// The same.
    pub p999_ms: f64,
}

/// Changes beside the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Visible {
    /// Those that the server has acknowledged.
    pub acknowledged: u64,
    /// The same a second.
    pub per_second: f64,
    /// Milliseconds from an acknowledgement until the processor has answered the change.
    pub p50_ms: f64,
    /// The same.
    pub p99_ms: f64,
    /// The same.
    pub max_ms: f64,
    /// Acknowledged changes that the server or the processor did not have in the end.
    pub lost: u64,
}

/// What was measured beside the load.
pub(super) struct Around {
    pub(super) ready_seconds: f64,
    pub(super) resident_bytes: u64,
    pub(super) server_cores: f64,
}

pub(super) fn figures(
    settings: &Settings,
    phases: &[(String, Phase)],
    writes: Option<&Outcome>,
    around: &Around,
) -> Figures {
    let examples = phases.iter().flat_map(|(_, phase)| phase.examples.iter().take(3));
    let parts: Vec<Part> = phases.iter().map(|(name, phase)| part(name, phase)).collect();
    Figures {
        numbers: settings.numbers,
        connections: settings.connections,
        ready_seconds: rounded(around.ready_seconds),
        resident_bytes: around.resident_bytes,
        checks: judge(&parts, writes),
        parts,
        writes: writes.map(visible),
        server_cores: rounded(around.server_cores),
        pinned_cpus: settings.site.pin.clone(),
        machine: Machine::this(),
        notes: examples.take(10).cloned().collect(),
    }
}

fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

fn part(name: &str, phase: &Phase) -> Part {
    Part {
        name: name.to_owned(),
        seconds: rounded(phase.seconds),
        rps: phase.rps().round(),
        failed: phase.total.failures(),
        wrong: phase.total.failures() - phase.total.failures_of(&LATE),
        cpu_us_per_lookup: rounded(phase.cpu_us_per_request()),
        cores: rounded(phase.cores()),
        p50_ms: rounded(phase.quantile_ms(0.5)),
        p99_ms: rounded(phase.quantile_ms(0.99)),
        p999_ms: rounded(phase.quantile_ms(0.999)),
    }
}

fn visible(outcome: &Outcome) -> Visible {
    let quantile = |quantile| {
        let each = outcome.visibility.iter().map(|one| one.quantile_ms(quantile));
        rounded(each.fold(0.0, f64::max))
    };
    Visible {
        acknowledged: outcome.acknowledged,
        per_second: rounded(outcome.rate()),
        p50_ms: quantile(0.5),
        p99_ms: quantile(0.99),
        max_ms: quantile(1.0),
        lost: outcome.lost(),
    }
}

fn judge(parts: &[Part], writes: Option<&Outcome>) -> Vec<Check> {
    let sum = |of: fn(&Part) -> u64| -> u64 { parts.iter().map(of).sum() };
    let (failed, wrong) = (sum(|part| part.failed), sum(|part| part.wrong));
    let each = |of: fn(&Part) -> f64| parts.iter().map(of).fold(0.0, f64::max);
    let cpu = each(|part| part.cpu_us_per_lookup);
    let mut checks = vec![
        Check::new(
            "look-ups are answered",
            "each by its destination, or as unknown",
            format!(
                "{wrong} answered wrongly or lost, {} late or not sent",
                failed - wrong
            ),
            failed == 0,
        )
        .of_time_if(wrong == 0),
        Check::new(
            "processor time",
            format!("{} look-ups in a second of it at least", figure(BAR)),
            format!("{} ({} µs each)", figure(1e6 / cpu.max(1e-3)), figure(cpu)),
            cpu > 0.0 && 1e6 / cpu >= BAR,
        )
        .of_time(),
    ];
    let Some(outcome) = writes else { return checks };
    checks.extend([
        outcome.judge_rate(),
        outcome.judge_visibility(),
        outcome.judge_lost(),
    ]);
    if let Some((first, rest)) = parts.split_first() {
        let most = (first.p99_ms * TIMES).max(LEAST_MS);
        let worst = rest.iter().map(|part| part.p99_ms).fold(0.0, f64::max);
        checks.push(
            Check::new(
                "latency beside changes",
                format!(
                    "p99 of each minute up to {} ms; without changes {}",
                    figure(most),
                    figure(first.p99_ms)
                ),
                format!("{} ms in the worst", figure(worst)),
                worst <= most,
            )
            .of_time(),
        );
    }
    checks
}

impl Figures {
    /// The tables as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        use fmt::Write;
        let mut text = format!(
            "{} numbers, {} connections; `signalbox lab bench dp` on {} ({} cores)\n\n\
             | load | look-ups/s | failed | µs a look-up | cores | p50 ms | p99 ms | p99.9 ms |\n\
             |---|--:|--:|--:|--:|--:|--:|--:|\n",
            figure(self.numbers as f64),
            self.connections,
            self.machine.cpu_model,
            self.machine.cores
        );
        for part in &self.parts {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "| {} | {} | {} | {:.3} | {:.3} | {} | {} | {} |",
                part.name,
                figure(part.rps),
                part.failed,
                part.cpu_us_per_lookup,
                part.cores,
                figure(part.p50_ms),
                figure(part.p99_ms),
                figure(part.p999_ms)
            );
        }
        if let Some(writes) = &self.writes {
            let _ = writeln!(
                text,
                "\n{} changes acknowledged, {} a second; visible after {} ms (p50), {} ms (p99), {} ms at most; {} lost.",
                writes.acknowledged,
                figure(writes.per_second),
                figure(writes.p50_ms),
                figure(writes.p99_ms),
                figure(writes.max_ms),
                writes.lost
            );
        }
        let _ = writeln!(
            text,
            "\nReady after {} s, {} MB resident; the server used {} cores.",
            figure(self.ready_seconds),
            figure(self.resident_bytes as f64 / 1e6),
            figure(self.server_cores)
        );
        text
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.markdown())?;
        for check in &self.checks {
            writeln!(f, "{check}")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  {note}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(late: u64, wrong: u64, latency_ms: u64) -> (String, Phase) {
        let mut phase = Phase {
            seconds: 1.0,
            cpu: std::time::Duration::from_millis(500),
            ..Phase::default()
        };
        phase.total.succeeded = 1_000_000;
        phase.total.failed[FailureKind::Timeout as usize] = late;
        phase.total.failed[FailureKind::Wrong as usize] = wrong;
        phase.total.time(latency_ms * 1_000);
        ("minute 1".to_owned(), phase)
    }

    #[test]
    fn wrong_answers_fail_on_any_machine_and_late_ones_on_a_fast_one() {
        let judged = |late, wrong| {
            let (name, phase) = phase(late, wrong, 1);
            judge(&[part(&name, &phase)], None)
        };
        let states = |checks: &[Check]| -> Vec<(bool, bool)> {
            checks.iter().map(|check| (check.pass, check.of_time)).collect()
        };
        assert_eq!(states(&judged(0, 0)), [(true, true), (true, true)]);
        assert_eq!(states(&judged(1, 0))[0], (false, true));
        assert_eq!(states(&judged(1, 1))[0], (false, false));
    }
}
