//! A Diameter signaling router under test: its settings, HSSs behind it, MMEs before it.
//!
//! | part | what it has |
//! |---|---|
//! | `asking` | what is asked, by whom, and what has to come of it |
//! | `applications` | settings of the router's applications, and their files |
//! | `provisioning` | changes of subscribers beside the load |
//! | `processors`, `processor_drills` | database processors and their server, and what happens to them |
//! | `security` | tables of the security application, and its findings |
//! | `pdra` | gateways, applications and PCRFs, and what happens to them |
//! | `ocdra` | gateways and OCSs, and what happens to them |
//! | `accounts` | what OCSs have counted |
//! | `standing` | sessions that begin before the load |
//! | `cluster` | several routers and front ends |
//! | `database` | a repository in a database, of which a node dies |
//! | `sites` | sites with a router and a database each, which are cut off from one another |
//! | `drills`, `outage`, `learning` | events during the load |

mod accounts;
mod applications;
mod asking;
mod cluster;
mod database;
mod drills;
mod learning;
mod ocdra;
mod outage;
mod pdra;
mod processor_drills;
mod processors;
mod provisioning;
mod security;
mod sites;
mod standing;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use diameter_proto::known::application::S6A;
use serde_json::{Value, json};

use super::children::{Guarded, Simulator};
use super::drill::Drill;
use super::rig::{Place, Rig, RigError, free_address, write_config};
use super::{Options, figure};
use ::report::Check;
pub(crate) use asking::Asking;
use callmodel::Load;
use callmodel::dsr::{Drill as Wanted, DsrModel};
use callmodel::roaming::{HOME, foreign};
use loadgen::Traffic;
use loadgen::diameter::{Clients, Habits, Peer};
use report::measure::Metrics;
use settings::{Percent, Period};
use simulators::diameter::DiameterSettings;
use simulators::{RoleName, Settings};
use workload::dsr::{Plan, REALM};

/// Time that a router may take to connect to the HSSs.
const PATIENCE: Duration = Duration::from_secs(60);
/// Additional time to start for a function that reads long files.
const LOADING: Duration = Duration::from_secs(60);
/// Nodes of a kind have numbers of three digits.
const MOST_NODES: usize = 999;

/// Starts everything.
///
/// # Errors
/// When something does not start.
pub fn start(model: &DsrModel, load: &Load, options: &Options, place: &Place) -> Result<Rig, RigError> {
    refuse_target(options)?;
    if let Some(Wanted::CutSites(cut)) = &model.drill {
        return sites::start(model, cut, load, options, place);
    }
    let mut hss = start_servers(model, place)?;
    if model.routers > 1 || model.front_ends > 0 {
        return cluster::start(model, load, options, place, hss);
    }
    let addresses: Vec<SocketAddr> = hss.iter().flat_map(|one| one.addresses.clone()).collect();
    let (address, admin) = (free_address()?, free_address()?);
    let beside = processors::start(model, place, admin)?;
    let mut made = config(model, place, (address, admin), &addresses)?;
    if let Some(beside) = &beside {
        beside.settings(&mut made["dsr"]);
    }
    let database = database::servers(model)?;
    if let Some(database) = &database {
        made["dsr"]["applications"][0]["pdra"]["repository"]["store"] = database.settings(0);
    }
    let full = options.tps(model.requests()).unwrap_or_else(|| model.requests());
    drills::settings(model, full, &mut made["dsr"]);
    let over = options.function_config.clone();
    let function = start_router(place, made.clone(), over.as_deref(), address)?;
    for (process, simulator) in server_processes(model).iter().zip(&mut hss) {
        await_connections(simulator, process.count)?;
    }
    let mmes = options
        .connections
        .unwrap_or(load.connections)
        .clamp(1, MOST_NODES as u32);
    let mut asking = Asking::new(model)?;
    standing::begin((address, admin), &mut asking, options, (mmes, model.hss))?;
    let timeout = load.timeout.duration();
    let habits = drills::habits(model);
    let workloads = traffic_of(
        &asking,
        &|_| (address, None),
        mmes,
        options.generators,
        timeout,
        &habits,
    );
    let router = drills::Router {
        admin,
        process: function.id(),
        file: place.folder.join("dsr.yaml"),
        made,
        over,
        workers: model.da_mps,
        mmes,
        counts: habits.counts,
    };
    let (mut drill, function) = match (&model.drill, &asking, &database) {
        (Some(Wanted::KillDatabase(outage)), Asking::Sessions(gateways), Some(database)) => {
            let dies = database::NodeDies::new(outage.clone(), database, &gateways.counts);
            (Some(Box::new(dies) as Box<dyn Drill>), Some(function))
        }
        _ => drill(model, router, &asking, function, (place, address)),
    };
    let mut probes = asking.probes(model, admin, place);
    if let Some(beside) = &beside {
        probes.extend(beside.provision(model, &asking));
        drill = drill.or_else(|| processor_drills::make(beside, model));
    }
    let expected = model.cross_routed.fraction();
    if expected > 0.0 {
        probes.push(Box::new(move || crossing(admin, expected)));
    }
    Ok(Rig {
        function,
        outgoing: asking.outgoing(model),
        simulators: hss,
        probes,
        notes: notes(model, asking.note(mmes, model.hss)),
        drill,
        database: beside.map(|beside| beside.database.clone()),
        servers: database,
        ..Rig::new("dsr", address, workloads)
    })
}

fn refuse_target(options: &Options) -> Result<(), RigError> {
    let why = "--target: a router that runs already does not know the simulated HSSs; let the lab start it, with settings of \
               its own by --function-config";
    match options.target {
        Some(_) => Err(RigError::Settings(why.to_owned())),
        None => Ok(()),
    }
}

/// What the report says of the nodes and the router.
fn notes(model: &DsrModel, nodes: String) -> Vec<String> {
    let processors = (model.da_mps > 1).then(|| {
        format!(
            "{} message processors; peers are spread evenly, so that {:.0}% of the messages leave by another \
             than they came in by",
            model.da_mps,
            model.crossing() * 100.0
        )
    });
    [nodes].into_iter().chain(processors).collect()
}

/// A process of HSSs, PCRFs or OCSs.
struct ServerProcess {
    name: &'static str,
    first: u16,
    count: u16,
    dies: bool,
}

/// The processes of a model's servers; those that are to die are a process of their own, the second one.
fn server_processes(model: &DsrModel) -> Vec<ServerProcess> {
    let victims = drills::victims(model);
    let first = model.hss - victims;
    let process = |name, first, count, dies| ServerProcess {
        name,
        first,
        count,
        dies,
    };
    let mut processes = vec![process("hss", 0, first, false)];
    if victims > 0 {
        processes.push(process("hss-to-kill", first, victims, true));
    }
    processes
}

/// Starts the HSSs of a model.
fn start_servers(model: &DsrModel, place: &Place) -> Result<Vec<Simulator>, RigError> {
    let processes = server_processes(model);
    let started = processes.iter().map(|process| start_some(model, place, process));
    started.collect()
}

/// The drill of a model, and the router where the drill has not taken it.
fn drill(
    model: &DsrModel,
    router: drills::Router,
    asking: &Asking,
    function: Guarded,
    (place, address): (&Place, SocketAddr),
) -> (Option<Box<dyn Drill>>, Option<Guarded>) {
    if let (Some(Wanted::KillPeers(kill)), Asking::Charging(ctfs)) = (&model.drill, asking) {
        let dying = ctfs.dying(kill.clone(), ocdra::books(model, place));
        return (Some(Box::new(dying)), Some(function));
    }
    if let (Some(Wanted::Learning(learning)), Asking::Roaming(roams)) = (&model.drill, asking) {
        let learns = learning::Learns::new(learning.clone(), router, roams);
        return (Some(Box::new(learns)), Some(function));
    }
    let (Some(Wanted::RestartRouter(_)), Asking::Sessions(gateways)) = (&model.drill, asking) else {
        return (drills::make(model, router), Some(function));
    };
    let launch = pdra::Launch {
        place: place.clone(),
        made: router.made,
        over: router.over,
        address,
        pcrfs: model.hss,
    };
    let dies = pdra::RouterDies::new(launch, function, &gateways.counts);
    (Some(Box::new(dies)), None)
}

/// The process of all servers of a model.
fn all_servers(model: &DsrModel) -> ServerProcess {
    ServerProcess {
        name: "hss",
        first: 0,
        count: model.hss,
        dies: false,
    }
}

/// Starts the HSSs of a model, a port each.
pub(crate) fn start_hss(model: &DsrModel, place: &Place) -> Result<Simulator, RigError> {
    start_some(model, place, &all_servers(model))
}

/// Starts the PCRFs of a model, a port each, which serve and count what belongs at another one of them.
pub(crate) fn start_serving_pcrfs(model: &DsrModel, place: &Place) -> Result<Simulator, RigError> {
    let process = all_servers(model);
    let mut settings = server_settings(model, place, &process);
    settings.diameter.serve_strays = true;
    start_server(place, &process, &settings)
}

/// The realm of the router and its HSSs.
fn realm(model: &DsrModel) -> String {
    model
        .dsa
        .as_ref()
        .map_or_else(|| REALM.to_owned(), |_| HOME.realm())
}

/// How HSSs, PCRFs and OCSs are called.
pub(crate) fn hss_names(model: &DsrModel) -> DiameterSettings {
    let prefix = match (&model.pdra, &model.ocdra) {
        (Some(_), _) => "pcrf",
        (None, Some(_)) => "ocs",
        (None, None) => "hss",
    };
    DiameterSettings {
        prefix: prefix.to_owned(),
        realm: realm(model),
        ..DiameterSettings::default()
    }
}

/// Starts a process of servers.
fn start_some(model: &DsrModel, place: &Place, process: &ServerProcess) -> Result<Simulator, RigError> {
    start_server(place, process, &server_settings(model, place, process))
}

fn start_server(place: &Place, process: &ServerProcess, settings: &Settings) -> Result<Simulator, RigError> {
    let (program, cpus) = (&place.program, &place.lab_cpus);
    Ok(Simulator::start(
        program,
        process.name,
        settings,
        cpus,
        &place.folder,
    )?)
}

/// The settings of a process of servers.
fn server_settings(model: &DsrModel, place: &Place, process: &ServerProcess) -> Settings {
    let none = Percent::new(0.0);
    let (role, ccr_rar, rar) = match (&model.pdra, &model.ocdra) {
        (Some(own), _) => (RoleName::Pcrf, own.gx_rar, own.rx_rar),
        (None, Some(own)) => (RoleName::Ocs, own.rar, none),
        (None, None) => (RoleName::Hss, none, none),
    };
    let charging = model.ocdra.as_ref();
    Settings {
        role,
        ports: process.count,
        latency: model.hss_latency,
        diameter: DiameterSettings {
            first: process.first,
            answer_bytes: model.message_bytes,
            subscribers: model.subscribers(),
            ccr_rar,
            rar,
            rar_after: Period::default(),
            failover: charging.map_or(none, |own| own.failover),
            journal: charging.map(|_| ocdra::journal(place, process.name)),
            ..hss_names(model)
        },
        ..Settings::default()
    }
}

/// Starts our router with these settings and waits until it listens.
pub(crate) fn start_router(
    place: &Place,
    made: Value,
    over: Option<&Path>,
    address: SocketAddr,
) -> Result<Guarded, RigError> {
    start_function(place, ("dsr", "dsr"), made, over, address)
}

/// Starts a function with the name of its process, and waits until it listens.
pub(crate) fn start_function(
    place: &Place,
    (function, name): (&str, &str),
    made: Value,
    over: Option<&Path>,
    address: SocketAddr,
) -> Result<Guarded, RigError> {
    let file = place.folder.join(format!("{name}.yaml"));
    write_config(&file, made, over)?;
    let mut child = place.start(function, &file, &place.function_cpus)?;
    child.wait_longer_for(address, LOADING)?;
    Ok(child)
}

/// Waits until a router has connected to all HSSs; those of other routers stay connected meanwhile.
pub(crate) fn await_connections(hss: &mut Simulator, count: u16) -> Result<(), RigError> {
    let end = Instant::now() + PATIENCE;
    loop {
        let connections = hss.stats()?.connections;
        if connections >= u64::from(count) {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(RigError::Settings(format!(
                "{connections} of {count} connections to {} stand after {} s",
                hss.name(),
                PATIENCE.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until the count of available peers fits that a router reports.
pub(crate) fn await_peers(admin: SocketAddr, fits: impl Fn(f64) -> bool) -> Result<(), RigError> {
    let end = Instant::now() + PATIENCE;
    loop {
        let metrics = Metrics::read(admin);
        let peers = metrics.map(|metrics| metrics.sum("signalbox_dsr_peers", &[("state", "available")]));
        if peers.is_some_and(&fits) {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(RigError::Settings(format!(
                "the router has {peers:?} available peers after {} s",
                PATIENCE.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a count of generator threads sends; the MMEs are shared out among them.
pub(crate) fn traffic(
    plan: &Arc<Plan>,
    router: SocketAddr,
    mmes: u32,
    generators: usize,
    timeout: Duration,
    answered: &Arc<AtomicU64>,
) -> Vec<Traffic> {
    let asking = Asking::Subscribers(plan.clone(), answered.clone());
    traffic_to(&asking, router, mmes, generators, timeout)
}

/// As [`traffic`], of any kind.
pub(crate) fn traffic_to(
    asking: &Asking,
    router: SocketAddr,
    clients: u32,
    generators: usize,
    timeout: Duration,
) -> Vec<Traffic> {
    let none = Habits::default();
    traffic_of(asking, &|_| (router, None), clients, generators, timeout, &none)
}

/// As [`traffic`], of MMEs with habits; `router` gives the address that an MME connects to, and the one after that.
fn traffic_of(
    asking: &Asking,
    router: &dyn Fn(u16) -> (SocketAddr, Option<SocketAddr>),
    mmes: u32,
    generators: usize,
    timeout: Duration,
    habits: &Habits,
) -> Vec<Traffic> {
    let threads = generators.clamp(1, mmes.max(1) as usize);
    (0..threads)
        .map(|thread| {
            let numbers: Vec<u16> = (0..mmes as u16).skip(thread).step_by(threads).collect();
            let nodes = asking.nodes(&numbers, (thread, threads)).into_iter();
            let peers = numbers.iter().cycle().zip(nodes).map(|(number, introduction)| {
                let (address, other) = router(*number);
                Peer {
                    address,
                    other,
                    introduction,
                }
            });
            let peers = peers.collect();
            let requests = asking.requests(numbers, (thread, threads));
            Traffic::from(Clients::with_habits(peers, requests, timeout, habits))
        })
        .collect()
}

/// The share of messages that left by another processor than they came in by, as the router counts them.
fn crossing(admin: SocketAddr, expected: f64) -> Check {
    let counted = Metrics::read(admin).and_then(|said| {
        let [handed_over, messages] =
            ["signalbox_dsr_handovers_total", "signalbox_dsr_messages_total"].map(|name| said.sum(name, &[]));
        (messages > 0.0).then_some((handed_over, messages))
    });
    // Which HSS is asked is drawn for each request, so that the share varies by the root of their number.
    let enough = |handed_over: f64, messages: f64| {
        handed_over / messages
            >= expected - 0.01 - 3.0 * (expected * (1.0 - expected) * 2.0 / messages).sqrt()
    };
    Check::new(
        "cross-routed",
        format!(
            "at least {:.0}% of the messages, but for chance",
            expected * 100.0
        ),
        match counted {
            Some((handed_over, messages)) => format!(
                "{:.1}% ({} of {})",
                handed_over / messages * 100.0,
                figure(handed_over),
                figure(messages)
            ),
            None => "the router does not report its metrics".to_owned(),
        },
        counted.is_some_and(|(handed_over, messages)| enough(handed_over, messages)),
    )
}

/// The realms of the clients.
fn client_realms(model: &DsrModel) -> Vec<String> {
    match &model.dsa {
        Some(_) => foreign().iter().map(|network| network.realm()).collect(),
        None if model.pdra.is_some() || model.ocdra.is_some() => vec![workload::pcrf::REALM.to_owned()],
        None => vec![REALM.to_owned()],
    }
}

/// Settings of the router, as its own reference page explains them.
pub(crate) fn config(
    model: &DsrModel,
    place: &Place,
    (address, admin): (SocketAddr, SocketAddr),
    hss: &[SocketAddr],
) -> Result<Value, RigError> {
    let (names, realm) = (hss_names(model), realm(model));
    let hosts: Vec<String> = (0..hss.len()).map(|number| names.host(number)).collect();
    let peers: Vec<Value> = hosts
        .iter()
        .zip(hss)
        .enumerate()
        .map(|(number, (host, address))| {
            json!({
                "host": host,
                "addresses": [address],
                "worker": number % usize::from(model.da_mps.max(1)),
                "timers": { "reconnectMin": "50ms", "reopen": "afterSilence" },
            })
        })
        .collect();
    let members: Vec<Value> = hosts.iter().map(|host| json!({ "host": host })).collect();
    let rule = json!({
        "name": "s6a",
        "when": {
            "applications": [S6A],
            "destinationRealm": { "equals": [realm] },
            "destinationHost": { "present": false },
        },
        "action": { "routeList": "hss" },
    });
    let levels = ["DOC", "CL1", "CL2", "CL3"].into_iter().zip(&model.discards);
    let levels: Vec<Value> = levels
        .map(|(name, discard)| json!({ "name": name, "discard": discard }))
        .collect();
    let mut config = json!({ "dsr": {
        "admin": admin.to_string(),
        "workers": model.da_mps,
        "cores": place.function_cpus,
        "localNodes": [{
            "name": "dsr",
            "host": format!("dsr.{realm}"),
            "realm": realm,
            "listen": [address.to_string()],
        }],
        "peers": peers,
        "dynamicPeers": [{ "realms": client_realms(model), "networks": ["127.0.0.0/8"] }],
        "overload": { "levels": levels },
        "routing": {
            "peerRouteTables": [{ "name": "default", "rules": [rule] }],
            "routeLists": [{ "name": "hss", "groups": ["hss"] }],
            "routeGroups": [{ "name": "hss", "peers": members }],
        },
    }});
    applications::add(&mut config["dsr"], model, &hosts, place)?;
    Ok(config)
}
