//! The admin pages of a database processor.

use std::sync::{Arc, Weak};

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use dp_proto::Kind;
use function::Page;
use numbers::DestinationSet;
use serde_json::{Value, json};

use crate::answer::{key, realm};
use crate::control::Control;
use crate::data::Data;

pub(crate) const PAGES: &[Page] = &[
    Page {
        name: "lookup",
        about: "The destinations of a number or a name, such as imsi:001010000000001, and where they are from",
        path: "/dp/lookup/{}",
        argument: Some("KIND:VALUE"),
        columns: &[],
    },
    Page {
        name: "data",
        about: "How many numbers and names there are, and how far the journal is followed",
        path: "/dp/data",
        argument: None,
        columns: &[],
    },
];

/// Serves [`PAGES`], through a weak handle: a page must not keep the processor from ending.
pub(crate) fn routes(control: &Arc<Control>) -> Router {
    let (finding, showing) = (Arc::downgrade(control), Arc::downgrade(control));
    let lookup = get(async move |Path(subject): Path<String>| {
        axum::Json(shown(&finding, |_, data| look_up(data, &subject)))
    });
    Router::new().route("/dp/lookup/{subject}", lookup).route(
        "/dp/data",
        get(async move || axum::Json(shown(&showing, summary))),
    )
}

fn shown(control: &Weak<Control>, make: impl FnOnce(&Control, Option<&Data>) -> Value) -> Value {
    let Some(control) = control.upgrade() else {
        return Value::Null;
    };
    let holder = control.live.load().derived.clone();
    let data = holder.load();
    make(&control, data.as_deref())
}

fn summary(control: &Control, data: Option<&Data>) -> Value {
    json!({
        "loaded": data.is_some(),
        "numbers": data.map(|data| data.map.count()),
        "names": data.map(|data| data.names.len()),
        "offset": control.progress.offset(),
        "pendingTransactions": control.progress.behind(),
    })
}

fn look_up(data: Option<&Data>, subject: &str) -> Value {
    let Some(data) = data else {
        return json!({"subject": subject, "error": "no data are loaded"});
    };
    let parts = subject.split_once(':');
    let parts = parts.and_then(|(word, value)| {
        let kind = Kind::ALL.into_iter().find(|kind| kind.as_str() == word)?;
        Some((kind, value))
    });
    let Some((kind, value)) = parts else {
        return json!({"subject": subject, "error": "expected KIND:VALUE with imsi, msisdn, imei or name"});
    };
    if kind != Kind::Name {
        let Some(key) = key(kind, value.as_bytes()) else {
            return json!({"subject": subject, "error": "expected 1 to 15 digits"});
        };
        let explained = data.map.explain(key);
        let by = format!("{}, {}", explained.block, explained.place);
        return match explained.found {
            Ok(set) => row(subject, set.as_ref().map(ToString::to_string), &by),
            Err(damaged) => json!({"subject": subject, "error": damaged.to_string(), "by": by}),
        };
    }
    let name = value.to_ascii_lowercase();
    let text = |name: &str| {
        data.names
            .find(name, |set: &DestinationSet| Some(set.to_string()))
    };
    let found = match (text(&name), realm(&name)) {
        (Ok(None), Some(realm)) => text(&realm).map(|set| row(subject, set, &realm)),
        (Ok(None), None) => Ok(row(subject, None, "")),
        (found, _) => found.map(|set| row(subject, set, &name)),
    };
    found.unwrap_or_else(|damaged| json!({"subject": subject, "error": damaged.to_string()}))
}

fn row(subject: &str, destinations: Option<String>, by: &str) -> Value {
    let outcome = if destinations.is_some() {
        "known"
    } else {
        "unknown"
    };
    json!({"subject": subject, "outcome": outcome, "destinations": destinations, "by": by})
}
