//! The PCFs of the comparison and their peers.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::requests::{Associations, model};
use super::{OURS, Settings};
use crate::bench::contest::Subject;
use crate::bench::processes::{self, start};
use crate::run::policy::merge;
use crate::run::policy::network::Network;
use crate::run::{Guarded, Place, Progress, RigError};
use loadgen::client::{Client, Request, Response};
use report::measure::Process;
use workload::policy::{Documents, Service};

/// How long a PCF may take until it creates its first association: it registers and finds its peers meanwhile.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(5);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(250);

/// Everything that runs during the comparison.
pub(super) struct Rig {
    network: Network,
    pcfs: Vec<Pcf>,
    documents: Arc<Documents>,
}

struct Pcf {
    name: String,
    address: SocketAddr,
    process: Guarded,
}

/// Who takes part in a contest.
pub(super) struct Entry {
    pub(super) subjects: Vec<Subject>,
    /// Who does not, and why.
    pub(super) absent: Vec<String>,
    /// Bytes of a creation and of our answer.
    pub(super) bytes: (u64, u64),
}

impl Rig {
    pub(super) fn start(place: &Place, settings: &Settings) -> Result<Self, RigError> {
        let network = Network::start(&model(), place, settings.nrf)?;
        let (command, address) = pcf(place, &network, settings)?;
        let process = start(place, OURS, command, &place.function_cpus, address)?;
        let mut pcfs = vec![Pcf {
            name: OURS.to_owned(),
            address,
            process,
        }];
        for other in &settings.others {
            pcfs.push(Pcf {
                name: other.name.clone(),
                address: other.address,
                process: other.start(place)?,
            });
        }
        let documents = Documents::new(&model(), &format!("http://{}", network.consumer));
        Ok(Self {
            network,
            pcfs,
            documents: Arc::new(documents.of_any_policy()),
        })
    }

    /// Processes that PCFs send requests to.
    pub(super) fn peers(&self) -> Vec<Process> {
        let simulators = self.network.simulators.iter().map(|one| one.process());
        let functions = self.network.beside.iter().map(Guarded::process);
        simulators.chain(functions).collect()
    }

    /// Finds out which PCFs serve associations of a service.
    pub(super) fn enter(&mut self, service: Service, progress: &mut Progress) -> Result<Entry, RigError> {
        let mut entry = Entry {
            subjects: Vec::new(),
            absent: Vec::new(),
            bytes: (0, 0),
        };
        for pcf in &mut self.pcfs {
            progress.status(&format!("waiting until {} creates associations …", pcf.name));
            let associations = Associations::new(self.documents.clone(), service);
            match pcf.serves(&associations) {
                Ok(bytes) => {
                    if entry.subjects.is_empty() {
                        entry.bytes = bytes;
                    }
                    entry.subjects.push(Subject {
                        name: pcf.name.clone(),
                        targets: vec![pcf.address],
                        source: Box::new(associations),
                        process: Some(pcf.process.process()),
                    });
                }
                Err(why) if pcf.name == OURS => return Err(RigError::Settings(format!("our PCF {why}"))),
                Err(why) => {
                    let why = format!("{} takes no part: it {why}", pcf.name);
                    progress.note(&why);
                    entry.absent.push(why);
                }
            }
        }
        Ok(entry)
    }

    pub(super) fn stop(self) {
        for pcf in self.pcfs {
            pcf.process.stop();
        }
    }
}

impl Pcf {
    /// Creates and deletes an association, again and again until that succeeds; the sizes of request and answer.
    fn serves(&mut self, associations: &Associations) -> Result<(u64, u64), String> {
        let end = Instant::now() + PATIENCE;
        for attempt in 0.. {
            match self.try_one(associations, Associations::probe(attempt)) {
                Ok(bytes) => return Ok(bytes),
                Err(why) if !self.process.is_alive() => return Err(format!("has ended; it {why}")),
                Err(why) if Instant::now() > end => return Err(why),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
        Err("was not asked".to_owned())
    }

    fn try_one(&self, associations: &Associations, number: u32) -> Result<(u64, u64), String> {
        let Associations { documents, kind, .. } = associations;
        let body = documents.context(kind, number);
        let request_bytes = body.len() as u64;
        let collection = kind.service.collection();
        let create = Request::new("POST", collection).with("application/json", body);
        let mut client =
            Client::connect(self.address, ANSWER).map_err(|error| format!("cannot be reached: {error}"))?;
        let mut ask = |request| -> Result<Response, String> {
            let answers = client
                .exchange(&[request])
                .map_err(|error| format!("gave no answer: {error}"))?;
            answers
                .into_iter()
                .next()
                .ok_or_else(|| "gave no answer".to_owned())
        };
        let made = ask(create)?;
        if made.status != 201 {
            return Err(format!("answered {} to a creation: {}", made.status, made.text()));
        }
        let shown = documents.shows(kind, number, &made.body);
        shown.map_err(|fault| format!("answered a creation with another document: {fault:?}"))?;
        let id = made.location.rsplit('/').next().filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| format!("named no association in Location {:?}", made.location))?;
        let path = format!("{collection}/{id}");
        let gone = match kind.service {
            // TS 29.512 §4.2.5
            Service::Sm => {
                ask(Request::new("POST", format!("{path}/delete")).with("application/json", "{}"))?
            }
            Service::Am | Service::Ue => ask(Request::new("DELETE", path))?,
        };
        match gone.status {
            204 => Ok((request_bytes, made.body.len() as u64)),
            status => Err(format!("answered {status} to a deletion: {}", gone.text())),
        }
    }
}

/// The command line of our PCF on one worker, and where it will listen. Others do not subscribe to changes of policy data,
/// so ours does not either.
fn pcf(place: &Place, network: &Network, settings: &Settings) -> Result<(Command, SocketAddr), RigError> {
    let store = place.folder.join("pcf-store");
    // A run begins with an empty PCF, also in a folder that was used before.
    if store.exists() {
        std::fs::remove_dir_all(&store).map_err(RigError::io(format!("removing {}", store.display())))?;
    }
    processes::function(
        place,
        "pcf",
        settings.function_config.as_deref(),
        |address, admin| {
            let mut made = json!({"pcf": {
                "listen": [address], "admin": admin, "workers": 1, "cores": place.function_cpus,
                "store": {"embedded": {"directory": store}},
                "diameter": {"enabled": false},
            }});
            let mut around = network.settings(&model());
            around["pds"]["udr"]["subscribe"] = json!(false);
            merge(&mut made["pcf"], around);
            made
        },
    )
}
