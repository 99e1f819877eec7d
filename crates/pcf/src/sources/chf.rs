//! Policy counters of subscribers at CHFs: Nchf_SpendingLimitControl (TS 29.594).

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use sbi::Response;
use serde_json::{Map, Value, json};

use super::producers::{self, Ask, Producers, Unavailable, is_failure, located};
use super::udr::Failure;
use super::{Term, now_ms};
use crate::outbound::{CHF, Peers};

/// A subscription to policy counters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpendingLimits {
    /// Its URI.
    pub(crate) uri: String,
    /// `PolicyCounterInfo` by identifier (`statusInfos`).
    pub(crate) counters: Map<String, Value>,
    /// How long the CHF keeps it; `None`: until it is ended.
    pub(crate) term: Option<Term>,
}

/// `SpendingLimitContext`: all counters where none is named.
pub(crate) fn context((supi, gpsi): (&str, Option<&str>), (callback, counters): (&str, &[String])) -> Value {
    let mut context = json!({"supi": supi, "notifUri": callback});
    if let Some(gpsi) = gpsi {
        context["gpsi"] = gpsi.into();
    }
    if !counters.is_empty() {
        context["policyCounterIds"] = json!(counters);
    }
    context
}

/// Subscribes to the policy counters of a subscriber (TS 29.594 §5.3.2.3.1).
///
/// # Errors
/// When no CHF answers in time, or not as it should.
pub(crate) async fn subscribe(
    chfs: &Producers,
    peers: &Peers,
    (supi, context): (&str, &Value),
    end: Instant,
) -> Result<SpendingLimits, Failure> {
    let ask = Ask {
        method: Method::POST,
        path: "/nchf-spendinglimitcontrol/v1/subscriptions",
        body: Some(&|_| context.clone()),
        supi,
        end,
    };
    let (root, response) = chfs.send(peers, ask).await?;
    if response.status() != StatusCode::CREATED {
        return Err(Failure::Refused(response.status()));
    }
    let uri = located(&root, &response).ok_or(Failure::Malformed)?;
    limits(uri, &response)
}

/// Renews a subscription (PUT, TS 29.594 §5.3.3.3.1), which answers with the counters as they are now.
///
/// # Errors
/// When the CHF does not answer in time, or has no such subscription.
pub(crate) async fn renew(
    peers: &Peers,
    uri: &str,
    context: &Value,
    end: Instant,
) -> Result<SpendingLimits, Failure> {
    let left = end.saturating_duration_since(Instant::now());
    let response = producers::put(peers, CHF, uri, context, left).await;
    let response = response.ok_or(Failure::Unavailable(Unavailable::NoAnswer))?;
    match response.status() {
        StatusCode::OK => limits(uri.to_owned(), &response),
        status if is_failure(status) => Err(Failure::Unavailable(Unavailable::NoAnswer)),
        status => Err(Failure::Refused(status)),
    }
}

/// `SpendingLimitStatus` of a subscription.
fn limits(uri: String, response: &Response) -> Result<SpendingLimits, Failure> {
    let counters = counters_of(response).ok_or(Failure::Malformed)?;
    let status: Value = sbi::json::parse(response.body()).unwrap_or_default();
    let term = Term::of(status.get("expiry").and_then(Value::as_str), now_ms());
    Ok(SpendingLimits { uri, counters, term })
}

/// `statusInfos` of a `SpendingLimitStatus`.
fn counters_of(response: &Response) -> Option<Map<String, Value>> {
    let mut status: Value = sbi::json::parse(response.body()).ok()?;
    match status.get_mut("statusInfos").map(Value::take) {
        Some(Value::Object(counters)) => Some(counters),
        None if status.is_object() => Some(Map::new()),
        _ => None,
    }
}

/// What a CHF says of a subscription.
#[derive(Debug)]
pub(crate) enum Present {
    /// It stands, with these counters.
    Counters(Map<String, Value>),
    /// The CHF does not have the subscription (404).
    Gone,
    /// The CHF does not say.
    Unknown,
}

/// The counters of a subscription as they are now. The resource cannot be read; to subscribe to the same again answers with
/// them (TS 29.594 §5.3.2.3.1, PUT).
pub(crate) async fn present(peers: &Peers, uri: &str, context: &Value, deadline: Duration) -> Present {
    let Some(response) = producers::put(peers, CHF, uri, context, deadline).await else {
        return Present::Unknown;
    };
    match response.status() {
        StatusCode::OK => counters_of(&response).map_or(Present::Unknown, Present::Counters),
        StatusCode::NOT_FOUND => Present::Gone,
        _ => Present::Unknown,
    }
}
