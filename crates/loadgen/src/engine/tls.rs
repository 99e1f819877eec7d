//! TLS on a socket of the event loop: records in and out.

use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::sync::Arc;

use rustls::{ClientConfig, Connection, ServerConfig};
use rustls_pki_types::ServerName;
use tls::{HTTP2, Material, TlsFiles};

/// What a server needs for each connection.
pub type ServerTls = Arc<ServerConfig>;
/// What a client needs for each connection.
pub type ClientTls = Arc<ClientConfig>;

fn unusable(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("TLS: {error}"))
}

/// For an HTTP/2 server by these files. A client that shows a certificate has it checked.
///
/// # Errors
/// When a file cannot be read or used.
pub fn server_tls(files: &TlsFiles) -> io::Result<ServerTls> {
    let material = Material::read(files).map_err(unusable)?;
    material.server(HTTP2).map_err(unusable)
}

/// For a Diameter client by these files (RFC 6733 §13.1).
///
/// # Errors
/// When a file cannot be read or used.
pub fn diameter_tls(files: &TlsFiles) -> io::Result<ClientTls> {
    let material = Material::read(files).map_err(unusable)?;
    material.client(&[]).map_err(unusable)
}

/// For an HTTP/2 client by these files.
///
/// # Errors
/// When a file cannot be read or used.
pub fn client_tls(files: &TlsFiles) -> io::Result<ClientTls> {
    let material = Material::read(files).map_err(unusable)?;
    material.client(HTTP2).map_err(unusable)
}

/// A TLS session: what lies between a socket and the protocol above.
#[derive(Debug)]
pub(super) struct Session {
    session: Connection,
}

impl Session {
    pub(super) fn client(config: &ClientTls, peer: IpAddr) -> io::Result<Self> {
        let name = ServerName::IpAddress(peer.into());
        let session = rustls::ClientConnection::new(config.clone(), name).map_err(unusable)?;
        Ok(Self::new(session.into()))
    }

    pub(super) fn server(config: &ServerTls) -> io::Result<Self> {
        let session = rustls::ServerConnection::new(config.clone()).map_err(unusable)?;
        Ok(Self::new(session.into()))
    }

    fn new(mut session: Connection) -> Self {
        // Output before the handshake is complete, or faster than the peer reads, is buffered here; the requests in
        // flight bound it.
        session.set_buffer_limit(None);
        Self { session }
    }

    /// Reads records from a socket through `buffer`, whose first bytes then hold the plaintext. `None` when the peer
    /// has closed.
    ///
    /// # Errors
    /// When the socket has failed or has nothing (`WouldBlock`), or the peer broke the protocol.
    pub(super) fn receive(&mut self, stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        // Records are longer than their plaintext, so that half of the buffer is enough for each.
        let half = buffer.len() / 2;
        let (plain, raw) = buffer.split_at_mut(half);
        let count = stream.read(raw)?;
        if count == 0 {
            return Ok(None);
        }
        let mut records = &raw[..count];
        let mut said = 0;
        while !records.is_empty() {
            self.session.read_tls(&mut records)?;
            let state = self.session.process_new_packets().map_err(unusable)?;
            let mut left = state.plaintext_bytes_to_read();
            while left > 0 {
                let got = self.session.reader().read(&mut plain[said..])?;
                said += got;
                left = left.saturating_sub(got);
                if got == 0 {
                    return Err(unusable("the plaintext is longer than the records"));
                }
            }
        }
        Ok(Some(said))
    }

    /// Takes plaintext to send; it leaves with [`Session::flush`].
    pub(super) fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.session.writer().write_all(bytes)
    }

    /// Writes records as far as there is room.
    ///
    /// # Errors
    /// When the socket has failed or has no room (`WouldBlock`).
    pub(super) fn flush(&mut self, stream: &mut impl Write) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(stream)?;
        }
        Ok(())
    }
}
