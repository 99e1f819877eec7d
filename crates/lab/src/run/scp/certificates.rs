//! Certificates for one run: an authority that is trusted in this run only, and the certificates that it issues.

use std::path::PathBuf;

use serde_json::{Value, json};
use tls::authority::Authority;

use super::next;
use crate::run::rig::{Place, RigError};
use callmodel::scp::ScpModel;
use loadgen::engine::TlsFiles;
use workload::scp::address_of;

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
        let issuer = Issuer {
            authority: Authority::new("signalbox laboratory").map_err(failed)?,
            folder: place.folder.clone(),
        };
        let localhost = ["127.0.0.1".to_owned()];
        let mut everywhere: Vec<String> = (0..model.profiles)
            .map(|number| address_of(number).to_string())
            .collect();
        everywhere.extend(localhost.clone());
        let regions = model.inter_scp.iter().flat_map(next::others);
        let regions: Vec<String> = regions
            .map(|region| next::address_of(region).to_string())
            .collect();
        Ok(Self {
            consumers: issuer.issue("consumers", &localhost)?,
            producers: issuer.issue("producers", &everywhere)?,
            scp: issuer.issue("scp", &localhost)?,
            next: issuer.issue("next-scp", &regions)?,
            broker: issuer.issue("kafka", &localhost)?,
            nrf: issuer.issue("nrf", &localhost)?,
        })
    }
}

/// The authority of a run; what it issues lies in a folder.
struct Issuer {
    authority: Authority,
    folder: PathBuf,
}

fn failed(error: impl std::fmt::Display) -> RigError {
    RigError::Settings(format!("certificates cannot be made: {error}"))
}

impl Issuer {
    /// A certificate for a server and client at these addresses or with these names.
    fn issue(&self, name: &str, subjects: &[String]) -> Result<TlsFiles, RigError> {
        let subjects: Vec<&str> = subjects.iter().map(String::as_str).collect();
        let identity = self.authority.issue(&subjects).map_err(failed)?;
        self.authority
            .write(&identity, &self.folder, name)
            .map_err(failed)
    }
}

/// The same files as settings of our functions name them.
pub(super) fn as_settings(files: &TlsFiles, mutual: bool) -> Value {
    json!({
        "certificate": files.certificate, "key": files.key, "authorities": files.authorities,
        "requireClientCertificate": mutual
    })
}
