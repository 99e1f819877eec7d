//! What a comparison came to.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{BYTES, OURS, THEIRS};
use crate::bench::phase::Phase;
use crate::bench::turns::{self, Measured, round};
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
    /// By requests; one stands for a request with its answer.
    #[serde(flatten)]
    pub requests: turns::Row,
    /// Processor time per message; a request and its answer are two.
    pub cpu_us_per_message: f64,
    /// Messages for each second of a core.
    pub messages_per_core_second: f64,
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

impl From<turns::Row> for Row {
    fn from(requests: turns::Row) -> Self {
        let message = requests.cpu_us_per_request / MESSAGES_PER_REQUEST;
        Self {
            requests,
            cpu_us_per_message: round(message, 3),
            messages_per_core_second: round(1e6 / message.max(1e-9), 0),
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
            .map(|m| turns::Row::new(m, part(m)).into())
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
                    row.requests.name,
                    times(rows, &row.requests.name, THEIRS),
                    row.cpu_us_per_message,
                    figure(row.requests.rps),
                    figure(row.requests.p50_ms),
                    figure(row.requests.p99_ms)
                );
            }
            text.push('\n');
        }
        text
    }
}

/// Processor time per request of one program by that of another.
fn times(rows: &[Row], of: &str, by: &str) -> f64 {
    turns::times(rows.iter().map(|row| &row.requests), of, by)
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
                    row.requests.name,
                    figure(row.requests.rps),
                    row.requests.cpu_us_per_request,
                    row.cpu_us_per_message,
                    figure(row.messages_per_core_second),
                    figure(row.requests.p50_ms),
                    figure(row.requests.p99_ms),
                    row.requests.cores
                )?;
            }
            writeln!(
                f,
                "  messages per core-second: {ratio:.1} times freeDiameter's; processor time: {:.2} of HAProxy's for the bytes\n",
                times(rows, OURS, BYTES)
            )?;
        }
        for check in &self.checks {
            writeln!(f, "{check}")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  {note}"))
    }
}
