//! A worker's listeners: they accept connections while the front end is active, and select a processor or server for
//! each.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use function::live::Live;
use telemetry::{AlarmKind, Alarms, Severity};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::backend::{Full, Set, Side, State};
use crate::config::{Config, Handshakes};
use crate::handshakes::HalfOpen;
use crate::metrics::Counters;
use crate::pair::{Listening, Pairing, Role};
use crate::proxy::announce;
use crate::splice::{bound_silence, carry};

/// After accepting or binding failed (no descriptors left, usually), the next attempt comes after this time.
const PAUSE: Duration = Duration::from_millis(100);

/// No address of a server accepts connections. The number is ours.
pub(crate) const SERVER_UNAVAILABLE: AlarmKind = AlarmKind {
    number: 10515,
    name: "IPFE Server Unavailable",
    severity: Severity::Major,
    text: "A server of an egress set accepts no connections at any of its addresses.",
    advice: "Check that the server runs, and that it admits the address in `egressSets[].from`.",
};
/// An address of this front end is not configured on this machine. The number is ours.
pub(crate) const ADDRESS_UNAVAILABLE: AlarmKind = AlarmKind {
    number: 10516,
    name: "IPFE Address Unavailable",
    severity: Severity::Critical,
    text: "The active front end of a pair cannot listen at an address of its sets.",
    advice: "Check what `pair.takeover` does, and whether another program has the address; the log has the reason.",
};

/// Shared state of the connections of a worker.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) counters: Counters,
    pub(crate) live: Arc<Live<Config, ()>>,
    pub(crate) alarms: Alarms,
    pub(crate) pairing: Arc<Pairing>,
}

/// The origin of a listener.
#[derive(Debug)]
pub(crate) enum Origin {
    /// It was bound at the start.
    Bound(std::net::TcpListener),
    /// It is bound when the front end becomes active.
    Address(SocketAddr),
}

/// Accepts connections of a set, for a front end of a pair whenever it is active.
pub(crate) fn listen(origin: Origin, set: Arc<Set>, desk: Rc<Desk>) -> JoinHandle<io::Result<()>> {
    tokio::task::spawn_local(async move {
        let address = match origin {
            Origin::Bound(listener) => {
                let listening = desk.pairing.listening();
                return accept(TcpListener::from_std(listener)?, &set, &desk, listening).await;
            }
            Origin::Address(address) => address,
        };
        let mut role = desk.pairing.follow();
        loop {
            if role.wait_for(|role| *role == Role::Active).await.is_err() {
                return Ok(());
            }
            tokio::select! {
                _ = role.wait_for(|role| *role == Role::Standby) => {}
                ended = bind_and_accept(address, &set, &desk) => return ended,
            }
        }
    })
}

async fn bind_and_accept(address: SocketAddr, set: &Arc<Set>, desk: &Rc<Desk>) -> io::Result<()> {
    let instance = format!("{address} of {}", set.name);
    let listener = loop {
        match worker::bind(address) {
            Ok(listener) => break listener,
            Err(error) => {
                tracing::debug!(%address, %error, "cannot listen yet");
                desk.alarms
                    .set(&ADDRESS_UNAVAILABLE, &instance, Some(error.to_string()));
                tokio::time::sleep(PAUSE).await;
            }
        }
    };
    desk.alarms.clear(&ADDRESS_UNAVAILABLE, &instance);
    let listening = desk.pairing.listening();
    accept(TcpListener::from_std(listener)?, set, desk, listening).await
}

async fn accept(
    listener: TcpListener,
    set: &Arc<Set>,
    desk: &Rc<Desk>,
    _listening: Listening,
) -> io::Result<()> {
    loop {
        match listener.accept().await {
            Ok((client, remote)) => {
                if !set.admits(remote.ip()) {
                    desk.counters.network.inc();
                    tracing::info!(%remote, set = set.name, "client refused: outside of `processors`");
                    continue;
                }
                let admitted = match set.admit(remote.ip()) {
                    Ok(admitted) => admitted,
                    Err(Full::Set) => {
                        desk.counters.full.inc();
                        continue;
                    }
                    Err(Full::Address) => {
                        desk.counters.address.inc();
                        continue;
                    }
                };
                desk.counters.accepted.inc();
                let (set, desk, role) = (set.clone(), desk.clone(), desk.pairing.follow());
                tokio::task::spawn_local(async move {
                    let _admitted = admitted;
                    if let Err(error) = serve_while_active(client, &set, &desk, role).await {
                        tracing::debug!(%remote, %error, "connection ended");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "connections cannot be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// A connection ends when its address moves to the mate: the client's packets would arrive at another machine.
async fn serve_while_active(
    client: TcpStream,
    set: &Arc<Set>,
    desk: &Desk,
    mut role: watch::Receiver<Role>,
) -> io::Result<()> {
    tokio::select! {
        ended = serve(client, set, desk) => ended,
        _ = role.wait_for(|role| *role == Role::Standby) => Ok(()),
    }
}

/// The first byte of a client, which is not taken from its connection. None: the front end closes the connection.
async fn first_byte(
    client: &TcpStream,
    set: &Set,
    desk: &Desk,
    bounds: &Handshakes,
) -> io::Result<Option<HalfOpen>> {
    let counters = &desk.counters;
    let Some(half_open) = set.handshakes.begin(client.peer_addr()?.ip(), bounds) else {
        counters.handshakes.inc();
        return Ok(None);
    };
    let mut byte = [0];
    tokio::select! {
        read = tokio::time::timeout(bounds.silence.duration(), client.peek(&mut byte)) => match read {
            // It has closed without a byte, as a check of a load balancer does.
            Ok(Ok(0)) => return Ok(None),
            Ok(read) => read?,
            Err(_) => {
                counters.silent.inc();
                return Ok(None);
            }
        },
        () = half_open.dropped() => {
            counters.dropped.inc();
            return Ok(None);
        }
    };
    half_open.spoke();
    Ok(Some(half_open))
}

/// Selects a processor or server for a connection and relays it to its end.
async fn serve(client: TcpStream, set: &Arc<Set>, desk: &Desk) -> io::Result<()> {
    let config = desk.live.load().config.clone();
    let counters = &desk.counters;
    let half_open = match set.side {
        Side::Egress => None,
        // Known at once: the client goes elsewhere without waiting.
        Side::Ingress if !set.is_available() => {
            counters.unavailable.inc();
            return Ok(());
        }
        Side::Ingress => match first_byte(&client, set, desk, &config.handshakes).await? {
            None => return Ok(()),
            half_open => half_open,
        },
    };
    let mut tried = Vec::new();
    // The front end closes without a byte: the client reconnects, here or elsewhere.
    while let Some(counted) = set.choose(&tried) {
        let attempt = connect(counted.backend.address, set.behind().from);
        let attempt = tokio::time::timeout(config.connect.duration(), attempt).await;
        let connected = attempt.map_err(io::Error::from).and_then(|connected| connected);
        if set.side == Side::Egress {
            counted.backend.found(connected.is_ok().then_some(State::Up), 1);
        }
        match connected {
            Ok(mut backend) => {
                if set.side == Side::Egress {
                    desk.alarms.clear(&SERVER_UNAVAILABLE, &set.name);
                }
                client.set_nodelay(true)?;
                backend.set_nodelay(true)?;
                for side in [&client, &backend] {
                    bound_silence(side, config.silence.duration())?;
                }
                if counted.backend.announces {
                    announce(&client, &mut backend).await?;
                }
                let linger = config.linger.duration();
                return carry(&client, &backend, &counted.backend.bytes, linger, half_open).await;
            }
            Err(error) => {
                tracing::debug!(address = %counted.backend.address, %error, "no connection");
                counters.retried.inc();
                tried.push(counted.backend.address);
            }
        }
    }
    if set.side == Side::Egress {
        let detail = "the server refused the connection of a message processor".to_owned();
        desk.alarms.set(&SERVER_UNAVAILABLE, &set.name, Some(detail));
    }
    counters.unavailable.inc();
    Ok(())
}

/// Connects, from an address of ours if one is given.
async fn connect(to: SocketAddr, from: Option<IpAddr>) -> io::Result<TcpStream> {
    let Some(from) = from else {
        return TcpStream::connect(to).await;
    };
    let socket = match to {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::new(from, 0))?;
    socket.connect(to).await
}
