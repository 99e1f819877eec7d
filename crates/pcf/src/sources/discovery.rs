//! Producers that the NRF knows (Nnrf_NFDiscovery, TS 29.510 §5.3.2): the API roots of a `SearchResult`, and what of them a worker
//! caches.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use nrf_client::PeerService;
use sbi::headers::{SbiHeader as _, TargetApiRoot};
use serde_json::Value;

use crate::outbound::Peers;

/// Instances of an answer of the NRF that are used.
const MOST: usize = 64;
/// Instances that are tried with a request.
pub(crate) const TRIED: usize = 3;
/// Queries whose answers a worker caches.
const CACHED: usize = 1_024;
/// Before the NRF is queried again after it has not answered.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// What the NRF has answered, by its query.
#[derive(Debug, Default)]
pub(crate) struct Discovered(RefCell<Vec<Known>>);

/// The answer to a query, and until when it holds.
#[derive(Debug)]
struct Known {
    query: String,
    until: Instant,
    roots: Rc<[TargetApiRoot]>,
}

impl Discovered {
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

    /// The API roots of a service that are to be tried, the best first. `more`: what the query has beside the service, each parameter with its
    /// `&`. An answer holds for this time.
    pub(crate) async fn find(
        &self,
        peers: &Peers,
        (service, more): (PeerService, &str),
        time: Duration,
    ) -> Rc<[TargetApiRoot]> {
        let query = query_of(service, more);
        if let Some(roots) = self.known(&query) {
            return roots;
        }
        let found = peers.nrfs().get(&query).await;
        let found = found.and_then(|body| serde_json::from_slice::<Value>(&body).ok());
        let (time, roots) = match found {
            Some(found) => (time, best_of(&found, service)),
            None => (PAUSE, Rc::default()),
        };
        self.keep(query, time, roots.clone());
        roots
    }
}

/// The discovery of a service (TS 29.510 table 6.2.3.2.3.1-1).
pub(super) fn query_of(service: PeerService, more: &str) -> String {
    format!(
        "/nnrf-disc/v1/nf-instances?target-nf-type={}&requester-nf-type=PCF&service-names={}{more}",
        service.nf_type, service.name
    )
}

fn best_of(found: &Value, service: PeerService) -> Rc<[TargetApiRoot]> {
    let mut roots: Vec<_> = roots_of(found, service).collect();
    roots.sort_by_key(|(_, priority, _)| *priority);
    roots.into_iter().take(TRIED).map(|(_, _, root)| root).collect()
}

/// The API roots of a service in a `SearchResult` (TS 29.510 §6.2.6.2.2), each with its profile and its priority, of which a lower one
/// goes first.
pub(super) fn roots_of(
    found: &Value,
    service: PeerService,
) -> impl Iterator<Item = (&Value, u64, TargetApiRoot)> {
    let profiles = found.get("nfInstances").and_then(Value::as_array);
    let profiles = profiles.into_iter().flatten().take(MOST);
    profiles.flat_map(move |profile| {
        let listed = profile.get("nfServices").and_then(Value::as_array);
        let mapped = profile.get("nfServiceList").and_then(Value::as_object);
        let mapped = mapped.into_iter().flat_map(|services| services.values());
        let services = listed.into_iter().flatten().chain(mapped);
        services.filter_map(move |one| {
            let is_named = one.get("serviceName").is_some_and(|name| name == service.name);
            let status = one.get("nfServiceStatus");
            let is_registered = status.is_none_or(|status| status == "REGISTERED");
            let priority = |of: &Value| of.get("priority").and_then(Value::as_u64);
            let priority = priority(one).or_else(|| priority(profile));
            let root = root_of(profile, one).filter(|_| is_named && is_registered)?;
            Some((profile, priority.unwrap_or(u64::from(u16::MAX)), root))
        })
    })
}

/// The API root of a service of a profile (TS 29.510 §6.1.6.2.3).
fn root_of(profile: &Value, service: &Value) -> Option<TargetApiRoot> {
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
    TargetApiRoot::parse(&root).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbound::AMF;
    use serde_json::json;

    #[test]
    fn amfs_are_tried_by_priority() {
        let service = |port: u16| {
            json!([{"serviceName": "namf-comm", "scheme": "http",
            "ipEndPoints": [{"ipv4Address": "192.0.2.1", "port": port}]}])
        };
        let found = json!({"nfInstances": [
            {"priority": 2, "nfServices": service(2)}, {"nfServices": []}, {"priority": 1, "nfServices": service(1)}]});
        let roots: Vec<String> = best_of(&found, AMF).iter().map(ToString::to_string).collect();
        assert_eq!(roots, ["http://192.0.2.1:1", "http://192.0.2.1:2"]);
    }
}
