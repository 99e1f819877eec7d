//! The policy engine as a function uses it.

mod blocks;
mod examples;
mod fuzz;
mod hostile;
mod mistakes;
mod notify;
mod operations;
mod subscriber_state;
mod trace;

use std::path::{Path, PathBuf};

use policy::{Fault, Input, Limits, Project, ProjectError, Scratch};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::macros::datetime;

/// A Monday at noon.
pub(crate) const NOON: OffsetDateTime = datetime!(2026-01-05 12:00 UTC);

/// The files of a folder without those in folders below it: name, text.
pub(crate) fn files(folder: &Path) -> Vec<(String, String)> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    let read = |path: &PathBuf| (path.display().to_string(), std::fs::read_to_string(path).unwrap());
    found.iter().map(read).collect()
}

pub(crate) fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect()
}

pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/policy")
        .join(name)
}

/// Compiles a project of one file; name and service are added.
pub(crate) fn compile(text: &str) -> Result<Project, ProjectError> {
    compile_within(text, &Limits::default())
}

pub(crate) fn compile_within(text: &str, limits: &Limits) -> Result<Project, ProjectError> {
    let text = format!("name: test\nservice: sm\n{text}");
    Project::compile(&[("project.yaml", &text)], limits)
}

/// The decision of a project for a request that every test has.
pub(crate) fn decide(text: &str) -> Result<Value, Fault> {
    decide_at(text, NOON)
}

pub(crate) fn decide_at(text: &str, now: OffsetDateTime) -> Result<Value, Fault> {
    let project = compile(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    decide_with(&project, now)
}

pub(crate) fn decide_with(project: &Project, now: OffsetDateTime) -> Result<Value, Fault> {
    let request = json!({
        "supi": "imsi-001010000000001",
        "dnn": "internet",
        "sliceInfo": {"sst": 1, "sd": "00000a"},
        "ipv4Address": "10.1.2.3",
        "list": [3, "b", {"c": null}, [1]],
        "n": 7,
        "f": 2.5,
        "yes": true,
        "nothing": null,
    });
    let subscriber = json!({"subscCats": ["gold", "staff"], "a/b": {"~": 1}});
    let counters = json!({"daily": {"policyCounterId": "daily", "currentStatus": "low"}});
    let input = Input {
        subscriber: &subscriber,
        counters: &counters,
        ..Input::new("create", &request)
    };
    let mut scratch = Scratch::default();
    let decision = project.decide(&mut scratch, &input, now, None)?;
    let mut json = decision.to_json();
    if let Some(rejection) = decision.rejection() {
        json["rejection"] = json!({"status": rejection.status, "cause": rejection.cause});
    }
    let state: serde_json::Map<String, Value> = decision
        .state()
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.to_json()))
        .collect();
    if !state.is_empty() {
        json["state"] = Value::Object(state);
    }
    Ok(json)
}

/// What blocks remember as `x`.
pub(crate) fn remembered(text: &str) -> Value {
    let decision = decide(text).unwrap_or_else(|fault| panic!("{text}\n{fault}"));
    decision["state"]["x"].clone()
}

/// The value of an expression.
pub(crate) fn evaluate(expression: &str) -> Value {
    remembered(&format!("blocks: [{{remember: {{x: {expression}}}}}]"))
}
