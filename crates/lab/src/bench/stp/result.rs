//! What a comparison came to.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{FRAME_BYTES, OURS, RULES, SCREENED, THEIRS};
use crate::bench::turns::{self, Measured, Row, times};
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
    let [full, equal] = turns::rows(measured);
    let (ratio, ratio_equal_rate) = (times(&full, OURS, THEIRS), times(&equal, OURS, THEIRS));
    let screening = times(&equal, SCREENED, OURS);
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
        notes: turns::examples(measured),
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

impl Comparison {
    /// The table as Markdown, ratios first.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "MSUs of {} octets over IPA; `make bench-stp` on {} ({} cores)\n\n\
             | load | what | processor time by osmo-stp's | µs an MSU | MSU/s | p50 ms | p99 ms |\n\
             |---|---|--:|--:|--:|--:|--:|\n",
            self.frame_bytes, self.machine.cpu_model, self.machine.cores
        );
        text += &turns::table((&self.rows, &self.equal_rate), THEIRS, 1.0);
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
