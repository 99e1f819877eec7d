//! TLS: configurations from PEM files, and what a session says of the peer.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::TlsPeer;

/// Certificate, key and trusted authorities, as PEM files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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

/// The configuration of a server.
///
/// # Errors
/// When a file cannot be read or does not fit.
pub fn server(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let builder = match &files.authorities {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(path)?), provider);
            let verifier = match files.require_client_certificate {
                true => verifier,
                false => verifier.allow_unauthenticated(),
            };
            builder.with_client_cert_verifier(verifier.build().map_err(unusable)?)
        }
    };
    let (chain, key) = identity(files)?;
    let mut config = builder.with_single_cert(chain, key).map_err(unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

/// The configuration of a client; with certificate and key it can take part in mutual TLS.
///
/// # Errors
/// When a file cannot be read or does not fit.
pub fn client(files: &TlsFiles) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let trusted = match &files.authorities {
        Some(path) => roots(path)?,
        None => RootCertStore::empty(),
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_root_certificates(trusted);
    let mut config = if files.certificate.as_os_str().is_empty() {
        builder.with_no_client_auth()
    } else {
        let (chain, key) = identity(files)?;
        builder.with_client_auth_cert(chain, key).map_err(unusable)?
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
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

/// DNS names of a certificate. The verifier has accepted it, so it parses; if not, it has no names.
fn names_of(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok(parsed) = webpki::EndEntityCert::try_from(certificate) else {
        return Vec::new();
    };
    parsed.valid_dns_names().map(str::to_owned).collect()
}

fn identity(files: &TlsFiles) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let chain = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?).map_err(|_| TlsError::Pem {
        path: files.key.clone(),
        expected: "a private key",
    })?;
    Ok((chain, key))
}

fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(path)? {
        store.add(certificate).map_err(unusable)?;
    }
    Ok(store)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let fault = || TlsError::Pem {
        path: path.to_owned(),
        expected: "certificates",
    };
    let text = read(path)?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|_| fault())?;
    if found.is_empty() { Err(fault()) } else { Ok(found) }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::File {
        path: path.to_owned(),
        source,
    })
}
