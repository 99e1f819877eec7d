//! Two STPs joined by a link set of M2PA: links that are cut under load, a neighbour that restarts, octets that are no M2PA.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use settings::Period;
use ss7_proto::m3ua::MessageType;
use stp::config::{Link, LinkSet, NumberingPlan, Role, Route};
use stp::{Config, Running};

use crate::support::{Asp, config, connection, data, isup, link, metric, server, start, until};
use crate::transfer::affected;

/// The point codes of both STPs.
pub(crate) const EAST: u32 = 100;
pub(crate) const WEST: u32 = 200;

/// A relay of TCP, whose connections can be cut with what they carry.
pub(crate) struct Relay {
    at: SocketAddr,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    /// Relays to an address, from another one.
    fn new(to: SocketAddr, from: u8) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let all = streams.clone();
        std::thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                let Ok(far) = connection(to, from) else {
                    continue;
                };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || pass(from, to));
                }
                all.lock().unwrap().extend([near, far]);
            }
        });
        Self { at, streams }
    }

    pub(crate) fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut chunk) {
        if to.write_all(&chunk[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// An STP with one application server, and a link set to the other STP that leads to `far`.
pub(crate) fn stp(own: u32, near: (&str, u32, u8), far: u32, adjacent: u32, links: Vec<Link>) -> Config {
    let mut config = config();
    config.point_codes.own = own.to_string();
    config.queue = 1_000_000;
    config.pending = 1_000_000;
    config.reconnect = Period::from_millis(20);
    // A machine that is busy does not fail a link.
    config.mtp.t1 = Period::from_millis(20);
    config.mtp.t2 = Period::from_secs(60);
    config.mtp.t3 = Period::from_millis(20);
    config.mtp.t4 = Period::from_secs(60);
    // Neighbours made by hand send no TRA.
    config.mtp.t18 = Period::default();
    config.mtp.t21 = Period::default();
    config.m2pa.t7 = Period::from_secs(60);
    config.m2pa.t3 = Period::from_secs(60);
    config.m2pa.t6 = Period::from_secs(60);
    config.m2pa.t4n = Period::from_millis(50);
    config.m2pa.t4e = Period::from_millis(50);
    let (name, code, from) = near;
    config.links = vec![link("asp", from)];
    config.application_servers = vec![server(name, 10 + code, code, &["asp"])];
    config.link_sets = vec![LinkSet {
        name: "neighbour".to_owned(),
        links: links.iter().map(|link| link.name.clone()).collect(),
        point_code: Some(adjacent.to_string()),
        ..LinkSet::default()
    }];
    config.links.extend(links);
    config.routes = vec![Route {
        destination: far.to_string(),
        via: "neighbour".to_owned(),
        priority: 0,
    }];
    config
}

pub(crate) fn east() -> Config {
    let waits = |name: &str, from| Link {
        role: Role::M2pa,
        ..link(name, from)
    };
    stp(
        EAST,
        ("one", 1, 11),
        2,
        WEST,
        vec![waits("a", 21), waits("b", 22)],
    )
}

fn west(ports: [u16; 2]) -> Config {
    let connects = |name: &str, port| Link {
        role: Role::M2pa,
        port: Some(port),
        connect: true,
        ..link(name, 1)
    };
    let links = vec![connects("a", ports[0]), connects("b", ports[1])];
    stp(WEST, ("two", 2, 12), 1, EAST, links)
}

pub(crate) fn is_available(stp: &Running, link: &str) -> bool {
    metric(stp, &format!("signalbox_stp_link_available{{link=\"{link}\"}}")) == 1.0
}

pub(crate) fn undelivered(stp: &Running) -> f64 {
    let page = stp.handle().registry().render();
    let lines = page
        .lines()
        .filter(|line| line.starts_with("signalbox_stp_undelivered_messages_total{"));
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

/// Two STPs, the relays of their links, and an ASP at each.
pub(crate) struct World {
    pub(crate) east: Running,
    pub(crate) west: Running,
    pub(crate) relays: [Relay; 2],
    pub(crate) one: Asp,
    pub(crate) two: Asp,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::of(NumberingPlan::Itu)
    }

    /// In a network with another plan of point codes.
    pub(crate) fn of(plan: NumberingPlan) -> Self {
        let of_plan = |mut config: Config| {
            config.point_codes.plan = plan;
            start(config)
        };
        let east = of_plan(east());
        let relays = [21, 22].map(|from| Relay::new(east.addresses()[0], from));
        let west = of_plan(west([relays[0].at.port(), relays[1].at.port()]));
        let (one, two) = (
            Asp::active(east.addresses()[0], 11, 11),
            Asp::active(west.addresses()[0], 12, 12),
        );
        let world = Self {
            east,
            west,
            relays,
            one,
            two,
        };
        world.settle();
        world
    }

    /// Waits until both links carry traffic at both ends, and each end knows of the other's ASP.
    pub(crate) fn settle(&self) {
        until("both links are available", || {
            let stps = [&self.east, &self.west];
            stps.iter()
                .all(|stp| is_available(stp, "a") && is_available(stp, "b"))
        });
        until("both destinations are available", || {
            let available = |stp, code: &str| {
                metric(
                    stp,
                    &format!("signalbox_stp_destination_available{{destination=\"{code}\"}}"),
                ) == 1.0
            };
            available(&self.east, "0-0-2") && available(&self.west, "0-0-1")
        });
    }
}

/// Ends the messages of a link selection.
const LAST: u32 = u32::MAX;

/// Sends numbered messages of each link selection until `stop` is set; returns how many.
fn send(asp: &mut Asp, [context, opc, dpc]: [u32; 3], stop: &AtomicBool) -> u32 {
    let mut number = 0_u32;
    loop {
        for sls in 0..16 {
            asp.send(&isup(context, opc, dpc, sls, &number.to_be_bytes()));
            number += 1;
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(Duration::from_millis(4));
    }
    for sls in 0..16 {
        asp.send(&isup(context, opc, dpc, sls, &LAST.to_be_bytes()));
    }
    number
}

/// Receives until the last message of each link selection; each has its own in their order, without a gap. Returns how many.
fn receive(asp: &mut Asp) -> u32 {
    let mut next: [u32; 16] = std::array::from_fn(|sls| sls as u32);
    let (mut count, mut ended) = (0, 0);
    while ended < 16 {
        let octets = asp.expect(MessageType::Data);
        let msu = data(&octets);
        let number = u32::from_be_bytes(msu.user_data.try_into().unwrap());
        if number == LAST {
            ended += 1;
            continue;
        }
        let wanted = &mut next[usize::from(msu.sls)];
        assert_eq!(number, *wanted, "link selection {}", msu.sls);
        *wanted += 16;
        count += 1;
    }
    count
}

/// Both directions at once, while `act` runs: what was sent is what was received.
pub(crate) fn exchange(world: &World, act: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    // Each ASP sends by one copy of its socket and receives by another.
    let copy = |asp: &Asp| Asp::over(asp.stream.try_clone().unwrap());
    let (one, two) = (&world.one, &world.two);
    std::thread::scope(|scope| {
        let senders = [(one, [11, 1, 2]), (two, [12, 2, 1])].map(|(asp, label)| {
            let mut asp = copy(asp);
            let stop = &stop;
            scope.spawn(move || send(&mut asp, label, stop))
        });
        let receivers = [two, one].map(|asp| {
            let mut asp = copy(asp);
            scope.spawn(move || receive(&mut asp))
        });
        act();
        stop.store(true, Ordering::Relaxed);
        let sent = senders.map(|one| one.join().unwrap());
        let received = receivers.map(|one| one.join().unwrap());
        assert_eq!(sent, received);
        assert!(sent.iter().all(|count| *count > 0));
    });
}

#[test]
fn a_cut_link_loses_doubles_and_misorders_nothing() {
    let world = World::new();
    exchange(&world, || {
        for round in 0..6 {
            world.settle();
            world.relays[round % 2].cut();
            let link = ["a", "b"][round % 2];
            until("the link has failed", || !is_available(&world.east, link));
            // Routes change beside it.
            let mut settings = east();
            settings.routes[0].priority = u8::from(round % 2 == 0);
            world.east.reload(&settings).unwrap();
        }
        world.settle();
    });
    assert_eq!((undelivered(&world.east), undelivered(&world.west)), (0.0, 0.0));
}

/// What MTP does not promise: without a link of the set what was under way is lost. The set returns without help.
#[test]
fn a_neighbour_that_restarts_is_found_again() {
    let mut world = World::new();
    let ports = [world.relays[0].at.port(), world.relays[1].at.port()];
    drop(world.west);
    world.one.expect(MessageType::Duna);
    world.west = start(west(ports));
    world.two = Asp::active(world.west.addresses()[0], 12, 12);
    world.settle();
    world.one.settle();
    exchange(&world, || {});
}

/// Q.704 §13.2, §13.3: what an ASP behind the neighbour loses, the ASPs here are notified of.
#[test]
fn a_destination_behind_the_neighbour_is_prohibited_and_allowed() {
    let mut world = World::new();
    drop(world.two);
    let duna = world.one.expect(MessageType::Duna);
    assert_eq!(affected(&duna), [2]);
    world.one.send(&isup(11, 1, 2, 0, b"lost"));
    world.one.expect(MessageType::Duna);
    world.two = Asp::active(world.west.addresses()[0], 12, 12);
    // The neighbour itself may be announced after it.
    while !affected(&world.one.expect(MessageType::Dava)).contains(&2) {}
    exchange(&world, || {});
}

#[test]
fn octets_of_a_stranger_end_their_own_link_alone() {
    let world = World::new();
    let zeros = [[1, 0, 11, 2, 0, 0, 0, 7].to_vec(), vec![0; 64]].concat();
    let unknown = [&[1, 0, 11, 2, 0, 0, 0, 20][..], &[0xff; 12]].concat();
    exchange(&world, || {
        for octets in [b"GET / HTTP/1.1\r\n\r\n".to_vec(), zeros, unknown] {
            world.settle();
            // It replaces the peer of the link, whose address it has.
            let mut stranger = Asp::connect(world.east.addresses()[0], 21).stream;
            stranger.write_all(&octets).unwrap();
            let _ = stranger.read_to_end(&mut Vec::new());
        }
        world.settle();
    });
}

#[test]
fn settings_of_link_sets_that_do_not_fit() {
    let faults = |change: fn(&mut Config)| {
        let mut config = east();
        change(&mut config);
        crate::support::faults(&config)
    };
    assert_eq!(faults(|_| {}), Vec::<String>::new());
    assert_eq!(
        faults(|config| config.point_codes.plan = NumberingPlan::Japan),
        ["linkSets[0].pointCode"]
    );
    let mixed = faults(|config| config.links[2].role = Role::Sgp);
    assert_eq!(mixed, ["linkSets[0].links[1]"]);
    let bare = faults(|config| config.link_sets[0].point_code = None);
    assert!(bare.contains(&"linkSets[0].pointCode".to_owned()), "{bare:?}");
    let both = faults(|config| config.link_sets[0].routing_context = Some(7));
    assert_eq!(both, ["linkSets[0].routingContext"]);
    assert_eq!(
        faults(|config| config.link_sets[0].point_code = Some(EAST.to_string())),
        ["linkSets[0].pointCode"]
    );
}
