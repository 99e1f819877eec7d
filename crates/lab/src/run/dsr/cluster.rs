//! Several routers that know one another as siblings, and IP front ends before them.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::{Value, json};

use super::outage::{Dead, Killing, Survivor};
use super::{Asking, MOST_NODES, await_connections, config, drills, start_function, traffic_of};
use crate::run::Options;
use crate::run::children::{Guarded, Simulator};
use crate::run::figure;
use crate::run::rig::{Place, Probe, Rig, RigError, free_address};
use ::report::Check;
use callmodel::Load;
use callmodel::dsr::{Drill as Wanted, DsrModel};
use report::measure::Metrics;
use workload::dsr::REALM;

/// Where a process listens, and its admin endpoint.
type Addresses = (SocketAddr, SocketAddr);

/// Starts routers and front ends, and what kills one of them.
pub(super) fn start(
    model: &DsrModel,
    load: &Load,
    options: &Options,
    place: &Place,
    mut hss: Vec<Simulator>,
) -> Result<Rig, RigError> {
    let at = addresses(model.routers)?;
    let servers: Vec<SocketAddr> = hss.iter().flat_map(|one| one.addresses.clone()).collect();
    let egress = model.egress.then(|| Egress::start(place, &servers)).transpose()?;
    let reached = egress.as_ref().map_or(&servers, |egress| &egress.addresses);
    let mut routers = start_routers(model, options, place, reached, &at)?;
    for simulator in &mut hss {
        await_connections(simulator, model.hss * model.routers)?;
    }
    let front = free_address()?;
    let front_at = addresses(model.front_ends)?;
    let mut front_ends = start_front_ends(place, front, &front_at, &at)?;

    let mmes = options
        .connections
        .unwrap_or(load.connections)
        .clamp(1, MOST_NODES as u32);
    let asking = Asking::new(model)?;
    let has_front = model.front_ends > 0;
    let connects_to = |number: u16| {
        let nth = |number: usize| at.get(number % at.len().max(1)).map(|(address, _)| *address);
        match (has_front, nth(usize::from(number))) {
            (false, Some(first)) => (first, nth(usize::from(number) + 1)),
            _ => (front, None),
        }
    };
    let workloads = traffic_of(
        &asking,
        &connects_to,
        mmes,
        options.generators,
        load.timeout.duration(),
        &drills::habits(model),
    );

    let mut survivors: Vec<SocketAddr> = at.iter().map(|(_, admin)| *admin).collect();
    let (outage, dead, victim) = match &model.drill {
        Some(Wanted::KillRouter(outage)) => {
            survivors.remove(0);
            (Some(outage.clone()), Dead::Router, Some(routers.remove(0)))
        }
        Some(Wanted::KillFrontEnd(outage)) => {
            (Some(outage.clone()), Dead::FrontEnd, Some(front_ends.remove(0)))
        }
        _ => (None, Dead::Router, None),
    };
    let is_router = dead == Dead::Router;
    let siblings = survivors.len().saturating_sub(1) as u32;
    let survivor = |admin| Survivor {
        admin,
        peers: u32::from(model.hss) + siblings,
        dead: u32::from(is_router),
    };
    let drill = outage.zip(victim).map(|(outage, victim)| {
        let standby = front_at.last().filter(|_| !is_router).map(|(_, admin)| *admin);
        let survivors = survivors.into_iter().map(survivor).collect();
        Box::new(Killing::new(outage, dead, victim, survivors, standby, mmes)) as Box<_>
    });
    let mut probes: Vec<Probe> = Vec::new();
    if let (None, Some((_, admin))) = (&drill, front_at.first()) {
        let admin = *admin;
        probes.push(Box::new(move || spread(admin, mmes)));
    }
    let connections = model.hss * model.routers;
    probes.extend(egress.as_ref().map(|egress| egress.probe(connections)));
    let egress = egress.map(|egress| egress.process);
    let mut routers = routers.into_iter();
    Ok(Rig {
        function: routers.next(),
        sites: routers.chain(front_ends).chain(egress).collect(),
        simulators: hss,
        probes,
        notes: vec![format!(
            "{mmes} MMEs, {} routers of {} message processors each, {} front ends, {} HSSs; processor time is that of \
             the routers and front ends that live to the end",
            model.routers, model.da_mps, model.front_ends, model.hss
        )],
        drill,
        ..Rig::new("dsr", if has_front { front } else { connects_to(0).0 }, workloads)
    })
}

/// Whether a front end has every client's connection, and gave each router as many.
fn spread(admin: SocketAddr, mmes: u32) -> Check {
    let connections = Metrics::read(admin).map(|metrics| metrics.values("signalbox_ipfe_connections"));
    let connections = connections.unwrap_or_default();
    let all: f64 = connections.iter().sum();
    let most = connections.iter().copied().fold(0.0, f64::max);
    let least = connections.iter().copied().fold(f64::INFINITY, f64::min);
    // One that only asked whether the front end listens may have been there when clients connected.
    let is_even = most - least < 2.5;
    Check::new(
        "connections are spread",
        format!("{mmes} through the front end, as many to each router"),
        format!(
            "{} through the front end, {} to {} a router",
            figure(all),
            figure(least),
            figure(most)
        ),
        (all - f64::from(mmes)).abs() < 0.5 && is_even,
    )
}

fn addresses(count: u16) -> Result<Vec<Addresses>, RigError> {
    (0..count)
        .map(|_| Ok((free_address()?, free_address()?)))
        .collect()
}

fn start_routers(
    model: &DsrModel,
    options: &Options,
    place: &Place,
    servers: &[SocketAddr],
    at: &[Addresses],
) -> Result<Vec<Guarded>, RigError> {
    let start = |(number, own): (usize, &Addresses)| {
        let mut made = config(model, place, *own, servers)?;
        join(&mut made["dsr"], number, at);
        let over = options.function_config.as_deref();
        start_function(place, ("dsr", &format!("dsr-{number}")), made, over, own.0)
    };
    at.iter().enumerate().map(start).collect()
}

fn host(number: usize) -> String {
    format!("dsr{number}.{REALM}")
}

/// Makes a router one of several: each connects to those that were started before it.
fn join(dsr: &mut Value, own: usize, all: &[Addresses]) {
    dsr["localNodes"][0]["host"] = json!(host(own));
    let siblings = all.iter().enumerate().filter(|(number, _)| *number != own);
    let sibling = |(number, (address, _)): (usize, &Addresses)| {
        let addresses: Vec<&SocketAddr> = (number < own).then_some(address).into_iter().collect();
        json!({
            "host": host(number),
            "addresses": addresses,
            "networks": ["127.0.0.0/8"],
            "sibling": true,
            "mate": all.len() == 2,
            "timers": { "reconnectMin": "50ms", "reopen": "afterSilence" },
        })
    };
    if let Some(peers) = dsr["peers"].as_array_mut() {
        peers.extend(siblings.map(sibling));
    }
}

/// The address that servers see behind a front end.
const SEEN: Ipv4Addr = Ipv4Addr::new(127, 0, 3, 9);

/// A front end between the routers and the servers.
struct Egress {
    process: Guarded,
    admin: SocketAddr,
    /// Where routers reach the servers, in their order.
    addresses: Vec<SocketAddr>,
}

impl Egress {
    fn start(place: &Place, servers: &[SocketAddr]) -> Result<Self, RigError> {
        let admin = free_address()?;
        let addresses: Result<Vec<SocketAddr>, RigError> = servers.iter().map(|_| free_address()).collect();
        let addresses = addresses?;
        let sets = addresses.iter().zip(servers).enumerate();
        let sets = sets.map(|(number, (listen, server))| {
            json!({ "name": format!("hss{number}"), "listen": listen, "servers": [server], "from": SEEN,
                    "processors": ["127.0.0.0/8"] })
        });
        let made =
            json!({ "ipfe": { "admin": admin, "workers": 1, "egressSets": sets.collect::<Vec<_>>() } });
        let first = addresses.first().copied();
        let first = first.ok_or_else(|| RigError::Settings("no server to reach".to_owned()))?;
        Ok(Self {
            process: start_function(place, ("ipfe", "ipfe-egress"), made, None, first)?,
            admin,
            addresses,
        })
    }

    /// Whether each router has reached each server through it.
    fn probe(&self, connections: u16) -> Probe {
        let admin = self.admin;
        Box::new(move || {
            let now = Metrics::read(admin);
            let now = now.map_or(f64::NAN, |metrics| metrics.sum("signalbox_ipfe_connections", &[]));
            Check::new(
                "servers are behind the front end",
                format!("{connections} connections to servers, all from {SEEN}"),
                format!("{} connections", figure(now)),
                (now - f64::from(connections)).abs() < 0.5,
            )
        })
    }
}

/// Starts front ends with one address before the routers; the first is active.
fn start_front_ends(
    place: &Place,
    front: SocketAddr,
    own: &[Addresses],
    routers: &[Addresses],
) -> Result<Vec<Guarded>, RigError> {
    let backends = routers.iter().enumerate().map(
        |(number, (address, admin))| json!({ "name": host(number), "address": address, "admin": admin }),
    );
    let backends: Vec<Value> = backends.collect();
    let start = |(number, (_, admin)): (usize, &Addresses)| {
        let mut made = json!({ "ipfe": {
            "admin": admin,
            "workers": 1,
            "check": { "interval": "500ms", "timeout": "1s", "failures": 2 },
            "targetSets": [{ "name": "tsa", "listen": front, "backends": backends }],
        }});
        if let [(_, first), (_, second)] = own {
            let mate = if number == 0 { second } else { first };
            made["ipfe"]["pair"] = json!({ "mate": mate, "preferred": number == 0 });
        }
        start_function(place, ("ipfe", &format!("ipfe-{number}")), made, None, front)
    };
    own.iter().enumerate().map(start).collect()
}
