//! An SCP under test: an NRF that knows its producers, and the producers.

mod certificates;
mod config;
mod drill;
mod feed;
mod network;
mod next;
mod nrf;
mod probes;
mod producers;
mod ready;
mod scale;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Options;
use super::children::Guarded;
use super::rig::{Counter, Outgoing, Place, Rig, RigError, free_address, write_config};
use callmodel::scp::ScpModel;
use certificates::Tls;
use loadgen::engine::client_tls;
use loadgen::{Traffic, Workload};
use network::Network;
use scale::Scale;
use workload::scp::{Expected, ScpWorkload};

/// How long things may take before the load.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts everything.
///
/// # Errors
/// When something does not start, or the SCP does not learn its network.
pub fn start(model: &ScpModel, options: &Options, place: &Place) -> Result<Rig, RigError> {
    let mut model = model.with_latencies(options.latency);
    if options.target.is_some() || options.tls.unwrap_or(model.tls) {
        // With `--target` the SCP queries other name servers, and certificates need addresses that are known before.
        model.dns_srv = None;
    }
    let model = &model;
    let scale = Scale::new(model, options, place);
    let tls = match options.tls.unwrap_or(model.tls) {
        true => Some(Tls::make(model, place)?),
        false => None,
    };
    let mut network = Network::start(model, options, place, tls.as_ref(), &scale)?;
    let population = network.population.clone();
    let scp = match options.target {
        Some(address) => Scp {
            process: None,
            address,
            admin: None,
        },
        None => Scp::start(model, options, place, &network, tls.as_ref(), &scale)?,
    };
    match scp.admin {
        Some(admin) => ready::learned(admin, &population)?,
        None if tls.is_none() => ready::stands_in(model, scp.address, &population)?,
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
    let subnets = sources(model, scp.address).len();
    if subnets > 0 {
        notes.push(format!("consumers come from addresses of {subnets} subnets"));
    }
    notes.extend(network.note_of_feed());
    let expected = Arc::<Expected>::default();
    let outgoing = match model.drill {
        // When producers are killed or overloaded, the counts of answers and of requests differ.
        Some(_) => Vec::new(),
        None => vec![Outgoing {
            name: "requests at producers",
            simulator: 0,
            expected: Counter::of(&expected, |expected| &expected.answered),
            in_rate: false,
        }],
    };
    let drill = drill::of(model, place, scp.admin, &mut network, tls.as_ref())?;
    let mut probes = scp.admin.map_or_else(Vec::new, |admin| probes::of(model, admin));
    if let (Some(next), Some(admin)) = (&network.next, scp.admin) {
        probes.push(next.probe(model, admin));
    }
    let model = Arc::new(model.clone());
    let workloads = (0..options.generators.max(1))
        .map(|_| {
            let workload = ScpWorkload::new(&model, &population, &expected);
            Traffic::from(Box::new(workload) as Box<dyn Workload>)
        })
        .collect();
    let (simulators, beside) = network.into_processes();
    Ok(Rig {
        function: scp.process,
        outgoing,
        simulators,
        beside,
        probes,
        notes,
        tls: match &tls {
            Some(tls) => Some(client_tls(&tls.consumers).map_err(RigError::io("making TLS"))?),
            None => None,
        },
        drill,
        sources: sources(&model, scp.address),
        connections: scale.into,
        in_flight: scale.under_way,
        ..Rig::new("scp", scp.address, workloads)
    })
}

/// The addresses that consumers come from: interfaces of several subnets, where the SCP is on this machine.
fn sources(model: &ScpModel, scp: SocketAddr) -> Vec<IpAddr> {
    if model.source_addresses < 2 || !scp.ip().is_loopback() {
        return Vec::new();
    }
    let subnets = (0..model.source_addresses).filter_map(|number| u8::try_from(number).ok());
    subnets
        .map(|subnet| Ipv4Addr::new(127, 3, subnet, 1).into())
        .collect()
}

/// The SCP.
struct Scp {
    /// None where it ran already.
    process: Option<Guarded>,
    address: SocketAddr,
    /// Address of its metrics, if the lab started it.
    admin: Option<SocketAddr>,
}

impl Scp {
    fn start(
        model: &ScpModel,
        options: &Options,
        place: &Place,
        network: &Network,
        tls: Option<&Tls>,
        scale: &Scale,
    ) -> Result<Self, RigError> {
        let addresses = config::Addresses {
            scp: free_address()?,
            admin: free_address()?,
            nrf: network.asked,
            names: network.names,
            next: network
                .next
                .as_ref()
                .map_or_else(Vec::new, |next| next.listening.clone()),
            tls: tls.map(|tls| tls.scp.clone()),
        };
        let file = place.folder.join("scp.yaml");
        let mut made = config::scp(model, place, &addresses, scale);
        if let (Some(Ok(broker)), Some(feed)) = (&network.broker, &model.feed) {
            made["scp"]["feed"] = broker.settings(feed);
        }
        write_config(&file, made, options.function_config.as_deref())?;
        let process = start_function(place, "scp", &place.function_cpus, &file, addresses.scp)?;
        Ok(Self {
            process: Some(process),
            address: addresses.scp,
            admin: Some(addresses.admin),
        })
    }
}

/// Starts a function with the settings in a file, whose name is the process's.
fn start_function(
    place: &Place,
    function: &'static str,
    cpus: &[usize],
    file: &Path,
    address: SocketAddr,
) -> Result<Guarded, RigError> {
    let mut child = place.start(function, file, cpus)?;
    child.wait_for(address)?;
    Ok(child)
}
