//! Links that an operator inhibits.

use ss7_proto::Plan;
use ss7_proto::m3ua::ServiceIndicator;
use ss7_proto::mtp3::{Inhibiting, Management, Msu};
use stp::Running;

use crate::neighbour::Neighbour;
use crate::signalling_links::{World, east, exchange, is_available};
use crate::support::{Asp, isup, metric, start, until};

/// Asks an STP about a link; returns the status of the answer and its words.
fn ask(stp: &Running, link: &str, verb: &str) -> (u16, String) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let path = format!("/stp/links/{link}/{verb}");
    let page = testpeer::request(stp.handle().routes(), "POST", &path);
    tokio::task::LocalSet::new().block_on(&runtime, page)
}

/// The link selections of the next messages of ISUP.
fn calls(link: &mut Neighbour, count: usize) -> Vec<u8> {
    let mut found = Vec::new();
    while found.len() < count {
        let octets = link.msu();
        let msu = Msu::read(&octets, Plan::Itu).unwrap();
        if msu.si == ServiceIndicator::ISUP {
            found.push(msu.sls);
        }
    }
    found.sort_unstable();
    found
}

#[test]
fn a_link_that_the_peer_agrees_to_inhibit_carries_no_traffic() {
    let stp = start(east());
    let at = stp.addresses()[0];
    let mut a = Neighbour::new(at, 21, 0);
    until("the first link carries traffic", || is_available(&stp, "a"));
    assert_eq!(ask(&stp, "a", "inhibit").0, 409, "the last link");
    let mut b = Neighbour::new(at, 22, 1);
    until("the second link carries traffic", || is_available(&stp, "b"));
    let Management::ChangebackDeclaration(number) = a.management_of(1) else {
        panic!("no changeback");
    };
    a.manage(1, Management::ChangebackAcknowledgement(number));
    assert_eq!(ask(&stp, "asp", "inhibit").0, 409);
    assert_eq!(ask(&stp, "a", "uninhibit").0, 409);
    let message = |one| (0, Management::Inhibiting(one));
    // Denied first.
    assert_eq!(ask(&stp, "a", "inhibit").0, 200);
    a.wait_for(message(Inhibiting::Inhibit));
    b.manage(0, Management::Inhibiting(Inhibiting::InhibitDenied));
    until("it is denied", || ask(&stp, "a", "inhibit").0 == 200);
    a.wait_for(message(Inhibiting::Inhibit));
    b.manage(0, Management::Inhibiting(Inhibiting::InhibitAcknowledgement));
    until("it is inhibited", || !is_available(&stp, "a"));
    let has_alarm = || {
        let alarms = stp.handle().alarms().active();
        alarms.iter().any(|alarm| alarm.number == 10573)
    };
    until("the alarm", has_alarm);
    let mut one = Asp::active(at, 11, 11);
    let send = |one: &mut Asp| (0..16).for_each(|sls| one.send(&isup(11, 1, 2, sls, b"call")));
    send(&mut one);
    assert_eq!(calls(&mut b, 16), (0..16).collect::<Vec<u8>>());
    // Its own messages are taken, and tests are answered.
    a.send_msu(ServiceIndicator::ISUP, [200, 1], b"back");
    one.expect(ss7_proto::m3ua::MessageType::Data);
    assert_eq!(ask(&stp, "a", "uninhibit").0, 200);
    b.wait_for(message(Inhibiting::Uninhibit));
    b.manage(0, Management::Inhibiting(Inhibiting::UninhibitAcknowledgement));
    let Management::ChangebackDeclaration(number) = b.management_of(0) else {
        panic!("no changeback");
    };
    b.manage(0, Management::ChangebackAcknowledgement(number));
    until("it is available", || is_available(&stp, "a") && !has_alarm());
    send(&mut one);
    let mut all = [calls(&mut a, 8), calls(&mut b, 8)].concat();
    all.sort_unstable();
    assert_eq!(all, (0..16).collect::<Vec<u8>>());
}

/// Both ends are this STP: what each sends while a link is inhibited goes by the other link.
#[test]
fn a_link_that_one_stp_inhibits_is_inhibited_at_both() {
    let mut world = World::new();
    exchange(&world, || ());
    let both = |wanted: bool| {
        let ends = [&world.east, &world.west];
        ends.iter().all(|stp| is_available(stp, "a") == wanted)
    };
    assert_eq!(ask(&world.east, "a", "inhibit").0, 200);
    until("both ends know", || both(false));
    let sent = |stp: &Running, link: &str| {
        let name = format!("signalbox_stp_sent_messages_total{{link=\"{link}\"}}");
        metric(stp, &name)
    };
    let before = [&world.east, &world.west].map(|stp| sent(stp, "a"));
    exchange(&world, || ());
    let after = [&world.east, &world.west].map(|stp| sent(stp, "a"));
    assert_eq!(before, after);
    // Without the other link it is needed: the inhibition ends by itself.
    world.relays[1].cut();
    until("the inhibition has ended", || both(true));
    world.settle();
    exchange(&world, || ());
    world.one.settle();
}
