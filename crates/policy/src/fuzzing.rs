//! Bodies of fuzz targets: `tests/it/fuzz.rs` runs them for seconds, `fuzz/` for hours.

use std::cell::RefCell;

use time::OffsetDateTime;

use crate::script::difference;
use crate::{Input, Limits, Project, Scratch, Trace};

/// Limits under which each input ends soon.
fn limits() -> Limits {
    Limits {
        steps: 5_000,
        loop_turns: 100,
        memory_bytes: 64 << 10,
        script_steps: 1,
        script_memory_bytes: 64 << 10,
        output_entries: 32,
        output_bytes: 8 << 10,
        notifications: 4,
        trace_events: 50,
        ..Limits::default()
    }
}

/// The text of a project: what compiles must decide or end with a fault.
pub fn project(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let project = match Project::compile(&[("project.yaml", text)], &limits()) {
        Ok(project) => project,
        Err(error) => {
            assert!(!error.reports().is_empty());
            return;
        }
    };
    let request =
        serde_json::json!({"dnn": "internet", "supi": "imsi-001", "list": [1, "a", {"b": null}], "n": -1.5});
    let input = Input {
        subscriber: &request,
        ..Input::new("create", &request)
    };
    let mut scratch = Scratch::default();
    let plain = project.decide(&mut scratch, &input, OffsetDateTime::UNIX_EPOCH, None);
    let plain = plain
        .map(|decision| decision.to_json())
        .map_err(|fault| fault.to_string());
    let mut trace = Trace::new();
    let traced = project.decide(&mut scratch, &input, OffsetDateTime::UNIX_EPOCH, Some(&mut trace));
    let traced = traced
        .map(|decision| decision.to_json())
        .map_err(|fault| fault.to_string());
    // A script that uses up its memory may fail with other words each time.
    assert_eq!(plain.is_ok(), traced.is_ok());
    if plain.is_ok() {
        assert_eq!(plain, traced, "the trace changes the decision");
    }
    let _ = trace.to_string();
}

/// The documents of an input, as one JSON object, for the project of high complexity.
pub fn input(bytes: &[u8]) {
    thread_local! {
        static PROJECT: RefCell<(Project, Scratch)> = RefCell::new((high(), Scratch::default()));
    }
    let Ok(json) = serde_json::from_slice::<serde_json::Value>(bytes) else {
        return;
    };
    PROJECT.with_borrow_mut(|(project, scratch)| {
        let input = Input {
            subscriber: &json["subscriber"],
            counters: &json["counters"],
            session: &json["session"],
            state: &json["state"],
            subscriber_state: &json["subscriberState"],
            af: &json["af"],
            ..Input::new("update", &json["request"])
        };
        if let Ok(decision) = project.decide(scratch, &input, OffsetDateTime::UNIX_EPOCH, None) {
            assert!(decision.rejection().is_some() || decision.to_json().is_object());
        }
    });
}

/// A script, written or made of bytes: what it gives without QuickJS is what QuickJS gives.
pub fn script(bytes: &[u8]) {
    match bytes.strip_prefix(b"made") {
        Some(bytes) => drop(difference::made(bytes)),
        None => drop(std::str::from_utf8(bytes).map(difference::written)),
    }
}

/// The example project of high complexity.
///
/// # Panics
/// When it does not compile.
#[must_use]
pub fn high() -> Project {
    let files = [
        (
            "project.yaml",
            include_str!("../../../examples/policy/high/project.yaml"),
        ),
        (
            "parts.yaml",
            include_str!("../../../examples/policy/high/parts.yaml"),
        ),
    ];
    match Project::compile(&files, &Limits::default()) {
        Ok(project) => project,
        Err(error) => panic!("{error}"),
    }
}
