//! `signalbox journal`: what has changed in all functions, in order of time. The journal of a function that does not run is
//! read from its directory.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::Args;
use serde_json::json;
use settings::Period;
use telemetry::journal::{Entry, moment};

use crate::config::Config;
use crate::failure::{FAILED, Failure};
use crate::functions::{self, Function};
use crate::overview::{Endpoint, ask_all, endpoints};
use crate::{complain, inspect, print};

const TIMEOUT: Duration = Duration::from_secs(3);
/// Pause between two looks while it follows.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct JournalArgs {
    /// Functions; without any those that have a section in the configuration, or else all
    #[arg(value_parser = functions::parse, value_name = "FUNCTION", conflicts_with = "admin")]
    functions: Vec<&'static Function>,
    /// Configuration, for addresses and directories; without it the defaults
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Admin endpoint to ask in place of those of the configuration; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    admin: Vec<SocketAddr>,
    /// Only entries since then: a duration before now (2h), or a moment (2026-11-28T05:00:00Z)
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<String>,
    /// Print new entries as they come, until Ctrl-C
    #[arg(long)]
    follow: bool,
    /// Print JSON, an entry on each line
    #[arg(long)]
    json: bool,
}

/// A moment as entries have it.
fn since(text: &str) -> Result<String, String> {
    if let Ok(period) = text.parse::<Period>() {
        let at = SystemTime::now().checked_sub(period.duration());
        return at.map(moment).ok_or_else(|| format!("`{text}` is too long ago"));
    }
    let is_digit = |place: usize| text.as_bytes().get(place).is_some_and(u8::is_ascii_digit);
    let is_moment = text.is_ascii() && [0, 1, 2, 3, 5, 6, 8, 9].into_iter().all(is_digit);
    // Texts of moments sort as moments do, and a date sorts before all moments of its day.
    match is_moment && (text.len() == 10 || text.ends_with('Z')) {
        true => Ok(text.trim_end_matches('Z').to_owned()),
        false => Err(
            "neither a duration such as 2h nor a moment such as 2026-11-28T05:00:00Z or 2026-11-28"
                .to_owned(),
        ),
    }
}

/// What is known of the journal of a function.
#[derive(Default)]
struct Followed {
    last: Option<Entry>,
    /// Whether its silence was reported.
    is_silent: bool,
}

/// An entry, and the functions that have it.
struct Row {
    functions: Vec<String>,
    entry: Entry,
}

pub(crate) fn run(args: &JournalArgs) -> Result<ExitCode, Failure> {
    let (endpoints, config) = endpoints(&args.functions, args.config.as_ref(), &args.admin)?;
    let mut known: BTreeMap<String, Followed> = BTreeMap::new();
    let answered = look(&endpoints, &config, &mut known, args)?;
    if args.follow {
        loop {
            std::thread::sleep(PAUSE);
            look(&endpoints, &config, &mut known, args)?;
        }
    }
    Ok(match answered {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(FAILED),
    })
}

/// Prints the entries that are new. Returns whether any journal could be read.
fn look(
    endpoints: &[Endpoint],
    config: &Config,
    known: &mut BTreeMap<String, Followed>,
    args: &JournalArgs,
) -> Result<bool, Failure> {
    let lasts: BTreeMap<String, Option<Entry>> = known
        .iter()
        .map(|(name, one)| (name.clone(), one.last.clone()))
        .collect();
    let found = ask_all(endpoints, |endpoint| {
        let name = endpoint.name();
        let last = lasts.get(&name).and_then(Option::as_ref);
        (name, read(endpoint, config, last))
    });
    let mut rows = Vec::new();
    let mut answered = false;
    for (name, outcome) in found {
        let followed = known.entry(name.clone()).or_default();
        match &outcome {
            Ok((_, None)) => followed.is_silent = false,
            Ok((_, Some(why))) | Err(why) if !followed.is_silent => {
                followed.is_silent = true;
                complain(&format!("{name}: {why}"));
            }
            _ => {}
        }
        let Ok((entries, _)) = outcome else { continue };
        answered = true;
        followed.last = entries.last().cloned().or(followed.last.take());
        rows.extend(entries.into_iter().map(|entry| (name.clone(), entry)));
    }
    rows.sort_by(|(_, one), (_, other)| one.time.cmp(&other.time));
    if let Some(since) = &args.since {
        rows.retain(|(_, entry)| entry.time >= *since);
    }
    let merged = merged(rows);
    let text: String = merged.iter().map(|row| line(row, args.json)).collect();
    if !text.is_empty() {
        print(&text)?;
    }
    Ok(answered)
}

/// The entries of a function after the last one that is known; and why it does not answer, where its files had to be read.
fn read(
    endpoint: &Endpoint,
    config: &Config,
    last: Option<&Entry>,
) -> Result<(Vec<Entry>, Option<String>), String> {
    // The last one comes again: a journal that was begun again has another entry of that number, or none.
    let after = last.map_or(0, |last| last.sequence.saturating_sub(1));
    let fetch = |after: u64| -> Result<Vec<Entry>, String> {
        let text = inspect::fetch(endpoint.address, &format!("/journal?after={after}"), TIMEOUT)
            .map_err(|why| why.to_string())?;
        serde_json::from_str(&text)
            .map_err(|_| format!("{} has no journal: an earlier release", endpoint.address))
    };
    let newer = |mut entries: Vec<Entry>| {
        if let Some(last) = last {
            match entries.iter().position(|entry| entry == last) {
                Some(at) => drop(entries.drain(..=at)),
                None => entries.retain(|entry| entry.time > last.time),
            }
        }
        entries
    };
    match fetch(after) {
        Ok(entries) if after > 0 && last.is_some_and(|last| entries.first() != Some(last)) => {
            Ok((newer(fetch(0)?), None))
        }
        Ok(entries) => Ok((newer(entries), None)),
        Err(why) => {
            let function = endpoint.function.ok_or_else(|| why.clone())?;
            let directory = (function.journal)(config).ok_or_else(|| why.clone())?;
            let (entries, faults) = function::journal_file::read(&directory, function.journal_name);
            let faults: String = faults.iter().map(|fault| format!("; {fault}")).collect();
            match entries.is_empty() {
                true => Err(why + &faults),
                false => Ok((
                    newer(entries),
                    Some(format!(
                        "{why}; its journal is read from {}{faults}",
                        directory.display()
                    )),
                )),
            }
        }
    }
}

/// A moment to the second.
fn second(time: &str) -> &str {
    time.get(..19).unwrap_or(time)
}

/// Entries of functions of one process about the same thing become one: a reload, a stop.
fn merged(rows: Vec<(String, Entry)>) -> Vec<Row> {
    let mut all: Vec<Row> = Vec::new();
    for (name, entry) in rows {
        let is_same = |row: &&mut Row| {
            let known = &row.entry;
            (known.kind, &known.detail, &known.by) == (entry.kind, &entry.detail, &entry.by)
                && known.about == entry.about
                && second(&known.time) == second(&entry.time)
                && !row.functions.contains(&name)
        };
        match all.iter_mut().rev().take(20).find(is_same) {
            Some(row) => row.functions.push(name),
            None => all.push(Row {
                functions: vec![name],
                entry,
            }),
        }
    }
    all
}

fn line(row: &Row, json: bool) -> String {
    let Row { functions, entry } = row;
    if json {
        let mut value = json!(entry);
        value["functions"] = json!(functions);
        return format!("{value}\n");
    }
    let plain = |text: &str| inspect::cell(Some(&json!(text)));
    let by = match entry.by.is_empty() {
        true => String::new(),
        false => format!(" [{}]", plain(&entry.by)),
    };
    format!(
        "{}  {:<5} {:<15} {}: {}{by}\n",
        plain(&entry.time),
        functions.join(","),
        entry.kind.in_words(),
        plain(&entry.about),
        plain(&entry.detail)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::journal::Kind;

    fn entry(sequence: u64, time: &str, detail: &str) -> Entry {
        Entry {
            sequence,
            time: time.to_owned(),
            kind: Kind::ReloadRefused,
            about: "nrf.yaml".to_owned(),
            detail: detail.to_owned(),
            by: "SIGHUP".to_owned(),
        }
    }

    #[test]
    fn one_event_of_several_functions_is_one_line() {
        let at = |millis: u32| format!("2026-11-28T05:00:00.{millis:03}Z");
        let rows = vec![
            ("nrf".to_owned(), entry(1, &at(1), "line 3")),
            ("scp".to_owned(), entry(7, &at(2), "line 3")),
            ("scp".to_owned(), entry(8, &at(3), "line 3")),
            ("bsf".to_owned(), entry(1, &at(4), "line 4\u{1b}[2J")),
        ];
        let text: String = merged(rows).iter().map(|row| line(row, false)).collect();
        assert_eq!(
            text,
            "2026-11-28T05:00:00.001Z  nrf,scp reload refused  nrf.yaml: line 3 [SIGHUP]\n\
             2026-11-28T05:00:00.003Z  scp   reload refused  nrf.yaml: line 3 [SIGHUP]\n\
             2026-11-28T05:00:00.004Z  bsf   reload refused  nrf.yaml: line 4[2J [SIGHUP]\n"
        );
    }

    #[test]
    fn since_is_a_duration_or_a_moment() {
        assert_eq!(
            since("2026-11-28T05:00:00Z").as_deref(),
            Ok("2026-11-28T05:00:00")
        );
        assert_eq!(since("2026-11-28").as_deref(), Ok("2026-11-28"));
        assert!(since("2h").unwrap() < moment(SystemTime::now()));
        for wrong in ["yesterday", "", "2026-11-28T05:00:00+02:00", "28.11.2026"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }
}
