//! What a request says of where it is to go (TS 29.500 §6.10).
//!
//! A request names its producer (Model C: `3gpp-Sbi-Target-apiRoot`, or the authority of its URI), or it says
//! what the producer must be able to do (Model D: `3gpp-Sbi-Discovery-*`), or whom the resource is bound to
//! (`3gpp-Sbi-Routing-Binding`); a binding may come with either of the others and then says where to look
//! when the first choice fails.

mod bounds;
mod has;
mod path;

pub(crate) use bounds::{Bounds, Place};
pub use has::Has;
pub use path::{Placed, check_name, normal, placed};

use std::cell::RefCell;
use std::rc::Rc;

use ahash::AHashMap;
use http::HeaderMap;
use http::uri::Uri;
use sbi::Request;
use sbi::headers::{BindingLevel, MaxForwardHops, RoutingBinding, SbiHeader, TargetApiRoot, names};
use sbi::problem::{Cause, Problem};

use crate::discovery::{DiscoveryQuery, QueryFault};
use crate::network::{Network, ServiceRef};

/// Where a request is to go, as it says itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// To this API root.
    Root(TargetApiRoot),
    /// To whoever this discovery finds.
    Discover(Rc<DiscoveryQuery>),
    /// To whoever the binding names.
    Bound,
}

/// Discovery queries by the headers that ask them: consumers ask the same again and again, and putting a query
/// into its canonical form costs more than finding it.
#[derive(Default)]
pub struct Queries {
    known: RefCell<AHashMap<Box<[u8]>, Rc<DiscoveryQuery>>>,
    /// Kept from one use to the next.
    key: RefCell<Vec<u8>>,
    /// Whether the NRF counts that a request names.
    named_nrfs: bool,
}

/// Queries that a worker knows by their headers.
const MOST_QUERIES: usize = 16_384;
/// How the name of every discovery header begins.
const DISCOVERY: &str = "3gpp-sbi-discovery-";

impl Queries {
    /// None known yet; `named_nrfs` says whether the NRF counts that a request names (TS 29.500 §5.2.3.2.12).
    #[must_use]
    pub fn new(named_nrfs: bool) -> Self {
        Self {
            named_nrfs,
            ..Self::default()
        }
    }

    /// The query of these headers, if they ask one.
    ///
    /// # Errors
    /// As [`DiscoveryQuery::from_headers`].
    pub fn of(&self, headers: &HeaderMap) -> Result<Option<Rc<DiscoveryQuery>>, QueryFault> {
        let mut key = self.key.borrow_mut();
        key.clear();
        for (name, value) in headers {
            if let Some(parameter) = name.as_str().strip_prefix(DISCOVERY) {
                key.extend_from_slice(parameter.as_bytes());
                key.push(0);
                key.extend_from_slice(value.as_bytes());
                key.push(0);
            } else if self.named_nrfs && name == names::NRF_URI {
                // No name of a parameter begins so.
                key.push(1);
                key.extend_from_slice(value.as_bytes());
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
        let query = Rc::new(match self.named_nrfs {
            true => query.named(headers)?,
            false => query,
        });
        if known.len() >= MOST_QUERIES {
            known.clear();
        }
        known.insert(key.as_slice().into(), query.clone());
        Ok(Some(query))
    }
}

/// Whether the authority of a URI is one of this SCP's own.
pub(crate) fn is_own(own: &[String], authority: &str) -> bool {
    own.iter().any(|one| one.eq_ignore_ascii_case(authority))
}

/// Reads where a request is to go. `has` are its headers, `own` are the authorities under which this SCP is reached.
///
/// # Errors
/// The problem that tells the consumer what is wrong.
pub fn wish(request: &Request, has: Has, own: &[String], queries: &Queries) -> Result<Wish, Problem> {
    let headers = request.headers();
    if has.has(Has::TARGET_API_ROOT)
        && let Some(root) = header::<TargetApiRoot>(headers)?
    {
        return Ok(Wish::Root(root));
    }
    if has.has(Has::DISCOVERY) {
        let query = queries.of(headers).map_err(|fault| {
            Problem::new(Cause::InvalidDiscoveryParam)
                .detail("a discovery parameter cannot be read")
                .invalid_param(format!("header {}", fault.header), fault.expected)
        })?;
        if let Some(query) = query {
            return Ok(Wish::Discover(query));
        }
    }
    if let Some(root) = of_authority(request.uri()).filter(|root| !is_own(own, root.origin.authority())) {
        return Ok(Wish::Root(root));
    }
    if has.has(Has::ROUTING_BINDING) {
        return Ok(Wish::Bound);
    }
    Err(Problem::new(Cause::MandatoryIeMissing)
        .detail("the request does not say where it is to go")
        .invalid_param(
            "header 3gpp-Sbi-Target-apiRoot",
            "expected this header, 3gpp-Sbi-Discovery-* headers, 3gpp-Sbi-Routing-Binding, or the producer's authority",
        ))
}

pub(crate) fn of_authority(uri: &Uri) -> Option<TargetApiRoot> {
    let scheme = uri.scheme_str().unwrap_or("http");
    TargetApiRoot::parse(&format!("{scheme}://{}", uri.authority()?)).ok()
}

/// A header of a request, if it has it.
///
/// # Errors
/// When it cannot be read: what would be right.
pub fn header<H: SbiHeader>(headers: &HeaderMap) -> Result<Option<H>, Problem> {
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

/// The API name of a path: its first segment.
#[must_use]
pub fn service_of(path: &str) -> &str {
    let path = path.trim_start_matches('/');
    // Asked for several times a message: names are short, and a loop over bytes is all it takes.
    match path.bytes().position(|byte| byte == b'/') {
        Some(end) => &path[..end],
        None => path,
    }
}

/// Those a binding names, the narrowest first (TS 29.500 §6.12.2).
#[must_use]
pub fn bound(binding: &RoutingBinding, service: &str, network: &Network) -> Vec<ServiceRef> {
    let mut found: Vec<ServiceRef> = Vec::new();
    let mut add = |candidate: ServiceRef| {
        if !found.iter().any(|known| known.is(&candidate)) {
            found.push(candidate);
        }
    };
    let instance = binding.nf_instance().map(str::to_ascii_lowercase);
    if let Some(instance) = &instance {
        let wanted = binding.service_instance();
        network
            .of_producer(instance, service)
            .filter(|one| wanted.is_none_or(|wanted| &*one.service().instance == wanted))
            .for_each(&mut add);
    }
    if let Some(set) = binding.service_set() {
        let members = network.in_service_set(set).iter();
        members
            .filter(|one| &*one.service().name == service)
            .cloned()
            .for_each(&mut add);
    }
    if let Some(set) = binding.nf_set() {
        network.in_set(set, service).cloned().for_each(&mut add);
    }
    // An instance that is not named with its set stands for the sets it is in.
    if let Some(instance) = &instance {
        let named: Vec<ServiceRef> = network.of_producer(instance, service).collect();
        named
            .iter()
            .flat_map(|one| network.alternates(one))
            .for_each(&mut add);
    }
    found
}

/// How many of those a binding names it prefers to the rest: the instance itself, or the whole set.
#[must_use]
pub fn preferred(binding: &RoutingBinding) -> Option<String> {
    match binding.level {
        BindingLevel::NfInstance | BindingLevel::ServiceInstance => {
            binding.nf_instance().map(str::to_ascii_lowercase)
        }
        BindingLevel::NfSet | BindingLevel::ServiceSet => None,
    }
}

/// The hops a request may still make after this SCP (TS 29.500 §6.10.10.2).
///
/// # Errors
/// When it may make none, or the header cannot be read.
pub fn hops(headers: &HeaderMap, usual: u8) -> Result<MaxForwardHops, Problem> {
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
    use crate::network::Producer;
    use serde_json::json;
    use std::sync::Arc;

    fn smf(id: &str, set: &str, port: u16) -> Arc<Producer> {
        let profile = json!({
            "nfInstanceId": id, "nfType": "SMF", "nfStatus": "REGISTERED", "nfSetIdList": [set],
            "ipv4Addresses": ["127.0.0.1"],
            "nfServices": [{"serviceInstanceId": "s", "serviceName": "nsmf-pdusession", "scheme": "http",
                "nfServiceStatus": "REGISTERED", "versions": [], "ipEndPoints": [{"port": port}]}]
        });
        Arc::new(Producer::from_value(&profile).unwrap())
    }

    #[test]
    fn a_binding_names_the_instance_then_its_set() {
        let network = Network::new([smf("b", "s1", 2), smf("a", "s1", 1), smf("c", "s2", 3)]);
        let ids = |text: &str| -> Vec<String> {
            let binding = RoutingBinding::parse(text).unwrap();
            let found = bound(&binding, "nsmf-pdusession", &network);
            found.iter().map(|one| one.producer.id.to_string()).collect()
        };
        assert_eq!(ids("bl=nf-instance; nfinst=B; nfset=s1"), ["b", "a"]);
        assert_eq!(ids("bl=nf-instance; nfinst=b"), ["b", "a"]);
        assert_eq!(ids("bl=nf-set; nfset=s2"), ["c"]);
        assert_eq!(ids("bl=nf-instance; nfinst=z"), Vec::<String>::new());
    }

    #[test]
    fn hops_run_out() {
        let mut headers = HeaderMap::new();
        assert_eq!(hops(&headers, 7).unwrap(), MaxForwardHops(7));
        headers.insert(names::MAX_FORWARD_HOPS, "3; nodetype=scp".parse().unwrap());
        assert_eq!(hops(&headers, 7).unwrap(), MaxForwardHops(2));
        headers.insert(names::MAX_FORWARD_HOPS, "0; nodetype=scp".parse().unwrap());
        assert!(hops(&headers, 7).is_err());
        headers.insert(names::MAX_FORWARD_HOPS, "x".parse().unwrap());
        assert!(hops(&headers, 7).is_err());
    }
}
