//! What peers send and should not.

use std::collections::HashSet;

use ss7_proto::m3ua::{
    AffectedPointCode, Builder, ErrorCode, Message, MessageType, RegistrationResult, ServiceIndicator, Tag,
};
use stp::Config;
use stp::config::Route;

use crate::support::{Asp, config, data, isup, metric, msu, plain, start, until};

fn error(octets: &[u8]) -> Option<ErrorCode> {
    let message = Message::parse(octets).unwrap();
    assert_eq!(message.message_type(), MessageType::Err);
    message.word(Tag::ERROR_CODE).and_then(ErrorCode::from_number)
}

/// The octets of M3UA have room for more than MTP has; another node would make something else of it.
#[test]
fn indicators_beyond_their_bits_go_nowhere() {
    let stp = start(config());
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    one.send(&msu(11, 1, 2, 0, ServiceIndicator(0x15), b"wide"));
    one.send(&isup(11, 1, 2, 0, b"right"));
    assert_eq!(data(&two.expect(MessageType::Data)).user_data, b"right");
}

#[test]
fn data_before_active_and_of_a_foreign_routing_context_are_refused() {
    let stp = start(config());
    let at = stp.addresses()[0];
    let mut two = Asp::active(at, 12, 12);
    let mut one = Asp::connect(at, 11);
    one.send(&isup(11, 1, 2, 0, b"too early"));
    assert_eq!(
        error(&one.expect(MessageType::Err)),
        Some(ErrorCode::UnexpectedMessage)
    );
    one.up();
    one.send(&isup(11, 1, 2, 0, b"too early"));
    assert_eq!(
        error(&one.expect(MessageType::Err)),
        Some(ErrorCode::UnexpectedMessage)
    );
    one.send(&crate::support::aspac(11));
    one.expect(MessageType::AspacAck);
    // That of the other application server.
    one.send(&isup(12, 1, 2, 0, b"foreign"));
    let refused = one.expect(MessageType::Err);
    assert_eq!(error(&refused), Some(ErrorCode::InvalidRoutingContext));
    assert_eq!(
        Message::parse(&refused).unwrap().routing_contexts().next(),
        Some(12)
    );
    one.send(&isup(11, 1, 2, 0, b"good"));
    assert_eq!(data(&two.expect(MessageType::Data)).user_data, b"good");
    // Our own origin comes back: a loop. A user that we do not have: DUPU.
    one.send(&isup(11, crate::support::OWN, 2, 0, b"loop"));
    one.send(&isup(11, 1, crate::support::OWN, 0, b"call"));
    one.expect(MessageType::Dupu);
    assert_eq!(
        metric(&stp, "signalbox_stp_undelivered_messages_total{why=\"loop\"}"),
        1.0
    );
}

#[test]
fn lengths_that_lie_and_other_protocols_end_their_connection_alone() {
    let stp = start(config());
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let mut inner = isup(11, 1, 2, 0, b"12345678");
    // The length of Protocol Data exceeds the message: refused, and the stream goes on.
    let place = inner.len() - 22;
    inner[place] = 0xff;
    one.send(&inner);
    assert_eq!(
        error(&one.expect(MessageType::Err)),
        Some(ErrorCode::ParameterFieldError)
    );
    one.send(&isup(11, 1, 2, 0, b"good"));
    assert_eq!(data(&two.expect(MessageType::Data)).user_data, b"good");
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[1, 0, 1, 1, 0, 0, 0, 3],
        &[1, 0, 1, 1, 0xff, 0, 0, 0],
    ] {
        let mut peer = Asp::connect(at, 11);
        peer.send(bytes);
        assert!(error(&peer.expect(MessageType::Err)).is_some());
        assert_eq!(peer.any(), None);
    }
    assert_eq!(
        metric(&stp, "signalbox_stp_connections_total{outcome=\"broken\"}"),
        3.0
    );
    two.settle();
}

#[test]
fn ten_thousand_registrations_change_nothing() {
    let stp = start(config());
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let mut all = Vec::new();
    for n in 0..10_000_u32 {
        let mut builder = Builder::new(MessageType::RegReq, &mut all);
        builder.group(Tag::ROUTING_KEY, |key| {
            // Our own point code is provisioned, others are not.
            let code = if n == 0 { 1 } else { n % 16_384 };
            key.word(Tag::LOCAL_ROUTING_KEY_IDENTIFIER, n)
                .word(Tag::DESTINATION_POINT_CODE, code);
        });
        builder.finish();
    }
    let mut writer = one.stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || std::io::Write::write_all(&mut writer, &all).unwrap());
    let mut results = Vec::new();
    for _ in 0..10_000 {
        let answer = one.expect(MessageType::RegRsp);
        let message = Message::parse(&answer).unwrap();
        results.push(RegistrationResult::read(
            message.get(Tag::REGISTRATION_RESULT).unwrap(),
        ));
    }
    sender.join().unwrap();
    let registered: Vec<_> = results.iter().filter(|one| one.status == 0).collect();
    assert_eq!(
        registered.len(),
        2,
        "of n 0 and 1: the point code of the peer itself"
    );
    assert!(registered.iter().all(|one| one.routing_context == 11));
    one.send(&isup(11, 1, 2, 0, b"good"));
    assert_eq!(data(&two.expect(MessageType::Data)).user_data, b"good");
}

/// The padding of the last parameter may be missing (RFC 4666 §3.1.4); a class and a type that do not exist are refused by their name.
#[test]
fn padding_may_be_missing_and_unknown_messages_are_refused() {
    let stp = start(config());
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let padded = isup(11, 1, 2, 0, b"12345");
    let mut uncounted = padded.clone();
    uncounted.truncate(padded.len() - 3);
    uncounted[7] -= 3;
    let mut counted = padded.clone();
    counted[7] -= 3;
    for octets in [&uncounted, &padded, &counted, &uncounted] {
        one.send(octets);
    }
    for _ in 0..4 {
        assert_eq!(data(&two.expect(MessageType::Data)).user_data, b"12345");
    }
    for (class, kind, code) in [
        (10, 1, ErrorCode::UnsupportedMessageClass),
        (255, 255, ErrorCode::UnsupportedMessageClass),
        (1, 2, ErrorCode::UnsupportedMessageType),
        (2, 7, ErrorCode::UnsupportedMessageType),
    ] {
        one.send(&[1, 0, class, kind, 0, 0, 0, 8]);
        assert_eq!(error(&one.expect(MessageType::Err)), Some(code));
    }
    // ERR is not answered, whatever is in it.
    one.send(&[1, 0, 0, 0, 0, 0, 0, 8]);
    one.send(&isup(11, 1, 2, 0, b"good"));
    let is_error = |octets: &Vec<u8>| Message::parse(octets).unwrap().message_type() == MessageType::Err;
    assert!(!one.settle().iter().any(is_error));
    assert_eq!(data(&two.expect(MessageType::Data)).user_data, b"good");
}

/// M3UA over TCP has room for 16,384 octets; an MSU of that length would end the association of the node that it is for.
#[test]
fn user_data_that_no_msu_carries_go_nowhere() {
    let stp = start(config());
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    for length in [16_344, 4_088, 4_087] {
        one.send(&isup(11, 1, 2, 0, &vec![7; length]));
    }
    assert_eq!(data(&two.expect(MessageType::Data)).user_data.len(), 4_087);
    let dropped = "signalbox_stp_undelivered_messages_total{why=\"encoding\"}";
    assert_eq!(metric(&stp, dropped), 2.0);
}

/// Two application servers, of which the second serves a thousand point codes more.
fn with_many_destinations() -> Config {
    let mut settings = config();
    let route = |code: u32| Route {
        destination: code.to_string(),
        via: "two".to_owned(),
        priority: 0,
    };
    settings.routes = (1_000..2_000).map(route).collect();
    settings
}

/// Masks that contain one another, thousands of them: the answer has each destination once, the widest first.
#[test]
fn an_audit_of_thousands_of_masks_names_each_destination_once() {
    let stp = start(with_many_destinations());
    let at = stp.addresses()[0];
    let (mut one, _two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    let masks: Vec<u32> = (0..4_000)
        .map(|at| ((1 + at % 255) << 24) | (at % 16_384))
        .collect();
    let mut audit = Vec::new();
    let mut builder = Builder::new(MessageType::Daud, &mut audit);
    builder.words(Tag::AFFECTED_POINT_CODE, &masks);
    builder.finish();
    let named = |one: &mut Asp, count| {
        let mut named = HashSet::new();
        while named.len() < count {
            let octets = one.expect(MessageType::Dava);
            let message = Message::parse(&octets).unwrap();
            for code in AffectedPointCode::list(message.get(Tag::AFFECTED_POINT_CODE).unwrap()) {
                assert!(named.insert(code), "twice: {code:?}");
            }
        }
    };
    // What the other one serves has become available.
    named(&mut one, 1_001);
    one.send(&audit);
    // Its own point code is as well.
    named(&mut one, 1_002);
    assert_eq!(one.settle(), Vec::<Vec<u8>>::new());
}

/// The first link sends `all`; the second of the same worker is served before that is handled.
fn leaves_others_their_turn(settings: Config, all: Vec<u8>) -> Asp {
    let settings = Config {
        workers: 1,
        ..settings
    };
    let stp = start(settings);
    let at = stp.addresses()[0];
    let (mut flood, mut two) = (Asp::connect(at, 11), Asp::active(at, 12, 12));
    flood.up();
    let handled = || metric(&stp, "signalbox_stp_received_bytes_total{link=\"a\"}");
    let before = handled();
    let end = before + all.len() as f64;
    let sender = std::thread::spawn(move || {
        flood.send(&all);
        flood
    });
    let mut turns = 0;
    while handled() < end {
        two.settle();
        turns += u32::from((before + 1.0..end).contains(&handled()));
    }
    // A few may come before the flood fills the buffers.
    assert!(turns > 4, "the other link had {turns} turns");
    sender.join().unwrap()
}

/// Each of these requests makes the control side work out all destinations. Other links of the worker have their turn between.
#[test]
fn a_flood_of_requests_leaves_other_links_their_turn() {
    const REQUESTS: usize = 1_000;
    let all = plain(MessageType::Aspup).repeat(REQUESTS);
    let mut flood = leaves_others_their_turn(with_many_destinations(), all);
    for _ in 0..REQUESTS {
        flood.expect(MessageType::AspupAck);
    }
}

/// What costs nothing but the reading leaves them their turn too, when it never ends.
#[test]
fn a_flood_of_any_messages_leaves_other_links_their_turn() {
    leaves_others_their_turn(config(), plain(MessageType::BeatAck).repeat(1 << 20));
}

#[test]
fn an_unknown_peer_gets_nothing() {
    let stp = start(config());
    let mut stranger = Asp::connect(stp.addresses()[0], 99);
    assert_eq!(stranger.any(), None);
    assert_eq!(
        metric(&stp, "signalbox_stp_connections_total{outcome=\"refused\"}"),
        1.0
    );
}

#[test]
fn a_silent_peer_gets_a_heartbeat_and_loses_its_association() {
    let mut settings = config();
    // As long as it takes to answer on a busy machine.
    settings.heartbeat = settings::Period::from_secs(3);
    let stp = start(settings);
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    one.expect(MessageType::Beat);
    one.send(&plain(MessageType::BeatAck));
    one.expect(MessageType::Beat);
    while one.any().is_some() {}
    until("silent is counted", || {
        metric(&stp, "signalbox_stp_connections_total{outcome=\"silent\"}") == 1.0
    });
}

#[test]
fn a_peer_that_does_not_read_costs_its_own_messages_only() {
    let mut settings = config();
    settings.queue = 64;
    settings.links.push(crate::support::link("c", 13));
    settings
        .application_servers
        .push(crate::support::server("three", 13, 3, &["c"]));
    let stp = start(settings);
    let at = stp.addresses()[0];
    let (mut one, _two, mut three) = (
        Asp::active(at, 11, 11),
        Asp::active(at, 12, 12),
        Asp::active(at, 13, 13),
    );
    // `two` reads nothing: first the sockets are full, then the queue.
    let octets = isup(11, 1, 2, 0, &[7; 4_000]);
    let congested = || {
        metric(
            &stp,
            "signalbox_stp_undelivered_messages_total{why=\"congested\"}",
        )
    };
    until("the queue is full", || {
        one.send(&octets.repeat(100));
        congested() > 0.0
    });
    one.expect(MessageType::Scon);
    one.send(&isup(11, 1, 3, 0, b"good"));
    assert_eq!(data(&three.expect(MessageType::Data)).user_data, b"good");
}
