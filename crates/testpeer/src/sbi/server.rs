//! Servers that answer with a closure.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, Uri};
use sbi::server::{ServerConfig, ServerStats};
use sbi::{Request, Response, Service};
use serde_json::Value;
use tokio::sync::Notify;
use worker::Shutdown;

/// A request that a [`Server`] has received.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl From<Request> for Seen {
    fn from(request: Request) -> Self {
        Self {
            method: request.method().clone(),
            path: request.target().to_owned(),
            body: request.body.to_bytes().to_vec(),
            headers: request.headers().into(),
        }
    }
}

impl Seen {
    /// The body as JSON; null where it is empty or not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Path and query, parsed.
    ///
    /// # Panics
    /// Never with a request that came over HTTP/2.
    #[must_use]
    pub fn uri(&self) -> Uri {
        self.path.parse().expect("a path that was received")
    }

    /// A header as text; empty where it is absent.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        header(&self.headers, name)
    }
}

pub(super) fn header<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    let value = headers.get(name);
    value.and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Serves on a free port of the loopback interface until the runtime ends.
///
/// # Panics
/// When there is no free port, or outside a local task set.
pub fn serve(service: Rc<impl Service>) -> SocketAddr {
    serve_at(loopback(), service, Shutdown::new())
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn serve_at(address: SocketAddr, service: Rc<impl Service>, stop: Shutdown) -> SocketAddr {
    let listener = sbi::server::bind(address).expect("the address is free");
    let address = listener.local_addr().expect("a bound listener has an address");
    let (config, stats) = (ServerConfig::default(), ServerStats::default());
    let serving = sbi::server::serve(listener, service, Arc::new(config), None, Arc::new(stats), stop);
    tokio::task::spawn_local(serving);
    address
}

type Answer = Rc<dyn Fn(&Seen) -> Response>;

/// A server that answers with a closure and records every request.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    shared: Rc<Shared>,
    stop: Shutdown,
}

struct Shared {
    seen: RefCell<Vec<Seen>>,
    answer: RefCell<Answer>,
    delay: Cell<Duration>,
    held: Cell<bool>,
    released: Notify,
}

impl Service for Shared {
    async fn call(self: Rc<Self>, request: Request) -> Response {
        let seen = Seen::from(request);
        self.seen.borrow_mut().push(seen.clone());
        if !self.delay.get().is_zero() {
            tokio::time::sleep(self.delay.get()).await;
        }
        while self.held.get() {
            self.released.notified().await;
        }
        let answer = self.answer.borrow().clone();
        answer(&seen)
    }
}

impl Server {
    /// Serves on a free port of the loopback interface, inside [`local`](crate::local).
    ///
    /// # Panics
    /// As [`serve`].
    pub fn start(answer: impl Fn(&Seen) -> Response + 'static) -> Self {
        Self::at(loopback(), answer)
    }

    /// Serves at this address.
    ///
    /// # Panics
    /// When the address is taken.
    pub fn at(address: SocketAddr, answer: impl Fn(&Seen) -> Response + 'static) -> Self {
        let shared = Rc::new(Shared {
            seen: RefCell::default(),
            answer: RefCell::new(Rc::new(answer)),
            delay: Cell::default(),
            held: Cell::default(),
            released: Notify::new(),
        });
        let stop = Shutdown::new();
        Self {
            address: serve_at(address, shared.clone(), stop.clone()),
            shared,
            stop,
        }
    }

    /// `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn root(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.seen.borrow().clone()
    }

    /// The requests since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<Seen> {
        self.shared.seen.take()
    }

    /// The number of requests in [`Server::seen`].
    #[must_use]
    pub fn count(&self) -> usize {
        self.shared.seen.borrow().len()
    }

    /// Answers with this closure from now on.
    pub fn answers(&self, answer: impl Fn(&Seen) -> Response + 'static) {
        *self.shared.answer.borrow_mut() = Rc::new(answer);
    }

    /// Answers with this status and its problem details from now on.
    ///
    /// # Panics
    /// When there is no such status.
    pub fn fails_with(&self, status: u16) {
        let status = StatusCode::from_u16(status).expect("a status");
        self.answers(move |_| sbi::problem::Problem::of_status(status).into_response());
    }

    /// Waits before each answer from now on.
    pub fn waits(&self, delay: Duration) {
        self.shared.delay.set(delay);
    }

    /// Holds every answer back until [`Server::releases`].
    pub fn holds(&self) {
        self.shared.held.set(true);
    }

    /// Gives the answers that it has held back, and holds none back from now on.
    pub fn releases(&self) {
        self.shared.held.set(false);
        self.shared.released.notify_waiters();
    }

    /// Closes its listener and its connections.
    pub fn stop(&self) {
        self.stop.fire();
    }
}
