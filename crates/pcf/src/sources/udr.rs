//! Policy data of subscribers at UDRs: Nudr_DataRepository (TS 29.504, TS 29.519).

use std::time::Instant;

use http::{Method, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::producers::{Ask, Producers, Unavailable, located};
use crate::outbound::Peers;
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
    /// The UDR does not know the subscriber, or has no such data (404).
    Unknown,
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
        StatusCode::NOT_FOUND | StatusCode::NO_CONTENT => return Ok(PolicyData::Unknown),
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

/// Subscribes to changes of the policy data of a subscriber (TS 29.519 §5.2.11): the URI of the subscription.
///
/// # Errors
/// When no UDR answers in time, or not as it should.
pub(crate) async fn subscribe(
    udrs: &Producers,
    peers: &Peers,
    (supi, service): (&str, Service),
    callback: &str,
    end: Instant,
) -> Result<String, Failure> {
    let resource = resource(supi, service);
    let ask = Ask {
        method: Method::POST,
        path: "/nudr-dr/v2/policy-data/subs-to-notify",
        body: Some(&|root| {
            json!({
                "notificationUri": callback,
                "monitoredResourceUris": [format!("{root}{resource}")],
                "supportedFeatures": "0",
            })
        }),
        supi,
        end,
    };
    let (root, response) = udrs.send(peers, ask).await?;
    if response.status() != StatusCode::CREATED {
        return Err(Failure::Refused(response.status()));
    }
    located(&root, &response).ok_or(Failure::Malformed)
}
