//! The report as one self-contained page.

use std::fmt::Write;

use super::data::{Report, Series, Verdict};
use super::svg::{self, Line, escape};
use super::words;
use crate::figure;

const STYLE: &str = include_str!("style.css");

/// Renders a report as a page that needs nothing else.
#[must_use]
pub fn html(report: &Report, series: &Series) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = page(&mut out, report, series);
    out
}

fn page(out: &mut String, report: &Report, series: &Series) -> std::fmt::Result {
    let verdict = report.verdict;
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} · {}</title>\n<style>\n{STYLE}</style></head><body><main>\n",
        escape(&report.model),
        verdict.word()
    )?;
    let machine = &report.machine;
    writeln!(
        out,
        "<header><p class=\"eyebrow\">Signalbox lab · {}</p><h1>{} <span class=\"pill {}\">{}</span></h1>\
         <p class=\"lead\">{}</p><p class=\"quiet\">{} · {} · {} cores, {} GiB · {}</p></header>",
        escape(&report.model),
        escape(&series.title),
        if verdict == Verdict::Pass { "pass" } else { "fail" },
        verdict.word(),
        escape(&series.summary),
        escape(
            &report
                .started
                .replace('T', " ")
                .chars()
                .take(16)
                .collect::<String>()
        ),
        escape(&machine.cpu_model),
        machine.cores,
        (machine.memory_mb + 512) / 1024,
        escape(&machine.kernel),
    )?;
    if let Some(reason) = words::reason(report) {
        writeln!(
            out,
            "<p class=\"callout\"><b>Why {}:</b> {}.</p>",
            verdict.word(),
            escape(&reason)
        )?;
    }
    let conditions = words::conditions(report);
    if !conditions.is_empty() {
        writeln!(out, "<p class=\"quiet\">{}</p>", escape(&conditions))?;
    }
    tiles(out, report)?;
    if let Some(knee) = &report.knee {
        writeln!(
            out,
            "<p class=\"callout\"><b>Knee: {} TPS.</b> Limited by {}.</p>",
            figure(knee.tps),
            escape(&knee.limited_by)
        )?;
    }
    plots(out, report, series)?;
    if let Some(destinations) = &report.destinations {
        super::destinations::html(out, destinations)?;
    }
    out.push_str("<div class=\"pair\">");
    versus(out, report)?;
    checks(out, report)?;
    out.push_str("</div>");
    operations(out, report)?;
    super::services::html(out, &report.services)?;
    failures(out, series)?;
    processes(out, report, series)?;
    guide(out, report, series)?;
    notes(out, series)?;
    out.push_str("</main></body></html>\n");
    Ok(())
}

fn tiles(out: &mut String, report: &Report) -> std::fmt::Result {
    let guide = &report.guide;
    let mut tiles = vec![(
        figure(report.achieved_tps),
        " TPS",
        "achieved",
        format!(
            "of {} offered · guide {}",
            figure(report.offered_tps),
            words::known(guide.achieved_tps)
        ),
    )];
    let failed: u64 = report.operations.iter().map(|o| o.errors).sum();
    let count: u64 = report.operations.iter().map(|o| o.count).sum();
    tiles.push((
        format!("{:.3}", (report.success_ratio * 1e5).floor() / 1e3),
        " %",
        "success",
        // The operations of a call through several functions are its legs.
        match report.functions.len() > 1 {
            true => format!(
                "{} of {} legs failed",
                figure(failed as f64),
                figure(count as f64)
            ),
            false => format!("{} of {} failed", figure(failed as f64), figure(count as f64)),
        },
    ));
    if let (Some(ours), Some(theirs)) = (report.functions.first(), guide.functions.first()) {
        tiles.push((
            figure(ours.cpu_us_per_transaction),
            " µs",
            "processor time per transaction",
            match theirs.cpu_us_per_transaction > 0.0 {
                true => format!("guide {} µs", figure(theirs.cpu_us_per_transaction)),
                false => "the guide prints none".to_owned(),
            },
        ));
        if let Some(factor) = words::factor(report) {
            tiles.push((
                figure(factor),
                " ×",
                "less processor time than the guide",
                format!(
                    "{} cores here, {} there",
                    figure(ours.cpu_cores_avg),
                    figure(theirs.cpu_cores_avg)
                ),
            ));
        }
    }
    // As in the plot and in the check: all transactions, the simulated delays of peers included.
    let main = report.operations.iter().max_by_key(|o| o.count);
    let all = ("all transactions", &report.latency_ms);
    let of_main = main.map(|o| (o.name.as_str(), &o.latency_ms));
    if let Some((name, latency)) = Some(all).filter(|all| all.1.p99.is_some()).or(of_main) {
        tiles.push((
            words::ms(latency.p99),
            " ms",
            "99th percentile, induced latencies included",
            format!("{}, median {} ms", escape(name), words::ms(latency.p50)),
        ));
    }
    out.push_str("<section class=\"tiles\">");
    for (value, unit, name, more) in tiles {
        write!(
            out,
            "<div class=\"tile\"><div class=\"name\">{name}</div><div class=\"value\">{value}<small>{unit}</small></div><div class=\"more\">{more}</div></div>"
        )?;
    }
    out.push_str("</section>\n");
    Ok(())
}

fn figure_of(
    out: &mut String,
    title: &str,
    legend: &[(&str, &str)],
    more: &str,
    svg: &str,
) -> std::fmt::Result {
    write!(out, "<figure><figcaption><b>{title}</b>")?;
    for (class, name) in legend {
        write!(out, "<span class=\"key {class}\">{name}</span>")?;
    }
    writeln!(
        out,
        "<span class=\"quiet more\">{more}</span></figcaption>{svg}</figure>"
    )
}

type Measured = Option<(f64, f64)>;

fn plots(out: &mut String, report: &Report, series: &Series) -> std::fmt::Result {
    let inside = || series.timeline.iter().filter(|p| p.measured).map(|p| p.t);
    let measured = inside()
        .next()
        .map(|first| ((first - 1.0).max(0.0), inside().fold(first, f64::max)));
    if series.timeline.is_empty() && series.steps.is_empty() {
        out.push_str(
            "<p class=\"quiet\">No plots over time: this kind of run records no figures by second.</p>\n",
        );
        out.push_str("<section class=\"plots\">\n");
        spreads(out, report, series)?;
        out.push_str("</section>\n");
        return Ok(());
    }
    out.push_str("<section class=\"plots\">\n");
    rate(out, series, measured)?;
    latency(out, series, measured)?;
    processor(out, report, series, measured)?;
    match series.steps.is_empty() {
        true => in_flight(out, series, measured)?,
        false => knee_steps(out, series)?,
    }
    spreads(out, report, series)?;
    out.push_str("</section>\n");
    Ok(())
}

/// A line over time.
fn line<'n>(series: &Series, name: &'n str, class: &'static str, get: fn(&super::Point) -> f64) -> Line<'n> {
    let points = series.timeline.iter().map(|p| (p.t, get(p))).collect();
    Line { name, class, points }
}

fn rate(out: &mut String, series: &Series, measured: Measured) -> std::fmt::Result {
    let mut lines = vec![
        line(series, "offered", "other", |p| p.offered),
        line(series, "achieved", "ours", |p| p.achieved),
    ];
    let mut legend = vec![("ours", "achieved"), ("other", "offered")];
    if series.timeline.iter().any(|p| p.failed > 0.0) {
        lines.push(line(series, "failed", "bad", |p| p.failed));
        legend.push(("bad", "failed"));
    }
    let svg = svg::over_time(&lines, measured, "TPS", "rate over time");
    figure_of(out, "Rate", &legend, "transactions per second", &svg)
}

fn latency(out: &mut String, series: &Series, measured: Measured) -> std::fmt::Result {
    let lines = [
        line(series, "p99", "other", |p| p.p99),
        line(series, "median", "ours", |p| p.p50),
    ];
    let svg = svg::over_time(&lines, measured, "ms", "latency over time");
    let legend = [("ours", "median"), ("other", "p99")];
    let more = "ms, all transactions, from the intended time of sending";
    figure_of(out, "Latency", &legend, more, &svg)
}

fn processor(out: &mut String, report: &Report, series: &Series, measured: Measured) -> std::fmt::Result {
    let mut lines = vec![line(series, "generator", "other", |p| p.generator_cpu)];
    let mut legend = vec![("other", "generator")];
    if let Some(function) = report.functions.first() {
        lines.push(line(series, &function.name, "ours", |p| p.cpu));
        legend.insert(0, ("ours", &function.name));
    }
    let svg = svg::over_time(&lines, measured, "cores", "cores in use over time");
    figure_of(out, "Processor", &legend, "cores in use", &svg)
}

fn in_flight(out: &mut String, series: &Series, measured: Measured) -> std::fmt::Result {
    let lines = [line(series, "in flight", "ours", |p| p.in_flight as f64)];
    let svg = svg::over_time(&lines, measured, "", "requests in flight over time");
    figure_of(
        out,
        "Requests without an answer",
        &[],
        "at the end of each second",
        &svg,
    )
}

fn knee_steps(out: &mut String, series: &Series) -> std::fmt::Result {
    let steps = series.steps.iter();
    let points: Vec<_> = steps.map(|s| (s.tps, s.p99_ms, s.failed.is_none())).collect();
    figure_of(
        out,
        "Search for the knee",
        &[("held", "held"), ("broke", "failed")],
        "p99 in ms by transactions per second",
        &svg::steps(&points, "p99 latency by rate"),
    )
}

fn spreads(out: &mut String, report: &Report, series: &Series) -> std::fmt::Result {
    let known = |l: &super::Latency| -> Vec<(&'static str, f64)> {
        let all = [("mean", l.mean), ("p50", l.p50), ("p99", l.p99)];
        all.into_iter().filter_map(|(name, v)| Some((name, v?))).collect()
    };
    let rows = report.guide.operations.iter();
    let guide: Vec<_> = rows
        .map(|row| (row.name.clone(), known(&row.latency_ms)))
        .collect();
    out.push_str("<div class=\"whole\">");
    figure_of(
        out,
        "Latency by operation",
        &[
            ("narrow", "p25–p75"),
            ("wide", "p1–p99"),
            ("guide", "guide: mean or p50, p99"),
        ],
        "ms, logarithmic; induced latencies of the simulated peers included",
        &svg::spreads(&series.spreads, &guide, "latency distribution by operation"),
    )?;
    out.push_str("</div>");
    Ok(())
}

fn versus(out: &mut String, report: &Report) -> std::fmt::Result {
    write!(
        out,
        "<section><h2>This run and the guide</h2><p class=\"quiet\">{}</p><div class=\"scroll\"><table><thead><tr><th>figure</th><th class=\"n\">this run</th><th class=\"n\">guide</th><th>unit</th></tr></thead><tbody>",
        escape(&report.guide.source)
    )?;
    for [name, ours, theirs, unit] in words::comparison(report) {
        write!(
            out,
            "<tr><td>{name}</td><td class=\"n\"><b>{ours}</b></td><td class=\"n\">{theirs}</td><td>{unit}</td></tr>"
        )?;
    }
    out.push_str("</tbody></table></div></section>\n");
    Ok(())
}

fn checks(out: &mut String, report: &Report) -> std::fmt::Result {
    out.push_str("<section><h2>Checks</h2><div class=\"scroll\"><table><thead><tr><th>held</th><th>check</th><th>expected</th><th>got</th></tr></thead><tbody>");
    for check in &report.checks {
        let (class, mark) = if check.pass {
            ("good", "✓")
        } else {
            ("bad", "✗")
        };
        write!(
            out,
            "<tr><td class=\"mark {class}\">{mark}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&check.name),
            escape(&check.expected),
            escape(&check.got)
        )?;
    }
    out.push_str("</tbody></table></div></section>\n");
    Ok(())
}

fn operations(out: &mut String, report: &Report) -> std::fmt::Result {
    out.push_str(
        "<section><h2>Operations</h2><div class=\"scroll\"><table><thead><tr><th>operation</th><th class=\"n\">count</th>\
         <th class=\"n\">errors</th><th class=\"n\">mean</th><th class=\"n\">p50</th><th class=\"n\">p90</th><th class=\"n\">p95</th>\
         <th class=\"n\">p99</th><th class=\"n\">p99.9</th><th class=\"n\">max ms</th></tr></thead><tbody>",
    );
    for operation in &report.operations {
        let errors = if operation.errors > 0 { " bad" } else { "" };
        write!(
            out,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n{errors}\">{}</td>",
            escape(&operation.name),
            figure(operation.count as f64),
            figure(operation.errors as f64)
        )?;
        cells(out, &words::percentiles(&operation.latency_ms))?;
    }
    for row in &report.guide.operations {
        write!(
            out,
            "<tr class=\"guide-row\"><td>guide: {}</td><td></td><td></td>",
            escape(&row.stretch)
        )?;
        cells(out, &words::percentiles(&row.latency_ms))?;
    }
    out.push_str("</tbody></table></div></section>\n");
    Ok(())
}

fn cells(out: &mut String, values: &[String]) -> std::fmt::Result {
    for value in values {
        write!(out, "<td class=\"n\">{value}</td>")?;
    }
    out.push_str("</tr>");
    Ok(())
}

fn failures(out: &mut String, series: &Series) -> std::fmt::Result {
    if series.failures.is_empty() {
        return Ok(());
    }
    out.push_str("<section><h2>Failures</h2><ul>");
    for (kind, count) in &series.failures {
        write!(out, "<li>{}: {}</li>", escape(kind), figure(*count as f64))?;
    }
    out.push_str("</ul><details><summary>The first of them</summary><ul>");
    for example in &series.examples {
        write!(out, "<li><code>{}</code></li>", escape(example))?;
    }
    out.push_str("</ul></details></section>\n");
    Ok(())
}

fn processes(out: &mut String, report: &Report, series: &Series) -> std::fmt::Result {
    out.push_str(
        "<section><h2>Processes</h2><div class=\"scroll\"><table><thead><tr><th>process</th><th class=\"n\">cores</th><th class=\"n\">requests</th>\
         <th class=\"n\">memory</th><th class=\"n\">received</th><th class=\"n\">sent</th></tr></thead><tbody>",
    );
    for function in &report.functions {
        let seconds = report.duration_s.max(1e-3) * 1e6;
        write!(
            out,
            "<tr><td><b>{}</b>{}</td><td class=\"n\">{}</td><td></td><td class=\"n\">{} MiB</td><td class=\"n\">{} MB/s</td><td class=\"n\">{} MB/s</td></tr>",
            escape(&function.name),
            if function.pinned_cpus.is_empty() {
                String::new()
            } else {
                format!(" on core {:?}", function.pinned_cpus)
            },
            figure(function.cpu_cores_avg),
            figure(function.rss_mb_max),
            figure(function.bytes_in as f64 / seconds),
            figure(function.bytes_out as f64 / seconds)
        )?;
        for role in &function.roles {
            write!(
                out,
                "<tr><td class=\"quiet\">{} ({} threads)</td><td class=\"n\">{} (max {})</td><td></td><td></td><td></td><td></td></tr>",
                escape(&role.name),
                role.threads,
                figure(role.cpu_cores_avg),
                figure(role.cpu_cores_max)
            )?;
        }
    }
    for process in &series.lab {
        write!(
            out,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td></td><td></td><td></td></tr>",
            escape(&process.name),
            figure(process.cpu_cores_avg),
            figure(process.requests as f64)
        )?;
    }
    out.push_str("</tbody></table></div></section>\n");
    Ok(())
}

fn guide(out: &mut String, report: &Report, series: &Series) -> std::fmt::Result {
    if series.guide_cpu.is_empty() {
        return Ok(());
    }
    write!(
        out,
        "<section><h2>The guide's processor time</h2><details><summary>Pods × cores × utilisation, without {}</summary>\
         <table><thead><tr><th>service</th><th>arithmetic</th><th class=\"n\">cores</th></tr></thead><tbody>",
        escape(&series.guide_cpu_excludes)
    )?;
    for (service, arithmetic, cores) in &series.guide_cpu {
        write!(
            out,
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{cores:.3}</td></tr>",
            escape(service),
            escape(arithmetic)
        )?;
    }
    if let Some(guide) = report.guide.functions.first() {
        write!(
            out,
            "<tr><td><b>all</b></td><td><b>{} µs per ingress transaction</b></td><td class=\"n\"><b>{:.3}</b></td></tr>",
            figure(guide.cpu_us_per_transaction),
            guide.cpu_cores_avg
        )?;
    }
    out.push_str("</tbody></table></details></section>\n");
    Ok(())
}

fn notes(out: &mut String, series: &Series) -> std::fmt::Result {
    out.push_str("<section><h2>Notes</h2><ul>");
    for note in &series.notes {
        write!(out, "<li>{}</li>", escape(note))?;
    }
    out.push_str("</ul>");
    if !series.choices.is_empty() {
        out.push_str("<details><summary>Where the guide contradicts itself or is silent</summary><dl>");
        for (about, printed, taken) in &series.choices {
            write!(
                out,
                "<dt>{}</dt><dd><span class=\"quiet\">Printed:</span> {}<br><span class=\"quiet\">Taken:</span> {}</dd>",
                escape(about),
                escape(printed),
                escape(taken)
            )?;
        }
        out.push_str("</dl></details>");
    }
    out.push_str("</section>\n");
    Ok(())
}
