//! Rules at the four trigger points. A message that no group waits for is not touched.

use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use sbi::problem::{Cause, Problem};
use sbi::{Body, Response};

use super::worker::Worker;
use crate::mediation::{Document, Mediated, Rejection, Steering, TriggerPoint};

/// The request that a message is, or answers.
pub(super) struct About<'a> {
    pub(super) service: &'a str,
    pub(super) method: &'a Method,
    pub(super) uri: &'a Uri,
    /// Of the response, at response points.
    pub(super) status: Option<StatusCode>,
}

impl Worker {
    /// Runs the rules of a point on headers and body; what routing takes over, or the answer that a rule
    /// gives instead.
    pub(super) fn mediate(
        &self,
        point: TriggerPoint,
        about: &About<'_>,
        headers: &mut HeaderMap,
        body: &mut Body,
    ) -> Result<Steering, Box<Response>> {
        let engine = &self.live.engine;
        if !engine.watches(point, about.service) {
            return Ok(Steering::default());
        }
        let mut document = Document::new(body.to_bytes());
        let mut message = Mediated {
            method: about.method,
            path: about.uri.path(),
            query: about.uri.query(),
            status: about.status,
            headers,
            document: &mut document,
        };
        let outcome = engine.run(point, about.service, &mut message);
        if outcome.applied > 0 {
            self.mediated(point.index());
        }
        if let Some(rejection) = outcome.reject {
            return Err(Box::new(self.refuse("mediation", rejected(&rejection))));
        }
        if outcome.body_changed {
            *body = document.into_bytes().into();
            // The length of before is not that of now; HTTP/2 needs none.
            headers.remove(http::header::CONTENT_LENGTH);
        }
        Ok(outcome.steering)
    }
}

fn rejected(rejection: &Rejection) -> Problem {
    let status = StatusCode::from_u16(rejection.status).unwrap_or(StatusCode::FORBIDDEN);
    let problem = match &rejection.cause {
        Some(cause) => Problem::with_cause(status, cause),
        None => Problem::of_status(status),
    };
    match &rejection.detail {
        Some(detail) => problem.detail(detail.clone()),
        None => problem,
    }
}

/// What rules say of where a request is to go, as the headers that say so.
pub(super) fn steer(headers: &mut HeaderMap, steering: &Steering) -> Result<(), Problem> {
    use sbi::headers::{discovery, names};
    let unusable = || Problem::new(Cause::SystemFailure).detail("a mediation rule steers to nowhere");
    let mut binding = String::new();
    if let Some(root) = &steering.api_root {
        headers.insert(
            names::TARGET_API_ROOT,
            HeaderValue::from_str(root).map_err(|_| unusable())?,
        );
    }
    if let Some(id) = &steering.nf_instance_id {
        binding = format!("bl=nf-instance; nfinst={id}");
    }
    if let Some(set) = &steering.nf_set_id {
        binding = match binding.is_empty() {
            true => format!("bl=nf-set; nfset={set}"),
            false => format!("{binding}; nfset={set}"),
        };
    }
    if !binding.is_empty() {
        if steering.api_root.is_none() {
            headers.remove(names::TARGET_API_ROOT);
        }
        headers.insert(
            names::ROUTING_BINDING,
            HeaderValue::from_str(&binding).map_err(|_| unusable())?,
        );
    }
    if let Some(locality) = &steering.locality {
        discovery::set(headers, "preferred-locality", locality);
    }
    Ok(())
}
