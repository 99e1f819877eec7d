//! Forwarding of requests to other NRFs: hierarchy per NF type and service, the home network
//! (TS 29.510 §5.3.2.2.3, §5.3.2.2.4).

mod abroad;
mod routes;
mod served;

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderValue, StatusCode};
use nrf_client::OwnTokens;
use sbi::client::{Client, Origin, SendOptions};
use sbi::headers::{SbiHeader, TargetApiRoot, names};
use sbi::name::{
    ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, LOCATION, PRAGMA,
    RETRY_AFTER, VIA,
};
use sbi::problem::{Cause, Problem};
use sbi::{Fields, Outbound, Request, Response, Value};
use telemetry::Histogram;

pub(crate) use self::abroad::Abroad;
pub use self::routes::{Destination, Question, Routes, root_of};
pub(crate) use self::served::Served;
use crate::alternates::Alternates;
use crate::config;
use crate::events::{Counters, Event};
use crate::pace::Pace;

/// Client of other NRFs, one per worker.
pub struct Forwarder {
    routes: Routes,
    pace: Pace,
    timeout: Duration,
    client: Client,
    counters: Arc<Counters>,
    /// Tokens of this NRF for the services of others.
    tokens: Rc<OwnTokens>,
    names: Option<Alternates>,
    /// Duration of forwarded requests.
    time: Histogram,
}

/// NRFs that an answer names at most.
const TARGETS_NAMED: usize = 4;

impl Forwarder {
    /// Creates the client of a worker; `settings` were validated.
    pub(crate) fn new(
        settings: &config::Forwarding,
        client: Client,
        counters: Arc<Counters>,
        instance: &str,
        tokens: Rc<OwnTokens>,
        names: Option<Alternates>,
        time: Histogram,
    ) -> Self {
        Self {
            names,
            time,
            routes: Routes::new(settings, instance),
            pace: Pace::default(),
            timeout: settings.timeout.duration(),
            client,
            counters,
            tokens,
        }
    }

    /// The same, with a bound on what all workers forward in a second.
    #[must_use]
    pub(crate) fn paced(self, pace: Pace) -> Self {
        Self { pace, ..self }
    }

    /// Routes to other NRFs.
    #[must_use]
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Returns the destination of a request; `None`: this NRF answers it.
    #[must_use]
    pub fn destination(&self, question: &Question<'_>, headers: &Fields) -> Option<Destination> {
        self.routes.destination(question, headers)
    }

    /// Forwards a request to the NRFs of the destination in turn until one answers.
    pub async fn ask(&self, destination: &Destination, asked: &Request) -> Response {
        self.ask_for(destination, asked, asked.target()).await
    }

    /// As [`Forwarder::ask`], with another path and query.
    pub(crate) async fn ask_for(&self, destination: &Destination, asked: &Request, path: &str) -> Response {
        self.counters.count(Event::Forwarded);
        let begun = Instant::now();
        let response = self.ask_each(destination, asked, path).await;
        self.time.observe(begun.elapsed());
        response
    }

    async fn ask_each(&self, destination: &Destination, asked: &Request, path: &str) -> Response {
        for target in destination.targets.iter() {
            if !self.pace.allows() {
                self.counters.count(Event::ForwardHeldBack);
                let problem = Problem::new(Cause::NfCongestion);
                return problem
                    .detail("as many requests go to other NRFs as forwarding.rate permits")
                    .into_response();
            }
            let hop = Hop {
                target,
                through: destination.through.as_ref(),
                path,
                at: None,
            };
            match self.ask_places(hop, asked).await {
                Ok(response) if response.status().is_server_error() => {}
                // The other NRF refused the token of this NRF, which the consumer cannot mend.
                Ok(response) if response.status() == StatusCode::UNAUTHORIZED => {
                    tracing::debug!(%target, "another NRF refused the access token of this NRF");
                }
                Ok(response) => return passed_on(response),
                Err(error) => tracing::debug!(%target, error, "another NRF did not answer"),
            }
        }
        self.counters.count(Event::ForwardFailed);
        Problem::new(Cause::NrfNotReachable)
            .detail(format!(
                "no other NRF answered; queried: {}",
                destination
                    .targets
                    .iter()
                    .take(TARGETS_NAMED)
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            ))
            .into_response()
    }

    /// Sends the request to one NRF, and to its alternate addresses if it does not answer.
    async fn ask_places(&self, hop: Hop<'_>, asked: &Request) -> Result<Response, String> {
        let mut outcome = self.ask_one(&hop, asked).await;
        let Some(names) = self.names.as_ref().filter(|_| outcome.is_err()) else {
            return outcome;
        };
        for place in names.of(hop.origin()).await {
            self.counters.count(Event::Rerouted);
            let hop = Hop {
                at: Some(&place),
                ..hop
            };
            outcome = self.ask_one(&hop, asked).await;
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    /// Sends the request to one NRF, with a token of this NRF if it requires one: the token of the consumer is for this NRF.
    async fn ask_one(&self, hop: &Hop<'_>, asked: &Request) -> Result<Response, String> {
        let target = hop.target;
        let scope = match asked.path() {
            path if path.starts_with("/nnrf-disc/") => Some("nnrf-disc"),
            path if path.starts_with("/nnrf-nfm/") => Some("nnrf-nfm"),
            _ => None,
        };
        let token = scope.and_then(|scope| self.tokens.held(target, scope));
        let response = self.send(hop, asked, token).await?;
        let Some(scope) = scope.filter(|_| response.status() == StatusCode::UNAUTHORIZED) else {
            return Ok(response);
        };
        match self.tokens.fetch(&self.client, target, scope, self.timeout).await {
            Some(token) => self.send(hop, asked, Some(token)).await,
            None => Ok(response),
        }
    }

    async fn send(
        &self,
        hop: &Hop<'_>,
        asked: &Request,
        token: Option<HeaderValue>,
    ) -> Result<Response, String> {
        let mut request = self
            .request(hop, asked)
            .ok_or_else(|| "its path cannot be sent".to_owned())?;
        if let Some(token) = &token {
            request.headers_mut().set_sensitive(AUTHORIZATION, token);
        }
        let options = SendOptions {
            deadline: self.timeout,
            priority: 8,
        };
        let sent = self.client.send(hop.origin(), request, options).await;
        sent.map_err(|error| error.to_string())
    }

    fn request(&self, hop: &Hop<'_>, asked: &Request) -> Option<Outbound> {
        let path = match hop.through {
            // A SEPP has the prefix of the other NRF in `3gpp-Sbi-Target-apiRoot` (TS 29.500 §6.1.4.3.3).
            Some(through) => format!("{}{}", through.prefix, hop.path),
            None => format!("{}{}", hop.target.prefix, hop.path),
        };
        let mut request = Outbound::new(asked.method().clone(), Value::try_from(&*path).ok()?)
            .with_body(asked.body.clone());
        let headers = asked.headers();
        let onward = request.headers_mut();
        onward.set(
            ACCEPT,
            Value::from_static("application/json, application/problem+json"),
        );
        for via in headers.get_all(VIA) {
            onward.append(VIA, via);
        }
        onward.append_printed(VIA, format_args!("2.0 {}", self.routes.name()));
        for name in [CONTENT_TYPE, CONTENT_ENCODING] {
            if let Some(value) = headers.get(name) {
                onward.set(name, value);
            }
        }
        for field in headers.iter() {
            if !field.name.as_str().starts_with("3gpp-sbi-") || field.name == names::TARGET_API_ROOT {
                continue;
            }
            match field.sensitive {
                true => onward.append_sensitive(field.name, field.value),
                false => onward.append(field.name, field.value),
            }
        }
        if hop.through.is_some() {
            hop.target.set_in(onward);
        }
        Some(request)
    }
}

/// Next hop of a forwarded request.
#[derive(Clone, Copy)]
struct Hop<'a> {
    target: &'a TargetApiRoot,
    /// The SEPP before it, if any.
    through: Option<&'a TargetApiRoot>,
    path: &'a str,
    /// Alternate address of its name.
    at: Option<&'a Origin>,
}

impl<'a> Hop<'a> {
    /// Where the request is sent to.
    fn origin(&self) -> &'a Origin {
        self.at.unwrap_or(&self.through.unwrap_or(self.target).origin)
    }
}

/// The answer for the consumer: status, body, and the headers that describe them.
fn passed_on(response: Response) -> Response {
    let (head, body) = response.into_parts();
    let mut onward = Response::new(match head.status.is_success() || head.status.is_client_error() {
        true => head.status,
        // A redirection is meant for this NRF, not for the consumer.
        false => StatusCode::GATEWAY_TIMEOUT,
    })
    .with_body(body);
    for name in [
        CONTENT_TYPE,
        CONTENT_ENCODING,
        CACHE_CONTROL,
        PRAGMA,
        ETAG,
        LOCATION,
        RETRY_AFTER,
    ] {
        if let Some(value) = head.fields.get(name) {
            onward.headers_mut().set(name, value);
        }
    }
    onward
}
