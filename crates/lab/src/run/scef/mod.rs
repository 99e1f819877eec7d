//! An SCEF under test: SCS/AS at T8 and MMEs in the generator, an HSS and an SMS-SC beside it, and the books of what is owed.

mod drills;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::drills::Settled;
use super::Options;
use super::children::{Guarded, Simulator};
use super::dsr::{await_connections, start_function};
use super::rig::{Place, Rig, RigError, free_address};
use crate::call::Listener;
use crate::diameter_client::DiameterClient;
use callmodel::Load;
use callmodel::scef::ScefModel;
use diameter_proto::ResultCode;
use loadgen::Traffic;
use loadgen::client::Client;
use loadgen::diameter::{Clients, Peer};
use settings::{Listen, Percent, Period};
use simulators::diameter::DiameterSettings;
use simulators::{Role, RoleName, Settings};
use workload::scef::messages::{self, REALM, SCEF};
use workload::scef::{Books, Judging, Mmes, Plan, Servers, setup};

/// How long a peer may take to connect, and an MME to get an answer before the load.
const PATIENCE: Duration = Duration::from_secs(60);
/// International number of the SCEF as sender of triggers.
const SME: &str = "4366012345";
/// How long the SCEF may take to serve its first connection: it reads its store before.
const LOADING: Duration = Duration::from_secs(600);
/// SCS/AS and MMEs that make contexts at the same time.
const FILLING: u32 = 16;
/// MMEs have numbers of three digits.
const MOST_MMES: u32 = 999;

/// Starts everything.
///
/// # Errors
/// When something does not start, or the SCEF refuses a device.
pub fn start(model: &ScefModel, load: &Load, options: &Options, place: &Place) -> Result<Rig, RigError> {
    if options.target.is_some() {
        let why = "--target: an SCEF that runs already does not know the simulated HSS; let the lab start it";
        return Err(RigError::Settings(why.to_owned()));
    }
    let books = Arc::new(Books::default());
    let listen = || {
        let started = Listener::start(None, Role::Judged(Arc::new(Judging(books.clone()))));
        started.map_err(RigError::io("starting the simulated SCS/AS"))
    };
    let (first, others) = (listen()?, listen()?);
    let times = (model.latency, model.report_after);
    let mut simulators = vec![
        simulator(place, RoleName::ExposureHss, times, None)?,
        simulator(place, RoleName::SmsSc, times, None)?,
    ];
    let addresses = Addresses {
        t8: free_address()?,
        diameter: free_address()?,
        admin: free_address()?,
    };
    let mut launch = Launch::new(place, config(place, &addresses, &simulators)?, addresses);
    launch.over.clone_from(&options.function_config);
    let (function, _) = launch.start()?;
    for simulator in &mut simulators {
        await_connections(simulator, 1)?;
    }
    let mmes = options
        .connections
        .unwrap_or(load.connections)
        .clamp(1, MOST_MMES);
    let mut plan = plan(model, mmes, [first.address(), others.address()]);
    plan.configurations = setup::configure(addresses.t8, &plan, 0..plan.devices)?;
    setup::subscribe(addresses.t8, &plan, &books, model.monitoring.standing)?;
    establish(addresses.diameter, &plan).map_err(RigError::io("connecting the devices"))?;
    let plan = Arc::new(plan);
    let threads = options.generators.clamp(1, mmes as usize) as u32;
    let workloads = traffic(model, load, (&plan, &books), addresses.diameter, threads);
    let notes = vec![format!(
        "{mmes} MMEs and {mmes} connections at T8; the HSS and the SMS-SC are simulators of their own, the SCS/AS and the MMEs are in the \
         generator; delivery reports of the SMS-SC are not among the transactions"
    )];
    let settled = Settled {
        books,
        listeners: [first, others],
    };
    let (drill, function, probes) = drills::make(model, launch, function, settled);
    Ok(Rig {
        function,
        simulators,
        probes,
        notes,
        drill,
        ..Rig::new("scef", addresses.t8, workloads)
    })
}

/// Where the SCEF listens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    pub(crate) t8: SocketAddr,
    pub(crate) diameter: SocketAddr,
    pub(crate) admin: SocketAddr,
}

/// How the SCEF is started.
#[derive(Clone)]
pub(crate) struct Launch {
    place: Place,
    made: Value,
    over: Option<PathBuf>,
    addresses: Addresses,
}

impl Launch {
    pub(crate) fn new(place: &Place, made: Value, addresses: Addresses) -> Self {
        Self {
            place: place.clone(),
            made,
            over: None,
            addresses,
        }
    }

    /// Starts it and waits until it serves a connection; how long that took.
    pub(crate) fn start(&self) -> Result<(Guarded, Duration), RigError> {
        let (names, address) = (("scef", "scef"), self.addresses.t8);
        let begun = Instant::now();
        let process = start_function(
            &self.place,
            names,
            self.made.clone(),
            self.over.as_deref(),
            address,
        )?;
        Client::connect(address, LOADING)
            .map_err(|error| process.gone(format!("does not serve {address}: {error}")))?;
        Ok((process, begun.elapsed()))
    }
}

/// Starts an HSS that answers at once.
pub(crate) fn hss(place: &Place) -> Result<Simulator, RigError> {
    simulator(place, RoleName::ExposureHss, Default::default(), None)
}

/// Starts the HSS or the SMS-SC, which takes these times to answer and to report; at this address, where it is started again.
fn simulator(
    place: &Place,
    role: RoleName,
    (latency, rar_after): (Period, Period),
    address: Option<SocketAddr>,
) -> Result<Simulator, RigError> {
    let name = match role {
        RoleName::ExposureHss => "hss",
        _ => "smssc",
    };
    let settings = Settings {
        role,
        listen: address.map_or_else(|| Listen::local(0), |address| Listen(vec![address])),
        latency,
        diameter: DiameterSettings {
            prefix: name.to_owned(),
            realm: REALM.to_owned(),
            rar_after,
            ..DiameterSettings::default()
        },
        ..Settings::default()
    };
    Ok(Simulator::start(
        &place.program,
        name,
        &settings,
        &place.lab_cpus,
        &place.folder,
    )?)
}

/// `diameter.peers` of the SCEF: simulators by their names.
pub(crate) fn peers(simulators: &[(&str, &Simulator)]) -> Value {
    let each = simulators.iter();
    each.map(|(name, one)| json!({ "host": format!("{name}000.{REALM}"), "addresses": one.addresses }))
        .collect()
}

/// Makes contexts: this number of devices with NIDD, and as many subscriptions.
pub(crate) fn fill(addresses: &Addresses, devices: u32) -> Result<(), RigError> {
    let plan = Plan {
        devices,
        servers: 8,
        mmes: FILLING,
        octets: 0,
        unreachable: Percent::new(0.0),
        // No notification is sent.
        targets: [(Ipv4Addr::LOCALHOST, 9).into(); 2],
        configurations: Vec::new(),
        rates: [0.0; 6],
    };
    let books = Books::default();
    std::thread::scope(|scope| {
        let parts = (0..FILLING).map(|part| {
            let (plan, books) = (&plan, &books);
            let [first, end] =
                [part, part + 1].map(|at| u64::from(devices) * u64::from(at) / u64::from(FILLING));
            scope.spawn(move || {
                let (first, end) = (first as u32, end as u32);
                setup::configure(addresses.t8, plan, first..end)?;
                setup::subscribe(addresses.t8, plan, books, end - first)
            })
        });
        let parts: Vec<_> = parts.collect();
        parts.into_iter().try_for_each(|thread| {
            let made = thread.join();
            made.map_err(|_| RigError::Settings("an SCS/AS has panicked".to_owned()))?
                .map_err(RigError::from)
        })
    })?;
    establish(addresses.diameter, &plan).map_err(RigError::io("connecting the devices"))
}

/// Settings of an SCEF, as its own reference page explains them.
pub(crate) fn settings(place: &Place, directory: &Path, addresses: &Addresses) -> Value {
    json!({
        "listen": [addresses.t8.to_string()],
        "admin": addresses.admin.to_string(),
        "workers": place.function_cpus.len(),
        "cores": place.function_cpus,
        "store": { "embedded": { "directory": directory } },
        "diameter": {
            "listen": [addresses.diameter.to_string()],
            "host": SCEF,
            "realm": REALM,
        },
        "triggering": { "smeAddress": SME },
        // No model is about overload; beside others on its cores it would refuse what they delay.
        "overload": { "enabled": false },
    })
}

/// Settings of the SCEF of a run.
fn config(place: &Place, addresses: &Addresses, simulators: &[Simulator]) -> Result<Value, RigError> {
    let mut own = settings(place, &place.empty_folder("scef-store")?, addresses);
    if let [hss, sms_sc] = simulators {
        own["diameter"]["peers"] = peers(&[("hss", hss), ("smssc", sms_sc)]);
    }
    // Requests of the SCEF are given up before those of the generator.
    own["diameter"]["timeout"] = json!("3s");
    own["nidd"] = json!({ "retryPause": Period::from_millis(200) });
    // What is owed to an SCS/AS that is slow for a while comes soon after it answers again.
    own["notifications"] = json!({ "attempts": 1000, "retryPause": "50ms" });
    Ok(json!({ "scef": own }))
}

fn plan(model: &ScefModel, mmes: u32, targets: [SocketAddr; 2]) -> Plan {
    let (nidd, monitoring) = (&model.nidd, &model.monitoring);
    Plan {
        devices: model.devices,
        servers: model.servers,
        mmes,
        octets: usize::from(nidd.octets),
        unreachable: nidd.unreachable,
        targets,
        configurations: Vec::new(),
        rates: [
            nidd.mt,
            monitoring.subscriptions,
            monitoring.subscriptions,
            model.triggers,
            nidd.mo,
            monitoring.reports,
        ],
    }
}

/// Establishes the connections of all devices; each MME those of its own.
fn establish(scef: SocketAddr, plan: &Plan) -> std::io::Result<()> {
    std::thread::scope(|scope| {
        let each = (0..plan.mmes).map(|number| scope.spawn(move || establish_at(scef, plan, number)));
        let each: Vec<_> = each.collect();
        each.into_iter().try_for_each(|thread| {
            let panicked = |_| Err(std::io::Error::other("an MME has panicked"));
            thread.join().unwrap_or_else(panicked)
        })
    })
}

fn establish_at(scef: SocketAddr, plan: &Plan, number: u32) -> std::io::Result<()> {
    let mut mme = DiameterClient::connect(scef, messages::mme(number), None, PATIENCE)?;
    for device in (number..plan.devices).step_by(plan.mmes as usize) {
        let id = device + 1;
        let mut request = messages::establish(mme.own(), device);
        request.identifiers(id, id);
        let code = mme.ask(request, id)?;
        if code != ResultCode::SUCCESS.0 {
            let why = format!("the SCEF answers the CMR of device {device} with {code}");
            return Err(std::io::Error::other(why));
        }
    }
    Ok(())
}

/// What a count of generator threads sends at T8, and as many over Diameter.
fn traffic(
    model: &ScefModel,
    load: &Load,
    (plan, books): (&Arc<Plan>, &Arc<Books>),
    scef: SocketAddr,
    threads: u32,
) -> Vec<Traffic> {
    let each = f64::from(threads);
    let servers = (0..threads).map(|_| {
        let servers = Servers::new(plan, books);
        Traffic::from(Box::new(servers)).weight(model.of_servers() / each)
    });
    let mmes = (0..threads).map(|thread| {
        let mmes = Mmes::new(plan, books, (thread, threads));
        let peers = mmes.nodes().into_iter().map(|introduction| Peer {
            address: scef,
            other: None,
            introduction,
        });
        let clients = Clients::new(peers.collect(), Box::new(mmes), load.timeout.duration());
        Traffic::from(clients).weight(model.of_mmes() / each)
    });
    servers.chain(mmes).collect()
}

/// Waits until the books are settled, or no longer than this.
fn await_settled(books: &Books, patience: Duration) {
    let end = Instant::now() + patience;
    while !books.is_settled() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
}
