//! The admin pages of an ENUM server.

use std::fmt::Write as _;
use std::sync::{Arc, Weak};

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use function::Page;
use numbers::{Change, DestinationSet};
use serde_json::{Value, json};

use crate::changes::Refusal;
use crate::control::Control;
use crate::resolve::{Resolution, Source, check, records};
use crate::tables::{Digits, Naptr, Tables, Tree};

pub(crate) const PAGES: &[Page] = &[
    Page {
        name: "find",
        about: "What a number resolves to in each tree",
        path: "/enum/find/{}",
        argument: Some("NUMBER"),
        columns: &[
            ("tree", "/tree"),
            ("outcome", "/outcome"),
            ("order", "/order"),
            ("preference", "/preference"),
            ("service", "/service"),
            ("result", "/result"),
        ],
    },
    Page {
        name: "why",
        about: "How a number, or a name of a tree, is resolved, step by step",
        path: "/enum/why/{}",
        argument: Some("NUMBER"),
        columns: &[],
    },
    Page {
        name: "trees",
        about: "The trees of names that this server answers for",
        path: "/enum/trees",
        argument: None,
        columns: &[
            ("tree", "/tree"),
            ("digits", "/digits"),
            ("service", "/service"),
            ("serial", "/serial"),
            ("ranges", "/ranges"),
        ],
    },
    Page {
        name: "profiles",
        about: "What numbers resolve to, and what clients may misunderstand of it",
        path: "/enum/profiles",
        argument: None,
        columns: &[
            ("profile", "/profile"),
            ("records", "/records"),
            ("advice", "/advice"),
        ],
    },
    Page {
        name: "numbers",
        about: "How many numbers there are, and how many were changed at the admin endpoint",
        path: "/enum/numbers",
        argument: None,
        columns: &[],
    },
];

/// What is said of a number whose change is kept and not in effect.
const ASIDE: &str = "it was changed, and the change has no room among the numbers";

/// Serves [`PAGES`] and changes, through a weak handle: a page must not keep the server from ending.
pub(crate) fn routes(server: &Arc<Control>) -> Router {
    let page = |make: fn(&Tables) -> Value| {
        let server = Arc::downgrade(server);
        get(move || async move { axum::Json(shown(&server, make)) })
    };
    let about = |make: fn(&Tables, &str) -> Value| {
        let server = Arc::downgrade(server);
        get(move |Path(number): Path<String>| async move {
            axum::Json(shown(&server, |tables| make(tables, &number)))
        })
    };
    let (putting, removing, changing) = (
        Arc::downgrade(server),
        Arc::downgrade(server),
        Arc::downgrade(server),
    );
    let one = put(async move |Path(number): Path<String>, body: String| {
        change(&putting, vec![format!("put,{number},{}", body.trim())]).await
    });
    let one = one.delete(async move |Path(number): Path<String>| {
        change(&removing, vec![format!("remove,{number}")]).await
    });
    let numbers = page(numbers).merge(post(async move |body: String| {
        change(&changing, body.lines().map(str::to_owned).collect()).await
    }));
    Router::new()
        .route("/enum/find/{number}", about(find))
        .route("/enum/why/{number}", about(why))
        .route("/enum/trees", page(trees))
        .route("/enum/profiles", page(profiles))
        .route("/enum/numbers", numbers)
        .route("/enum/numbers/{number}", one)
}

fn shown(server: &Weak<Control>, make: impl FnOnce(&Tables) -> Value) -> Value {
    let server = server.upgrade();
    server.map_or(Value::Null, |server| make(&server.live.load().derived))
}

/// A number as people write it: with `+` and without, with the separators of RFC 3966 §5.1.1.
fn number(text: &str) -> Option<Digits> {
    let digits: String = text.chars().filter(|one| !"-.() ".contains(*one)).collect();
    Digits::parse(digits.strip_prefix('+').unwrap_or(&digits)).filter(|digits| digits.len() > 0)
}

fn find(tables: &Tables, text: &str) -> Value {
    let Some(number) = number(text) else {
        return json!({"error": "expected a number of 1 to 15 digits"});
    };
    let mut rows = Vec::new();
    for tree in trees_of(tables, &number) {
        let row = |outcome: &str| json!({"tree": tree.name(), "outcome": outcome});
        match Resolution::find(tables, tree, &number) {
            Ok(Resolution::Known(profile, source)) => match records(profile, &source, &number) {
                Ok(records) => rows.extend(records.iter().map(|record| found(tree, record))),
                Err(error) => rows.push(row(&error)),
            },
            Ok(Resolution::Without) => rows.push(row("no records for this tree")),
            Ok(Resolution::Incomplete) => rows.push(row("incomplete")),
            Ok(Resolution::Unknown) => rows.push(row("unknown")),
            Ok(Resolution::Aside) => rows.push(row(ASIDE)),
            Ok(Resolution::NoProfile(name)) => rows.push(row(&format!("profile `{name}` does not exist"))),
            Err(damaged) => rows.push(row(&damaged.to_string())),
        }
    }
    Value::Array(rows)
}

fn found(tree: &Tree, record: &Naptr<'_>) -> Value {
    let next = record.replacement.to_string();
    json!({
        "tree": tree.name(),
        "outcome": "known",
        "order": record.template.order,
        "preference": record.template.preference,
        "flags": record.template.flags,
        "service": record.template.service,
        "result": if record.regexp.is_empty() { &next } else { &record.regexp },
    })
}

/// The trees that may have a number.
fn trees_of<'t>(tables: &'t Tables, number: &Digits) -> impl Iterator<Item = &'t Tree> + use<'t> {
    let number = *number;
    tables
        .trees
        .iter()
        .filter(move |tree| number.starts_with(&tree.digits) && number.len() > tree.digits.len())
}

/// Explains how a number is resolved.
fn why(tables: &Tables, text: &str) -> Value {
    let Some(number) = named(tables, text).or_else(|| number(text)) else {
        return json!({"error": "expected a number of 1 to 15 digits, or the name of one in a tree"});
    };
    let mut steps = vec![format!("number +{number}")];
    match (&tables.numbers, number.key()) {
        (Some(numbers), Some(key)) => {
            let explained = numbers.load().map.explain(key);
            let entry = match &explained.found {
                Ok(Some(set)) => format!("entry `{set}`"),
                Ok(None) => "no entry of its own".to_owned(),
                Err(damaged) => damaged.to_string(),
            };
            steps.push(format!(
                "numbers: {entry} ({}, {:?})",
                explained.block, explained.place
            ));
        }
        _ => steps.push("numbers: none are set".to_owned()),
    }
    let mut answers = Vec::new();
    for tree in trees_of(tables, &number) {
        let (step, answer) = outcome(tables, tree, &number);
        steps.push(format!("{}: {step}", tree.name()));
        answers.push(json!({"tree": tree.name(), "name": name(tree, &number), "answer": answer}));
    }
    if answers.is_empty() {
        steps.push("no tree has it: REFUSED".to_owned());
    }
    json!({"steps": steps, "answers": answers})
}

fn outcome(tables: &Tables, tree: &Tree, number: &Digits) -> (String, &'static str) {
    match Resolution::find(tables, tree, number) {
        Ok(Resolution::Known(profile, source)) => {
            let by = match &source {
                Source::Entry(_) => format!("service `{}` of its entry", tree.service),
                Source::Range(digits) => format!("range {digits}"),
            };
            let text = format!("profile `{}` by {by}", profile.name);
            match records(profile, &source, number) {
                Ok(records) if records.is_empty() => {
                    (format!("{text}; it has the parameters of no record"), "NODATA")
                }
                Ok(records) => (format!("{text}; {} NAPTR records", records.len()), "NOERROR"),
                Err(error) => (format!("{text}; {error}"), "SERVFAIL"),
            }
        }
        Ok(Resolution::Without) => (
            format!("its entry has no destination for service `{}`", tree.service),
            "NODATA",
        ),
        Ok(Resolution::Incomplete) => (
            "no range has it; longer numbers begin with it".to_owned(),
            "NODATA",
        ),
        Ok(Resolution::Unknown) => (
            "no range has it, and no longer number begins with it".to_owned(),
            "NXDOMAIN",
        ),
        Ok(Resolution::Aside) => (ASIDE.to_owned(), "SERVFAIL"),
        Ok(Resolution::NoProfile(name)) => (format!("profile `{name}` does not exist"), "SERVFAIL"),
        Err(damaged) => (damaged.to_string(), "SERVFAIL"),
    }
}

/// The name of a number in a tree.
fn name(tree: &Tree, number: &Digits) -> String {
    let mut name = String::new();
    let below = number.as_slice().get(tree.digits.len()..).unwrap_or_default();
    for digit in below.iter().rev() {
        // Text takes what it gets.
        let _ = write!(name, "{digit}.");
    }
    name + &tree.name()
}

/// The number of a name, in the tree that has it.
fn named(tables: &Tables, text: &str) -> Option<Digits> {
    let text = text.trim_end_matches('.').to_ascii_lowercase();
    tables.trees.iter().find_map(|tree| {
        let below = text
            .strip_suffix(&tree.name().to_ascii_lowercase())?
            .strip_suffix('.')?;
        let mut number = tree.digits;
        for label in below.split('.').rev() {
            let [digit] = label.as_bytes() else { return None };
            number.push(*digit)?;
        }
        Some(number)
    })
}

fn trees(tables: &Tables) -> Value {
    let rows = tables.trees.iter().map(|tree| {
        json!({
            "tree": tree.name(),
            "digits": tree.digits.to_string(),
            "service": tree.service,
            "serial": tree.soa.serial().into_int(),
            "ranges": tree.ranges.len(),
        })
    });
    rows.collect()
}

fn profiles(tables: &Tables) -> Value {
    let mut profiles: Vec<_> = tables.profiles.values().collect();
    profiles.sort_by(|one, other| one.name.cmp(&other.name));
    let rows = profiles.into_iter().map(|profile| {
        let services: Vec<&str> = profile
            .records
            .iter()
            .map(|record| record.service.as_str())
            .collect();
        json!({"profile": profile.name, "records": services, "advice": profile.advice})
    });
    rows.collect()
}

fn numbers(tables: &Tables) -> Value {
    json!({
        "imported": tables.numbers.as_ref().map(|numbers| numbers.load().map.size().0),
        "changed": tables.changes.as_ref().map(|changes| changes.count()),
        "canChange": tables.changes.is_some(),
    })
}

/// Applies lines: `put,NUMBER,DESTINATIONS` and `remove,NUMBER`; all of them, or none.
async fn change(server: &Weak<Control>, lines: Vec<String>) -> (StatusCode, String) {
    let Some(server) = server.upgrade() else {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            "the server is stopping\n".to_owned(),
        );
    };
    // It waits for the disk.
    let done = tokio::task::spawn_blocking(move || apply(&server, &lines)).await;
    done.unwrap_or_else(|error| (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")))
}

fn apply(server: &Control, lines: &[String]) -> (StatusCode, String) {
    let tables = server.live.load().derived.clone();
    let Some(changes) = &tables.changes else {
        let wrong = "numbers cannot be changed here; set `enum.directory`, in which changes are kept\n";
        return (StatusCode::CONFLICT, wrong.to_owned());
    };
    let mut wanted = Vec::new();
    for (index, line) in lines
        .iter()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        match parse(&tables, line.trim()) {
            Ok(change) => wanted.push(change),
            Err(wrong) => {
                server.meters.refused.inc();
                return (
                    StatusCode::BAD_REQUEST,
                    format!("line {}: {wrong}; nothing has changed\n", index + 1),
                );
            }
        }
    }
    let count = wanted.len();
    match changes.apply(&wanted) {
        Ok(()) => {
            server.meters.applied.add(count as u64);
            (StatusCode::OK, format!("{count} numbers changed\n"))
        }
        Err(Refusal::Wrong(wrong)) => {
            server.meters.refused.inc();
            (StatusCode::CONFLICT, format!("{wrong}; nothing has changed\n"))
        }
        Err(Refusal::Unwritten(wrong)) => {
            server.meters.unwritten.inc();
            (
                StatusCode::SERVICE_UNAVAILABLE,
                format!("not written: {wrong}; nothing has changed\n"),
            )
        }
    }
}

fn parse(tables: &Tables, line: &str) -> Result<Change, String> {
    let (verb, rest) = line
        .split_once(',')
        .ok_or("expected `put,NUMBER,DESTINATIONS` or `remove,NUMBER`")?;
    let (text, destinations) = rest.split_once(',').unwrap_or((rest, ""));
    let digits =
        number(text).ok_or_else(|| format!("`{}` is not a number of 1 to 15 digits", text.escape_debug()))?;
    let key = digits.key().ok_or("the number is empty")?;
    match verb {
        "put" => {
            let set = DestinationSet::parse(destinations).map_err(|error| error.to_string())?;
            check(tables, &digits, &set)?;
            Ok(Change::Put { key, set })
        }
        "remove" if destinations.is_empty() => Ok(Change::Remove { key }),
        _ => Err("expected `put,NUMBER,DESTINATIONS` or `remove,NUMBER`".to_owned()),
    }
}
