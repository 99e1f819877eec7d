//! Keys and trust from PEM files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::TlsConfig;

/// Where keys and trust lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// Our certificate, followed by those up to (not including) the root.
    pub certificates: PathBuf,
    /// Our private key.
    pub key: PathBuf,
    /// The roots that peers' certificates have to lead to.
    pub trust: PathBuf,
    /// Whether clients have to show a certificate: mutual TLS, as RFC 6733 §13 wants it between peers.
    pub mutual: bool,
    /// As [`TlsConfig::match_identity`].
    pub match_identity: bool,
}

/// Why keys and trust could not be had.
#[derive(Debug, thiserror::Error)]
pub enum TlsFilesError {
    /// A file could not be read, or holds nothing of the kind.
    #[error("{path}: {what}")]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The parts do not fit together.
    #[error("certificate and key: {0}")]
    Unfit(#[from] rustls::Error),
}

fn bad(path: &Path, what: impl ToString) -> TlsFilesError {
    TlsFilesError::File {
        path: path.to_owned(),
        what: what.to_string(),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFilesError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
        .map_err(|error| bad(path, error))?
        .collect();
    match found {
        Ok(found) if found.is_empty() => Err(bad(path, "expected a CERTIFICATE in PEM form")),
        Ok(found) => Ok(found),
        Err(error) => Err(bad(path, error)),
    }
}

impl TlsFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// When one cannot be read, or they do not fit together.
    pub fn load(&self) -> Result<TlsConfig, TlsFilesError> {
        let chain = certificates(&self.certificates)?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| bad(&self.key, error))?;
        let mut roots = RootCertStore::empty();
        for root in certificates(&self.trust)? {
            roots.add(root).map_err(|error| bad(&self.trust, error))?;
        }
        let roots = Arc::new(roots);
        let provider = Arc::new(default_provider());
        let client = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots.clone())
            .with_client_auth_cert(chain.clone(), key.clone_key())?;
        let server =
            ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
        let server = if self.mutual {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                .build()
                .map_err(|error| bad(&self.trust, error))?;
            server.with_client_cert_verifier(verifier)
        } else {
            server.with_no_client_auth()
        };
        let server = server.with_single_cert(chain, key)?;
        Ok(TlsConfig {
            client: Arc::new(client),
            server: Arc::new(server),
            match_identity: self.match_identity,
        })
    }
}
