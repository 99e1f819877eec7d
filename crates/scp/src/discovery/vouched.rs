//! Producers outside the cached profiles that an NRF has named: in the answer of a discovery, or deregistered recently.
//! Consumers continue to use them (Model C), on any worker.

use std::time::Instant;

use ahash::RandomState;
use indexmap::IndexMap;
use parking_lot::RwLock;
use routing::network::{Endpoint, Producer, Scheme};
use sbi::client::Origin;

use super::Found;

/// Their origins with an expiry; bounded, any entry may be evicted.
#[derive(Debug)]
pub(crate) struct Vouched {
    origins: RwLock<IndexMap<Origin, Option<Instant>, RandomState>>,
    most: usize,
}

impl Vouched {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            origins: RwLock::default(),
            most: most.max(1),
        }
    }

    /// Adds the producers of an answer.
    pub(crate) fn add(&self, found: &Found) {
        self.insert(
            found.candidates.iter().flat_map(|one| &one.service().endpoints),
            None,
        );
    }

    /// Keeps the origins of a producer that deregisters or moves, because it may still hold resources.
    pub(crate) fn keep(&self, producer: &Producer, until: Instant) {
        self.insert(
            producer.services.iter().flat_map(|service| &service.endpoints),
            Some(until),
        );
    }

    fn insert<'e>(&self, endpoints: impl Iterator<Item = &'e Endpoint>, until: Option<Instant>) {
        let origins = endpoints.filter_map(|one| {
            let scheme = match one.scheme {
                Scheme::Http => sbi::client::Scheme::Http,
                Scheme::Https => sbi::client::Scheme::Https,
            };
            Origin::new(scheme, &one.authority).ok()
        });
        for origin in origins {
            let same = |at: &Option<Instant>| at.is_none() || *at == until;
            if self.origins.read().get(&origin).is_some_and(same) {
                continue;
            }
            let mut known = self.origins.write();
            if known.len() >= self.most && !known.contains_key(&origin) {
                let at = rand::random_range(0..known.len());
                known.swap_remove_index(at);
            }
            known.insert(origin, until);
        }
    }

    /// Whether the entry of this origin is valid at `now`.
    pub(crate) fn has(&self, origin: &Origin, now: Instant) -> bool {
        let origins = self.origins.read();
        origins
            .get(origin)
            .is_some_and(|until| until.is_none_or(|until| now < until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use routing::network::{Producer, ServiceRef};
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn as_many_as_allowed_are_remembered() {
        let vouched = Vouched::new(3);
        let at = |port: u16| {
            let profile = json!({
                "nfInstanceId": "a", "nfType": "UDM", "nfStatus": "REGISTERED", "ipv4Addresses": ["10.0.0.1"],
                "nfServices": [{"serviceInstanceId": "s", "serviceName": "nudm-sdm", "scheme": "http",
                    "nfServiceStatus": "REGISTERED", "versions": [], "ipEndPoints": [{"port": port}]}]
            });
            let producer = Arc::new(Producer::from_value(&profile).unwrap());
            Found {
                asked: std::time::Instant::now(),
                candidates: vec![ServiceRef::new(producer, 0).unwrap()],
                bytes: 0,
            }
        };
        let now = Instant::now();
        let has = |port: u16| vouched.has(&format!("http://10.0.0.1:{port}").parse().unwrap(), now);
        for port in 1..=10 {
            vouched.add(&at(port));
            assert!(has(port));
        }
        assert_eq!((1..=10).filter(|port| has(*port)).count(), 3);
        assert!(!vouched.has(&"https://10.0.0.1:10".parse().unwrap(), now));
    }

    #[test]
    fn who_has_left_is_remembered_for_a_while() {
        let profile = json!({
            "nfInstanceId": "a", "nfType": "UDM", "nfStatus": "REGISTERED", "ipv4Addresses": ["10.0.0.1"],
            "nfServices": [{"serviceInstanceId": "s", "serviceName": "nudm-sdm", "scheme": "http",
                "nfServiceStatus": "REGISTERED", "versions": [], "ipEndPoints": [{"port": 7}]}]
        });
        let producer = Producer::from_value(&profile).unwrap();
        let (vouched, now) = (Vouched::new(3), Instant::now());
        let origin = "http://10.0.0.1:7".parse().unwrap();
        let second = std::time::Duration::from_secs(1);
        vouched.keep(&producer, now + second);
        assert!(vouched.has(&origin, now) && !vouched.has(&origin, now + second));
        // It came back and left again.
        vouched.keep(&producer, now + 2 * second);
        assert!(vouched.has(&origin, now + second) && !vouched.has(&origin, now + 2 * second));
    }
}
