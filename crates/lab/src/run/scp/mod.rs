//! An SCP under test: an NRF that knows its producers, and the producers.

mod certificates;
mod config;
mod drill;
mod feed;
mod next;
mod probes;
mod scale;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use settings::Period;

use super::Options;
use super::children::{Guarded, Simulator};
use super::drill::Drill;
use super::rig::{Counter, Outgoing, Place, Rig, RigError, free_address, write_config};
use crate::callmodel::scp::{self as callmodel, ScpModel};
use crate::client::{Client, Request};
use crate::engine::TlsFiles;
use crate::load::{Traffic, Workload};
use crate::measure::Metrics;
use crate::sim::{FarSettings, ProducerSettings, ReportingSettings, RoleName, Settings};
use crate::workload::scp::{Addresses, Expected, Population, ScpWorkload, Whom, address_of};
use feed::Broker;
use next::NextScps;
use scale::Scale;

/// How long things may take before the load.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts everything.
///
/// # Errors
/// When something does not start, or the SCP does not learn its network.
pub fn start(model: &ScpModel, options: &Options, place: &Place) -> Result<Rig, RigError> {
    let model = &model.with_latencies(options.latency);
    let scale = Scale::new(model, options, place);
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
    let asked = match model.nrf_latency.is_zero() {
        true => nrf.address,
        false => {
            let wire = start_wire(model, place, nrf.address)?;
            let address = wire.addresses[0];
            producers.simulators.push(wire);
            address
        }
    };
    // An SCP that runs already does not know them.
    let inter = model.inter_scp.as_ref().filter(|_| options.target.is_none());
    let next = inter
        .map(|inter| NextScps::start(inter, place, tls.as_ref().map(|tls| &tls.next), &scale))
        .transpose()?;
    let broker = match model.feed.as_ref().filter(|_| options.target.is_none()) {
        Some(feed) => Some(Broker::find(
            feed,
            options.kafka,
            place,
            tls.as_ref().map(|tls| &tls.broker),
        )?),
        None => None,
    };
    let (function, address, admin) = match options.target {
        Some(address) => (None, address, None),
        None => {
            let addresses = config::Addresses {
                scp: free_address()?,
                admin: free_address()?,
                nrf: asked,
                next: next.as_ref().map_or_else(Vec::new, |next| next.listening.clone()),
                tls: tls.as_ref().map(|tls| tls.scp.clone()),
            };
            let file = place.folder.join("scp.yaml");
            let mut made = config::scp(model, place, &addresses, &scale);
            if let (Some(Ok(broker)), Some(feed)) = (&broker, &model.feed) {
                made["scp"]["feed"] = broker.settings(feed);
            }
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
    notes.extend(scale.notes(model));
    let feeds = matches!(&broker, Some(Ok(_)));
    let mut beside = Vec::new();
    match broker {
        Some(Ok(broker)) => {
            notes.push(broker.note());
            beside.extend(broker.process);
        }
        Some(Err(why)) => notes.push(format!("{why}; the model ran without its copy of messages")),
        None => {}
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
    let drill: Option<Box<dyn Drill>> = match model.drill {
        None => {
            let tells = model.lci.is_some() || model.oci.is_some() || model.notifications.is_some();
            let living = admin.filter(|_| tells || feeds).map(|admin| {
                Box::new(drill::living::Living::new(
                    model,
                    admin,
                    nrf.address,
                    &population,
                    feeds,
                )) as Box<dyn Drill>
            });
            beside.push(nrf.process);
            living
        }
        Some(wanted) => {
            let admin = admin.ok_or_else(|| {
                RigError::Settings("a drill needs an SCP that the lab has started: not --target".to_owned())
            })?;
            Some(match wanted {
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
    let mut probes = admin.map_or_else(Vec::new, |admin| probes::of(model, admin));
    if let (Some(next), Some(admin)) = (next, admin) {
        probes.push(next.probe(model, admin));
        beside.push(next.process);
    }
    let model = Arc::new(model.clone());
    let workloads = (0..options.generators.max(1))
        .map(|_| {
            let workload = ScpWorkload::new(&model, &population, &expected);
            Traffic::from(Box::new(workload) as Box<dyn Workload>)
        })
        .collect();
    Ok(Rig {
        function,
        outgoing,
        simulators: producers.simulators,
        beside,
        probes,
        notes,
        tls: match &tls {
            Some(tls) => Some(tls.consumers.client().map_err(RigError::io("making TLS"))?),
            None => None,
        },
        drill,
        connections: scale.into,
        in_flight: scale.under_way,
        ..Rig::new("scp", address, workloads)
    })
}

/// Certificates of a run.
struct Tls {
    consumers: TlsFiles,
    producers: TlsFiles,
    scp: TlsFiles,
    next: TlsFiles,
    broker: TlsFiles,
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
        let regions = model.inter_scp.iter().flat_map(next::others);
        let regions = regions.map(|region| next::address_of(region).to_string());
        Ok(Self {
            consumers: authority.issue("consumers", vec![localhost.clone()])?,
            producers: authority.issue("producers", everywhere)?,
            scp: authority.issue("scp", vec![localhost.clone()])?,
            next: authority.issue("next-scp", regions.collect())?,
            broker: authority.issue("kafka", vec![localhost.clone()])?,
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
            settings.latency = model.lan_latency;
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
    let [near, far] = model
        .ways()
        .map(|way| Period::from_millis(way.as_millis() as u64));
    let regions = (0..).zip(model.regions());
    Settings {
        role: RoleName::Producer,
        listen,
        latency: near,
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
            far: FarSettings {
                latency: far,
                numbers: regions
                    .filter(|(_, region)| *region > 0)
                    .map(|(number, _)| number)
                    .collect(),
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

/// A wire to the NRF, by which its answers come later.
fn start_wire(model: &ScpModel, place: &Place, nrf: SocketAddr) -> Result<Simulator, RigError> {
    let settings = Settings {
        role: RoleName::Wire,
        latency: model.nrf_latency,
        upstream: Some(nrf),
        ..Settings::default()
    };
    let started = Simulator::start(
        &place.program,
        "nrf-wire",
        &settings,
        &place.lab_cpus,
        &place.folder,
    )?;
    Ok(started)
}

/// Starts a function with the settings in a file, whose name is the process's.
fn start_function(
    place: &Place,
    function: &'static str,
    cpus: &[usize],
    file: &Path,
    address: SocketAddr,
) -> Result<Guarded, RigError> {
    let mut command = Command::new(&place.program);
    command.arg("run").arg(function).arg("--config").arg(file);
    command.stdout(Stdio::null()).stdin(Stdio::null());
    let name = file
        .file_stem()
        .map_or(function.into(), |stem| stem.to_string_lossy());
    let mut child = Guarded::start(&name, command, cpus, &file.with_extension("log"))?;
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
                    population.target(&interface.producer, 0, Whom::Failing),
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
