//! Why an association has its decision: its project runs again on what is stored, with a trace.

use ::policy::{Input, Scratch, Trace, TraceEvent};
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::association::Association;
use crate::association::ue_policy::Delivery;
use crate::pds::Data;
use crate::projects::Projects;
use crate::quotas::Quotas;

/// Data of one block that a line shows.
const SHOWN_READS: usize = 8;

/// A line for each block of the evaluation: what it read, what came of it, which part of the decision it made. Nothing
/// changes.
pub(crate) fn lines(
    projects: &Projects,
    association: &Association,
    data: &Data,
    quotas: &Quotas,
    subscriber_state: &Value,
) -> Vec<Value> {
    let project = &projects.of(association.kind.service()).project;
    let session = quotas.session(association);
    let state = Value::Object(association.state.clone());
    let input = Input {
        event: "update",
        request: &association.context,
        subscriber: &data.subscriber,
        counters: &data.counters,
        session: &session,
        state: &state,
        subscriber_state,
        af: &Value::Null,
    };
    let (mut scratch, mut trace) = (Scratch::default(), Trace::new());
    let now = OffsetDateTime::now_utc();
    let fault = project.decide(&mut scratch, &input, now, Some(&mut trace)).err();
    let id = association.id.to_string();
    let line = |event: &TraceEvent| {
        let mut line = block(event);
        line["association"] = id.as_str().into();
        line["project"] = project.name().into();
        line
    };
    let mut lines: Vec<Value> = trace.events.iter().map(line).collect();
    if let Some(fault) = fault {
        lines.push(
            json!({"association": id, "project": project.name(), "block": fault.block, "kind": "fault",
            "outcome": fault.what}),
        );
    }
    lines.extend(delivery(&id, association));
    lines
}

/// What a block has read and decided.
pub(crate) fn block(event: &TraceEvent) -> Value {
    let reads = event.reads.iter().take(SHOWN_READS);
    let reads: Vec<String> = reads
        .map(|read| format!("{} = {}", read.datum, read.value))
        .collect();
    json!({"block": event.block, "kind": event.kind, "level": event.level, "decided": event.decided,
        "outcome": event.outcome, "reads": reads.join(", ")})
}

/// How far the delivery of a UE policy has come.
fn delivery(id: &str, association: &Association) -> Option<Value> {
    let delivery = Delivery::of(association)?;
    let progress = serde_json::to_value(delivery.progress).ok()?;
    let mut outcome = progress.as_str()?.to_owned();
    if let Some(cause) = &delivery.cause {
        outcome = format!("{outcome}: {cause}");
    }
    for result in &delivery.results {
        outcome = format!("{outcome}, section {} cause {}", result.upsc, result.cause);
    }
    let reads = format!("PTI = {}, attempts = {}", delivery.pti, delivery.attempts);
    Some(
        json!({"association": id, "block": "delivery of the UE policy", "kind": "delivery", "outcome": outcome,
        "reads": reads}),
    )
}
