//! Policy counters of subscribers at CHFs: Nchf_SpendingLimitControl (TS 29.594).

use std::time::Instant;

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::producers::{Ask, Producers, located};
use super::udr::Failure;
use crate::outbound::Peers;

/// A subscription to policy counters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpendingLimits {
    /// Its URI.
    pub(crate) uri: String,
    /// `PolicyCounterInfo` by identifier (`statusInfos`).
    pub(crate) counters: Map<String, Value>,
}

/// Subscribes to the policy counters of a subscriber (TS 29.594 §5.3.2.3.1): all counters where none is named.
///
/// # Errors
/// When no CHF answers in time, or not as it should.
pub(crate) async fn subscribe(
    chfs: &Producers,
    peers: &Peers,
    (supi, gpsi): (&str, Option<&str>),
    (callback, counters): (&str, &[String]),
    end: Instant,
) -> Result<SpendingLimits, Failure> {
    let mut context = json!({"supi": supi, "notifUri": callback});
    if let Some(gpsi) = gpsi {
        context["gpsi"] = gpsi.into();
    }
    if !counters.is_empty() {
        context["policyCounterIds"] = json!(counters);
    }
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
    let mut status: Value = sbi::json::parse(response.body()).map_err(|_| Failure::Malformed)?;
    let counters = match status.get_mut("statusInfos").map(Value::take) {
        Some(Value::Object(counters)) => counters,
        None => Map::new(),
        Some(_) => return Err(Failure::Malformed),
    };
    Ok(SpendingLimits { uri, counters })
}
