//! The proxies, the NRF and the producers behind them.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{ANSWER_BYTES, Subject, result};
use crate::client::{Client, Request};
use crate::run::{Guarded, Place, RigError, RunError, Simulator, free_address};
use crate::sim::{ProducerSettings, RoleName, Settings as SimSettings};

/// Everything that runs during a comparison.
pub(super) struct Rig {
    proxies: Vec<Guarded>,
    others: Vec<Guarded>,
    producers: Simulator,
    pub(super) subjects: Vec<Subject>,
}

const OURS: usize = 0;
const HAPROXY: usize = 1;
const NGHTTPX: usize = 2;
/// How long something may take to get ready.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whether the programs are installed.
pub(super) fn find() -> Result<(), RunError> {
    for (program, packages) in [
        ("h2load", "nghttp2-client"),
        ("haproxy", "haproxy"),
        ("nghttpx", "nghttp2-proxy"),
    ] {
        let asked = Command::new(program)
            .arg("-v")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if asked.is_err() {
            return Err(RunError::Missing { program, packages });
        }
    }
    Ok(())
}

impl Rig {
    pub(super) fn start(place: &Place) -> Result<Self, RunError> {
        let settings = SimSettings {
            role: RoleName::Producer,
            ports: 2,
            producer: ProducerSettings {
                status: 201,
                body_bytes: ANSWER_BYTES,
                ..ProducerSettings::default()
            },
            ..SimSettings::default()
        };
        let producers = Simulator::start(
            &place.program,
            "producers",
            &settings,
            &place.lab_cpus,
            &place.folder,
        )
        .map_err(RigError::from)?;
        let producer = producers.addresses[0];
        let (nrf, nrf_address) = function(place, "nrf", &place.lab_cpus, |address, admin| {
            json!({"nrf": {
                "listen": address, "admin": admin, "workers": 1,
                "store": {"embedded": {"directory": place.folder.join("nrf")}}
            }})
        })?;
        register(nrf_address, &producers.addresses)?;
        let (scp, scp_address) = function(place, "scp", &place.function_cpus, |address, admin| {
            json!({"scp": {
                "listen": address, "admin": admin, "workers": 1, "cores": place.function_cpus,
                "nrf": {"roots": [format!("http://{nrf_address}")], "nfTypes": ["UDM"], "retryInterval": "100ms"},
                // Every protection is on, with bounds that the load does not reach, but for one: the client drives
                // the core to its limit, which discards by processor load are there to prevent.
                "protection": {
                    "ingress": [{"consumer": "*", "rate": {"perSecond": 10_000_000}}],
                    "egress": [{"producer": "*", "rate": {"perSecond": 10_000_000}, "global": true}],
                    "targetLoad": null
                }
            }})
        })?;
        let (haproxy, haproxy_address) = haproxy(place, producer)?;
        let (nghttpx, nghttpx_address) = nghttpx(place, producer)?;
        let subject = |name, address, headers: &[(&'static str, String)], proxy| Subject {
            name,
            address,
            headers: headers.to_vec(),
            proxy,
            full: result::Sum::default(),
            latency: Default::default(),
        };
        let model_c = [("3gpp-sbi-target-apiroot", format!("http://{producer}"))];
        let model_d = [
            ("3gpp-sbi-discovery-target-nf-type", "UDM".to_owned()),
            ("3gpp-sbi-discovery-requester-nf-type", "AMF".to_owned()),
            ("3gpp-sbi-discovery-service-names", "nudm-sdm".to_owned()),
        ];
        let rig = Self {
            proxies: vec![scp, haproxy, nghttpx],
            others: vec![nrf],
            producers,
            subjects: vec![
                subject("scp-model-c", scp_address, &model_c, Some(OURS)),
                subject("scp-model-d", scp_address, &model_d, Some(OURS)),
                subject("haproxy", haproxy_address, &[], Some(HAPROXY)),
                subject("nghttpx", nghttpx_address, &[], Some(NGHTTPX)),
                subject("direct", producer, &[], None),
            ],
        };
        await_learning(scp_address)?;
        Ok(rig)
    }

    /// Processor time that the proxy of a subject has used so far.
    pub(super) fn cpu(&self, at: usize) -> Duration {
        let proxy = self.subjects[at].proxy.and_then(|proxy| self.proxies.get(proxy));
        let usage = proxy.and_then(|proxy| proxy.process().usage());
        usage.map_or(Duration::ZERO, |usage| usage.cpu)
    }

    pub(super) fn stop(self) {
        self.proxies
            .into_iter()
            .chain(self.others)
            .for_each(Guarded::stop);
        drop(self.producers);
    }
}

/// Starts one of our functions with these settings.
fn function(
    place: &Place,
    name: &'static str,
    cpus: &[usize],
    settings: impl FnOnce(SocketAddr, SocketAddr) -> Value,
) -> Result<(Guarded, SocketAddr), RigError> {
    let (address, admin) = (free_address()?, free_address()?);
    let file = place.folder.join(format!("{name}.yaml"));
    std::fs::write(&file, settings::to_yaml(&settings(address, admin)))
        .map_err(RigError::io(format!("writing {}", file.display())))?;
    let mut command = Command::new(&place.program);
    command.arg("run").arg(name).arg("--config").arg(&file);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = Guarded::start(name, command, cpus, &place.folder.join(format!("{name}.log")))?;
    child.wait_for(address)?;
    Ok((child, address))
}

/// Registers the producers as members of one set; all traffic goes to the first, as it does through the other
/// proxies, and the second could stand in for it.
fn register(nrf: SocketAddr, producers: &[SocketAddr]) -> Result<(), RigError> {
    let failed = RigError::io("registering the producers");
    let exchange = || -> std::io::Result<Vec<u16>> {
        let mut client = Client::connect(nrf, PATIENCE)?;
        let requests: Vec<Request> = producers
            .iter()
            .enumerate()
            .map(|(number, address)| {
                let id = format!("00000000-0000-4000-8000-{number:012x}");
                let profile = json!({
                    "nfInstanceId": id, "nfType": "UDM", "nfStatus": "REGISTERED", "heartBeatTimer": 3600,
                    "priority": number,
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
        let answers = client.exchange(&requests)?;
        Ok(answers.into_iter().map(|answer| answer.status).collect())
    };
    match exchange() {
        Ok(statuses) if statuses.iter().all(|status| (200..300).contains(status)) => Ok(()),
        Ok(statuses) => Err(RigError::Settings(format!(
            "the NRF answered {statuses:?} to registrations"
        ))),
        Err(error) => Err(failed(error)),
    }
}

/// Waits until the SCP serves what the NRF knows.
fn await_learning(scp: SocketAddr) -> Result<(), RigError> {
    let end = Instant::now() + PATIENCE;
    loop {
        let mut client = Client::connect(scp, PATIENCE).map_err(RigError::io("connecting to the SCP"))?;
        let request = Request::new("GET", super::h2load::PATH)
            .header("3gpp-sbi-discovery-target-nf-type", "UDM")
            .header("3gpp-sbi-discovery-requester-nf-type", "AMF")
            .header("3gpp-sbi-discovery-service-names", "nudm-sdm");
        let answers = client.exchange(&[request]);
        if answers.is_ok_and(|answers| answers[0].status == 201) {
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

fn haproxy(place: &Place, producer: SocketAddr) -> Result<(Guarded, SocketAddr), RigError> {
    let address = free_address()?;
    let file = place.folder.join("haproxy.cfg");
    let text = format!(
        "global\n  nbthread 1\n  maxconn 2000\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n  \
         timeout server 60s\n  http-reuse always\nfrontend in\n  bind {address} proto h2\n  default_backend out\n\
         backend out\n  server one {producer} proto h2\n"
    );
    std::fs::write(&file, text).map_err(RigError::io(format!("writing {}", file.display())))?;
    let mut command = Command::new("haproxy");
    command
        .arg("-f")
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut child = Guarded::start(
        "haproxy",
        command,
        &place.function_cpus,
        &place.folder.join("haproxy.log"),
    )?;
    child.wait_for(address)?;
    Ok((child, address))
}

fn nghttpx(place: &Place, producer: SocketAddr) -> Result<(Guarded, SocketAddr), RigError> {
    let address = free_address()?;
    let mut command = Command::new("nghttpx");
    command
        .arg(format!("--frontend={},{};no-tls", address.ip(), address.port()))
        .arg(format!(
            "--backend={},{};;proto=h2",
            producer.ip(),
            producer.port()
        ))
        .args([
            "--workers=1",
            "--single-process",
            "--conf=/dev/null",
            "--accesslog-file=/dev/null",
        ])
        .args(["--backend-connections-per-host=8", "--errorlog-file=/dev/stderr"])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let mut child = Guarded::start(
        "nghttpx",
        command,
        &place.function_cpus,
        &place.folder.join("nghttpx.log"),
    )?;
    child.wait_for(address)?;
    Ok((child, address))
}
