//! One file per 3GPP service: parse the request, call the domain, write the answer.

pub(crate) mod access_token;
pub(crate) mod bootstrapping;
pub(crate) mod discovery;
pub(crate) mod management;
pub(crate) mod searches;
pub(crate) mod subscriptions;

use bytes::Bytes;
use sbi::problem::{Cause, Problem};
use sbi::{Body, Fields};

use crate::events::Event;
use crate::worker::Worker;

/// Checks that a body is said to be a JSON Patch; at the operator's wish also one that is said to be JSON, as some NFs
/// send their heart-beats. Its parser refuses any other value than a list of operations.
pub(crate) fn expect_patch(worker: &Worker, headers: &Fields) -> Result<(), Problem> {
    let patch_as_json = worker.config().tolerance.patch_as_json;
    match patch_as_json && sbi::json::is_type(headers, "application/json") {
        true => Ok(()),
        false => sbi::json::expect_type(headers, sbi::json::JSON_PATCH),
    }
}

/// The body of a write as it was before its content coding, of `limit` bytes at most.
pub(crate) fn body_of(worker: &Worker, headers: &Fields, body: Body, limit: usize) -> Result<Bytes, Problem> {
    let decoded = sbi::coding::decode(headers, body, limit).and_then(|body| {
        if body.len() <= limit {
            return Ok(body.into_bytes());
        }
        Err(Problem::new(Cause::PayloadTooLarge).detail(format!("a body of more than {limit} bytes")))
    });
    decoded.inspect_err(|problem| {
        if problem.status() == Cause::PayloadTooLarge.status() {
            worker.counters().count(Event::TooLarge);
        }
    })
}
