//! Access tokens for the services of other functions (TS 33.501 §13.4.1.1, TS 29.510 §5.4.2.2).

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method, Request, StatusCode};
use sbi::client::{Client, Origin, SendError, SendOptions};
use sbi::{Body, Response};
use tokio::sync::Mutex;

use crate::Nrfs;
use crate::grant::{self, Grant};

/// Least time between two requests for the token of one service, after the NRF has granted none or the producer has refused
/// the one that it granted.
const PAUSE: Duration = Duration::from_secs(1);
/// Services whose tokens are cached at most. A function consumes a few.
const MOST: usize = 64;

/// A service of another function, as an access token names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerService {
    /// Its name, which is the scope of the token (TS 29.510 §6.3.5.2.2).
    pub name: &'static str,
    /// NF type of its producers (`targetNfType`).
    pub nf_type: &'static str,
}

/// What came of a request for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An NRF has granted it.
    Granted,
    /// No NRF has.
    Failed,
}

/// Access tokens of one function for the services that it consumes: one for each service, valid at all producers of its type.
///
/// A service whose producer answers 401 requires tokens from then on; with [`PeerTokens::up_front`] each one does. A token is
/// requested once for all requests that are pending for it, and replaced shortly before its expiry, or when a producer
/// refuses it.
pub struct PeerTokens {
    nrfs: Rc<Nrfs>,
    instance: String,
    nf_type: String,
    up_front: bool,
    held: RefCell<Vec<Held>>,
    /// Held during a request for a token: the others wait for its answer.
    query: Mutex<()>,
    outcome: Box<dyn Fn(Outcome)>,
}

/// A service that requires tokens.
struct Held {
    service: PeerService,
    grant: Option<Grant>,
    /// When another token may be requested in place of one that was not granted or was refused.
    again: Instant,
    /// Whether it is logged that there is no token.
    reported: bool,
}

impl fmt::Debug for PeerTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeerTokens({} of {})", self.held.borrow().len(), self.instance)
    }
}

impl PeerTokens {
    /// Creates an empty cache for an NF instance of this type, whose tokens these NRFs grant.
    #[must_use]
    pub fn new(nrfs: Rc<Nrfs>, instance: &str, nf_type: &str) -> Self {
        Self {
            nrfs,
            instance: instance.to_owned(),
            nf_type: nf_type.to_owned(),
            up_front: false,
            held: RefCell::default(),
            query: Mutex::new(()),
            outcome: Box::new(|_| ()),
        }
    }

    /// Requests the token of a service before the first request, without a 401 from its producer.
    #[must_use]
    pub fn up_front(mut self, up_front: bool) -> Self {
        self.up_front = up_front;
        self
    }

    /// Calls this for each request for a token.
    #[must_use]
    pub fn on_outcome(mut self, outcome: impl Fn(Outcome) + 'static) -> Self {
        self.outcome = Box::new(outcome);
        self
    }

    /// Sends a request that `make` builds to a producer of a service, with a token where the service requires one. When the
    /// producer answers 401, it gets the request once more, with a new token. `None` if `make` builds none.
    pub async fn send(
        &self,
        client: &Client,
        (service, origin): (PeerService, &Origin),
        options: SendOptions,
        make: impl Fn() -> Option<Request<Body>>,
    ) -> Option<Result<Response, SendError>> {
        let end = Instant::now() + options.deadline;
        let exchange = async |token: Option<&HeaderValue>| {
            let mut request = make()?;
            if let Some(token) = token {
                request.headers_mut().insert(AUTHORIZATION, token.clone());
            }
            let options = SendOptions {
                deadline: end.saturating_duration_since(Instant::now()),
                ..options
            };
            Some(client.send(origin, request, options).await)
        };
        let token = match self.requires(service) {
            true => self.token(service, None, end).await,
            false => None,
        };
        let answer = exchange(token.as_ref()).await?;
        let refused = answer
            .as_ref()
            .is_ok_and(|answer| answer.status() == StatusCode::UNAUTHORIZED);
        if !refused {
            return Some(answer);
        }
        match self.token(service, token.as_ref(), end).await {
            Some(another) if Some(&another) != token.as_ref() => exchange(Some(&another)).await,
            _ => Some(answer),
        }
    }

    fn requires(&self, service: PeerService) -> bool {
        self.up_front || self.held.borrow().iter().any(|held| held.service == service)
    }

    /// The token of a service other than the one that its producer has refused: the cached one, or a new one.
    async fn token(
        &self,
        service: PeerService,
        refused: Option<&HeaderValue>,
        end: Instant,
    ) -> Option<HeaderValue> {
        if let Some(found) = self.cached(service, refused) {
            return found;
        }
        let query = async {
            let _query = self.query.lock().await;
            if let Some(found) = self.cached(service, refused) {
                return found;
            }
            self.fetch(service, refused.is_some()).await
        };
        // The request itself shall have time as well.
        let share = end.saturating_duration_since(Instant::now()) / 2;
        match tokio::time::timeout(share, query).await {
            Ok(token) => token,
            Err(_) => {
                self.keep(service, None, false);
                self.report(service, "no NRF answered in time");
                None
            }
        }
    }

    /// What there is without a request: a token, or none because it is too early for another request.
    fn cached(&self, service: PeerService, refused: Option<&HeaderValue>) -> Option<Option<HeaderValue>> {
        let held = self.held.borrow();
        let held = held.iter().find(|held| held.service == service)?;
        let now = Instant::now();
        let usable = held.grant.as_ref().filter(|grant| now < grant.ends);
        match usable.filter(|grant| refused != Some(&grant.value)) {
            Some(grant) => Some(Some(grant.value.clone())),
            None if now < held.again && (refused.is_some() || held.grant.is_none()) => Some(None),
            None => None,
        }
    }

    async fn fetch(&self, service: PeerService, replaces: bool) -> Option<HeaderValue> {
        let form = grant::form(&self.instance, &self.nf_type, service.nf_type, service.name);
        let body = Some((grant::FORM, Bytes::from(form)));
        let answer = self.nrfs.send(Method::POST, grant::PATH, body).await;
        let granted = answer
            .as_ref()
            .filter(|answer| answer.status == StatusCode::OK)
            .and_then(|answer| grant::read(&answer.body));
        let value = granted.as_ref().map(|grant| grant.value.clone());
        self.keep(service, granted, replaces);
        if value.is_none() {
            let why = answer.map_or_else(
                || "no NRF answers".to_owned(),
                |answer| format!("{}: {}", answer.status, grant::shown(&answer.body)),
            );
            self.report(service, &why);
        }
        value
    }

    /// Keeps what came of a request for a token.
    fn keep(&self, service: PeerService, grant: Option<Grant>, replaces: bool) {
        let granted = grant.is_some();
        (self.outcome)(match granted {
            true => Outcome::Granted,
            false => Outcome::Failed,
        });
        let now = Instant::now();
        let again = match granted && !replaces {
            true => now,
            false => now + PAUSE,
        };
        let mut all = self.held.borrow_mut();
        let place = all.iter().position(|held| held.service == service);
        let reported = place.map(|place| all.remove(place).reported);
        if all.len() >= MOST {
            all.remove(0);
        }
        all.push(Held {
            service,
            grant,
            again,
            reported: !granted && reported.unwrap_or(false),
        });
    }

    /// Logs that there is no token for a service, once until there is one.
    fn report(&self, service: PeerService, why: &str) {
        let mut all = self.held.borrow_mut();
        let held = all.iter_mut().find(|held| held.service == service);
        if held.is_some_and(|held| !std::mem::replace(&mut held.reported, true)) {
            let (scope, target) = (service.name, service.nf_type);
            tracing::warn!(scope, target, why, "no access token for a service");
        }
    }
}
