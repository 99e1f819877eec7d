//! The proxies, the NRF and the producers behind them.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{ANSWER_BYTES, requests};
use crate::bench::contest::{Requests, Subject};
use crate::bench::processes::{self, start};
use crate::run::{Guarded, Place, RigError, Simulator};
use loadgen::client::{Client, Request};
use report::measure::Process;
use simulators::network::{address_of, instance_of};
use simulators::{ProducerSettings, RoleName, Settings as SimSettings};

/// The path that is asked for.
pub(super) const PATH: &str = "/nudm-sdm/v2/imsi-001010000000001/sdm-subscriptions";
/// Names of subjects.
pub(in crate::bench) const MODEL_C: &str = "scp-model-c";
pub(in crate::bench) const MODEL_D: &str = "scp-model-d";
pub(in crate::bench) const HAPROXY: &str = "haproxy";
pub(in crate::bench) const NGHTTPX: &str = "nghttpx";

/// How long something may take to get ready.
const PATIENCE: Duration = Duration::from_secs(20);

/// Producers in one process, each at a loopback address of its own.
pub(in crate::bench) struct Producers {
    simulator: Simulator,
    /// Where they listen; the last one stands by if only one is asked for.
    pub(in crate::bench) addresses: Vec<SocketAddr>,
    /// The number of them that are used.
    pub(in crate::bench) count: usize,
}

impl Producers {
    pub(in crate::bench) fn start(place: &Place, count: u32) -> Result<Self, RigError> {
        let settings = SimSettings {
            role: RoleName::Producer,
            listen: SocketAddr::from(([0, 0, 0, 0], 0)).into(),
            producer: ProducerSettings {
                status: 201,
                body_bytes: ANSWER_BYTES,
                ..ProducerSettings::default()
            },
            ..SimSettings::default()
        };
        let simulator = Simulator::start(
            &place.program,
            "producers",
            &settings,
            &place.lab_cpus,
            &place.folder,
        )?;
        let port = simulator
            .addresses
            .first()
            .ok_or_else(|| RigError::Settings("the producers do not listen".to_owned()))?
            .port();
        let addresses = (0..count.max(2)).map(|number| SocketAddr::from((address_of(number), port)));
        Ok(Self {
            addresses: addresses.collect(),
            count: count.max(1) as usize,
            simulator,
        })
    }

    /// Those that requests go to.
    pub(in crate::bench) fn used(&self) -> &[SocketAddr] {
        &self.addresses[..self.count]
    }

    pub(super) fn process(&self) -> Process {
        self.simulator.process()
    }

    /// Requests that name the producer by its API root (Model C, TS 29.500 §6.10.2.5).
    pub(in crate::bench) fn model_c(&self) -> Requests {
        let root = |address: &SocketAddr| ("3gpp-sbi-target-apiroot", format!("http://{address}"));
        let mut requests = requests();
        match self.used() {
            [only] => requests.headers.push(root(only)),
            all => requests.rotating = all.iter().map(root).collect(),
        }
        requests
    }
}

/// Requests that have the producer discovered (Model D, TS 29.500 §6.10.3).
pub(in crate::bench) fn model_d() -> Requests {
    Requests {
        headers: discovery().to_vec(),
        ..requests()
    }
}

/// Everything that runs during a contest.
pub(super) struct Rig {
    proxies: Vec<Guarded>,
    pub(super) producers: Producers,
    pub(super) subjects: Vec<Subject>,
    pub(super) reference: usize,
}

impl Rig {
    pub(super) fn start(place: &Place, count: u32, over: Option<&Path>) -> Result<Self, RigError> {
        let producers = Producers::start(place, count)?;
        let (nrf, nrf_address) = nrf(place, &producers)?;
        let (command, scp_address) = scp(place, nrf_address, over)?;
        let scp = start(place, "scp", command, &place.function_cpus, scp_address)?;
        let (command, haproxy_address) = processes::haproxy(place, producers.used())?;
        let haproxy = start(place, HAPROXY, command, &place.function_cpus, haproxy_address)?;
        let (command, nghttpx_address) = processes::nghttpx(producers.used())?;
        let nghttpx = start(place, NGHTTPX, command, &place.function_cpus, nghttpx_address)?;
        let subject = |name: &str, targets: Vec<SocketAddr>, requests: Requests, process| Subject {
            name: name.to_owned(),
            targets,
            source: Box::new(requests),
            process,
        };
        let subjects = vec![
            subject(
                MODEL_C,
                vec![scp_address],
                producers.model_c(),
                Some(scp.process()),
            ),
            subject(MODEL_D, vec![scp_address], model_d(), Some(scp.process())),
            subject(
                HAPROXY,
                vec![haproxy_address],
                requests(),
                Some(haproxy.process()),
            ),
            subject(
                NGHTTPX,
                vec![nghttpx_address],
                requests(),
                Some(nghttpx.process()),
            ),
            subject("direct", producers.used().to_vec(), requests(), None),
        ];
        await_learning(scp_address, PATIENCE)?;
        Ok(Self {
            reference: subjects
                .iter()
                .position(|subject| subject.name == NGHTTPX)
                .unwrap_or_default(),
            proxies: vec![scp, haproxy, nghttpx, nrf],
            producers,
            subjects,
        })
    }

    pub(super) fn stop(self) {
        self.proxies.into_iter().for_each(Guarded::stop);
        drop(self.producers);
    }
}

/// An NRF that knows the producers, and where it listens.
pub(in crate::bench) fn nrf(place: &Place, producers: &Producers) -> Result<(Guarded, SocketAddr), RigError> {
    let (command, address) = processes::function(place, "nrf", None, |address, admin| {
        json!({"nrf": {
            "listen": [address], "admin": admin, "workers": 1,
            "store": {"embedded": {"directory": place.folder.join("nrf")}}
        }})
    })?;
    let nrf = start(place, "nrf", command, &place.lab_cpus, address)?;
    register(address, producers)?;
    Ok((nrf, address))
}

/// The command line of our SCP on one worker, and where it will listen.
pub(in crate::bench) fn scp(
    place: &Place,
    nrf: SocketAddr,
    over: Option<&Path>,
) -> Result<(Command, SocketAddr), RigError> {
    processes::function(place, "scp", over, |address, admin| {
        json!({"scp": {
            "directory": place.folder.join("scp"), "listen": [address], "admin": admin, "workers": 1, "cores": place.function_cpus,
            "nrf": {"roots": [format!("http://{nrf}")], "nfTypes": ["UDM"], "retryInterval": "100ms"},
            // Every protection is on: admission by waiting time as by default, rates with bounds that the load does not
            // reach.
            "protection": {
                "ingress": [{"consumer": "*", "rate": {"perSecond": 10_000_000}}],
                "egress": [{"producer": "*", "rate": {"perSecond": 10_000_000}, "global": true}]
            }
        }})
    })
}

/// What Model D asks for.
fn discovery() -> [(&'static str, String); 3] {
    [
        ("3gpp-sbi-discovery-target-nf-type", "UDM".to_owned()),
        ("3gpp-sbi-discovery-requester-nf-type", "AMF".to_owned()),
        ("3gpp-sbi-discovery-service-names", "nudm-sdm".to_owned()),
    ]
}

/// Registers the producers as members of one set. If one is used, all traffic goes to the first, as it does through the
/// other proxies, and the second could stand in for it.
fn register(nrf: SocketAddr, producers: &Producers) -> Result<(), RigError> {
    let profiles: Vec<Request> = (0..)
        .zip(&producers.addresses)
        .map(|(number, address)| {
            let id = instance_of(number);
            let profile = json!({
                "nfInstanceId": id, "nfType": "UDM", "nfStatus": "REGISTERED", "heartBeatTimer": 3600,
                "priority": if producers.count == 1 { number } else { 0 },
                "nfSetIdList": ["set1.udmset.5gc.mnc001.mcc001"], "ipv4Addresses": [address.ip()],
                "nfServices": [{
                    "serviceInstanceId": "sdm", "serviceName": "nudm-sdm", "scheme": "http",
                    "nfServiceStatus": "REGISTERED",
                    "versions": [{"apiVersionInUri": "v2", "apiFullVersion": "2.0.0"}],
                    "ipEndPoints": [{"ipv4Address": address.ip(), "port": address.port()}]
                }]
            });
            Request::new("PUT", format!("/nnrf-nfm/v1/nf-instances/{id}"))
                .with("application/json", profile.to_string())
        })
        .collect();
    processes::register(nrf, &profiles)
}

/// Waits until the SCP serves what the NRF knows.
pub(in crate::bench) fn await_learning(scp: SocketAddr, patience: Duration) -> Result<(), RigError> {
    let end = Instant::now() + patience;
    loop {
        let mut client = Client::connect(scp, patience).map_err(RigError::io("connecting to the SCP"))?;
        let request = discovery()
            .into_iter()
            .fold(Request::new("GET", PATH), |request, (name, value)| {
                request.header(name, value)
            });
        let answers = client.exchange(&[request]);
        if answers.is_ok_and(|answers| answers.first().is_some_and(|answer| answer.status == 201)) {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(RigError::Settings(
                "the SCP does not find the producers".to_owned(),
            ));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
