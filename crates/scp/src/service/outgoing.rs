//! Messages as they leave: what is taken from them, what is added (TS 29.500 §6.10.2, §6.10.4).

use http::header::{CONTENT_LENGTH, LOCATION, VIA};
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, HeaderValue, Method};
use sbi::client::Origin;
use sbi::headers::{MaxForwardHops, SbiHeader, discovery, names};
use sbi::problem::{Cause, Problem};
use sbi::{Body, Request, Response};
use telemetry::trace;

use super::admission::Admitted;
use super::mediate::{About, steer};
use super::patience::Patience;
use super::route::Target;
use super::worker::Worker;
use crate::mediation::TriggerPoint;
use crate::target::{self, Has};

/// A request as it goes on, the same at every attempt but for where it goes.
pub(super) struct Outgoing {
    pub(super) method: Method,
    pub(super) path: PathAndQuery,
    pub(super) headers: HeaderMap,
    body: Body,
    hops: MaxForwardHops,
    /// How long the consumer waits.
    pub(super) patience: Patience,
    /// Whether its token is one that this SCP has fetched.
    pub(super) authorized: bool,
    /// Whether any segment of its path, or of the prefix it names, may be the API name.
    pub(super) unsure: bool,
    /// What it came with: discovery parameters, the NRF to use and hops are for another SCP, not for a producer.
    pub(super) has: Has,
}

impl Outgoing {
    pub(super) fn new(
        request: Request,
        has: Has,
        hops: MaxForwardHops,
        patience: Patience,
        via: &HeaderValue,
        span: Option<&trace::Span>,
    ) -> Result<Self, Problem> {
        let http::request::Parts {
            method,
            uri,
            mut headers,
            ..
        } = request.head;
        let path = uri
            .path_and_query()
            .cloned()
            .ok_or_else(|| Problem::new(Cause::InvalidMsgFormat).detail("the request has no path"))?;
        if has.has(Has::TARGET_API_ROOT) {
            headers.remove(names::TARGET_API_ROOT);
        }
        headers.append(VIA, via.clone());
        if let Some(context) = span.and_then(trace::Span::context)
            && let Ok(value) = HeaderValue::from_str(&context.to_string())
        {
            headers.insert(trace::TRACEPARENT, value);
        }
        Ok(Self {
            method,
            path,
            headers,
            body: request.body,
            hops,
            patience,
            authorized: false,
            unsure: false,
            has,
        })
    }

    /// The API name.
    pub(super) fn service(&self) -> &str {
        target::service_of(self.path.path())
    }

    /// The request for a target, and where it goes. `before` is how many have been tried; of the `last`
    /// attempt nothing is kept.
    pub(super) fn request(
        &mut self,
        target: &Target,
        before: usize,
        last: bool,
        worker: &Worker,
    ) -> Result<(Origin, http::Request<Body>), Box<Response>> {
        let mut headers = match last {
            true => std::mem::take(&mut self.headers),
            false => self.headers.clone(),
        };
        self.patience.pass_on(&mut headers);
        let hop = target.hop(before);
        let (origin, path) = match hop {
            Some(hop) => {
                if let Some(root) = target.root.to_value() {
                    headers.insert(names::TARGET_API_ROOT, root);
                }
                if let Some(left) = self.hops.to_value() {
                    headers.insert(names::MAX_FORWARD_HOPS, left);
                }
                (hop.origin.clone(), prefixed(&hop.prefix, &self.path))
            }
            None => {
                if self.has.has(Has::MAX_FORWARD_HOPS) {
                    headers.remove(names::MAX_FORWARD_HOPS);
                }
                if self.has.has(Has::DISCOVERY) {
                    discovery::remove(&mut headers);
                }
                // Which NRF to use was said to SCPs, and this is the last one.
                if self.has.has(Has::NRF_URI) {
                    headers.remove(names::NRF_URI);
                }
                (
                    target.root.origin.clone(),
                    prefixed(&target.root.prefix, &self.path),
                )
            }
        };
        let mut body = self.body.clone();
        let uri = Uri::from(path);
        let about = About {
            service: target::service_of(self.path.path()),
            method: &self.method,
            uri: &uri,
            status: None,
        };
        worker.mediate(TriggerPoint::RequestEgress, &about, &mut headers, &mut body)?;
        let mut request = http::Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Ok((origin, request))
    }
}

/// A path behind the prefix of an API root.
fn prefixed(prefix: &str, path: &PathAndQuery) -> PathAndQuery {
    if prefix.is_empty() {
        return path.clone();
    }
    // Both are made of characters that paths may have.
    format!("{prefix}{path}").parse().unwrap_or_else(|_| path.clone())
}

impl Worker {
    /// Rules for a request as it came.
    pub(super) fn mediate_request(&self, admitted: &mut Admitted) -> Result<(), Box<Response>> {
        let service = target::service_of(admitted.request.uri().path());
        if !self.live.engine.watches(TriggerPoint::RequestIngress, service) {
            return Ok(());
        }
        let request = &mut admitted.request;
        let (method, uri) = (request.head.method.clone(), request.head.uri.clone());
        let about = About {
            service: target::service_of(uri.path()),
            method: &method,
            uri: &uri,
            status: None,
        };
        let steering = self.mediate(
            TriggerPoint::RequestIngress,
            &about,
            &mut request.head.headers,
            &mut request.body,
        )?;
        if let Some(priority) = steering.priority {
            admitted.priority = priority.min(31);
        }
        steer(&mut request.head.headers, &steering)
            .map_err(|problem| Box::new(self.refuse("mediation", problem)))?;
        admitted.has = Has::among(admitted.request.headers());
        Ok(())
    }

    /// Rules for a response as it came and as it goes.
    pub(super) fn mediate_response(
        &self,
        asked: &Outgoing,
        response: &mut Response,
    ) -> Result<(), Box<Response>> {
        let service = target::service_of(asked.path.path());
        let engine = &self.live.engine;
        let points = [TriggerPoint::ResponseIngress, TriggerPoint::ResponseEgress];
        if !points.iter().any(|point| engine.watches(*point, service)) {
            return Ok(());
        }
        let uri = Uri::from(asked.path.clone());
        for point in points {
            let about = About {
                service,
                method: &asked.method,
                uri: &uri,
                status: Some(response.status()),
            };
            let mut body = std::mem::take(response.body_mut());
            let outcome = self.mediate(point, &about, response.headers_mut(), &mut body);
            *response.body_mut() = body;
            outcome?;
        }
        Ok(())
    }

    /// What the consumer is told beside the answer: that this SCP was on the way, and who answered if it was
    /// not whom the consumer named (TS 29.500 §6.10.4).
    pub(super) fn finish(&self, response: &mut Response, target: &Target, tell: bool, retried: bool) {
        let headers = response.headers_mut();
        headers.remove(CONTENT_LENGTH);
        headers.append(VIA, self.via.clone());
        if retried && let Ok(value) = HeaderValue::from_str("request-retransmitted=true") {
            headers.insert(names::RESPONSE_INFO, value);
        }
        if !tell {
            return;
        }
        resolve_location(headers, &target.root.origin);
        let told = target.told();
        if let Some(root) = &told.root {
            headers
                .entry(names::TARGET_API_ROOT)
                .or_insert_with(|| root.clone());
        }
        if let Some(producer) = &told.producer {
            headers
                .entry(names::PRODUCER_ID)
                .or_insert_with(|| producer.clone());
        }
    }
}

/// A `Location` without an authority means that of the producer, which the consumer has not named and so cannot
/// complete (RFC 9110 §10.2.2, TS 29.501 §4.4): it becomes absolute. One with an authority is never touched.
fn resolve_location(headers: &mut HeaderMap, origin: &Origin) {
    let Some(location) = headers.get(LOCATION).and_then(|value| value.to_str().ok()) else {
        return;
    };
    if !location.starts_with('/') || location.starts_with("//") {
        return;
    }
    if let Ok(absolute) = HeaderValue::from_str(&format!("{origin}{location}")) {
        headers.insert(LOCATION, absolute);
    }
}
