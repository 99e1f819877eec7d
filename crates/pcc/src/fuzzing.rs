//! Bodies of fuzz targets: `tests/it/fuzz.rs` runs them for seconds, `fuzz/` for hours.

use diameter_proto::{AvpWriter, Message};
use serde_json::{Value, json};

use crate::{Mapping, decision, event, gx, media, rx, usage};

/// Bytes as a CCR and as an AAR: what is read must make a decision and a notification, or be refused.
pub fn message(bytes: &[u8]) {
    let Ok(message) = Message::parse(bytes) else {
        return;
    };
    if let Ok(request) = gx::Request::read(message.view()) {
        report(&request.document);
    }
    if let Ok(request) = rx::Request::read(message.view()) {
        service(&request.document);
    }
}

/// Text as the service information of an AF, as a report of an SMF and as subscriber data.
pub fn document(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };
    service(&value);
    report(&value);
    let now = time::OffsetDateTime::UNIX_EPOCH + time::Duration::days(20_000);
    let mut accounts = usage::Accounts::of_subscriber(&value, Some("01"), "internet", now);
    accounts.report(&value, now);
    let mut whole = value.clone();
    accounts.attach(&mut whole, None);
    assert_eq!(usage::Accounts::from_json(&accounts.to_json()), accounts);
}

fn service(request: &Value) {
    // As a stored request is: without nulls.
    let mut stored = json!({});
    media::merge(&mut stored, request);
    let Ok(rules) = media::derive("fuzz", &stored, &Mapping::default()) else {
        return;
    };
    let change = decision::difference(&json!({}), &rules).unwrap_or_default();
    assert_eq!(decision::apply(&json!({}), &change), rules);
    let mut out = AvpWriter::default();
    gx::put_change(&mut out, &Value::Null, &rules);
    let before = out.as_bytes().len();
    gx::put_change(&mut out, &rules, &rules);
    assert_eq!(out.as_bytes().len(), before, "nothing differs");
}

fn report(report: &Value) {
    let request = json!({"evSubsc": {"events": [
        {"event": "FAILED_RESOURCES_ALLOCATION"}, {"event": "SUCCESSFUL_RESOURCES_ALLOCATION"},
        {"event": "CHARGING_CORRELATION"}, {"event": "ANI_REPORT"}, {"event": "USAGE_REPORT"},
    ]}});
    if let Some(notification) = event::notification("fuzz", &request, report) {
        rx::put_notification(&mut AvpWriter::default(), &notification, report);
    }
}
