//! Traffic that moves from one link set to another: T1, T3, forced rerouting.

use settings::Period;
use ss7_proto::m3ua::{MessageType, ServiceIndicator};
use ss7_proto::mtp3::{Management, Msu};
use ss7_proto::{Plan, PointCode};
use stp::config::{Link, LinkSet, Role, Route};
use stp::{Config, Running};

use crate::neighbour::Neighbour;
use crate::signalling_links::{EAST, east, is_available};
use crate::support::{Asp, isup, link, start, until};
use crate::translation::why;

/// The point code of the second neighbour.
pub(crate) const NORTH: u32 = 300;

/// An STP with a second link set, `north`, which is second for point code 2.
pub(crate) fn with_north() -> Config {
    let mut settings = east();
    settings.links.push(Link {
        role: Role::M2pa,
        ..link("n", 23)
    });
    settings.link_sets.push(LinkSet {
        name: "north".to_owned(),
        links: vec!["n".to_owned()],
        point_code: Some(NORTH.to_string()),
        ..LinkSet::default()
    });
    settings.routes.push(Route {
        destination: "2".to_owned(),
        via: "north".to_owned(),
        priority: 1,
    });
    settings
}

/// The STP, an ASP, and both neighbours, each with one link.
struct World {
    stp: Running,
    one: Asp,
    west: Option<Neighbour>,
    north: Neighbour,
}

impl World {
    fn new(settings: Config) -> Self {
        let stp = start(settings);
        let at = stp.addresses()[0];
        let (one, west) = (Asp::active(at, 11, 11), Neighbour::new(at, 21, 0));
        let north = Neighbour::at(at, 23, 0, NORTH);
        let world = Self {
            stp,
            one,
            west: Some(west),
            north,
        };
        world.until_west(true);
        until("north is available", || is_available(&world.stp, "n"));
        world
    }

    fn until_west(&self, wanted: bool) {
        until("the state of the first link set", || {
            is_available(&self.stp, "a") == wanted
        });
    }

    fn send(&mut self, number: u8) {
        for sls in 0..16 {
            self.one.send(&isup(11, 1, 2, sls, &[number]));
        }
        self.one.settle();
    }

    fn lose_west(&mut self) {
        self.west = None;
        self.until_west(false);
    }

    fn restore_west(&mut self) {
        self.west = Some(Neighbour::new(self.stp.addresses()[0], 21, 0));
        self.until_west(true);
    }

    fn is_held(&self) -> bool {
        let explained = why(&self.stp, &isup(11, 1, 2, 0, b"call")).to_string();
        explained.contains("held while its traffic moves")
    }
}

/// The neighbour gets one message with each number for each link selection, in this order.
fn receive(neighbour: &mut Neighbour, numbers: &[u8]) {
    let mut found = vec![Vec::new(); 16];
    for _ in 0..16 * numbers.len() {
        let msu = loop {
            let octets = neighbour.msu();
            let msu = Msu::read(&octets, Plan::Itu).unwrap();
            if msu.si == ServiceIndicator::ISUP {
                break (msu.sls, msu.user_data.to_vec());
            }
        };
        found[usize::from(msu.0)].extend(msu.1);
    }
    assert!(found.iter().all(|one| one == numbers), "{found:?}");
}

#[test]
fn traffic_moves_to_the_second_link_set_and_back() {
    let mut world = World::new(with_north());
    world.send(1);
    receive(world.west.as_mut().unwrap(), &[1]);
    world.lose_west();
    world.send(2);
    world.send(3);
    receive(&mut world.north, &[2, 3]);
    world.restore_west();
    world.send(4);
    world.send(5);
    receive(world.west.as_mut().unwrap(), &[4, 5]);
}

/// Q.704 §5, §6.4: what was sent by the former link set arrives first. A reload of routes ends the wait.
#[test]
fn messages_are_held_for_t1_and_t3() {
    let mut settings = with_north();
    settings.mtp.t1 = Period::from_secs(3_600);
    settings.mtp.t3 = Period::from_secs(3_600);
    let mut world = World::new(settings.clone());
    assert!(!world.is_held());
    world.lose_west();
    world.send(1);
    assert!(world.is_held());
    world.send(2);
    settings.subsystems = vec![8];
    world.stp.reload(&settings).unwrap();
    receive(&mut world.north, &[1, 2]);
    assert!(!world.is_held());
    world.restore_west();
    assert!(world.is_held());
    world.send(3);
    settings.subsystems = vec![7];
    world.stp.reload(&settings).unwrap();
    receive(world.west.as_mut().unwrap(), &[3]);
}

/// §7, §8: TFP diverts at once, TFA after T3.
#[test]
fn a_prohibited_route_is_left_at_once_and_taken_again_later() {
    let mut settings = with_north();
    settings.mtp.t1 = Period::from_secs(3_600);
    settings.mtp.t3 = Period::from_secs(3_600);
    let mut world = World::new(settings.clone());
    let west = world.west.as_mut().unwrap();
    west.manage(0, Management::TransferProhibited(PointCode(2)));
    until("the route is left", || {
        why(&world.stp, &isup(11, 1, 2, 0, b"call"))["by"] == "north"
    });
    assert!(!world.is_held());
    world.send(1);
    receive(&mut world.north, &[1]);
    let west = world.west.as_mut().unwrap();
    west.manage(0, Management::TransferAllowed(PointCode(2)));
    until("the route is to be taken again", || world.is_held());
    world.send(2);
    settings.subsystems = vec![8];
    world.stp.reload(&settings).unwrap();
    receive(world.west.as_mut().unwrap(), &[2]);
}

#[test]
fn messages_beyond_the_bound_of_what_is_held_are_dropped() {
    let mut settings = with_north();
    settings.mtp.t1 = Period::from_secs(3_600);
    settings.pending = 32;
    let mut world = World::new(settings.clone());
    world.lose_west();
    (1..=3).for_each(|number| world.send(number));
    let dropped = "signalbox_stp_undelivered_messages_total{why=\"recovery\"}";
    assert_eq!(crate::support::metric(&world.stp, dropped), 16.0);
    settings.subsystems = vec![8];
    world.stp.reload(&settings).unwrap();
    receive(&mut world.north, &[1, 2]);
    // The STP itself sends by the new route, too.
    world.one.send(&isup(11, 1, EAST, 0, b"no user"));
    world.one.expect(MessageType::Dupu);
}
