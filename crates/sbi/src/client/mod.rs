//! The HTTP/2 client of a worker: a pool of connections per origin.
//!
//! ```text
//! send ─ pool of the origin ─ least busy connection ─ stream ─ response (bounded in size and time)
//!            │ none has room: connect one more, up to the limit; wait in order of priority, bounded
//!            └ nothing to connect to: fail at once while the back-off lasts
//! ```
//!
//! A request that its sender gives up is not reset at once: many resets at a time look like an attack to the
//! server and would end a connection that others use. Its answer is awaited and discarded, up to a bound;
//! streams that have to be reset are reset one after another.

mod config;
mod connect;
mod connection;
mod error;
mod guard;
mod pace;
mod pool;
mod rate;
mod spans;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use http::HeaderValue;
use http2::name::USER_AGENT;
use sbi_proto::{Outbound, Response};

pub use config::ClientConfig;
pub use error::{Processed, SendError, SendErrorKind};
pub use guard::Guard;
pub use pool::PeerStats;
pub use sbi_proto::{Origin, OriginError, Scheme};

use crate::dns::Dns;
use crate::memory::Memory;
use crate::stats::count;
use crate::tls::ClientTls;
use pool::Pool;

/// The client of a worker. Cloning shares its connections.
#[derive(Clone)]
pub struct Client(Rc<Inner>);

struct Inner {
    config: Arc<ClientConfig>,
    tls: Option<ClientTls>,
    names: Option<Dns>,
    user_agent: Option<HeaderValue>,
    guard: Option<Guard>,
    pools: RefCell<AHashMap<Origin, Rc<Pool>>>,
}

/// Deadline and priority of a request.
#[derive(Clone, Copy, Debug)]
pub struct SendOptions {
    /// Time from now until the whole response has arrived.
    pub deadline: Duration,
    /// Message priority, 0 (highest) to 31: the order in which requests that are pending for a connection are sent.
    pub priority: u8,
}

impl Default for SendOptions {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(3),
            priority: 24,
        }
    }
}

impl Client {
    /// A client without connections. `tls` is needed for `https` origins. The system resolves names.
    #[must_use]
    pub fn new(config: Arc<ClientConfig>, tls: Option<Arc<rustls::ClientConfig>>) -> Self {
        Self::with_names(config, tls.map(ClientTls::from), None)
    }

    /// As [`Client::new`], with TLS that may change; `names` resolves the names of origins.
    #[must_use]
    pub fn with_names(config: Arc<ClientConfig>, tls: Option<ClientTls>, names: Option<Dns>) -> Self {
        Self::guarded(config, tls, names, None)
    }

    /// As [`Client::with_names`]; connections are made only to addresses that `guard` lets pass.
    #[must_use]
    pub fn guarded(
        config: Arc<ClientConfig>,
        tls: Option<ClientTls>,
        names: Option<Dns>,
        guard: Option<Guard>,
    ) -> Self {
        let user_agent = HeaderValue::from_str(&config.user_agent)
            .ok()
            .filter(|value| !value.is_empty());
        Self(Rc::new(Inner {
            config,
            tls,
            names,
            user_agent,
            guard,
            pools: RefCell::default(),
        }))
    }

    /// Sends a request to `origin` and waits for the whole response.
    ///
    /// Scheme and authority come from `origin` in any case. `User-Agent` is set where the request has none
    /// (TS 29.500 §5.2.2.2).
    ///
    /// # Errors
    /// When there is no response; see [`SendError::processed`] for whether another try is safe. A response
    /// with an error status is a response.
    pub async fn send(
        &self,
        origin: &Origin,
        request: impl Into<Outbound>,
        options: SendOptions,
    ) -> Result<Response, SendError> {
        let until = Instant::now() + options.deadline;
        self.send_until(origin, request.into(), until, options.priority)
            .await
    }

    /// As [`Client::send`], until a moment that the caller knows.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn send_until(
        &self,
        origin: &Origin,
        mut request: Outbound,
        until: Instant,
        priority: u8,
    ) -> Result<Response, SendError> {
        if let Some(agent) = &self.0.user_agent
            && !request.head.fields.contains(USER_AGENT)
        {
            request.head.fields.append(USER_AGENT, agent);
        }
        let pool = self.pool(origin)?;
        let span = spans::begin(origin, &mut request.head);
        // Lent: a request that moves from one future into the next is copied each time.
        let begun = pool.begin(&mut request, until, priority).await;
        drop(request);
        let outcome = match begun {
            Ok(mut exchange) => exchange.response().await,
            Err(error) => Err(error),
        };
        pool.count(&outcome);
        if let Some(span) = span {
            spans::end(span, &outcome);
        }
        outcome
    }

    /// Whether the rate of its connections (`maxRequestRate`) permits a request to an origin now. A request that the
    /// rate does not permit is counted.
    #[must_use]
    pub fn admits(&self, origin: &Origin) -> bool {
        if self.0.config.max_request_rate == 0 {
            return true;
        }
        let at_rate = self
            .0
            .pools
            .borrow()
            .get(origin)
            .is_some_and(|pool| pool.is_at_rate());
        if at_rate {
            Memory::of_worker().stats(|stats| count(&stats.requests_over_connection_rate));
        }
        !at_rate
    }

    /// State of each origin to which requests were sent.
    #[must_use]
    pub fn peers(&self) -> Vec<(Origin, PeerStats)> {
        let pools = self.0.pools.borrow();
        pools
            .iter()
            .map(|(origin, pool)| (origin.clone(), pool.stats()))
            .collect()
    }

    fn pool(&self, origin: &Origin) -> Result<Rc<Pool>, SendError> {
        let mut pools = self.0.pools.borrow_mut();
        if let Some(pool) = pools.get(origin) {
            return Ok(pool.clone());
        }
        if pools.len() >= self.0.config.max_origins as usize {
            pools.retain(|_, pool| !pool.is_unused());
            if pools.len() >= self.0.config.max_origins as usize {
                return Err(SendError::not_sent(SendErrorKind::Overflow));
            }
        }
        let tls = match origin.scheme() {
            Scheme::Http => None,
            Scheme::Https => match &self.0.tls {
                Some(tls) => Some(tls.clone()),
                None => return Err(SendError::not_sent(SendErrorKind::NoTls)),
            },
        };
        let (names, guard) = (self.0.names.clone(), self.0.guard.clone());
        let pool = Pool::new(origin.clone(), self.0.config.clone(), tls, names, guard);
        pools.insert(origin.clone(), pool.clone());
        Ok(pool)
    }
}
