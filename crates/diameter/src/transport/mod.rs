//! Transports: TCP, TLS over TCP, SCTP. A stream is polled by the one task that owns it.

pub(crate) mod sctp;
pub(crate) mod tls;

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::AsyncWrite;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::config::Transport;
use crate::queue::{OutQueue, SLICES};
use sctp::{SctpListener, SctpStream};
use tls::TlsStream;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// A connection's bytes.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Tls(Box<TlsStream>),
    Sctp(SctpStream),
    /// Between TCP and TLS, during the change.
    Changing,
}

impl Stream {
    /// Appends what can be read to `buffer`; 0 at the end of the stream.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(tcp) => tokio_util::io::poll_read_buf(Pin::new(tcp), cx, buffer),
            Self::Tls(tls) => tls.poll_read(cx, buffer),
            Self::Sctp(sctp) => sctp.poll_read(cx, buffer),
            Self::Changing => Poll::Ready(Ok(0)),
        }
    }

    /// Writes from the front of `queue` with one system call, and takes from it what was written.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        queue: &mut OutQueue,
    ) -> Poll<io::Result<usize>> {
        let written = {
            let mut slices = [IoSlice::new(&[]); SLICES];
            match self {
                Self::Tcp(tcp) => {
                    let count = queue.slices(&mut slices);
                    ready!(Pin::new(tcp).poll_write_vectored(cx, &slices[..count]))?
                }
                Self::Tls(tls) => {
                    let count = queue.slices(&mut slices);
                    ready!(tls.poll_write(cx, &slices[..count]))?
                }
                Self::Sctp(sctp) => {
                    let count = queue.first_message(&mut slices);
                    ready!(sctp.poll_write(cx, &slices[..count]))?
                }
                Self::Changing => return Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            }
        };
        queue.advance(written);
        Poll::Ready(Ok(written))
    }

    /// Writes bytes that the transport itself buffers: records of TLS.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tls(tls) => tls.poll_flush(cx),
            Self::Tcp(_) | Self::Sctp(_) | Self::Changing => Poll::Ready(Ok(())),
        }
    }

    /// Signals the peer that nothing more will be written. Its further messages can be read.
    pub(crate) fn shutdown_write(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::Tcp(tcp) => {
                let _ = Pin::new(tcp).poll_shutdown(cx);
            }
            Self::Tls(tls) => tls.shutdown_write(cx),
            Self::Sctp(sctp) => sctp.shutdown_write(),
            Self::Changing => {}
        }
    }

    /// The handshake of TLS; ready at once without TLS.
    pub(crate) fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tls(tls) => tls.poll_handshake(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Number of bytes that can be read from the socket now; as far as the system says.
    pub(crate) fn unread(&self) -> usize {
        let socket = match self {
            Self::Tcp(tcp) => tcp.as_fd(),
            Self::Tls(tls) => tls.as_fd(),
            Self::Sctp(sctp) => sctp.as_fd(),
            Self::Changing => return 0,
        };
        worker::unread(socket)
    }

    /// Properties of the peer that TLS has shown.
    pub(crate) fn tls(&self) -> Option<&TlsStream> {
        match self {
            Self::Tls(tls) => Some(tls),
            _ => None,
        }
    }
}

/// Addresses by end point: over SCTP those with the same port and of the same family are one, over TCP each is one.
#[must_use]
pub fn end_points(addresses: &[SocketAddr], transport: Transport) -> Vec<Vec<SocketAddr>> {
    let mut found: Vec<Vec<SocketAddr>> = Vec::new();
    for address in addresses {
        let same = |one: &&mut Vec<SocketAddr>| {
            let first = one.first();
            transport == Transport::Sctp
                && first.is_some_and(|first| {
                    (first.port(), first.is_ipv4()) == (address.port(), address.is_ipv4())
                })
        };
        match found.iter_mut().find(same) {
            Some(end_point) => end_point.push(*address),
            None => found.push(vec![*address]),
        }
    }
    found
}

/// Connects to an end point: to the first of its addresses over TCP, to all of them over SCTP.
pub(crate) async fn connect(
    transport: Transport,
    end_point: &[SocketAddr],
    bind: &[IpAddr],
) -> io::Result<(Stream, SocketAddr)> {
    match transport {
        Transport::Tcp => {
            let Some(address) = end_point.first().copied() else {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "no address to connect to",
                ));
            };
            let socket = if address.is_ipv4() {
                TcpSocket::new_v4()?
            } else {
                TcpSocket::new_v6()?
            };
            if let Some(ip) = bind.first() {
                socket.bind(SocketAddr::new(*ip, 0))?;
            }
            let tcp = socket.connect(address).await?;
            tcp.set_nodelay(true)?;
            let local = tcp.local_addr()?;
            Ok((Stream::Tcp(tcp), local))
        }
        Transport::Sctp => {
            let sctp = SctpStream::connect(end_point, bind).await?;
            let local = sctp.local_addr()?;
            Ok((Stream::Sctp(sctp), local))
        }
    }
}

/// A listening socket that any thread may turn into a [`Listener`]. Several may share an address
/// (`SO_REUSEPORT`): the kernel spreads connections over them.
#[derive(Debug)]
pub struct BoundListener {
    socket: Socket,
    transport: Transport,
    address: SocketAddr,
}

impl BoundListener {
    /// Binds and listens. On an IPv6 wildcard address IPv4 is taken too.
    ///
    /// # Errors
    /// When the system refuses the address, or has no such transport.
    pub fn bind(address: SocketAddr, transport: Transport) -> io::Result<Self> {
        Self::bind_all(address, &[], transport)
    }

    /// As [`Self::bind`], at further addresses with the same port: one end point with several homes (RFC 9260 §1.3). Over TCP
    /// the others are not bound.
    ///
    /// # Errors
    /// When the system refuses an address, or has no such transport.
    pub fn bind_all(address: SocketAddr, others: &[IpAddr], transport: Transport) -> io::Result<Self> {
        let domain = Domain::for_address(address);
        let protocol = match transport {
            Transport::Tcp => Protocol::TCP,
            Transport::Sctp => Protocol::from(libc::IPPROTO_SCTP),
        };
        let socket = Socket::new(domain, Type::STREAM.nonblocking().cloexec(), Some(protocol))?;
        if domain == Domain::IPV6 {
            socket.set_only_v6(!address.ip().is_unspecified())?;
        }
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        socket.bind(&address.into())?;
        if transport == Transport::Sctp {
            sctp::bind_also(&socket, others)?;
        }
        // Of an end point with several homes the kernel names any.
        let bound = socket.local_addr()?.as_socket().unwrap_or(address);
        let address = SocketAddr::new(address.ip(), bound.port());
        Ok(Self {
            socket,
            transport,
            address,
        })
    }

    /// The address, with the port the system chose where 0 was asked for.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn into_listener(self) -> io::Result<Listener> {
        // Until now the port is closed, so that peers try another node while this one still reads its store.
        self.socket.listen(BACKLOG)?;
        Ok(match self.transport {
            Transport::Tcp => Listener::Tcp(TcpListener::from_std(self.socket.into())?),
            Transport::Sctp => Listener::Sctp(SctpListener::new(self.socket)?),
        })
    }
}

/// A listening socket on this thread's runtime.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Sctp(SctpListener),
}

impl Listener {
    /// The next connection, with the peer's address and ours.
    pub(crate) async fn accept(&self) -> io::Result<(Stream, SocketAddr, SocketAddr)> {
        match self {
            Self::Tcp(listener) => {
                let (tcp, remote) = listener.accept().await?;
                tcp.set_nodelay(true)?;
                let local = tcp.local_addr()?;
                Ok((Stream::Tcp(tcp), remote, local))
            }
            Self::Sctp(listener) => {
                let (sctp, remote) = listener.accept().await?;
                let local = sctp.local_addr()?;
                Ok((Stream::Sctp(sctp), remote, local))
            }
        }
    }
}
