//! The report as Markdown.

use std::fmt::Write;

use super::data::{Report, Series, Verdict};
use super::words;
use crate::figure;

/// Renders a report as Markdown.
#[must_use]
pub fn markdown(report: &Report, series: &Series) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = render(&mut out, report, series);
    out
}

fn render(out: &mut String, report: &Report, series: &Series) -> std::fmt::Result {
    head(out, report, series)?;
    comparison(out, report)?;
    checks(out, report)?;
    if let Some(destinations) = &report.destinations {
        super::destinations::markdown(out, destinations)?;
    }
    operations(out, report)?;
    super::services::markdown(out, &report.services)?;
    failures(out, series)?;
    steps(out, series)?;
    processes(out, report, series)?;
    guide(out, report, series)?;
    notes(out, series)
}

fn head(out: &mut String, report: &Report, series: &Series) -> std::fmt::Result {
    let verdict = match report.verdict {
        Verdict::Pass => "passed".to_owned(),
        other => format!("**{}**", other.word()),
    };
    writeln!(out, "# {} ({}): {verdict}\n", series.title, report.model)?;
    if let Some(reason) = words::reason(report) {
        writeln!(out, "Why {}: {reason}.\n", report.verdict.word())?;
    }
    writeln!(out, "{}\n", series.summary)?;
    let machine = &report.machine;
    writeln!(
        out,
        "{} on {} ({} cores, {} MiB, {}).\n",
        report.started, machine.cpu_model, machine.cores, machine.memory_mb, machine.kernel
    )?;
    let conditions = words::conditions(report);
    if !conditions.is_empty() {
        writeln!(out, "{conditions}.\n")?;
    }
    if let Some(knee) = &report.knee {
        writeln!(
            out,
            "**Knee: {} TPS.** Limited by {}.\n",
            figure(knee.tps),
            knee.limited_by
        )?;
    }
    Ok(())
}

fn comparison(out: &mut String, report: &Report) -> std::fmt::Result {
    writeln!(out, "| | this run | guide | |\n|---|--:|--:|---|")?;
    for [name, ours, theirs, unit] in words::comparison(report) {
        writeln!(out, "| {name} | {ours} | {theirs} | {unit} |")?;
    }
    if let Some(factor) = words::factor(report) {
        writeln!(
            out,
            "\nA transaction took {} times less processor time than in the guide.",
            figure(factor)
        )?;
    }
    Ok(())
}

fn checks(out: &mut String, report: &Report) -> std::fmt::Result {
    writeln!(
        out,
        "\n## Checks\n\n| | check | expected | got |\n|---|---|---|---|"
    )?;
    for check in &report.checks {
        let mark = if check.pass { "✓" } else { "✗" };
        writeln!(
            out,
            "| {mark} | {} | {} | {} |",
            check.name, check.expected, check.got
        )?;
    }
    Ok(())
}

fn operations(out: &mut String, report: &Report) -> std::fmt::Result {
    writeln!(
        out,
        "\n## Operations\n\nLatency in ms from the intended time of sending, induced latencies included.\n"
    )?;
    writeln!(
        out,
        "| operation | count | errors | mean | p50 | p90 | p95 | p99 | p99.9 | max |"
    )?;
    writeln!(out, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")?;
    for operation in &report.operations {
        let cells = words::percentiles(&operation.latency_ms).join(" | ");
        writeln!(
            out,
            "| {} | {} | {} | {cells} |",
            operation.name, operation.count, operation.errors
        )?;
    }
    for row in &report.guide.operations {
        let cells = words::percentiles(&row.latency_ms).join(" | ");
        writeln!(out, "| *guide: {}* | | | {cells} |", row.stretch)?;
    }
    Ok(())
}

fn failures(out: &mut String, series: &Series) -> std::fmt::Result {
    if series.failures.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Failures\n")?;
    for (kind, count) in &series.failures {
        writeln!(out, "- {kind}: {count}")?;
    }
    for example in &series.examples {
        writeln!(out, "  - {example}")?;
    }
    Ok(())
}

fn steps(out: &mut String, series: &Series) -> std::fmt::Result {
    if series.steps.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n## Search for the knee\n\n| TPS | achieved | success | p99 ms | function cores | others there | generator | |"
    )?;
    writeln!(out, "|--:|--:|--:|--:|--:|--:|--:|---|")?;
    for step in &series.steps {
        writeln!(
            out,
            "| {} | {} | {:.3}% | {} | {:.2} | {:.2} | {:.0}% | {} |",
            figure(step.tps),
            figure(step.achieved_tps),
            step.success_ratio * 100.0,
            figure(step.p99_ms),
            step.cpu_cores,
            step.other_cores,
            step.generator_busy * 100.0,
            step.failed.as_deref().unwrap_or("held"),
        )?;
    }
    Ok(())
}

fn processes(out: &mut String, report: &Report, series: &Series) -> std::fmt::Result {
    writeln!(
        out,
        "\n## Processes\n\n| process | cores | requests |\n|---|--:|--:|"
    )?;
    for function in &report.functions {
        let (read, written) = (function.bytes_in as f64 / 1e6, function.bytes_out as f64 / 1e6);
        writeln!(
            out,
            "| **{}** ({} MiB; {} MB in, {} MB out) | {} | |",
            function.name,
            figure(function.rss_mb_max),
            figure(read),
            figure(written),
            figure(function.cpu_cores_avg)
        )?;
        for role in &function.roles {
            writeln!(
                out,
                "| {} ({} threads) | {} (max {}) | |",
                role.name,
                role.threads,
                figure(role.cpu_cores_avg),
                figure(role.cpu_cores_max)
            )?;
        }
    }
    for process in &series.lab {
        writeln!(
            out,
            "| {} | {} | {} |",
            process.name,
            figure(process.cpu_cores_avg),
            process.requests
        )?;
    }
    Ok(())
}

fn guide(out: &mut String, report: &Report, series: &Series) -> std::fmt::Result {
    if series.guide_cpu.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n## The guide's processor time\n\nPods × cores × utilisation, without {}.\n",
        series.guide_cpu_excludes
    )?;
    writeln!(out, "| service | arithmetic | cores |\n|---|---|--:|")?;
    for (service, arithmetic, cores) in &series.guide_cpu {
        writeln!(out, "| {service} | {arithmetic} | {cores:.3} |")?;
    }
    if let Some(guide) = report.guide.functions.first() {
        writeln!(
            out,
            "| **all** | {} µs per ingress transaction | {:.3} |",
            figure(guide.cpu_us_per_transaction),
            guide.cpu_cores_avg
        )?;
    }
    Ok(())
}

fn notes(out: &mut String, series: &Series) -> std::fmt::Result {
    writeln!(out, "\n## Notes\n")?;
    for note in &series.notes {
        writeln!(out, "- {note}")?;
    }
    for (about, printed, taken) in &series.choices {
        writeln!(out, "- *{about}.* The guide: {printed} Taken: {taken}")?;
    }
    Ok(())
}
