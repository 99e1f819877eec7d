//! TLS of the service-based interface: HTTP/2 by ALPN, and what a session proves about the peer.
//!
//! Mutual TLS between NFs: TS 33.501 §13.1; certificates name the NF instance (TS 33.310 §6.1.3c.3).

use std::sync::Arc;

use rustls::{ClientConfig, ServerConfig, ServerConnection};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use sbi_proto::TlsPeer;
use tls::{HTTP2, Material, Watched};

pub use tls::{ClientTls, Current, ServerTls, TlsError, TlsFiles};

/// ALPN protocols of a server. Where the service has no HTTP/1.1, it is accepted only to answer it with what the port is for.
const SERVED: &[&[u8]] = &[b"h2", b"http/1.1"];

/// Where the configuration names the files of the interface and of the clients.
const SERVER_KEY: &str = "tls";
const CLIENT_KEY: &str = "clientTls";

/// TLS of a function: of its interface and of the connections it makes, each if it has files.
#[derive(Debug)]
pub struct Tls {
    watched: Arc<Watched>,
    server: Option<ServerTls>,
    client: Option<ClientTls>,
}

impl Tls {
    /// Reads the files of `tls` and of `clientTls`, where they are named.
    ///
    /// # Errors
    /// What cannot be used, after the key that names it.
    pub fn open(server: Option<&TlsFiles>, client: Option<&TlsFiles>) -> Result<Arc<Self>, String> {
        let watched = Watched::default();
        let server = server.map(|files| watched.open(SERVER_KEY, files, http2_server));
        let client = client.map(|files| watched.open(CLIENT_KEY, files, http2_client));
        Ok(Arc::new(Self {
            server: server.transpose()?,
            client: client.transpose()?,
            watched: Arc::new(watched),
        }))
    }

    /// For the interface; none: cleartext.
    #[must_use]
    pub fn server(&self) -> Option<ServerTls> {
        self.server.clone()
    }

    /// For clients; none: cleartext peers only.
    #[must_use]
    pub fn client(&self) -> Option<ClientTls> {
        self.client.clone()
    }

    /// Every set of files that is checked together with these.
    #[must_use]
    pub const fn watched(&self) -> &Arc<Watched> {
        &self.watched
    }

    /// Uses these files, as they are now, and reloads every other set. Returns whether any has changed.
    /// # Errors
    /// What cannot be used; nothing has changed then.
    pub fn reload(&self, server: Option<&TlsFiles>, client: Option<&TlsFiles>) -> Result<bool, String> {
        let wanted = [(SERVER_KEY, server), (CLIENT_KEY, client)];
        Ok(self.watched.prepare(&wanted)?.apply())
    }

    /// Refuses later certificates of another NF instance than this one: peers know the function by its certificate
    /// (TS 33.310 §6.1.3c.3), and it stays registered under its own id.
    pub fn pin_instance(&self, nf_instance_id: &str) {
        for key in [SERVER_KEY, CLIENT_KEY] {
            let own = nf_instance_id.to_ascii_lowercase();
            self.watched.judge(key, move |chain| match instance_in_chain(chain) {
                Some(named) if named != own => Err(format!(
                    "names the NF instance {named}, and this function is {own}; the certificate before stays in use"
                )),
                _ => Ok(()),
            });
        }
    }

    /// Reloads the files in use. Returns whether any has changed.
    ///
    /// # Errors
    /// As [`Tls::reload`].
    pub fn reread(&self) -> Result<bool, String> {
        self.watched.reread()
    }

    /// Checks the files at their interval. Never ends; belongs on a control thread.
    pub async fn follow(self: Arc<Self>) {
        self.watched.clone().follow().await;
    }
}

fn http2_server(material: &Material) -> Result<Arc<ServerConfig>, TlsError> {
    material.server(SERVED)
}

fn http2_client(material: &Material) -> Result<Arc<ClientConfig>, TlsError> {
    material.client(HTTP2)
}

/// What a server session proves about its peer.
pub(crate) fn peer_of(session: &ServerConnection) -> TlsPeer {
    let version = match session.protocol_version() {
        Some(rustls::ProtocolVersion::TLSv1_2) => "TLSv1.2",
        Some(rustls::ProtocolVersion::TLSv1_3) => "TLSv1.3",
        _ => "unknown",
    };
    let certificate = session.peer_certificates().and_then(<[_]>::first);
    let names = certificate.map(names_of).unwrap_or_default();
    TlsPeer {
        version,
        certificate: certificate.map(|der| der.to_vec()),
        names,
    }
}

/// DNS names and URIs of a certificate (an NF instance id is a URI: TS 33.310 §6.1.3c.3). The verifier has
/// accepted it, so it parses; if not, it has no names.
fn names_of(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok(parsed) = webpki::EndEntityCert::try_from(certificate) else {
        return Vec::new();
    };
    let names = parsed.valid_dns_names().map(str::to_owned);
    names.chain(parsed.valid_uri_names().map(str::to_owned)).collect()
}

/// The NF instance that the first certificate of these files names; none where they cannot be read or name none.
#[must_use]
pub fn instance_in(files: &TlsFiles) -> Option<String> {
    instance_in_chain(&std::fs::read(&files.certificate).ok()?)
}

/// The NF instance that the first certificate of a chain in PEM names.
fn instance_in_chain(pem: &[u8]) -> Option<String> {
    let certificate = CertificateDer::pem_slice_iter(pem).next()?.ok()?;
    let names = names_of(&certificate);
    names
        .iter()
        .find_map(|name| instance_of(name))
        .map(str::to_ascii_lowercase)
}

/// The NF instance that a name of a certificate stands for: `urn:uuid:…` (TS 33.310 §6.1.3c.3). The scheme and the
/// namespace are read in either case (RFC 8141 §3.1).
#[must_use]
pub fn instance_of(name: &str) -> Option<&str> {
    const PREFIX: &str = "urn:uuid:";
    let (prefix, id) = name.split_at_checked(PREFIX.len())?;
    (prefix.eq_ignore_ascii_case(PREFIX) && id.len() == 36).then_some(id)
}
