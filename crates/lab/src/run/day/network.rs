//! The four functions of a bad day and their peers.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tls::authority::Authority;

use super::disk::Disk;
use super::kinds::Targets;
use crate::run::bsf::Servers;
use crate::run::children::{Guarded, Simulator};
use crate::run::rig::{Place, RigError, free_address, write_config};
use callmodel::bad_day::{BadDayModel, Incident};
use loadgen::client::{Client, Request};
use loadgen::engine::{TlsFiles, client_tls};
use simulators::diameter::DiameterSettings;
use simulators::network::{REALM, address_of, instance_of, name_of};
use simulators::{MovedName, NameServerSettings, RoleName, Settings};

/// How long set-up requests may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Number of the producer that is named, and of the address that its name moves to.
pub(super) const NAMED: (u32, u32) = (1, 2);
/// Number of the first producer of the set.
const FIRST: u32 = 10;
/// Simulated producers send no heart-beats.
const HEART_BEAT_SECONDS: u32 = 86_400;
/// The NF set of the producers.
const SET: &str = "set1.udmset.5gc.mnc001.mcc001";
/// The answer timeout of the router.
const ANSWER: &str = "1s";
/// The interval at which the SCP checks its certificate.
const CHECKED: &str = "1s";

/// A function, which may be killed and started again.
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    pub(super) admin: SocketAddr,
    pub(super) file: PathBuf,
    pub(super) process: Option<Guarded>,
}

impl Function {
    /// Starts it with the settings of its file, and waits until it listens.
    pub(super) fn start(&mut self, place: &Place) -> Result<(), RigError> {
        let mut process = place.start(self.name, &self.file, &place.function_cpus)?;
        process.wait_longer_for(self.address, PATIENCE)?;
        self.process = Some(process);
        Ok(())
    }
}

/// Everything that runs.
pub(super) struct Network {
    pub(super) place: Place,
    pub(super) nrf: Function,
    pub(super) scp: Function,
    pub(super) bsf: Function,
    pub(super) router: Function,
    /// Producers of the set, by their numbers.
    pub(super) producers: Vec<(u32, Simulator)>,
    pub(super) next_producer: u32,
    pub(super) named: Option<Simulator>,
    pub(super) names: Option<Simulator>,
    pub(super) hss: Vec<Simulator>,
    pub(super) authority: Authority,
    pub(super) tls: TlsFiles,
    pub(super) database: Option<Servers>,
    pub(super) disk: Option<Disk>,
    /// Incidents that cannot be made here, with the reason.
    pub(super) impossible: Vec<(Incident, String)>,
}

impl Network {
    pub(super) fn start(model: &BadDayModel, place: &Place) -> Result<Self, RigError> {
        let failed =
            |error: tls::TlsError| RigError::Settings(format!("certificates cannot be made: {error}"));
        let authority = Authority::new("signalbox laboratory").map_err(failed)?;
        let identity = authority.issue(&["127.0.0.1"]).map_err(failed)?;
        let tls = authority.write(&identity, &place.folder, "scp").map_err(failed)?;
        let mut impossible = Vec::new();
        let database = match model.incidents.contains(&Incident::DatabaseStopped) {
            true => Servers::single()
                .map_err(|why| impossible.push((Incident::DatabaseStopped, why.to_string())))
                .ok(),
            false => None,
        };
        let disk = match model.incidents.contains(&Incident::DiskFull) {
            true => Disk::mount(&place.folder.join("disk"))?,
            false => None,
        };
        if disk.is_none() && model.incidents.contains(&Incident::DiskFull) {
            let why = "it needs to mount a file system, as root can";
            impossible.push((Incident::DiskFull, why.to_owned()));
        }
        let function = |name| -> Result<Function, RigError> {
            Ok(Function {
                name,
                address: free_address()?,
                admin: free_address()?,
                file: place.folder.join(format!("{name}.yaml")),
                process: None,
            })
        };
        let mut network = Self {
            place: place.clone(),
            nrf: function("nrf")?,
            scp: function("scp")?,
            bsf: function("bsf")?,
            router: function("dsr")?,
            producers: Vec::new(),
            next_producer: FIRST,
            named: None,
            names: None,
            hss: Vec::new(),
            authority,
            tls,
            database,
            disk,
            impossible,
        };
        network.begin()?;
        Ok(network)
    }

    fn begin(&mut self) -> Result<(), RigError> {
        let place = self.place.clone();
        let store = match &self.disk {
            Some(disk) => disk.store(),
            None => place.empty_folder("nrf-store")?,
        };
        let nrf = json!({
            "heartBeat": {"max": "24h"}, "tokens": {"requireRegistration": false},
            "overload": {"waiting": waiting()},
            "store": {"embedded": {"directory": store}},
            // The SCP is notified over TLS.
            "clientTls": self.tls_settings(),
        });
        configure(&mut self.nrf, nrf, None)?;
        self.nrf.start(&place)?;
        self.start_producers()?;
        let root = format!("http://{}", self.nrf.address);
        let mut store = self
            .database
            .as_ref()
            .map_or_else(|| json!({}), |one| one.settings(0));
        // The file with its NF instance id lies there, also with a database.
        store["embedded"] = json!({"directory": place.empty_folder("bsf-store")?});
        let bsf = json!({
            "nrf": {"apiRoots": [root]}, "store": store, "rx": {"enabled": false},
            "overload": {"waiting": waiting()},
        });
        configure(&mut self.bsf, bsf, None)?;
        self.bsf.start(&place)?;
        let scp = self.scp_settings();
        configure(&mut self.scp, scp, None)?;
        self.scp.start(&place)?;
        self.start_hss()?;
        let router = self.router_settings();
        configure(&mut self.router, router, Some("localNodes"))?;
        self.router.start(&place)
    }

    fn tls_settings(&self) -> Value {
        json!({
            "certificate": self.tls.certificate, "key": self.tls.key, "authorities": self.tls.authorities,
            "requireClientCertificate": false, "checkInterval": CHECKED,
        })
    }

    fn scp_settings(&self) -> Value {
        let names = self.names.as_ref().and_then(|names| names.addresses.first());
        json!({
            "directory": self.place.folder.join("scp"),
            "tls": self.tls_settings(),
            "dns": {"servers": [names]},
            "nrf": {
                "roots": [format!("http://{}", self.nrf.address)], "nfTypes": ["UDM"], "retryInterval": "200ms"
            },
            "policies": [{"responseTimeoutMs": 1000}],
            "protection": {"waiting": waiting()},
        })
    }

    fn router_settings(&self) -> Value {
        let hosts: Vec<(String, Option<&SocketAddr>)> = (0..)
            .zip(&self.hss)
            .map(|(number, hss)| (host_of(number), hss.addresses.first()))
            .collect();
        let peers: Vec<Value> = hosts
            .iter()
            .map(|(host, address)| {
                json!({
                    "host": host, "addresses": [address],
                    "timers": {"watchdog": "6s", "reconnectMin": "50ms", "reconnectMax": "1s", "reopen": "never"},
                })
            })
            .collect();
        let members: Vec<Value> = hosts.iter().map(|(host, _)| json!({"host": host})).collect();
        json!({
            "localNodes": [{"host": format!("dsr.{REALM}"), "realm": REALM, "listen": [self.router.address]}],
            "peers": peers,
            "dynamicPeers": [{"realms": [REALM], "networks": ["127.0.0.0/8"]}],
            "routing": {
                "transaction": {"answer": ANSWER},
                "realmRoutes": [{"realm": REALM, "routeList": "hss"}],
                "routeLists": [{"name": "hss", "groups": ["hss"]}],
                "routeGroups": [{"name": "hss", "peers": members}],
            },
        })
    }

    fn start_producers(&mut self) -> Result<(), RigError> {
        for _ in 0..2 {
            self.start_producer()?;
        }
        let port = free_address()?.port();
        let named = self.start_named(NAMED.0, port)?;
        self.named = Some(named);
        let names = self.start_names(&[], SocketAddr::from(([127, 0, 0, 1], 0)))?;
        self.names = Some(names);
        let profile = json!({
            "nfInstanceId": instance_of(NAMED.0), "nfType": "UDM", "nfStatus": "REGISTERED",
            "heartBeatTimer": HEART_BEAT_SECONDS, "fqdn": name_of(NAMED.0),
            "nfServices": [{
                "serviceInstanceId": "1", "serviceName": "nudm-sdm", "scheme": "http",
                "nfServiceStatus": "REGISTERED", "fqdn": name_of(NAMED.0),
                "versions": [{"apiVersionInUri": "v2", "apiFullVersion": "2.0.0"}],
                "ipEndPoints": [{"port": port}],
            }],
            // Only requests that name it go there.
            "priority": 60000,
        });
        self.register("PUT", NAMED.0, Some(&profile))
    }

    /// Starts a producer of the set and registers it under the next NF instance id.
    pub(super) fn start_producer(&mut self) -> Result<(), RigError> {
        let number = self.next_producer;
        self.next_producer += 1;
        let settings = Settings {
            role: RoleName::Producer,
            ..Settings::default()
        };
        let simulator = self.simulate(&format!("producer-{number}"), &settings)?;
        let address = simulator.addresses.first().copied();
        let address = address.ok_or_else(|| RigError::Settings("a producer listens nowhere".to_owned()))?;
        let profile = json!({
            "nfInstanceId": instance_of(number), "nfType": "UDM", "nfStatus": "REGISTERED", "priority": 1,
            "heartBeatTimer": HEART_BEAT_SECONDS,
            "ipv4Addresses": [address.ip()], "nfSetIdList": [SET],
            "nfServices": [{
                "serviceInstanceId": "1", "serviceName": "nudm-sdm", "scheme": "http",
                "nfServiceStatus": "REGISTERED",
                "versions": [{"apiVersionInUri": "v2", "apiFullVersion": "2.0.0"}],
                "ipEndPoints": [{"ipv4Address": address.ip(), "port": address.port()}],
            }],
        });
        self.register("PUT", number, Some(&profile))?;
        self.producers.push((number, simulator));
        Ok(())
    }

    /// Starts the named producer at the address of this number.
    pub(super) fn start_named(&self, number: u32, port: u16) -> Result<Simulator, RigError> {
        let settings = Settings {
            role: RoleName::Producer,
            listen: SocketAddr::from((address_of(number), port)).into(),
            ..Settings::default()
        };
        self.simulate(&format!("named-{number}"), &settings)
    }

    /// Starts the name server.
    pub(super) fn start_names(&self, moved: &[MovedName], at: SocketAddr) -> Result<Simulator, RigError> {
        let settings = Settings {
            role: RoleName::NameServer,
            listen: at.into(),
            names: NameServerSettings {
                moved: moved.to_vec(),
                ..NameServerSettings::default()
            },
            ..Settings::default()
        };
        self.simulate("names", &settings)
    }

    fn start_hss(&mut self) -> Result<(), RigError> {
        for first in 0..2 {
            let settings = Settings {
                role: RoleName::Hss,
                diameter: DiameterSettings {
                    first,
                    ..DiameterSettings::default()
                },
                ..Settings::default()
            };
            let simulator = self.simulate(&format!("hss-{first}"), &settings)?;
            self.hss.push(simulator);
        }
        Ok(())
    }

    fn simulate(&self, name: &str, settings: &Settings) -> Result<Simulator, RigError> {
        let place = &self.place;
        let started = Simulator::start(&place.program, name, settings, &place.lab_cpus, &place.folder)?;
        Ok(started)
    }

    /// Registers or deregisters a producer.
    pub(super) fn register(
        &self,
        method: &'static str,
        number: u32,
        profile: Option<&Value>,
    ) -> Result<(), RigError> {
        let io = || RigError::io("registering a producer");
        let mut client = Client::connect(self.nrf.address, PATIENCE).map_err(io())?;
        let mut request = Request::new(
            method,
            format!("/nnrf-nfm/v1/nf-instances/{}", instance_of(number)),
        );
        if let Some(profile) = profile {
            request = request.with("application/json", profile.to_string());
        }
        let answers = client.exchange(&[request]).map_err(io())?;
        match answers.iter().find(|answer| !(200..300).contains(&answer.status)) {
            None => Ok(()),
            Some(refused) => Err(RigError::Settings(format!(
                "the NRF answers {} to {method} of a producer: {}",
                refused.status,
                refused.text()
            ))),
        }
    }

    /// Where consumers send requests.
    pub(super) fn targets(&self, patience: Duration) -> Result<Targets, RigError> {
        let port = self.named_port();
        Ok(Targets {
            nrf: self.nrf.address,
            scp: self.scp.address,
            bsf: self.bsf.address,
            router: self.router.address,
            named: format!("http://{}:{port}", name_of(NAMED.0)),
            tls: client_tls(&self.tls).map_err(RigError::io("making TLS"))?,
            patience,
        })
    }

    pub(super) fn named_port(&self) -> u16 {
        let named = self.named.as_ref();
        named
            .and_then(|one| one.addresses.first())
            .map_or(0, SocketAddr::port)
    }

    /// All functions.
    pub(super) fn functions(&self) -> [&Function; 4] {
        [&self.nrf, &self.scp, &self.bsf, &self.router]
    }

    pub(super) fn stop(self) {
        for function in [self.router, self.scp, self.bsf, self.nrf] {
            if let Some(process) = function.process {
                process.stop();
            }
        }
    }
}

/// The DiameterIdentity of an HSS.
fn host_of(number: usize) -> String {
    DiameterSettings::default().host(number)
}

/// Requests are not refused because this machine is busy with something else: the day judges incidents.
fn waiting() -> Value {
    json!({"target": "0s"})
}

/// Writes the settings of a function. `listener`: the setting that has its listeners already, where that is not `listen`.
fn configure(function: &mut Function, own: Value, listener: Option<&str>) -> Result<(), RigError> {
    let mut settings = json!({"admin": function.admin, "workers": 1});
    if let (Some(settings), Value::Object(own)) = (settings.as_object_mut(), own) {
        settings.extend(own);
        if listener.is_none() {
            settings.insert("listen".to_owned(), json!([function.address]));
        }
    }
    write_config(&function.file, json!({function.name: settings}), None)
}
