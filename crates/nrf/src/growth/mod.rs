//! Growth (N006): the NRF sets of a network know each other's state, so that each answers for the NFs of all.
//!
//! Each set asks the others again and again for what is registered with them, with the entity tag of the last
//! state it has seen: an unchanged state costs one small exchange. What comes is part of the registry here as
//! long as the other set has it; it is not written to the disk, not watched by the auditor, and changed by
//! the set it is registered with only. While no NRF of a set answers, what is known of the set stays.
//!
//! The interface is this project's own, as sets are of one make: `GET /signalbox-growth/v1/profiles?from=N`
//! answers `{"nfInstances": […], "next": N}`, in pages, `next` absent on the last one.

mod client;

use http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderValue, Method, StatusCode};
use sbi::problem::{Cause, Problem};
use sbi::{Body, Request, Response};

use crate::registry::Snapshot;

pub(crate) use client::{Retrieved, follow};

/// Name of the interface in paths.
pub(crate) const API: &str = "signalbox-growth";

/// Bytes of profiles after which a page ends.
const PAGE: usize = 256 * 1024;

/// Answers another set: the profiles that are registered with this one.
pub(crate) fn answer(snapshot: &Snapshot, request: &Request) -> Response {
    if *request.method() != Method::GET {
        return crate::api::method_not_allowed(request.method(), "GET");
    }
    let pairs = sbi::query::pairs(request.uri()).unwrap_or_default();
    let from = pairs
        .into_iter()
        .find(|(name, _)| name == "from")
        .map_or(Ok(0), |(_, value)| value.parse::<usize>());
    let Ok(from) = from else {
        return Problem::new(Cause::InvalidQueryParam)
            .invalid_param("query from", "expected the number of a profile")
            .into_response();
    };
    let tag = format!("\"{:x}-{from}\"", state_of(snapshot));
    let mut response = match request.headers().get(IF_NONE_MATCH) {
        Some(known) if known.as_bytes() == tag.as_bytes() => {
            let mut response = Response::default();
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        }
        _ => {
            let mut response = Response::new(Body::from(page(snapshot, from)));
            response
                .headers_mut()
                .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response
        }
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// The same for the same profiles of this set, whatever other sets have told.
fn state_of(snapshot: &Snapshot) -> u64 {
    let ours = snapshot.iter().filter(|entry| entry.is_ours());
    ours.fold(0, |state, entry| {
        let one = crate::registry::fingerprint(&[entry.id.0.as_bytes(), &entry.fingerprint().to_le_bytes()]);
        state ^ one
    })
}

fn page(snapshot: &Snapshot, from: usize) -> Vec<u8> {
    let mut page = b"{\"nfInstances\":[".to_vec();
    let mut ours = snapshot
        .iter()
        .filter(|entry| entry.is_ours())
        .enumerate()
        .skip(from);
    for (number, entry) in ours.by_ref() {
        if number > from {
            page.push(b',');
        }
        page.extend_from_slice(&entry.document());
        if page.len() >= PAGE {
            break;
        }
    }
    page.push(b']');
    if let Some((next, _)) = ours.next() {
        page.extend_from_slice(format!(",\"next\":{next}").as_bytes());
    }
    page.push(b'}');
    page
}
