//! What is around the PCF of a run: simulated UDR, CHF and AMF, a real NRF that knows them, and a real BSF.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::run::children::{Guarded, Simulator};
use crate::run::rig::{Counter, Egress, Place, Received, RigError, free_address, write_config};
use callmodel::policy::{PolicyModel, Source};
use loadgen::client::{Client, Request};
use report::measure::Metrics;
use simulators::network::population::instance_id;
use simulators::{PolicySubscribers, RoleName, Settings};
use workload::policy::FIRST_IMSI;

/// How long the NRF may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between heart-beats of simulators, which send none.
const HEART_BEAT_SECONDS: u32 = 86_400;

/// Processes around the PCF.
pub(crate) struct Network {
    pub(crate) simulators: Vec<Simulator>,
    pub(crate) beside: Vec<Guarded>,
    /// Where SMFs and AMFs take notifications.
    pub(crate) consumer: SocketAddr,
    /// Who counts requests of the PCF.
    pub(super) egress: Vec<Egress>,
    nrf: SocketAddr,
    bsf: Option<SocketAddr>,
}

impl Network {
    /// Starts all of it; the NRF listens at `nrf`.
    pub(crate) fn start(model: &PolicyModel, place: &Place, nrf: SocketAddr) -> Result<Self, RigError> {
        let admin = free_address()?;
        let process = start_function(place, "nrf", nrf, |address, store| {
            Ok(json!({"nrf": {
                "listen": [address.to_string()], "admin": admin.to_string(), "workers": 1,
                "store": {"embedded": {"directory": store}},
                "heartBeat": {"max": "24h"},
                "tokens": {"requireRegistration": false},
            }}))
        })?;
        let mut network = Self {
            simulators: Vec::new(),
            beside: vec![process],
            consumer: nrf,
            egress: vec![counted_by("NRF", admin)],
            nrf,
            bsf: None,
        };
        let subscribers = PolicySubscribers {
            first: FIRST_IMSI,
            count: model.subscribers,
        };
        network.consumer = network.simulator(place, "amf", RoleName::Amf, Source::default(), &subscribers)?;
        network.counts("AMF and SMF");
        let amf = network.consumer;
        network.register(1, "AMF", "namf-comm", amf, json!({"amfInfo": amf_info()}))?;
        if let Some(udr) = model.udr {
            let address = network.simulator(place, "udr", RoleName::Udr, udr, &subscribers)?;
            network.counts("UDR");
            let info = json!({"udrInfo": {"supportedDataSets": ["POLICY"]}});
            network.register(2, "UDR", "nudr-dr", address, info)?;
        }
        if let Some(chf) = model.chf {
            let address = network.simulator(place, "chf", RoleName::Chf, chf, &subscribers)?;
            network.counts("CHF");
            network.register(3, "CHF", "nchf-spendinglimitcontrol", address, json!({}))?;
        }
        if model.bsf {
            let admin = free_address()?;
            let (address, rx) = (free_address()?, free_address()?);
            let process = start_function(place, "bsf", address, |address, store| {
                Ok(json!({"bsf": {
                    "rx": {"listen": [rx.to_string()]},
                    "listen": [address.to_string()], "admin": admin.to_string(), "workers": 1,
                    "store": {"embedded": {"directory": store}},
                    "nrf": {"apiRoots": [format!("http://{nrf}")]},
                }}))
            })?;
            network.beside.push(process);
            network.egress.push(counted_by("BSF", admin));
            network.bsf = Some(address);
        }
        Ok(network)
    }

    /// Settings of the PCF that name them.
    pub(crate) fn settings(&self, model: &PolicyModel) -> Value {
        // The answers of a fallback would be wrong here: the deadline leaves time on a slow machine.
        let mut pds = json!({"deadline": "3s"});
        if model.udr.is_some() {
            pds["udr"] = json!({"enabled": true});
        }
        if model.chf.is_some() {
            pds["chf"] = json!({"enabled": true, "services": ["sm", "am"]});
        }
        let mut made = json!({"nrf": {"apiRoots": [format!("http://{}", self.nrf)]}, "pds": pds});
        if let Some(bsf) = self.bsf {
            made["bsf"] = json!({"apiRoots": [format!("http://{bsf}")]});
        }
        made
    }

    /// The simulator that was started last counts requests of the PCF.
    fn counts(&mut self, name: &'static str) {
        let count = Received::Simulator(self.simulators.len().saturating_sub(1));
        self.egress.push(Egress { name, count });
    }

    fn simulator(
        &mut self,
        place: &Place,
        name: &str,
        role: RoleName,
        source: Source,
        subscribers: &PolicySubscribers,
    ) -> Result<SocketAddr, RigError> {
        let settings = Settings {
            role,
            latency: source.latency,
            udr: subscribers.clone(),
            ..Settings::default()
        };
        let started = Simulator::start(&place.program, name, &settings, &place.lab_cpus, &place.folder)?;
        let address = started.addresses.first().copied();
        self.simulators.push(started);
        address.ok_or_else(|| RigError::Settings(format!("the simulator {name} listens nowhere")))
    }

    /// Registers a simulator at the NRF.
    fn register(
        &self,
        row: u32,
        nf_type: &str,
        service: &str,
        address: SocketAddr,
        info: Value,
    ) -> Result<(), RigError> {
        register(self.nrf, row, (nf_type, service), address, info)
    }
}

/// Registers a simulator with one service at an NRF.
pub(in crate::run) fn register(
    nrf: SocketAddr,
    row: u32,
    (nf_type, service): (&str, &str),
    address: SocketAddr,
    info: Value,
) -> Result<(), RigError> {
    let id = instance_id(0xa0, row);
    // Other PCFs still ask a UDR for v1; the simulator answers both alike.
    let versions: &[&str] = if nf_type == "UDR" { &["v2", "v1"] } else { &["v1"] };
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"apiVersionInUri": version, "apiFullVersion": "1.0.0"}))
        .collect();
    let mut profile = json!({
        "nfInstanceId": id, "nfType": nf_type, "nfStatus": "REGISTERED",
        "heartBeatTimer": HEART_BEAT_SECONDS,
        "ipv4Addresses": [address.ip().to_string()],
        "nfServices": [{
            "serviceInstanceId": service, "serviceName": service,
            "versions": versions,
            "scheme": "http", "nfServiceStatus": "REGISTERED",
            "ipEndPoints": [{"ipv4Address": address.ip().to_string(), "port": address.port()}],
        }],
    });
    if let (Some(profile), Value::Object(info)) = (profile.as_object_mut(), info) {
        profile.extend(info);
    }
    let io = || RigError::io(format!("registering the {nf_type}"));
    let mut client = Client::connect(nrf, PATIENCE).map_err(io())?;
    let request = Request::new("PUT", format!("/nnrf-nfm/v1/nf-instances/{id}"))
        .with("application/json", profile.to_string());
    let answers = client.exchange(&[request]).map_err(io())?;
    match answers.iter().find(|answer| !(200..300).contains(&answer.status)) {
        None => Ok(()),
        Some(refused) => Err(RigError::Settings(format!(
            "the NRF answered {} to the registration of the {nf_type}: {}",
            refused.status,
            refused.text()
        ))),
    }
}

/// A function beside the PCF, of which the PCF is the only consumer: all requests that arrive there are the PCF's.
fn counted_by(name: &'static str, admin: SocketAddr) -> Egress {
    let read = move || {
        let metrics = Metrics::read(admin);
        metrics.map_or(0, |metrics| {
            metrics.sum("signalbox_sbi_server_requests_total", &[]) as u64
        })
    };
    let count = Received::Function(Counter(Arc::new(read)));
    Egress { name, count }
}

/// `AmfInfo` of the simulated AMF (TS 29.510 §6.1.6.2.11).
pub(in crate::run) fn amf_info() -> Value {
    json!({"amfSetId": "001", "amfRegionId": "01",
        "guamiList": [{"plmnId": {"mcc": "001", "mnc": "01"}, "amfId": "010041"}]})
}

/// Starts a function beside the PCF, with an empty store; `made` gives its settings.
fn start_function(
    place: &Place,
    name: &'static str,
    address: SocketAddr,
    made: impl FnOnce(SocketAddr, &Path) -> Result<Value, RigError>,
) -> Result<Guarded, RigError> {
    let store = place.empty_folder(&format!("{name}-store"))?;
    let file = place.folder.join(format!("{name}.yaml"));
    write_config(&file, made(address, &store)?, None)?;
    let mut process = place.start(name, &file, &place.lab_cpus)?;
    process.wait_for(address)?;
    Ok(process)
}
