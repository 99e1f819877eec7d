//! MTP restart, and congestion that neighbours report, at the wire.

use settings::Period;
use ss7_proto::m3ua::{Message, MessageType, ServiceIndicator, Tag};
use ss7_proto::mtp3::{Management, Msu};
use ss7_proto::{Plan, PointCode};
use stp::config::Route;

use crate::moves::{NORTH, with_north};
use crate::neighbour::Neighbour;
use crate::signalling_links::{EAST, WEST, east, is_available};
use crate::support::{Asp, data, isup, metric, msu, start, until};
use crate::transfer::affected;

fn is_open(stp: &stp::Running, hop: &str) -> bool {
    metric(stp, &format!("signalbox_stp_hop_available{{hop=\"{hop}\"}}")) == 1.0
}

fn page(stp: &stp::Running, path: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let page = testpeer::request(stp.handle().routes(), "GET", path);
    tokio::task::LocalSet::new().block_on(&runtime, page).1
}

#[test]
fn a_neighbour_gets_traffic_after_its_tra() {
    let mut settings = east();
    settings.mtp.t21 = Period::from_secs(3_600);
    let stp = start(settings);
    let at = stp.addresses()[0];
    let mut one = Asp::active(at, 11, 11);
    let mut a = Neighbour::new(at, 21, 0);
    // This STP does not restart: it reports at once.
    while a.management().1 != Management::TrafficRestartAllowed {}
    until("the link carries", || is_available(&stp, "a"));
    assert!(!is_open(&stp, "neighbour"));
    assert!(page(&stp, "/stp/hops").contains("restarting"));
    one.send(&isup(11, 1, 2, 0, b"early"));
    assert_eq!(affected(&one.expect(MessageType::Duna)), [2]);
    a.manage(0, Management::TransferProhibited(PointCode(2)));
    a.manage(0, Management::TrafficRestartAllowed);
    until("the link set carries traffic", || is_open(&stp, "neighbour"));
    // What it has reported before TRA counts.
    let available = "signalbox_stp_destination_available{destination=\"0-0-2\"}";
    assert_eq!(metric(&stp, available), 0.0);
    a.manage(0, Management::TransferAllowed(PointCode(2)));
    // In one message or two, as they follow one another.
    let mut allowed = Vec::new();
    while allowed.len() < 2 {
        allowed.extend(affected(&one.expect(MessageType::Dava)));
    }
    allowed.sort_unstable();
    assert_eq!(allowed, [2, WEST]);
    one.send(&isup(11, 1, 2, 0, b"late"));
    loop {
        let octets = a.msu();
        let msu = Msu::read(&octets, Plan::Itu).unwrap();
        if msu.si == ServiceIndicator::ISUP {
            assert_eq!(msu.user_data, b"late");
            break;
        }
    }
}

#[test]
fn an_isolated_stp_reports_once_both_neighbours_have() {
    let mut settings = with_north();
    settings.mtp.t18 = Period::from_secs(3_600);
    settings.mtp.t21 = Period::from_secs(3_600);
    settings.routes.push(Route {
        destination: "3".to_owned(),
        via: "north".to_owned(),
        priority: 0,
    });
    let stp = start(settings);
    let at = stp.addresses()[0];
    let mut a = Neighbour::new(at, 21, 0);
    until("the first link carries", || is_available(&stp, "a"));
    a.manage(0, Management::TrafficRestartAllowed);
    let mut n = Neighbour::at(at, 23, 0, NORTH);
    until("the other link carries", || is_available(&stp, "n"));
    assert!(!is_open(&stp, "neighbour") && !is_open(&stp, "north"));
    n.manage(0, Management::TransferProhibited(PointCode(3)));
    n.manage(0, Management::TrafficRestartAllowed);
    // TFP for what the other neighbour does not reach, and for the application server that is down; then TRA.
    let mut reported = Vec::new();
    loop {
        match a.management().1 {
            Management::TrafficRestartAllowed => break,
            message => reported.push(message),
        }
    }
    assert_eq!(
        reported,
        [1, 3].map(|code| Management::TransferProhibited(PointCode(code)))
    );
    assert_eq!(n.management().1, Management::TransferProhibited(PointCode(1)));
    assert_eq!(n.management().1, Management::TrafficRestartAllowed);
    until("both carry traffic", || {
        is_open(&stp, "neighbour") && is_open(&stp, "north")
    });
}

#[test]
fn reported_congestion_is_passed_on_and_tested() {
    let mut settings = east();
    settings.mtp.t15 = Period::from_millis(50);
    settings.mtp.t16 = Period::from_millis(50);
    let stp = start(settings);
    let at = stp.addresses()[0];
    let mut one = Asp::active(at, 11, 11);
    let mut a = Neighbour::new(at, 21, 0);
    until("the link carries", || is_available(&stp, "a"));
    let congested = Management::TransferControlled {
        destination: PointCode(2),
        level: 2,
    };
    // From a node behind the neighbour, as from the neighbour itself.
    let mut user_data = Vec::new();
    congested.write(Plan::Itu, 0, &mut user_data);
    a.send_msu(ServiceIndicator::SNM, [2, EAST], &user_data);
    let mut levels = Vec::new();
    while levels.last() != Some(&0) {
        let scon = one.expect(MessageType::Scon);
        assert_eq!(affected(&scon), [2]);
        levels.extend(Message::parse(&scon).unwrap().word(Tag::CONGESTION_INDICATIONS));
    }
    assert_eq!(levels, [2, 1, 0]);
    let mut tests = Vec::new();
    while tests.len() < 2 {
        let octets = a.msu();
        let msu = Msu::read(&octets, Plan::Itu).unwrap();
        if msu.si == ServiceIndicator::SNM
            && Management::read(msu.user_data, Plan::Itu) == Some(Management::CongestionTest)
        {
            tests.push((msu.dpc.0, msu.opc.0, msu.priority));
        }
    }
    assert_eq!(tests, [(2, EAST, 1), (2, EAST, 0)]);
    // Of a destination that no route leads to it is not followed; international networks have no levels.
    assert_eq!(metric(&stp, "signalbox_stp_congested_destinations"), 0.0);
}

/// A TFP for a point code of this STP concerns others.
#[test]
fn a_neighbour_cannot_prohibit_the_stp_itself() {
    let stp = start(east());
    let at = stp.addresses()[0];
    let mut one = Asp::active(at, 11, 11);
    let mut a = Neighbour::new(at, 21, 0);
    until("the link carries", || is_available(&stp, "a"));
    for code in [EAST, WEST] {
        a.manage(0, Management::TransferProhibited(PointCode(code)));
    }
    a.send_msu(ServiceIndicator::ISUP, [2, 1], b"call");
    assert_eq!(data(&one.expect(MessageType::Data)).user_data, b"call");
    one.send(&msu(11, 1, WEST, 0, ServiceIndicator::ISUP, b"back"));
    loop {
        let octets = a.msu();
        if Msu::read(&octets, Plan::Itu).unwrap().user_data == b"back" {
            break;
        }
    }
}
