//! Instances of a service that the PCF consumes: those of the settings, or those that the NRF knows (TS 29.510 §5.3.2).

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use nrf_client::{Nrfs, PeerService};
use overload::{BreakerSettings, CircuitBreaker};
use sbi::client::Origin;
use sbi::headers::{SbiHeader as _, TargetApiRoot};
use sbi::name::{ACCEPT, CONTENT_TYPE};
use sbi::{Body, Response};
use serde_json::Value;
use settings::Period;

use crate::outbound::{Peers, REDIRECTIONS};

/// Instances that a request is sent to at most.
const ATTEMPTS: usize = 3;
/// Instances of an answer of the NRF that are used.
const MOST: usize = 64;
/// Before the NRF is queried again after it has found nothing.
const PAUSE: Duration = Duration::from_secs(1);

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
        let query = format!(
            "/nnrf-disc/v1/nf-instances?target-nf-type={}&requester-nf-type=PCF&service-names={}{more}",
            service.nf_type, service.name
        );
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
            .take(ATTEMPTS)
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
        let profiles = found.get("nfInstances").and_then(Value::as_array);
        let profiles = profiles.into_iter().flatten().take(MOST);
        profiles.flat_map(|profile| self.of_profile(profile)).collect()
    }

    fn of_profile(&self, profile: &Value) -> Vec<Instance> {
        let priority = profile
            .get("priority")
            .and_then(Value::as_u64)
            .unwrap_or(u64::from(u16::MAX));
        let ranges = profile.get(self.info).and_then(|info| info.get("supiRanges"));
        let ranges = ranges.and_then(Value::as_array).map_or_else(Vec::new, |ranges| {
            let digits = |range: &Value, name: &str| range.get(name)?.as_str()?.parse::<u64>().ok();
            ranges
                .iter()
                .filter_map(|range| Some((digits(range, "start")?, digits(range, "end")?)))
                .collect()
        });
        let listed = profile
            .get("nfServices")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let mapped = profile
            .get("nfServiceList")
            .and_then(Value::as_object)
            .into_iter();
        let services = listed.chain(mapped.flat_map(|services| services.values()));
        services
            .filter(|service| service.get("serviceName").and_then(Value::as_str) == Some(self.service.name))
            .filter(|service| {
                service
                    .get("nfServiceStatus")
                    .is_none_or(|status| status == "REGISTERED")
            })
            .filter_map(|service| {
                Some(Instance {
                    root: root_of(profile, service)?,
                    priority: service
                        .get("priority")
                        .and_then(Value::as_u64)
                        .unwrap_or(priority),
                    ranges: ranges.clone(),
                })
            })
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
            let body = ask.body.map(|body| body(&root));
            let what = (&ask.method, ask.path, body);
            match send(peers, (self.service, &root), what, share).await {
                Some((at, response)) if !is_failure(response.status()) => {
                    attempt.answered();
                    return Ok((at, response));
                }
                Some((_, response)) => {
                    attempt.answered();
                    tracing::debug!(%root, status = %response.status(), "a producer failed");
                }
                None => {}
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
        if breakers.len() >= 2 * MOST && !breakers.contains_key(&name) {
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
pub(super) fn redirected(root: &TargetApiRoot, answer: &Response) -> Option<(TargetApiRoot, String)> {
    match answer.status() {
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => parts_of(&located(root, answer)?),
        _ => None,
    }
}

/// Sends a request to one instance; one that redirects it is followed, where it may be. The root that has answered, and the answer;
/// `None` when none comes in time.
async fn send(
    peers: &Peers,
    (service, root): (PeerService, &TargetApiRoot),
    (method, path, body): (&Method, &str, Option<Value>),
    deadline: Duration,
) -> Option<(TargetApiRoot, Response)> {
    let end = Instant::now() + deadline;
    let body = body.map(|body| Bytes::from(body.to_string()));
    let (mut at, mut path) = (root.clone(), format!("{}{path}", root.prefix));
    for _ in 0..REDIRECTIONS {
        let left = end.saturating_duration_since(Instant::now());
        let answer = send_once(peers, (service, &at), (method, &path, body.as_ref()), left).await?;
        let from = format!("{}{path}", at.origin).parse::<http::Uri>().ok();
        let next = redirected(&at, &answer);
        let next = next.filter(|(next, _)| from.is_some_and(|from| peers.may_redirect(&from, &next.origin)));
        let Some((next, next_path)) = next else {
            return Some((at, answer));
        };
        (at, path) = (next, next_path);
    }
    tracing::debug!(%root, "a producer redirects in a circle");
    None
}

async fn send_once(
    peers: &Peers,
    (service, root): (PeerService, &TargetApiRoot),
    (method, path, body): (&Method, &str, Option<&Bytes>),
    deadline: Duration,
) -> Option<Response> {
    if deadline.is_zero() {
        return None;
    }
    let make = || {
        let mut request = Request::builder()
            .method(method.clone())
            .uri(path)
            .header(ACCEPT, "application/json, application/problem+json")
            // TS 29.500 §6.11.2: the producer needs not work on what is given up by then.
            .header("3gpp-sbi-max-rsp-time", deadline.as_millis().max(1).to_string());
        let mut content = Body::empty();
        if let Some(body) = body {
            // RFC 7396 is the form of every PATCH that the PCF sends.
            let kind = match *method == Method::PATCH {
                true => "application/merge-patch+json",
                false => "application/json",
            };
            request = request.header(CONTENT_TYPE, kind);
            content.push(body.clone());
        }
        request.body(content).ok()
    };
    match peers.send((service, &root.origin), deadline, make).await? {
        Ok(response) => Some(response),
        Err(error) => {
            tracing::debug!(%root, path, %error, "a producer did not answer");
            None
        }
    }
}

/// Deletes a resource of a producer by its URI; whether it is gone.
pub(crate) async fn delete(peers: &Peers, service: PeerService, uri: &str, deadline: Duration) -> bool {
    let Some((root, path)) = parts_of(uri) else {
        return false;
    };
    let what = (&Method::DELETE, path.as_str(), None);
    let answer = send(peers, (service, &root), what, deadline).await;
    answer.is_some_and(|(_, answer)| answer.status().is_success() || answer.status() == StatusCode::NOT_FOUND)
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
    let what = (&Method::PUT, path.as_str(), Some(body.clone()));
    let answer = send(peers, (service, &root), what, deadline).await;
    answer.map(|(_, answer)| answer)
}

/// The origin of an absolute URI, without a prefix, and its path with the query.
pub(super) fn parts_of(uri: &str) -> Option<(TargetApiRoot, String)> {
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

/// The API root of a service of a profile (TS 29.510 §6.1.6.2.3).
pub(super) fn root_of(profile: &Value, service: &Value) -> Option<TargetApiRoot> {
    let text = |value: &'_ Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let first = |name: &str| profile.get(name)?.get(0)?.as_str().map(str::to_owned);
    let scheme = text(service, "scheme").unwrap_or_else(|| "http".to_owned());
    let point = service.get("ipEndPoints").and_then(|points| points.get(0));
    let bracketed = |address: String| format!("[{address}]");
    let host = point
        .and_then(|point| text(point, "ipv4Address").or_else(|| text(point, "ipv6Address").map(bracketed)))
        .or_else(|| text(service, "fqdn"))
        .or_else(|| text(profile, "fqdn"))
        .or_else(|| first("ipv4Addresses"))
        .or_else(|| first("ipv6Addresses").map(bracketed))?;
    let port = point.and_then(|point| point.get("port")?.as_u64());
    let port = port.unwrap_or(if scheme == "https" { 443 } else { 80 });
    let prefix = text(service, "apiPrefix").unwrap_or_default();
    let prefix = prefix.trim_matches('/');
    let prefix = match prefix {
        "" => String::new(),
        prefix => format!("/{prefix}"),
    };
    let root = format!("{scheme}://{host}:{port}{prefix}");
    root.parse::<http::Uri>().ok()?;
    let root = TargetApiRoot::parse(&root).ok()?;
    let _: &Origin = &root.origin;
    Some(root)
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
}
