//! A BSF under test, at one site or several: its settings, PCFs and AFs that speak Rx through it, and the
//! bindings that stand before the load.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use settings::Period;

use super::children::{Guarded, Simulator};
use super::dsr::await_connections;
use super::rig::{Place, Rig, RigError, free_address, write_config};
use super::{Options, figure};
use crate::callmodel::Load;
use crate::callmodel::bsf::BsfModel;
use crate::diameter::{Clients, Peer};
use crate::load::Traffic;
use crate::sim::diameter::DiameterSettings;
use crate::sim::{RoleName, Settings};
use crate::workload::bsf::{
    Binding, BsfWorkload, OPERATIONS, PCF_REALM, PCFS, Part, Sessions, Standing, setup,
};
use crate::workload::rx::{AfPlan, Afs, Shares, af};

/// The realm of the AFs.
const AF_REALM: &str = "ims.example";
/// AFs of each site.
const AFS: usize = 4;
/// Sessions that the AFs of a site may have.
const MOST_SESSIONS: usize = 50_000;
/// When a RAR follows an AAR.
const RAR_AFTER: Period = Period::from_millis(200);

/// Starts everything.
///
/// # Errors
/// When something does not start, or a BSF refuses a binding.
pub fn start(model: &BsfModel, load: &Load, options: &Options, place: &Place) -> Result<Rig, RigError> {
    let mut sites = Vec::new();
    let mut simulators = Vec::new();
    let mut processes = Vec::new();
    match options.target {
        Some(sbi) => sites.push(Site { sbi, rx: None }),
        None => {
            let mut pcfs = start_pcfs(model, place)?;
            for number in 0..model.sites {
                let (process, site) = start_site(model, options, place, number, &pcfs.addresses)?;
                processes.push(process);
                sites.push(site);
            }
            await_connections(&mut pcfs, PCFS as u16 * model.sites as u16)?;
            simulators.push(pcfs);
            sites.truncate(model.sites_with_traffic as usize);
        }
    }
    let count = u32::try_from(model.sessions_for_run(options.sessions)).unwrap_or(u32::MAX / 2);
    let workloads = traffic(model, load, options, &sites, count)?;
    let notes = notes(model, options, count, sites.len());
    let mut processes = processes.into_iter();
    let address = sites.remove(0).sbi;
    Ok(Rig {
        name: "bsf",
        function: processes.next(),
        address,
        sites: processes.collect(),
        site_addresses: sites.iter().map(|site| site.sbi).collect(),
        simulators,
        beside: Vec::new(),
        workloads,
        outgoing: Vec::new(),
        probes: Vec::new(),
        notes,
        tls: None,
        companion: None,
    })
}

/// Where a BSF listens.
struct Site {
    sbi: SocketAddr,
    /// Its Diameter agent, if that is loaded.
    rx: Option<SocketAddr>,
}

fn start_pcfs(model: &BsfModel, place: &Place) -> Result<Simulator, RigError> {
    let settings = Settings {
        role: RoleName::PcfRx,
        ports: PCFS as u16,
        latency: model.rx.pcf_latency,
        diameter: DiameterSettings {
            prefix: "pcf".to_owned(),
            realm: PCF_REALM.to_owned(),
            rar: model.rx.rar_share(),
            rar_after: RAR_AFTER,
            ..DiameterSettings::default()
        },
        ..Settings::default()
    };
    let started = Simulator::start(&place.program, "pcfs", &settings, &place.lab_cpus, &place.folder)?;
    Ok(started)
}

/// Registers the bindings that stand, and makes the traffic. A thread belongs to a site, whose bindings it
/// ends and looks for: connections go to sites in turn, so there must be as many threads for each. Half of the
/// bindings stand for the whole run: AFs have sessions for those.
fn traffic(
    model: &BsfModel,
    load: &Load,
    options: &Options,
    sites: &[Site],
    count: u32,
) -> Result<Vec<Traffic>, RigError> {
    let sessions = Arc::new(Sessions::new(model.sessions_per_subscriber));
    let each = options.generators.max(1);
    let threads = each * sites.len();
    let mut standing: Vec<Vec<Binding>> = (0..threads).map(|_| Vec::new()).collect();
    let mut afs = Vec::new();
    for (number, site) in sites.iter().enumerate() {
        let numbers = (0..count).skip(number).step_by(sites.len());
        let mut bindings = setup::register(site.sbi, &sessions, numbers)?;
        if let Some(address) = site.rx.filter(|_| model.rx.requests() > 0.0) {
            let kept = bindings.split_off(bindings.len() / 2);
            let ues = Standing {
                sessions: sessions.clone(),
                numbers: kept.iter().map(|binding| binding.number).collect(),
            };
            let weight = model.rx.requests() / sites.len() as f64;
            afs.push(af_traffic(model, load, address, number * AFS, ues).weight(weight));
        }
        for (at, binding) in bindings.into_iter().enumerate() {
            standing[number + at % each * sites.len()].push(binding);
        }
    }
    let weight = model.operations.total() / threads as f64;
    let made = standing.into_iter().enumerate().map(|(thread, standing)| {
        let part = Part {
            first: count + thread as u32,
            step: threads as u32,
        };
        let workload = BsfWorkload::new(&model.operations, sessions.clone(), standing, part);
        Traffic::from(Box::new(workload)).weight(weight)
    });
    Ok(made.chain(afs).collect())
}

/// The AFs of a site; `first` is the number of the first of them.
fn af_traffic(model: &BsfModel, load: &Load, bsf: SocketAddr, first: usize, ues: Standing) -> Traffic {
    let peers = (0..AFS).map(|number| Peer {
        address: bsf,
        introduction: af(first + number, AF_REALM),
    });
    let plan = AfPlan {
        realm: PCF_REALM.to_owned(),
        shares: Shares {
            initial: model.rx.aar_initial,
            update: model.rx.aar_update,
            termination: model.rx.str,
        },
        most_sessions: MOST_SESSIONS,
        before: OPERATIONS.map(str::to_owned).into(),
        first,
    };
    let afs = Afs::new(plan, Box::new(ues));
    Traffic::from(Clients::new(
        peers.collect(),
        Box::new(afs),
        load.timeout.duration(),
    ))
}

fn notes(model: &BsfModel, options: &Options, count: u32, loaded: usize) -> Vec<String> {
    let mut notes = vec![format!(
        "{} bindings stood before the load; the model has {} (--sessions)",
        figure(f64::from(count)),
        figure(model.sessions as f64)
    )];
    if options.target.is_some() {
        notes.push(
            "a BSF that runs already: all of the rate is that of the service-based interface".to_owned(),
        );
        return notes;
    }
    if model.rx.requests() > 0.0 {
        notes.push(format!(
            "{PCFS} PCFs that take {} to answer, {AFS} AFs at each site; RARs, which follow {} of the AARs, are not \
             among the transactions but are worked on",
            model.rx.pcf_latency,
            model.rx.rar_share()
        ));
    }
    if model.sites > 1 {
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
    number: u32,
    pcfs: &[SocketAddr],
) -> Result<(Guarded, Site), RigError> {
    let name = match model.sites {
        1 => "bsf".to_owned(),
        _ => format!("bsf-{}", number + 1),
    };
    let (sbi, rx) = (free_address()?, free_address()?);
    let file = place.folder.join(format!("{name}.yaml"));
    let made = config(model, place, &name, (sbi, rx), pcfs)?;
    write_config(&file, made, options.function_config.as_deref())?;
    let mut command = Command::new(&place.program);
    command.arg("run").arg("bsf").arg("--config").arg(&file);
    command.stdout(Stdio::null()).stdin(Stdio::null());
    let log = place.folder.join(format!("{name}.log"));
    let mut child = Guarded::start(&name, command, &place.function_cpus, &log)?;
    child.wait_for(sbi)?;
    Ok((child, Site { sbi, rx: Some(rx) }))
}

/// Settings of a BSF, as its own reference page explains them.
fn config(
    model: &BsfModel,
    place: &Place,
    name: &str,
    (sbi, rx): (SocketAddr, SocketAddr),
    pcfs: &[SocketAddr],
) -> Result<Value, RigError> {
    let store = place.folder.join(format!("{name}-store"));
    // A run begins with an empty BSF, also in a folder that was used before.
    if store.exists() {
        std::fs::remove_dir_all(&store).map_err(RigError::io(format!("removing {}", store.display())))?;
    }
    let peers: Vec<Value> = pcfs
        .iter()
        .enumerate()
        .map(|(number, address)| json!({ "host": format!("pcf{number:03}.{PCF_REALM}"), "addresses": [address] }))
        .collect();
    Ok(json!({ "bsf": {
        "listen": [sbi.to_string()],
        "admin": free_address()?.to_string(),
        "workers": place.function_cpus.len(),
        "cores": place.function_cpus,
        "store": { "embedded": { "directory": store } },
        "rx": {
            "listen": [rx.to_string()],
            "host": format!("{name}.{PCF_REALM}"),
            "realm": PCF_REALM,
            "peers": peers,
        },
        "overload": { "enabled": model.congestion_control },
    }}))
}
