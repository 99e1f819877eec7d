//! Delegated discoveries of requests (TS 29.500 §6.10.3), cached by the headers that carry them.

use std::cell::RefCell;
use std::rc::Rc;

use bounded::{Cache, Limits};
use sbi_proto::headers::names;
use sbi_proto::{Fields, name};

use super::{Has, Preference, is_of_nrf};
use crate::query::{DiscoveryQuery, QueryFault};

/// A discovery query, and what each request with it needs of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Delegated {
    /// The query.
    pub query: DiscoveryQuery,
    /// The order in which it prefers candidates.
    pub preference: Option<Rc<Preference>>,
    /// Whether it is for NRFs; `None`: it names no NF type.
    for_nrfs: Option<bool>,
}

impl Delegated {
    /// The discovery of this query.
    #[must_use]
    pub fn new(query: DiscoveryQuery) -> Self {
        Self {
            preference: Preference::of_query(&query).map(Rc::new),
            for_nrfs: query.get("target-nf-type").map(|nf_type| nf_type == "NRF"),
            query,
        }
    }

    /// Whether it is for NRFs: the settings name them, an NRF may not have their profiles. `service` is the one that the
    /// request is for.
    #[must_use]
    pub fn asks_for_nrfs(&self, service: &str) -> bool {
        self.for_nrfs.unwrap_or_else(|| is_of_nrf(service))
    }
}

/// Cache of delegated discoveries by the headers that carry them: consumers repeat the same query, and a look-up is cheaper
/// than building its canonical form.
pub struct Queries {
    known: RefCell<Cache<Box<[u8]>, Rc<Delegated>>>,
    /// Buffer for the key of a look-up.
    key: RefCell<Vec<u8>>,
    /// Whether the query goes to the NRF that a request names.
    named_nrfs: bool,
    /// Whether the NF type in `User-Agent` stands in for an absent `requester-nf-type`.
    by_agent: bool,
}

/// Queries that a worker caches at most.
const MOST_QUERIES: usize = 16_384;
/// Memory of an entry beside its texts, in bytes.
const ENTRY: usize = 256;

/// Bounds the entries and their bytes: any consumer chooses the length of its headers.
fn limits(memory: usize) -> Limits {
    Limits {
        entries: MOST_QUERIES,
        bytes: memory,
    }
}

/// The parameter with the NF type of the consumer.
const REQUESTER_TYPE: &str = "requester-nf-type";

/// The NF type with which a `User-Agent` begins, before a hyphen, a space or a slash (TS 29.500 §5.2.2.2).
pub fn nf_type_of(agent: &str) -> Option<&str> {
    let is_type = |name: &&str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    };
    agent.split(['-', ' ', '/']).next().filter(is_type)
}

impl Queries {
    /// Creates an empty cache. `named_nrfs`: queries go to the NRF that the request names (TS 29.500 §5.2.3.2.12).
    /// `by_agent`: a query without `requester-nf-type` gets the NF type of `User-Agent`; that header is mandatory in
    /// requests that delegate the discovery (TS 29.500 table 5.2.2.2-1), and NRFs refuse a query without the type.
    /// `memory`: bound of the cache, in bytes.
    #[must_use]
    pub fn new(named_nrfs: bool, by_agent: bool, memory: usize) -> Self {
        Self {
            known: RefCell::new(Cache::new(limits(memory))),
            key: RefCell::default(),
            named_nrfs,
            by_agent,
        }
    }

    /// Returns the discovery of these headers, if they carry one. `has` is what they have; `consumer` is the NF type of the
    /// consumer, if it is known.
    ///
    /// # Errors
    /// As [`DiscoveryQuery::from_headers`].
    pub fn of(
        &self,
        headers: &Fields,
        has: Has,
        consumer: Option<&str>,
    ) -> Result<Option<Rc<Delegated>>, QueryFault> {
        let mut key = self.key.borrow_mut();
        key.clear();
        let agent = || headers.get(name::USER_AGENT)?.to_str().ok().and_then(nf_type_of);
        let consumer = self.by_agent.then(|| consumer.or_else(agent)).flatten();
        if let Some(nf_type) = consumer {
            // Names of parameters do not begin with this byte.
            key.push(2);
            key.extend_from_slice(nf_type.as_bytes());
            key.push(0);
        }
        if self.named_nrfs && has.has(Has::NRF_URI) {
            for value in headers.get_all(names::NRF_URI) {
                // Names of parameters do not begin with this byte.
                key.push(1);
                key.extend_from_slice(value.as_bytes());
                key.push(0);
            }
        }
        for (name, parameter, value) in headers.discovery_parameters() {
            key.reserve(4 + value.len());
            match name.number() {
                // As number of a known name, in the key alone.
                Some(number) => {
                    let [high, low] = number.to_be_bytes();
                    key.extend_from_slice(&[3, high, low]);
                }
                None => {
                    key.extend_from_slice(parameter.as_bytes());
                    key.push(0);
                }
            }
            key.extend_from_slice(value.as_bytes());
            key.push(0);
        }
        let mut known = self.known.borrow_mut();
        if let Some(found) = known.get(&**key) {
            return Ok(Some(found.clone()));
        }
        let Some(query) = DiscoveryQuery::from_headers(headers)? else {
            return Ok(None);
        };
        let query = match consumer {
            Some(nf_type) if query.get(REQUESTER_TYPE).is_none() => query.with(REQUESTER_TYPE, Some(nf_type)),
            _ => query,
        };
        let query = match self.named_nrfs {
            true => query.named(headers)?,
            false => query,
        };
        // The preferences repeat parts of the text.
        let bytes = ENTRY + key.len() + 2 * query.as_str().len();
        let found = Rc::new(Delegated::new(query));
        known.insert_sized(key.as_slice().into(), found.clone(), bytes);
        Ok(Some(found))
    }

    /// Changes the bound of the cache, in bytes.
    pub fn set_memory(&self, memory: usize) {
        self.known.borrow_mut().set_limits(limits(memory));
    }

    /// Memory of the cached queries, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.known.borrow().bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sbi_proto::Value;

    fn headers(parameters: &[(&'static str, &'static str)]) -> Fields {
        let mut headers = Fields::new();
        for (name, value) in parameters {
            headers.append(*name, Value::from_static(value));
        }
        headers
    }

    fn queries_of(
        queries: &Queries,
        parameters: &[(&'static str, &'static str)],
    ) -> Result<Option<Rc<Delegated>>, QueryFault> {
        let headers = headers(parameters);
        queries.of(&headers, Has::among(&headers), None)
    }

    #[test]
    fn equal_headers_are_one_discovery_and_others_are_not() {
        let queries = Queries::new(true, true, 1 << 20);
        let of = |parameters: &[_]| queries_of(&queries, parameters).unwrap().unwrap();
        let all = [
            vec![("3gpp-Sbi-Discovery-target-nf-type", "UDM")],
            vec![("3gpp-Sbi-Discovery-requester-nf-type", "UDM")],
            vec![("3gpp-Sbi-Discovery-x-target-nf-type", "UDM")],
            vec![
                ("3gpp-Sbi-Discovery-target-nf-type", "UDM"),
                ("3gpp-Sbi-Discovery-dnn", "a"),
            ],
            vec![
                ("3gpp-Sbi-Discovery-target-nf-type", "UDM"),
                ("user-agent", "AMF-1"),
            ],
            vec![
                ("3gpp-Sbi-Discovery-target-nf-type", "UDM"),
                (
                    "3gpp-Sbi-Nrf-Uri",
                    r#"nnrf-disc: "http://a.example/nnrf-disc/v1""#,
                ),
            ],
        ];
        let found: Vec<_> = all.iter().map(|one| of(one)).collect();
        for (position, one) in all.iter().enumerate() {
            assert!(Rc::ptr_eq(&of(one), &found[position]), "{one:?}");
            let same = found.iter().filter(|other| other.query == found[position].query);
            assert_eq!(same.count(), 1, "{one:?}");
        }
        assert_eq!(queries_of(&queries, &[("x", "y")]), Ok(None));
    }

    #[test]
    fn what_is_cached_with_a_query_is_of_the_query() {
        let udm = Delegated::new(DiscoveryQuery::new([("target-nf-type", "UDM")]));
        assert!(!udm.asks_for_nrfs("nnrf-disc") && udm.preference.is_none());
        let nrf = Delegated::new(DiscoveryQuery::new([("target-nf-type", "NRF")]));
        assert!(nrf.asks_for_nrfs("nudm-sdm"));
        let any = Delegated::new(DiscoveryQuery::new([("preferred-nf-instances", "A")]));
        assert!(any.asks_for_nrfs("nnrf-disc") && !any.asks_for_nrfs("nudm-sdm"));
        assert_eq!(any.preference.unwrap().describe().as_deref(), Some("a"));
    }

    #[test]
    fn nf_types_stand_first_in_user_agents() {
        for (agent, expected) in [
            ("AMF", Some("AMF")),
            (
                "SMF-4947a69a-f61b-4bc1-b9da-47c9c5d14b64 smf.example.org",
                Some("SMF"),
            ),
            ("5G_EIR-x", Some("5G_EIR")),
            ("curl/8.9", None),
            ("", None),
        ] {
            assert_eq!(nf_type_of(agent), expected, "{agent}");
        }
    }
}
