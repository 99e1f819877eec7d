//! What a comparison came to.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{FRAME_BYTES, OURS, RULES, SCREENED, THEIRS};
use crate::bench::phase::Phase;
use crate::bench::turns::{self, Measured, Row};
use crate::run::figure;
use ::report::Check;
use report::measure::Machine;

/// Ours may take at most this share of osmo-stp's processor time per MSU.
const BAR: f64 = 0.4;
/// With screening rules ours may take at most this many times its processor time without.
const SCREENING: f64 = 1.3;

/// STPs under one load; `target/bench/stp.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Each near the most that it carries; a request stands for an MSU.
    pub rows: Vec<Row>,
    /// Both at the same rate, which the slower holds.
    pub equal_rate: Vec<Row>,
    /// Our processor time per MSU by osmo-stp's, by `rows`.
    pub ratio: f64,
    /// The same by `equal_rate`.
    pub ratio_equal_rate: f64,
    /// Our processor time per MSU with 1,000 screening rules by that without, by `equal_rate`.
    pub screening: f64,
    /// Octets of a frame.
    pub frame_bytes: u16,
    /// Rounds of each.
    pub rounds: u32,
    /// The cores that each was kept to.
    pub pinned_cpus: Vec<usize>,
    /// Where it was measured.
    pub machine: Machine,
    /// What is wanted.
    pub checks: Vec<Check>,
    /// What went wrong, by examples.
    pub notes: Vec<String>,
}

pub(super) fn comparison(measured: &[Measured], pinned: &[usize], rounds: u32) -> Comparison {
    let rows = |part: fn(&Measured) -> &Phase| -> Vec<Row> {
        measured.iter().map(|one| Row::new(one, part(one))).collect()
    };
    let (full, equal) = (rows(|one| &one.full), rows(|one| &one.equal));
    let (ratio, ratio_equal_rate) = (times(&full, OURS, THEIRS), times(&equal, OURS, THEIRS));
    let screening = times(&equal, SCREENED, OURS);
    let examples = measured
        .iter()
        .flat_map(|one| one.full.examples.iter().take(3).map(|text| (one.name, text)));
    let check = |name: &str, (most, whose): (f64, &str), ratio: f64| {
        Check::new(
            name,
            format!("at most {most} times {whose}"),
            format!("{ratio:.2} times"),
            ratio <= most,
        )
    };
    let theirs = (BAR, "osmo-stp's");
    Comparison {
        checks: vec![
            check("processor time per MSU near the most", theirs, ratio),
            check("processor time per MSU at one rate", theirs, ratio_equal_rate),
            check(
                &format!("processor time per MSU with {RULES} screening rules"),
                (SCREENING, "that without"),
                screening,
            ),
        ],
        notes: examples.map(|(name, text)| format!("{name}: {text}")).collect(),
        rows: full,
        equal_rate: equal,
        ratio,
        ratio_equal_rate,
        screening,
        frame_bytes: FRAME_BYTES,
        rounds,
        pinned_cpus: pinned.to_vec(),
        machine: Machine::this(),
    }
}

/// Processor time per MSU of one program by that of another.
fn times(rows: &[Row], of: &str, by: &str) -> f64 {
    turns::times(&rows.iter().collect::<Vec<_>>(), of, by)
}

impl Comparison {
    /// The table as Markdown, ratios first.
    #[must_use]
    pub fn markdown(&self) -> String {
        use fmt::Write;
        let mut text = format!(
            "MSUs of {} octets over IPA; `make bench-stp` on {} ({} cores)\n\n\
             | load | what | processor time by osmo-stp's | µs an MSU | MSU/s | p50 ms | p99 ms |\n\
             |---|---|--:|--:|--:|--:|--:|\n",
            self.frame_bytes, self.machine.cpu_model, self.machine.cores
        );
        for (load, rows) in [("near the most", &self.rows), ("at one rate", &self.equal_rate)] {
            for row in rows {
                // Writing to a String cannot fail.
                let _ = writeln!(
                    text,
                    "| {load} | {} | **{:.3}** | {:.2} | {} | {} | {} |",
                    row.name,
                    times(rows, &row.name, THEIRS),
                    row.cpu_us_per_request,
                    figure(row.rps),
                    figure(row.p50_ms),
                    figure(row.p99_ms)
                );
            }
        }
        text
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.markdown())?;
        for check in &self.checks {
            writeln!(f, "{check}")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  {note}"))
    }
}
