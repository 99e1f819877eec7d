use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sbi_proto::{GivenUp, Peer, Service};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use worker::Shutdown;

use super::config::ServerConfig;
use super::connection::{self, Shared};
use super::http1;
use super::places::{Displaced, Places, Refused, Seat};
use super::preface::{self, Opening};
use crate::link::{self, FRAME_SIZE, LINGER, Socket};
use crate::memory::Memory;
use crate::stats::{ServerStats, count, uncount};
use crate::tls::{self, ServerTls};
use crate::wire::Wire;

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
        engine: Arc::new(engine_config(&config)),
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
                    // The process has no file descriptors left, or the peer has closed already: other connections may
                    // still be served.
                    tracing::warn!(%error, "failed to accept a connection");
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
        tracing::warn!(?drain, "server stopped with requests in flight");
    }
    Ok(())
}

/// The limits that the engine enforces.
fn engine_config(config: &ServerConfig) -> http2::Config {
    http2::Config {
        max_concurrent_streams: config.max_concurrent_streams,
        max_header_list: config.max_header_list.as_usize(),
        // The engine counts pseudo-header fields, of which a request has four.
        max_header_fields: config.max_header_fields as usize + 4,
        max_body: config.max_body.as_usize(),
        max_arriving: config.max_arriving.as_usize(),
        max_frame_size: FRAME_SIZE,
        max_reset_rate: config.max_reset_rate,
        max_control_rate: config.max_control_rate,
        max_window_update_rate: config.max_window_update_rate,
        max_error_resets: config.max_error_resets,
        ..http2::Config::default()
    }
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
    // IPv4 peers of a listener that takes both families are known by their own address.
    let plain = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let mut peer = Peer {
        addr: plain(addr),
        local: plain(local),
        tls: None,
        connection,
        given_up: GivenUp::default(),
    };
    let timeout = shared.config.handshake_timeout.duration();
    let socket = async {
        let mut socket = match acceptor {
            None => Socket::Clear(Wire::Task(stream)),
            Some(acceptor) => {
                let stream = acceptor.accept(Wire::Task(stream)).await.map_err(|error| {
                    tracing::debug!(%addr, %error, "TLS handshake failed");
                })?;
                peer.tls = Some(tls::peer_of(stream.get_ref().1));
                Socket::Tls(Box::new(stream.into()))
            }
        };
        let opening = preface::read(&mut socket).await.map_err(|_| ())?;
        Ok::<_, ()>((socket, opening))
    };
    let account = seat.activity().account().clone();
    let made = tokio::select! {
        made = tokio::time::timeout(timeout, socket) => made,
        () = account.has_to_do_something() => return,
    };
    match made {
        Ok(Ok((socket, Opening::Http2(came)))) => {
            connection::drive(socket, came, Rc::new(peer), shared, seat).await;
        }
        Ok(Ok((socket, Opening::Http1(came)))) if shared.service.has_http1() => {
            http1::drive(socket, came, peer, shared, seat).await;
        }
        Ok(Ok((mut socket, Opening::Http1(_)))) => {
            count(&shared.stats.connections_http1);
            let answer = http1::answer(&peer, &shared.service.about());
            let last_words = async {
                if socket.write_all(&answer).await.is_ok() {
                    link::linger(&mut socket).await;
                }
            };
            tokio::select! {
                _ = tokio::time::timeout(LINGER.1, last_words) => {}
                () = account.has_to_do_something() => {}
            }
        }
        Ok(Ok((_, Opening::Other)) | Err(())) | Err(_) => count(&shared.stats.handshakes_failed),
    }
}
