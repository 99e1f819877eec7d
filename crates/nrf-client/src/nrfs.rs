use std::cell::{Cell, RefCell};
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode};
use sbi::client::{Client, Origin, SendError, SendOptions};
use sbi::dns::Dns;
use sbi::headers::TargetApiRoot;
use sbi::name::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use sbi::{Body, Fields, Response};
use worker::Random;

use crate::tokens::{OwnTokens, scope_of};
use crate::turns::Turns;

/// Media types that an NRF may answer with; the second is the list of registered instances (TS 29.510 §6.1.3.2.3.1).
const ACCEPTED: &str = "application/json, application/3gppHal+json, application/problem+json";
/// Message priority of the requests, 0 (highest) to 31 (TS 29.500 §6.8.4.1).
const PRIORITY: u8 = 8;

/// Client of the NRFs of one set.
pub struct Nrfs {
    turns: Turns,
    client: Client,
    timeout: Duration,
    failed: Box<dyn Fn()>,
    /// Tokens for NRFs that require one; absent until [`Nrfs::as_instance`] names the consumer.
    tokens: Option<OwnTokens>,
    /// Whether no NRF answered the last request: logged once per outage.
    silent: Cell<bool>,
    /// Which NRF failed last, and why.
    reason: RefCell<String>,
    /// Which NRF answered last.
    answered: RefCell<String>,
    services: Option<Services>,
}

/// Places of NRFs by the SRV records of their names.
struct Services {
    names: Dns,
    random: Random,
    /// The place that answered last: it is asked until it fails.
    last: RefCell<Option<Origin>>,
}

/// Places of one name that a request is sent to at most.
const MOST_PLACES: usize = 8;

impl Services {
    /// Where the NRF of a name is, in the order in which to try the places; the name itself where it has no SRV record.
    async fn places(&self, nrf: &TargetApiRoot) -> Vec<TargetApiRoot> {
        let mut found = self.names.alternates(&nrf.origin, || self.random.next()).await;
        if let Some(place) = found
            .iter()
            .position(|origin| Some(origin) == self.last.borrow().as_ref())
        {
            found[..=place].rotate_right(1);
        }
        found.truncate(MOST_PLACES);
        if found.is_empty() {
            found.push(nrf.origin.clone());
        }
        let at = |origin| TargetApiRoot {
            origin,
            prefix: nrf.prefix.clone(),
        };
        found.into_iter().map(at).collect()
    }
}

/// An NRF's answer other than a server error (5xx).
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: Fields,
    /// Its body, whole.
    pub body: Bytes,
}

impl fmt::Debug for Nrfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nrfs")
            .field("turns", &self.turns)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Nrfs {
    /// Creates a client of these NRFs with this timeout for each attempt.
    pub fn new(turns: Turns, client: Client, timeout: Duration) -> Self {
        Self {
            turns,
            client,
            timeout,
            failed: Box::new(|| ()),
            tokens: None,
            silent: Cell::new(false),
            reason: RefCell::default(),
            answered: RefCell::default(),
            services: None,
        }
    }

    /// Looks for the NRFs by the SRV records of their names (`_http._tcp.NAME`, `_https._tcp.NAME`; RFC 2782), in the order of
    /// priority and weight. A name without such records, and an address, is used as it is.
    #[must_use]
    pub fn by_services(mut self, names: Option<Dns>) -> Self {
        self.services = names.map(|names| Services {
            names,
            random: Random::default(),
            last: RefCell::default(),
        });
        self
    }

    /// Calls this for each attempt that failed.
    #[must_use]
    pub fn on_failure(mut self, failed: impl Fn() + 'static) -> Self {
        self.failed = Box::new(failed);
        self
    }

    /// Sends requests as this NF instance, with an access token where an NRF requires one (TS 29.510 §5.4.2).
    #[must_use]
    pub fn as_instance(mut self, id: &str, nf_type: &str) -> Self {
        self.tokens = Some(OwnTokens::new(id, nf_type));
        self
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// The NRF that answered last; empty before the first answer.
    #[must_use]
    pub fn answered_by(&self) -> String {
        self.answered.borrow().clone()
    }

    /// Which NRF failed last, and why; empty while none has.
    #[must_use]
    pub fn last_failure(&self) -> String {
        self.reason.borrow().clone()
    }

    /// The NRF that answered last has refused what was sent.
    pub(crate) fn refused(&self, how: &str) {
        self.reason.replace(format!("{}: {how}", self.answered.borrow()));
    }

    /// Sends a request to the NRFs in turn; `None` when none answers, or all answer with server errors (5xx).
    pub async fn send(&self, method: Method, path: &str, body: Option<(&str, Bytes)>) -> Option<Answer> {
        let answer = self.ask(&method, path, body).await;
        let silent = answer.is_none() && !self.turns.is_empty();
        match (self.silent.replace(silent), silent) {
            (false, true) => {
                let last = self.reason.borrow();
                tracing::warn!(%method, path, nrfs = self.turns.len(), %last, "no NRF answers");
            }
            (true, false) => tracing::info!("an NRF answers again"),
            _ => {}
        }
        answer
    }

    /// As [`Nrfs::send`], without a log line when no NRF answers.
    pub(crate) async fn ask(
        &self,
        method: &Method,
        path: &str,
        body: Option<(&str, Bytes)>,
    ) -> Option<Answer> {
        for nrf in self.turns.in_turn() {
            for place in &self.places(nrf).await {
                match self.ask_one(place, method, path, body.as_ref()).await? {
                    Ok(response) if !response.status().is_server_error() => {
                        let answered = place.to_string();
                        if *self.answered.borrow() != answered {
                            self.answered.replace(answered);
                        }
                        if let Some(services) = &self.services {
                            services.last.replace(Some(place.origin.clone()));
                        }
                        let (head, body) = response.into_parts();
                        return Some(Answer {
                            status: head.status,
                            headers: head.fields,
                            body: body.into_bytes(),
                        });
                    }
                    Ok(response) => {
                        tracing::debug!(nrf = %place, path, status = %response.status(), "the NRF failed");
                        self.reason
                            .replace(format!("{place}: status {}", response.status()));
                    }
                    Err(error) => {
                        tracing::debug!(nrf = %place, path, %error, "the NRF did not answer");
                        self.reason.replace(format!("{place}: {error}"));
                    }
                }
                (self.failed)();
            }
            self.turns.next(nrf);
        }
        None
    }

    /// Where an NRF is, in the order in which to try the places.
    async fn places(&self, nrf: &TargetApiRoot) -> Vec<TargetApiRoot> {
        match &self.services {
            Some(services) => services.places(nrf).await,
            None => vec![nrf.clone()],
        }
    }

    /// Sends a request to one NRF, with a token if it requires one; `None` if the request is invalid.
    async fn ask_one(
        &self,
        nrf: &TargetApiRoot,
        method: &Method,
        path: &str,
        body: Option<&(&str, Bytes)>,
    ) -> Option<Result<Response, SendError>> {
        let tokens = self.tokens.as_ref().zip(scope_of(path));
        let held = tokens.and_then(|(tokens, scope)| tokens.held(nrf, scope));
        let answer = self.send_one(nrf, method, path, body, held).await?;
        let (Some((tokens, scope)), Ok(refused)) = (tokens, &answer) else {
            return Some(answer);
        };
        if refused.status() != StatusCode::UNAUTHORIZED {
            return Some(answer);
        }
        match tokens.fetch(&self.client, nrf, scope, self.timeout).await {
            Some(token) => self.send_one(nrf, method, path, body, Some(token)).await,
            None => Some(answer),
        }
    }

    async fn send_one(
        &self,
        nrf: &TargetApiRoot,
        method: &Method,
        path: &str,
        body: Option<&(&str, Bytes)>,
        token: Option<HeaderValue>,
    ) -> Option<Result<Response, SendError>> {
        let mut request = Request::builder()
            .method(method.clone())
            .uri(format!("{}{path}", nrf.prefix))
            .header(ACCEPT, ACCEPTED);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token);
        }
        let mut content = Body::empty();
        if let Some((media_type, bytes)) = body {
            request = request.header(CONTENT_TYPE, *media_type);
            content.push(bytes.clone());
        }
        let options = SendOptions {
            deadline: self.timeout,
            priority: PRIORITY,
        };
        let request = request.body(content).ok()?;
        Some(self.client.send(&nrf.origin, request, options).await)
    }

    /// Gets the resource at a path; `None` when no NRF answers with 200.
    pub async fn get(&self, path: &str) -> Option<Bytes> {
        let answer = self.send(Method::GET, path, None).await?;
        (answer.status == StatusCode::OK).then_some(answer.body)
    }
}
