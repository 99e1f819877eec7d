//! The destination that a request names (TS 29.500 §6.10).
//!
//! A request names its producer (Model C: `3gpp-Sbi-Target-apiRoot`, or the authority of its URI), or it delegates
//! the discovery (Model D: `3gpp-Sbi-Discovery-*`), or it carries the binding of its resource
//! (`3gpp-Sbi-Routing-Binding`). A binding may accompany either of the others; it then names the alternates for a
//! producer that fails.

mod binding;
mod bounds;
mod exclusions;
mod has;
mod own_names;
mod placed;

pub use crate::path::{check_name, normal, service_of};
pub use binding::{Preference, bound};
pub use bounds::{Bounds, Place, Reach};
pub use exclusions::Exclusions;
pub use has::Has;
pub use own_names::OwnNames;
pub use placed::{Placed, placed};

use std::cell::RefCell;
use std::rc::Rc;

use bounded::{Cache, Limits};
use sbi_proto::headers::{MaxForwardHops, SbiHeader, TargetApiRoot, names};
use sbi_proto::problem::{Cause, Problem};
use sbi_proto::{Fields, Request, name};

use crate::query::{DiscoveryQuery, QueryFault};

/// The destination that a request names.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// This API root.
    Root(TargetApiRoot),
    /// A producer that this discovery finds.
    Discover(Rc<DiscoveryQuery>),
    /// A producer that the binding names.
    Bound,
    /// An NRF that this SCP knows: the service is an API of NRFs.
    Nrf,
}

/// The major version of the API that a path names: `/{apiName}/v{major}/…` (TS 29.501 §4.3.1).
pub fn version_of(path: &str) -> Option<u32> {
    let mut segments = path.as_bytes().split(|byte| *byte == b'/');
    major(segments.nth(2)?)
}

/// The number in `apiVersionInUri`: `v2`.
pub fn major(version: impl AsRef<[u8]>) -> Option<u32> {
    let digits = version.as_ref().strip_prefix(b"v")?;
    let number = digits.iter().try_fold(0_u32, |number, byte| {
        let digit = char::from(*byte).to_digit(10)?;
        number.checked_mul(10)?.checked_add(digit)
    });
    number.filter(|_| !digits.is_empty())
}

/// Whether this is an API of NRFs (TS 29.510 §6).
fn is_of_nrf(service: &str) -> bool {
    service.starts_with("nnrf-")
}

/// Whether a discovery is for NRFs: the settings name them, an NRF may not have their profiles.
pub fn asks_for_nrfs(query: &DiscoveryQuery, service: &str) -> bool {
    match query.get("target-nf-type") {
        Some(nf_type) => nf_type == "NRF",
        None => is_of_nrf(service),
    }
}

/// The problem details of an invalid discovery parameter.
pub fn unreadable(fault: QueryFault) -> Problem {
    Problem::new(Cause::InvalidDiscoveryParam)
        .detail("invalid discovery parameter")
        .invalid_param(format!("header {}", fault.header), fault.expected)
}

/// Cache of discovery queries by the headers that carry them: consumers repeat the same query, and a look-up is cheaper
/// than building its canonical form.
pub struct Queries {
    known: RefCell<Cache<Box<[u8]>, Rc<DiscoveryQuery>>>,
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

/// How the name of every discovery header begins.
const DISCOVERY: &str = "3gpp-sbi-discovery-";
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

    /// Returns the query of these headers, if they carry one. `consumer` is the NF type of the consumer, if it is known.
    ///
    /// # Errors
    /// As [`DiscoveryQuery::from_headers`].
    pub fn of(
        &self,
        headers: &Fields,
        consumer: Option<&str>,
    ) -> Result<Option<Rc<DiscoveryQuery>>, QueryFault> {
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
        for field in headers.iter() {
            if let Some(parameter) = field.name.as_str().strip_prefix(DISCOVERY) {
                key.extend_from_slice(parameter.as_bytes());
                key.push(0);
                key.extend_from_slice(field.value.as_bytes());
                key.push(0);
            } else if self.named_nrfs && field.name == names::NRF_URI {
                // Names of parameters do not begin with this byte.
                key.push(1);
                key.extend_from_slice(field.value.as_bytes());
                key.push(0);
            }
        }
        let mut known = self.known.borrow_mut();
        if let Some(query) = known.get(&**key) {
            return Ok(Some(query.clone()));
        }
        let Some(query) = DiscoveryQuery::from_headers(headers)? else {
            return Ok(None);
        };
        let query = match consumer {
            Some(nf_type) if query.get(REQUESTER_TYPE).is_none() => query.with(REQUESTER_TYPE, Some(nf_type)),
            _ => query,
        };
        let query = Rc::new(match self.named_nrfs {
            true => query.named(headers)?,
            false => query,
        });
        let bytes = ENTRY + key.len() + query.as_str().len();
        known.insert_sized(key.as_slice().into(), query.clone(), bytes);
        Ok(Some(query))
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

/// Reads the destination of a request. `has` are its headers, `own` are the authorities under which this SCP is reached,
/// `consumer` is the NF type of the consumer.
///
/// # Errors
/// The problem details for the consumer.
pub fn wish(
    request: &Request,
    has: Has,
    own: &OwnNames,
    queries: &Queries,
    consumer: Option<&str>,
) -> Result<Wish, Problem> {
    let headers = request.headers();
    if has.has(Has::TARGET_API_ROOT)
        && let Some(root) = header::<TargetApiRoot>(headers)?
    {
        return Ok(Wish::Root(root));
    }
    if has.has(Has::DISCOVERY) {
        let query = queries.of(headers, consumer).map_err(unreadable)?;
        if let Some(query) = query {
            return Ok(Wish::Discover(query));
        }
    }
    let is_own = |root: &TargetApiRoot| own.has(root.origin.authority(), request.peer.local);
    if let Some(root) = of_authority(request).filter(|root| !is_own(root)) {
        return Ok(Wish::Root(root));
    }
    if has.has(Has::ROUTING_BINDING) {
        return Ok(Wish::Bound);
    }
    if is_of_nrf(service_of(request.path())) {
        return Ok(Wish::Nrf);
    }
    Err(Problem::new(Cause::MandatoryIeMissing)
        .detail("the request names no destination")
        .invalid_param(
            "header 3gpp-Sbi-Target-apiRoot",
            "expected this header, 3gpp-Sbi-Discovery-* headers, 3gpp-Sbi-Routing-Binding, or the producer's authority",
        ))
}

/// The API root that `:scheme` and `:authority` of a request make.
pub fn of_authority(request: &Request) -> Option<TargetApiRoot> {
    let scheme = match request.head.scheme() {
        "" => "http",
        scheme => scheme,
    };
    TargetApiRoot::parse(&format!("{scheme}://{}", authority(request)?)).ok()
}

/// `:authority` of a request, if it has one.
pub fn authority(request: &Request) -> Option<&str> {
    request.headers().get(name::AUTHORITY)?.to_str().ok()
}

/// A header of a request, if it has it.
///
/// # Errors
/// When the header is invalid: what would be right.
pub fn header<H: SbiHeader>(headers: &Fields) -> Result<Option<H>, Problem> {
    let Some(value) = headers.get(H::NAME) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    H::parse(text).map(Some).map_err(|error| {
        Problem::new(Cause::InvalidMsgFormat)
            .detail("invalid header")
            .invalid_param(format!("header {}", H::NAME), error.to_string())
    })
}

/// Checks headers of one value that a request has more than once: their values must be equal, because components differ
/// in whether they use the first or the last.
///
/// # Errors
/// When the values differ.
pub fn check_repeated(headers: &Fields) -> Result<(), Problem> {
    for (name, _) in Has::SINGLE {
        let mut values = headers.get_all(name);
        let first = values.next();
        if values.any(|value| Some(value.as_bytes()) != first.map(|first| first.as_bytes())) {
            return Err(Problem::new(Cause::InvalidMsgFormat)
                .detail("a header of one value occurs more than once, with different values")
                .invalid_param(format!("header {name}"), "expected one value"));
        }
    }
    Ok(())
}

/// Whether the consumer forbids retries of a request (`3gpp-Sbi-Retry-Info: no-retries`).
pub fn forbids_retries(headers: &Fields) -> bool {
    let value = headers.get(names::RETRY_INFO);
    value.is_some_and(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"no-retries"))
}

/// The hops a request may still make after this SCP (TS 29.500 §6.10.10.2).
///
/// # Errors
/// When no hop is left, or the header is invalid.
pub fn hops(headers: &Fields, usual: u8) -> Result<MaxForwardHops, Problem> {
    match header::<MaxForwardHops>(headers)? {
        None => Ok(MaxForwardHops(usual)),
        Some(MaxForwardHops(0)) => {
            Err(Problem::new(Cause::MaxScpHopsReached)
                .detail("3gpp-Sbi-Max-Forward-Hops allows no further hop"))
        }
        Some(MaxForwardHops(left)) => Ok(MaxForwardHops(left - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_the_second_segment_of_the_path() {
        for (path, version) in [
            ("/nudm-sdm/v2/x", Some(2)),
            ("/nudm-sdm/v2", Some(2)),
            ("/nudm-sdm/v12/v3", Some(12)),
            ("/nudm-sdm/v4294967295", Some(u32::MAX)),
            ("/nudm-sdm/v4294967296", None),
            ("/nudm-sdm/v", None),
            ("/nudm-sdm/2", None),
            ("/nudm-sdm/v+2", None),
            ("/nudm-sdm/v2a", None),
            ("/nudm-sdm", None),
            ("", None),
        ] {
            assert_eq!(version_of(path), version, "{path}");
        }
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

    #[test]
    fn hops_run_out() {
        let mut headers = Fields::new();
        assert_eq!(hops(&headers, 7).unwrap(), MaxForwardHops(7));
        headers.set_printed(names::MAX_FORWARD_HOPS, "3; nodetype=scp");
        assert_eq!(hops(&headers, 7).unwrap(), MaxForwardHops(2));
        headers.set_printed(names::MAX_FORWARD_HOPS, "0; nodetype=scp");
        assert!(hops(&headers, 7).is_err());
        headers.set_printed(names::MAX_FORWARD_HOPS, "x");
        assert!(hops(&headers, 7).is_err());
    }
}
