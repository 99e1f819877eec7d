//! What a comparison came to.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::phase::Phase;
use super::{BYTES, Measured, OURS, THEIRS};
use crate::run::figure;
use ::report::Check;
use callmodel::dsr::MESSAGES_PER_REQUEST;
use report::measure::Machine;

/// Ours has to carry at least this many times freeDiameter's messages per core-second.
const BAR_RATIO: f64 = 8.0;
/// Ours may take at most this many microseconds of processor time per message.
const BAR_US: f64 = 4.0;

/// One program under one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The program.
    pub name: String,
    /// Processor time per request with its answer, in microseconds.
    pub cpu_us_per_request: f64,
    /// Requests answered rightly per second.
    pub rps: f64,
    /// Median latency, the simulators' own included.
    pub p50_ms: f64,
    /// 99th percentile of it.
    pub p99_ms: f64,
    /// Processor time per message; a request and its answer are two.
    pub cpu_us_per_message: f64,
    /// Messages for each second of a core.
    pub messages_per_core_second: f64,
    /// Cores in use on average.
    pub cores: f64,
    /// Cores that other processes took of those that the program was kept to.
    pub other_cores: f64,
    /// Share of the requests that were answered rightly.
    pub success: f64,
    /// The highest rate that held for a moment, if it was searched for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub knee_rps: Option<f64>,
}

/// Relays under one load; `target/bench/dsr.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Each near the most that it carries.
    pub rows: Vec<Row>,
    /// All at the same rate, which the slowest holds.
    pub equal_rate: Vec<Row>,
    /// How many times freeDiameter's messages per core-second ours carries, by `rows`.
    pub ratio: f64,
    /// The same by `equal_rate`.
    pub ratio_equal_rate: f64,
    /// Our processor time by that of HAProxy, which forwards the same bytes unread, by `equal_rate`.
    #[serde(default)]
    pub by_bytes_equal_rate: f64,
    /// Bytes of a request for a location update, on average.
    pub message_bytes: f64,
    /// Rounds of each.
    pub rounds: u32,
    /// The cores that each was kept to.
    pub pinned_cpus: Vec<usize>,
    /// Where it was measured.
    pub machine: Machine,
    /// What is wanted.
    pub checks: Vec<Check>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl Row {
    fn new(name: &str, phase: &Phase, knee: Option<f64>) -> Self {
        let request = phase.cpu_us_per_request();
        let message = request / MESSAGES_PER_REQUEST;
        Self {
            name: name.to_owned(),
            cpu_us_per_request: round(request, 3),
            rps: round(phase.rps(), 1),
            p50_ms: phase.quantile_ms(0.5),
            p99_ms: phase.quantile_ms(0.99),
            cpu_us_per_message: round(message, 3),
            messages_per_core_second: round(1e6 / message.max(1e-9), 0),
            cores: round(phase.cores(), 3),
            other_cores: round(phase.others(), 3),
            success: round(phase.success(), 6),
            knee_rps: knee.map(|knee| round(knee, 0)),
        }
    }
}

pub(super) fn comparison(
    measured: Vec<Measured>,
    message_bytes: f64,
    pinned: &[usize],
    rounds: u32,
) -> Comparison {
    let rows = |part: fn(&Measured) -> &Phase| -> Vec<Row> {
        measured
            .iter()
            .map(|m| Row::new(m.name, part(m), m.knee))
            .collect()
    };
    let (full, equal) = (rows(|m| &m.full), rows(|m| &m.equal));
    let (ratio, ratio_equal_rate) = (times(&full, THEIRS, OURS), times(&equal, THEIRS, OURS));
    let by_bytes_equal_rate = times(&equal, OURS, BYTES);
    let ours = full.first().map_or(0.0, |row| row.cpu_us_per_message);
    let mut notes = Vec::new();
    for m in &measured {
        let busy = m.full.generator.as_secs_f64() / m.full.seconds.max(1e-3);
        if m.full.cores() < 0.8 * pinned.len().max(1) as f64 {
            notes.push(format!(
                "{}: its cores were not full ({:.2} of {} in use, generator {:.0}% busy): it may carry more",
                m.name,
                m.full.cores(),
                pinned.len().max(1),
                busy * 100.0
            ));
        }
        if !pinned.is_empty() && m.full.others() > 0.05 {
            notes.push(format!(
                "{}: disturbed, others took {:.2} of its cores",
                m.name,
                m.full.others()
            ));
        }
        notes.extend(m.full.examples.iter().take(3).map(|e| format!("{}: {e}", m.name)));
    }
    Comparison {
        checks: vec![
            Check::new(
                "messages per core-second",
                format!("at least {BAR_RATIO} times freeDiameter's"),
                format!("{ratio:.1} times"),
                ratio >= BAR_RATIO,
            ),
            Check::new(
                "processor time per message",
                format!("at most {BAR_US} µs"),
                format!("{ours:.2} µs"),
                ours <= BAR_US,
            ),
        ],
        rows: full,
        equal_rate: equal,
        ratio: round(ratio, 2),
        ratio_equal_rate: round(ratio_equal_rate, 2),
        by_bytes_equal_rate: round(by_bytes_equal_rate, 2),
        message_bytes: round(message_bytes, 0),
        rounds,
        pinned_cpus: pinned.to_vec(),
        machine: Machine::this(),
        notes,
    }
}

impl Comparison {
    /// The table as Markdown, ratios first.
    #[must_use]
    pub fn markdown(&self) -> String {
        use fmt::Write;
        let mut text = String::new();
        for (title, rows) in [
            ("Near the most that each carries", &self.rows),
            ("All at one rate", &self.equal_rate),
        ] {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{title}; `make bench-dsr` on {} ({} cores)\n\n\
                 | what | processor time by freeDiameter's | µs a message | requests/s | p50 ms | p99 ms |\n\
                 |---|--:|--:|--:|--:|--:|",
                self.machine.cpu_model, self.machine.cores
            );
            for row in rows {
                let _ = writeln!(
                    text,
                    "| {} | **{:.3}** | {:.2} | {} | {} | {} |",
                    row.name,
                    times(rows, &row.name, THEIRS),
                    row.cpu_us_per_message,
                    figure(row.rps),
                    figure(row.p50_ms),
                    figure(row.p99_ms)
                );
            }
            text.push('\n');
        }
        text
    }
}

/// Processor time per request of one program by that of another.
fn times(rows: &[Row], of: &str, by: &str) -> f64 {
    let cpu = |name: &str| {
        let row = rows.iter().find(|row| row.name == name);
        row.map_or(f64::NAN, |row| row.cpu_us_per_request)
    };
    cpu(of) / cpu(by).max(1e-9)
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (title, rows, ratio) in [
            ("Near the most that each carries:", &self.rows, self.ratio),
            ("All at one rate:", &self.equal_rate, self.ratio_equal_rate),
        ] {
            writeln!(f, "{title}")?;
            writeln!(
                f,
                "  {:<14}{:>12}{:>14}{:>14}{:>20}{:>10}{:>10}{:>8}",
                "", "requests/s", "µs/request", "µs/message", "messages/core-s", "p50 ms", "p99 ms", "cores"
            )?;
            for row in rows {
                writeln!(
                    f,
                    "  {:<14}{:>12}{:>14.2}{:>14.2}{:>20}{:>10}{:>10}{:>8.2}",
                    row.name,
                    figure(row.rps),
                    row.cpu_us_per_request,
                    row.cpu_us_per_message,
                    figure(row.messages_per_core_second),
                    figure(row.p50_ms),
                    figure(row.p99_ms),
                    row.cores
                )?;
            }
            writeln!(
                f,
                "  messages per core-second: {ratio:.1} times freeDiameter's; processor time: {:.2} of HAProxy's for the bytes\n",
                times(rows, OURS, BYTES)
            )?;
        }
        for check in &self.checks {
            let mark = if check.pass { "✓" } else { "✗" };
            writeln!(
                f,
                "{mark} {}: {} (expected: {})",
                check.name, check.got, check.expected
            )?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  {note}"))
    }
}

fn round(number: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (number * factor).round() / factor
}
