//! A contest in words: ratios to the reference first, absolute figures beside them.

use std::fmt::{self, Write};

use super::rows::{Burst, Row, Section};
use crate::run::figure;
use report::measure::Machine;

/// The load of a row.
fn load_of(row: &Row) -> String {
    row.share.map_or_else(
        || "saturated".to_owned(),
        |share| format!("{:.0} %", share * 100.0),
    )
}

/// What a row says of rounds that collapsed, the worst first.
fn collapse_of(row: &Row) -> Option<String> {
    let mut rounds: Vec<_> = row.rounds.iter().filter(|round| round.collapsed).collect();
    rounds.sort_by(|a, b| a.rps.total_cmp(&b.rps));
    let worst = rounds.first()?;
    Some(format!(
        "COLLAPSED in {} of {} rounds: {} of {} requests/s served, p50 {} ms, {} failed",
        rounds.len(),
        row.rounds.len(),
        figure(worst.rps),
        figure(worst.offered_rps),
        figure(worst.p50_ms),
        figure(rounds.iter().map(|round| round.failed).sum::<u64>() as f64)
    ))
}

/// Requests without a right answer; those that were refused apart.
fn failed_of(row: &Row) -> String {
    match row.refused {
        0 => row.failed.to_string(),
        refused => format!("{} ({refused} refused)", row.failed),
    }
}

fn decimals(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.0} %", value * 100.0))
}

pub(super) fn burst_in_words(burst: &Burst) -> String {
    let recovered = match burst.recovered_s {
        _ if !burst.held_before => "did not hold the rate before the burst".to_owned(),
        Some(seconds) => format!("as before after {seconds:.1} s"),
        None => format!("NOT as before after {:.0} s", burst.after.len() as f64 / 10.0),
    };
    format!(
        "{recovered}; in the burst {} requests/s served, p99 {} ms, {} failed; p99 before it {} ms, limit {} ms",
        figure(burst.served_during_rps),
        figure(burst.p99_during_ms),
        figure(burst.failed_during as f64),
        figure(burst.p99_before_ms),
        figure(burst.p99_limit_ms)
    )
}

/// A section for a terminal.
pub(super) fn table(f: &mut fmt::Formatter<'_>, section: &Section) -> fmt::Result {
    let by = format!("by {}", section.reference);
    writeln!(
        f,
        "{}; {} carries {} requests/s\n  {:<10} {:<14} {:>10} {:>12} {:>15} {:>11} {:>8} {:>8} {:>8} {:>7} {:>6} {:>6} {:>7} {:>7}",
        section.title,
        section.reference,
        figure(section.most_rps),
        "load",
        "",
        by,
        "µs/request",
        "user + kernel",
        "requests/s",
        "p50 ms",
        "p99 ms",
        "+p99 ms",
        "failed",
        "cores",
        "lab",
        "gen µs",
        "peer µs"
    )?;
    for row in section.loads().flatten() {
        if row.collapsed_rounds < row.rounds.len() as u32 {
            writeln!(
                f,
                "  {:<10} {:<14} {:>10} {:>12} {:>7} + {:>5} {:>11} {:>8} {:>8} {:>8} {:>7} {:>6} {:>6} {:>7} {:>7}",
                load_of(row),
                row.name,
                decimals(row.cpu_ratio, 2),
                decimals(row.cpu_us_per_request, 2),
                decimals(row.cpu_user_us_per_request, 1),
                decimals(row.cpu_kernel_us_per_request, 1),
                row.rps.map_or_else(|| "-".to_owned(), figure),
                decimals(row.p50_ms, 2),
                decimals(row.p99_ms, 2),
                decimals(row.added_p99_ms, 2),
                failed_of(row),
                percent(row.cores_busy),
                percent(row.lab_cores_busy),
                decimals(row.generator_us_per_request, 1),
                decimals(row.peers_us_per_request, 1)
            )?;
        }
        if let Some(collapse) = collapse_of(row) {
            writeln!(f, "  {:<10} {:<14} {collapse}", load_of(row), row.name)?;
        }
    }
    for burst in &section.bursts {
        writeln!(
            f,
            "  {:<10} {:<14} {}",
            "burst",
            burst.name,
            burst_in_words(burst)
        )?;
    }
    section.notes.iter().try_for_each(|note| writeln!(f, "  {note}"))
}

/// Sections as Markdown, for the README and for reports of results.
pub(super) fn markdown(command: &str, machine: &Machine, sections: &[Section]) -> String {
    let mut text = String::new();
    for section in sections {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{}; `{command}` on {} ({} cores, {}); {} carried {} requests/s\n\n\
             | load | what | processor time by {}'s | µs a request (user + kernel) | requests/s | p50 ms | p99 ms | failed |\n\
             |---|---|--:|--:|--:|--:|--:|--:|",
            section.title,
            machine.cpu_model,
            machine.cores,
            machine.kernel,
            section.reference,
            figure(section.most_rps),
            section.reference
        );
        for row in section.loads().flatten() {
            let (load, name) = (load_of(row), &row.name);
            if row.collapsed_rounds < row.rounds.len() as u32 {
                let ratio = row
                    .cpu_ratio
                    .map_or_else(|| "-".to_owned(), |ratio| format!("**{ratio:.2}**"));
                let _ = writeln!(
                    text,
                    "| {load} | {name} | {ratio} | {} ({} + {}) | {} | {} | {} | {} |",
                    decimals(row.cpu_us_per_request, 1),
                    decimals(row.cpu_user_us_per_request, 1),
                    decimals(row.cpu_kernel_us_per_request, 1),
                    row.rps.map_or_else(|| "-".to_owned(), figure),
                    decimals(row.p50_ms, 2),
                    decimals(row.p99_ms, 2),
                    failed_of(row)
                );
            }
            if let Some(collapse) = collapse_of(row) {
                let _ = writeln!(text, "| {load} | {name} | {collapse} | | | | | {} |", row.failed);
            }
        }
        for burst in &section.bursts {
            let _ = writeln!(
                text,
                "| burst | {} | {} | | | | | |",
                burst.name,
                burst_in_words(burst)
            );
        }
        for note in &section.notes {
            let _ = writeln!(text, "\n{note}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::rows::Round;
    use super::*;

    struct Shown(Section);

    impl fmt::Display for Shown {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            table(f, &self.0)
        }
    }

    fn section() -> Section {
        let round = |collapsed| Round {
            collapsed,
            offered_rps: 27_000.0,
            rps: if collapsed { 17_000.0 } else { 27_000.0 },
            cpu_us_per_request: 40.0,
            p50_ms: if collapsed { 529.0 } else { 0.4 },
            p99_ms: 1.0,
            failed: if collapsed { 78_087 } else { 0 },
        };
        let row = |name: &str, rounds: Vec<Round>| Row {
            name: name.to_owned(),
            share: Some(0.5),
            collapsed_rounds: rounds.iter().filter(|round| round.collapsed).count() as u32,
            cpu_ratio: rounds.iter().any(|round| !round.collapsed).then_some(1.5),
            rounds,
            ..Row::default()
        };
        Section {
            title: "1 producer".to_owned(),
            reference: "nghttpx".to_owned(),
            most_rps: 54_000.0,
            saturated: Vec::new(),
            open: vec![
                row("well", vec![round(false)]),
                row("partly", vec![round(false), round(true)]),
                row("never", vec![round(true)]),
            ],
            bursts: Vec::new(),
            notes: vec!["absent: it refused".to_owned()],
        }
    }

    #[test]
    fn refusals_are_shown_apart() {
        let row = |refused| Row {
            failed: 12,
            refused,
            ..Row::default()
        };
        assert_eq!(failed_of(&row(0)), "12");
        assert_eq!(failed_of(&row(5)), "12 (5 refused)");
    }

    #[test]
    fn what_collapsed_is_shown_as_such() {
        let lines = |text: &str, name: &str| -> Vec<String> {
            text.lines()
                .filter(|line| line.contains(name))
                .map(str::to_owned)
                .collect()
        };
        let collapse = "of 27,000 requests/s served, p50 529 ms, 78,087 failed";
        let shown = Shown(section()).to_string();
        let markdown = markdown("make bench-scp", &Machine::default(), &[section()]);
        for text in [&shown, &markdown] {
            assert!(text.contains("absent: it refused"), "{text}");
            assert_eq!(lines(text, "well").len(), 1, "{text}");
            let partly = lines(text, "partly");
            assert!(
                partly[0].contains("1.50") && !partly[0].contains("COLLAPSED"),
                "{text}"
            );
            assert!(partly[1].contains("COLLAPSED in 1 of 2 rounds: 17,000"), "{text}");
            assert!(partly[1].contains(collapse), "{text}");
            let never = lines(text, "never");
            assert!(
                never.len() == 1 && never[0].contains("COLLAPSED in 1 of 1"),
                "{text}"
            );
        }
        assert!(markdown.contains("| 50 % | well | **1.50** |"), "{markdown}");
    }
}
