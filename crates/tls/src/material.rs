//! The contents of the files, and what `rustls` makes of them.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use time::OffsetDateTime;

use crate::expiry::not_after;
use crate::files::{TlsError, TlsFiles, unusable};
use crate::pair::flaw;

/// The ALPN protocol of the service-based interface (TS 29.500 §5.2.1).
pub const HTTP2: &[&[u8]] = &[b"h2"];

/// The contents of the files of [`TlsFiles`], each with the name that errors call it by.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Material {
    pub(crate) certificate: Option<Pem>,
    pub(crate) key: Option<Pem>,
    pub(crate) authorities: Option<Pem>,
    pub(crate) require_client_certificate: Option<bool>,
}

#[derive(Clone, PartialEq)]
pub(crate) struct Pem {
    pub(crate) name: PathBuf,
    pub(crate) text: Vec<u8>,
}

impl std::fmt::Debug for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the text: it may be a private key.
        self.name.fmt(f)
    }
}

/// Both directions of a protocol whose nodes accept and open connections (Diameter). They are replaced together.
#[derive(Clone, Debug)]
pub struct Sides {
    /// For connections we open.
    pub client: Arc<ClientConfig>,
    /// For connections opened to us.
    pub server: Arc<ServerConfig>,
}

impl Material {
    /// Reads the files that are named.
    ///
    /// # Errors
    /// When a file cannot be read.
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

    /// The configuration of a server of these ALPN protocols (empty: none is negotiated). With authorities it asks
    /// clients for a certificate.
    ///
    /// # Errors
    /// When certificate and key are missing or do not fit, or the authorities cannot be used.
    pub fn server(&self, alpn: &[&[u8]]) -> Result<Arc<ServerConfig>, TlsError> {
        let required = self.require_client_certificate.unwrap_or(false);
        self.make_server(alpn, required, true)
    }

    /// The configuration of a client of these ALPN protocols; with certificate and key it can take part in mutual TLS.
    ///
    /// # Errors
    /// As [`Material::server`]; a client needs no certificate.
    pub fn client(&self, alpn: &[&[u8]]) -> Result<Arc<ClientConfig>, TlsError> {
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
            Some((chain, key)) => {
                let made = builder.with_client_auth_cert(chain, key);
                made.map_err(|error| self.misfit(&error))?
            }
        };
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Ok(Arc::new(config))
    }

    /// Both directions for a Diameter node (RFC 6733 §13.1). Clients show a certificate unless the files say that none
    /// is required; then none is asked for.
    ///
    /// # Errors
    /// As [`Material::server`]; authorities are needed too.
    pub fn sides(&self) -> Result<Arc<Sides>, TlsError> {
        if self.authorities.is_none() {
            return Err(unusable("peers need `authorities` to check certificates by"));
        }
        let required = self.require_client_certificate.unwrap_or(true);
        Ok(Arc::new(Sides {
            server: self.make_server(&[], required, required)?,
            client: self.client(&[])?,
        }))
    }

    /// When the first certificate of the own chain expires.
    #[must_use]
    pub fn expiry(&self) -> Option<OffsetDateTime> {
        let chain = self.certificate.as_ref()?.certificates().ok()?;
        chain
            .iter()
            .filter_map(|certificate| not_after(certificate))
            .min()
    }

    fn make_server(
        &self,
        alpn: &[&[u8]],
        required: bool,
        asked: bool,
    ) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(unusable)?;
        let builder = match self.authorities.as_ref().filter(|_| asked) {
            None if required => {
                return Err(unusable(
                    "client certificates are required, and no authorities are named to check them by",
                ));
            }
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let mut verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(pem.roots()?), provider);
                if !required {
                    verifier = verifier.allow_unauthenticated();
                }
                builder.with_client_cert_verifier(verifier.build().map_err(unusable)?)
            }
        };
        let (chain, key) = self
            .identity()?
            .ok_or_else(|| unusable("a server needs a certificate and its key"))?;
        let made = builder.with_single_cert(chain, key);
        let mut config = made.map_err(|error| self.misfit(&error))?;
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Ok(Arc::new(config))
    }

    fn identity(&self) -> Result<Option<Identity>, TlsError> {
        match (&self.certificate, &self.key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => {
                let (chain, private) = (certificate.certificates()?, key.private_key()?);
                match flaw((&certificate.name, &chain), (&key.name, &private)) {
                    Some(flaw) => Err(TlsError::Unusable(flaw.what)),
                    None => Ok(Some((chain, private))),
                }
            }
            (Some(pem), None) | (None, Some(pem)) => Err(TlsError::Unusable(format!(
                "{}: a certificate and its key go together, and one is missing",
                pem.name.display()
            ))),
        }
    }
}

impl Material {
    /// An error of `rustls` about the own certificate, with the files.
    fn misfit(&self, error: &rustls::Error) -> TlsError {
        let name = |pem: &Option<Pem>| {
            pem.as_ref()
                .map_or(String::new(), |pem| pem.name.display().to_string())
        };
        TlsError::Unusable(format!(
            "{} and {}: {error}",
            name(&self.certificate),
            name(&self.key)
        ))
    }
}

pub(crate) type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Pem {
    fn fault(&self, expected: &'static str) -> TlsError {
        TlsError::Pem {
            path: self.name.clone(),
            expected,
        }
    }

    pub(crate) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.text).collect();
        found
            .ok()
            .filter(|found| !found.is_empty())
            .ok_or_else(|| match self.has(b"PRIVATE KEY-----") {
                true => self.fault("certificates; it has a private key: are certificate and key swapped?"),
                false if self.is_der() => {
                    self.fault("certificates; it has DER: convert it with `openssl x509 -inform der`")
                }
                false => self.fault("certificates"),
            })
    }

    pub(crate) fn private_key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(&self.text).map_err(|_| {
            if self.has(b"ENCRYPTED") {
                return self.fault(
                    "a private key; it is encrypted: write it without a passphrase with `openssl pkey`",
                );
            }
            match self.has(b"BEGIN CERTIFICATE-----") {
                true => self.fault("a private key; it has certificates: are certificate and key swapped?"),
                false if self.is_der() => {
                    self.fault("a private key; it has DER: convert it with `openssl pkey -inform der`")
                }
                false => self.fault("a private key"),
            }
        })
    }

    fn has(&self, part: &[u8]) -> bool {
        self.text.windows(part.len()).any(|window| window == part)
    }

    /// Whether the file begins with a sequence of ASN.1.
    fn is_der(&self) -> bool {
        matches!(self.text.as_slice(), [0x30, 0x80..=0x84, ..])
    }

    pub(crate) fn roots(&self) -> Result<RootCertStore, TlsError> {
        let mut store = RootCertStore::empty();
        for certificate in self.certificates()? {
            store
                .add(certificate)
                .map_err(|error| TlsError::Unusable(format!("{}: {error}", self.name.display())))?;
        }
        Ok(store)
    }
}
