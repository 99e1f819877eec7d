//! Step 5, and around each attempt, the mediator: the operator's rules at the four trigger points. A message
//! without a matching group is not touched.

use std::sync::Arc;

use http::{Method, StatusCode};
use routing::target::Has;
use sbi::name::CONTENT_LENGTH;
use sbi::problem::{Cause, Problem};
use sbi::{Body, Fields, Outbound, Response, Value};
use telemetry::metrics::Counter;

use super::message::{Address, Admitted, Outgoing, Step};
use crate::mediation::{Document, Engine, Mediated, Rejection, Steering, TriggerPoint};
use crate::refusal::Refusal;

/// The rules of the operator.
pub(super) struct Mediator {
    engine: Arc<Engine>,
    /// Messages that a rule was applied to, by trigger point.
    mediated: [Counter; 4],
}

/// The request that a message is, or answers.
pub(super) struct About<'a> {
    pub(super) service: &'a str,
    pub(super) method: &'a Method,
    /// Path and query.
    pub(super) target: &'a str,
    /// Of the response, at response points.
    pub(super) status: Option<StatusCode>,
}

impl Mediator {
    pub(super) fn new(engine: Arc<Engine>, mediated: [Counter; 4]) -> Self {
        Self { engine, mediated }
    }

    /// Applies the rules for a request as it came.
    pub(super) fn request(&self, admitted: &mut Admitted<'_>) -> Step<()> {
        if !self.engine.watches_any(TriggerPoint::RequestIngress) {
            return Ok(());
        }
        let arrived = &mut *admitted.arrived;
        let (request, address) = (&mut arrived.request, &arrived.address);
        if !self
            .engine
            .watches(TriggerPoint::RequestIngress, address.service())
        {
            return Ok(());
        }
        let method = request.method().clone();
        let about = About {
            service: address.service(),
            method: &method,
            target: address.target(),
            status: None,
        };
        let (headers, body) = (&mut request.head.fields, &mut request.body);
        let steering = self.apply(TriggerPoint::RequestIngress, &about, headers, body)?;
        if let Some(priority) = steering.priority {
            admitted.priority = priority.min(31);
        }
        steer(headers, &steering).map_err(|problem| Refusal::Mediation.with(problem))?;
        arrived.has = Has::among(headers);
        if arrived.request.target() != arrived.address.target() {
            arrived.address = Address::of(arrived.request.target());
        }
        Ok(())
    }

    /// Applies the rules for a request that goes to a producer of `service`.
    pub(super) fn egress(&self, service: &str, request: &mut Outbound) -> Step<()> {
        if !self.engine.watches(TriggerPoint::RequestEgress, service) {
            return Ok(());
        }
        let (method, target) = (request.method().clone(), request.target().to_owned());
        let about = About {
            service,
            method: &method,
            target: &target,
            status: None,
        };
        let (headers, body) = (&mut request.head.fields, &mut request.body);
        self.apply(TriggerPoint::RequestEgress, &about, headers, body)?;
        Ok(())
    }

    /// Applies the rules for a response, as it came and as it leaves.
    pub(super) fn response(&self, asked: &Outgoing, response: &mut Response) -> Step<()> {
        let service = asked.address.service();
        let points = [TriggerPoint::ResponseIngress, TriggerPoint::ResponseEgress];
        if !points.iter().any(|point| self.engine.watches(*point, service)) {
            return Ok(());
        }
        for point in points {
            let about = About {
                service,
                method: &asked.method,
                target: asked.address.target(),
                status: Some(response.status()),
            };
            self.apply(point, &about, &mut response.head.fields, &mut response.body)?;
        }
        Ok(())
    }

    /// Applies the rules of a point to headers and body; returns the steering of the route.
    fn apply(
        &self,
        point: TriggerPoint,
        about: &About<'_>,
        headers: &mut Fields,
        body: &mut Body,
    ) -> Step<Steering> {
        if !self.engine.watches(point, about.service) {
            return Ok(Steering::default());
        }
        let mut document = Document::new(body.to_bytes());
        let (path, query) = match about.target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (about.target, None),
        };
        let mut message = Mediated {
            method: about.method,
            path,
            query,
            status: about.status,
            headers,
            document: &mut document,
        };
        let outcome = self.engine.run(point, about.service, &mut message);
        if outcome.applied > 0 {
            self.mediated[point.index()].inc();
        }
        if let Some(rejection) = outcome.reject {
            return Err(Refusal::Mediation.with(rejected(&rejection)));
        }
        if outcome.body_changed {
            *body = document.into_bytes().into();
            // The old length is invalid; HTTP/2 needs none.
            headers.remove(CONTENT_LENGTH);
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

/// Writes the steering of rules into the headers that the planner reads.
fn steer(headers: &mut Fields, steering: &Steering) -> Result<(), Problem> {
    use sbi::headers::{discovery, names};
    let unusable =
        || Problem::new(Cause::SystemFailure).detail("a mediation rule steers to an invalid target");
    let mut binding = String::new();
    if let Some(root) = &steering.api_root {
        let root = Value::try_from(&**root).map_err(|_| unusable())?;
        headers.set(names::TARGET_API_ROOT, root);
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
        let binding = Value::try_from(&*binding).map_err(|_| unusable())?;
        headers.set(names::ROUTING_BINDING, binding);
    }
    if let Some(locality) = &steering.locality {
        discovery::set(headers, "preferred-locality", locality);
    }
    Ok(())
}
