//! How associations begin: peers that connect, and peers to connect to.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use function::Shutdown;
use ss7_proto::m3ua::PORT;
use ss7_proto::{ipa, m2pa};
use tokio::net::{TcpListener, TcpStream};

use super::sctp::{Sctp, SctpListener};
use super::socket::Socket;
use super::{Desk, carry};
use crate::config::{Link, Role, Transport};

/// How long a peer may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// Accepts TCP connections of peers until the task is aborted.
pub(crate) async fn accept(listener: TcpListener, desk: Rc<Desk>, shutdown: Shutdown) {
    loop {
        let accepted = listener.accept().await.and_then(|(stream, peer)| {
            stream.set_nodelay(true)?;
            Ok((Socket::Tcp(stream), peer))
        });
        admit(accepted, Transport::Tcp, &desk, &shutdown).await;
    }
}

/// Accepts SCTP associations of peers until the task is aborted.
pub(crate) async fn accept_sctp(listener: SctpListener, desk: Rc<Desk>, shutdown: Shutdown) {
    loop {
        let accepted = listener.accept().await;
        let accepted = accepted.map(|(sctp, peer)| (Socket::Sctp(sctp), peer));
        admit(accepted, Transport::Sctp, &desk, &shutdown).await;
    }
}

/// A connection belongs to the link with the address of its peer, or is refused.
async fn admit(
    accepted: io::Result<(Socket, SocketAddr)>,
    transport: Transport,
    desk: &Rc<Desk>,
    shutdown: &Shutdown,
) {
    let (socket, peer) = match accepted {
        Ok(accepted) => accepted,
        Err(error) => {
            // Without descriptors the next attempt would fail at once.
            tracing::warn!(%error, "connection not accepted");
            tokio::time::sleep(Duration::from_millis(100)).await;
            return;
        }
    };
    let state = desk.control.state.load_full();
    let (ip, port) = (peer.ip().to_canonical(), peer.port());
    let fits = |link: &Link| {
        !link.connect
            && link.transport == transport
            && link.peer.contains(&ip)
            && link.port.is_none_or(|wanted| wanted == port)
    };
    let Some(link) = state.tables.links.iter().position(fits) else {
        state.meters.connections.refused.inc();
        tracing::debug!(%peer, "connection refused: the address is that of no link");
        return;
    };
    state.meters.connections.accepted.inc();
    let (desk, shutdown) = (desk.clone(), shutdown.clone());
    tokio::task::spawn_local(async move { carry(&desk, link, socket, peer, &shutdown).await });
}

/// Keeps a link connected that this STP connects.
pub(crate) async fn connect(link: usize, desk: Rc<Desk>, shutdown: Shutdown) {
    let mut attempt = 0;
    while !shutdown.has_fired() {
        let settings = desk.control.state.load().tables.links.get(link).cloned();
        let Some(settings) = settings else { return };
        match connected(&settings, attempt).await {
            Ok((socket, peer)) => {
                desk.control.state.load().meters.connections.connected.inc();
                carry(&desk, link, socket, peer, &shutdown).await;
            }
            Err(error) => {
                desk.control.state.load().meters.connections.failed.inc();
                desk.control
                    .disassociated(link, &format!("this STP cannot connect: {error}"));
            }
        }
        attempt += 1;
        let pause = desk.live.load().config.reconnect.duration();
        tokio::select! {
            () = shutdown.fired() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Connects to one address of the peer after another; over SCTP to all, that one first.
async fn connected(link: &Link, attempt: usize) -> io::Result<(Socket, SocketAddr)> {
    let at = attempt.checked_rem(link.peer.len());
    let address = at.and_then(|at| link.peer.get(at));
    let address = address.ok_or_else(|| io::Error::other("the peer has no address"))?;
    let port = match link.role {
        Role::M2pa => m2pa::PORT,
        Role::Ipa => ipa::PORT,
        Role::Sgp | Role::Asp | Role::Ipsp => PORT,
    };
    let address = SocketAddr::new(*address, link.port.unwrap_or(port));
    match link.transport {
        Transport::Sctp => {
            // The address in turn is the first to be tried; the others are further paths to the same peer.
            let port = address.port();
            let others = link
                .peer
                .iter()
                .filter(|ip| **ip != address.ip() && ip.is_ipv4() == address.is_ipv4());
            let mut all = vec![address];
            all.extend(others.map(|ip| SocketAddr::new(*ip, port)));
            let sctp = tokio::time::timeout(CONNECT, Sctp::connect(&all)).await??;
            Ok((Socket::Sctp(sctp), address))
        }
        Transport::Tcp => {
            let stream = tokio::time::timeout(CONNECT, TcpStream::connect(address)).await??;
            stream.set_nodelay(true)?;
            Ok((Socket::Tcp(stream), address))
        }
    }
}
