//! An NRF under test, or two on one database: its settings, its SLF, another NRF, and consumers that take notifications.

mod growth;
mod kill_one;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::kill_one::KillOne;
use super::bsf::Servers;
use super::children::{Guarded, Simulator};
use super::drill::Drill;
use super::rig::{Counter, Outgoing, Place, Rig, RigError, free_address, write_config};
use super::{Options, figure};
use ::report::Check;
use ::report::measure::Metrics;
use callmodel::nrf::{Drill as Wanted, NrfModel};
use loadgen::{Traffic, Workload};
use settings::Period;
use simulators::{GroupRange, RemoteNrfSettings, RoleName, Settings};
use workload::nrf::traffic::Shared;
use workload::nrf::{
    FIRST_REMOTE_SUBSCRIBER, FIRST_SUBSCRIBER, NrfWorkload, Plan, Population, Queries, REMOTE_GROUP,
    SUBSCRIBERS, population, setup,
};

/// Addresses that notifications go to.
const SINKS: u16 = 8;
/// Addresses of the SLF.
const SLFS: u16 = 3;

/// Starts everything. `lowest_tps` is the least that will be sent: heart-beats come no more often than that.
///
/// # Errors
/// When something does not start, or the NRF refuses its population.
pub fn start(model: &NrfModel, options: &Options, place: &Place, lowest_tps: f64) -> Result<Rig, RigError> {
    let population = Population::new(model);
    let simulate = |name: &str, settings: Settings| {
        Simulator::start(&place.program, name, &settings, &place.lab_cpus, &place.folder)
    };
    let slf = simulate(
        "slf",
        Settings {
            role: RoleName::Slf,
            ports: SLFS,
            latency: model.simulators.slf,
            slf: simulators::SlfSettings {
                groups: groups(model, &population),
            },
            ..Settings::default()
        },
    )?;
    let forwarded = model
        .population
        .iter()
        .find(|p| Some(&p.nf_type) == model.features.forwarded_type.as_ref());
    let remote = simulate(
        "remote-nrf",
        Settings {
            role: RoleName::Nrf,
            latency: model.simulators.remote_nrf,
            nrf: RemoteNrfSettings {
                profiles: model
                    .discovery
                    .iter()
                    .find(|d| Some(&d.target) == model.features.forwarded_type.as_ref())
                    .map_or(6, |d| d.profiles),
                profile_bytes: forwarded.map_or(3200, |p| p.profile_bytes[1]),
            },
            ..Settings::default()
        },
    )?;
    let consumers = simulate(
        "consumers",
        Settings {
            role: RoleName::Consumer,
            ports: SINKS,
            latency: model.simulators.consumer,
            ..Settings::default()
        },
    )?;

    let heartbeat_s = heartbeat(model, lowest_tps);
    let servers = match (model.drill, options.target) {
        (Some(_), Some(_)) => {
            return Err(RigError::Settings(
                "--target: the drill kills an NRF, which the lab must have started".to_owned(),
            ));
        }
        (Some(Wanted::KillOne), None) => Some(Servers::single()?),
        (None, _) => None,
    };
    // A program that was started elsewhere has no settings of this run.
    let growth = model.growth.filter(|_| options.target.is_none());
    let starting = Starting {
        model,
        options,
        place,
        remote: &remote,
        heartbeat_s,
        servers: servers.as_ref(),
    };
    let addresses = [free_address()?, free_address()?];
    let other = growth.map(|growth| starting.other_set(addresses[0]).map(|other| (growth, other)));
    let other = other.transpose()?;
    let relay = other
        .as_ref()
        .map(|(growth, other)| growth::distance(other.address, growth.latency, place));
    let relay = relay.transpose()?.flatten();
    let (mut function, mut victim) = (None, None);
    let address = match options.target {
        Some(address) => address,
        None => {
            let set = other
                .as_ref()
                .map(|(_, other)| relay.as_ref().map_or(other.address, |(_, address)| *address))
                .map(|address| growth::settings("other", address));
            let started = starting.nrf("nrf", 0, addresses, set)?;
            let address = started.address;
            function = Some(started);
            address
        }
    };
    if servers.is_some() {
        victim = Some(starting.nrf("nrf-2", 1, [free_address()?, free_address()?], None)?);
    }

    let plan = Arc::new(Plan::new(model, &population));
    let mut ours = population.clone();
    let (mut probes, mut beside) = (Vec::new(), Vec::new());
    if let Some(((growth, other), function)) = other.zip(function.as_ref()) {
        let theirs;
        (ours, theirs) = growth::divide(&population, growth.profiles as usize);
        setup::register(other.address, &theirs, heartbeat_s, &slf.addresses)?;
        probes.push(growth::watch(address, function.admin, other.address, theirs));
        beside.push(other.process);
    }
    setup::register(address, &ours, heartbeat_s, &slf.addresses)?;
    if let Some(function) = function.as_ref().filter(|_| !beside.is_empty()) {
        await_profiles(function.admin, population.functions.len())?;
    }
    if let Some(victim) = &victim {
        await_profiles(victim.admin, population.functions.len())?;
    }
    let standing = setup::subscribe(address, &plan, &consumers.addresses)?;
    let shared = Shared {
        queries: Arc::new(Queries::new(model, &population)),
        plan,
        sinks: consumers.addresses.clone(),
        expected: Arc::default(),
    };
    let count = options.generators.max(1);
    let workloads = (0..count)
        .map(|index| {
            let workload = NrfWorkload::new(model, &ours, &standing, &shared, (index, count));
            Traffic::from(Box::new(workload) as Box<dyn Workload>)
        })
        .collect();
    if let Some(admin) = function.as_ref().map(|started| started.admin)
        && model.outgoing.slf_queries > 0.0
    {
        let latency = model.simulators.slf;
        probes.push(Box::new(move || slf_time(admin, latency)));
    }
    let expected = &shared.expected;
    let mut notes = vec![format!(
        "{} functions registered, {} subscriptions made before the load",
        population.functions.len(),
        standing.len()
    )];
    if heartbeat_s != model.features.heartbeat.as_secs() {
        notes.push(format!(
            "functions ask for heart-beats every {heartbeat_s} s instead of {} s, because fewer are sent at a lower rate",
            model.features.heartbeat.as_secs()
        ));
    }
    let mut outgoing = vec![
        Outgoing {
            name: "SLF queries",
            simulator: 0,
            expected: Counter::of(expected, |e| &e.slf_queries),
            in_rate: false,
        },
        Outgoing {
            name: "forwarded discoveries",
            simulator: 1,
            expected: Counter::of(expected, |e| &e.forwarded),
            in_rate: false,
        },
    ];
    // Several changes of an instance within a poll may be notified as one, and a death notifies some again.
    if victim.is_none() {
        outgoing.push(Outgoing {
            name: "notifications",
            simulator: 2,
            expected: Counter::of(expected, |e| &e.notifications),
            in_rate: true,
        });
    }
    let site_addresses: Vec<SocketAddr> = victim.iter().map(|victim| victim.address).collect();
    let functions = population.functions.len();
    let drill = function.as_ref().zip(victim).map(|(function, victim)| {
        let drill = KillOne::new(function.admin, victim.process, functions);
        Box::new(drill) as Box<dyn Drill>
    });
    Ok(Rig {
        function: function.map(|started| started.process),
        outgoing,
        probes,
        beside,
        site_addresses,
        drill,
        servers,
        simulators: [slf, remote, consumers]
            .into_iter()
            .chain(relay.map(|(relay, _)| relay))
            .collect(),
        notes,
        ..Rig::new("nrf", address, workloads)
    })
}

/// An NRF that runs.
struct Started {
    process: Guarded,
    address: SocketAddr,
    admin: SocketAddr,
}

/// What starting an NRF takes.
struct Starting<'a> {
    model: &'a NrfModel,
    options: &'a Options,
    place: &'a Place,
    remote: &'a Simulator,
    heartbeat_s: u64,
    servers: Option<&'a Servers>,
}

impl Starting<'_> {
    /// Starts one; the second of two has another name. `set` are the settings of growth.
    fn nrf(
        &self,
        name: &str,
        number: u32,
        addresses: [SocketAddr; 2],
        set: Option<Value>,
    ) -> Result<Started, RigError> {
        let place = self.place;
        let mut made = config(self.model, place, self.remote, addresses, self.heartbeat_s)?;
        if let Some(set) = set {
            made["nrf"]["growth"] = set;
        }
        if let Some(servers) = self.servers {
            let mut store = servers.settings(0);
            store["embedded"] = json!({ "directory": place.folder.join(format!("{name}-store")) });
            made["nrf"]["store"] = store;
            made["nrf"]["nfInstanceId"] = json!(format!("5b0000ff-51ab-4000-8000-{number:012x}"));
            made["nrf"]["cluster"] = json!({ "enabled": true });
        }
        self.run(name, addresses, made, &place.function_cpus)
    }

    /// Starts the NRF of another set, on the cores of the lab. The one under test will be at `first`.
    fn other_set(&self, first: SocketAddr) -> Result<Started, RigError> {
        let (place, addresses) = (self.place, [free_address()?, free_address()?]);
        let mut made = config(self.model, place, self.remote, addresses, self.heartbeat_s)?;
        let nrf = &mut made["nrf"];
        nrf["growth"] = growth::settings("under-test", first);
        nrf["store"]["embedded"]["directory"] = json!(place.empty_folder("other-set-store")?);
        nrf["workers"] = json!(1);
        nrf["cores"] = json!([]);
        self.run("other-set", addresses, made, &place.lab_cpus)
    }

    fn run(
        &self,
        name: &str,
        [address, admin]: [SocketAddr; 2],
        made: Value,
        cpus: &[usize],
    ) -> Result<Started, RigError> {
        let place = self.place;
        let file = place.folder.join(format!("{name}.yaml"));
        write_config(&file, made, self.options.function_config.as_deref())?;
        let mut process = place.start("nrf", &file, cpus)?;
        process.wait_for(address)?;
        Ok(Started {
            process,
            address,
            admin,
        })
    }
}

/// Waits until an NRF knows what was registered with it and with the other one.
fn await_profiles(admin: SocketAddr, count: usize) -> Result<(), RigError> {
    /// The most that it may take.
    const PATIENCE: Duration = Duration::from_secs(60);
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let known = Metrics::read(admin).map_or(0.0, |metrics| metrics.sum("signalbox_nrf_profiles", &[]));
        if known >= count as f64 {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(RigError::Settings(format!(
        "one of two NRFs does not know all {count} functions after {} s: the other one's are missing",
        PATIENCE.as_secs()
    )))
}

/// The time of queries of location functions alone, which the guide prints as a stretch of its own.
fn slf_time(admin: SocketAddr, latency: Period) -> Check {
    let metrics = Metrics::read(admin).unwrap_or_default();
    let of = |part: &str| metrics.sum(&format!("signalbox_nrf_slf_seconds_{part}"), &[]);
    let (count, seconds) = (of("count"), of("sum"));
    Check::new(
        "SLF query alone",
        format!("queries of location functions that take {latency} to answer"),
        format!(
            "{} queries, {} ms each in the mean",
            figure(count),
            figure(1e3 * seconds / count)
        ),
        count > 0.0 && seconds / count >= latency.duration().as_secs_f64(),
    )
}

/// The interval of heart-beats that functions ask for: what the model says, or longer when the load has too
/// few of them to keep everybody registered.
fn heartbeat(model: &NrfModel, lowest_tps: f64) -> u64 {
    let share = model.operations.nf_heartbeat / model.operations.total();
    let round = f64::from(model.population_total()) / (lowest_tps * share).max(1e-6);
    model
        .features
        .heartbeat
        .as_secs()
        .max((round * 3.0).ceil().min(86_400.0) as u64)
}

/// Which subscribers belong to which groups.
fn groups(model: &NrfModel, population: &Population) -> Vec<GroupRange> {
    let mut ranges = Vec::new();
    for kind in &model.features.slf_types {
        let cells = population.full_cells(kind).max(1);
        let share = SUBSCRIBERS / u64::from(cells);
        for cell in 0..cells {
            let from = FIRST_SUBSCRIBER + u64::from(cell) * share;
            let to = if cell + 1 == cells {
                FIRST_SUBSCRIBER + SUBSCRIBERS - 1
            } else {
                from + share - 1
            };
            ranges.push(GroupRange {
                nf_type: kind.clone(),
                from,
                to,
                group: population::group(kind, cell),
            });
        }
    }
    if let Some(kind) = &model.features.forwarded_type {
        ranges.push(GroupRange {
            nf_type: kind.clone(),
            from: FIRST_REMOTE_SUBSCRIBER,
            to: FIRST_REMOTE_SUBSCRIBER + SUBSCRIBERS - 1,
            group: REMOTE_GROUP.to_owned(),
        });
    }
    ranges
}

/// Settings of the NRF, as its own reference page explains them.
fn config(
    model: &NrfModel,
    place: &Place,
    remote: &Simulator,
    [address, admin]: [SocketAddr; 2],
    heartbeat_s: u64,
) -> Result<Value, RigError> {
    let features = &model.features;
    let store = place.empty_folder("nrf-store")?;
    let rules: Vec<Value> = features.forwarded_type.iter().zip(remote.addresses.first())
        .map(|(nf_type, remote)| {
            json!({ "nfTypes": [nf_type], "targets": [format!("http://{remote}")], "whenEmpty": true })
        })
        .collect();
    let types = callmodel::nrf::TYPES.iter().filter(|t| **t != "SLF");
    let authorization: Vec<Value> = types
        .clone()
        .take(features.authorization_rules as usize)
        .map(|consumer| json!({ "consumers": [consumer] }))
        .collect();
    let empty: serde_json::Map<String, Value> = types
        .take(features.empty_list_rules as usize)
        .map(|target| ((*target).to_owned(), json!(features.discovery_validity)))
        .collect();
    Ok(json!({ "nrf": {
        "listen": [address.to_string()],
        "admin": admin.to_string(),
        "workers": place.function_cpus.len(),
        "cores": place.function_cpus,
        "store": { "embedded": { "directory": store } },
        "heartBeat": {
            "default": format!("{heartbeat_s}s"),
            "max": format!("{}s", heartbeat_s.max(3600)),
        },
        "discovery": {
            "maxProfiles": features.max_profiles,
            "validity": features.discovery_validity,
            "emptyValidityByType": empty,
            "localities": localities(features.localities),
        },
        "subscriptions": {
            "max": model.subscriptions.limit,
            // One address stands for every subscriber of the model.
            "maxPerSubscriber": model.subscriptions.limit,
            "maxPerSource": model.subscriptions.limit,
            "maxValidity": model.subscriptions.validity,
            "unregisteredValidity": model.subscriptions.validity,
            "loadThreshold": features.load_threshold.percent().round() as u64,
        },
        "tokens": { "validity": features.token_validity, "authRules": authorization },
        "slf": {
            "targetTypes": features.slf_types,
            "useAccessToken": features.slf_access_token,
            "maxAttempts": features.slf_attempts,
            "attemptTimeout": "2s",
        },
        "forwarding": { "rules": rules, "timeout": "2s" },
    }}))
}

/// Places in a ring: each prefers itself, then the others in order.
fn localities(count: u32) -> Value {
    let site = |at: u32| format!("site-{}", at % count + 1);
    let mut mappings = serde_json::Map::new();
    let mut locations = serde_json::Map::new();
    for at in 0..count {
        mappings.insert(site(at), json!(format!("location-{}", at + 1)));
        let nearest: Vec<Value> = (0..count.saturating_sub(1).max(1))
            .map(|step| json!({ "localities": [site(at + step)] }))
            .collect();
        locations.insert(format!("location-{}", at + 1), json!(nearest));
    }
    json!({ "locationTypes": [{ "name": "SITE", "nfTypes": ["AMF", "SMF", "UPF"] }, { "name": "REGION" }], "mappings": mappings, "preferredLocations": locations })
}
