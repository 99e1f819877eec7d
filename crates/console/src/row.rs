//! One function as the summary has it. Every text is cut and every list bounded: peers of functions name much of it.

use std::time::SystemTime;

use serde::Serialize;
use serde_json::{Value, json};
use telemetry::journal::moment;

use crate::client::Failure;
use crate::observation::{Observation, Reach, cut};

/// Entries of each list of a function that are shown; how many more there are is said.
const MOST: usize = 100;
/// Characters of a text.
const TEXT: usize = 500;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Level {
    /// It serves and lacks nothing.
    Good,
    /// It is not known yet.
    Unknown,
    /// It serves, and something is wrong.
    Attention,
    /// It does not serve.
    Bad,
}

/// One function.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) function: String,
    pub(crate) admin: String,
    pub(crate) level: Level,
    /// In words: `serves`, `not running`.
    pub(crate) state: String,
    /// Since when it has that state, as far as this console saw it.
    pub(crate) since: Option<String>,
    /// Its last answer.
    pub(crate) last_answer: Option<String>,
    pub(crate) version: String,
    pub(crate) up_since: Option<String>,
    /// Registered where and since when; none for a function that does not register.
    pub(crate) registered: Value,
    /// Whether the file on the disk is in effect.
    pub(crate) configuration: Value,
    pub(crate) figures: Option<Value>,
    pub(crate) figures_hour_ago: Option<Value>,
    pub(crate) wrong: Vec<Wrong>,
    pub(crate) dependencies: Vec<Value>,
    /// Entries beyond the bound of each list.
    pub(crate) more_wrong: usize,
    pub(crate) more_dependencies: usize,
}

/// Something that is wrong, with the remedy and a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Wrong {
    pub(crate) what: String,
    pub(crate) detail: String,
    pub(crate) since: Option<String>,
    pub(crate) remedy: String,
    pub(crate) command: String,
    /// Whether it is a dependency that the function cannot reach.
    #[serde(skip)]
    pub(crate) is_unreachable: bool,
}

impl Row {
    pub(crate) fn new(known: &Observation) -> Self {
        let status = &known.status;
        let (level, state, since) = standing(known);
        let is_current = known.reach == Reach::Answers;
        let dependencies = list(status, "dependencies");
        let (wrong, more_wrong) = match own_wrong(known) {
            Some(wrong) => (vec![wrong], 0),
            None => said_wrong(known),
        };
        Self {
            name: known.name.clone(),
            function: cut(known.kind(), 64),
            admin: known.admin.to_string(),
            level,
            state,
            since: since.map(moment),
            last_answer: known.answered.map(|(at, _)| moment(at)),
            version: text(status, "version"),
            // What is gone is not up; its last answer says when it was.
            up_since: status["upSince"].as_str().filter(|_| is_current).map(second),
            registered: if is_current {
                dependency(&status["registered"])
            } else {
                Value::Null
            },
            configuration: if is_current {
                configuration(&status["configuration"])
            } else {
                Value::Null
            },
            figures: known.figures.as_ref().map(|figures| figures.json()),
            figures_hour_ago: known.hour_ago().map(|figures| figures.json()),
            wrong,
            more_wrong,
            dependencies: dependencies.iter().take(MOST).map(dependency).collect(),
            more_dependencies: dependencies.len().saturating_sub(MOST),
        }
    }
}

/// How it is doing, in words, and since when.
fn standing(known: &Observation) -> (Level, String, Option<SystemTime>) {
    match &known.reach {
        Reach::Unasked => (Level::Unknown, "not asked yet".to_owned(), None),
        Reach::Lost {
            since,
            why: Failure::Refused,
        } => (Level::Bad, "not running".to_owned(), Some(*since)),
        Reach::Lost { since, .. } => (Level::Bad, "no answer".to_owned(), Some(*since)),
        Reach::Foreign { since, .. } => (Level::Bad, "unknown".to_owned(), Some(*since)),
        Reach::Answers => {
            let state = text(&known.status, "state");
            let level = match state.as_str() {
                "serves" => Level::Good,
                _ if known.status["ready"] == true && known.status["alive"] == true => Level::Attention,
                _ => Level::Bad,
            };
            let since = known.state_since.as_ref().and_then(|(_, at)| *at);
            (level, state, since)
        }
    }
}

/// What is wrong with a function that says nothing of itself.
fn own_wrong(known: &Observation) -> Option<Wrong> {
    let name = &known.name;
    let (since, detail, remedy, command) = match &known.reach {
        Reach::Unasked | Reach::Answers => return None,
        Reach::Lost {
            since,
            why: Failure::Refused,
        } => {
            let detail = format!("connection refused at {}", known.admin);
            let remedy = "Start it; its log says why it ended.".to_owned();
            (since, detail, remedy, format!("signalbox run {}", known.kind()))
        }
        Reach::Lost { since, why } => {
            let detail = format!("{} at {}", why, known.admin);
            let remedy = "The process hangs, is overloaded or cannot be reached from here: see its log, then restart it.";
            let command = format!("signalbox status --admin {}", known.admin);
            (since, detail, remedy.to_owned(), command)
        }
        Reach::Foreign { since, why } => {
            let remedy = format!("Give {name} the admin address that it has, or free that address.");
            let command = format!("signalbox status --admin {}", known.admin);
            (since, why.clone(), remedy, command)
        }
    };
    let (_, what, _) = standing(known);
    let before = match (&known.reach, known.answered) {
        (Reach::Lost { .. }, None) => "; it has never answered this console",
        _ => "",
    };
    Some(Wrong {
        what,
        detail: cut(&detail, TEXT) + before,
        since: Some(moment(*since)),
        remedy,
        command: cut(&command, TEXT),
        is_unreachable: false,
    })
}

/// What a function says is wrong.
fn said_wrong(known: &Observation) -> (Vec<Wrong>, usize) {
    let all = list(&known.status, "wrong");
    let dependencies = list(&known.status, "dependencies");
    let alarms = list(&known.status, "alarms");
    let since = |what: &str| {
        let is_it = |one: &&Value| one["name"] == what;
        if let Some(found) = dependencies.iter().find(is_it) {
            return found["since"].as_str().map(second);
        }
        let is_about = |alarm: &&Value| {
            let heading = format!(
                "alarm {} {}, {}",
                alarm["number"],
                text(alarm, "name"),
                text(alarm, "instance")
            );
            heading == what
        };
        alarms
            .iter()
            .find(is_about)
            .and_then(|alarm| alarm["raised"].as_str().map(second))
    };
    let fails = |what: &Value| {
        let is_it = |one: &Value| one["name"] == *what && one["state"] == "failing";
        dependencies.iter().any(is_it)
    };
    let wrong = |one: &Value| Wrong {
        is_unreachable: fails(&one["what"]),
        since: since(one["what"].as_str().unwrap_or_default()),
        what: text(one, "what"),
        detail: text(one, "detail"),
        remedy: text(one, "remedy"),
        command: format!(
            "signalbox {} status --admin {}",
            cut(known.kind(), 64),
            known.admin
        ),
    };
    let shown = all.iter().take(MOST).map(wrong).collect();
    (shown, all.len().saturating_sub(MOST))
}

/// The active alarms of a function, and how many more there are.
pub(crate) fn alarms(known: &Observation) -> (Vec<Value>, usize) {
    if known.reach != Reach::Answers {
        return (Vec::new(), 0);
    }
    let all = list(&known.status, "alarms");
    let shown = all.iter().take(MOST).map(|alarm| {
        json!({
            "function": known.name,
            "number": alarm["number"].as_u64(),
            "name": text(alarm, "name"),
            "severity": text(alarm, "severity"),
            "about": text(alarm, "instance"),
            "since": alarm["raised"].as_str().map(second),
            "detail": text(alarm, "detail"),
            "meaning": text(alarm, "text"),
            "advice": text(alarm, "advice"),
        })
    });
    (shown.collect(), all.len().saturating_sub(MOST))
}

fn dependency(one: &Value) -> Value {
    if !one.is_object() {
        return Value::Null;
    }
    json!({
        "name": text(one, "name"),
        "state": text(one, "state"),
        "since": one["since"].as_str().map(second),
        "detail": text(one, "detail"),
        "lastSuccess": one["lastSuccess"].as_str().map(second),
        "lastError": text(one, "lastError"),
        "lastErrorAt": one["lastErrorAt"].as_str().map(second),
    })
}

fn configuration(one: &Value) -> Value {
    json!({
        "inEffect": one["inEffect"].as_bool(),
        "file": one["file"].as_str().map(|file| cut(file, TEXT)),
        "detail": text(one, "detail"),
    })
}

fn list<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value[member].as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value, member: &str) -> String {
    value[member]
        .as_str()
        .map(|text| cut(text, TEXT))
        .unwrap_or_default()
}

/// A moment by RFC 3339 without its fraction.
fn second(moment: &str) -> String {
    let moment = cut(moment, 40);
    match moment.split_once('.') {
        Some((second, _)) => format!("{second}Z"),
        None => moment,
    }
}
