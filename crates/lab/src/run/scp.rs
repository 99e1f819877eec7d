//! An SCP under test: an NRF that knows its producers, and the producers.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Options;
use super::children::{Guarded, Simulator};
use super::rig::{Counter, Outgoing, Place, Rig, RigError, free_address, write_config};
use crate::callmodel::scp::ScpModel;
use crate::client::{Client, Request};
use crate::load::{Traffic, Workload};
use crate::sim::{ProducerSettings, RoleName, Settings};
use crate::workload::scp::{Expected, MEDIATED, Population, ScpWorkload, registered_as};

/// Addresses that the producers are at; several profiles share one, as the lab is one process.
const ADDRESSES: u16 = 64;
/// Addresses of producers that fail.
const FAILING: u16 = 8;
/// How long things may take before the load.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts everything.
///
/// # Errors
/// When something does not start, or the SCP does not learn its network.
pub fn start(model: &ScpModel, options: &Options, place: &Place) -> Result<Rig, RigError> {
    let producers = |name: &str, ports: u16, status: u16, latency, bytes| {
        let settings = Settings {
            role: RoleName::Producer,
            ports,
            latency,
            producer: ProducerSettings {
                status,
                body_bytes: bytes,
            },
            ..Settings::default()
        };
        Simulator::start(&place.program, name, &settings, &place.lab_cpus, &place.folder)
    };
    let well = producers(
        "producers",
        ADDRESSES,
        201,
        model.producer_latency,
        model.response_bytes,
    )?;
    let failing = producers("failing", FAILING, 503, Default::default(), 100)?;
    let population = Arc::new(Population::new(model, &well.addresses, &failing.addresses));
    let (nrf, nrf_address) = start_nrf(model, place)?;
    register(nrf_address, &population)?;
    let mut function = None;
    let address = match options.target {
        Some(address) => address,
        None => {
            let address = free_address()?;
            let file = place.folder.join("scp.yaml");
            write_config(
                &file,
                config(model, place, address, nrf_address)?,
                options.function_config.as_deref(),
            )?;
            function = Some(start_function(
                place,
                "scp",
                &place.function_cpus,
                &file,
                address,
            )?);
            address
        }
    };
    await_learning(model, address, &population)?;
    let (model, expected) = (Arc::new(model.clone()), Arc::<Expected>::default());
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
        outgoing: vec![Outgoing {
            name: "requests at producers",
            simulator: 0,
            expected: Counter::of(&expected, |expected| &expected.answered),
        }],
        simulators: vec![well, failing],
        beside: vec![nrf],
        workloads,
        probes: Vec::new(),
        notes: vec![format!(
            "{} profiles of producers at {} addresses, learned from a real NRF; a request and its answer are two messages",
            population.members.len(),
            ADDRESSES + FAILING
        )],
    })
}

fn start_function(
    place: &Place,
    name: &'static str,
    cpus: &[usize],
    file: &std::path::Path,
    address: SocketAddr,
) -> Result<Guarded, RigError> {
    let mut command = Command::new(&place.program);
    command.arg("run").arg(name).arg("--config").arg(file);
    command.stdout(Stdio::null()).stdin(Stdio::null());
    let mut child = Guarded::start(name, command, cpus, &place.folder.join(format!("{name}.log")))?;
    child.wait_for(address)?;
    Ok(child)
}

fn start_nrf(model: &ScpModel, place: &Place) -> Result<(Guarded, SocketAddr), RigError> {
    let address = free_address()?;
    let store = place.folder.join("nrf-store");
    // A run begins with an empty NRF, also in a folder that was used before.
    if store.exists() {
        std::fs::remove_dir_all(&store).map_err(RigError::io(format!("removing {}", store.display())))?;
    }
    let file = place.folder.join("nrf.yaml");
    let validity = format!("{}s", model.validity.as_secs().max(1));
    let made = json!({"nrf": {
        "listen": [address.to_string()], "admin": free_address()?.to_string(), "workers": 1,
        "store": {"embedded": {"directory": store}},
        "heartBeat": {"max": "24h"},
        "discovery": {"validity": validity}
    }});
    write_config(&file, made, None)?;
    Ok((
        start_function(place, "nrf", &place.lab_cpus, &file, address)?,
        address,
    ))
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

/// Waits until the SCP can stand in for a producer that fails, which it can only when it has learned the set.
fn await_learning(model: &ScpModel, scp: SocketAddr, population: &Population) -> Result<(), RigError> {
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

/// Settings of the SCP, as its own reference page explains them.
fn config(model: &ScpModel, place: &Place, address: SocketAddr, nrf: SocketAddr) -> Result<Value, RigError> {
    let mut types: Vec<&str> = model
        .producers()
        .iter()
        .map(|(nf_type, _)| registered_as(nf_type))
        .collect();
    types.sort_unstable();
    types.dedup();
    let rates = match model.rate_limits {
        true => json!([{"consumer": "*", "rate": {"perSecond": 10_000_000}}]),
        false => json!([]),
    };
    let egress = match model.rate_limits {
        true => json!([{"producer": "*", "rate": {"perSecond": 10_000_000}, "global": true}]),
        false => json!([]),
    };
    Ok(json!({"scp": {
        "listen": [address.to_string()],
        "admin": free_address()?.to_string(),
        "workers": place.function_cpus.len(),
        "cores": place.function_cpus,
        "nrf": {"roots": [format!("http://{nrf}")], "nfTypes": types, "retryInterval": "200ms"},
        "discovery": {
            "enforceReqSpecificSvcDiscovery": model.discover_each,
            "timeout": "3s"
        },
        "protection": {
            "ingress": rates,
            "egress": egress,
            // Some producers fail on purpose; they are to be tried each time that they are named.
            "outliers": {"consecutiveFailures": 0},
            "breaker": {"failures": 1_000_000}
        },
        "mediation": {"groups": mediation(model)}
    }}))
}

/// Rules in groups, dealt to the services; each waits for a value of its own.
fn mediation(model: &ScpModel) -> Vec<Value> {
    let groups = model.mediation_groups.max(1);
    if model.mediation_rules == 0 {
        return Vec::new();
    }
    let services: Vec<&str> = model
        .producers()
        .into_iter()
        .flat_map(|(_, services)| services)
        .collect();
    (0..groups)
        .map(|group| {
            let rules: Vec<Value> = (group..model.mediation_rules)
                .step_by(groups as usize)
                .map(|rule| {
                    // Of ten rules seven change headers and three the body.
                    let then = match rule % 10 < 7 {
                        true => json!({"setHeader": {"name": "x-lab-mediated", "value": rule.to_string()}}),
                        false => json!({"setJson": {"pointer": "/mediated", "value": rule}}),
                    };
                    json!({
                        "name": format!("rule-{rule}"),
                        "when": [{"header": MEDIATED, "equals": rule.to_string()}],
                        "then": [then]
                    })
                })
                .collect();
            json!({
                "name": format!("group-{group}"),
                "triggerPoints": ["requestEgress"],
                "services": [services[group as usize % services.len().max(1)]],
                "rules": rules
            })
        })
        .collect()
}
