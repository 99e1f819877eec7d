//! Growth (N006): the NRF sets of a network know each other's state, so that each answers for the NFs of all.
//!
//! Each set polls the others for their registered profiles, with the entity tag of the last state: an unchanged state
//! costs one small exchange. The profiles are part of the registry here as long as the other set has them; they are not
//! written to the store, not audited, and only the set where they are registered changes them. While no NRF of a set
//! answers, its last known profiles stay.
//!
//! The interface is proprietary, as all sets run Signalbox: `GET /signalbox-growth/v2/profiles?after=ID`
//! answers `{"nfInstances": […], "next": ID}`, in pages by rising id, `next` absent on the last one. A profile that is
//! registered all the time is in one of the pages, whatever changes between them; a change meanwhile makes another
//! state, which the next poll retrieves.

mod client;
mod standing;

use std::sync::Arc;

use http::StatusCode;
use sbi::name::{ETAG, IF_NONE_MATCH};
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response};

use model::NfInstanceId;
use registry::{Entry, Snapshot};

pub(crate) use client::{Retrieved, SET_NOT_RETRIEVED, follow};
pub(crate) use standing::Standing;

/// The path of the interface.
pub(crate) const PROFILES: &str = "/signalbox-growth/v2/profiles";

/// Bytes of profiles after which a page ends.
const PAGE: usize = 256 * 1024;

/// Answers another set: the profiles that are registered with this one.
pub(crate) fn answer(snapshot: &Snapshot, request: &Request) -> Result<Response, Problem> {
    let pairs = sbi::query::pairs(request.query()).unwrap_or_default();
    let after = pairs
        .into_iter()
        .find(|(name, _)| name == "after")
        .map(|(_, value)| NfInstanceId::parse(&value));
    let bad = |expected| Problem::new(Cause::InvalidQueryParam).invalid_param("query after", expected);
    let after = after.transpose().map_err(bad)?;
    let tag = format!("\"{:x}\"", state_of(snapshot));
    let mut response = match request.headers().get(IF_NONE_MATCH) {
        Some(known) if known.as_bytes() == tag.as_bytes() => Response::new(StatusCode::NOT_MODIFIED),
        _ => sbi::json::response_of(StatusCode::OK, page(snapshot, after)),
    };
    response.headers_mut().set_printed(ETAG, tag);
    Ok(response)
}

/// Fingerprint of the profiles of this set, independent of those of other sets.
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
