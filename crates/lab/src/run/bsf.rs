//! A BSF under test, at one site or several: its settings, and the bindings that stand before the load.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};

use super::children::Guarded;
use super::rig::{Place, Rig, RigError, free_address, write_config};
use super::{Options, figure};
use crate::callmodel::bsf::BsfModel;
use crate::load::Traffic;
use crate::workload::bsf::{Binding, BsfWorkload, Part, Sessions, setup};

/// Starts everything.
///
/// # Errors
/// When something does not start, or a BSF refuses a binding.
pub fn start(model: &BsfModel, options: &Options, place: &Place) -> Result<Rig, RigError> {
    let mut processes = Vec::new();
    let mut addresses = Vec::new();
    match options.target {
        Some(address) => addresses.push(address),
        None => {
            for site in 0..model.sites {
                let (process, address) = start_site(model, options, place, site)?;
                processes.push(process);
                addresses.push(address);
            }
            addresses.truncate(model.sites_with_traffic as usize);
        }
    }
    let count = u32::try_from(model.sessions_for_run(options.sessions)).unwrap_or(u32::MAX / 2);
    let sessions = Arc::new(Sessions::new(model.sessions_per_subscriber));
    let workloads = traffic(model, options, &addresses, &sessions, count)?;
    let notes = notes(model, options, count, addresses.len());
    let mut processes = processes.into_iter();
    let address = addresses.remove(0);
    Ok(Rig {
        name: "bsf",
        function: processes.next(),
        address,
        sites: processes.collect(),
        site_addresses: addresses,
        simulators: Vec::new(),
        workloads,
        outgoing: Vec::new(),
        probes: Vec::new(),
        notes,
    })
}

/// Registers the bindings that stand, and makes the traffic. A thread belongs to a site, whose bindings it
/// ends and looks for: connections go to sites in turn, so there must be as many threads for each.
fn traffic(
    model: &BsfModel,
    options: &Options,
    addresses: &[SocketAddr],
    sessions: &Arc<Sessions>,
    count: u32,
) -> Result<Vec<Traffic>, RigError> {
    let sites = addresses.len();
    let threads = options.generators.max(1).next_multiple_of(sites);
    let mut standing: Vec<Vec<Binding>> = (0..threads).map(|_| Vec::new()).collect();
    for (site, address) in addresses.iter().enumerate() {
        let numbers = (0..count).skip(site).step_by(sites);
        for (at, binding) in setup::register(*address, sessions, numbers)?
            .into_iter()
            .enumerate()
        {
            let thread = site + at % (threads / sites) * sites;
            standing[thread].push(binding);
        }
    }
    let made = standing.into_iter().enumerate().map(|(thread, standing)| {
        let part = Part {
            first: count + thread as u32,
            step: threads as u32,
        };
        Traffic::from(Box::new(BsfWorkload::new(
            &model.operations,
            sessions.clone(),
            standing,
            part,
        )))
    });
    Ok(made.collect())
}

fn notes(model: &BsfModel, options: &Options, count: u32, loaded: usize) -> Vec<String> {
    let mut notes = vec![format!(
        "{} bindings stood before the load; the model has {} (--sessions)",
        figure(f64::from(count)),
        figure(model.sessions as f64)
    )];
    notes.push(
        "traffic of the service-based interface only; the guide's figures are of Rx as well".to_owned(),
    );
    if options.target.is_none() && model.sites > 1 {
        notes.push(format!(
            "{} sites, a BSF with a store of its own each, {loaded} of them with traffic; processor time, memory and \
             connections are those of all",
            model.sites
        ));
    }
    notes
}

fn start_site(
    model: &BsfModel,
    options: &Options,
    place: &Place,
    site: u32,
) -> Result<(Guarded, SocketAddr), RigError> {
    let name = match model.sites {
        1 => "bsf".to_owned(),
        _ => format!("bsf-{}", site + 1),
    };
    let address = free_address()?;
    let file = place.folder.join(format!("{name}.yaml"));
    let made = config(model, place, &name, address)?;
    write_config(&file, made, options.function_config.as_deref())?;
    let mut command = Command::new(&place.program);
    command.arg("run").arg("bsf").arg("--config").arg(&file);
    command.stdout(Stdio::null()).stdin(Stdio::null());
    let log = place.folder.join(format!("{name}.log"));
    let mut child = Guarded::start(&name, command, &place.function_cpus, &log)?;
    child.wait_for(address)?;
    Ok((child, address))
}

/// Settings of a BSF, as its own reference page explains them.
fn config(model: &BsfModel, place: &Place, name: &str, address: SocketAddr) -> Result<Value, RigError> {
    let store = place.folder.join(format!("{name}-store"));
    // A run begins with an empty BSF, also in a folder that was used before.
    if store.exists() {
        std::fs::remove_dir_all(&store).map_err(RigError::io(format!("removing {}", store.display())))?;
    }
    Ok(json!({ "bsf": {
        "listen": [address.to_string()],
        "admin": free_address()?.to_string(),
        "workers": place.function_cpus.len(),
        "cores": place.function_cpus,
        "store": { "embedded": { "directory": store } },
        "overload": { "enabled": model.congestion_control },
    }}))
}
