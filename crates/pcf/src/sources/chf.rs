//! Policy counters of subscribers at CHFs: Nchf_SpendingLimitControl (TS 29.594).

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use sbi::Response;
use serde_json::{Map, Value, json};

use super::producers::{self, Ask, Producers, located};
use super::udr::Failure;
use crate::outbound::{CHF, Peers};

/// A subscription to policy counters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpendingLimits {
    /// Its URI.
    pub(crate) uri: String,
    /// `PolicyCounterInfo` by identifier (`statusInfos`).
    pub(crate) counters: Map<String, Value>,
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
    let counters = counters_of(&response).ok_or(Failure::Malformed)?;
    Ok(SpendingLimits { uri, counters })
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
    /// There is no such subscription.
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
