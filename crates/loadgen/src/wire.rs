//! A blocking connection over TCP, or over TLS on it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;

use crate::engine::ClientTls;

/// A connection to a server.
#[derive(Debug)]
pub struct Wire(Stream);

#[derive(Debug)]
enum Stream {
    Clear(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Wire {
    /// Connects; with `tls` it completes the handshake with a server whose certificate is for its address. `patience` is the
    /// timeout of each read and each write.
    ///
    /// # Errors
    /// When the server cannot be reached, or either side refuses the handshake.
    pub fn connect(peer: SocketAddr, patience: Duration, tls: Option<&ClientTls>) -> io::Result<Self> {
        let mut tcp = TcpStream::connect_timeout(&peer, patience)?;
        tcp.set_nodelay(true)?;
        tcp.set_read_timeout(Some(patience))?;
        tcp.set_write_timeout(Some(patience))?;
        let Some(tls) = tls else {
            return Ok(Self(Stream::Clear(tcp)));
        };
        let name = ServerName::IpAddress(peer.ip().into());
        let mut session = ClientConnection::new(tls.clone(), name).map_err(io::Error::other)?;
        while session.is_handshaking() {
            session.complete_io(&mut tcp)?;
        }
        Ok(Self(Stream::Tls(Box::new(StreamOwned::new(session, tcp)))))
    }

    /// Changes how long a read waits.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn wait_at_most(&self, patience: Duration) -> io::Result<()> {
        self.tcp().set_read_timeout(Some(patience))
    }

    /// The address of this side.
    ///
    /// # Errors
    /// When the connection has failed.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.tcp().local_addr()
    }

    fn tcp(&self) -> &TcpStream {
        match &self.0 {
            Stream::Clear(tcp) => tcp,
            Stream::Tls(stream) => stream.get_ref(),
        }
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// When the connection has failed, or the peer takes nothing within the timeout.
    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            Stream::Clear(stream) => stream.write_all(bytes),
            Stream::Tls(stream) => {
                stream.write_all(bytes)?;
                stream.flush()
            }
        }
    }

    /// Reads once; 0 when the peer has closed.
    ///
    /// # Errors
    /// When the connection has failed, or nothing arrives within the timeout (`WouldBlock`).
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Stream::Clear(stream) => stream.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }
}
