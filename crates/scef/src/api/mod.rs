//! One file per resource of T8: parse the request, call, write the answer.

pub(crate) mod configurations;
pub(crate) mod downlinks;
mod features;
mod groups;
pub(crate) mod subscriptions;
pub(crate) mod triggers;

use diameter::proto::known;
use function::records::store_problem;
use http::StatusCode;
use sbi::name::LOCATION;
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response};
use serde_json::{Value, json};
use store::{Index, Record, Table};

use self::features::Features;
use crate::events::Event;
use crate::quotas::Quota;
use crate::s6t;
use crate::worker::Worker;

/// Resources in a list, at most.
const LISTED: usize = 10_000;

/// What an answer to a request of T8 is.
type Answer = Result<Response, Problem>;

/// The body as JSON.
fn body_of(worker: &Worker, request: &Request, media_type: &str) -> Result<Value, Problem> {
    let headers = &request.head.fields;
    sbi::json::expect_type(headers, media_type)?;
    let limit = worker.config().max_body_size.as_usize();
    let body = sbi::coding::decode(headers, request.body.clone(), limit)?;
    if body.len() > limit {
        let detail = format!("a body of more than {limit} bytes (maxBodySize)");
        return Err(Problem::new(Cause::PayloadTooLarge).detail(detail));
    }
    sbi::json::parse_unique(&body)
}

/// Counts one more record of an SCS/AS; where it has as many as `limits` permits, the request is refused with a cause.
async fn count_in<T: Record>(
    worker: &Worker,
    quota: &Quota,
    table: &Table<T>,
    index: Index,
    (scs, most): (&str, usize),
    cause: &str,
) -> Result<(), Problem> {
    let taken = quota.take(table, index, scs, most).await;
    if taken.map_err(store_problem)? {
        return Ok(());
    }
    worker.count(Event::QuotaExceeded);
    let detail = "this SCS/AS has as many of these resources as it may (limits)";
    Err(forbidden(cause, detail))
}

fn not_found(what: &str) -> Problem {
    Problem::new(Cause::ResourceNotFound).detail(format!("this {what} does not exist here"))
}

fn forbidden(cause: &str, detail: impl Into<String>) -> Problem {
    Problem::with_cause(StatusCode::FORBIDDEN, cause).detail(detail)
}

/// Refuses a time that the HSS cannot be asked for.
fn too_late(name: &str) -> Problem {
    let detail = format!(
        "{name} is after {}, the last time that Diameter has",
        s6t::LAST_TIME
    );
    forbidden("PARAMETER_OUT_OF_RANGE", detail)
}

/// 201 with the resource and where it is.
fn created(uri: &str, document: &Value) -> Response {
    let mut response = sbi::json::response(StatusCode::CREATED, document);
    response.headers_mut().set_printed(LOCATION, uri);
    response
}

/// A resource with `self`, which clients do not set.
fn with_self(document: &Value, uri: &str) -> Value {
    let mut shown = document.clone();
    shown["self"] = uri.into();
    shown
}

/// A document as it is stored: without what the SCEF says, and with those of its features that are offered.
fn stored(mut document: Value, read_only: &[&str], offered: Option<&Features>) -> Value {
    if let Some(members) = document.as_object_mut() {
        for name in read_only {
            members.shift_remove(*name);
        }
    }
    if let Some(offered) = offered {
        offered.negotiate(&mut document);
    }
    document
}

/// Sends the notification that an SCS/AS asks for, in order to test whether notifications reach it (TS 29.122 §5.2.5.3). It is about a
/// resource that exists by now, whatever becomes of it.
async fn test_notifications(worker: &Worker, about: String, document: &Value, uri: &str) {
    let notice = worker
        .shared()
        .notice(about, document, json!({"subscription": uri}));
    let repository = worker.repository();
    match repository.insert(&repository.notices, &notice).await {
        Ok(_) => worker.shared().notify(&notice),
        Err(error) => tracing::warn!(%error, "a notification that an SCS/AS has asked for was not stored"),
    }
}

/// What an SCS/AS learns of a refusal by the HSS (TS 29.336 §8.3).
fn refused_by_hss((vendor, code): (u32, u32)) -> Problem {
    tracing::info!(vendor, code, "the HSS has refused a request");
    let detail = format!("the HSS answers {code}");
    match (vendor, code) {
        // DIAMETER_ERROR_USER_UNKNOWN; 5001 of the base protocol is DIAMETER_AVP_UNSUPPORTED.
        (known::VENDOR_3GPP, 5001) => Problem::with_cause(StatusCode::NOT_FOUND, "USER_UNKNOWN")
            .detail("the HSS does not know the device"),
        // …_UNAUTHORIZED_REQUESTING_ENTITY, …_UNAUTHORIZED_SERVICE.
        (_, 5510 | 5511) => forbidden("OPERATION_PROHIBITED", detail),
        // …_REQUESTED_RANGE_IS_NOT_ALLOWED.
        (_, 5512) => forbidden("PARAMETER_OUT_OF_RANGE", detail),
        // A router does not reach the HSS (DIAMETER_UNABLE_TO_DELIVER), or the HSS is busy (DIAMETER_TOO_BUSY).
        (0, 3002 | 3004) => Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).detail(detail),
        _ => Problem::of_status(StatusCode::INTERNAL_SERVER_ERROR).detail(detail),
    }
}
