//! Where messages, answers and returns go, and what is counted when they do not.

use std::net::TcpListener;

use ss7_proto::PointCode;
use ss7_proto::m3ua::{MessageType, ServiceIndicator};
use ss7_proto::sccp::{
    self, AddressBuf, Format, GlobalTitleBuf, Management, ManagementType, ReturnCause, Unitdata,
};
use stp::config::{GroupMode, Link, LinkSet, Role, Route, Transport};

use crate::support::{
    Asp, OWN, address, aspac, config, data, isup, link, metric, msu, plain, server, start, until,
};
use crate::translation::{parsed, subsystem, title, to_stp, translating, udt, written};

/// A title that is routed by subsystem.
fn subsystem_title(code: Option<u32>) -> Vec<u8> {
    written(AddressBuf {
        point_code: code.map(PointCode),
        ssn: Some(8),
        title: Some(GlobalTitleBuf {
            indicator: 4,
            translation_type: 0,
            numbering_plan: 1,
            nature: 4,
            digits: ss7_proto::Digits::parse("43699").unwrap(),
        }),
        ..AddressBuf::default()
    })
}

/// Q.713 §3.12: the one node of a solitary group is unreachable, whatever others the group lists.
#[test]
fn a_solitary_group_fails_as_its_node_does() {
    let mut settings = translating();
    settings.translation.groups[0].mode = GroupMode::Solitary;
    let stp = start(settings);
    let at = stp.addresses()[0];
    let (mut one, mut three) = (Asp::active(at, 11, 11), Asp::active(at, 13, 13));
    let call = to_stp(11, 1, &udt(&title("43660", 6), &title("43699", 8), b""));
    let cause = |one: &mut Asp| {
        one.send(&call);
        parsed(&one.expect(MessageType::Data)).return_cause()
    };
    assert_eq!(cause(&mut one), Some(ReturnCause::MTP_FAILURE));
    let mut two = Asp::active(at, 12, 12);
    let mut content = Vec::new();
    Management {
        management_type: ManagementType::Ssp,
        ssn: 6,
        point_code: PointCode(2),
        multiplicity: 0,
        congestion_level: 0,
    }
    .write(Format::Itu, &mut content);
    two.send(&to_stp(
        12,
        2,
        &udt(&subsystem(1, Some(OWN)), &subsystem(1, Some(2)), &content),
    ));
    two.settle();
    assert_eq!(cause(&mut one), Some(ReturnCause::SUBSYSTEM_FAILURE));
    // A message that names the node itself meets the same.
    one.send(&to_stp(
        11,
        1,
        &udt(&subsystem(6, Some(2)), &title("43699", 8), b""),
    ));
    let returned = one.expect(MessageType::Data);
    assert_eq!(
        parsed(&returned).return_cause(),
        Some(ReturnCause::SUBSYSTEM_FAILURE)
    );
    let settled = kinds(&three.settle());
    assert!(!settled.contains(&MessageType::Data), "{settled:?}");
}

/// Q.714 §2.7.5.1: the origin changes here, so the calling party has to say it. Its title stays octet for octet.
#[test]
fn a_calling_party_with_a_title_gets_the_point_code_of_its_origin() {
    let stp = start(translating());
    let at = stp.addresses()[0];
    let (mut one, mut three) = (Asp::active(at, 11, 11), Asp::active(at, 13, 13));
    // Filler other than ours, and digits that cannot be read at all.
    let mut odd = subsystem_title(None);
    *odd.last_mut().unwrap() |= 0xf0;
    let unknown = vec![0x66, 8, 1, 2, 3];
    for calling in [subsystem_title(None), odd, unknown] {
        one.send(&to_stp(11, 1, &udt(&title("436601", 6), &calling, b"x")));
        let received = three.expect(MessageType::Data);
        let mut wanted = calling.clone();
        wanted[0] |= 1;
        wanted.splice(1..1, [1, 0]);
        assert_eq!(parsed(&received).calling, wanted);
    }
    // One that names a point code keeps it.
    one.send(&to_stp(
        11,
        1,
        &udt(&title("436601", 6), &subsystem_title(Some(9)), b"x"),
    ));
    assert_eq!(
        parsed(&three.expect(MessageType::Data)).calling,
        subsystem_title(Some(9))
    );
}

/// Q.714 §4.2: a service message goes to the calling party.
#[test]
fn what_returns_goes_to_the_point_code_of_the_calling_party() {
    let stp = start(translating());
    let at = stp.addresses()[0];
    let (mut one, mut three) = (Asp::active(at, 11, 11), Asp::active(at, 13, 13));
    let lost = title("4999", 6);
    for calling in [subsystem(8, Some(3)), subsystem_title(Some(3))] {
        one.send(&to_stp(11, 1, &udt(&lost, &calling, b"x")));
        let returned = three.expect(MessageType::Data);
        let label = data(&returned);
        assert_eq!((label.opc, label.dpc), (PointCode(OWN), PointCode(3)));
        assert_eq!(parsed(&returned).called, calling);
    }
    // Our own, one that is not routed, one that is unreachable, none: to the origin.
    for code in [Some(OWN), Some(999), Some(2), None] {
        one.send(&to_stp(11, 1, &udt(&lost, &subsystem(8, code), b"x")));
        let returned = one.expect(MessageType::Data);
        assert_eq!(data(&returned).dpc, PointCode(1), "{code:?}");
    }
}

/// The point code that is added takes the optional part of a long XUDT out of the reach of its pointer.
#[test]
fn a_long_xudt_keeps_its_optional_part() {
    let stp = start(translating());
    let at = stp.addresses()[0];
    let (mut one, mut three) = (Asp::active(at, 11, 11), Asp::active(at, 13, 13));
    let called = title("436601", 6);
    let optional = sccp::optional_part(None, Some(5));
    let send = |octets: &[u8]| to_stp(11, 1, octets);
    for length in 220..=255 {
        let text = vec![0x62; length];
        let calling = subsystem(8, None);
        let mut octets = Vec::new();
        Unitdata {
            message_type: sccp::MessageType::Xudt,
            class_or_cause: 0x80,
            hop_counter: 9,
            called: &called,
            calling: &calling,
            data: &text,
            optional: &optional,
        }
        .write(&mut octets)
        .unwrap();
        one.send(&send(&octets));
        let received = three.expect(MessageType::Data);
        let relayed = parsed(&received);
        assert_eq!(
            (relayed.message_type, relayed.data, relayed.importance()),
            (sccp::MessageType::Xudt, &text[..], Some(5))
        );
        assert_eq!(relayed.calling, subsystem(8, Some(1)));
    }
}

/// An IPSP is a node: what it sends to itself by way of this STP does not make it unreachable.
#[test]
fn a_node_is_not_notified_of_itself() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = config();
    settings.links.push(Link {
        name: "up".to_owned(),
        role: Role::Ipsp,
        transport: Transport::Tcp,
        peer: vec![address(1)],
        port: Some(listener.local_addr().unwrap().port()),
        connect: true,
    });
    for context in [77, 78] {
        settings.link_sets.push(LinkSet {
            name: format!("peer-{context}"),
            routing_context: Some(context),
            links: vec!["up".to_owned()],
            ..LinkSet::default()
        });
    }
    settings.routes = vec![Route {
        destination: "50".to_owned(),
        via: "peer-77".to_owned(),
        priority: 0,
    }];
    let stp = start(settings);
    let mut peer = Asp::over(listener.accept().unwrap().0);
    peer.up();
    for context in [77, 78] {
        peer.send(&aspac(context));
        peer.expect(MessageType::AspacAck);
    }
    peer.send(&plain(MessageType::AspupAck));
    peer.settle();
    peer.send(&isup(77, 51, 50, 0, b"circle"));
    assert_eq!(kinds(&peer.settle()), []);
    // Its context 77 ends: 50 is unreachable, which the peer knows of itself.
    let mut out = Vec::new();
    let mut builder = ss7_proto::m3ua::Builder::new(MessageType::Aspia, &mut out);
    builder.word(ss7_proto::m3ua::Tag::ROUTING_CONTEXT, 77);
    builder.finish();
    peer.send(&out);
    peer.expect(MessageType::AspiaAck);
    peer.send(&isup(78, 51, 50, 0, b"own"));
    assert_eq!(kinds(&peer.settle()), []);
    assert_eq!(
        metric(&stp, "signalbox_stp_undelivered_messages_total{why=\"loop\"}"),
        1.0
    );
    // Others are notified.
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    one.send(&isup(11, 1, 50, 0, b"x"));
    one.expect(MessageType::Duna);
    peer.send(&isup(78, 51, 2, 0, b"x"));
    peer.expect(MessageType::Duna);
}

fn kinds(messages: &[Vec<u8>]) -> Vec<MessageType> {
    let kinds = messages
        .iter()
        .map(|octets| ss7_proto::m3ua::Message::parse(octets).unwrap().message_type());
    kinds
        .filter(|kind| !matches!(kind, MessageType::Ntfy | MessageType::Aspac | MessageType::Aspup))
        .collect()
}

/// Each message is written or lost, and counted as one of the two.
#[test]
fn what_is_queued_when_an_association_ends_is_lost_and_not_sent() {
    let mut settings = config();
    settings.queue = 64;
    settings.links.push(link("c", 13));
    settings.application_servers.push(server("three", 13, 3, &["c"]));
    let stp = start(settings);
    let at = stp.addresses()[0];
    let mut one = Asp::active(at, 11, 11);
    let count = |name: &str| metric(&stp, name);
    let lost = |why: &str| {
        count(&format!(
            "signalbox_stp_undelivered_messages_total{{why=\"{why}\"}}"
        ))
    };
    let sent = || count("signalbox_stp_sent_messages_total{link=\"b\"}");
    let octets = msu(11, 1, 2, 0, ServiceIndicator::ISUP, &[7; 4_000]);
    // A peer reads nothing, until its sockets and its queue are full, and goes.
    until("messages are lost", || {
        let two = Asp::active(at, 12, 12);
        loop {
            let before = sent();
            one.send(&octets.repeat(300));
            one.settle();
            if sent() == before {
                break;
            }
        }
        drop(two);
        until("the association has ended", || {
            count("signalbox_stp_link_available{link=\"b\"}") == 0.0
        });
        lost("association") > 0.0
    });
    let received = || count("signalbox_stp_received_messages_total{link=\"a\"}");
    let others = || lost("congested") + lost("recovery") + lost("unreachable");
    until("all is accounted for", || {
        received() == sent() + lost("association") + others()
    });
    assert!(received() > sent());
}
