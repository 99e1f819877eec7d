use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use worker::Shutdown;

use super::config::ServerConfig;
use super::connection::{self, Shared};
use super::places::{Displaced, Places, Refused, Seat};
use super::stats::{ServerStats, count, uncount};
use crate::memory::Memory;
use crate::message::{Peer, Service};
use crate::tls::{self, ServerTls};

/// Serves connections of `listener` until `shutdown` fires; then finishes the requests in progress, at most
/// for the configured time. To be called inside a worker (a `LocalSet`).
///
/// # Errors
/// When the listener itself fails.
pub async fn serve<S: Service>(
    listener: std::net::TcpListener,
    service: Rc<S>,
    config: Arc<ServerConfig>,
    tls: Option<ServerTls>,
    stats: Arc<ServerStats>,
    shutdown: Shutdown,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let drain = config.drain_timeout.duration();
    let memory = Memory::of_worker();
    memory.attend(config.max_memory.as_usize(), &stats);
    let places = Rc::new(Places::default());
    let shared = Rc::new(Shared {
        service,
        config,
        stats,
        shutdown: shutdown.clone(),
    });
    let mut connections = JoinSet::new();
    let mut number = 0;
    loop {
        let (stream, addr) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of file descriptors, or the peer has gone already: others may still be served.
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            },
            Some(_) = connections.join_next() => continue,
            () = shutdown.fired() => break,
        };
        let stats = &shared.stats;
        let seat = match places.admit(addr.ip(), &shared.config, &memory, Instant::now()) {
            Ok((seat, displaced)) => {
                match displaced {
                    Some(Displaced::Idle) => count(&stats.connections_displaced),
                    Some(Displaced::HalfOpen) => count(&stats.handshakes_displaced),
                    None => {}
                }
                seat
            }
            Err(Refused::Full) => {
                count(&stats.connections_refused);
                continue;
            }
            Err(Refused::Address) => {
                count(&stats.connections_refused_address);
                continue;
            }
        };
        number += 1;
        count(&shared.stats.connections_accepted);
        let shared = shared.clone();
        let acceptor = tls.as_ref().map(|tls| TlsAcceptor::from(tls.load()));
        connections.spawn_local(async move {
            let _open = Open::count(&shared.stats);
            accepted(stream, addr, number, &shared, acceptor, seat).await;
        });
    }
    drop(listener);
    // Connections that are still there after the time for it end with the set.
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(drain, all).await.is_err() {
        tracing::warn!(?drain, "requests were still in progress when the server stopped");
    }
    Ok(())
}

/// Counts a connection as open, however it ends.
struct Open(Arc<ServerStats>);

impl Open {
    fn count(stats: &Arc<ServerStats>) -> Self {
        count(&stats.connections_open);
        Self(stats.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        uncount(&self.0.connections_open);
    }
}

async fn accepted<S: Service>(
    stream: TcpStream,
    addr: SocketAddr,
    connection: u64,
    shared: &Rc<Shared<S>>,
    acceptor: Option<TlsAcceptor>,
    seat: Seat,
) {
    // Small frames must not wait for one another (Nagle); a socket that refuses the option still works.
    let _ = stream.set_nodelay(true);
    let Ok(local) = stream.local_addr() else { return };
    let mut peer = Peer {
        addr,
        local,
        tls: None,
        connection,
    };
    let timeout = shared.config.handshake_timeout.duration();
    let Some(acceptor) = acceptor else {
        return connection::drive(stream, Rc::new(peer), shared, seat).await;
    };
    let made = tokio::select! {
        made = tokio::time::timeout(timeout, acceptor.accept(stream)) => made,
        () = seat.activity().account().has_to_do_something() => return,
    };
    match made {
        Ok(Ok(stream)) => {
            peer.tls = Some(tls::peer_of(stream.get_ref().1));
            connection::drive(stream, Rc::new(peer), shared, seat).await;
        }
        Ok(Err(error)) => {
            count(&shared.stats.handshakes_failed);
            tracing::debug!(%addr, %error, "TLS handshake failed");
        }
        Err(_) => count(&shared.stats.handshakes_failed),
    }
}
