//! What a request says of where it is to go (TS 29.500 §6.10).
//!
//! A request names its producer (Model C: `3gpp-Sbi-Target-apiRoot`, or the authority of its URI), or it says
//! what the producer must be able to do (Model D: `3gpp-Sbi-Discovery-*`), or whom the resource is bound to
//! (`3gpp-Sbi-Routing-Binding`); a binding may come with either of the others and then says where to look
//! when the first choice fails.

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

/// Where a request is to go, as it says itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// To this API root.
    Root(TargetApiRoot),
    /// To whoever this discovery finds.
    Discover(Rc<DiscoveryQuery>),
    /// To whoever the binding names.
    Bound,
    /// To an NRF that this SCP knows: the service is one of NRFs.
    Nrf,
}

/// The major version of the API that a path names: `/{apiName}/v{major}/…` (TS 29.501 §4.3.1).
pub fn version_of(path: &str) -> Option<u32> {
    let mut segments = path.as_bytes().split(|byte| *byte == b'/');
    major(std::str::from_utf8(segments.nth(2)?).ok()?)
}

/// The number in `apiVersionInUri`: `v2`.
pub fn major(version: &str) -> Option<u32> {
    let digits = version.strip_prefix('v')?;
    digits
        .bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| digits.parse().ok())?
}

/// Whether this is an API of NRFs (TS 29.510 §6).
fn is_of_nrf(service: &str) -> bool {
    service.starts_with("nnrf-")
}

/// Whether a discovery asks for NRFs, which no NRF need know and settings name.
pub fn asks_for_nrfs(query: &DiscoveryQuery, service: &str) -> bool {
    match query.get("target-nf-type") {
        Some(nf_type) => nf_type == "NRF",
        None => is_of_nrf(service),
    }
}

/// The problem of a discovery parameter that cannot be read.
pub fn unreadable(fault: QueryFault) -> Problem {
    Problem::new(Cause::InvalidDiscoveryParam)
        .detail("a discovery parameter cannot be read")
        .invalid_param(format!("header {}", fault.header), fault.expected)
}

/// Discovery queries by the headers that ask them: consumers ask the same again and again, and putting a query
/// into its canonical form costs more than finding it.
pub struct Queries {
    known: RefCell<Cache<Box<[u8]>, Rc<DiscoveryQuery>>>,
    /// Kept from one use to the next.
    key: RefCell<Vec<u8>>,
    /// Whether the NRF counts that a request names.
    named_nrfs: bool,
    /// Whether the NF type in `User-Agent` stands in for an absent `requester-nf-type`.
    by_agent: bool,
}

/// Queries that a worker knows by their headers.
const MOST_QUERIES: usize = 16_384;
/// Memory of an entry beside its texts.
const ENTRY: usize = 256;

/// As headers come from anyone, and are long as they like, their number alone is no bound.
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
    /// None known yet. `named_nrfs`: the NRF counts that a request names (TS 29.500 §5.2.3.2.12). `by_agent`: a query
    /// without `requester-nf-type` gets the NF type that `User-Agent` names, which is mandatory in requests that
    /// delegate the discovery (TS 29.500 table 5.2.2.2-1) and without which no NRF answers. `memory`: what may be
    /// remembered, in bytes.
    #[must_use]
    pub fn new(named_nrfs: bool, by_agent: bool, memory: usize) -> Self {
        Self {
            known: RefCell::new(Cache::new(limits(memory))),
            key: RefCell::default(),
            named_nrfs,
            by_agent,
        }
    }

    /// The query of these headers, if they ask one. `consumer` is the consumer's NF type, where it is known already.
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
            // No name of a parameter begins so.
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
                // No name of a parameter begins so.
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

    /// Remembers no more than this from now on, in bytes.
    pub fn set_memory(&self, memory: usize) {
        self.known.borrow_mut().set_limits(limits(memory));
    }

    /// Memory of the queries that are remembered.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.known.borrow().bytes()
    }
}

/// Reads where a request is to go. `has` are its headers, `own` are the authorities under which this SCP is reached,
/// `consumer` is the NF type of the consumer.
///
/// # Errors
/// The problem that tells the consumer what is wrong.
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
        .detail("the request does not say where it is to go")
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
/// When it cannot be read: what would be right.
pub fn header<H: SbiHeader>(headers: &Fields) -> Result<Option<H>, Problem> {
    let Some(value) = headers.get(H::NAME) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    H::parse(text).map(Some).map_err(|error| {
        Problem::new(Cause::InvalidMsgFormat)
            .detail("a header cannot be read")
            .invalid_param(format!("header {}", H::NAME), error.to_string())
    })
}

/// Checks headers of which a request has one value and that stand there more than once: they must agree, as one who looks
/// at the first and one who looks at the last would take the request for different ones.
///
/// # Errors
/// When they contradict each other.
pub fn check_repeated(headers: &Fields) -> Result<(), Problem> {
    for (name, _) in Has::SINGLE {
        let mut values = headers.get_all(name);
        let first = values.next();
        if values.any(|value| Some(value.as_bytes()) != first.map(|first| first.as_bytes())) {
            return Err(Problem::new(Cause::InvalidMsgFormat)
                .detail("a header stands there more than once, with different values")
                .invalid_param(format!("header {name}"), "expected one value"));
        }
    }
    Ok(())
}

/// Whether a request must not be sent again (`3gpp-Sbi-Retry-Info: no-retries`).
pub fn forbids_retries(headers: &Fields) -> bool {
    let value = headers.get(names::RETRY_INFO);
    value.is_some_and(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"no-retries"))
}

/// The hops a request may still make after this SCP (TS 29.500 §6.10.10.2).
///
/// # Errors
/// When it may make none, or the header cannot be read.
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
