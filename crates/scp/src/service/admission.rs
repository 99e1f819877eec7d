//! Whether a request may come in: who sends it, how important it is, what this SCP has room for.

use std::rc::Rc;

use http::{HeaderValue, Method};
use sbi::headers::{MessagePriority, SbiHeader, names};
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response};

use super::authorize::Caller;
use super::copy::Copies;
use super::worker::Worker;
use crate::events::ServiceMetrics;
use crate::target::Has;

/// A request that was let in, and what is known of it.
pub(super) struct Admitted {
    pub(super) request: Request,
    /// The headers that the request has.
    pub(super) has: Has,
    pub(super) caller: Caller,
    pub(super) priority: u8,
    pub(super) metrics: Rc<ServiceMetrics>,
    pub(super) copies: Option<Rc<Copies>>,
    /// Whether any segment of its path, or of the prefix it names, may be the API name.
    pub(super) unsure: bool,
}

impl Worker {
    /// Who sends it, whether it may, and how important it is.
    pub(super) fn admit(
        &self,
        mut request: Request,
        has: Has,
        copies: Option<Rc<Copies>>,
    ) -> Result<Admitted, Box<Response>> {
        let now = request.received;
        let service = crate::target::service_of(request.uri().path());
        let metrics = self.service_metrics(service);
        let refuse = |reason, problem, wait| {
            let refused = self.refuse_for(reason, problem, wait);
            metrics.answered(refused.status());
            Box::new(refused)
        };
        // A signature costs more than all the rest: it is checked last, unless it says who this is.
        let first = match self.consumers.need_assertion() {
            true => Some(
                self.claims(request.headers())
                    .map_err(|problem| refuse("assertion", problem, None))?,
            ),
            false => None,
        };
        let subject = first
            .as_ref()
            .and_then(|claims| claims.as_ref().map(|claims| claims.sub.as_str()));
        let consumer = self.consumers.of(&request, subject);
        let (priority, write) = self.priority(service, request.method(), request.headers(), has);
        if write {
            let value = HeaderValue::from(u16::from(priority));
            request.head.headers.insert(names::MESSAGE_PRIORITY, value);
        }
        if !consumer.admits(now) {
            let problem = Problem::new(Cause::TooManyRequests)
                .detail("the rate that this SCP lets in from the consumer is exceeded");
            return Err(refuse("ingressRate", problem, Some(consumer.retry_after(now))));
        }
        if self.load.discards(priority) {
            let problem = Problem::new(Cause::NfCongestion).detail("discarded under overload of the SCP");
            return Err(refuse("overload", problem, Some(1)));
        }
        let claims = match first {
            Some(claims) => claims,
            None => self
                .claims(request.headers())
                .map_err(|problem| refuse("assertion", problem, None))?,
        };
        if !self.load.enter(priority) {
            let problem = Problem::new(Cause::NfCongestion).detail("too many requests are under way");
            return Err(refuse("inFlight", problem, Some(1)));
        }
        Ok(Admitted {
            caller: self.caller(consumer, claims, &request),
            priority,
            metrics,
            request,
            has,
            copies,
            unsure: false,
        })
    }

    /// The priority of a request, and whether it is to be written into it.
    fn priority(&self, service: &str, method: &Method, headers: &http::HeaderMap, has: Has) -> (u8, bool) {
        let settings = &self.live.config.protection.priorities;
        let told = has
            .has(Has::MESSAGE_PRIORITY)
            .then(|| headers.get(names::MESSAGE_PRIORITY))
            .flatten()
            .and_then(|value| value.to_str().ok())
            .and_then(|text| MessagePriority::parse(text).ok())
            .map(MessagePriority::get);
        let rule = settings.rules.iter().find(|rule| {
            (rule.services.is_empty() || rule.services.iter().any(|one| one == service))
                && (rule.methods.is_empty() || rule.methods.iter().any(|one| one == method.as_str()))
        });
        match (told, rule) {
            (Some(told), Some(rule)) if !rule.replace => (told, false),
            (_, Some(rule)) => (rule.priority, true),
            (Some(told), None) => (told, false),
            (None, None) => (settings.default, false),
        }
    }
}
