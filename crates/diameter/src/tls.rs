//! Keys and trust from PEM files, which may change while connections are made by them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::crypto::ring::default_provider;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::{TlsConfig, TlsSides};

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

/// What is in the files.
#[derive(PartialEq, Eq)]
struct Contents {
    certificates: Vec<u8>,
    key: Vec<u8>,
    trust: Vec<u8>,
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the text: there is a private key in it.
        f.write_str("Contents")
    }
}

fn certificates(path: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsFilesError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
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
        let sides = self.make(&self.read()?)?;
        Ok(TlsConfig::new(sides, self.match_identity))
    }

    fn read(&self) -> Result<Contents, TlsFilesError> {
        let read = |path: &Path| std::fs::read(path).map_err(|error| bad(path, error));
        Ok(Contents {
            certificates: read(&self.certificates)?,
            key: read(&self.key)?,
            trust: read(&self.trust)?,
        })
    }

    fn make(&self, contents: &Contents) -> Result<TlsSides, TlsFilesError> {
        let chain = certificates(&self.certificates, &contents.certificates)?;
        let key = PrivateKeyDer::from_pem_slice(&contents.key).map_err(|error| bad(&self.key, error))?;
        let mut roots = RootCertStore::empty();
        for root in certificates(&self.trust, &contents.trust)? {
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
        Ok(TlsSides {
            client: Arc::new(client),
            server: Arc::new(server),
        })
    }
}

/// Files that are read again and again, and the configuration that follows them.
#[derive(Debug)]
pub struct FollowedTls {
    files: TlsFiles,
    config: TlsConfig,
    /// What was in the files when `config` was made.
    contents: Mutex<Contents>,
    /// The fault that was told last, while it lasts.
    told: Mutex<Option<String>>,
}

/// What is in the files by now, ready for use.
#[derive(Debug)]
pub struct ChangedTls {
    contents: Contents,
    sides: TlsSides,
}

impl FollowedTls {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// As [`TlsFiles::load`].
    pub fn open(files: TlsFiles) -> Result<Self, TlsFilesError> {
        let contents = files.read()?;
        let config = TlsConfig::new(files.make(&contents)?, files.match_identity);
        Ok(Self {
            files,
            config,
            contents: Mutex::new(contents),
            told: Mutex::default(),
        })
    }

    /// What connections are made by. It changes when [`FollowedTls::take`] is called.
    #[must_use]
    pub const fn config(&self) -> &TlsConfig {
        &self.config
    }

    /// Reads the files again; none when nothing in them has changed.
    ///
    /// # Errors
    /// As [`TlsFiles::load`].
    pub fn look(&self) -> Result<Option<ChangedTls>, TlsFilesError> {
        let contents = self.files.read()?;
        if *self.contents.lock() == contents {
            return Ok(None);
        }
        let sides = self.files.make(&contents)?;
        Ok(Some(ChangedTls { contents, sides }))
    }

    /// Has handshakes from now on use what was found.
    pub fn take(&self, changed: ChangedTls) {
        let mut contents = self.contents.lock();
        *contents = changed.contents;
        self.config.replace(changed.sides);
        tracing::info!(
            certificates = %self.files.certificates.display(),
            "TLS handshakes from now on use the files as they are now"
        );
    }

    /// Reads the files again and uses what is in them. Files that cannot be used change nothing, and are told
    /// once: nobody needs the same line every half minute.
    pub fn check(&self) {
        let fault = match self.look() {
            Ok(Some(changed)) => {
                self.take(changed);
                None
            }
            Ok(None) => None,
            Err(error) => Some(error.to_string()),
        };
        let mut told = self.told.lock();
        if let Some(fault) = fault.as_ref().filter(|fault| told.as_ref() != Some(*fault)) {
            tracing::error!(
                fault,
                "TLS files cannot be used; handshakes go on with what was in them before"
            );
        }
        *told = fault;
    }

    /// [`FollowedTls::check`] at this interval. Never ends; belongs on a control thread.
    pub async fn follow(self: Arc<Self>, interval: Duration) {
        loop {
            tokio::time::sleep(interval).await;
            let this = self.clone();
            // Where the files are may be slow; a panic there is in the log already.
            let _ = tokio::task::spawn_blocking(move || this.check()).await;
        }
    }
}
