//! Numbers and rows that both renderings show.

use super::data::{Latency, Report, Verdict};
use crate::figure;

/// Milliseconds for people; a dash when not known.
pub(super) fn ms(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), figure)
}

/// Name, this run and guide, for the comparison at the top of a report.
pub(super) fn comparison(report: &Report) -> Vec<[String; 4]> {
    let guide = &report.guide;
    let mut rows = vec![
        row(
            "rate aimed at",
            figure(report.offered_tps),
            known(guide.offered_tps),
            "TPS",
        ),
        row(
            "rate achieved",
            figure(report.achieved_tps),
            known(guide.achieved_tps),
            "TPS",
        ),
        row(
            "success",
            format!("{:.4}", report.success_ratio * 100.0),
            "–".to_owned(),
            "%",
        ),
        row(
            "duration",
            duration(report.duration_s),
            match guide.duration_s > 0.0 {
                true => duration(guide.duration_s),
                false => "–".to_owned(),
            },
            "",
        ),
    ];
    if let (Some(ours), Some(theirs)) = (report.functions.first(), guide.functions.first()) {
        rows.extend([
            row(
                "processor time per ingress transaction",
                figure(ours.cpu_us_per_transaction),
                known(theirs.cpu_us_per_transaction),
                "µs",
            ),
            row(
                "cores in use",
                figure(ours.cpu_cores_avg),
                known(theirs.cpu_cores_avg),
                "",
            ),
            row(
                "connections in",
                figure(f64::from(ours.connections_in)),
                figure(f64::from(theirs.connections_in)),
                "",
            ),
            row(
                "connections out",
                figure(f64::from(ours.connections_out)),
                figure(f64::from(theirs.connections_out)),
                "",
            ),
        ]);
    }
    if let Some(egress) = &report.egress {
        rows.extend([
            row(
                "in and out together",
                figure(report.achieved_tps + egress.tps),
                known(egress.guide_tps),
                "TPS",
            ),
            row(
                "processor time per transaction in or out",
                figure(egress.cpu_us_per_transaction),
                known(egress.guide_cpu_us_per_transaction),
                "µs",
            ),
        ]);
        let receivers = egress.receivers.iter();
        rows.extend(
            receivers
                .map(|(name, rate)| row(&format!("out to {name}"), figure(*rate), "–".to_owned(), "TPS")),
        );
    }
    if let Some(store) = &report.store {
        let none = || "–".to_owned();
        rows.extend([
            row(
                "preloaded sessions",
                figure(store.preloaded_sessions as f64),
                none(),
                "",
            ),
            row(
                "on disk, each of them",
                store.disk_bytes_per_session.map_or_else(none, figure),
                none(),
                "bytes",
            ),
            row(
                "resident, each of them",
                figure(store.resident_bytes_per_session),
                none(),
                "bytes",
            ),
            row("ready after", figure(store.ready_s), none(), "s"),
        ]);
    }
    rows
}

/// Program, clock and disturbances in a sentence; empty for a report that has none of it.
pub(super) fn conditions(report: &Report) -> String {
    let conditions = &report.conditions;
    if *conditions == super::Conditions::default() {
        return String::new();
    }
    let program = match conditions.program.is_empty() {
        true => "unknown program",
        false => &conditions.program,
    };
    let frequency = match conditions.cpu_mhz > 0.0 {
        true => format!(" at {} MHz", figure(conditions.cpu_mhz)),
        false => String::new(),
    };
    let cores = |measured: Option<f64>| match measured {
        Some(cores) => format!("{cores:.2} cores"),
        None => "not measured".to_owned(),
    };
    format!(
        "{program} · clock {}{frequency} · stolen {} · other processes {}",
        conditions.clock_source,
        cores(conditions.stolen_cores),
        cores(conditions.foreign_cores)
    )
}

/// Failed checks that a reason names; the rest are a number.
const NAMED: usize = 3;

/// Why a run did not pass, in a sentence; `None` for one that did.
#[must_use]
pub fn reason(report: &Report) -> Option<String> {
    let failed: Vec<String> = report
        .checks
        .iter()
        .filter(|check| !check.pass)
        .map(|check| format!("{}: {} (expected: {})", check.name, check.got, check.expected))
        .collect();
    let mut named = failed.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    if failed.len() > NAMED {
        named += &format!("; {} more", failed.len() - NAMED);
    }
    let conditions = &report.conditions;
    let others = conditions.foreign_cores.unwrap_or(0.0);
    let busy = format!(
        "other processes used {others:.2} of {} cores, a hypervisor {:.2}",
        report.machine.cores,
        conditions.stolen_cores.unwrap_or(0.0)
    );
    match report.verdict {
        Verdict::Pass => None,
        Verdict::Invalid => Some(format!(
            "the machine was busy ({busy}), and what did not hold measures time: {named}"
        )),
        Verdict::Fail if conditions.are_busy(report.machine.cores) => {
            Some(format!("{named}. The machine was busy as well: {busy}"))
        }
        Verdict::Fail => Some(named),
    }
}

/// Model, start, program and machine of a run on one line.
#[must_use]
pub fn identity(report: &Report) -> String {
    let started: String = report.started.replace('T', " ").chars().take(16).collect();
    let program = match report.conditions.program.is_empty() {
        true => String::new(),
        false => format!(", {}", report.conditions.program),
    };
    let machine = &report.machine;
    format!(
        "{}, {started}{program}, {} cores {}",
        report.model, machine.cores, machine.cpu_model
    )
}

/// A figure of a guide; a dash where there is no guide.
pub(super) fn known(value: f64) -> String {
    if value > 0.0 {
        figure(value)
    } else {
        "–".to_owned()
    }
}

fn row(name: &str, ours: String, theirs: String, unit: &str) -> [String; 4] {
    [name.to_owned(), ours, theirs, unit.to_owned()]
}

/// A length of time for people.
pub(super) fn duration(seconds: f64) -> String {
    if seconds >= 7200.0 {
        format!("{} h", figure(seconds / 3600.0))
    } else {
        format!("{} s", figure(seconds))
    }
}

/// How many times less processor time a transaction took than in the guide.
pub(super) fn factor(report: &Report) -> Option<f64> {
    let ours = report.functions.first()?.cpu_us_per_transaction;
    let theirs = report.guide.functions.first()?.cpu_us_per_transaction;
    (ours > 0.0 && theirs > 0.0).then(|| theirs / ours)
}

/// The percentiles of a row, in the order of the tables.
pub(super) fn percentiles(latency: &Latency) -> [String; 7] {
    [
        latency.mean,
        latency.p50,
        latency.p90,
        latency.p95,
        latency.p99,
        latency.p999,
        latency.max,
    ]
    .map(ms)
}
