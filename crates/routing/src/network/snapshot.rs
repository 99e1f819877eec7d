//! The network at one moment, with the indexes that routing queries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use ahash::{AHashMap, AHashSet};
use sbi_proto::Origin;

use super::profile::{Endpoint, Producer, ProducerService, Scheme};

/// A service instance inside a [`Network`]: the producer and the position of the service in it.
#[derive(Clone, Debug)]
pub struct ServiceRef {
    /// The producer.
    pub producer: Arc<Producer>,
    position: usize,
    preference: u8,
}

impl ServiceRef {
    /// The service at this position of the producer's list; `None` when there is none.
    #[must_use]
    pub fn new(producer: Arc<Producer>, position: usize) -> Option<Self> {
        (position < producer.services.len()).then_some(Self {
            producer,
            position,
            preference: 0,
        })
    }

    /// The same instance with this rank among the candidates of a preference; 0 is the best.
    #[must_use]
    pub fn preferred(&self, place: usize) -> Self {
        Self {
            preference: u8::try_from(place).unwrap_or(u8::MAX),
            ..self.clone()
        }
    }

    /// The rank by the preferences of a discovery; 0 is the best, or the discovery has no preference.
    #[must_use]
    pub fn preference(&self) -> u8 {
        self.preference
    }

    /// Position of the service in the producer's list.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// The service.
    #[must_use]
    pub fn service(&self) -> &ProducerService {
        // `new` has checked the position and a producer behind an `Arc` does not change.
        &self.producer.services[self.position]
    }

    /// The endpoint that is tried first.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        // The parser of profiles drops services without endpoints.
        &self.service().endpoints[0]
    }

    /// Its endpoint at an origin; the same address with another scheme is another endpoint.
    fn endpoint_at(&self, origin: &Origin) -> Option<&Endpoint> {
        let scheme = match origin.scheme() {
            sbi_proto::Scheme::Http => Scheme::Http,
            sbi_proto::Scheme::Https => Scheme::Https,
        };
        let port = || format!(":{}", origin.port());
        self.service().endpoints.iter().find(|one| {
            let authority = &*one.authority;
            one.scheme == scheme
                && (authority == origin.authority()
                    || authority.strip_suffix(&port()) == Some(origin.authority()))
        })
    }

    /// `fqdn` of the service, else of its producer.
    #[must_use]
    pub fn fqdn(&self) -> Option<&str> {
        self.service().fqdn.as_deref().or(self.producer.fqdn.as_deref())
    }

    /// Whether both name the same service instance of the same producer.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.producer.id == other.producer.id && self.service().instance == other.service().instance
    }
}

/// All producers known at one moment.
#[derive(Clone, Debug, Default)]
pub struct Network {
    producers: BTreeMap<Arc<str>, Arc<Producer>>,
    by_authority: AHashMap<Arc<str>, Vec<ServiceRef>>,
    by_set: AHashMap<Arc<str>, Vec<ServiceRef>>,
    by_service_set: AHashMap<Arc<str>, Vec<ServiceRef>>,
    by_service: AHashMap<Arc<str>, Vec<ServiceRef>>,
    /// Whether any endpoint has a prefix.
    has_prefixes: bool,
    /// Names and addresses of producers and their services.
    hosts: AHashSet<Arc<str>>,
    /// When producers deregistered, for the last [`MOST_LEFT`] of them.
    left: BTreeMap<Arc<str>, Instant>,
    /// When the profiles of known producers changed in more than their load, for the last [`MOST_LEFT`] of them.
    changed: BTreeMap<Arc<str>, Instant>,
    made: Option<Instant>,
}

/// Producers whose time of deregistration, or of change, is cached.
const MOST_LEFT: usize = 4_096;

impl Network {
    /// Builds the network of these producers; of two with the same id the later one counts.
    pub fn new(producers: impl IntoIterator<Item = Arc<Producer>>) -> Self {
        let producers = producers
            .into_iter()
            .map(|producer| (producer.id.clone(), producer))
            .collect();
        let mut network = Self {
            producers,
            made: Some(Instant::now()),
            ..Self::default()
        };
        for producer in network.producers.values() {
            network.hosts.extend(producer.hosts.iter().cloned());
            for position in 0..producer.services.len() {
                let service = ServiceRef {
                    producer: producer.clone(),
                    position,
                    preference: 0,
                };
                let sets = producer.sets.iter();
                push_all(&mut network.by_set, sets, &service);
                push_all(
                    &mut network.by_service_set,
                    service.service().sets.iter(),
                    &service,
                );
                push_all(
                    &mut network.by_service,
                    [&service.service().name].into_iter(),
                    &service,
                );
                let authorities = service
                    .service()
                    .endpoints
                    .iter()
                    .map(|endpoint| &endpoint.authority);
                push_all(&mut network.by_authority, authorities, &service);
                let mut endpoints = service.service().endpoints.iter();
                let named = endpoints.clone().filter_map(Endpoint::host);
                network.hosts.extend(named.map(Arc::from));
                network.has_prefixes |= endpoints.any(|endpoint| !endpoint.prefix.is_empty());
            }
        }
        network
    }

    /// This network after `changes`: producers added or replaced (`Some`) and removed (`None`), by id.
    ///
    /// Costs a pass over the whole network, so a caller with several changes applies them in one call.
    #[must_use]
    pub fn after(&self, changes: impl IntoIterator<Item = (Arc<str>, Option<Arc<Producer>>)>) -> Self {
        let mut producers = self.producers.clone();
        let (mut left, mut changed) = (self.left.clone(), self.changed.clone());
        let now = Instant::now();
        for (id, change) in changes {
            match change {
                Some(producer) => {
                    left.remove(&id);
                    let before = producers.insert(id.clone(), producer.clone());
                    if before.is_some_and(|before| !before.differs_in_load_only(&producer)) {
                        changed.insert(id, now);
                    }
                }
                None => {
                    producers.remove(&id);
                    changed.remove(&id);
                    left.insert(id, now);
                }
            }
        }
        for times in [&mut left, &mut changed] {
            bound(times);
        }
        Self {
            left,
            changed,
            ..Self::new(producers.into_values())
        }
    }

    /// When this snapshot was made; `None` for the empty one by default.
    #[must_use]
    pub fn made(&self) -> Option<Instant> {
        self.made
    }

    /// When the profile of a known producer last changed in more than its load.
    #[must_use]
    pub fn changed_at(&self, id: &str) -> Option<Instant> {
        self.changed.get(id).copied()
    }

    /// When a formerly known producer deregistered.
    #[must_use]
    pub fn left_at(&self, id: &str) -> Option<Instant> {
        self.left.get(id).copied()
    }

    /// The producer of this id (lower case).
    #[must_use]
    pub fn producer(&self, id: &str) -> Option<&Arc<Producer>> {
        self.producers.get(id)
    }

    /// All producers, by id.
    pub fn producers(&self) -> impl Iterator<Item = &Arc<Producer>> {
        self.producers.values()
    }

    /// How many producers are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.producers.len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.producers.is_empty()
    }

    /// The service instance named `service` that listens at an origin. Several services of a producer may share an
    /// address; without a match by name, the first of them.
    #[must_use]
    pub fn at(&self, origin: &Origin, service: &str) -> Option<&ServiceRef> {
        let here = || {
            self.of_authority(origin)
                .filter(|one| one.endpoint_at(origin).is_some())
        };
        here()
            .find(|found| &*found.service().name == service)
            .or_else(|| here().next())
    }

    /// The endpoints of all services at an origin.
    pub fn endpoints_at<'a>(&'a self, origin: &'a Origin) -> impl Iterator<Item = &'a Endpoint> + Clone + 'a {
        self.of_authority(origin)
            .filter_map(|one| one.endpoint_at(origin))
    }

    fn of_authority<'a>(&'a self, origin: &Origin) -> impl Iterator<Item = &'a ServiceRef> + Clone + 'a {
        let here = self.by_authority.get(origin.authority()).or_else(|| {
            // The port may be left out where it is the scheme's.
            let host = origin.host();
            let full = match host.contains(':') {
                true => format!("[{host}]:{}", origin.port()),
                false => format!("{host}:{}", origin.port()),
            };
            (full != origin.authority())
                .then(|| self.by_authority.get(&*full))
                .flatten()
        });
        here.into_iter().flatten()
    }

    /// Whether a known function has this name or address.
    #[must_use]
    pub fn has_host(&self, host: &str) -> bool {
        self.hosts.contains(host)
    }

    /// Whether any endpoint has a prefix (`apiPrefix`).
    #[must_use]
    pub fn has_prefixes(&self) -> bool {
        self.has_prefixes
    }

    /// All service instances of one producer.
    pub fn services_of(&self, id: &str) -> impl Iterator<Item = ServiceRef> + '_ {
        self.producers.get(id).into_iter().flat_map(|producer| {
            let positions = 0..producer.services.len();
            positions.filter_map(|position| ServiceRef::new(producer.clone(), position))
        })
    }

    /// The service instances named `service` of one producer.
    pub fn of_producer<'a>(&'a self, id: &str, service: &'a str) -> impl Iterator<Item = ServiceRef> + 'a {
        self.producers.get(id).into_iter().flat_map(move |producer| {
            let positions = 0..producer.services.len();
            positions
                .filter(move |&position| &*producer.services[position].name == service)
                .map(|position| ServiceRef {
                    producer: producer.clone(),
                    position,
                    preference: 0,
                })
        })
    }

    /// The service instances named `service` in an NF set.
    pub fn in_set<'a>(&'a self, set: &str, service: &'a str) -> impl Iterator<Item = &'a ServiceRef> + 'a {
        of_name(self.by_set.get(set), service)
    }

    /// All service instances in an NF set.
    #[must_use]
    pub fn all_in_set(&self, set: &str) -> &[ServiceRef] {
        self.by_set.get(set).map_or(&[], Vec::as_slice)
    }

    /// The service instances of an NF service set.
    #[must_use]
    pub fn in_service_set(&self, set: &str) -> &[ServiceRef] {
        self.by_service_set.get(set).map_or(&[], Vec::as_slice)
    }

    /// All instances of a service.
    #[must_use]
    pub fn of_service(&self, service: &str) -> &[ServiceRef] {
        self.by_service.get(service).map_or(&[], Vec::as_slice)
    }

    /// Those that can stand in for `failed`: the same service in a service set it is in, else in an NF set
    /// it is in (TS 23.501 §5.21.3, TS 29.500 §6.12).
    #[must_use]
    pub fn alternates(&self, failed: &ServiceRef) -> Vec<ServiceRef> {
        let mut found: Vec<ServiceRef> = Vec::new();
        let mut add = |candidate: &ServiceRef| {
            if !candidate.is(failed) && !found.iter().any(|known| known.is(candidate)) {
                found.push(candidate.clone());
            }
        };
        for set in &failed.service().sets {
            self.in_service_set(set).iter().for_each(&mut add);
        }
        for set in &failed.producer.sets {
            self.in_set(set, &failed.service().name).for_each(&mut add);
        }
        found
    }
}

/// Drops the older half of the times where there are too many.
fn bound(times: &mut BTreeMap<Arc<str>, Instant>) {
    if times.len() <= MOST_LEFT {
        return;
    }
    let mut sorted: Vec<Instant> = times.values().copied().collect();
    sorted.sort_unstable();
    if let Some(oldest) = sorted.get(sorted.len() - MOST_LEFT / 2).copied() {
        times.retain(|_, at| *at >= oldest);
    }
}

fn push_all<'a>(
    index: &mut AHashMap<Arc<str>, Vec<ServiceRef>>,
    keys: impl Iterator<Item = &'a Arc<str>>,
    service: &ServiceRef,
) {
    for key in keys {
        index.entry(key.clone()).or_default().push(service.clone());
    }
}

fn of_name<'a>(
    found: Option<&'a Vec<ServiceRef>>,
    name: &'a str,
) -> impl Iterator<Item = &'a ServiceRef> + 'a {
    found
        .into_iter()
        .flatten()
        .filter(move |service| &*service.service().name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn udm(id: &str, set: &str, port: u16) -> Producer {
        let service = |name: &str| {
            json!({
                "serviceInstanceId": name, "serviceName": name, "scheme": "http", "versions": [],
                "nfServiceStatus": "REGISTERED", "ipEndPoints": [{"port": port}]
            })
        };
        Producer::from_value(&json!({
            "nfInstanceId": id, "nfType": "UDM", "nfStatus": "REGISTERED", "nfSetIdList": [set],
            "ipv4Addresses": ["127.0.0.1"], "nfServices": [service("nudm-sdm"), service("nudm-uecm")]
        }))
        .unwrap()
    }

    fn origin(text: &str) -> Origin {
        text.parse().unwrap()
    }

    fn network(producers: impl IntoIterator<Item = Producer>) -> Network {
        Network::new(producers.into_iter().map(Arc::new))
    }

    #[test]
    fn finds_by_address_set_and_service() {
        let network = network([udm("a", "set1", 1), udm("b", "set1", 2), udm("c", "set2", 3)]);
        assert_eq!(network.len(), 3);
        let at = network.at(&origin("http://127.0.0.1:2"), "nudm-uecm").unwrap();
        assert_eq!((&*at.producer.id, &*at.service().name), ("b", "nudm-uecm"));
        assert_eq!(network.in_set("set1", "nudm-sdm").count(), 2);
        assert_eq!(network.of_service("nudm-sdm").len(), 3);
        let alternates = network.alternates(at);
        assert_eq!(alternates.len(), 1);
        assert_eq!(&*alternates[0].producer.id, "a");
        assert_eq!(&*alternates[0].service().name, "nudm-uecm");
    }

    #[test]
    fn a_change_leaves_the_old_network_as_it_was() {
        let before = network([udm("a", "set1", 1)]);
        let moved = before.after([("a".into(), Some(Arc::new(udm("a", "set1", 9))))]);
        let knows = |network: &Network, authority| network.at(&origin(authority), "nudm-sdm").is_some();
        assert!(knows(&before, "http://127.0.0.1:1") && !knows(&before, "http://127.0.0.1:9"));
        assert!(knows(&moved, "http://127.0.0.1:9") && !knows(&moved, "http://127.0.0.1:1"));
        assert!(!knows(&moved, "https://127.0.0.1:9"), "the address changed");
        assert!(moved.after([("a".into(), None)]).is_empty());
    }

    #[test]
    fn a_changed_load_is_no_other_profile() {
        let profile = |load: u8, stamp: &str, ranges: &str| {
            let service = json!({"serviceInstanceId": "s", "serviceName": "nudm-sdm", "scheme": "http",
                "versions": [], "nfServiceStatus": "REGISTERED", "load": load});
            Arc::new(
                Producer::from_value(&json!({
                    "nfInstanceId": "4947a69a-f61b-4bc1-b9da-47c9c5d14b64", "nfType": "UDM",
                    "nfStatus": "REGISTERED", "ipv4Addresses": ["127.0.0.1"], "load": load,
                    "loadTimeStamp": stamp, "udmInfo": {"groupId": ranges}, "nfServices": [service]
                }))
                .unwrap(),
            )
        };
        let first = profile(1, "2026-01-01T00:00:00Z", "g1");
        let id = first.id.clone();
        let network = Network::new([first]);
        let busier = network.after([(id.clone(), Some(profile(9, "2026-01-01T00:00:09Z", "g1")))]);
        assert!(busier.changed_at(&id).is_none());
        let other = busier.after([(id.clone(), Some(profile(9, "2026-01-01T00:00:09Z", "g2")))]);
        assert!(other.changed_at(&id).is_some() && other.after([]).changed_at(&id).is_some());
        assert!(other.after([(id.clone(), None)]).changed_at(&id).is_none());
    }
}
