//! Links of M2PA in a network of ANSI: management of MTP3 in the form of T1.111.4, link selections of eight bits, clusters.

use settings::Period;
use ss7_proto::m3ua::{AffectedPointCode, Message, MessageType, ServiceIndicator, Tag};
use ss7_proto::mtp3::{Changeover, Management as NetworkManagement, Msu, TestMessage, link_code};
use ss7_proto::sccp::{Address, AddressBuf, Format, GlobalTitleBuf, Management, ManagementType};
use ss7_proto::{Digits, Plan, PointCode};
use stp::Config;
use stp::config::{Entry, Group, NextRouting, NumberingPlan, Route, TranslationSet};
use testpeer::tshark::{COMPLAINTS, tshark};

use crate::judge::capture;
use crate::moves::{NORTH, with_north};
use crate::neighbour::Neighbour;
use crate::signalling_links::{EAST, WEST, World, east, exchange, is_available, undelivered};
use crate::support::{Asp, OWN, config, data, isup, metric, msu, start, until};
use crate::translation::{parsed, to_stp, udt};

/// The cluster behind the neighbour.
const CLUSTER: u32 = 0x05_1400;

/// East, with a route to a cluster by the neighbour.
fn settings() -> Config {
    let mut config = east();
    config.point_codes.plan = NumberingPlan::Ansi;
    config.routes.push(Route {
        destination: "5-20-0/8".to_owned(),
        via: "neighbour".to_owned(),
        priority: 0,
    });
    config
}

/// Point codes and masks of DUNA or DAVA.
fn named(octets: &[u8]) -> Vec<(u8, u32)> {
    let message = Message::parse(octets).unwrap();
    let codes = AffectedPointCode::list(message.get(Tag::AFFECTED_POINT_CODE).unwrap());
    codes.map(|one| (one.mask, one.code.0)).collect()
}

#[test]
fn two_stps_of_ansi_lose_nothing_of_a_cut_link() {
    let world = World::of(NumberingPlan::Ansi);
    exchange(&world, || {
        for round in 0..4 {
            world.settle();
            world.relays[round % 2].cut();
            let link = ["a", "b"][round % 2];
            until("the link has failed", || !is_available(&world.east, link));
        }
        world.settle();
    });
    assert_eq!((undelivered(&world.east), undelivered(&world.west)), (0.0, 0.0));
}

/// T1.111.7: special messages (service indicator 2) with the code of the link, in its label too, and the highest priority. What comes as a
/// regular message is answered as one.
#[test]
fn link_tests_are_special_messages_that_name_the_link() {
    let stp = start(settings());
    let mut b = Neighbour::connect(stp.addresses()[0], 22, 1);
    let test = b.aligned_until_test(Plan::Ansi);
    let msu = Msu::read(&test, Plan::Ansi).unwrap();
    assert_eq!((msu.si.0, msu.sls, msu.priority), (2, 1, 3));
    assert_eq!(link_code(9, msu.user_data, Plan::Ansi), 1);
    b.acknowledge_test(&test);
    until("the link carries traffic", || is_available(&stp, "b"));
    let mut test = Vec::new();
    let pattern = b"regular";
    TestMessage {
        acknowledges: false,
        pattern,
    }
    .write(Plan::Ansi, 1, &mut test);
    b.send_msu(ServiceIndicator::SNT, [WEST, EAST], &test);
    loop {
        let octets = b.msu();
        let msu = Msu::read(&octets, Plan::Ansi).unwrap();
        let answer = TestMessage::read(msu.user_data).filter(|test| test.acknowledges);
        if msu.si == ServiceIndicator::SNT {
            assert_eq!(answer.unwrap().pattern, pattern);
            break;
        }
    }
}

/// As Yate and libss7 do. What the message says counts before that.
#[test]
fn a_link_test_may_name_the_link_in_its_label_alone() {
    let stp = start(settings());
    let mut b = Neighbour::connect(stp.addresses()[0], 22, 1);
    let test = b.aligned_until_test(Plan::Ansi);
    let test = TestMessage::read(Msu::read(&test, Plan::Ansi).unwrap().user_data).unwrap();
    let mut acknowledge = |code| {
        let mut user_data = Vec::new();
        TestMessage {
            acknowledges: true,
            ..test
        }
        .write(Plan::Ansi, code, &mut user_data);
        b.send_msu(ServiceIndicator::SNT_SPECIAL, [WEST, EAST], &user_data);
    };
    acknowledge(2);
    let wrong = "signalbox_stp_discarded_link_tests_total{link=\"b\"}";
    until("the test of another link is counted", || {
        metric(&stp, wrong) == 1.0
    });
    assert!(!is_available(&stp, "b"));
    acknowledge(0);
    until("the link carries traffic", || is_available(&stp, "b"));
    assert_eq!(metric(&stp, wrong), 1.0);
}

/// XCO names the failed link in the message; all link selections of eight bits go by the other one.
#[test]
fn a_changeover_names_the_link_in_the_message() {
    let stp = start(settings());
    let at = stp.addresses()[0];
    let mut a = Neighbour::of(Plan::Ansi, at, 21, 0);
    until("the first link carries traffic", || is_available(&stp, "a"));
    let b = Neighbour::of(Plan::Ansi, at, 22, 1);
    until("the second link carries traffic", || is_available(&stp, "b"));
    let NetworkManagement::ChangebackDeclaration(number) = a.management_of(1) else {
        panic!("no changeback");
    };
    a.manage(1, NetworkManagement::ChangebackAcknowledgement(number));
    let mut one = Asp::active(at, 11, 11);
    drop(b);
    let NetworkManagement::ChangeoverOrder(Changeover::Extended(_)) = a.management_of(1) else {
        panic!("no changeover");
    };
    a.manage(
        1,
        NetworkManagement::ChangeoverAcknowledgement(Changeover::Extended(0x00ff_ffff)),
    );
    for sls in 0..=255 {
        one.send(&isup(11, 1, CLUSTER + 7, sls, b"call"));
    }
    let mut found = Vec::new();
    while found.len() < 256 {
        let octets = a.msu();
        let msu = Msu::read(&octets, Plan::Ansi).unwrap();
        if msu.si == ServiceIndicator::ISUP {
            assert_eq!(msu.dpc, PointCode(CLUSTER + 7));
            found.push(msu.sls);
        }
    }
    found.sort_unstable();
    assert_eq!(found, (0..=255).collect::<Vec<u8>>());
}

/// TCP and TCA close and open the routes to a cluster by the neighbour; RCP is answered by TCA while another leads there, and ASPs get
/// DUNA and DAVA with a mask.
#[test]
fn clusters_are_prohibited_and_allowed() {
    let mut config = settings();
    // A cluster that an application server is in.
    config.routes.push(Route {
        destination: "7-1-0/8".to_owned(),
        via: "one".to_owned(),
        priority: 0,
    });
    let stp = start(config);
    let at = stp.addresses()[0];
    let mut a = Neighbour::of(Plan::Ansi, at, 21, 0);
    until("the link carries traffic", || is_available(&stp, "a"));
    // Without an ASP the cluster is not available.
    a.wait_for_message(NetworkManagement::ClusterProhibited(PointCode(0x07_0100)));
    let mut one = Asp::active(at, 11, 11);
    a.wait_for_message(NetworkManagement::ClusterAllowed(PointCode(0x07_0100)));
    one.settle();
    a.manage(0, NetworkManagement::ClusterProhibited(PointCode(CLUSTER)));
    assert_eq!(named(&one.expect(MessageType::Duna)), [(8, CLUSTER)]);
    a.manage(0, NetworkManagement::ClusterAllowed(PointCode(CLUSTER)));
    assert_eq!(named(&one.expect(MessageType::Dava)), [(8, CLUSTER)]);
    // Tests of a cluster that nothing is known of, and of two that are available.
    for cluster in [0x09_0000, CLUSTER, 0x07_0100] {
        a.manage(0, NetworkManagement::ClusterTest(PointCode(cluster)));
    }
    a.wait_for_message(NetworkManagement::ClusterAllowed(PointCode(0x07_0100)));
    // M3UA carries no link tests, special ones neither (RFC 4666 §3.3.1).
    one.send(&msu(11, 1, 2, 0, ServiceIndicator::SNT_SPECIAL, b"forged"));
    one.send(&isup(11, 1, 2, 0, b"call"));
    loop {
        let octets = a.msu();
        let msu = Msu::read(&octets, Plan::Ansi).unwrap();
        assert_ne!(msu.user_data, b"forged");
        if msu.si == ServiceIndicator::ISUP {
            break;
        }
    }
    // A call to the cluster of the application server.
    a.send_msu(ServiceIndicator::ISUP, [WEST, 0x07_0142], b"back");
    let octets = one.expect(MessageType::Data);
    assert_eq!(
        (data(&octets).dpc.0, data(&octets).user_data),
        (0x07_0142, &b"back"[..])
    );
}

/// T1.111.4 §9: an STP that restarts says so (TRW), and before what its TRA ends; a neighbour that does so is awaited.
#[test]
fn a_restart_is_announced() {
    let mut config = with_north();
    config.point_codes.plan = NumberingPlan::Ansi;
    config.mtp.t18 = Period::from_millis(200);
    config.mtp.t21 = Period::from_secs(3_600);
    let stp = start(config);
    let mut a = Neighbour::of(Plan::Ansi, stp.addresses()[0], 21, 0);
    let waiting = NetworkManagement::TrafficRestartWaiting;
    let allowed = NetworkManagement::TrafficRestartAllowed;
    assert_eq!(a.management().1, waiting);
    // T18 ends without the other neighbour. Neither it nor the application server is available.
    assert_eq!(a.management().1, waiting);
    for code in [1, NORTH] {
        let prohibited = NetworkManagement::TransferProhibited(PointCode(code));
        assert_eq!(a.management().1, prohibited);
    }
    assert_eq!(a.management().1, allowed);
    let is_open = || metric(&stp, "signalbox_stp_hop_available{hop=\"neighbour\"}") == 1.0;
    a.manage(0, waiting);
    assert!(!is_open());
    a.manage(0, allowed);
    until("the link set carries traffic", is_open);
}

fn address(ssn: u8, code: Option<u32>, title: Option<GlobalTitleBuf>) -> Vec<u8> {
    let mut out = Vec::new();
    AddressBuf {
        point_code: code.map(PointCode),
        ssn: Some(ssn),
        route_on_title: title.is_some(),
        national: true,
        title,
    }
    .write(Format::Ansi, &mut out)
    .unwrap();
    out
}

/// T1.112.3: subsystem before point code, titles with translation type alone (0010) or with plan and encoding (0001), status of a
/// subsystem. tshark reads what the STP sends in the same way.
#[test]
fn sccp_of_ansi_is_translated_and_managed() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = config();
    settings.point_codes.plan = NumberingPlan::Ansi;
    settings.subsystems = vec![8];
    settings.translation.groups = vec![Group {
        name: "hlr".to_owned(),
        members: vec![crate::translation::member(2)],
        ..Group::default()
    }];
    settings.translation.sets = vec![TranslationSet {
        name: "ten".to_owned(),
        translation_type: Some(10),
        entries: vec![Entry {
            digits: "660555".to_owned(),
            group: "hlr".to_owned(),
            routing: NextRouting::Subsystem,
            subsystem: Some(6),
            ..Entry::default()
        }],
        ..TranslationSet::default()
    }];
    let stp = start(settings);
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let title = |indicator| GlobalTitleBuf {
        indicator,
        translation_type: 10,
        numbering_plan: u8::from(indicator == 1),
        nature: 0,
        digits: Digits::parse("6605550123").unwrap(),
    };
    let mut sent = Vec::new();
    for indicator in [1, 2] {
        let called = address(0, None, Some(title(indicator)));
        one.send(&to_stp(11, 1, &udt(&called, &address(8, None, None), b"tcap")));
        let received = two.expect(MessageType::Data);
        let unitdata = parsed(&received);
        // The calling party has the point code of the origin behind its subsystem, which the called one has from the translation.
        assert_eq!(unitdata.calling, [0xc3, 8, 1, 0, 0]);
        let called = Address::parse(unitdata.called, Format::Ansi).unwrap();
        assert_eq!(
            (called.ssn, called.route_on_title, called.national),
            (Some(6), false, true)
        );
        assert_eq!(called.title.unwrap().digits().unwrap().to_string(), "6605550123");
        sent.push(received);
    }
    let mut test = Vec::new();
    Management {
        management_type: ManagementType::Sst,
        ssn: 8,
        point_code: PointCode(OWN),
        multiplicity: 0,
        congestion_level: 0,
    }
    .write(Format::Ansi, &mut test);
    one.send(&to_stp(
        11,
        1,
        &udt(&address(1, Some(OWN), None), &address(1, Some(1), None), &test),
    ));
    let received = one.expect(MessageType::Data);
    assert_eq!(parsed(&received).data, [1, 8, 100, 0, 0, 0]);
    sent.push(received);
    let file = folder.path().join("sent.pcap");
    std::fs::write(&file, capture(&sent)).unwrap();
    let fields = [
        "sccp.called.ssn",
        "sccp.calling.ansi_pc",
        "sccp.called.digits",
        "sccpmg.ssn",
        "sccpmg.pc",
    ];
    let mut arguments = vec![
        "-o",
        "mtp3.standard:ANSI",
        "-T",
        "fields",
        "-E",
        "separator=,",
        "-E",
        "occurrence=f",
    ];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    let Some(read) = tshark(&arguments, &file) else {
        return;
    };
    assert_eq!(
        read.lines().collect::<Vec<_>>(),
        ["6,0-0-1,6605550123,,", "6,0-0-1,6605550123,,", "1,0-0-100,,8,"]
    );
    let complaints = tshark(&["-o", "mtp3.standard:ANSI", "-Y", COMPLAINTS], &file).unwrap();
    assert_eq!(complaints, "");
}
