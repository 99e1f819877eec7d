//! A BSF under test, at one site or several: its settings, PCFs and AFs that speak Rx through it, and the
//! bindings that stand before the load.

mod database;
mod preload;
mod registry;
mod replication;
mod sites;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use settings::Period;

pub use self::database::Database;
pub(crate) use self::database::Servers;
use self::preload::Plan;
pub(crate) use self::preload::disk;
use self::registry::Registry;
use super::children::{Guarded, Simulator};
use super::drill::Drill;
use super::dsr::await_connections;
use super::overload::{Overload, Refused, Subject};
use super::rig::{Place, Rig, RigError, free_address, write_config};
use super::{Options, Progress, figure, relays};
use ::report::StoreFigures;
use callmodel::Load;
use callmodel::bsf::BsfModel;
use loadgen::Traffic;
use loadgen::client::Client;
use loadgen::diameter::{Clients, Peer};
use simulators::diameter::DiameterSettings;
use simulators::{RoleName, Settings};
use workload::Priorities;
use workload::bsf::{BsfWorkload, Numbers, OPERATIONS, PCF_REALM, PCFS, Part, Sessions, Standing, setup};
use workload::rx::{AfPlan, Afs, Shares, af};

/// The realm of the AFs.
const AF_REALM: &str = "ims.example";
/// AFs of each site.
const AFS: usize = 4;
/// Sessions that the AFs of a site may have.
const MOST_SESSIONS: usize = 50_000;
/// When a RAR follows an AAR.
const RAR_AFTER: Period = Period::from_millis(200);
/// The most that a BSF may take to serve its first connection, beside reading its store.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bindings that a BSF may read in a second when it starts, at the least; it waits so much longer to be ready.
const READ_EACH_SECOND: u64 = 50_000;

/// Starts everything.
///
/// # Errors
/// When something does not start, or a BSF refuses a binding.
pub fn start(
    model: &BsfModel,
    load: &Load,
    options: &Options,
    place: &Place,
    progress: &mut Progress,
) -> Result<Rig, RigError> {
    let sessions = Arc::new(Sessions::new(model.sessions_per_subscriber));
    if let Some(target) = options.target {
        if !options.site_latency.is_zero() {
            return Err(RigError::Settings(
                "--site-latency puts relays before BSFs that the lab starts; --target names one that runs already"
                    .to_owned(),
            ));
        }
        if model.drill.is_some() {
            return Err(RigError::Settings(
                "a drill needs a BSF that the lab has started: not --target".to_owned(),
            ));
        }
        return running_already(model, options, target, &sessions);
    }
    if options.store.is_some() && options.database != Database::Embedded {
        return Err(RigError::Settings(
            "--store keeps embedded stores; with --database the bindings are the database's".to_owned(),
        ));
    }
    let plan = Plan::new(model, options)?;
    let servers = Servers::start(options.database, model.sites)?;
    let pcfs = start_pcfs(model, place)?;
    let registry = Registry::start(model.features, &sessions, place)?;
    let starting = Starting {
        model,
        options,
        place,
        sessions: &sessions,
        plan: &plan,
        servers: servers.as_ref(),
        pcfs: &pcfs.addresses,
        registry: registry.as_ref(),
    };
    let mut sites = Vec::new();
    for number in 0..model.sites {
        sites.push(starting.site(number, progress)?);
    }
    plan.filled()?;
    let mut pcfs = pcfs;
    await_connections(&mut pcfs, PCFS as u16 * model.sites as u16)?;
    let mut simulators = vec![pcfs];
    if !options.site_latency.is_zero() {
        for (number, site) in (1..).zip(&mut sites) {
            simulators.extend(site.behind_relays(number, options.site_latency, place)?);
        }
    }
    let loaded = &sites[..model.sites_with_traffic as usize];
    let store = figures(&plan, options.database, loaded);
    let workloads = traffic(model, load, options, &plan, &sessions, loaded)?;
    let mut notes = notes(model, options, plan.sessions, &store);
    let imported: Duration = loaded.iter().map(|site| site.imported).sum();
    if !imported.is_zero() {
        notes.push(format!(
            "the bindings were written into the stores in {} s, {} a second",
            figure(imported.as_secs_f64()),
            figure(plan.sessions as f64 / imported.as_secs_f64())
        ));
    }
    let drill = drill(model, &sites);
    let admins: Vec<SocketAddr> = sites.iter().map(|site| site.admin).collect();
    let mut probes = match model.sites {
        0 | 1 => Vec::new(),
        _ => sites::watch(&admins, loaded.len()),
    };
    if options.database == Database::Sites {
        probes.push(replication::watch(admins.clone()));
    }
    probes.extend(registry::watch(model.features, registry.as_ref(), &admins));
    if let Some(registry) = &registry {
        notes.push(registry.note());
    }
    let mut addresses = loaded.iter().map(|site| site.sbi).collect::<Vec<_>>().into_iter();
    let mut processes = sites.into_iter().map(|site| site.process);
    let address = addresses.next().ok_or_else(no_sites)?;
    let (beside, names) = registry.map_or((None, None), Registry::into_processes);
    simulators.extend(names);
    Ok(Rig {
        beside: beside.into_iter().collect(),
        function: processes.next(),
        sites: processes.collect(),
        site_addresses: addresses.collect(),
        simulators,
        probes,
        notes,
        store: Some(store),
        servers,
        drill,
        ..Rig::new("bsf", address, workloads)
    })
}

/// A BSF under too much load.
const SUBJECT: Subject = Subject {
    name: "BSF",
    refused: &[
        Refused {
            words: "at the service-based interface",
            metric: "signalbox_bsf_discards_total",
            labels: &[],
        },
        Refused {
            words: "over Rx",
            metric: "signalbox_bsf_rx_discards_total",
            labels: &[],
        },
    ],
};

fn drill(model: &BsfModel, sites: &[Site]) -> Option<Box<dyn Drill>> {
    let site = sites.first()?;
    match model.drill? {
        callmodel::bsf::Drill::Overload => {
            Some(Box::new(Overload::new(SUBJECT, &model.priorities, site.admin)))
        }
    }
}

fn no_sites() -> RigError {
    RigError::Settings("the model has no site with traffic".to_owned())
}

/// Loads the service-based interface of a BSF that somebody else has started: bindings are registered there.
fn running_already(
    model: &BsfModel,
    options: &Options,
    target: SocketAddr,
    sessions: &Arc<Sessions>,
) -> Result<Rig, RigError> {
    let count = u32::try_from(model.sessions_for_run(options.sessions)).unwrap_or(u32::MAX / 2);
    let each = options.generators.max(1);
    let mut standing: Vec<Vec<_>> = (0..each).map(|_| Vec::new()).collect();
    for (at, binding) in setup::register(target, sessions, 0..count)?
        .into_iter()
        .enumerate()
    {
        standing[at % each].push(binding);
    }
    let workloads = standing.into_iter().enumerate().map(|(thread, standing)| {
        let part = Part {
            first: count + thread as u32,
            step: each as u32,
        };
        let workload = BsfWorkload::new(&model.operations, sessions.clone(), standing, part)
            .with_priorities(&model.priorities);
        Traffic::from(Box::new(workload))
    });
    Ok(Rig {
        notes: vec![
            standing_note(model, u64::from(count)),
            "a BSF that runs already: all of the rate is that of the service-based interface".to_owned(),
        ],
        ..Rig::new("bsf", target, workloads.collect())
    })
}

/// A site that runs.
struct Site {
    process: Guarded,
    sbi: SocketAddr,
    rx: SocketAddr,
    admin: SocketAddr,
    /// Those that stand.
    numbers: Numbers,
    /// How long it took to write them; nothing when they were there.
    imported: Duration,
    /// From its start to the first connection that is served.
    ready: Duration,
    /// Resident memory then.
    resident: u64,
    /// Bytes of its embedded store then.
    disk: Option<u64>,
}

impl Site {
    /// Puts a relay before each of its interfaces, through which load reaches it from now on.
    fn behind_relays(
        &mut self,
        number: usize,
        latency: Period,
        place: &Place,
    ) -> Result<[Simulator; 2], RigError> {
        let name = |interface| format!("relay-{number}-{interface}");
        let (sbi, before_sbi) = relays::before(self.sbi, &name("sbi"), latency, place)?;
        let (rx, before_rx) = relays::before(self.rx, &name("rx"), latency, place)?;
        (self.sbi, self.rx) = (before_sbi, before_rx);
        Ok([sbi, rx])
    }
}

/// What starting a site takes.
struct Starting<'a> {
    model: &'a BsfModel,
    options: &'a Options,
    place: &'a Place,
    sessions: &'a Sessions,
    plan: &'a Plan,
    servers: Option<&'a Servers>,
    pcfs: &'a [SocketAddr],
    registry: Option<&'a Registry>,
}

impl Starting<'_> {
    /// Starts a site, counted from 0, with its bindings.
    fn site(&self, number: u32, progress: &mut Progress) -> Result<Site, RigError> {
        let Self { place, plan, .. } = self;
        let name = match self.model.sites {
            1 => "bsf".to_owned(),
            _ => format!("bsf-{}", number + 1),
        };
        let directory = plan.directory(place, number, &name)?;
        let mut store = match self.servers {
            Some(servers) => servers.settings(number),
            None => json!({}),
        };
        // With a database as well: each process has an NF instance id of its own there.
        store["embedded"] = json!({ "directory": directory });
        let (sbi, rx, admin) = (free_address()?, free_address()?, free_address()?);
        let file = place.folder.join(format!("{name}.yaml"));
        let made = self.config(&name, store, [sbi, rx, admin]);
        write_config(&file, made, self.options.function_config.as_deref())?;
        let mut numbers = if plan.has(number) {
            plan.numbers(number)
        } else {
            Numbers::default()
        };
        let mut imported = Duration::ZERO;
        if numbers.count > 0 && !plan.adopted {
            imported = preload::import(place, &file, self.sessions, numbers, progress)?;
        }
        let begun = Instant::now();
        let mut process = place.start("bsf", &file, &place.function_cpus)?;
        let patience = Duration::from_secs(plan.sessions / READ_EACH_SECOND);
        process.wait_longer_for(sbi, patience)?;
        // Connections are taken before the store has been read, and served after.
        Client::connect(sbi, patience + PATIENCE)
            .map_err(|error| process.gone(format!("does not serve {sbi}: {error}")))?;
        let ready = begun.elapsed();
        let resident = process.process().usage().map_or(0, |usage| usage.rss);
        if plan.adopted && numbers.count > 0 {
            numbers = preload::standing(sbi, self.sessions, numbers)?;
        }
        let disk = self.servers.is_none().then(|| preload::disk(&directory));
        Ok(Site {
            process,
            sbi,
            rx,
            admin,
            numbers,
            imported,
            ready,
            resident,
            disk,
        })
    }

    /// Settings of a BSF, as its own reference page explains them.
    fn config(&self, name: &str, store: Value, [sbi, rx, admin]: [SocketAddr; 3]) -> Value {
        let peers: Vec<Value> = self
            .pcfs
            .iter()
            .enumerate()
            .map(|(number, address)| json!({ "host": format!("pcf{number:03}.{PCF_REALM}"), "addresses": [address] }))
            .collect();
        let mut made = json!({ "bsf": {
            "listen": [sbi.to_string()],
            "admin": admin.to_string(),
            "workers": self.place.function_cpus.len(),
            "cores": self.place.function_cpus,
            "store": store,
            "rx": {
                "listen": [rx.to_string()],
                "host": format!("{name}.{PCF_REALM}"),
                "realm": PCF_REALM,
                "peers": peers,
            },
            "overload": { "enabled": self.model.congestion_control },
        }});
        if let Some(registry) = self.registry {
            registry.configure(&mut made["bsf"]);
        }
        made
    }
}

/// What the sessions that stand take.
fn figures(plan: &Plan, database: Database, sites: &[Site]) -> StoreFigures {
    let sessions: u64 = sites.iter().map(|site| u64::from(site.numbers.count)).sum();
    let each = |bytes: u64| (bytes as f64 / (sessions as f64).max(1.0) * 10.0).round() / 10.0;
    let resident = sites.iter().map(|site| site.resident).sum();
    let disk: Option<u64> = sites.iter().map(|site| site.disk).sum();
    let ready = sites.iter().map(|site| site.ready).max().unwrap_or_default();
    StoreFigures {
        engine: database.name().to_owned(),
        preloaded_sessions: sessions,
        adopted: plan.adopted,
        disk_bytes: disk,
        disk_bytes_per_session: disk.map(each),
        resident_bytes: resident,
        resident_bytes_per_session: each(resident),
        ready_s: (ready.as_secs_f64() * 1000.0).round() / 1000.0,
    }
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

/// Makes the traffic. A thread belongs to a site, whose bindings it ends and looks for: connections go to sites in
/// turn, so there must be as many threads for each. Half of the bindings stand for the whole run: AFs have sessions
/// for those.
fn traffic(
    model: &BsfModel,
    load: &Load,
    options: &Options,
    plan: &Plan,
    sessions: &Arc<Sessions>,
    sites: &[Site],
) -> Result<Vec<Traffic>, RigError> {
    let each = options.generators.max(1);
    let threads = each * sites.len();
    let mut afs = Vec::new();
    let mut ending = Vec::new();
    for (number, site) in sites.iter().enumerate() {
        let mut numbers = site.numbers;
        if model.rx.requests() > 0.0 {
            let half = numbers.count / 2;
            let ues = Standing {
                sessions: sessions.clone(),
                numbers: numbers.from(half),
            };
            numbers = numbers.to(half);
            let weight = model.rx.requests() / sites.len() as f64;
            afs.push(af_traffic(model, load, site.rx, number * AFS, ues).weight(weight));
        }
        ending.push(numbers);
    }
    let weight = model.operations.total() / threads as f64;
    let first_new = plan.first_new();
    let made = (0..threads).map(|thread| {
        let part = Part {
            first: first_new.wrapping_add(thread as u32),
            step: threads as u32,
        };
        let (site, nth) = (thread % sites.len(), thread / sites.len());
        let standing = ending[site].share(nth as u32, each as u32);
        let workload = BsfWorkload::new(&model.operations, sessions.clone(), standing, part)
            .with_priorities(&model.priorities);
        Traffic::from(Box::new(workload)).weight(weight)
    });
    Ok(made.chain(afs).collect())
}

/// The AFs of a site; `first` is the number of the first of them.
fn af_traffic(model: &BsfModel, load: &Load, bsf: SocketAddr, first: usize, ues: Standing) -> Traffic {
    let peers = (0..AFS).map(|number| Peer {
        address: bsf,
        other: None,
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
        before: Priorities::new(&model.priorities).names(&OPERATIONS),
        priorities: model.priorities.clone(),
        first,
    };
    let afs = Afs::new(plan, Box::new(ues));
    Traffic::from(Clients::new(
        peers.collect(),
        Box::new(afs),
        load.timeout.duration(),
    ))
}

fn standing_note(model: &BsfModel, count: u64) -> String {
    format!(
        "{} bindings stood before the load; the model has {} (--sessions)",
        figure(count as f64),
        figure(model.sessions as f64)
    )
}

fn notes(model: &BsfModel, options: &Options, count: u64, store: &StoreFigures) -> Vec<String> {
    let mut notes = vec![standing_note(model, count)];
    notes.push(format!(
        "ready {} s after its start with them",
        figure(store.ready_s)
    ));
    if store.adopted {
        notes.push(format!(
            "a store from earlier runs (--store), of whose bindings {} stood",
            figure(store.preloaded_sessions as f64)
        ));
    }
    if model.rx.requests() > 0.0 {
        notes.push(format!(
            "{PCFS} PCFs that take {} to answer, {AFS} AFs at each site; RARs, which follow {} of the AARs, are not \
             among the transactions but are worked on",
            model.rx.pcf_latency,
            model.rx.rar_share()
        ));
    }
    if !options.site_latency.is_zero() {
        notes.push(format!(
            "relays of TCP before each site add {} to what its BSF sends (--site-latency)",
            options.site_latency
        ));
    }
    let loaded = model.sites_with_traffic;
    let kept = match options.database {
        Database::Embedded => "with a store of its own each",
        Database::Galera => "all on one Galera cluster of three nodes (--database galera)",
        Database::Sites => {
            "with a database of its own each, which replicate to one another (--database sites)"
        }
    };
    if model.sites > 1 || options.database != Database::Embedded {
        notes.push(format!(
            "{} sites, a BSF at each, {kept}, {loaded} of them with traffic; processor time, memory and connections \
             are those of all BSFs and of no database",
            model.sites
        ));
    }
    notes
}
