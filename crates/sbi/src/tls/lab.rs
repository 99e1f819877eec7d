//! Certificates for laboratories and tests: an authority made on the spot and what it signs.
//!
//! Not for production: the authority's key lives and dies with the value.

use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use super::{Material, Pem, TlsError, TlsFiles, unusable};

/// An authority that nobody but its lab trusts.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate and its key, in PEM.
#[derive(Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl Authority {
    /// A new authority of this name.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn new(name: &str) -> Result<Self, TlsError> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().map_err(unusable)?;
        let pem = params.self_signed(&key).map_err(unusable)?.pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            pem,
        })
    }

    /// Its own certificate in PEM, for those who shall trust it.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for a server and client with these names: DNS names, addresses, or URIs
    /// (`urn:uuid:…`, the NF instance id).
    ///
    /// # Errors
    /// When a name cannot be in a certificate.
    pub fn issue(&self, names: &[&str]) -> Result<Identity, TlsError> {
        let (uris, hosts): (Vec<&str>, Vec<&str>) = names
            .iter()
            .partition(|name| name.contains("://") || name.starts_with("urn:"));
        let hosts: Vec<String> = hosts.into_iter().map(str::to_owned).collect();
        let mut params = CertificateParams::new(hosts).map_err(unusable)?;
        for uri in uris {
            params
                .subject_alt_names
                .push(SanType::URI(uri.try_into().map_err(unusable)?));
        }
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        if let Some(name) = names.first() {
            params.distinguished_name.push(DnType::CommonName, *name);
        }
        let key = KeyPair::generate().map_err(unusable)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(unusable)?;
        Ok(Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }

    /// What a server or client with this identity needs when it trusts this authority.
    #[must_use]
    pub fn material(&self, identity: Option<&Identity>, require_client_certificate: bool) -> Material {
        let pem = |name: &str, text: &str| Pem {
            name: name.into(),
            text: text.as_bytes().to_vec(),
        };
        Material {
            certificate: identity.map(|identity| pem("certificate", &identity.certificate)),
            key: identity.map(|identity| pem("key", &identity.key)),
            authorities: Some(pem("authorities", &self.pem)),
            require_client_certificate,
        }
    }

    /// Writes `NAME.crt`, `NAME.key` and `authority.crt` into a directory, and answers the settings that
    /// name them.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, identity: &Identity, directory: &Path, name: &str) -> Result<TlsFiles, TlsError> {
        let write = |file: String, text: &str| {
            let path = directory.join(file);
            match std::fs::write(&path, text) {
                Ok(()) => Ok(path),
                Err(source) => Err(TlsError::File { path, source }),
            }
        };
        Ok(TlsFiles {
            certificate: write(format!("{name}.crt"), &identity.certificate)?,
            key: write(format!("{name}.key"), &identity.key)?,
            authorities: Some(write("authority.crt".to_owned(), &self.pem)?),
            ..TlsFiles::default()
        })
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity")
    }
}
