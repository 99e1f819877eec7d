//! Test cases of projects: a request, subscriber data, the expected decision.
//!
//! Cases are YAML or JSON, a list of them or one a file:
//!
//! ```yaml
//! - name: a gold subscriber gets a gigabit
//!   event: create
//!   now: 2026-01-05T20:30:00Z
//!   request: {supi: imsi-001010000000001, dnn: internet}
//!   subscriber: {category: gold}
//!   expect:
//!     sessRules: {default: {sessRuleId: default, authSessAmbr: {uplink: 1 Gbps, downlink: 2 Gbps}}}
//! ```
//!
//! `expect` is the whole decision. In its place or beside it: `expectState` (state variables of the association),
//! `expectSubscriberState` (those of the subscriber), `expectNotifications` (messages to servers of the operator, none of which is
//! sent), `expectRejection` (`status`, `cause`), `expectFault` (a class of [`FaultKind`](crate::FaultKind)).

use std::fmt;

use serde_json::{Map, Value as Json, json};
use settings::{Document, Fault, Report, nearest, path_key};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::{Input, Limits, Project, ProjectError, Scratch, Trace};

/// A request with the data that a decision needs, and what is expected of it.
#[derive(Clone, Debug)]
pub struct Case {
    /// What it shows.
    pub name: String,
    event: String,
    now: OffsetDateTime,
    documents: Map<String, Json>,
    expected: Map<String, Json>,
}

/// How a case ended.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// What the case shows.
    pub name: String,
    /// Where the outcome is not the expected one; empty when the case passed.
    pub differences: Vec<Difference>,
}

/// A part of the outcome that is not as expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Such as `sessRules.default.authSessAmbr.uplink`.
    pub path: String,
    /// Absent where nothing is expected.
    pub expected: Option<Json>,
    /// Absent where the decision has nothing there.
    pub found: Option<Json>,
}

const DOCUMENTS: &[&str] = &[
    "request",
    "subscriber",
    "counters",
    "session",
    "state",
    "subscriberState",
    "af",
];
const EXPECTED: &[&str] = &[
    "expect",
    "expectState",
    "expectSubscriberState",
    "expectNotifications",
    "expectRejection",
    "expectFault",
];
/// Differences of one case that are listed.
const LISTED: usize = 50;

impl Case {
    /// The cases of a file.
    ///
    /// # Errors
    /// Every mistake with its line.
    pub fn parse(text: &str, name: &str) -> Result<Vec<Self>, ProjectError> {
        let document = Document::parse(text, name, settings::Limits::default())
            .map_err(|report: Report| ProjectError::new(vec![report]))?;
        let mut faults = Vec::new();
        let cases = match document.to_json() {
            Json::Array(cases) => {
                let case = |(index, case)| Self::read(case, &format!("[{index}]"), &mut faults);
                cases.iter().enumerate().filter_map(case).collect()
            }
            case => Self::read(&case, "", &mut faults).into_iter().collect(),
        };
        match faults.is_empty() {
            true => Ok(cases),
            false => Err(ProjectError::new(vec![document.report(faults)])),
        }
    }

    fn read(json: &Json, path: &str, faults: &mut Vec<Fault>) -> Option<Self> {
        let mut fault = |path: String, what: String, expected: String| {
            faults.push(Fault { path, what, expected });
        };
        let Some(map) = json.as_object() else {
            fault(
                path.to_owned(),
                "the case is not a mapping".to_owned(),
                "`key: value` lines".to_owned(),
            );
            return None;
        };
        let known: Vec<&str> = ["name", "event", "now"]
            .into_iter()
            .chain(DOCUMENTS.iter().chain(EXPECTED).copied())
            .collect();
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            let similar =
                nearest(key, &known).map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
            fault(
                path_key(path, key),
                format!("unknown key `{key}`"),
                format!("one of {}{similar}", known.join(", ")),
            );
        }
        let text = |key: &str| map.get(key).and_then(Json::as_str);
        let now = match map.get("now") {
            None => Some(OffsetDateTime::UNIX_EPOCH),
            Some(now) => now
                .as_str()
                .and_then(|now| OffsetDateTime::parse(now, &Rfc3339).ok()),
        };
        let Some(now) = now else {
            fault(
                path_key(path, "now"),
                "it is not a time".to_owned(),
                "such as `2026-01-31T12:00:00Z`".to_owned(),
            );
            return None;
        };
        let select = |keys: &[&str]| {
            let chosen = keys
                .iter()
                .filter_map(|key| Some(((*key).to_owned(), map.get(*key)?.clone())));
            chosen.collect::<Map<String, Json>>()
        };
        Some(Self {
            name: text("name").unwrap_or("unnamed").to_owned(),
            event: text("event").unwrap_or("create").to_owned(),
            now,
            documents: select(DOCUMENTS),
            expected: select(EXPECTED),
        })
    }

    /// The outcome as JSON: `expect` and the like, as a case that passes has them.
    #[must_use]
    pub fn outcome(&self, project: &Project, scratch: &mut Scratch, trace: Option<&mut Trace>) -> Json {
        self.with_input(|input| match project.decide(scratch, input, self.now, trace) {
            Ok(decision) => {
                let mut outcome = Map::new();
                if let Some(rejection) = decision.rejection() {
                    let mut rejected = json!({"status": rejection.status, "cause": rejection.cause});
                    if let Some(detail) = &rejection.detail {
                        rejected["detail"] = json!(detail);
                    }
                    outcome.insert("expectRejection".to_owned(), rejected);
                } else {
                    outcome.insert("expect".to_owned(), decision.to_json());
                }
                for (key, variables) in [
                    ("expectState", decision.state()),
                    ("expectSubscriberState", decision.subscriber_state()),
                ] {
                    if !variables.is_empty() {
                        let variables = variables.iter();
                        let variables = variables.map(|(name, value)| ((*name).to_owned(), value.to_json()));
                        outcome.insert(key.to_owned(), Json::Object(variables.collect()));
                    }
                }
                if !decision.notifications().is_empty() {
                    outcome.insert("expectNotifications".to_owned(), json!(decision.notifications()));
                }
                Json::Object(outcome)
            }
            Err(fault) => json!({"expectFault": fault.kind.name(), "fault": fault.to_string()}),
        })
    }

    /// Calls with the input of the case.
    pub fn with_input<T>(&self, call: impl FnOnce(&Input<'_>) -> T) -> T {
        let null = Json::Null;
        let document = |name: &str| self.documents.get(name).unwrap_or(&null);
        call(&Input {
            event: &self.event,
            request: document("request"),
            subscriber: document("subscriber"),
            counters: document("counters"),
            session: document("session"),
            state: document("state"),
            subscriber_state: document("subscriberState"),
            af: document("af"),
        })
    }

    /// The time of the case.
    #[must_use]
    pub fn now(&self) -> OffsetDateTime {
        self.now
    }

    /// Runs the case.
    #[must_use]
    pub fn run(&self, project: &Project, scratch: &mut Scratch) -> CaseResult {
        let outcome = self.outcome(project, scratch, None);
        let mut differences = Vec::new();
        let mut expected = Json::Object(self.expected.clone());
        // What a fault says is shown with a difference, and not compared.
        let fault = outcome.get("fault").cloned();
        if let (Some(fault), Some(expected)) = (&fault, expected.as_object_mut())
            && expected.get("expectFault") == outcome.get("expectFault")
        {
            expected.insert("fault".to_owned(), fault.clone());
        }
        compare("", Some(&expected), Some(&outcome), &mut differences);
        for difference in &mut differences {
            difference.path = match difference.path.strip_prefix("expect.") {
                Some(path) => path.to_owned(),
                None => difference.path.clone(),
            };
        }
        CaseResult {
            name: self.name.clone(),
            differences,
        }
    }
}

/// Compiles a project and runs its cases: files of the project, then files of cases, each name and text.
///
/// # Errors
/// Mistakes of the project or of a case, with file and line.
pub fn run(
    files: &[(&str, &str)],
    cases: &[(&str, &str)],
    limits: &Limits,
) -> Result<Vec<CaseResult>, ProjectError> {
    let project = Project::compile(files, limits)?;
    let mut scratch = Scratch::default();
    let mut results = Vec::new();
    for (name, text) in cases {
        let cases = Case::parse(text, name)?;
        results.extend(cases.iter().map(|case| case.run(&project, &mut scratch)));
    }
    Ok(results)
}

/// Differences of two JSON values. The order of members does not count, that of items does.
fn compare(path: &str, expected: Option<&Json>, found: Option<&Json>, differences: &mut Vec<Difference>) {
    if differences.len() >= LISTED {
        return;
    }
    match (expected, found) {
        (Some(Json::Object(expected)), Some(Json::Object(found))) => {
            for (key, value) in expected {
                compare(&path_key(path, key), Some(value), found.get(key), differences);
            }
            for (key, value) in found.iter().filter(|(key, _)| !expected.contains_key(*key)) {
                compare(&path_key(path, key), None, Some(value), differences);
            }
        }
        (Some(Json::Array(expected)), Some(Json::Array(found))) => {
            for index in 0..expected.len().max(found.len()) {
                compare(
                    &format!("{path}[{index}]"),
                    expected.get(index),
                    found.get(index),
                    differences,
                );
            }
        }
        (Some(Json::Number(a)), Some(Json::Number(b))) if a.as_f64() == b.as_f64() => {}
        (expected, found) if expected == found => {}
        (expected, found) => differences.push(Difference {
            path: path.to_owned(),
            expected: expected.cloned(),
            found: found.cloned(),
        }),
    }
}

impl CaseResult {
    /// Whether the outcome is the expected one.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.differences.is_empty()
    }
}

impl fmt::Display for CaseResult {
    /// The name with `ok` or `FAILED`, then for each difference the path, `-` what is expected and `+` what was found.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} {}",
            if self.passed() { "ok    " } else { "FAILED" },
            self.name
        )?;
        for difference in &self.differences {
            writeln!(f, "  {}", difference.path)?;
            if let Some(expected) = &difference.expected {
                writeln!(f, "    - {expected}")?;
            }
            if let Some(found) = &difference.found {
                writeln!(f, "    + {found}")?;
            }
        }
        Ok(())
    }
}
