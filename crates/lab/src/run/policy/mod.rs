//! A PCF under test, at one site or several: its policy projects, the UDR and the CHF from which it has its data, an
//! NRF at which it finds them, a BSF, and the associations that stand before the load.

mod agent;
mod diameter;
mod kill;
pub(crate) mod network;
pub(super) mod projects;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub(crate) use self::diameter::fits;
use self::kill::{KillPcf, Launch};
use self::network::Network;
use super::children::Guarded;
use super::drill::Drill;
use super::rig::{Outgoing, Place, Probe, Rig, RigError, free_address, write_config};
use super::{Options, Progress, figure};
use callmodel::Load;
use callmodel::policy::PolicyModel;
use loadgen::Traffic;
use workload::policy::{Documents, Kind, Part, PolicyWorkload, Service, kinds, setup};

/// The most that a PCF may take to serve its first connection.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts everything.
///
/// # Errors
/// When something does not start, or a PCF refuses an association.
pub fn start(
    model: &PolicyModel,
    load: &Load,
    options: &Options,
    place: &Place,
    progress: &mut Progress,
) -> Result<Rig, RigError> {
    let mut network = Network::start(model, place, free_address()?)?;
    let kinds = kinds(model);
    let documents = Arc::new(Documents::new(model, &format!("http://{}", network.consumer)));
    let mut sites = sites(model, options, place, &network)?;
    let plan = Plan {
        count: u32::try_from(model.associations_for_run(options.sessions)).unwrap_or(u32::MAX / 2),
        each: options.generators.max(1),
    };
    let mut notes = notes(model, options, plan, &sites);
    if model.pdra && options.target.is_none() {
        network.beside.push(agent_before(&mut sites, place)?);
        notes.push(format!(
            "{} PCFs behind a Policy DRA, which is not among the processor time",
            sites.len()
        ));
    }
    let (workloads, pcrf) = match &model.gx {
        Some(gx) => {
            let nodes = diameter::Nodes::new(model, gx, load, options);
            let made = diameter::traffic(&nodes, &sites)?;
            notes.push(nodes.note());
            (made.workloads, Some(made.counts))
        }
        None => {
            progress.status("creating the associations that stand …");
            let begun = Instant::now();
            let workloads = traffic(&documents, &kinds, &sites, plan)?;
            notes.push(format!(
                "the associations were created in {} s",
                figure(begun.elapsed().as_secs_f64())
            ));
            (workloads, None)
        }
    };
    let mut egress = network.egress;
    let mut probes: Vec<Probe> = Vec::new();
    if let Some(counts) = pcrf {
        egress.push(diameter::egress(&counts));
        probes.push(Box::new(move || diameter::re_auths(&counts)));
    }
    let mut addresses = sites
        .iter()
        .map(|site| site.address)
        .collect::<Vec<_>>()
        .into_iter();
    let address = addresses
        .next()
        .ok_or_else(|| RigError::Settings("the model has no site with traffic".to_owned()))?;
    let drill = drill(model, &mut sites, &documents, &kinds)?;
    let mut processes = sites.into_iter().filter_map(|site| site.process);
    Ok(Rig {
        drill,
        function: processes.next(),
        sites: processes.collect(),
        site_addresses: addresses.collect(),
        outgoing: Vec::<Outgoing>::new(),
        egress,
        probes,
        simulators: network.simulators,
        beside: network.beside,
        notes,
        ..Rig::new("pcf", address, workloads)
    })
}

/// The sites with traffic: those of the model, or a PCF that runs already.
fn sites(
    model: &PolicyModel,
    options: &Options,
    place: &Place,
    network: &Network,
) -> Result<Vec<Site>, RigError> {
    if let Some(target) = options.target {
        return Ok(vec![Site {
            process: None,
            launch: None,
            host: String::new(),
            address: target,
            diameter: None,
            ready: Duration::ZERO,
        }]);
    }
    let folders = projects::write(model.project, place)?;
    let numbers = 0..model.sites_with_traffic;
    numbers
        .map(|number| Site::start(model, options, place, network, &folders, number))
        .collect()
}

/// Starts a Policy DRA, through which Gx and Rx of all sites go.
fn agent_before(sites: &mut [Site], place: &Place) -> Result<Guarded, RigError> {
    let (router, address) = agent::start(place, sites)?;
    for site in sites {
        site.diameter = Some(address);
    }
    Ok(router)
}

/// What happens while the load runs. A drill that kills the PCF takes its process from the site.
fn drill(
    model: &PolicyModel,
    sites: &mut [Site],
    documents: &Arc<Documents>,
    kinds: &[Kind],
) -> Result<Option<Box<dyn Drill>>, RigError> {
    if model.drill.is_none() {
        return Ok(None);
    }
    let refuse = |why: &str| RigError::Settings(why.to_owned());
    let site = sites.first_mut();
    let started = site.and_then(|site| Some((site.launch.take()?, site.process.take()?)));
    let (launch, process) =
        started.ok_or_else(|| refuse("a drill needs a PCF that the lab has started: not --target"))?;
    let kind = kinds.iter().find(|kind| kind.service == Service::Sm);
    let kind = kind.ok_or_else(|| refuse("the drill needs SM policy associations in its model"))?;
    Ok(Some(Box::new(KillPcf::new(launch, process, documents, kind))))
}

/// A site that runs.
struct Site {
    /// None where it ran already.
    process: Option<Guarded>,
    /// How it was started.
    launch: Option<Launch>,
    /// Its name in Diameter.
    host: String,
    address: SocketAddr,
    /// Where Gx and Rx go to; none where it ran already.
    diameter: Option<SocketAddr>,
    /// From its start to the first connection that is served.
    ready: Duration,
}

impl Site {
    /// Starts the PCF of a site, counted from 0.
    fn start(
        model: &PolicyModel,
        options: &Options,
        place: &Place,
        network: &Network,
        folders: &projects::Folders,
        number: u32,
    ) -> Result<Self, RigError> {
        let name = match model.sites_with_traffic {
            1 => "pcf".to_owned(),
            _ => format!("pcf-{}", number + 1),
        };
        let directory = place.empty_folder(&format!("{name}-store"))?;
        let (address, admin, diameter) = (free_address()?, free_address()?, free_address()?);
        let mut made = json!({ "pcf": {
            "listen": [address.to_string()],
            "admin": admin.to_string(),
            "workers": place.function_cpus.len(),
            "cores": place.function_cpus,
            "store": { "embedded": { "directory": directory } },
            "policy": { "sm": folders.sm, "am": folders.am, "ue": folders.ue },
            "diameter": { "listen": [diameter], "realm": diameter::REALM },
        }});
        merge(&mut made["pcf"], network.settings(model));
        let host = format!("{name}.{}", diameter::REALM);
        if model.pdra {
            let own = json!({ "host": host, "agents": [agent::host()] });
            merge(&mut made["pcf"]["diameter"], own);
        }
        let file = place.folder.join(format!("{name}.yaml"));
        write_config(&file, made, options.function_config.as_deref())?;
        let launch = Launch {
            file,
            place: place.clone(),
            address,
        };
        let (process, ready) = launch.start()?;
        Ok(Self {
            process: Some(process),
            launch: Some(launch),
            host,
            address,
            diameter: Some(diameter),
            ready,
        })
    }
}

/// Adds the members of one object to another.
pub(crate) fn merge(into: &mut Value, from: Value) {
    if let (Some(into), Value::Object(from)) = (into.as_object_mut(), from) {
        into.extend(from);
    }
}

/// Which associations stand, and who creates further ones.
#[derive(Clone, Copy)]
struct Plan {
    /// Associations that stand, over all sites and kinds.
    count: u32,
    /// Generator threads of each site.
    each: usize,
}

/// Makes the traffic. A thread belongs to a site, whose associations it updates and deletes: connections go to sites in
/// turn, so there must be as many threads for each.
fn traffic(
    documents: &Arc<Documents>,
    kinds: &[Kind],
    sites: &[Site],
    plan: Plan,
) -> Result<Vec<Traffic>, RigError> {
    let threads = plan.each * sites.len();
    let shares = threads * kinds.len().max(1);
    let each = (plan.count / shares as u32).max(1);
    let mut first = 0;
    let mut made = Vec::new();
    for thread in 0..threads {
        let site = &sites[thread % sites.len()];
        let mut stocks = Vec::new();
        for kind in kinds {
            let numbers = first..first + each;
            first += each;
            stocks.push((
                kind.clone(),
                setup::create(site.address, documents, kind, numbers)?,
            ));
        }
        made.push(stocks);
    }
    let workloads = made.into_iter().enumerate().map(|(thread, stocks)| {
        let part = Part {
            first: first + thread as u32,
            step: threads as u32,
        };
        Traffic::from(Box::new(PolicyWorkload::new(documents.clone(), stocks, part)))
    });
    Ok(workloads.collect())
}

fn notes(model: &PolicyModel, options: &Options, plan: Plan, sites: &[Site]) -> Vec<String> {
    let mut notes = match &model.gx {
        Some(_) => Vec::new(),
        None => vec![format!(
            "{} associations stood before the load; the model has {} (--sessions)",
            figure(f64::from(plan.count)),
            figure(model.associations as f64)
        )],
    };
    if let Some(ready) = sites
        .iter()
        .map(|site| site.ready)
        .max()
        .filter(|ready| !ready.is_zero())
    {
        notes.push(format!("ready {} s after its start", figure(ready.as_secs_f64())));
    }
    if options.target.is_some() {
        notes.push("a PCF that runs already: with its own projects and sources".to_owned());
    }
    let sources = [("UDR", model.udr), ("CHF", model.chf)];
    for (name, source) in sources
        .iter()
        .filter_map(|(name, source)| Some((name, (*source)?)))
    {
        notes.push(format!("a {name} that takes {} to answer", source.latency));
    }
    if sites.len() > 1 {
        notes.push(format!(
            "{} sites, a PCF with a store of its own at each; processor time, memory and connections are those of all PCFs",
            sites.len()
        ));
    }
    notes
}
