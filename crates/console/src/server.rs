//! The server for browsers: HTTP/1.1, over TLS where files are set. Unlike an admin endpoint it may be reached by strangers: each
//! address has a bounded number of connections, and each step of a connection a bounded time.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::Service as _;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use tls::ServerTls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use worker::Shutdown;

use crate::metrics::Meters;

/// Connections at the same time.
const MOST: usize = 512;
/// Connections of one address: a browser opens six, and several people may share an address.
const MOST_OF_ADDRESS: usize = 128;
/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long the head of a request may take, the wait for it included.
const HEAD: Duration = Duration::from_secs(30);
/// Bytes of the head of a request; more is answered 431.
const HEAD_BYTES: usize = 16 * 1_024;
/// How long requests in flight may take during a stop.
const DRAIN: Duration = Duration::from_secs(1);

/// The address of the client of a request: an extension of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client(pub(crate) SocketAddr);

/// Accepts connections until the shutdown, then lets requests in flight finish for a moment.
pub(crate) async fn serve(
    listener: std::net::TcpListener,
    tls: Option<ServerTls>,
    router: Router,
    meters: Arc<Meters>,
    shutdown: Shutdown,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let (stop, stopped) = watch::channel(false);
    let places = Places::default();
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.fired() => break,
        };
        while connections.try_join_next().is_some() {}
        let (stream, client) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, most likely: accepting again at once would only spin.
                tracing::warn!(%error, "the console cannot accept");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Some(place) = places.take(client.ip().to_canonical()) else {
            meters.refused_connections.inc();
            continue;
        };
        let (router, tls, stopped, meters) = (router.clone(), tls.clone(), stopped.clone(), meters.clone());
        connections.spawn(async move {
            let _place = place;
            if welcome(stream, client, tls, router, stopped).await.is_err() {
                meters.failed_handshakes.inc();
            }
        });
    }
    drop(listener);
    stop.send_replace(true);
    let drained = async { while connections.join_next().await.is_some() {} };
    // What has not ended by then is cut off with the set.
    let _ = tokio::time::timeout(DRAIN, drained).await;
    Ok(())
}

/// Serves a connection, behind its handshake where TLS is set; an error is one of the handshake.
async fn welcome(
    stream: TcpStream,
    client: SocketAddr,
    tls: Option<ServerTls>,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) -> io::Result<()> {
    let Some(tls) = tls else {
        carry(stream, client, router, stopped).await;
        return Ok(());
    };
    let handshake = TlsAcceptor::from(tls.load()).accept(stream);
    let made = tokio::select! {
        made = tokio::time::timeout(HANDSHAKE, handshake) => made,
        _ = stopped.changed() => return Ok(()),
    };
    let stream = made.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    carry(stream, client, router, stopped).await;
    Ok(())
}

async fn carry(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    client: SocketAddr,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) {
    let router = TowerToHyperService::new(router);
    let service = hyper::service::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(Client(client));
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // How a connection ends is of no interest: browsers come and go.
    let ended = tokio::select! {
        _ = connection.as_mut() => true,
        _ = stopped.changed() => false,
    };
    if !ended {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

/// Open connections by address.
#[derive(Clone, Debug, Default)]
struct Places(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A place among the connections; free again when dropped.
#[derive(Debug)]
struct Place {
    places: Places,
    address: IpAddr,
}

impl Places {
    fn take(&self, address: IpAddr) -> Option<Place> {
        let mut open = self.0.lock();
        if open.values().sum::<usize>() >= MOST {
            return None;
        }
        let own = open.entry(address).or_default();
        if *own >= MOST_OF_ADDRESS {
            return None;
        }
        *own += 1;
        Some(Place {
            places: self.clone(),
            address,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.places.0.lock();
        if let Some(own) = open.get_mut(&self.address) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_cannot_take_all_connections_and_all_of_them_have_a_bound() {
        let places = Places::default();
        let address = |n: u32| IpAddr::from(n.to_be_bytes());
        let own: Vec<Place> = (0..MOST).map_while(|_| places.take(address(1))).collect();
        assert_eq!(own.len(), MOST_OF_ADDRESS);
        let others: Vec<Place> = (2..10_000).map_while(|n| places.take(address(n))).collect();
        assert_eq!(own.len() + others.len(), MOST);
        drop(own);
        assert!(places.take(address(1)).is_some());
        drop(others);
        assert!(places.0.lock().is_empty());
    }
}
