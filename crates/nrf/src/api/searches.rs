//! Stored searches of Nnrf_NFDiscovery (TS 29.510 §6.2.3.3, §6.2.3.4).
//!
//! A search id encodes the search: the query and the answer of the location function. So an id is valid at every
//! worker, at the other NRFs of the set and after a restart, and the NRF stores nothing for searches that no consumer
//! retrieves. A retrieval runs the query on the present registry and shows profiles that have changed since.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use function::sbi::Call;
use sbi::Response;
use sbi::problem::{Cause, Problem};

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

/// `/searches/{searchId}`.
pub(crate) fn stored(call: &Call<Worker>) -> Result<Response, Problem> {
    search(call, &Extent::Stored)
}

/// `/searches/{searchId}/complete`.
pub(crate) fn complete(call: &Call<Worker>) -> Result<Response, Problem> {
    search(call, &Extent::Complete)
}

fn search(call: &Call<Worker>, extent: &Extent) -> Result<Response, Problem> {
    let [id, ..] = &call.parameters;
    let not_found = || Err(Problem::new(Cause::ResourceNotFound).detail("unknown search id"));
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
    match super::discovery::stored(&call.worker, query, group, extent) {
        Ok(answer) => Ok(super::discovery::respond(&call.worker, &call.request, &answer)),
        Err(_) => not_found(),
    }
}
