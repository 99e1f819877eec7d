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
mod networks;
mod own_names;
mod placed;
mod queries;

pub use crate::path::{check_name, nf_type_of_service, normal, service_of, version_of};
pub use binding::{Preference, bound};
pub use bounds::{Bounds, Place, Reach};
pub use exclusions::Exclusions;
pub use has::Has;
pub use networks::OwnNetworks;
pub use own_names::OwnNames;
pub use placed::{Placed, placed};
pub use queries::{Delegated, Queries, nf_type_of};

use std::rc::Rc;

use sbi_proto::headers::{MaxForwardHops, SbiHeader, TargetApiRoot, names};
use sbi_proto::problem::{Cause, Problem};
use sbi_proto::{Fields, Request, name};

use crate::query::QueryFault;

/// The destination that a request names.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// This API root.
    Root(TargetApiRoot),
    /// A producer that this discovery finds.
    Discover(Rc<Delegated>),
    /// A producer that the binding names.
    Bound,
    /// An NRF that this SCP knows: the service is an API of NRFs.
    Nrf,
}

/// Whether this is an API of NRFs (TS 29.510 §6).
fn is_of_nrf(service: &str) -> bool {
    service.starts_with("nnrf-")
}

/// The problem details of an invalid discovery parameter.
pub fn unreadable(fault: QueryFault) -> Problem {
    Problem::new(Cause::InvalidDiscoveryParam)
        .detail("invalid discovery parameter")
        .invalid_param(format!("header {}", fault.header), fault.expected)
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
        let query = queries.of(headers, has, consumer).map_err(unreadable)?;
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
