//! Stored searches of Nnrf_NFDiscovery (TS 29.510 §6.2.3.3, §6.2.3.4).
//!
//! A search id encodes the search: the query and the answer of the location function. So an id is valid at every
//! worker, at the other NRFs of the set and after a restart, and the NRF stores nothing for searches that no consumer
//! retrieves. A retrieval runs the query on the present registry and shows profiles that have changed since.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Method;
use sbi::problem::{Cause, Problem};
use sbi::response::method_not_allowed;
use sbi::{Request, Response};

use crate::discovery::Extent;
use crate::worker::Worker;

/// Longest query that gets an id, in bytes; ids are part of URIs, whose length is bounded.
const QUERY_MAX: usize = 2_048;

/// Returns the id of a search; `None` if the query is too long.
pub(super) fn id_of(query: &str, group: Option<Option<&str>>) -> Option<String> {
    let group = match group {
        None => String::new(),
        Some(None) => "-".to_owned(),
        Some(Some(group)) => format!("+{group}"),
    };
    (query.len() + group.len() <= QUERY_MAX).then(|| URL_SAFE_NO_PAD.encode(format!("{group}\n{query}")))
}

/// `/searches/{searchId}` and `/searches/{searchId}/complete`.
pub(crate) fn search(worker: &Worker, request: &Request, path: &str) -> Response {
    if *request.method() != Method::GET {
        return method_not_allowed(request.method(), "GET");
    }
    let (id, extent) = match path.strip_suffix("/complete") {
        Some(id) => (id, Extent::Complete),
        None => (path, Extent::Stored),
    };
    let not_found = || {
        Problem::new(Cause::ResourceNotFound)
            .detail("unknown search id")
            .into_response()
    };
    let decoded = URL_SAFE_NO_PAD
        .decode(id)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(text) = decoded.filter(|text| text.len() <= QUERY_MAX + 1) else {
        return not_found();
    };
    let Some((group, query)) = text.split_once('\n') else {
        return not_found();
    };
    let group = match group.strip_prefix('+') {
        Some(group) => Some(Some(group)),
        None => (group == "-").then_some(None),
    };
    match super::discovery::stored(worker, query, group, &extent) {
        Ok(answer) => super::discovery::respond(worker, request, &answer),
        Err(_) => not_found(),
    }
}
