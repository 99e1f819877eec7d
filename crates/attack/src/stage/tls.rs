//! Certificates of a stage: an authority, the function, honest and dishonest clients.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tls::authority::{Authority, Identity};

/// An authority and what it signed.
pub struct Tls {
    authority: Authority,
    server: Identity,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// An authority with a certificate for the function.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn new() -> anyhow::Result<Self> {
        let authority = Authority::new("attack")?;
        let server = authority.issue(&["127.0.0.1", "localhost"])?;
        Ok(Self { authority, server })
    }

    /// Writes the function's files; the section `tls` that names them.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn section(&self, folder: &Path) -> anyhow::Result<Value> {
        let files = self.authority.write(&self.server, folder, "server")?;
        Ok(json!({
            "certificate": files.certificate, "key": files.key, "authorities": files.authorities,
            "requireClientCertificate": true
        }))
    }

    /// What a Diameter peer with a certificate of these names needs.
    ///
    /// # Errors
    /// When a name cannot be in a certificate.
    pub fn peer(&self, names: &[&str]) -> anyhow::Result<Arc<rustls::ClientConfig>> {
        let identity = self.authority.issue(names)?;
        Ok(self.authority.material(Some(&identity), false).client(&[])?)
    }

    /// What a Diameter peer without a certificate needs.
    ///
    /// # Errors
    /// Never with an authority that is whole.
    pub fn stranger(&self) -> anyhow::Result<Arc<rustls::ClientConfig>> {
        Ok(self.authority.material(None, false).client(&[])?)
    }

    /// What a client with a certificate of these names needs.
    ///
    /// # Errors
    /// When a name cannot be in a certificate.
    pub fn client(&self, names: &[&str]) -> anyhow::Result<Arc<rustls::ClientConfig>> {
        let identity = self.authority.issue(names)?;
        Ok(self
            .authority
            .material(Some(&identity), false)
            .client(tls::HTTP2)?)
    }
}
