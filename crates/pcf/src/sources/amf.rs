//! AMFs: which one has a UE, the subscription to N1 messages of the UE, and N1 messages to it (Namf_Communication,
//! TS 29.518 §5.2.2.3).

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use percent_encoding::utf8_percent_encode;
use sbi::Response;
use sbi::headers::{SbiHeader as _, TargetApiRoot};
use sbi::multipart::{self, Part};
use serde_json::{Value, json};

use super::discovery::{Discovered, TRIED};
use super::producers::{Content, content_of, located, send};
use super::udr::SEGMENT;
use crate::association::Association;
use crate::config::UePolicy;
use crate::outbound::{AMF, Peers};

/// `Content-Id` of the N1 message.
const N1: &str = "n1";

/// The longest time of an attempt at a delivery, where an AMF may take `timeout` to answer: a subscription at each AMF that is
/// tried, then the N1 message.
pub(crate) fn longest(timeout: Duration) -> Duration {
    let requests = u32::try_from(TRIED + 1).unwrap_or(u32::MAX);
    timeout.saturating_mul(requests)
}

/// Why an AMF has not taken a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// For pages and logs.
    pub(crate) cause: String,
    /// Whether another attempt is of no use.
    pub(crate) is_final: bool,
}

impl Failure {
    fn passing(cause: String) -> Self {
        Self {
            cause,
            is_final: false,
        }
    }
}

/// The AMFs that may have the UE of an association, the best first.
pub(crate) async fn find(
    (peers, discovered): (&Peers, &Discovered),
    settings: &UePolicy,
    association: &Association,
) -> Rc<[TargetApiRoot]> {
    if let Some(root) = &settings.amf_api_root {
        return TargetApiRoot::parse(root).ok().into_iter().collect();
    }
    let Some(which) = which_of(association) else {
        return Rc::default();
    };
    let time = settings.discovery_time.duration();
    discovered.find(peers, (AMF, &which), time).await
}

/// What the AMF of an association is discovered by (TS 29.510 table 6.2.3.2.3.1-1): its identity, else the GUAMI.
fn which_of(association: &Association) -> Option<String> {
    let name = |text: &str| utf8_percent_encode(text, SEGMENT).to_string();
    Some(match association.text_of("servingNfId") {
        Some(id) => format!("&target-nf-instance-id={}", name(id)),
        None => {
            let guami = association.context.get("guami")?;
            // The query has the members of `Guami` alone, in one order.
            let plmn = guami.get("plmnId")?;
            let mut members = json!({"mcc": plmn.get("mcc")?, "mnc": plmn.get("mnc")?});
            if let Some(nid) = plmn.get("nid") {
                members["nid"] = nid.clone();
            }
            let guami = json!({"plmnId": members, "amfId": guami.get("amfId")?});
            format!("&guami={}", name(&guami.to_string()))
        }
    })
}

fn messages(supi: &str) -> String {
    let supi = utf8_percent_encode(supi, SEGMENT);
    format!("/namf-comm/v1/ue-contexts/{supi}/n1-n2-messages")
}

/// Subscribes to N1 messages of class UPDP of a UE (TS 29.518 §5.2.2.3.3): the URI of the subscription.
///
/// # Errors
/// When the AMF does not answer, or refuses.
pub(crate) async fn subscribe(
    peers: &Peers,
    root: &TargetApiRoot,
    (supi, callback, nf_id): (&str, &str, &str),
    deadline: Duration,
) -> Result<String, Failure> {
    let body = json!({"n1MessageClass": "UPDP", "n1NotifyCallbackUri": callback, "nfId": nf_id});
    let path = format!("{}/subscriptions", messages(supi));
    let content = content_of(&Method::POST, &body);
    let answer = post(peers, root, (&path, content), deadline).await?;
    match answer.status() {
        StatusCode::CREATED => located(root, &answer)
            .ok_or_else(|| Failure::passing(format!("{root} has created a subscription without a Location"))),
        _ => Err(refused(root, "the subscription to N1 messages", &answer)),
    }
}

/// Sends an N1 message of class UPDP to a UE (TS 29.518 §5.2.2.3.1). The AMF notifies `failure` where it cannot reach the UE.
///
/// # Errors
/// When the AMF does not answer, or refuses.
pub(crate) async fn transfer(
    peers: &Peers,
    root: &TargetApiRoot,
    (supi, message, failure): (&str, &[u8], &str),
    deadline: Duration,
) -> Result<(), Failure> {
    let data = json!({
        "n1MessageContainer": {"n1MessageClass": "UPDP", "n1MessageContent": {"contentId": N1}},
        "n1n2FailureTxfNotifURI": failure,
    });
    let data = data.to_string();
    let (content_type, body) = multipart::write(&[
        Part {
            content_type: "application/json",
            id: None,
            body: data.as_bytes(),
        },
        Part {
            content_type: "application/vnd.3gpp.5gnas",
            id: Some(N1),
            body: message,
        },
    ]);
    let content = (content_type.as_str(), Bytes::from(body));
    let answer = post(peers, root, (&messages(supi), content), deadline).await?;
    match answer.status() {
        // Under way, or the AMF pages the UE.
        StatusCode::OK | StatusCode::ACCEPTED => Ok(()),
        _ => Err(refused(root, "the N1 message", &answer)),
    }
}

async fn post(
    peers: &Peers,
    root: &TargetApiRoot,
    (path, content): (&str, Content<'_>),
    deadline: Duration,
) -> Result<Response, Failure> {
    let what = (&Method::POST, path, Some(content));
    let answer = send(peers, (AMF, root), what, deadline).await;
    answer.map(|(_, answer)| answer).map_err(Failure::passing)
}

/// An AMF's refusal. 409 and 504 are about the moment (TS 29.518 table 6.1.3.5.3.1-3); other client errors are final.
fn refused(root: &TargetApiRoot, what: &str, answer: &Response) -> Failure {
    let status = answer.status();
    let problem: Value = sbi::json::parse(answer.body()).unwrap_or_default();
    let cause = problem
        .get("cause")
        .or_else(|| problem.get("error")?.get("cause"));
    let cause = cause.and_then(Value::as_str).unwrap_or_default();
    let passes = [
        StatusCode::CONFLICT,
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::UNAUTHORIZED,
    ];
    Failure {
        cause: format!("{root} refuses {what}: {status} {cause}")
            .trim_end()
            .to_owned(),
        is_final: status.is_client_error() && !passes.contains(&status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::association::Kind;

    #[test]
    fn an_amf_is_looked_for_by_its_identity_or_its_guami() {
        let query = |context: Value| which_of(&Association::new(Kind::Ue, context));
        let guami = json!({"amfId": "0000ff", "plmnId": {"mnc": "01", "mcc": "001"}, "x": 1});
        let by_guami = query(json!({"guami": guami})).unwrap();
        assert!(
            by_guami.ends_with("&guami=%7B%22plmnId%22%3A%7B%22mcc%22%3A%22001%22%2C%22mnc%22%3A%2201%22%7D%2C%22amfId%22%3A%220000ff%22%7D"),
            "{by_guami}"
        );
        let by_id = query(json!({"guami": guami, "servingNfId": "4947a69a-f61b-4bc1-b9da-47c9c5d14b64"}));
        assert!(
            by_id
                .unwrap()
                .ends_with("&target-nf-instance-id=4947a69a-f61b-4bc1-b9da-47c9c5d14b64")
        );
        assert_eq!(query(json!({})), None);
    }
}
