//! Connections: accepted, made, secured, transferred between workers, ended.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::BytesMut;
use diameter_proto::frame::FrameError;
use diameter_proto::peer::{Input, Side};
use diameter_proto::{Fault, ResultCode};
use ipnet::IpNet;
use rustls::pki_types::ServerName;
use rustls::server::ParsedCertificate;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::application::{Application, NodeEvent, UnansweredReason};
use super::io::Io;
use super::{Link, Node};
use crate::config::{PeerConfig, Security, TlsConfig};
use crate::connection::{Connection, ConnectionId, Ending};
use crate::directory::Handover;
use crate::transport::tls::TlsStream;
use crate::transport::{self, BoundListener, Stream, proxy};

/// Pause after a failed accept (no descriptors left, usually).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Properties of a peer that TLS has shown.
#[derive(Debug)]
pub(super) struct TlsPeer {
    /// The peer's own certificate, when it has sent one.
    certificate: Option<rustls::pki_types::CertificateDer<'static>>,
}

impl<A: Application> Node<A> {
    /// Accepts connections from `listener` until the node stops.
    ///
    /// # Errors
    /// When the runtime does not take the socket.
    pub fn listen(&self, listener: BoundListener, security: Security) -> io::Result<()> {
        self.listen_behind(listener, security, Vec::new())
    }

    /// As [`Node::listen`], where front ends in these networks send the PROXY header of each client's connection. A
    /// connection from there without one is closed; one from elsewhere has none.
    ///
    /// # Errors
    /// When the runtime does not take the socket.
    pub fn listen_behind(
        &self,
        listener: BoundListener,
        security: Security,
        front_ends: Vec<IpNet>,
    ) -> io::Result<()> {
        let listener = listener.into_listener()?;
        let node = self.clone();
        let task = tokio::task::spawn_local(async move {
            loop {
                match listener.accept().await {
                    Ok((Stream::Tcp(tcp), remote, local)) if contains(&front_ends, remote) => {
                        node.accepted_from_front_end(tcp, remote, local, &security);
                    }
                    Ok((stream, remote, local)) => {
                        node.contained(Some(remote), || node.accepted(stream, remote, local, &security));
                    }
                    Err(error) => {
                        node.app().event(&node, NodeEvent::AcceptFailed { error: &error });
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        });
        self.0.tasks.borrow_mut().push(task);
        Ok(())
    }

    /// Reads the PROXY header of a front end, then goes on with the client's address. The front end sends it at once, so
    /// few are pending; a bound holds all the same.
    fn accepted_from_front_end(
        &self,
        mut tcp: TcpStream,
        remote: SocketAddr,
        local: SocketAddr,
        security: &Security,
    ) {
        if self.0.announcing.get() >= self.limits().handshakes {
            let limit = "handshakes";
            return self.app().event(self, NodeEvent::LimitReached { remote, limit });
        }
        self.0.announcing.set(self.0.announcing.get() + 1);
        let (node, security) = (self.clone(), security.clone());
        tokio::task::spawn_local(async move {
            let read = tokio::time::timeout(node.limits().handshake, proxy::read(&mut tcp)).await;
            node.0.announcing.set(node.0.announcing.get().saturating_sub(1));
            match read.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(announced) => {
                    let (remote, local) = announced.unwrap_or((remote, local));
                    let stream = Stream::Tcp(tcp);
                    node.contained(Some(remote), || node.accepted(stream, remote, local, &security));
                }
                // It has checked whether this node listens.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
                Err(error) => {
                    let error = &error;
                    node.app()
                        .event(&node, NodeEvent::NoProxyHeader { remote, error });
                }
            }
        });
    }

    fn accepted(&self, stream: Stream, remote: SocketAddr, local: SocketAddr, security: &Security) {
        self.refresh();
        if let Err(limit) = self.check_limits(remote) {
            // No answer either: a flood must not cost answers.
            self.app().event(self, NodeEvent::LimitReached { remote, limit });
            return;
        }
        let stream = match (stream, security) {
            (Stream::Tcp(tcp), Security::Tls(tls)) => match rustls::ServerConnection::new(tls.server()) {
                Ok(session) => Stream::Tls(Box::new(TlsStream::new(tcp, session.into(), BytesMut::new()))),
                Err(error) => {
                    let error = io::Error::other(error);
                    return self.app().event(self, NodeEvent::AcceptFailed { error: &error });
                }
            },
            (stream, _) => stream,
        };
        let connection = self.add_connection(stream, BytesMut::new(), remote, local, security.clone());
        self.handshake_begins(&connection);
    }

    fn check_limits(&self, remote: SocketAddr) -> Result<(), &'static str> {
        let limits = self.limits();
        if self.0.connections.borrow().len() >= limits.connections {
            return Err("connections");
        }
        let oldest = |most| self.0.handshakes.borrow().oldest(remote.ip(), most);
        if let Some(oldest) = oldest(limits.handshakes_per_address) {
            // A peer sends its CER at once, so that the newest have the best reason to be here: behind a front end or an
            // address translation silent and slow clients would otherwise keep all others of their address out.
            let limit = "handshakes_per_address";
            self.app().event(self, NodeEvent::LimitReached { remote, limit });
            if let Some(connection) = self.connection(oldest) {
                self.handshake_done(&connection);
                connection.end(Ending::Now);
            }
        }
        if self.0.handshakes.borrow().total() >= limits.handshakes {
            return Err("handshakes");
        }
        Ok(())
    }

    /// An accepted connection has sent a valid CER, or is closed.
    pub(super) fn handshake_done(&self, connection: &Connection<A::State>) {
        if connection.in_handshake.take() {
            let mut handshakes = self.0.handshakes.borrow_mut();
            handshakes.ends(connection.remote().ip(), connection.id());
        }
    }

    /// Counts an accepted connection, until [`Node::handshake_done`].
    fn handshake_begins(&self, connection: &Connection<A::State>) {
        connection.in_handshake.set(true);
        let mut handshakes = self.0.handshakes.borrow_mut();
        handshakes.begins(connection.remote().ip(), connection.id());
    }

    /// Registers a connection and starts its task.
    fn add_connection(
        &self,
        stream: Stream,
        read: BytesMut,
        remote: SocketAddr,
        local: SocketAddr,
        security: Security,
    ) -> Rc<Connection<A::State>> {
        let generation = self.0.next_generation.get().wrapping_add(1);
        self.0.next_generation.set(generation);
        let connection = {
            let mut connections = self.0.connections.borrow_mut();
            let entry = connections.vacant_entry();
            let id = ConnectionId {
                slot: entry.key() as u32,
                generation,
            };
            let connection = Connection::new(id, remote, local, self.now(), self.limits().queue);
            entry.insert(Link {
                connection: connection.clone(),
                security,
                tls: None,
            });
            connection
        };
        tokio::task::spawn_local(Io::new(self.clone(), connection.clone(), stream, read).run());
        connection
    }

    pub(super) fn spawn_connect(&self, key: usize) {
        let Some(config) = self.with_slot(key, |slot| slot.config.clone()).flatten() else {
            return;
        };
        let node = self.clone();
        let task = tokio::task::spawn_local(async move {
            let outcome = node.try_addresses(&config).await;
            node.refresh();
            node.with_slot(key, |slot| slot.connecting = None);
            match outcome {
                Ok((stream, remote, local)) => {
                    let connection =
                        node.add_connection(stream, BytesMut::new(), remote, local, config.security.clone());
                    node.peer_connected(key, &connection);
                }
                Err(error) => {
                    node.app().event(
                        &node,
                        NodeEvent::ConnectFailed {
                            host: &config.host,
                            error: &error,
                        },
                    );
                    node.drive(key, Input::ConnectFailed, None);
                }
            }
        });
        self.with_slot(key, |slot| slot.connecting = Some(task));
    }

    async fn try_addresses(&self, config: &PeerConfig) -> io::Result<(Stream, SocketAddr, SocketAddr)> {
        let mut last = io::Error::new(io::ErrorKind::InvalidInput, "the peer has no address");
        let timeout = config.settings.connect_timeout;
        let mut addresses = config.addresses.clone();
        if let Some(lookup) = &config.lookup {
            let found = tokio::time::timeout(timeout, lookup.find()).await;
            addresses.extend(found.unwrap_or_default());
        }
        let end_points = transport::end_points(&addresses, config.transport);
        let share = timeout / end_points.len().max(1) as u32;
        for end_point in end_points {
            let Some(address) = end_point.first().copied() else {
                continue;
            };
            let attempt = transport::connect(config.transport, &end_point, &config.bind);
            match tokio::time::timeout(share, attempt).await {
                Ok(Ok((stream, local))) => {
                    let stream = match (&config.security, stream) {
                        (Security::Tls(tls), Stream::Tcp(tcp)) => {
                            Stream::Tls(Box::new(client_session(tls, &config.host, tcp, BytesMut::new())?))
                        }
                        (_, stream) => stream,
                    };
                    return Ok((stream, address, local));
                }
                Ok(Err(error)) => last = error,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(last)
    }

    /// The handshake is complete, or none was needed.
    pub(crate) fn secured(
        &self,
        connection: &Rc<Connection<A::State>>,
        tls: Option<&TlsStream>,
    ) -> io::Result<()> {
        let Some(tls) = tls else { return Ok(()) };
        self.refresh();
        let certificate = tls
            .session()
            .peer_certificates()
            .and_then(|chain| chain.first())
            .map(|leaf| leaf.clone().into_owned());
        if let Some(link) = self
            .0
            .connections
            .borrow_mut()
            .get_mut(connection.id().slot as usize)
        {
            link.tls = Some(TlsPeer { certificate });
        }
        if let Some(host) = connection.binding.get().and_then(|(key, side)| {
            // A server's certificate was checked against the name when we connected to it.
            (side == Side::Responder)
                .then(|| self.with_slot(key, |slot| slot.machine.settings().host.clone()))
        }) && let Some(Some(host)) = host
        {
            self.check_certificate(connection, &host)
                .map_err(io::Error::other)?;
        }
        self.announce_secured(connection);
        Ok(())
    }

    pub(super) fn is_tls(&self, connection: &Connection<A::State>) -> bool {
        let connections = self.0.connections.borrow();
        connections
            .get(connection.id().slot as usize)
            .is_some_and(|link| link.tls.is_some())
    }

    /// Checks that a client's certificate contains its Origin-Host (RFC 6733 §13.1): otherwise any holder of a
    /// certificate of the same authority could act as any peer.
    pub(super) fn check_certificate(
        &self,
        connection: &Connection<A::State>,
        host: &str,
    ) -> Result<(), Fault> {
        let connections = self.0.connections.borrow();
        let Some(link) = connections.get(connection.id().slot as usize) else {
            return Ok(());
        };
        let (
            Some(TlsPeer {
                certificate: Some(certificate),
            }),
            Security::Tls(tls) | Security::Inband(tls),
        ) = (&link.tls, &link.security)
        else {
            return Ok(());
        };
        if !tls.match_identity {
            return Ok(());
        }
        let wrong = |what: String| Fault::new(ResultCode::UNKNOWN_PEER, what);
        let parsed = ParsedCertificate::try_from(certificate)
            .map_err(|error| wrong(format!("the certificate cannot be read: {error}")))?;
        let name = ServerName::try_from(host)
            .map_err(|_| wrong(format!("`{host}` is not a name that a certificate can contain")))?;
        rustls::client::verify_server_name(&parsed, &name)
            .map_err(|error| wrong(format!("the certificate does not contain `{host}`: {error}")))
    }

    /// Whether the peer has sent a certificate that is checked against its name.
    pub(super) fn is_proven(&self, connection: &Connection<A::State>) -> bool {
        let connections = self.0.connections.borrow();
        let link = connections.get(connection.id().slot as usize);
        link.is_some_and(|link| {
            let shown = matches!(&link.tls, Some(TlsPeer { certificate: Some(_) }));
            let checked = match &link.security {
                Security::Tls(tls) | Security::Inband(tls) => tls.match_identity,
                Security::None => false,
            };
            shown && checked
        })
    }

    /// Starts TLS on a connection that was in the clear. Bytes read beyond the CEA belong to it.
    pub(crate) fn begin_tls(
        &self,
        connection: &Connection<A::State>,
        tcp: TcpStream,
        early: BytesMut,
    ) -> io::Result<Stream> {
        let connections = self.0.connections.borrow();
        let link = connections
            .get(connection.id().slot as usize)
            .ok_or(io::ErrorKind::NotConnected)?;
        let Security::Inband(tls) = &link.security else {
            return Err(io::Error::other(
                "TLS was agreed on, but no keys are configured here",
            ));
        };
        let stream = match connection.binding.get() {
            Some((key, Side::Initiator)) => {
                let host = self
                    .with_slot(key, |slot| slot.machine.settings().host.clone())
                    .flatten();
                client_session(tls, &host.unwrap_or_default(), tcp, early)?
            }
            _ => {
                let session = rustls::ServerConnection::new(tls.server()).map_err(io::Error::other)?;
                TlsStream::new(tcp, session.into(), early)
            }
        };
        Ok(Stream::Tls(Box::new(stream)))
    }

    /// A connection's task has ended.
    pub(crate) fn ended(&self, connection: &Rc<Connection<A::State>>, error: Option<&io::Error>) {
        self.refresh();
        if let Some(error) = error {
            tracing::debug!(remote = %connection.remote(), %error, "connection lost");
        }
        if let Some((key, side)) = connection.binding.take() {
            self.peer_lost(key, side);
        }
        self.handshake_done(connection);
        self.give_up_pending(connection, UnansweredReason::ConnectionLost);
        self.forget_connection(connection);
    }

    fn forget_connection(&self, connection: &Connection<A::State>) {
        let mut connections = self.0.connections.borrow_mut();
        let slot = connection.id().slot as usize;
        if connections
            .get(slot)
            .is_some_and(|link| link.connection.id() == connection.id())
        {
            connections.remove(slot);
        }
    }

    pub(crate) fn frame_error(&self, connection: &Connection<A::State>, error: &FrameError) {
        let host = self.host_of(connection);
        self.app().event(
            self,
            NodeEvent::FrameError {
                remote: connection.remote(),
                host: host.as_deref(),
                error,
            },
        );
    }

    /// The TLS handshake of a connection failed.
    pub(crate) fn handshake_failed(&self, connection: &Connection<A::State>, error: &io::Error) {
        let host = self.host_of(connection);
        let (remote, host) = (connection.remote(), host.as_deref());
        self.app()
            .event(self, NodeEvent::HandshakeFailed { remote, host, error });
    }

    /// The peer that a connection belongs to.
    pub(super) fn host_of(&self, connection: &Connection<A::State>) -> Option<Box<str>> {
        let (key, _) = connection.binding.get()?;
        self.with_slot(key, |slot| slot.host.clone())
    }

    // ---- between workers --------------------------------------------------------------------------------

    pub(crate) fn security(&self, connection: &Connection<A::State>) -> Security {
        let connections = self.0.connections.borrow();
        connections
            .get(connection.id().slot as usize)
            .map_or(Security::None, |link| link.security.clone())
    }

    pub(crate) fn hand_over(
        &self,
        connection: &Rc<Connection<A::State>>,
        worker: usize,
        outcome: io::Result<Handover>,
    ) {
        self.handshake_done(connection);
        self.forget_connection(connection);
        let sent = outcome.is_ok_and(|handover| {
            self.0
                .directory
                .as_ref()
                .is_some_and(|(directory, _)| directory.hand_over(worker, handover))
        });
        if !sent {
            if let Some((directory, _)) = &self.0.directory {
                directory.forget_unclaimed();
            }
            let remote = connection.remote();
            self.app().event(
                self,
                NodeEvent::LimitReached {
                    remote,
                    limit: "handovers",
                },
            );
        }
    }

    pub(super) fn spawn_mailbox(&self, mut mailbox: mpsc::Receiver<Handover>) {
        let node = self.clone();
        let task = tokio::task::spawn_local(async move {
            while let Some(handover) = mailbox.recv().await {
                node.refresh();
                let (remote, local) = (handover.remote, handover.local);
                let security = handover.security.clone();
                match handover.unpack() {
                    Ok((stream, read)) => {
                        let connection = node.add_connection(stream, read, remote, local, security);
                        node.handshake_begins(&connection);
                    }
                    Err(error) => node.app().event(&node, NodeEvent::AcceptFailed { error: &error }),
                }
            }
        });
        self.0.tasks.borrow_mut().push(task);
    }
}

/// Whether an address is in one of these networks.
fn contains(networks: &[IpNet], address: SocketAddr) -> bool {
    let address = address.ip().to_canonical();
    networks.iter().any(|network| network.contains(&address))
}

fn client_session(tls: &TlsConfig, host: &str, tcp: TcpStream, early: BytesMut) -> io::Result<TlsStream> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("`{host}` is not a name that TLS can check"),
        )
    })?;
    let session = rustls::ClientConnection::new(tls.client(), name).map_err(io::Error::other)?;
    Ok(TlsStream::new(tcp, session.into(), early))
}
