//! TLS on a socket of the event loop: certificates from PEM files, records in and out.

use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::{ClientConfig, Connection, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// PEM files of a party that speaks TLS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TlsFiles {
    /// Certificate of this party.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authority whose certificates are trusted. A server with one wants its clients' certificates.
    pub authority: PathBuf,
}

/// What a server needs for each connection.
pub type ServerTls = Arc<ServerConfig>;
/// What a client needs for each connection.
pub type ClientTls = Arc<ClientConfig>;

fn unusable(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("TLS: {error}"))
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(unusable)?.collect();
    read.map_err(unusable)
}

impl TlsFiles {
    fn identity(&self) -> io::Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(unusable)?;
        Ok((certificates(&self.certificate)?, key))
    }

    fn trusted(&self) -> io::Result<RootCertStore> {
        let mut store = RootCertStore::empty();
        for certificate in certificates(&self.authority)? {
            store.add(certificate).map_err(unusable)?;
        }
        Ok(store)
    }

    /// For a server: HTTP/2, with clients' certificates checked where they have one.
    ///
    /// # Errors
    /// When a file cannot be read or used.
    pub fn server(&self) -> io::Result<ServerTls> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let trusted = Arc::new(self.trusted()?);
        let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(trusted, provider.clone());
        let (chain, key) = self.identity()?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_client_cert_verifier(verifier.allow_unauthenticated().build().map_err(unusable)?)
            .with_single_cert(chain, key)
            .map_err(unusable)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Arc::new(config))
    }

    /// For a client: HTTP/2, with a certificate of its own.
    ///
    /// # Errors
    /// When a file cannot be read or used.
    pub fn client(&self) -> io::Result<ClientTls> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let (chain, key) = self.identity()?;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_root_certificates(self.trusted()?)
            .with_client_auth_cert(chain, key)
            .map_err(unusable)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Arc::new(config))
    }
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
        // What is put out before the handshake is over, or faster than the peer reads, waits here; the requests in
        // flight bound it.
        session.set_buffer_limit(None);
        Self { session }
    }

    /// Reads records from a socket through `buffer`, whose first bytes then hold what they said. `None` when the
    /// peer has closed.
    ///
    /// # Errors
    /// When the socket has failed or has nothing (`WouldBlock`), or the peer broke the protocol.
    pub(super) fn receive(&mut self, stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        // Records are longer than what they say, so that half of the buffer is enough for each.
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
                    return Err(unusable("more was said than was sent"));
                }
            }
        }
        Ok(Some(said))
    }

    /// Takes what is to be said; it leaves with [`Session::flush`].
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
