//! Two runs beside each other.

use super::data::Report;
use super::words;
use crate::figure;

/// Two runs beside each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Model, start, program, machine and verdict of each run.
    pub runs: [String; 2],
    /// What, first run, second run, change in percent.
    pub rows: Vec<(String, f64, f64, Option<f64>)>,
}

/// Compares two runs.
#[must_use]
pub fn compare(first: &Report, second: &Report) -> Comparison {
    let mut rows = Vec::new();
    let mut put = |name: String, a: f64, b: f64| {
        let change = (a.abs() > f64::EPSILON).then(|| (b / a - 1.0) * 100.0);
        rows.push((name, a, b, change));
    };
    put("achieved TPS".to_owned(), first.achieved_tps, second.achieved_tps);
    put(
        "success %".to_owned(),
        first.success_ratio * 100.0,
        second.success_ratio * 100.0,
    );
    if let (Some(a), Some(b)) = (&first.knee, &second.knee) {
        put("knee TPS".to_owned(), a.tps, b.tps);
    }
    for a in &first.functions {
        if let Some(b) = second.functions.iter().find(|b| b.name == a.name) {
            for (what, x, y) in [
                (
                    "CPU µs per transaction",
                    a.cpu_us_per_transaction,
                    b.cpu_us_per_transaction,
                ),
                ("cores", a.cpu_cores_avg, b.cpu_cores_avg),
                ("memory MiB", a.rss_mb_max, b.rss_mb_max),
            ] {
                put(format!("{} {what}", a.name), x, y);
            }
        }
    }
    for a in &first.operations {
        if let Some(b) = second.operations.iter().find(|b| b.name == a.name) {
            for (what, x, y) in [
                ("p50 ms", a.latency_ms.p50, b.latency_ms.p50),
                ("p99 ms", a.latency_ms.p99, b.latency_ms.p99),
            ] {
                if let (Some(x), Some(y)) = (x, y) {
                    put(format!("{} {what}", a.name), x, y);
                }
            }
        }
    }
    Comparison {
        runs: [first, second].map(|run| format!("{}: {}", words::identity(run), run.verdict.word())),
        rows,
    }
}

impl std::fmt::Display for Comparison {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let width = self
            .rows
            .iter()
            .map(|(name, ..)| name.chars().count())
            .max()
            .unwrap_or(0);
        for (letter, run) in ["A", "B"].into_iter().zip(&self.runs) {
            writeln!(f, "{letter}  {run}")?;
        }
        writeln!(f, "\n{:width$}  {:>12}  {:>12}  {:>8}", "", "A", "B", "change")?;
        for (name, a, b, change) in &self.rows {
            let change = change.map_or(String::new(), |change| format!("{change:+.1}%"));
            writeln!(
                f,
                "{name:width$}  {:>12}  {:>12}  {change:>8}",
                figure(*a),
                figure(*b)
            )?;
        }
        Ok(())
    }
}
