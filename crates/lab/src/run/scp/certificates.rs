//! Certificates for one run: an authority that nobody else trusts, and what it signs.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use serde_json::{Value, json};

use super::next;
use crate::callmodel::scp::ScpModel;
use crate::engine::TlsFiles;
use crate::run::rig::{Place, RigError};
use crate::workload::scp::address_of;

/// Certificates of a run.
pub(super) struct Tls {
    pub(super) consumers: TlsFiles,
    pub(super) producers: TlsFiles,
    pub(super) scp: TlsFiles,
    pub(super) next: TlsFiles,
    pub(super) broker: TlsFiles,
    pub(super) nrf: TlsFiles,
}

impl Tls {
    pub(super) fn make(model: &ScpModel, place: &Place) -> Result<Self, RigError> {
        let authority = Authority::new(&place.folder)?;
        let localhost = "127.0.0.1".to_owned();
        let mut everywhere: Vec<String> = (0..model.profiles)
            .map(|number| address_of(number).to_string())
            .collect();
        everywhere.push(localhost.clone());
        let regions = model.inter_scp.iter().flat_map(next::others);
        let regions = regions.map(|region| next::address_of(region).to_string());
        Ok(Self {
            consumers: authority.issue("consumers", vec![localhost.clone()])?,
            producers: authority.issue("producers", everywhere)?,
            scp: authority.issue("scp", vec![localhost.clone()])?,
            next: authority.issue("next-scp", regions.collect())?,
            broker: authority.issue("kafka", vec![localhost.clone()])?,
            nrf: authority.issue("nrf", vec![localhost])?,
        })
    }
}

/// The authority of a run.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    folder: PathBuf,
    file: PathBuf,
}

fn failed(error: impl std::fmt::Display) -> RigError {
    RigError::Settings(format!("no certificate can be made: {error}"))
}

fn write(path: &Path, text: &str) -> Result<(), RigError> {
    std::fs::write(path, text).map_err(RigError::io(format!("writing {}", path.display())))
}

impl Authority {
    /// A new one; its certificate goes to a folder, as what it issues does.
    fn new(folder: &Path) -> Result<Self, RigError> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params
            .distinguished_name
            .push(DnType::CommonName, "signalbox laboratory");
        let key = KeyPair::generate().map_err(failed)?;
        let file = folder.join("authority.crt");
        write(&file, &params.self_signed(&key).map_err(failed)?.pem())?;
        Ok(Self {
            issuer: Issuer::new(params, key),
            folder: folder.to_owned(),
            file,
        })
    }

    /// A certificate for a server and client at these addresses or with these names.
    fn issue(&self, name: &str, subjects: Vec<String>) -> Result<TlsFiles, RigError> {
        let mut params = CertificateParams::new(subjects).map_err(failed)?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?;
        let files = TlsFiles {
            certificate: self.folder.join(format!("{name}.crt")),
            key: self.folder.join(format!("{name}.key")),
            authority: self.file.clone(),
        };
        write(&files.certificate, &certificate.pem())?;
        write(&files.key, &key.serialize_pem())?;
        Ok(files)
    }
}

/// The same files as settings of our functions name them.
pub(super) fn as_settings(files: &TlsFiles, mutual: bool) -> Value {
    json!({
        "certificate": files.certificate, "key": files.key, "authorities": files.authority,
        "requireClientCertificate": mutual
    })
}
