//! Questions that another NRF answers: hierarchy per NF type and service, the home network
//! (TS 29.510 §5.3.2.2.3, §5.3.2.2.4).

use std::sync::Arc;

use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, LOCATION, PRAGMA, VIA};
use http::{HeaderMap, HeaderValue, StatusCode};
use model::{NfType, PlmnId, ServiceName};
use sbi::client::{Client, SendOptions};
use sbi::headers::{SbiHeader, TargetApiRoot};
use sbi::problem::{Cause, Problem};
use sbi::{Body, Request, Response};

use crate::config::{self, ForwardedOperation};
use crate::events::{Counters, Event};

/// The asker: one per worker, as it holds a client.
pub struct Forwarder {
    settings: config::Forwarding,
    rules: Vec<Rule>,
    own_plmns: Vec<PlmnId>,
    client: Client,
    counters: Arc<Counters>,
    /// What this NRF calls itself in `Via`.
    name: String,
}

struct Rule {
    operations: Vec<ForwardedOperation>,
    nf_types: Vec<NfType>,
    services: Vec<ServiceName>,
    targets: Arc<[TargetApiRoot]>,
    when_empty: bool,
}

/// Where a question goes, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Roots of the other NRFs' APIs, in order of preference.
    pub targets: Arc<[TargetApiRoot]>,
    /// Ask only when nothing is found here.
    pub only_when_empty: bool,
}

/// What of a question decides where it goes.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// What is asked for.
    pub operation: ForwardedOperation,
    /// The NF type it is about, if it names one.
    pub target: Option<&'a NfType>,
    /// The services it is about.
    pub services: &'a [ServiceName],
    /// `hnrf-uri`: another network's NRF, named by the consumer.
    pub home_nrf: Option<&'a str>,
    /// The networks it is about.
    pub target_plmns: &'a [PlmnId],
}

impl Forwarder {
    /// An asker; `settings` were validated.
    pub(crate) fn new(
        settings: &config::Forwarding,
        client: Client,
        counters: Arc<Counters>,
        instance: &str,
    ) -> Self {
        let rules = settings.rules.iter().map(|rule| Rule {
            operations: rule.operations.clone(),
            nf_types: rule
                .nf_types
                .iter()
                .map(|text| NfType::from(text.as_str()))
                .collect(),
            services: rule
                .services
                .iter()
                .map(|text| ServiceName::from(text.as_str()))
                .collect(),
            targets: rule
                .targets
                .iter()
                .filter_map(|root| TargetApiRoot::parse(root).ok())
                .collect(),
            when_empty: rule.when_empty,
        });
        Self {
            rules: rules.collect(),
            own_plmns: settings
                .own_plmns
                .iter()
                .filter_map(|plmn| plmn.parse().ok())
                .collect(),
            settings: settings.clone(),
            client,
            counters,
            name: format!("NRF-{instance}"),
        }
    }

    /// Whether any rule is for an operation.
    #[must_use]
    pub fn concerns(&self, operation: ForwardedOperation) -> bool {
        self.rules.iter().any(|rule| rule.operations.contains(&operation))
    }

    /// Where the question goes; `None`: it is answered here. The path it has come decides as well: an NRF that
    /// has seen it does not send it round.
    #[must_use]
    pub fn destination(&self, question: &Question<'_>, headers: &HeaderMap) -> Option<Destination> {
        if self.rules.is_empty() && question.home_nrf.is_none() {
            return None;
        }
        let passed = headers
            .get_all(VIA)
            .iter()
            .filter_map(|value| value.to_str().ok());
        let passed: Vec<&str> = passed.flat_map(|value| value.split(',')).map(str::trim).collect();
        let been_here = passed.iter().any(|hop| hop.ends_with(&self.name));
        if been_here || passed.len() >= usize::from(self.settings.max_hops) {
            return None;
        }
        if self.settings.roaming && self.is_foreign(question) {
            let home = question.home_nrf.and_then(root_of)?;
            return Some(Destination {
                targets: Arc::new([home]),
                only_when_empty: false,
            });
        }
        let rule = self.rules.iter().find(|rule| rule.fits(question))?;
        Some(Destination {
            targets: rule.targets.clone(),
            only_when_empty: rule.when_empty,
        })
    }

    /// Named another network's NRF, and not only our own PLMNs.
    fn is_foreign(&self, question: &Question<'_>) -> bool {
        question.home_nrf.is_some()
            && (question.target_plmns.is_empty()
                || !question
                    .target_plmns
                    .iter()
                    .any(|plmn| self.own_plmns.contains(plmn)))
    }

    /// Asks the others one after the other what somebody has asked here; the first that answers counts.
    pub async fn ask(&self, destination: &Destination, asked: &Request) -> Response {
        self.counters.count(Event::Forwarded);
        for target in destination.targets.iter() {
            let Some(request) = self.request(target, asked) else {
                continue;
            };
            let options = SendOptions {
                deadline: self.settings.timeout.duration(),
                priority: 8,
            };
            match self.client.send(&target.origin, request, options).await {
                Ok(response) if response.status().is_server_error() => {}
                Ok(response) => return passed_on(response),
                Err(error) => tracing::debug!(%target, %error, "another NRF did not answer"),
            }
        }
        self.counters.count(Event::ForwardFailed);
        Problem::new(Cause::NrfNotReachable)
            .detail("no NRF that could answer was reached")
            .into_response()
    }

    fn request(&self, target: &TargetApiRoot, asked: &Request) -> Option<http::Request<Body>> {
        let path = asked
            .uri()
            .path_and_query()
            .map_or("/", http::uri::PathAndQuery::as_str);
        let mut request = http::Request::builder()
            .method(asked.method())
            .uri(format!("{}{path}", target.prefix))
            .body(asked.body.clone())
            .ok()?;
        let headers = asked.headers();
        let onward = request.headers_mut();
        onward.insert(
            ACCEPT,
            HeaderValue::from_static("application/json, application/problem+json"),
        );
        for via in headers.get_all(VIA) {
            onward.append(VIA, via.clone());
        }
        onward.append(VIA, HeaderValue::from_str(&format!("2.0 {}", self.name)).ok()?);
        for name in [CONTENT_TYPE, CONTENT_ENCODING] {
            if let Some(value) = headers.get(&name) {
                onward.insert(name, value.clone());
            }
        }
        for (name, value) in headers {
            if name.as_str().starts_with("3gpp-sbi-") {
                onward.append(name.clone(), value.clone());
            }
        }
        Some(request)
    }
}

impl Rule {
    fn fits(&self, question: &Question<'_>) -> bool {
        self.operations.contains(&question.operation)
            && (self.nf_types.is_empty()
                || question
                    .target
                    .is_some_and(|target| self.nf_types.contains(target)))
            && (self.services.is_empty() || question.services.iter().any(|name| self.services.contains(name)))
    }
}

pub(crate) fn root_of(uri: &str) -> Option<TargetApiRoot> {
    // `hnrf-uri` may name an API (`…/nnrf-disc/v1`); its root is what comes before.
    let root = uri.split("/nnrf-disc").next().unwrap_or(uri);
    TargetApiRoot::parse(root).ok()
}

/// What of another NRF's answer goes on: status, body, and the headers that speak of them.
fn passed_on(response: Response) -> Response {
    let (head, body) = response.into_parts();
    let mut onward = Response::new(body);
    *onward.status_mut() = match head.status.is_success() || head.status.is_client_error() {
        true => head.status,
        // A redirection was for us, not for the consumer.
        false => StatusCode::GATEWAY_TIMEOUT,
    };
    for name in [
        CONTENT_TYPE,
        CONTENT_ENCODING,
        CACHE_CONTROL,
        PRAGMA,
        ETAG,
        LOCATION,
    ] {
        if let Some(value) = head.headers.get(&name) {
            onward.headers_mut().insert(name, value.clone());
        }
    }
    onward
}
