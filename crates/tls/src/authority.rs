//! Certificates for laboratories and tests: an authority made on the spot and what it signs.
//!
//! Not for production: the key of the authority exists in memory only, as long as the value.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use time::OffsetDateTime;

use crate::files::{TlsError, TlsFiles, unusable};
use crate::material::{Material, Pem};

const DAY: Duration = Duration::from_secs(86_400);
/// Validity of what is made here.
const LIFE: Duration = Duration::from_secs(365 * 86_400);

/// A certificate authority that only its laboratory trusts.
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
        Self::with(name, CertificateParams::default())
    }

    fn with(name: &str, mut params: CertificateParams) -> Result<Self, TlsError> {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, name);
        limited(&mut params);
        let key = KeyPair::generate().map_err(unusable)?;
        let pem = params.self_signed(&key).map_err(unusable)?.pem();
        Ok(Self {
            issuer: Issuer::new(params, key),
            pem,
        })
    }

    /// Its own certificate in PEM, for peers that should trust it.
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
        limited(&mut params);
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
            require_client_certificate: Some(require_client_certificate),
        }
    }

    /// Writes `NAME.crt`, `NAME.key` and `authority.crt` into a directory. Returns the settings that name them.
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

/// Whether an identity is of an authority, holds at this time since 1970, has its key, and is for all these names: DNS
/// names, addresses, or URIs.
#[must_use]
pub fn holds(authority: &str, identity: &Identity, names: &[&str], now: Duration) -> bool {
    let checked = || -> Option<bool> {
        let authority = CertificateDer::from_pem_slice(authority.as_bytes()).ok()?;
        let leaf = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).ok()?;
        let anchor = webpki::anchor_from_trusted_cert(&authority).ok()?;
        let parsed = webpki::EndEntityCert::try_from(&leaf).ok()?;
        let algorithms = rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .all;
        let at = UnixTime::since_unix_epoch(now);
        let usage = webpki::KeyUsage::client_auth();
        parsed
            .verify_for_usage(algorithms, &[anchor], &[], at, usage, None, None)
            .ok()?;
        let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).ok()?;
        // It fails where the key is another's.
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .ok()?
            .with_no_client_auth()
            .with_single_cert(vec![leaf.clone()], key)
            .ok()?;
        Some(names.iter().all(|name| match ServerName::try_from(*name) {
            Ok(name) => parsed.verify_is_valid_for_subject_name(&name).is_ok(),
            Err(_) => parsed.valid_uri_names().any(|uri| uri == *name),
        }))
    };
    checked().unwrap_or(false)
}

/// A time from yesterday, as clocks differ, to a year from now.
fn limited(params: &mut CertificateParams) {
    let now = OffsetDateTime::now_utc();
    params.not_before = now - DAY;
    params.not_after = now + LIFE;
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{GeneralSubtree, NameConstraints};

    #[test]
    fn validity_covers_time_key_authority_and_names() {
        let authority = Authority::new("a").unwrap();
        let id = "urn:uuid:4947a69a-f61b-4bc1-b9da-47c9c5d14b64";
        let names = ["127.0.0.1", "localhost", id];
        let identity = authority.issue(&names).unwrap();
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let good = |identity: &Identity, names: &[&str], now| holds(authority.pem(), identity, names, now);
        assert!(good(&identity, &names, now));
        assert!(!good(&identity, &["127.0.0.2"], now), "another address");
        assert!(!good(
            &identity,
            &["urn:uuid:4947a69a-f61b-4bc1-b9da-47c9c5d14b65"],
            now
        ));
        assert!(!good(&identity, &names, now + LIFE + DAY), "its time is over");
        let other = Authority::new("a").unwrap();
        assert!(!holds(other.pem(), &identity, &names, now), "another authority");
        let swapped = Identity {
            key: authority.issue(&names).unwrap().key,
            ..identity.clone()
        };
        assert!(!good(&swapped, &names, now), "another's key");
        let broken = Identity {
            certificate: "nothing".into(),
            ..identity
        };
        assert!(!good(&broken, &names, now));
    }
    /// An operator's authority is bound to the domain of the operator. Names that are URNs have no domain, and Go from 1.26 on refuses
    /// them then.
    #[test]
    fn an_authority_of_a_domain_signs_for_instance_ids() {
        let domain = GeneralSubtree::DnsName("op.example".to_owned());
        let mut params = CertificateParams::default();
        params.name_constraints = Some(NameConstraints {
            permitted_subtrees: vec![domain],
            excluded_subtrees: Vec::new(),
        });
        let authority = Authority::with("a", params).unwrap();
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap();
        let id = "urn:uuid:4947a69a-f61b-4bc1-b9da-47c9c5d14b64";
        for (host, is_signed_for) in [("smf1.op.example", true), ("smf1.other.example", false)] {
            let names = [host, id];
            let identity = authority.issue(&names).unwrap();
            assert_eq!(
                holds(authority.pem(), &identity, &names, now),
                is_signed_for,
                "{host}"
            );
        }
    }
}
