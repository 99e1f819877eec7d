//! Settings: files, and requirements for peers.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::{Faults, Period};

/// Certificate, key and trusted authorities, as PEM files.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct TlsFiles {
    /// Certificate chain, own certificate first.
    #[serde(alias = "certificates")]
    #[schemars(extend("x-aliases" = ["certificates"]))]
    pub certificate: PathBuf,
    /// Private key.
    pub key: PathBuf,
    /// Authorities whose certificates are trusted. A server with them asks its clients for a certificate;
    /// a client without them trusts no server.
    #[serde(alias = "trust", alias = "authority", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-aliases" = ["trust", "authority"]))]
    pub authorities: Option<PathBuf>,
    /// Servers only: whether a client without a certificate is refused (mutual TLS). Absent: true for the Diameter
    /// router, false elsewhere.
    #[serde(alias = "mutual", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-aliases" = ["mutual"]))]
    pub require_client_certificate: Option<bool>,
    /// Diameter only: whether a client's certificate has to be about the Origin-Host it gives. Absent: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_identity: Option<bool>,
    /// Interval at which the files are checked for changes; 0: only at a reload of the configuration. New handshakes
    /// use the changed files, open connections stay.
    pub check_interval: Period,
}

impl Default for TlsFiles {
    fn default() -> Self {
        Self {
            certificate: PathBuf::new(),
            key: PathBuf::new(),
            authorities: None,
            require_client_certificate: None,
            match_identity: None,
            check_interval: Period::from_secs(30),
        }
    }
}

impl PartialEq for TlsFiles {
    /// Whether both secure connections alike; the interval of checks has no part in that.
    fn eq(&self, other: &Self) -> bool {
        let parts = |files: &Self| (files.require_client_certificate, files.match_identity());
        (&self.certificate, &self.key, &self.authorities)
            == (&other.certificate, &other.key, &other.authorities)
            && parts(self) == parts(other)
    }
}

impl Eq for TlsFiles {}

impl TlsFiles {
    /// Whether a Diameter client's certificate has to be about its Origin-Host.
    #[must_use]
    pub fn match_identity(&self) -> bool {
        self.match_identity.unwrap_or(true)
    }

    /// Reports what is missing for connections between peers, which are client and server at once: certificate, key
    /// and authorities. `key` is the setting that the files are.
    pub fn validate_peer(&self, key: &str, faults: &mut Faults) {
        let authorities = self.authorities.clone().unwrap_or_default();
        for (part, path) in [
            ("certificate", &self.certificate),
            ("key", &self.key),
            ("authorities", &authorities),
        ] {
            if path.as_os_str().is_empty() {
                faults.at(format!("{key}.{part}")).say("is missing", "a PEM file");
            }
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
        /// The cause.
        source: std::io::Error,
    },
    /// A file is not PEM, or lacks what it should hold.
    #[error("{path}: expected PEM with {expected}")]
    Pem {
        /// The file.
        path: PathBuf,
        /// What the file should hold.
        expected: &'static str,
    },
    /// Certificate and key do not fit, or the authorities cannot be used.
    #[error("{0}")]
    Unusable(String),
}

pub(crate) fn unusable(error: impl std::fmt::Display) -> TlsError {
    TlsError::Unusable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_names_of_keys_are_read() {
        let old = r#"{"certificates": "a", "key": "b", "trust": "c", "mutual": true, "checkInterval": "1s"}"#;
        let new = r#"{"certificate": "a", "key": "b", "authorities": "c", "requireClientCertificate": true}"#;
        let [old, new] = [old, new].map(|text| serde_json::from_str::<TlsFiles>(text).unwrap());
        assert_eq!(old, new);
        let written = serde_json::to_string(&old).unwrap();
        assert!(
            written.contains("authorities") && !written.contains("trust"),
            "{written}"
        );
        let other: TlsFiles = serde_json::from_str(r#"{"certificate": "a", "mutual": false}"#).unwrap();
        assert_ne!(old, other);
    }
}
