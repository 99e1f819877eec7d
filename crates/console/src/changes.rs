//! The journals of all functions, merged: the newest first.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use telemetry::journal::Entry;

/// Entries that are shown.
const MOST: usize = 200;

/// Entries since a moment, with the functions that have them. Functions of one process record the same reload; alarms have the
/// severity at the beginning of their detail.
pub(crate) fn merged<'a>(journals: impl Iterator<Item = (&'a str, &'a Entry)>, since: &str) -> Value {
    type Same<'a> = (&'a str, String, &'a str, &'a str, &'a str);
    let mut rows: BTreeMap<Same<'a>, Vec<&'a str>> = BTreeMap::new();
    for (function, entry) in journals.filter(|(_, entry)| entry.time.as_str() >= since) {
        let kind = entry.kind.in_words().to_owned();
        let key = (
            entry.time.as_str(),
            kind,
            entry.about.as_str(),
            entry.detail.as_str(),
            entry.by.as_str(),
        );
        let functions = rows.entry(key).or_default();
        if !functions.contains(&function) {
            functions.push(function);
        }
    }
    let more = rows.len().saturating_sub(MOST);
    let shown = rows
        .iter()
        .rev()
        .take(MOST)
        .map(|((time, kind, about, detail, by), functions)| {
            json!({
                "time": time,
                "functions": functions,
                "change": kind,
                "about": about,
                "detail": detail,
                "by": by,
            })
        });
    json!({ "since": since, "entries": shown.collect::<Vec<_>>(), "more": more })
}

#[cfg(test)]
mod tests {
    use telemetry::journal::Kind;

    use super::*;

    #[test]
    fn one_reload_of_several_functions_is_one_row_and_old_ones_are_left_out() {
        let entry = |time: &str, about: &str| Entry {
            sequence: 1,
            time: time.to_owned(),
            kind: Kind::ReloadApplied,
            about: about.to_owned(),
            detail: String::new(),
            by: String::new(),
        };
        let (old, reload, other) = (entry("1", "x"), entry("3", "file"), entry("2", "y"));
        let all = [("nrf", &old), ("nrf", &reload), ("scp", &reload), ("scp", &other)];
        let merged = merged(all.into_iter(), "2");
        let rows = merged["entries"].as_array().unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0]["functions"], json!(["nrf", "scp"]));
        assert_eq!(rows[1]["about"], "y");
    }
}
