//! `signalbox lab report`: reports of runs, rendered again, listed and compared.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::report::{self, Report, Verdict};

use super::{FAILED, Failure, USAGE, failure, json_text, say};
use crate::run::figure;

pub(super) fn summary(report: &Report, out: &Path) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    let _ = writeln!(text, "{}: {}", report.model, word(report.verdict));
    if let Some(reason) = report::reason(report) {
        let _ = writeln!(text, "  why         {reason}");
    }
    if let Some(knee) = &report.knee {
        let _ = writeln!(
            text,
            "  knee        {} TPS, limited by {}",
            figure(knee.tps),
            knee.limited_by
        );
    }
    let _ = writeln!(
        text,
        "  rate        {} TPS achieved of {} offered, {:.4}% right, over {} s",
        figure(report.achieved_tps),
        figure(report.offered_tps),
        report.success_ratio * 100.0,
        figure(report.duration_s)
    );
    let beside = |guide: Option<String>| guide.map_or(String::new(), |guide| format!("; the guide: {guide}"));
    if report.functions.len() > 1 {
        for one in &report.functions {
            let _ = writeln!(
                text,
                "  {:<11} {} µs of processor time per call ({} cores)",
                one.name,
                figure(one.cpu_us_per_transaction),
                figure(one.cpu_cores_avg)
            );
        }
    } else if let Some(ours) = report.functions.first() {
        // 0: the guide prints none.
        let guide = report
            .guide
            .functions
            .first()
            .filter(|guide| guide.cpu_us_per_transaction > 0.0);
        let _ = writeln!(
            text,
            "  processor   {} µs per ingress transaction ({} cores){}",
            figure(ours.cpu_us_per_transaction),
            figure(ours.cpu_cores_avg),
            beside(guide.map(|guide| format!("{} µs", figure(guide.cpu_us_per_transaction))))
        );
    }
    if let Some(messages) = &report.messages {
        let (own, guide) = messages.words();
        let _ = writeln!(text, "  messages    {own}{}", beside(guide));
    }
    if let Some(egress) = &report.egress {
        let receivers: Vec<String> = egress
            .receivers
            .iter()
            .map(|(name, rate)| format!("{name} {}", figure(*rate)))
            .collect();
        let _ = writeln!(
            text,
            "  out         {} TPS ({}); {} µs of processor time per transaction in or out{}",
            figure(egress.tps),
            receivers.join(", "),
            figure(egress.cpu_us_per_transaction),
            beside((egress.guide_cpu_us_per_transaction > 0.0).then(|| format!(
                "{} µs at {} TPS in and out",
                figure(egress.guide_cpu_us_per_transaction),
                figure(egress.guide_tps)
            )))
        );
    }
    text += &latencies(report);
    if let Some(store) = &report.store {
        let disk = store.disk_bytes_per_session.map(figure);
        let _ = writeln!(
            text,
            "  sessions    {} preloaded ({}): {} bytes each on disk, {} resident; ready after {} s",
            figure(store.preloaded_sessions as f64),
            store.engine,
            disk.as_deref().unwrap_or("–"),
            figure(store.resident_bytes_per_session),
            figure(store.ready_s)
        );
    }
    for check in &report.checks {
        let _ = writeln!(text, "  {check}");
    }
    let page = out.join("report.html");
    let page = page.canonicalize().unwrap_or(page);
    let _ = writeln!(text, "  report      file://{}", page.display());
    text
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "passed",
        Verdict::Fail => "FAILED",
        Verdict::Invalid => "NOT VALID, the machine was busy",
    }
}

/// Latencies of the operations that the guide prints as well, ours beside the guide's.
fn latencies(report: &Report) -> String {
    let mut text = String::new();
    for row in &report.guide.operations {
        let ours = report.operations.iter().find(|one| one.name == row.name);
        let (Some(ours), Some(guide)) = (ours.map(|one| one.latency_ms), row.latency_ms.p50) else {
            continue;
        };
        text += &format!(
            "  {:<11} {} ms at the median, {} ms at 95%; the guide: {} ms{}\n",
            row.name,
            figure(ours.p50.unwrap_or_default()),
            figure(ours.p95.unwrap_or_default()),
            figure(guide),
            row.latency_ms
                .p95
                .map_or(String::new(), |guide| format!(", {} ms", figure(guide)))
        );
    }
    text
}

/// Lists the runs in a folder by their start.
pub(super) fn runs(folder: &Path, json: bool) -> Result<ExitCode, Failure> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<(PathBuf, Report)> = entries
        .filter_map(|entry| Some((entry.path(), report::read(&entry.path()).ok()?.0)))
        .collect();
    all.sort_by(|a, b| a.1.started.cmp(&b.1.started));
    if json {
        let listed: Vec<_> = all.iter().map(|(path, report)| (path, report)).collect();
        say(&json_text(&listed)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for (path, report) in &all {
        let verdict = word(report.verdict);
        text += &format!(
            "{}  {verdict}  {} TPS  {}\n",
            path.display(),
            figure(report.achieved_tps),
            report::identity(report)
        );
    }
    if all.is_empty() {
        text = format!("no runs under {}\n", folder.display());
    }
    say(&text)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn again(folders: &[PathBuf], json: bool) -> Result<ExitCode, Failure> {
    let read = |folder: &PathBuf| report::read(folder).map_err(|error| failure(USAGE)(&error));
    match folders {
        [first, second] => {
            let comparison = report::compare(&read(first)?.0, &read(second)?.0);
            say(&if json {
                json_text(&comparison.rows)?
            } else {
                comparison.to_string()
            })?;
        }
        _ => {
            for folder in folders {
                let (report, series) = read(folder)?;
                report::render(folder, &report, &series).map_err(|error| {
                    failure(FAILED)(&format!("cannot write to {}: {error}", folder.display()))
                })?;
                say(&if json {
                    json_text(&report)?
                } else {
                    summary(&report, folder)
                })?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
