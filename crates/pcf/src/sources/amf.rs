//! AMFs: which one has a UE, the subscription to N1 messages of the UE, and N1 messages to it (Namf_Communication,
//! TS 29.518 §5.2.2.3).

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use percent_encoding::utf8_percent_encode;
use sbi::headers::{SbiHeader as _, TargetApiRoot};
use sbi::multipart::{self, Part};
use sbi::name::{ACCEPT, CONTENT_TYPE};
use sbi::{Body, Response};
use serde_json::{Value, json};

use super::producers::{located, redirected, root_of};
use super::udr::SEGMENT;
use crate::association::Association;
use crate::config::UePolicy;
use crate::outbound::{AMF, Peers, REDIRECTIONS};

/// AMFs of one GUAMI that are tried.
const MOST: usize = 3;
/// GUAMIs and instances whose AMFs a worker caches.
const CACHED: usize = 1_024;
/// Before the NRF is queried again after it has not answered.
const PAUSE: Duration = Duration::from_secs(1);
/// `Content-Id` of the N1 message.
const N1: &str = "n1";

/// The longest time of an attempt at a delivery, where an AMF may take `timeout` to answer: a subscription at each AMF that is
/// tried, then the N1 message.
pub(crate) fn longest(timeout: Duration) -> Duration {
    let requests = u32::try_from(MOST + 1).unwrap_or(u32::MAX);
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

/// Which AMFs have a GUAMI or an identity, and until when that holds.
#[derive(Debug, Default)]
pub(crate) struct Amfs(RefCell<Vec<Known>>);

/// What the NRF has answered to a query.
#[derive(Debug)]
struct Known {
    query: String,
    until: Instant,
    roots: Rc<[TargetApiRoot]>,
}

impl Amfs {
    fn known(&self, query: &str) -> Option<Rc<[TargetApiRoot]>> {
        let mut all = self.0.borrow_mut();
        let now = Instant::now();
        all.retain(|one| now < one.until);
        let found = all.iter().find(|one| one.query == query);
        found.map(|one| one.roots.clone())
    }

    fn keep(&self, query: String, time: Duration, roots: Rc<[TargetApiRoot]>) {
        let mut all = self.0.borrow_mut();
        if all.len() >= CACHED {
            all.remove(0);
        }
        all.push(Known {
            query,
            until: Instant::now() + time,
            roots,
        });
    }

    /// The AMFs that may have the UE of an association, the best first.
    pub(crate) async fn find(
        &self,
        peers: &Peers,
        settings: &UePolicy,
        association: &Association,
    ) -> Rc<[TargetApiRoot]> {
        if let Some(root) = &settings.amf_api_root {
            return TargetApiRoot::parse(root).ok().into_iter().collect();
        }
        let Some(query) = query_of(association) else {
            return Rc::default();
        };
        if let Some(roots) = self.known(&query) {
            return roots;
        }
        let found = peers.nrfs().get(&query).await;
        let found = found.and_then(|body| serde_json::from_slice::<Value>(&body).ok());
        let (time, roots) = match found {
            Some(found) => (settings.discovery_time.duration(), roots_of(&found)),
            None => (PAUSE, Rc::default()),
        };
        self.keep(query, time, roots.clone());
        roots
    }
}

/// The discovery of the AMF of an association (TS 29.510 table 6.2.3.2.3.1-1): by its identity, else by the GUAMI.
fn query_of(association: &Association) -> Option<String> {
    let name = |text: &str| utf8_percent_encode(text, SEGMENT).to_string();
    let which = match association.text_of("servingNfId") {
        Some(id) => format!("target-nf-instance-id={}", name(id)),
        None => {
            let guami = association.context.get("guami")?;
            // The query has the members of `Guami` alone, in one order.
            let plmn = guami.get("plmnId")?;
            let mut members = json!({"mcc": plmn.get("mcc")?, "mnc": plmn.get("mnc")?});
            if let Some(nid) = plmn.get("nid") {
                members["nid"] = nid.clone();
            }
            let guami = json!({"plmnId": members, "amfId": guami.get("amfId")?});
            format!("guami={}", name(&guami.to_string()))
        }
    };
    Some(format!(
        "/nnrf-disc/v1/nf-instances?target-nf-type=AMF&requester-nf-type=PCF&service-names={}&{which}",
        AMF.name
    ))
}

/// The API roots of Namf_Communication in a `SearchResult`, by priority.
fn roots_of(found: &Value) -> Rc<[TargetApiRoot]> {
    let profiles = found.get("nfInstances").and_then(Value::as_array);
    let mut roots: Vec<(u64, TargetApiRoot)> = Vec::new();
    for profile in profiles.into_iter().flatten() {
        let listed = profile.get("nfServices").and_then(Value::as_array);
        let mapped = profile.get("nfServiceList").and_then(Value::as_object);
        let services = listed
            .into_iter()
            .flatten()
            .chain(mapped.into_iter().flat_map(|services| services.values()));
        let service = services
            .filter(|service| service.get("serviceName").is_some_and(|name| name == AMF.name))
            .find(|service| {
                let status = service.get("nfServiceStatus");
                status.is_none_or(|status| status == "REGISTERED")
            });
        let Some(root) = service.and_then(|service| root_of(profile, service)) else {
            continue;
        };
        let priority = profile.get("priority").and_then(Value::as_u64);
        roots.push((priority.unwrap_or(u64::from(u16::MAX)), root));
    }
    roots.sort_by_key(|(priority, _)| *priority);
    roots.into_iter().take(MOST).map(|(_, root)| root).collect()
}

fn messages(root: &TargetApiRoot, supi: &str) -> String {
    let supi = utf8_percent_encode(supi, SEGMENT);
    format!("{}/namf-comm/v1/ue-contexts/{supi}/n1-n2-messages", root.prefix)
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
    let path = format!("{}/subscriptions", messages(root, supi));
    let content = ("application/json".to_owned(), Bytes::from(body.to_string()));
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
    let content = (content_type, Bytes::from(body));
    let answer = post(peers, root, (&messages(root, supi), content), deadline).await?;
    match answer.status() {
        // Under way, or the AMF pages the UE.
        StatusCode::OK | StatusCode::ACCEPTED => Ok(()),
        _ => Err(refused(root, "the N1 message", &answer)),
    }
}

/// Sends a request to an AMF; one that redirects it (307, 308, TS 29.500 §6.10.9) is followed.
async fn post(
    peers: &Peers,
    root: &TargetApiRoot,
    (path, content): (&str, (String, Bytes)),
    deadline: Duration,
) -> Result<Response, Failure> {
    let end = Instant::now() + deadline;
    let (mut at, mut path) = (root.clone(), path.to_owned());
    for _ in 0..REDIRECTIONS {
        let left = end.saturating_duration_since(Instant::now());
        let answer = post_once(peers, &at, (&path, content.clone()), left).await?;
        let from = format!("{}{path}", at.origin).parse::<http::Uri>().ok();
        let next = redirected(&at, &answer);
        let next = next.filter(|(next, _)| from.is_some_and(|from| peers.may_redirect(&from, &next.origin)));
        let Some((next, next_path)) = next else {
            return Ok(answer);
        };
        (at, path) = (next, next_path);
    }
    Err(Failure::passing(format!("{root} redirects in a circle")))
}

async fn post_once(
    peers: &Peers,
    root: &TargetApiRoot,
    (path, (content_type, body)): (&str, (String, Bytes)),
    deadline: Duration,
) -> Result<Response, Failure> {
    let make = || {
        let mut content = Body::empty();
        content.push(body.clone());
        Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(ACCEPT, "application/json, application/problem+json")
            .header(CONTENT_TYPE, &content_type)
            .body(content)
            .ok()
    };
    match peers.send((AMF, &root.origin), deadline, make).await {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(error)) => Err(Failure::passing(format!("{root}: {error}"))),
        None => Err(Failure::passing(format!("{root}: the request cannot be built"))),
    }
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
        let query = |context: Value| query_of(&Association::new(Kind::Ue, context));
        let guami = json!({"amfId": "0000ff", "plmnId": {"mnc": "01", "mcc": "001"}, "x": 1});
        let by_guami = query(json!({"guami": guami})).unwrap();
        assert!(
            by_guami.ends_with("&service-names=namf-comm&guami=%7B%22plmnId%22%3A%7B%22mcc%22%3A%22001%22%2C%22mnc%22%3A%2201%22%7D%2C%22amfId%22%3A%220000ff%22%7D"),
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

    #[test]
    fn a_redirection_names_a_root_and_a_path() {
        let root = TargetApiRoot::parse("http://192.0.2.1:80/a").unwrap();
        let answer = |status: StatusCode, location: &str| {
            let mut response = sbi::json::response(status, &json!({}));
            response.headers_mut().set_printed(sbi::name::LOCATION, location);
            let found = redirected(&root, &response);
            found.map(|(root, path)| format!("{root}{path}"))
        };
        let (moved, other) = (StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT);
        for location in ["http://192.0.2.1:8080/b/c?d", "https://192.0.2.2:443/e"] {
            assert_eq!(answer(moved, location), Some(location.to_owned()));
            assert_eq!(answer(other, location), Some(location.to_owned()));
        }
        assert_eq!(answer(moved, "/f"), Some("http://192.0.2.1:80/f".to_owned()));
        assert_eq!(answer(moved, "nonsense"), None);
        assert_eq!(answer(StatusCode::OK, "http://192.0.2.1:8080/b"), None);
    }

    #[test]
    fn amfs_are_tried_by_priority() {
        let service = |port: u16| {
            json!([{"serviceName": "namf-comm", "scheme": "http",
            "ipEndPoints": [{"ipv4Address": "192.0.2.1", "port": port}]}])
        };
        let found = json!({"nfInstances": [
            {"priority": 2, "nfServices": service(2)}, {"nfServices": []}, {"priority": 1, "nfServices": service(1)}]});
        let roots: Vec<String> = roots_of(&found).iter().map(ToString::to_string).collect();
        assert_eq!(roots, ["http://192.0.2.1:1", "http://192.0.2.1:2"]);
    }
}
