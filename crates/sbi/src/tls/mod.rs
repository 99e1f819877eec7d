//! TLS: configurations from PEM files, and what a session says of the peer.
//!
//! TLS 1.2 and 1.3 with ALPN `h2` (TS 33.210 §6.2, TS 33.310 annex E). With authorities, both sides check
//! certificates: mutual TLS (TS 33.501 §13.1).

mod current;
pub mod lab;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::Period;

use crate::message::TlsPeer;

pub use current::{ClientTls, Current, ServerTls, Tls};

/// Certificate, key and trusted authorities, as PEM files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct TlsFiles {
    /// Certificate chain, own certificate first.
    pub certificate: PathBuf,
    /// Private key.
    pub key: PathBuf,
    /// Authorities whose certificates are trusted. A server with them asks its clients for a certificate;
    /// a client without them trusts nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorities: Option<PathBuf>,
    /// Servers only: whether a client without a certificate is refused (mutual TLS).
    pub require_client_certificate: bool,
    /// How often the files are looked at for changes, where they are those of `tls` or `clientTls` of a function
    /// of the service-based interface or of `rx.tls`; 0: only when the configuration is read again.
    pub check_interval: Period,
}

impl Default for TlsFiles {
    fn default() -> Self {
        Self {
            certificate: PathBuf::new(),
            key: PathBuf::new(),
            authorities: None,
            require_client_certificate: false,
            check_interval: Period::from_secs(30),
        }
    }
}

/// A TLS configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not PEM, or has not what it should.
    #[error("{path}: expected PEM with {expected}")]
    Pem {
        /// The file.
        path: PathBuf,
        /// What should be in it.
        expected: &'static str,
    },
    /// Certificate and key do not fit, or the authorities cannot be used.
    #[error("{0}")]
    Unusable(String),
}

fn unusable(error: impl std::fmt::Display) -> TlsError {
    TlsError::Unusable(error.to_string())
}

/// The contents of the files of [`TlsFiles`], each with the name that errors call it by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Material {
    certificate: Option<Pem>,
    key: Option<Pem>,
    authorities: Option<Pem>,
    require_client_certificate: bool,
}

#[derive(Clone, PartialEq)]
struct Pem {
    name: PathBuf,
    text: Vec<u8>,
}

impl std::fmt::Debug for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the text: it may be a private key.
        self.name.fmt(f)
    }
}

/// The configuration of a server.
///
/// # Errors
/// When a file cannot be read or does not fit.
pub fn server(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    Material::read(files)?.server()
}

/// The configuration of a client; with certificate and key it can take part in mutual TLS.
///
/// # Errors
/// When a file cannot be read or does not fit.
pub fn client(files: &TlsFiles) -> Result<Arc<ClientConfig>, TlsError> {
    Material::read(files)?.client()
}

impl Material {
    /// Reads the files that are named.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let read = |path: &PathBuf| {
            if path.as_os_str().is_empty() {
                return Ok(None);
            }
            match fs::read(path) {
                Ok(text) => Ok(Some(Pem {
                    name: path.clone(),
                    text,
                })),
                Err(source) => Err(TlsError::File {
                    path: path.clone(),
                    source,
                }),
            }
        };
        Ok(Self {
            certificate: read(&files.certificate)?,
            key: read(&files.key)?,
            authorities: files.authorities.as_ref().map_or(Ok(None), read)?,
            require_client_certificate: files.require_client_certificate,
        })
    }

    /// The configuration of a server.
    ///
    /// # Errors
    /// When certificate and key are missing or do not fit, or the authorities cannot be used.
    pub fn server(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(unusable)?;
        let builder = match &self.authorities {
            None if self.require_client_certificate => {
                return Err(TlsError::Unusable(
                    "client certificates are required, and no authorities are named to check them by"
                        .to_owned(),
                ));
            }
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(pem.roots()?), provider);
                let verifier = match self.require_client_certificate {
                    true => verifier,
                    false => verifier.allow_unauthenticated(),
                };
                builder.with_client_cert_verifier(verifier.build().map_err(unusable)?)
            }
        };
        let (chain, key) = self
            .identity()?
            .ok_or_else(|| TlsError::Unusable("a server needs a certificate and its key".to_owned()))?;
        let mut config = builder.with_single_cert(chain, key).map_err(unusable)?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Arc::new(config))
    }

    /// The configuration of a client.
    ///
    /// # Errors
    /// As [`Material::server`]; a client needs no certificate.
    pub fn client(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let trusted = self
            .authorities
            .as_ref()
            .map_or_else(|| Ok(RootCertStore::empty()), Pem::roots)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_root_certificates(trusted);
        let mut config = match self.identity()? {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(unusable)?,
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Arc::new(config))
    }

    fn identity(&self) -> Result<Option<Identity>, TlsError> {
        match (&self.certificate, &self.key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Ok(Some((certificate.certificates()?, key.private_key()?))),
            (Some(pem), None) | (None, Some(pem)) => Err(TlsError::Unusable(format!(
                "{}: a certificate and its key go together, and one is missing",
                pem.name.display()
            ))),
        }
    }
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Pem {
    fn fault(&self, expected: &'static str) -> TlsError {
        TlsError::Pem {
            path: self.name.clone(),
            expected,
        }
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.text).collect();
        found
            .ok()
            .filter(|found| !found.is_empty())
            .ok_or_else(|| self.fault("certificates"))
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(&self.text).map_err(|_| self.fault("a private key"))
    }

    fn roots(&self) -> Result<RootCertStore, TlsError> {
        let mut store = RootCertStore::empty();
        for certificate in self.certificates()? {
            store.add(certificate).map_err(unusable)?;
        }
        Ok(store)
    }
}

/// What a server session says of its peer.
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

/// The NF instance that a name of a certificate stands for: `urn:uuid:…` (TS 33.310 §6.1.3c.3). The scheme and the
/// namespace are read in either case (RFC 8141 §3.1).
#[must_use]
pub fn instance_of(name: &str) -> Option<&str> {
    const PREFIX: &str = "urn:uuid:";
    let (prefix, id) = name.split_at_checked(PREFIX.len())?;
    (prefix.eq_ignore_ascii_case(PREFIX) && id.len() == 36).then_some(id)
}
