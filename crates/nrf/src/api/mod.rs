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
