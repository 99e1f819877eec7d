//! The server behind the admin pages, within bounds.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::Service as _;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinError, JoinHandle, JoinSet};

use super::Config;

crate::declare! {
    /// What is said of the admin endpoints.
    pub METRICS;
    counter CLOSED = "signalbox_admin_connections_closed_total" []: "Idle connections to admin endpoints that were closed for a newcomer: admin.connections was reached.";
}

/// Of all admin endpoints of the process.
static CLOSED_FOR_NEWCOMERS: AtomicU64 = AtomicU64::new(0);

/// Shows what the admin endpoints did.
pub fn register(registry: &crate::Registry) {
    registry.observe(&CLOSED, || CLOSED_FOR_NEWCOMERS.load(Ordering::Relaxed) as f64);
}

/// Bytes that the head of a request may have; more is answered 431.
const HEAD_BYTES: usize = 16 * 1024;

/// Bounds of an admin endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at the same time; a newcomer takes the place of the one that is idle longest.
    pub connections: usize,
    /// How long the head of a request may take, the wait for it included: slow and idle connections end.
    pub head: Duration,
    /// How long requests in flight may take during a stop.
    pub drain: Duration,
}

impl From<&Config> for Limits {
    fn from(config: &Config) -> Self {
        Self {
            connections: config.connections,
            head: config.head_timeout.duration(),
            drain: Duration::from_secs(1),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::from(&Config::default())
    }
}

/// A running admin endpoint. It ends with [`Serving::stop`], or with its runtime.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Serving {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops listening and lets requests in flight finish, for a moment.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        // It ends by itself within the drain time; a panic in it has been reported by then.
        let _ = self.task.await;
    }
}

/// Serves `router` at `address` on the current runtime.
///
/// # Errors
/// When the address cannot be listened on.
pub async fn serve(address: SocketAddr, router: Router) -> io::Result<Serving> {
    serve_within(address, router, Limits::default()).await
}

/// As [`serve`], with other bounds.
///
/// # Errors
/// As [`serve`].
pub async fn serve_within(address: SocketAddr, router: Router, limits: Limits) -> io::Result<Serving> {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| io::Error::new(error.kind(), format!("admin address {address}: {error}")))?;
    begin(listener, router, limits)
}

/// As [`serve_within`], at a listener that is bound and does not block.
///
/// # Errors
/// When the runtime cannot wait for it.
pub fn serve_at(listener: std::net::TcpListener, router: Router, limits: Limits) -> io::Result<Serving> {
    begin(TcpListener::from_std(listener)?, router, limits)
}

fn begin(listener: TcpListener, router: Router, limits: Limits) -> io::Result<Serving> {
    let address = listener.local_addr()?;
    let (stop, stopped) = watch::channel(false);
    let task = tokio::spawn(accept(listener, router, limits, stopped));
    Ok(Serving { address, stop, task })
}

/// A connection: whether a request of it is being served, and since when none is.
#[derive(Debug)]
struct Use {
    idle_since: Mutex<Option<Instant>>,
}

impl Use {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            idle_since: Mutex::new(Some(Instant::now())),
        })
    }

    fn begin(&self) {
        *self.idle_since.lock() = None;
    }

    fn end(&self) {
        *self.idle_since.lock() = Some(Instant::now());
    }
}

/// The connections of an endpoint.
#[derive(Default)]
struct Places {
    tasks: JoinSet<()>,
    uses: HashMap<tokio::task::Id, (Arc<Use>, AbortHandle)>,
}

impl Places {
    fn take(&mut self, connection: impl Future<Output = ()> + Send + 'static, used: Arc<Use>) {
        let handle = self.tasks.spawn(connection);
        self.uses.insert(handle.id(), (used, handle));
    }

    fn ended(&mut self, outcome: Result<(tokio::task::Id, ()), JoinError>) {
        let id = outcome.map_or_else(|error| error.id(), |(id, ())| id);
        self.uses.remove(&id);
    }

    /// Closes the connection that is idle longest, if one is, and waits for the first that ends.
    async fn free_one(&mut self) {
        let idle = self.uses.values().filter_map(|(used, handle)| {
            let since = *used.idle_since.lock();
            since.map(|since| (since, handle))
        });
        if let Some((_, handle)) = idle.min_by_key(|(since, _)| *since) {
            CLOSED_FOR_NEWCOMERS.fetch_add(1, Ordering::Relaxed);
            handle.abort();
        }
        if let Some(outcome) = self.tasks.join_next_with_id().await {
            self.ended(outcome);
        }
    }
}

async fn accept(listener: TcpListener, router: Router, limits: Limits, mut stopped: watch::Receiver<bool>) {
    let mut places = Places::default();
    loop {
        let (stream, client) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of descriptors, most likely: accepting again at once would only spin.
                    tracing::warn!(%error, "admin endpoint cannot accept");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            _ = stopped.changed() => break,
        };
        while let Some(outcome) = places.tasks.try_join_next_with_id() {
            places.ended(outcome);
        }
        while places.uses.len() >= limits.connections.max(1) {
            tokio::select! {
                () = places.free_one() => {}
                _ = stopped.changed() => break,
            }
        }
        if *stopped.borrow() {
            break;
        }
        let used = Use::new();
        let connection = connection(
            (stream, client),
            router.clone(),
            limits,
            used.clone(),
            stopped.clone(),
        );
        places.take(connection, used);
    }
    drop(listener);
    let drained = async { while places.tasks.join_next().await.is_some() {} };
    // What has not ended by then is cut off with the set.
    let _ = tokio::time::timeout(limits.drain, drained).await;
}

async fn connection(
    (stream, client): (TcpStream, SocketAddr),
    router: Router,
    limits: Limits,
    used: Arc<Use>,
    mut stopped: watch::Receiver<bool>,
) {
    let router = TowerToHyperService::new(router);
    let service = hyper::service::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(super::standing::Client(client));
        let (answer, used) = (router.call(request), used.clone());
        async move {
            used.begin();
            let answer = answer.await;
            used.end();
            answer
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // How a connection ends is of no interest: clients of an admin endpoint come and go.
    let ended = tokio::select! {
        _ = connection.as_mut() => true,
        _ = stopped.changed() => false,
    };
    if !ended {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}
