//! Encrypted connections.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::CassandraConfig;
use crate::error::Error;

/// How connections are encrypted; `None`: not at all.
pub(super) fn context(config: &CassandraConfig) -> Result<Option<Arc<ClientConfig>>, Error> {
    let Some(authority) = &config.certificate_authority else {
        return Ok(None);
    };
    // The driver brings a second provider, so that libraries that do not name theirs would find none.
    let _ = default_provider().install_default();
    let mut roots = RootCertStore::empty();
    for certificate in certificates("certificateAuthority", authority)? {
        let added = roots.add(certificate);
        added.map_err(|error| fault("certificateAuthority", authority, &error))?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Open(error.to_string()))?
        .with_root_certificates(roots);
    let tls = match config.client_certificate.as_ref().zip(config.client_key.as_ref()) {
        Some((certificate, path)) => {
            let chain = certificates("clientCertificate", certificate)?;
            let key = PrivateKeyDer::from_pem_file(path).map_err(|error| fault("clientKey", path, &error))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| fault("clientCertificate", certificate, &error))?
        }
        None => builder.with_no_client_auth(),
    };
    Ok(Some(Arc::new(tls)))
}

fn certificates(name: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let certificates = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    certificates.map_err(|error| fault(name, path, &error))
}

fn fault(name: &str, path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Open(format!("cassandra.{name}: {}: {error}", path.display()))
}
