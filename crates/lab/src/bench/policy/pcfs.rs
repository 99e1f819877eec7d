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
use crate::run::{Guarded, Place, Progress, RigError, free_address};
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
        let (command, address) = pcf(place, &network, settings.function_config.as_deref())?;
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
            match try_one(self.address, associations, Associations::probe(attempt)) {
                Ok(bytes) => return Ok(bytes),
                Err(why) if !self.process.is_alive() => return Err(format!("has ended; it {why}")),
                Err(why) if Instant::now() > end => return Err(why),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
        Err("was not asked".to_owned())
    }
}

/// Creates and deletes an association on a connection of its own.
fn try_one(pcf: SocketAddr, associations: &Associations, number: u32) -> Result<(u64, u64), String> {
    let mut client = Client::connect(pcf, ANSWER).map_err(|error| format!("cannot be reached: {error}"))?;
    create_and_delete(&mut client, associations, number)
}

/// Creates and deletes an association; the sizes of the creation and of its answer.
fn create_and_delete(
    client: &mut Client,
    associations: &Associations,
    number: u32,
) -> Result<(u64, u64), String> {
    let Associations { documents, kind, .. } = associations;
    let body = documents.context(kind, number);
    let request_bytes = body.len() as u64;
    let collection = kind.service.collection();
    let create = Request::new("POST", collection).with("application/json", body);
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
        Service::Sm => ask(Request::new("POST", format!("{path}/delete")).with("application/json", "{}"))?,
        Service::Am | Service::Ue => ask(Request::new("DELETE", path))?,
    };
    match gone.status {
        204 => Ok((request_bytes, made.body.len() as u64)),
        status => Err(format!("answered {status} to a deletion: {}", gone.text())),
    }
}

/// SM policy associations of our PCF, one after the other: for a PCF whose instructions are counted.
pub(in crate::bench) struct Counted {
    network: Network,
    associations: Associations,
    patience: Duration,
}

impl Counted {
    /// Starts the peers of a PCF; an answer of the PCF may take `patience`.
    pub(in crate::bench) fn start(place: &Place, patience: Duration) -> Result<Self, RigError> {
        let network = Network::start(&model(), place, free_address()?)?;
        let documents = Documents::new(&model(), &format!("http://{}", network.consumer)).of_any_policy();
        Ok(Self {
            network,
            associations: Associations::new(Arc::new(documents), Service::Sm),
            patience,
        })
    }

    /// The command line of a PCF with an empty store, and where it will listen.
    pub(in crate::bench) fn pcf(&self, place: &Place) -> Result<(Command, SocketAddr), RigError> {
        pcf(place, &self.network, None)
    }

    /// Returns when the PCF has found its peers.
    pub(in crate::bench) fn await_service(&self, pcf: SocketAddr) -> Result<(), RigError> {
        let end = Instant::now() + self.patience;
        while let Err(why) = self.create_and_delete(pcf, 1) {
            if Instant::now() > end {
                return Err(why);
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Creates an association and deletes it, this number of times.
    pub(in crate::bench) fn create_and_delete(&self, pcf: SocketAddr, count: u32) -> Result<(), RigError> {
        let failed = |why| RigError::Settings(format!("our PCF {why}"));
        let connected = Client::connect(pcf, self.patience);
        let mut client = connected.map_err(RigError::io(format!("connecting to the PCF at {pcf}")))?;
        for number in 0..count {
            create_and_delete(&mut client, &self.associations, Associations::probe(number))
                .map_err(failed)?;
        }
        Ok(())
    }
}

/// The command line of our PCF on one worker, and where it will listen. Others do not subscribe to changes of policy data,
/// so ours does not either.
fn pcf(
    place: &Place,
    network: &Network,
    over: Option<&std::path::Path>,
) -> Result<(Command, SocketAddr), RigError> {
    // A run begins with an empty PCF, also in a folder that was used before.
    let store = place.empty_folder("pcf-store")?;
    processes::function(place, "pcf", over, |address, admin| {
        let mut made = json!({"pcf": {
            "listen": [address], "admin": admin, "workers": 1, "cores": place.function_cpus,
            "store": {"embedded": {"directory": store}},
            "diameter": {"enabled": false},
        }});
        let mut around = network.settings(&model());
        around["pds"]["udr"]["subscribe"] = json!(false);
        merge(&mut made["pcf"], around);
        made
    })
}
