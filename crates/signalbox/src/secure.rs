//! `signalbox up --secure`: mutual TLS and access tokens everywhere, with certificates made on the spot.
//!
//! Certificates lie in a folder of their own beside the state of the NRF, for the owner's eyes only. They are made when
//! there are none, or when they do not hold any more; the authority's key is not kept.

mod certificates;
mod examples;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sbi::identity::IdentityMode;
use sbi::oauth::AssertionMode;
use tls::TlsFiles;

use crate::config::Config;
use crate::laboratory::traffic;
use certificates::Certificates;

pub(crate) use examples::page;

/// Name of the folder.
const FOLDER: &str = "secure";
/// NF instance id of the application function that a person at the terminal is.
const PERSON: &str = "5b0000aa-51ab-4000-8000-000000000001";

/// What makes a core secure.
pub(crate) struct Secure {
    certificates: Certificates,
    /// The instances that certificates were made for, by function.
    instances: Vec<(&'static str, String)>,
    /// Where the NRF is, once it listens.
    nrf: OnceLock<String>,
}

impl Secure {
    /// Makes or finds the certificates that this configuration needs.
    pub(crate) fn open(config: &Config) -> anyhow::Result<Self> {
        let store = &config.nrf.store.embedded.directory;
        let folder = store
            .parent()
            .map_or_else(|| PathBuf::from(FOLDER), |run| run.join(FOLDER));
        let settled = |name: &'static str, id: &str, directory: &Path| {
            let mut id = id.to_owned();
            function::settle_instance(&mut id, directory, name).map(|()| (name, id))
        };
        let (scp, bsf, pcf, scef) = (&config.scp, &config.bsf, &config.pcf, &config.scef);
        let sds = &config.sds;
        let instances = vec![
            settled("nrf", &config.nrf.nf_instance_id, store)?,
            settled("scp", &scp.nf_instance_id, &scp.directory)?,
            settled("bsf", &bsf.nf_instance_id, &bsf.store.embedded.directory)?,
            settled("pcf", &pcf.nf_instance_id, &pcf.store.embedded.directory)?,
            settled("scef", &scef.nf_instance_id, &scef.store.embedded.directory)?,
            settled("sds", &sds.nf_instance_id, &sds.directory)?,
        ];
        let certificates = Certificates::open(folder, &wanted(config, &instances))?;
        Ok(Self {
            certificates,
            instances,
            nrf: OnceLock::new(),
        })
    }

    /// The NRF listens here.
    pub(crate) fn found_nrf(&self, root: &str) {
        // It listens at one place as long as the process runs.
        let _ = self.nrf.set(root.to_owned());
    }

    /// What simulated functions prove who they are with.
    pub(crate) fn traffic(&self) -> traffic::Secure {
        let files = |name: &str| TlsFiles {
            require_client_certificate: None,
            ..self.files(name)
        };
        traffic::Secure {
            functions: simulated().iter().map(|(name, _)| files(name)).collect(),
            listener: files("simulated"),
            nodes: traffic::nodes().iter().map(|host| files(host)).collect(),
        }
    }

    /// Where the certificates are.
    pub(crate) fn folder(&self) -> &Path {
        self.certificates.folder()
    }

    /// What the router connects with.
    pub(crate) fn router(&self) -> TlsFiles {
        self.files("dsr")
    }

    /// Makes a configuration secure, whatever it says of security.
    pub(crate) fn apply(&self, config: &mut Config) {
        let nrf = self.nrf.get().cloned().unwrap_or_else(|| {
            let address = config.nrf.listen.first();
            address.map_or_else(String::new, |address| format!("https://{address}"))
        });
        let authority = self.certificates.authority();
        for (name, id) in &self.instances {
            let instance = match *name {
                "nrf" => &mut config.nrf.nf_instance_id,
                "scp" => &mut config.scp.nf_instance_id,
                "pcf" => &mut config.pcf.nf_instance_id,
                "scef" => &mut config.scef.nf_instance_id,
                "sds" => &mut config.sds.nf_instance_id,
                _ => &mut config.bsf.nf_instance_id,
            };
            // A certificate is about one instance; another comes with another start.
            instance.clone_from(id);
        }

        let section = &mut config.nrf;
        section.tls = Some(self.files("nrf"));
        section.client_tls = Some(self.files("nrf"));
        section.tokens.protect_own_services = true;
        section.tokens.require_registration = true;
        section.identity.mode = Some(IdentityMode::Required);
        section.identity.relays = vec![config.scp.nf_instance_id.clone()];
        section.identity.trusted.clear();
        section.identity.assertions.mode = AssertionMode::Check;
        section.identity.assertions.authorities = Some(authority.clone());

        let section = &mut config.scp;
        section.tls = Some(self.files("scp"));
        section.client_tls = Some(self.files("scp"));
        section.nrf.roots = vec![nrf.clone()];
        section.nrf.register = true;
        section.forward_to_unknown = false;
        section.security.tokens.enabled = true;
        section.security.tokens.requests = scp::config::TokenUse::Missing;
        section.security.tokens.services.clear();
        section.security.tokens.require_proof = true;
        section.security.assertions.mode = AssertionMode::Check;
        section.security.assertions.authorities = Some(authority);

        let section = &mut config.bsf;
        section.tls = Some(self.files("bsf"));
        section.client_tls = Some(self.files("bsf"));
        section.nrf.api_roots = vec![nrf.clone()];
        section.tokens.required = true;
        section.tokens.key_set_uris = vec![format!("{nrf}/oauth2/jwks")];
        section.tokens.issuers = vec![config.nrf.nf_instance_id.clone()];
        section.identity.relays = vec![config.scp.nf_instance_id.clone()];
        section.rx.tls = Some(self.files("bsf"));

        let section = &mut config.pcf;
        section.tls = Some(self.files("pcf"));
        section.client_tls = Some(self.files("pcf"));
        section.diameter.tls = Some(self.files("pcf"));
        section.nrf.api_roots = vec![nrf.clone()];
        section.tokens.required = true;
        section.tokens.key_set_uris = vec![format!("{nrf}/oauth2/jwks")];
        section.tokens.issuers = vec![config.nrf.nf_instance_id.clone()];
        // Consumers come through the SCP, with tokens of their own.
        section.identity.relays = vec![config.scp.nf_instance_id.clone()];

        let section = &mut config.scef;
        section.tls = Some(self.files("scef"));
        section.client_tls = Some(self.files("scef"));
        section.diameter.tls = Some(self.files("scef"));
        section.tokens.required = true;
        section.tokens.key_set_uris = vec![format!("{nrf}/oauth2/jwks")];
        section.tokens.issuers = vec![config.nrf.nf_instance_id.clone()];

        let section = &mut config.sds;
        section.tls = Some(self.files("sds"));
        section.tokens.required = true;
        section.tokens.key_set_uris = vec![format!("{nrf}/oauth2/jwks")];
        section.tokens.issuers = vec![config.nrf.nf_instance_id.clone()];

        for node in &mut config.dsr.local_nodes {
            node.tls = Some(self.files("dsr"));
        }
        for peers in &mut config.dsr.dynamic_peers {
            peers.tls_only = true;
        }
    }

    fn files(&self, name: &str) -> TlsFiles {
        TlsFiles {
            certificate: self.certificates.certificate(name),
            key: self.certificates.key(name),
            authorities: Some(self.certificates.authority()),
            require_client_certificate: Some(true),
            ..TlsFiles::default()
        }
    }
}

/// The simulated functions: names of files and NF instance ids.
fn simulated() -> Vec<(String, String)> {
    let instances = traffic::instances().into_iter().enumerate();
    let named = instances.map(|(place, (nf_type, id))| {
        let name = format!("simulated-{}-{place}", nf_type.to_ascii_lowercase());
        (name, id)
    });
    named.collect()
}

/// Whose certificates are needed, and for which names.
fn wanted(config: &Config, instances: &[(&'static str, String)]) -> Vec<(String, Vec<String>)> {
    let urn = |id: &str| format!("urn:uuid:{}", id.to_ascii_lowercase());
    let here = |listen: &settings::Listen| {
        let mut names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        let addresses = listen.iter().map(|address| address.ip());
        let others = addresses
            .filter(|ip| !ip.is_unspecified())
            .map(|ip| ip.to_string());
        for name in others {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    };
    let mut wanted = Vec::new();
    for (name, id) in instances {
        let listen = match *name {
            "nrf" => &config.nrf.listen,
            "scp" => &config.scp.listen,
            "pcf" => &config.pcf.listen,
            "scef" => &config.scef.listen,
            "sds" => &config.sds.listen,
            _ => &config.bsf.listen,
        };
        let mut names = here(listen);
        match *name {
            "bsf" => names.push(config.bsf.rx.host.clone()),
            "pcf" => names.push(config.pcf.diameter.host.clone()),
            "scef" => names.push(config.scef.diameter.host.clone()),
            _ => {}
        }
        names.push(urn(id));
        wanted.push(((*name).to_owned(), names));
    }
    let loopback = here(&settings::Listen::default());
    let mut router = loopback.clone();
    router.extend(config.dsr.local_nodes.iter().map(|node| node.host.clone()));
    wanted.push(("dsr".to_owned(), router));
    let with = |id: &str| loopback.iter().cloned().chain([urn(id)]).collect::<Vec<_>>();
    let simulated = simulated();
    let all = simulated.iter().map(|(_, id)| urn(id));
    wanted.push((
        "simulated".to_owned(),
        loopback.iter().cloned().chain(all).collect(),
    ));
    wanted.extend(simulated.iter().map(|(name, id)| (name.clone(), with(id))));
    // A Diameter node is known by its DiameterIdentity (RFC 6733 §13.1).
    wanted.extend(
        traffic::nodes()
            .into_iter()
            .map(|host| (host.clone(), vec![host])),
    );
    wanted.push(("you".to_owned(), with(PERSON)));
    wanted
}
