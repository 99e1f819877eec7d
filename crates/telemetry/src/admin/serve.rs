//! The server behind the admin pages, within bounds.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

/// Bounds of an admin endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at the same time; more wait to be accepted.
    pub connections: usize,
    /// How long the head of a request may take, the wait for it included: slow and idle connections end.
    pub head: Duration,
    /// How long requests in flight may take once it is told to stop.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            head: Duration::from_secs(30),
            drain: Duration::from_secs(1),
        }
    }
}

/// A running admin endpoint. It ends when told to, or with its runtime.
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
    let address = listener.local_addr()?;
    let (stop, stopped) = watch::channel(false);
    let task = tokio::spawn(accept(listener, router, limits, stopped));
    Ok(Serving { address, stop, task })
}

async fn accept(listener: TcpListener, router: Router, limits: Limits, mut stopped: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    loop {
        // The semaphore is never closed: the permit is always got.
        let permit = tokio::select! {
            permit = room.clone().acquire_owned() => permit,
            _ = stopped.changed() => break,
        };
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of descriptors, most likely: accepting again at once would only spin.
                    tracing::warn!(%error, "admin endpoint cannot accept");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            _ = stopped.changed() => break,
        };
        let connection = connection(stream, router.clone(), limits, stopped.clone());
        connections.spawn(async move {
            connection.await;
            drop(permit);
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    // What has not ended by then is cut off with the set.
    let _ = tokio::time::timeout(limits.drain, drained).await;
}

async fn connection(stream: TcpStream, router: Router, limits: Limits, mut stopped: watch::Receiver<bool>) {
    let service = TowerToHyperService::new(router);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
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
