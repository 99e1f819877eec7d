//! Growth (N006): the NRF sets of a network know each other's state, so that each answers for the NFs of all.
//!
//! Each set asks the others again and again for what is registered with them, with the entity tag of the last
//! state it has seen: an unchanged state costs one small exchange. What comes is part of the registry here as
//! long as the other set has it; it is not written to the disk, not watched by the auditor, and changed by
//! the set it is registered with only. While no NRF of a set answers, what is known of the set stays.
//!
//! The interface is this project's own, as sets are of one make: `GET /signalbox-growth/v2/profiles?after=ID`
//! answers `{"nfInstances": […], "next": ID}`, in pages by rising id, `next` absent on the last one. A profile that is
//! registered all the time is in one of the pages, whatever changes between them; what changes meanwhile makes another
//! state, which comes with the next retrieval.

mod client;
mod standing;

use std::sync::Arc;

use http::{Method, StatusCode};
use sbi::name::{ETAG, IF_NONE_MATCH};
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response};

use model::NfInstanceId;
use registry::{Entry, Snapshot};

pub(crate) use client::{Retrieved, follow};
pub(crate) use standing::Standing;

/// Name of the interface in paths.
pub(crate) const API: &str = "signalbox-growth";
/// Version of the interface in paths.
pub(crate) const VERSION: &str = "v2";

/// Bytes of profiles after which a page ends.
const PAGE: usize = 256 * 1024;

/// Answers another set: the profiles that are registered with this one.
pub(crate) fn answer(snapshot: &Snapshot, request: &Request) -> Response {
    if *request.method() != Method::GET {
        return sbi::response::method_not_allowed(request.method(), "GET");
    }
    let pairs = sbi::query::pairs(request.query()).unwrap_or_default();
    let after = pairs
        .into_iter()
        .find(|(name, _)| name == "after")
        .map(|(_, value)| NfInstanceId::parse(&value));
    let after = match after.transpose() {
        Ok(after) => after,
        Err(expected) => {
            return Problem::new(Cause::InvalidQueryParam)
                .invalid_param("query after", expected)
                .into_response();
        }
    };
    let tag = format!("\"{:x}\"", state_of(snapshot));
    let mut response = match request.headers().get(IF_NONE_MATCH) {
        Some(known) if known.as_bytes() == tag.as_bytes() => Response::new(StatusCode::NOT_MODIFIED),
        _ => sbi::json::response_of(StatusCode::OK, page(snapshot, after)),
    };
    response.headers_mut().set_printed(ETAG, tag);
    response
}

/// The same for the same profiles of this set, whatever other sets have told.
fn state_of(snapshot: &Snapshot) -> u64 {
    let ours = snapshot.iter().filter(|entry| entry.is_ours());
    ours.fold(0, |state, entry| {
        let one = registry::fingerprint(&[entry.id.0.as_bytes(), &entry.fingerprint().to_le_bytes()]);
        state ^ one
    })
}

fn page(snapshot: &Snapshot, after: Option<NfInstanceId>) -> Vec<u8> {
    let rest = snapshot.iter().filter(|entry| entry.is_ours());
    let mut rest: Vec<&Arc<Entry>> = rest
        .filter(|entry| after.is_none_or(|after| entry.id > after))
        .collect();
    rest.sort_unstable_by_key(|entry| entry.id);
    let mut page = b"{\"nfInstances\":[".to_vec();
    let mut next = None;
    for (number, entry) in rest.iter().enumerate() {
        if number > 0 {
            page.push(b',');
        }
        page.extend_from_slice(&entry.document());
        if page.len() >= PAGE && number + 1 < rest.len() {
            next = Some(entry.id);
            break;
        }
    }
    page.push(b']');
    if let Some(next) = next {
        page.extend_from_slice(format!(",\"next\":\"{next}\"").as_bytes());
    }
    page.push(b'}');
    page
}
