//! The NRF of a run whose model has an audit or SRV records: it has the PCFs of all bindings, and each BSF finds it, registers
//! and asks it what became of the PCFs while the load runs.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};

use crate::run::children::{Guarded, Simulator};
use crate::run::figure;
use crate::run::rig::{Place, Probe, RigError, free_address, write_config};
use ::report::Check;
use callmodel::bsf::Features;
use loadgen::client::{Client, Request};
use report::measure::Metrics;
use simulators::network::{address_of, name_of};
use simulators::{AlternatesOf, NameServerSettings, RoleName, Settings};
use workload::bsf::Sessions;

/// How long registering the PCFs may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The name whose SRV records lead to the NRF, and the host that they name.
const SERVICE: u32 = 0;
const HOST: u32 = 1;
/// Seconds between heart-beats that PCFs ask for: none is sent while a run lasts.
const HEART_BEAT: u64 = 86_400;

/// The NRF, and the name server where there is one.
pub(super) struct Registry {
    process: Guarded,
    admin: SocketAddr,
    /// The API root that BSFs are configured with.
    root: String,
    names: Option<Simulator>,
    /// PCFs that are registered.
    pcfs: usize,
}

impl Registry {
    /// Starts what the features need; none: they need none.
    pub(super) fn start(
        features: Features,
        sessions: &Sessions,
        place: &Place,
    ) -> Result<Option<Self>, RigError> {
        if !features.needs_nrf() {
            return Ok(None);
        }
        let port = free_address()?.port();
        let address = SocketAddr::from((address_of(HOST), port));
        let (process, admin) = start_nrf(address, place)?;
        register(address, sessions)?;
        let names = match features.dns_srv {
            true => Some(start_names(port, place)?),
            false => None,
        };
        let root = match features.dns_srv {
            true => format!("http://{}", name_of(SERVICE)),
            false => format!("http://{address}"),
        };
        Ok(Some(Self {
            process,
            admin,
            root,
            names,
            pcfs: sessions.pcf_ids().len(),
        }))
    }

    /// Adds to the settings of a BSF where the NRF is.
    pub(super) fn configure(&self, bsf: &mut Value) {
        bsf["nrf"] = json!({ "apiRoots": [self.root], "dnsSrv": self.names.is_some() });
        if let Some(address) = self.names.as_ref().and_then(|names| names.addresses.first()) {
            bsf["dns"] = json!({ "servers": [address.to_string()] });
        }
    }

    pub(super) fn note(&self) -> String {
        let by = match self.names {
            Some(_) => "by SRV records of a name server",
            None => "by its address",
        };
        format!(
            "{} PCFs are registered at an NRF, which each BSF finds {by}; bindings are audited while the load runs",
            self.pcfs
        )
    }

    pub(super) fn into_processes(self) -> (Option<Guarded>, Option<Simulator>) {
        (Some(self.process), self.names)
    }
}

fn start_nrf(address: SocketAddr, place: &Place) -> Result<(Guarded, SocketAddr), RigError> {
    let admin = free_address()?;
    let file = place.folder.join("nrf.yaml");
    let made = json!({ "nrf": {
        "listen": [address.to_string()],
        "admin": admin.to_string(),
        "workers": 1,
        "store": { "embedded": { "directory": place.empty_folder("nrf-store")? } },
        "heartBeat": { "max": format!("{HEART_BEAT}s") },
    }});
    write_config(&file, made, None)?;
    let mut process = place.start("nrf", &file, &place.lab_cpus)?;
    process.wait_for(address)?;
    Ok((process, admin))
}

fn start_names(port: u16, place: &Place) -> Result<Simulator, RigError> {
    let settings = Settings {
        role: RoleName::NameServer,
        names: NameServerSettings {
            port,
            alternates: vec![AlternatesOf {
                of: SERVICE,
                are: vec![HOST],
            }],
            ..NameServerSettings::default()
        },
        ..Settings::default()
    };
    let (program, folder) = (&place.program, &place.folder);
    Ok(Simulator::start(
        program,
        "names",
        &settings,
        &place.lab_cpus,
        folder,
    )?)
}

/// Registers the PCFs of the bindings.
fn register(nrf: SocketAddr, sessions: &Sessions) -> Result<(), RigError> {
    let io = || RigError::io("registering the PCFs");
    let mut client = Client::connect(nrf, PATIENCE).map_err(io())?;
    let requests: Vec<Request> = sessions.pcf_ids().iter().map(|id| registration(id)).collect();
    let answers = client.exchange(&requests).map_err(io())?;
    match answers.iter().find(|answer| answer.status != 201) {
        None => Ok(()),
        Some(refused) => Err(RigError::Settings(format!(
            "the NRF answered {} to the registration of a PCF: {}",
            refused.status,
            refused.text()
        ))),
    }
}

fn registration(id: &str) -> Request {
    let profile = json!({
        "nfInstanceId": id, "nfType": "PCF", "nfStatus": "REGISTERED", "heartBeatTimer": HEART_BEAT,
        "ipv4Addresses": ["127.0.0.1"],
    });
    Request::new("PUT", format!("/nnrf-nfm/v1/nf-instances/{id}"))
        .with("application/json", profile.to_string())
}

/// What the features have done, by the counters of the BSFs and of the NRF.
pub(super) fn watch(features: Features, registry: Option<&Registry>, admins: &[SocketAddr]) -> Vec<Probe> {
    let mut probes: Vec<Probe> = Vec::new();
    let admins = admins.to_vec();
    if let Some(nrf) = registry.map(|registry| registry.admin) {
        let bsfs = admins.len();
        probes.push(Box::new(move || {
            let known = sum(&[nrf], "signalbox_nrf_profiles", &[("nf_type", "BSF")]);
            let said = format!("{} BSFs at the NRF", figure(known));
            Check::new(
                "registration",
                format!("{bsfs} BSFs find the NRF"),
                said,
                known >= bsfs as f64,
            )
        }));
    }
    if features.audit {
        let admins = admins.clone();
        probes.push(Box::new(move || audited(&admins)));
    }
    if features.scoring {
        probes.push(Box::new(move || {
            let scores = admins
                .iter()
                .map(|admin| sum(&[*admin], "signalbox_bsf_score", &[]));
            let lowest = scores.fold(f64::INFINITY, f64::min);
            let said = format!("{} at the lowest", figure(lowest));
            Check::new("score", "each BSF has a score above 0", said, lowest > 0.0)
        }));
    }
    probes
}

/// The PCFs of all bindings are registered, so that none is removed.
fn audited(admins: &[SocketAddr]) -> Check {
    let count = |name: &str| sum(admins, &format!("signalbox_bsf_audit_{name}_total"), &[]);
    let (checked, unanswered) = (count("looked_at"), count("unanswered"));
    let removed = count("removed_gone") + count("removed_restarted");
    let said = format!(
        "{} bindings checked, {} removed, {} questions without an answer",
        figure(checked),
        figure(removed),
        figure(unanswered)
    );
    let is_right = checked > 0.0 && removed < 1.0 && unanswered < 1.0;
    Check::new(
        "audit",
        "bindings are checked, none of a registered PCF is removed",
        said,
        is_right,
    )
}

fn sum(admins: &[SocketAddr], name: &str, labels: &[(&str, &str)]) -> f64 {
    let each = admins.iter().filter_map(|admin| Metrics::read(*admin));
    each.map(|metrics| metrics.sum(name, labels)).sum()
}
