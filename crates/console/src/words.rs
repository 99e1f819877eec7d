//! The summary as text: for terminals, screen readers and pages without script.

use std::fmt::Write as _;

use function::pages::cell;
use serde_json::Value;

/// The document in words. Moments stand in UTC.
pub(crate) fn words(document: &Value) -> String {
    let mut text = String::new();
    let headline = &document["headline"];
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}\n", word(headline, "text"));
    for need in rows(&headline["needs"]) {
        let _ = writeln!(text, "- {}", word(need, "text"));
        let _ = writeln!(
            text,
            "    {}\n    {}",
            word(need, "remedy"),
            word(need, "command")
        );
        for affected in rows(&need["affects"]) {
            let _ = writeln!(text, "    follows from it: {}", cell(Some(affected)));
        }
    }
    functions(&mut text, document);
    section(
        &mut text,
        "Alarms",
        rows(&document["alarms"]["active"]),
        |alarm| {
            let names = format!(
                "{} {} ({})",
                word(alarm, "number"),
                word(alarm, "name"),
                word(alarm, "severity")
            );
            let head = format!(
                "{}: {names}, {}, since {}",
                word(alarm, "function"),
                word(alarm, "about"),
                word(alarm, "since")
            );
            format!("{head}: {}\n    {}", word(alarm, "detail"), word(alarm, "advice"))
        },
    );
    section(
        &mut text,
        "Peers that are down",
        rows(&document["peersDown"]["peers"]),
        |peer| {
            let (function, name, since) = (word(peer, "function"), word(peer, "peer"), word(peer, "since"));
            format!("{function}: {name}, since {since}: {}", word(peer, "reason"))
        },
    );
    section(
        &mut text,
        "What changed in the last hour",
        rows(&document["changes"]["entries"]),
        |change| {
            let (time, functions) = (word(change, "time"), cell(change.get("functions")));
            let by = change["by"]
                .as_str()
                .filter(|by| !by.is_empty())
                .map(|by| format!(" (by {})", cell(Some(&by.into()))));
            let (kind, about) = (word(change, "change"), word(change, "about"));
            format!(
                "{time} {functions}: {kind}: {about}: {}{}",
                word(change, "detail"),
                by.unwrap_or_default()
            )
        },
    );
    let _ = writeln!(
        text,
        "\nas of {}; the same as JSON: /api/v1/summary, by the command line: signalbox status",
        word(document, "time")
    );
    text
}

fn functions(text: &mut String, document: &Value) {
    let _ = writeln!(text, "\nFunctions\n");
    for row in rows(&document["functions"]) {
        let _ = writeln!(
            text,
            "{}: {}, since {}",
            word(row, "name"),
            word(row, "state"),
            word(row, "since")
        );
        let figures = &row["figures"];
        if figures.is_object() {
            let _ = writeln!(
                text,
                "    {} {}/s, failure share {}, p99 {} s, of peers {} s",
                word(figures, "perSecond"),
                word(figures, "unit"),
                word(figures, "failureShare"),
                exact(&figures["p99Seconds"]),
                exact(&figures["p99PeersSeconds"]),
            );
        }
        let _ = writeln!(
            text,
            "    release {}, up since {}",
            word(row, "version"),
            word(row, "upSince")
        );
        if row["registered"].is_object() {
            let registered = &row["registered"];
            let _ = writeln!(
                text,
                "    {}, since {}",
                word(registered, "detail"),
                word(registered, "since")
            );
        }
        for one in rows(&row["dependencies"]) {
            let (name, state) = (word(one, "name"), word(one, "state"));
            let _ = writeln!(
                text,
                "    needs {name}: {state}, last success {}, last error {} {}",
                word(one, "lastSuccess"),
                word(one, "lastErrorAt"),
                word(one, "lastError"),
            );
        }
    }
}

fn section(text: &mut String, title: &str, rows: &[Value], line: impl Fn(&Value) -> String) {
    let _ = writeln!(text, "\n{title}\n");
    if rows.is_empty() {
        text.push_str("none\n");
    }
    for row in rows {
        let _ = writeln!(text, "{}", line(row));
    }
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn word(value: &Value, member: &str) -> String {
    match cell(value.get(member)) {
        empty if empty.is_empty() => "-".to_owned(),
        word => word,
    }
}

/// A number with all its digits.
fn exact(value: &Value) -> String {
    value
        .as_f64()
        .map_or_else(|| "-".to_owned(), |number| number.to_string())
}
