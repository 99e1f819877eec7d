//! Steps of a request: overload control, admission of its sender, the handler.

use std::net::IpAddr;
use std::rc::Rc;

use function::Admission;
use function::sbi::{Answer, OperationMetrics, Refused};
use http::{Method, StatusCode};
use sbi::headers::names;
use sbi::name::{RETRY_AFTER, USER_AGENT};
use sbi::problem::{Cause, Problem};
use sbi::{Request, Response, path};

use crate::api;
use crate::events::Event;
use crate::worker::Worker;

impl Answer for Worker {
    const OPERATIONS: &'static [&'static str] = &[
        "Nnrf_NFDiscovery GET",
        "Nnrf_AccessToken POST",
        "Nnrf_NFManagement GET",
        "Nnrf_NFManagement PUT",
        "Nnrf_NFManagement PATCH",
        "Nnrf_NFManagement POST",
        "Nnrf_NFManagement DELETE",
        "other",
    ];

    const METRICS: Option<OperationMetrics> = Some(function::operation_metrics!("nrf"));

    fn operation(request: &Request) -> usize {
        let path = request.path();
        let service = |prefix| path.starts_with(prefix);
        match request.method().as_str() {
            "GET" if service("/nnrf-disc/") => 0,
            "POST" if service("/oauth2/") => 1,
            "GET" if service("/nnrf-nfm/") => 2,
            "PUT" if service("/nnrf-nfm/") => 3,
            "PATCH" if service("/nnrf-nfm/") => 4,
            "POST" if service("/nnrf-nfm/") => 5,
            "DELETE" if service("/nnrf-nfm/") => 6,
            _ => 7,
        }
    }

    async fn answer(self: Rc<Self>, request: Request) -> Response {
        let about = Refusable::of(&request);
        let mut response = self.clone().respond(request).await;
        // A 503 carries `Retry-After` (TS 29.500 §6.4).
        if response.status() == StatusCode::SERVICE_UNAVAILABLE
            && response.headers().get(RETRY_AFTER).is_none()
        {
            response.headers_mut().set_number(RETRY_AFTER, 1);
        }
        if response.status().is_client_error() || response.status().is_server_error() {
            self.name_itself(&mut response);
            if let Some(about) = about {
                about.log(&response);
            }
        }
        self.add_load(&mut response);
        response
    }
}

impl Worker {
    async fn respond(self: Rc<Self>, request: Request) -> Response {
        // The path outlives the request, which the handlers take apart.
        let path = path::usual(request.path()).into_owned();
        let mut segments = path.trim_start_matches('/').splitn(4, '/');
        let at = (segments.next(), segments.next(), segments.next(), segments.next());
        let admission = function::sbi::admit(self.shedder(), &request, class(request.method(), at.0, at.2));
        if let Some(problem) = function::sbi::refusal(admission) {
            self.counters().count(match admission {
                Admission::Late => Event::TooLate,
                _ => Event::Discarded,
            });
            return problem.into_response();
        }
        let sender = match self.gate().admit(at, &request) {
            Ok(sender) => sender,
            Err(refused) => {
                if let Refused::Identity(_) = &refused {
                    self.counters().count(Event::IdentityRefused);
                }
                return refused.into_response(self.root());
            }
        };
        match at {
            (Some("nnrf-disc"), Some("v1"), Some("nf-instances"), None) => {
                api::discovery::discover(self, request).await
            }
            (Some("nnrf-disc"), Some("v1"), Some("searches"), Some(search)) => {
                api::searches::search(&self, &request, search)
            }
            (Some("nnrf-nfm"), Some("v1"), Some("nf-instances"), None) => {
                api::management::collection(&self, &request)
            }
            (Some("nnrf-nfm"), Some("v1"), Some("nf-instances"), Some(id)) => {
                let id = id.to_owned();
                api::management::instance(self, request, id).await
            }
            (Some("nnrf-nfm"), Some("v1"), Some("subscriptions"), None) => {
                api::subscriptions::collection(self, request, sender).await
            }
            (Some("nnrf-nfm"), Some("v1"), Some("subscriptions"), Some(id)) => {
                let id = id.to_owned();
                api::subscriptions::subscription(self, request, sender, id).await
            }
            (Some("oauth2"), Some("token"), None, None) => {
                api::access_token::token(&self, &request, &sender).await
            }
            (Some("oauth2"), Some("jwks"), None, None) => api::access_token::jwks(&self, &request),
            (Some(crate::growth::API), Some(crate::growth::VERSION), Some("profiles"), None) => {
                crate::growth::answer(&self.snapshot(), &request)
            }
            (Some("bootstrapping"), None, None, None) => api::bootstrapping::bootstrapping(&self, &request),
            (Some("nnrf-nfm" | "nnrf-disc"), Some(version), _, _) if version != "v1" => {
                Problem::new(Cause::InvalidApi)
                    .detail(format!("version {version} is not served here; v1 is"))
                    .into_response()
            }
            _ => unknown(&path),
        }
    }
}

/// The target of log lines about requests that are refused or fail: `nrf::refusals=debug` in the filter shows them.
const REFUSALS: &str = "nrf::refusals";

/// Log fields of a request that may be refused or fail.
struct Refusable {
    method: Method,
    target: String,
    /// `User-Agent`: which NF it is.
    sender: String,
    /// `3gpp-Sbi-Correlation-Info`: which subscriber it is about.
    correlation: String,
    peer: IpAddr,
}

impl Refusable {
    /// `None` unless such lines are logged, so that requests bear no cost otherwise.
    fn of(request: &Request) -> Option<Self> {
        if !tracing::enabled!(target: REFUSALS, tracing::Level::DEBUG) {
            return None;
        }
        let header = |name| {
            let value = request.headers().get(name);
            let text = value.and_then(|value| value.to_str().ok().map(str::to_owned));
            text.unwrap_or_default()
        };
        Some(Self {
            method: request.method().clone(),
            target: request.target().to_owned(),
            sender: header(USER_AGENT),
            correlation: header(names::CORRELATION_INFO),
            peer: request.peer.addr.ip(),
        })
    }

    fn log(&self, response: &Response) {
        let body = response.body.to_bytes();
        let problem: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let member = |name: &str| {
            problem
                .get(name)
                .and_then(serde_json::Value::as_str)
                .unwrap_or_default()
        };
        tracing::debug!(
            target: REFUSALS,
            method = %self.method,
            target = self.target,
            status = response.status().as_u16(),
            cause = member("cause"),
            detail = member("detail"),
            sender = self.sender,
            correlation = self.correlation,
            peer = %self.peer,
            "request refused or failed"
        );
    }
}

fn unknown(path: &str) -> Response {
    Problem::new(Cause::ResourceUriStructureNotFound)
        .detail(format!("{path} is not a resource of this NRF"))
        .into_response()
}

/// The class of a request as overload levels have it: discovery, tokens, new subscriptions. Others are never discarded: a
/// subscription that ends relieves the NRF, one that is extended stays.
fn class(method: &Method, service: Option<&str>, resource: Option<&str>) -> Option<usize> {
    match (service?, resource) {
        ("nnrf-disc", _) => Some(0),
        ("oauth2", _) => Some(1),
        ("nnrf-nfm", Some("subscriptions")) if *method == Method::POST => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overload_discards_new_subscriptions_only() {
        let of = |method| class(&method, Some("nnrf-nfm"), Some("subscriptions"));
        assert_eq!(of(Method::POST), Some(2));
        assert_eq!((of(Method::PATCH), of(Method::DELETE)), (None, None));
        assert_eq!(class(&Method::PUT, Some("nnrf-nfm"), Some("nf-instances")), None);
    }
}
