//! Policy data of subscribers at UDRs: Nudr_DataRepository (TS 29.504, TS 29.519).

use std::time::Instant;

use http::{Method, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sbi::Response;
use sbi::headers::TargetApiRoot;
use serde_json::{Value, json};

use super::producers::{Ask, Producers, Unavailable, is_failure, located, put};
use super::{Term, now_ms};
use crate::association::bdt::Change;
use crate::outbound::{Peers, UDR};
use policy::Service;

/// What a segment of a path may have as it is (RFC 3986 §3.3).
pub(crate) const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
const ROOT: &str = "/nudr-dr/v2/policy-data";

/// What a UDR knows of a subscriber.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PolicyData {
    /// The document.
    Known(Value),
    /// The UDR does not know the subscriber (404).
    Unknown,
    /// The UDR knows the subscriber, and has no policy data of it (404 `DATA_NOT_FOUND`, TS 29.504 §6.1.7.3; 204).
    None,
}

/// Why there is no answer that could be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No producer has answered.
    Unavailable(Unavailable),
    /// A producer has refused the request with this status.
    Refused(StatusCode),
    /// The answer is not what the standard says.
    Malformed,
}

impl From<Unavailable> for Failure {
    fn from(unavailable: Unavailable) -> Self {
        Self::Unavailable(unavailable)
    }
}

/// The path of the policy data of a subscriber for a service (TS 29.519 §5.2.1).
pub(crate) fn resource(supi: &str, service: Service) -> String {
    let resource = match service {
        Service::Sm => "sm-data",
        Service::Am => "am-data",
        Service::Ue => "ue-policy-set",
    };
    format!("{ROOT}/ues/{}/{resource}", utf8_percent_encode(supi, SEGMENT))
}

/// Queries the policy data of a subscriber.
///
/// # Errors
/// When no UDR answers in time, or not as it should.
pub(crate) async fn query(
    udrs: &Producers,
    peers: &Peers,
    supi: &str,
    service: Service,
    end: Instant,
) -> Result<PolicyData, Failure> {
    let path = resource(supi, service);
    let ask = Ask {
        method: Method::GET,
        path: &path,
        body: None,
        supi,
        end,
    };
    let (_, response) = udrs.send(peers, ask).await?;
    match response.status() {
        StatusCode::OK => {}
        StatusCode::NO_CONTENT => return Ok(PolicyData::None),
        StatusCode::NOT_FOUND => {
            let problem: Value = sbi::json::parse(response.body()).unwrap_or_default();
            let has_user = problem.get("cause").and_then(Value::as_str) == Some("DATA_NOT_FOUND");
            return Ok(match has_user {
                true => PolicyData::None,
                false => PolicyData::Unknown,
            });
        }
        status => return Err(Failure::Refused(status)),
    }
    match sbi::json::parse::<Value>(response.body()) {
        Ok(document) if document.is_object() => Ok(PolicyData::Known(document)),
        _ => Err(Failure::Malformed),
    }
}

/// Changes the session policy data of a subscriber (`SmPolicyDataPatch`, TS 29.519 §5.2.4.3.2).
///
/// # Errors
/// When no UDR answers in time, or it refuses.
pub(crate) async fn patch(
    udrs: &Producers,
    peers: &Peers,
    supi: &str,
    patch: &Value,
    end: Instant,
) -> Result<(), Failure> {
    let path = resource(supi, Service::Sm);
    let ask = Ask {
        method: Method::PATCH,
        path: &path,
        body: Some(&|_| patch.clone()),
        supi,
        end,
    };
    let (_, response) = udrs.send(peers, ask).await?;
    match response.status() {
        status if status.is_success() => Ok(()),
        status => Err(Failure::Refused(status)),
    }
}

/// Creates, changes or deletes the data of a background data transfer (TS 29.519 §5.2.9) with this BDT reference ID.
///
/// # Errors
/// When no UDR answers in time, or it refuses.
pub(crate) async fn change_bdt(
    udrs: &Producers,
    peers: &Peers,
    change: Change,
    (reference, body): (&str, Option<Value>),
    end: Instant,
) -> Result<(), Failure> {
    let path = format!("{ROOT}/bdt-data/{}", utf8_percent_encode(reference, SEGMENT));
    let make = |_: &TargetApiRoot| body.clone().unwrap_or_default();
    let ask = Ask {
        method: match change {
            Change::Put => Method::PUT,
            Change::Patch => Method::PATCH,
            Change::Delete => Method::DELETE,
        },
        path: &path,
        body: body.is_some().then_some(&make),
        supi: "",
        end,
    };
    let (_, response) = udrs.send(peers, ask).await?;
    match response.status() {
        status if status.is_success() => Ok(()),
        status => Err(Failure::Refused(status)),
    }
}

/// A subscription to changes of policy data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Subscription {
    /// Its URI.
    pub(crate) uri: String,
    /// How long the UDR keeps it; `None`: until it is ended.
    pub(crate) term: Option<Term>,
}

/// `PolicyDataSubscription` for the policy data below an API root.
fn subscription(root: &str, (supi, service): (&str, Service), callback: &str) -> Value {
    json!({
        "notificationUri": callback,
        "monitoredResourceUris": [format!("{root}{}", resource(supi, service))],
        "supportedFeatures": "0",
    })
}

fn term_of(response: &Response) -> Option<Term> {
    let made: Value = sbi::json::parse(response.body()).ok()?;
    Term::of(made.get("expiry").and_then(Value::as_str), now_ms())
}

/// Subscribes to changes of the policy data of a subscriber (TS 29.519 §5.2.11).
///
/// # Errors
/// When no UDR answers in time, or not as it should.
pub(crate) async fn subscribe(
    udrs: &Producers,
    peers: &Peers,
    subject: (&str, Service),
    callback: &str,
    end: Instant,
) -> Result<Subscription, Failure> {
    let ask = Ask {
        method: Method::POST,
        path: "/nudr-dr/v2/policy-data/subs-to-notify",
        body: Some(&|root| subscription(&root.to_string(), subject, callback)),
        supi: subject.0,
        end,
    };
    let (root, response) = udrs.send(peers, ask).await?;
    if response.status() != StatusCode::CREATED {
        return Err(Failure::Refused(response.status()));
    }
    Ok(Subscription {
        uri: located(&root, &response).ok_or(Failure::Malformed)?,
        term: term_of(&response),
    })
}

/// Renews a subscription (PUT, TS 29.519 §5.2.12.3.1): its new term, where the UDR says one.
///
/// # Errors
/// When the UDR does not answer in time, or has no such subscription.
pub(crate) async fn renew(
    peers: &Peers,
    uri: &str,
    subject: (&str, Service),
    callback: &str,
    end: Instant,
) -> Result<Option<Term>, Failure> {
    let root = uri.split("/nudr-dr/").next().unwrap_or_default();
    let body = subscription(root, subject, callback);
    let left = end.saturating_duration_since(Instant::now());
    let response = put(peers, UDR, uri, &body, left).await;
    let response = response.ok_or(Failure::Unavailable(Unavailable::NoAnswer))?;
    match response.status() {
        status if status.is_success() => Ok(term_of(&response)),
        status if is_failure(status) => Err(Failure::Unavailable(Unavailable::NoAnswer)),
        status => Err(Failure::Refused(status)),
    }
}
