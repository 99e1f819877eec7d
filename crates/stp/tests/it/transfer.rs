//! Routing by point code between application servers.

use std::collections::HashSet;

use ss7_proto::PointCode;
use ss7_proto::m3ua::{AffectedPointCode, Message, MessageType, Status, Tag, TrafficMode};
use stp::config::{Route, Traffic};

use crate::support::{Asp, OWN, config, data, isup, link, metric, plain, server, start, until, with_word};

#[test]
fn data_goes_from_one_application_server_to_the_other_and_back() {
    let stp = start(config());
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    for sls in 0..16 {
        one.send(&isup(11, 1, 2, sls, b"to two"));
        let received = two.expect(MessageType::Data);
        let msu = data(&received);
        assert_eq!(
            (msu.routing_context, msu.opc, msu.dpc, msu.sls),
            (Some(12), PointCode(1), PointCode(2), sls)
        );
        assert_eq!(msu.user_data, b"to two");
    }
    two.send(&isup(12, 2, 1, 3, b"back"));
    assert_eq!(data(&one.expect(MessageType::Data)).user_data, b"back");
    assert_eq!(
        metric(&stp, "signalbox_stp_received_messages_total{link=\"a\"}"),
        16.0
    );
    assert_eq!(
        metric(&stp, "signalbox_stp_egress_messages_total{hop=\"two\"}"),
        16.0
    );
    assert_eq!(
        metric(&stp, "signalbox_stp_destination_available{destination=\"0-0-2\"}"),
        1.0
    );
    stp.stop().unwrap();
}

#[test]
fn order_holds_for_each_link_selection_between_workers() {
    let stp = start(config());
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let count = 2_000_u32;
    let all: Vec<u8> = (0..count)
        .flat_map(|n| isup(11, 1, 2, (n % 16) as u8, &n.to_be_bytes()))
        .collect();
    one.send(&all);
    for n in 0..count {
        let received = two.expect(MessageType::Data);
        assert_eq!(data(&received).user_data, n.to_be_bytes());
    }
}

#[test]
fn a_destination_without_an_asp_is_reported_and_audited() {
    let stp = start(config());
    let at = stp.addresses()[0];
    let mut one = Asp::active(at, 11, 11);
    one.send(&isup(11, 1, 2, 0, b"x"));
    let duna = one.expect(MessageType::Duna);
    assert_eq!(affected(&duna), [2]);
    // The second one within a second is not reported again.
    one.send(&isup(11, 1, 2, 0, b"x"));
    assert_eq!(one.settle(), Vec::<Vec<u8>>::new());
    assert_eq!(
        metric(
            &stp,
            "signalbox_stp_undelivered_messages_total{why=\"unreachable\"}"
        ),
        2.0
    );
    let two = Asp::active(at, 12, 12);
    assert_eq!(affected(&one.expect(MessageType::Dava)), [2]);
    // DAUD: of one code, of an unknown one, of our own, of all.
    for (number, kind) in [
        (2, MessageType::Dava),
        (999, MessageType::Duna),
        (OWN, MessageType::Dava),
    ] {
        one.send(&with_word(MessageType::Daud, Tag::AFFECTED_POINT_CODE, number));
        assert_eq!(affected(&one.expect(kind)), [number]);
    }
    one.send(&with_word(MessageType::Daud, Tag::AFFECTED_POINT_CODE, 14 << 24));
    assert_eq!(affected(&one.expect(MessageType::Dava)), [1, 2]);
    drop(two);
    let duna = one.expect(MessageType::Duna);
    assert_eq!(affected(&duna), [2]);
    let alarms = stp.handle().alarms();
    until("the alarms", || {
        let mut numbers: Vec<u32> = alarms.active().iter().map(|alarm| alarm.number).collect();
        numbers.sort_unstable();
        numbers == [10570, 10571, 10572]
    });
}

pub(crate) fn affected(octets: &[u8]) -> Vec<u32> {
    let message = Message::parse(octets).unwrap();
    let codes = AffectedPointCode::list(message.get(Tag::AFFECTED_POINT_CODE).unwrap());
    codes.map(|code| code.code.0).collect()
}

#[test]
fn a_second_asp_takes_over_without_loss_in_override() {
    let mut settings = config();
    settings.links.push(link("b2", 13));
    settings.application_servers[1] = server("two", 12, 2, &["b", "b2"]);
    settings.application_servers[1].traffic_mode = Traffic::Override;
    settings.application_servers[1].recovery = settings::Period::from_secs(60);
    let stp = start(settings);
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    one.send(&isup(11, 1, 2, 0, b"first"));
    assert_eq!(data(&two.expect(MessageType::Data)).user_data, b"first");
    let mut other = Asp::active(at, 13, 12);
    let notified = two.expect(MessageType::Ntfy);
    let status = Message::parse(&notified)
        .unwrap()
        .word(Tag::STATUS)
        .map(Status::from_number);
    assert_eq!(status, Some(Status::AlternateAspActive));
    one.send(&isup(11, 1, 2, 0, b"second"));
    assert_eq!(data(&other.expect(MessageType::Data)).user_data, b"second");
    // The first one stands by: that is not a fault.
    let alarms = stp.handle().alarms();
    until("no alarm", || alarms.active().is_empty());
    // The second one fails: what comes is queued until the first one is active again, and leaves behind the acknowledgement.
    drop(other);
    let notified = two.expect(MessageType::Ntfy);
    assert!(Message::parse(&notified).is_ok());
    until("pending", || {
        metric(&stp, "signalbox_stp_hop_available{hop=\"two\"}") == 0.0
    });
    for n in 0..5 {
        one.send(&isup(11, 1, 2, 0, &[n]));
    }
    let before = one.settle();
    let kinds = before
        .iter()
        .map(|octets| Message::parse(octets).unwrap().message_type());
    assert!(
        kinds.clone().all(|kind| kind != MessageType::Duna),
        "a pending destination is not unreachable"
    );
    two.send(&crate::support::aspac(12));
    let kinds: Vec<MessageType> = (0..6)
        .map(|_| two.next().unwrap())
        .map(|octets| Message::parse(&octets).unwrap().message_type())
        .collect();
    assert_eq!(kinds[0], MessageType::AspacAck);
    assert!(
        kinds[1..].iter().all(|kind| *kind == MessageType::Data),
        "{kinds:?}"
    );
}

#[test]
fn load_is_shared_by_link_selection_and_broadcast_reaches_each() {
    for mode in [Traffic::Loadshare, Traffic::Broadcast] {
        let mut settings = config();
        settings.links.push(link("b2", 13));
        settings.application_servers[1] = server("two", 12, 2, &["b", "b2"]);
        settings.application_servers[1].traffic_mode = mode;
        let stp = start(settings);
        let at = stp.addresses()[0];
        let (mut one, mut two, mut other) = (
            Asp::active(at, 11, 11),
            Asp::active(at, 12, 12),
            Asp::active(at, 13, 12),
        );
        for sls in 0..16 {
            one.send(&isup(11, 1, 2, sls, &[sls]));
        }
        one.settle();
        let received = |asp: &mut Asp, count: usize| -> Vec<(u8, Option<u32>)> {
            let next = |_| {
                let octets = asp.expect(MessageType::Data);
                let data = data(&octets);
                (data.sls, data.correlation_id)
            };
            (0..count).map(next).collect()
        };
        let each = if mode == Traffic::Broadcast { 16 } else { 8 };
        let (first, second) = (received(&mut two, each), received(&mut other, each));
        let even = |(sls, _): &(u8, Option<u32>)| sls.is_multiple_of(2);
        let identifiers: HashSet<u32> = first.iter().filter_map(|(_, id)| *id).collect();
        if mode == Traffic::Broadcast {
            // Both know an MSU by one identifier (RFC 4666 §4.3.4.3).
            assert_eq!(first, second);
            assert_eq!(identifiers.len(), first.len());
        } else {
            assert!(identifiers.is_empty());
            assert!(
                first.iter().all(even) && !second.iter().any(even),
                "{first:?} {second:?}"
            );
        }
    }
    assert_eq!(TrafficMode::ALL.len(), 3);
}

#[test]
fn routes_have_priorities_clusters_and_change_beside_the_traffic() {
    let mut settings = config();
    settings.links.push(link("c", 13));
    settings.application_servers.push(server("three", 13, 3, &["c"]));
    settings.routes = vec![
        Route {
            destination: "800/3".to_owned(),
            via: "two".to_owned(),
            priority: 0,
        },
        Route {
            destination: "800/3".to_owned(),
            via: "three".to_owned(),
            priority: 1,
        },
        Route {
            destination: "803".to_owned(),
            via: "three".to_owned(),
            priority: 0,
        },
    ];
    let stp = start(settings.clone());
    let at = stp.addresses()[0];
    let mut one = Asp::active(at, 11, 11);
    let mut three = Asp::active(at, 13, 13);
    // The first choice is not active.
    one.send(&isup(11, 1, 801, 0, b"1"));
    assert_eq!(data(&three.expect(MessageType::Data)).user_data, b"1");
    let mut two = Asp::active(at, 12, 12);
    one.send(&isup(11, 1, 801, 0, b"2"));
    assert_eq!(data(&two.expect(MessageType::Data)).user_data, b"2");
    one.send(&isup(11, 1, 803, 0, b"3"));
    assert_eq!(data(&three.expect(MessageType::Data)).user_data, b"3");
    // Beside the traffic the cluster moves to `three`; nothing is lost, and no message is sent twice.
    let count = 1_000_u32;
    let sender = std::thread::spawn(move || {
        for n in 0..count {
            one.send(&isup(11, 1, 801, 0, &n.to_be_bytes()));
        }
        one
    });
    settings.routes.remove(0);
    stp.reload(&settings).unwrap();
    let mut one = sender.join().unwrap();
    one.settle();
    one.send(&isup(11, 1, 801, 0, b"last"));
    one.send(&isup(11, 1, 2, 0, b"last"));
    let mut numbers = Vec::new();
    for asp in [&mut two, &mut three] {
        loop {
            let received = asp.expect(MessageType::Data);
            match data(&received).user_data {
                b"last" => break,
                number => numbers.push(u32::from_be_bytes(number.try_into().unwrap())),
            }
        }
    }
    assert_eq!(numbers, (0..count).collect::<Vec<u32>>());
    // Links are not for a reload: a route to a set that is not there is refused, and all stays.
    settings.routes[0].via = "nowhere".to_owned();
    assert!(stp.reload(&settings).unwrap_err().contains("routes[0].via"));
}

#[test]
fn a_peer_that_connects_again_replaces_its_former_connection() {
    let stp = start(config());
    let at = stp.addresses()[0];
    let mut former = Asp::active(at, 11, 11);
    let mut one = Asp::active(at, 11, 11);
    assert_eq!(former.next(), None);
    let mut two = Asp::active(at, 12, 12);
    one.send(&isup(11, 1, 2, 0, b"again"));
    assert_eq!(data(&two.expect(MessageType::Data)).user_data, b"again");
    one.send(&plain(MessageType::Aspdn));
    one.expect(MessageType::AspdnAck);
    two.send(&isup(12, 2, 1, 0, b"x"));
    two.expect(MessageType::Duna);
}
