//! Instances of a service that the PCF consumes: those of the settings, or those that the NRF knows (TS 29.510 §5.3.2).

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use nrf_client::{Nrfs, PeerService};
use overload::{BreakerSettings, CircuitBreaker};
use sbi::headers::{SbiHeader as _, TargetApiRoot};
use sbi::name::{ACCEPT, CONTENT_TYPE};
use sbi::{Body, Response};
use serde_json::Value;
use settings::Period;

use super::discovery::{PAUSE, TRIED, query_of, roots_of};
use crate::outbound::{Peers, REDIRECTIONS};

/// Instances whose circuits a worker knows.
const CIRCUITS: usize = 128;

/// Why no producer has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unavailable {
    /// No instance is known.
    NoInstance,
    /// None answered in time, or only with failures of its own.
    NoAnswer,
}

/// An instance.
#[derive(Clone, Debug, PartialEq)]
struct Instance {
    root: TargetApiRoot,
    /// A lower one goes first.
    priority: u64,
    /// Ranges of SUPIs by their digits; none: all subscribers.
    ranges: Vec<(u64, u64)>,
}

/// What the NRF has answered, and until when it holds.
#[derive(Clone, Debug)]
struct Found {
    until: Instant,
    instances: Rc<[Instance]>,
}

/// Instances of one service.
pub(crate) struct Producers {
    service: PeerService,
    /// The member of a profile with its ranges of subscribers.
    info: &'static str,
    /// Where they are discovered, and the query.
    discovery: Option<(Rc<Nrfs>, String)>,
    longest: Duration,
    found: RefCell<Found>,
    /// Held during a query: the others wait for its answer.
    query: tokio::sync::Mutex<()>,
    turn: Cell<usize>,
    breakers: Breakers,
}

/// What is sent to a producer.
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    /// Below the API root.
    pub(crate) path: &'a str,
    /// JSON, which may have to name the API root.
    pub(crate) body: Option<&'a dyn Fn(&TargetApiRoot) -> Value>,
    /// The subscriber it is for; empty: it is about none.
    pub(crate) supi: &'a str,
    /// When the answer must be here.
    pub(crate) end: Instant,
}

impl Producers {
    /// Those at these API roots; where there is none, those that the NRFs know.
    pub(crate) fn new(
        service: PeerService,
        (info, more): (&'static str, &str),
        roots: &[String],
        nrfs: &Rc<Nrfs>,
        longest: Duration,
    ) -> Self {
        let fixed: Rc<[Instance]> = roots
            .iter()
            .enumerate()
            .filter_map(|(at, root)| {
                Some(Instance {
                    root: TargetApiRoot::parse(root).ok()?,
                    priority: at as u64,
                    ranges: Vec::new(),
                })
            })
            .collect();
        let query = query_of(service, more);
        Self {
            service,
            info,
            discovery: fixed.is_empty().then(|| (nrfs.clone(), query)),
            longest,
            found: RefCell::new(Found {
                until: Instant::now(),
                instances: fixed,
            }),
            query: tokio::sync::Mutex::new(()),
            turn: Cell::new(0),
            breakers: RefCell::default(),
        }
    }

    /// The instances for a subscriber, in the order in which they are tried.
    async fn instances(&self, supi: &str, end: Instant) -> Vec<TargetApiRoot> {
        let known = match &self.discovery {
            None => self.found.borrow().instances.clone(),
            Some((nrfs, query)) => self.discovered(nrfs, query, end).await,
        };
        let number = supi
            .rsplit('-')
            .next()
            .and_then(|digits| digits.parse::<u64>().ok());
        let has = |instance: &&Instance| {
            instance.ranges.is_empty()
                || supi.is_empty()
                || number.is_some_and(|number| {
                    instance
                        .ranges
                        .iter()
                        .any(|(from, to)| (*from..=*to).contains(&number))
                })
        };
        let mut fit: Vec<&Instance> = known.iter().filter(has).collect();
        fit.sort_by_key(|instance| instance.priority);
        // Instances of the best priority take turns.
        let best = fit.first().map(|instance| instance.priority);
        let equals = fit
            .iter()
            .take_while(|instance| Some(instance.priority) == best)
            .count();
        if let Some(turn) = self.turn.get().checked_rem(equals) {
            fit[..equals].rotate_left(turn);
            self.turn.set(self.turn.get().wrapping_add(1));
        }
        fit.into_iter()
            .take(TRIED)
            .map(|instance| instance.root.clone())
            .collect()
    }

    async fn discovered(&self, nrfs: &Rc<Nrfs>, query: &str, end: Instant) -> Rc<[Instance]> {
        let fresh = || {
            let found = self.found.borrow();
            (found.until > Instant::now()).then(|| found.instances.clone())
        };
        if let Some(instances) = fresh() {
            return instances;
        }
        let left = end.saturating_duration_since(Instant::now());
        let asked = async {
            let _query = self.query.lock().await;
            if let Some(instances) = fresh() {
                return instances;
            }
            let answer = nrfs.send(Method::GET, query, None).await;
            let found = answer
                .filter(|answer| answer.status == StatusCode::OK)
                .and_then(|answer| serde_json::from_slice::<Value>(&answer.body).ok());
            let mut held = self.found.borrow_mut();
            match found {
                Some(found) => {
                    let validity = found.get("validityPeriod").and_then(Value::as_u64).unwrap_or(60);
                    held.instances = self.read(&found);
                    let validity = Duration::from_secs(validity).clamp(PAUSE, self.longest.max(PAUSE));
                    held.until = Instant::now() + validity;
                }
                // The NRF does not answer: what it has answered before is better than nothing.
                None => held.until = Instant::now() + PAUSE,
            }
            held.instances.clone()
        };
        match tokio::time::timeout(left, asked).await {
            Ok(instances) => instances,
            Err(_) => self.found.borrow().instances.clone(),
        }
    }

    /// The instances of a `SearchResult` (TS 29.510 §6.2.6.2.2).
    fn read(&self, found: &Value) -> Rc<[Instance]> {
        let all = roots_of(found, self.service);
        all.map(|(profile, priority, root)| Instance {
            root,
            priority,
            ranges: self.ranges_of(profile),
        })
        .collect()
    }

    fn ranges_of(&self, profile: &Value) -> Vec<(u64, u64)> {
        let ranges = profile.get(self.info).and_then(|info| info.get("supiRanges"));
        let ranges = ranges.and_then(Value::as_array).into_iter().flatten();
        let digits = |range: &Value, name: &str| range.get(name)?.as_str()?.parse::<u64>().ok();
        ranges
            .filter_map(|range| Some((digits(range, "start")?, digits(range, "end")?)))
            .collect()
    }

    /// Sends a request to one instance after the other until one answers without a failure of its own.
    ///
    /// # Errors
    /// When none does.
    pub(crate) async fn send(
        &self,
        peers: &Peers,
        ask: Ask<'_>,
    ) -> Result<(TargetApiRoot, Response), Unavailable> {
        let instances = self.instances(ask.supi, ask.end).await;
        let mut left = instances.len();
        if left == 0 {
            return Err(Unavailable::NoInstance);
        }
        for root in instances {
            left -= 1;
            // Another instance shall have time as well.
            let remaining = ask.end.saturating_duration_since(Instant::now());
            let share = if left > 0 { remaining / 2 } else { remaining };
            if share.is_zero() {
                break;
            }
            let Some(attempt) = self.attempt(&root) else {
                continue;
            };
            let content = ask.body.map(|body| content_of(&ask.method, &body(&root)));
            let what = (&ask.method, ask.path, content);
            match send(peers, (self.service, &root), what, share).await {
                Ok((at, response)) if !is_failure(response.status()) => {
                    attempt.answered();
                    return Ok((at, response));
                }
                Ok((_, response)) => {
                    attempt.answered();
                    tracing::debug!(%root, status = %response.status(), "a producer failed");
                }
                Err(_) => {}
            }
        }
        Err(Unavailable::NoAnswer)
    }
}

impl Producers {
    /// Begins an attempt at an instance; `None` while its circuit is open: it has not answered several times in a row.
    fn attempt(&self, root: &TargetApiRoot) -> Option<Attempt<'_>> {
        let name = root.to_string();
        let mut breakers = self.breakers.borrow_mut();
        if breakers.len() >= CIRCUITS && !breakers.contains_key(&name) {
            breakers.clear();
        }
        let breaker = breakers
            .entry(name.clone())
            .or_insert_with(|| CircuitBreaker::new(breaker_settings()));
        breaker.allow(Instant::now()).then(|| Attempt {
            breakers: &self.breakers,
            name,
            has_answer: false,
        })
    }
}

/// Requests in a row that an instance may leave without an answer, and how long nothing is sent to it then: each of them
/// would take all of the time that the request has.
fn breaker_settings() -> BreakerSettings {
    BreakerSettings {
        failures: 5,
        open: Period::from_secs(1),
        max_open: Period::from_secs(10),
        successes: 1,
    }
}

type Breakers = RefCell<AHashMap<String, CircuitBreaker>>;

/// A request to an instance, in flight.
struct Attempt<'p> {
    breakers: &'p Breakers,
    name: String,
    has_answer: bool,
}

impl Attempt<'_> {
    fn answered(mut self) {
        self.has_answer = true;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if let Some(breaker) = self.breakers.borrow_mut().get_mut(&self.name) {
            breaker.report(self.has_answer, Instant::now());
        }
    }
}

/// Whether another instance may do better.
pub(super) fn is_failure(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// Where an answer redirects its request to (307, 308, TS 29.500 §6.10.9): the root and the path.
fn redirected(root: &TargetApiRoot, answer: &Response) -> Option<(TargetApiRoot, String)> {
    match answer.status() {
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => parts_of(&located(root, answer)?),
        _ => None,
    }
}

/// Sends a request to one instance; one that redirects it is followed, where it may be. The root that has answered, and the answer.
///
/// # Errors
/// With the cause, when none comes in time.
pub(crate) async fn send(
    peers: &Peers,
    (service, root): (PeerService, &TargetApiRoot),
    (method, path, content): (&Method, &str, Option<Content<'_>>),
    deadline: Duration,
) -> Result<(TargetApiRoot, Response), String> {
    let end = Instant::now() + deadline;
    let (mut at, mut path) = (root.clone(), format!("{}{path}", root.prefix));
    for _ in 0..REDIRECTIONS {
        let left = end.saturating_duration_since(Instant::now());
        let answer = send_once(peers, (service, &at), (method, &path, content.as_ref()), left).await?;
        let from = format!("{}{path}", at.origin).parse::<http::Uri>().ok();
        let next = redirected(&at, &answer);
        let next = next.filter(|(next, _)| from.is_some_and(|from| peers.may_redirect(&from, &next.origin)));
        let Some((next, next_path)) = next else {
            return Ok((at, answer));
        };
        (at, path) = (next, next_path);
    }
    tracing::debug!(%root, "a producer redirects in a circle");
    Err(format!("{root} redirects in a circle"))
}

async fn send_once(
    peers: &Peers,
    (service, root): (PeerService, &TargetApiRoot),
    (method, path, content): (&Method, &str, Option<&Content<'_>>),
    deadline: Duration,
) -> Result<Response, String> {
    if deadline.is_zero() {
        return Err(format!("{root}: no time is left"));
    }
    let make = || {
        let mut request = Request::builder()
            .method(method.clone())
            .uri(path)
            .header(ACCEPT, "application/json, application/problem+json")
            // TS 29.500 §6.11.2: the producer needs not work on what is given up by then.
            .header("3gpp-sbi-max-rsp-time", deadline.as_millis().max(1).to_string());
        let mut body = Body::empty();
        if let Some((kind, bytes)) = content {
            request = request.header(CONTENT_TYPE, *kind);
            body.push(bytes.clone());
        }
        request.body(body).ok()
    };
    match peers.send((service, &root.origin), deadline, make).await {
        Some(Ok(response)) => Ok(response),
        Some(Err(error)) => {
            tracing::debug!(%root, path, %error, "a producer did not answer");
            Err(format!("{root}: {error}"))
        }
        None => Err(format!("{root}: the request cannot be built")),
    }
}

/// The type of a body, and its bytes.
pub(crate) type Content<'a> = (&'a str, Bytes);

/// JSON as content. RFC 7396 is the form of every PATCH that the PCF sends.
pub(crate) fn content_of(method: &Method, body: &Value) -> Content<'static> {
    let kind = match *method == Method::PATCH {
        true => sbi::json::MERGE_PATCH,
        false => "application/json",
    };
    (kind, Bytes::from(body.to_string()))
}

/// Deletes a resource of a producer by its URI; whether it is gone.
pub(crate) async fn delete(peers: &Peers, service: PeerService, uri: &str, deadline: Duration) -> bool {
    let Some((root, path)) = parts_of(uri) else {
        return false;
    };
    let what = (&Method::DELETE, path.as_str(), None);
    let answer = send(peers, (service, &root), what, deadline).await;
    answer.is_ok_and(|(_, answer)| answer.status().is_success() || answer.status() == StatusCode::NOT_FOUND)
}

/// Replaces a resource of a producer by its URI; `None` when no answer comes in time.
pub(crate) async fn put(
    peers: &Peers,
    service: PeerService,
    uri: &str,
    body: &Value,
    deadline: Duration,
) -> Option<Response> {
    let (root, path) = parts_of(uri)?;
    let content = content_of(&Method::PUT, body);
    let what = (&Method::PUT, path.as_str(), Some(content));
    let answer = send(peers, (service, &root), what, deadline).await;
    answer.ok().map(|(_, answer)| answer)
}

/// The origin of an absolute URI, without a prefix, and its path with the query.
pub(crate) fn parts_of(uri: &str) -> Option<(TargetApiRoot, String)> {
    let parsed: http::Uri = uri.parse().ok()?;
    let (scheme, authority) = (parsed.scheme_str()?, parsed.authority()?);
    let root = TargetApiRoot::parse(&format!("{scheme}://{authority}")).ok()?;
    Some((root, parsed.path_and_query()?.as_str().to_owned()))
}

/// The absolute URI of what an instance has created.
pub(crate) fn located(root: &TargetApiRoot, response: &Response) -> Option<String> {
    let location = response.headers().get(sbi::name::LOCATION)?.to_str().ok()?;
    match location.starts_with('/') {
        true => Some(format!("{}{location}", root.origin)),
        false => parts_of(location).map(|_| location.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn producers(roots: &[String]) -> Producers {
        let client = sbi::client::Client::new(std::sync::Arc::default(), None);
        let nrfs = Rc::new(Nrfs::new(
            nrf_client::Turns::new(&[]),
            client,
            Duration::from_secs(1),
        ));
        let query = ("udrInfo", "&data-set=POLICY");
        Producers::new(crate::outbound::UDR, query, roots, &nrfs, Duration::from_secs(60))
    }

    #[test]
    fn instances_are_read_from_profiles() {
        let producers = producers(&[]);
        let found = json!({"validityPeriod": 30, "nfInstances": [
            {"nfType": "UDR", "priority": 3, "ipv4Addresses": ["192.0.2.1"],
             "udrInfo": {"supiRanges": [{"start": "1000", "end": "1999"}, {"pattern": "^imsi-3"}]},
             "nfServices": [
                {"serviceName": "nudr-dr", "scheme": "http", "nfServiceStatus": "REGISTERED", "apiPrefix": "/a/"},
                {"serviceName": "nudr-dr", "scheme": "http", "nfServiceStatus": "SUSPENDED"},
                {"serviceName": "nudr-group-id-map", "scheme": "http"}]},
            {"nfType": "UDR", "nfServiceList": {"one": {"serviceName": "nudr-dr", "scheme": "https", "priority": 1,
                "ipEndPoints": [{"ipv6Address": "2001:db8::1", "port": 8443}]}}},
            {"nfType": "UDR", "nfServices": [{"serviceName": "nudr-dr", "scheme": "http"}]}
        ]});
        let instances = producers.read(&found);
        let read: Vec<_> = instances
            .iter()
            .map(|one| (one.root.to_string(), one.priority, one.ranges.clone()))
            .collect();
        assert_eq!(
            read,
            [
                ("http://192.0.2.1:80/a".to_owned(), 3, vec![(1000, 1999)]),
                ("https://[2001:db8::1]:8443".to_owned(), 1, vec![]),
            ]
        );
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
}
