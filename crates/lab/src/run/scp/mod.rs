//! An SCP under test: an NRF that knows its producers, and the producers.

mod certificates;
mod config;
mod drill;
mod probes;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Options;
use super::children::{Guarded, Simulator};
use super::companion::Companion;
use super::rig::{Counter, Outgoing, Place, Rig, RigError, free_address, write_config};
use crate::callmodel::scp::{self as callmodel, ScpModel};
use crate::client::{Client, Request};
use crate::engine::TlsFiles;
use crate::load::{Traffic, Workload};
use crate::measure::Metrics;
use crate::sim::{ProducerSettings, ReportingSettings, RoleName, Settings};
use crate::workload::scp::{Addresses, Expected, Population, ScpWorkload, address_of};

/// How long things may take before the load.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts everything.
///
/// # Errors
/// When something does not start, or the SCP does not learn its network.
pub fn start(model: &ScpModel, options: &Options, place: &Place) -> Result<Rig, RigError> {
    let tls = match options.tls.unwrap_or(model.tls) {
        true => Some(Tls::make(model, place)?),
        false => None,
    };
    let scheme = if tls.is_some() { "https" } else { "http" };
    let mut producers = Producers::start(model, place, tls.as_ref())?;
    let population = Arc::new(Population::new(
        model,
        scheme,
        &producers.well,
        producers.failing.as_ref(),
    ));
    let nrf = Nrf::start(model, place, tls.as_ref())?;
    register(nrf.address, &population)?;
    let (function, address, admin) = match options.target {
        Some(address) => (None, address, None),
        None => {
            let addresses = config::Addresses {
                scp: free_address()?,
                admin: free_address()?,
                nrf: nrf.address,
                tls: tls.as_ref().map(|tls| tls.scp.clone()),
            };
            let file = place.folder.join("scp.yaml");
            let made = config::scp(model, place, &addresses);
            write_config(&file, made, options.function_config.as_deref())?;
            let child = start_function(place, "scp", &place.function_cpus, &file, addresses.scp)?;
            (Some(child), addresses.scp, Some(addresses.admin))
        }
    };
    match admin {
        Some(admin) => await_learning(admin, &population)?,
        None if tls.is_none() => await_standing_in(model, address, &population)?,
        None => {}
    }
    let mut notes = vec![format!(
        "{} profiles of producers, learned from a real NRF; a request and its answer are two messages",
        population.members.len(),
    )];
    if tls.is_some() {
        notes.push("consumers and producers speak TLS with certificates on both sides".to_owned());
    }
    let expected = Arc::<Expected>::default();
    let outgoing = match model.drill {
        // What is answered and what has come are not the same when somebody is killed or overloaded.
        Some(_) => Vec::new(),
        None => vec![Outgoing {
            name: "requests at producers",
            simulator: 0,
            expected: Counter::of(&expected, |expected| &expected.answered),
        }],
    };
    let mut beside = Vec::new();
    let companion: Option<Box<dyn Companion>> = match model.drill {
        None => {
            let tells = model.lci.is_some() || model.oci.is_some() || model.notifications.is_some();
            let living = admin.filter(|_| tells).map(|admin| {
                Box::new(drill::living::Living::new(model, admin, nrf.address, &population))
                    as Box<dyn Companion>
            });
            beside.push(nrf.process);
            living
        }
        Some(drill) => {
            let admin = admin.ok_or_else(|| {
                RigError::Settings("a drill needs an SCP that the lab has started: not --target".to_owned())
            })?;
            Some(match drill {
                callmodel::Drill::KillProducer => {
                    beside.push(nrf.process);
                    let victim = producers.take_victim()?;
                    Box::new(drill::kill::KillProducer::new(
                        model,
                        place,
                        admin,
                        victim,
                        producers.addresses.clone(),
                        tls.as_ref().map(|tls| &tls.producers),
                    ))
                }
                callmodel::Drill::StopNrf => Box::new(drill::nrf::StopNrf::new(place, admin, nrf)),
                callmodel::Drill::Overload => {
                    beside.push(nrf.process);
                    Box::new(drill::overload::Overload::new(model, admin))
                }
            })
        }
    };
    let probes = admin.map_or_else(Vec::new, |admin| probes::of(model, admin));
    let model = Arc::new(model.clone());
    let workloads = (0..options.generators.max(1))
        .map(|_| {
            let workload = ScpWorkload::new(&model, &population, &expected);
            Traffic::from(Box::new(workload) as Box<dyn Workload>)
        })
        .collect();
    Ok(Rig {
        name: "scp",
        function,
        address,
        sites: Vec::new(),
        site_addresses: Vec::new(),
        outgoing,
        simulators: producers.simulators,
        beside,
        workloads,
        probes,
        notes,
        tls: match &tls {
            Some(tls) => Some(tls.consumers.client().map_err(RigError::io("making TLS"))?),
            None => None,
        },
        companion,
        store: None,
        servers: None,
    })
}

/// Certificates of a run.
struct Tls {
    consumers: TlsFiles,
    producers: TlsFiles,
    scp: TlsFiles,
    nrf: TlsFiles,
}

impl Tls {
    fn make(model: &ScpModel, place: &Place) -> Result<Self, RigError> {
        let authority = certificates::Authority::new(&place.folder)?;
        let localhost = "127.0.0.1".to_owned();
        let mut everywhere: Vec<String> = (0..model.profiles)
            .map(|number| address_of(number).to_string())
            .collect();
        everywhere.push(localhost.clone());
        Ok(Self {
            consumers: authority.issue("consumers", vec![localhost.clone()])?,
            producers: authority.issue("producers", everywhere)?,
            scp: authority.issue("scp", vec![localhost.clone()])?,
            nrf: authority.issue("nrf", vec![localhost])?,
        })
    }
}

/// The producers of a run.
struct Producers {
    simulators: Vec<Simulator>,
    /// Where each process listens.
    addresses: Vec<SocketAddr>,
    well: Addresses,
    failing: Option<Addresses>,
}

impl Producers {
    fn start(model: &ScpModel, place: &Place, tls: Option<&Tls>) -> Result<Self, RigError> {
        let files = tls.map(|tls| &tls.producers);
        let one = |name: &str, settings: &Settings| {
            Simulator::start(&place.program, name, settings, &place.lab_cpus, &place.folder)
        };
        let own = |simulator: &Simulator| Addresses::Own(simulator.addresses[0].port());
        if model.drill == Some(callmodel::Drill::KillProducer) {
            let mut simulators = Vec::new();
            for number in 1..=model.profiles {
                let settings = producer_settings(model, settings::Listen::local(0), files);
                simulators.push(one(&format!("producer-{number}"), &settings)?);
            }
            let addresses: Vec<SocketAddr> = simulators.iter().map(|one| one.addresses[0]).collect();
            return Ok(Self {
                simulators,
                well: Addresses::Shared(addresses.clone()),
                addresses,
                failing: None,
            });
        }
        // One port at all addresses of the machine: each producer has an address of its own.
        let anywhere = settings::Listen::from(SocketAddr::from(([0, 0, 0, 0], 0)));
        let well = one("producers", &producer_settings(model, anywhere.clone(), files))?;
        let mut simulators = vec![well];
        let mut failing = None;
        if model.alternate_routed.fraction() > 0.0 {
            let mut settings = producer_settings(model, anywhere, files);
            settings.latency = Default::default();
            settings.producer = ProducerSettings {
                status: 503,
                body_bytes: 100,
                ..ProducerSettings::default()
            };
            let simulator = one("failing", &settings)?;
            failing = Some(own(&simulator));
            simulators.push(simulator);
        }
        Ok(Self {
            well: own(&simulators[0]),
            addresses: simulators.iter().map(|one| one.addresses[0]).collect(),
            simulators,
            failing,
        })
    }

    /// The producer that will be killed.
    fn take_victim(&mut self) -> Result<Simulator, RigError> {
        match self.simulators.is_empty() {
            true => Err(RigError::Settings("there is no producer to kill".to_owned())),
            false => Ok(self.simulators.remove(0)),
        }
    }
}

fn producer_settings(model: &ScpModel, listen: settings::Listen, tls: Option<&TlsFiles>) -> Settings {
    Settings {
        role: RoleName::Producer,
        listen,
        latency: model.producer_latency,
        producer: ProducerSettings {
            status: 201,
            body_bytes: model.response_bytes,
            reporting: ReportingSettings {
                lci: model.lci,
                oci: model.oci,
                overloaded: model
                    .oci
                    .map_or_else(Vec::new, |oci| Population::some(model, oci.instances)),
            },
        },
        tls: tls.cloned(),
        ..Settings::default()
    }
}

/// An NRF, which may be killed and started again.
struct Nrf {
    process: Guarded,
    address: SocketAddr,
    file: PathBuf,
}

impl Nrf {
    fn start(model: &ScpModel, place: &Place, tls: Option<&Tls>) -> Result<Self, RigError> {
        let address = free_address()?;
        let store = place.folder.join("nrf-store");
        // A run begins with an empty NRF, also in a folder that was used before.
        if store.exists() {
            std::fs::remove_dir_all(&store).map_err(RigError::io(format!("removing {}", store.display())))?;
        }
        let file = place.folder.join("nrf.yaml");
        let made = config::nrf(model, address, &store, tls.map(|tls| &tls.nrf))?;
        write_config(&file, made, None)?;
        let process = start_function(place, "nrf", &place.lab_cpus, &file, address)?;
        Ok(Self {
            process,
            address,
            file,
        })
    }
}

fn start_function(
    place: &Place,
    name: &'static str,
    cpus: &[usize],
    file: &Path,
    address: SocketAddr,
) -> Result<Guarded, RigError> {
    let mut command = Command::new(&place.program);
    command.arg("run").arg(name).arg("--config").arg(file);
    command.stdout(Stdio::null()).stdin(Stdio::null());
    let mut child = Guarded::start(name, command, cpus, &place.folder.join(format!("{name}.log")))?;
    child.wait_for(address)?;
    Ok(child)
}

fn register(nrf: SocketAddr, population: &Population) -> Result<(), RigError> {
    let io = || RigError::io("registering the producers");
    let mut client = Client::connect(nrf, PATIENCE).map_err(io())?;
    let requests: Vec<Request> = population
        .members
        .iter()
        .map(|member| {
            Request::new("PUT", format!("/nnrf-nfm/v1/nf-instances/{}", member.id))
                .with("application/json", member.profile.to_string())
        })
        .collect();
    let answers = client.exchange(&requests).map_err(io())?;
    match answers.iter().find(|answer| !(200..300).contains(&answer.status)) {
        None => Ok(()),
        Some(refused) => Err(RigError::Settings(format!(
            "the NRF answered {} to a registration: {}",
            refused.status,
            refused.text()
        ))),
    }
}

/// Waits until the SCP says that it knows all producers.
fn await_learning(admin: SocketAddr, population: &Population) -> Result<(), RigError> {
    let end = Instant::now() + PATIENCE;
    let wanted = population.members.len() as f64;
    loop {
        let known = Metrics::read(admin).map_or(0.0, |metrics| metrics.sum("signalbox_scp_producers", &[]));
        if known >= wanted {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(RigError::Settings(format!(
                "the SCP has learned {known} of {wanted} producers"
            )));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until an SCP that runs already can stand in for a producer that fails, which it can only when it has
/// learned the set.
fn await_standing_in(model: &ScpModel, scp: SocketAddr, population: &Population) -> Result<(), RigError> {
    let io = || RigError::io("asking the SCP");
    let end = Instant::now() + PATIENCE;
    for interface in &model.interfaces {
        loop {
            let mut client = Client::connect(scp, PATIENCE).map_err(io())?;
            let request = Request::new("POST", format!("/{}/v1/contexts", interface.service))
                .header(
                    "3gpp-sbi-target-apiroot",
                    population.target(&interface.producer, 0, true),
                )
                .with("application/json", "{}");
            let answers = client.exchange(&[request]).map_err(io())?;
            if answers[0].status == 201 {
                break;
            }
            if Instant::now() > end {
                return Err(RigError::Settings(format!(
                    "the SCP finds no other producer for {}: {} {}",
                    interface.name,
                    answers[0].status,
                    answers[0].text()
                )));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    Ok(())
}
