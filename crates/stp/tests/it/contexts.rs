//! Routing contexts and network appearances: what is wrong with some of them leaves the others in effect.

use std::net::TcpListener;

use ss7_proto::m3ua::{AffectedPointCode, Builder, ErrorCode, Message, MessageType, RegistrationResult, Tag};
use stp::config::{Link, LinkSet, Role, Route, Transport};

use crate::support::{Asp, address, config, data, isup, metric, plain, server, start};

/// A message with routing contexts and further words.
fn with(kind: MessageType, contexts: &[u32], words: &[(Tag, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut builder = Builder::new(kind, &mut out);
    for (tag, word) in words.iter().filter(|(tag, _)| *tag == Tag::NETWORK_APPEARANCE) {
        builder.word(*tag, *word);
    }
    if !contexts.is_empty() {
        builder.words(Tag::ROUTING_CONTEXT, contexts);
    }
    for (tag, word) in words.iter().filter(|(tag, _)| *tag != Tag::NETWORK_APPEARANCE) {
        builder.word(*tag, *word);
    }
    builder.finish();
    out
}

/// REG REQ for one key with these parameters.
fn registration(words: &[(Tag, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut builder = Builder::new(MessageType::RegReq, &mut out);
    builder.group(Tag::ROUTING_KEY, |key| {
        key.word(Tag::LOCAL_ROUTING_KEY_IDENTIFIER, 1);
        for (tag, word) in words {
            key.word(*tag, *word);
        }
    });
    builder.finish();
    out
}

/// Type, error code and routing contexts of a message.
type Answer = (MessageType, Option<ErrorCode>, Vec<u32>);

/// The next messages but NTFY; ERR last, since it does not take the queue that answers may take.
fn answers(asp: &mut Asp, count: usize) -> Vec<Answer> {
    let next = (0..count).map(|_| {
        let octets = asp.next().unwrap();
        let message = Message::parse(&octets).unwrap();
        let code = message.word(Tag::ERROR_CODE).and_then(ErrorCode::from_number);
        let contexts = message.routing_contexts().collect();
        (message.message_type(), code, contexts)
    });
    let mut all: Vec<Answer> = next.collect();
    all.sort_by_key(|(kind, ..)| *kind == MessageType::Err);
    all
}

fn refused(stp: &stp::Running, error: &str) -> f64 {
    metric(
        stp,
        &format!("signalbox_stp_refused_messages_total{{error=\"{error}\"}}"),
    )
}

/// RFC 4666 §4.3.4.3, §3.8.1.
#[test]
fn an_aspac_activates_what_is_right_and_errs_by_kind() {
    let mut settings = config();
    settings.application_servers.push(server("more", 13, 3, &["a"]));
    settings.application_servers.push(server("over", 14, 4, &["a"]));
    settings.application_servers[3].traffic_mode = stp::config::Traffic::Override;
    let stp = start(settings);
    let at = stp.addresses()[0];
    let (mut one, mut two) = (Asp::connect(at, 11), Asp::active(at, 12, 12));
    one.up();
    one.settle();
    // 12 is that of another peer, 99 of none.
    let share = (Tag::TRAFFIC_MODE_TYPE, 2);
    one.send(&with(MessageType::Aspac, &[99, 13, 14, 12], &[share]));
    assert_eq!(
        answers(&mut one, 3),
        [
            (MessageType::AspacAck, None, vec![13]),
            (
                MessageType::Err,
                Some(ErrorCode::InvalidRoutingContext),
                vec![99, 12]
            ),
            (
                MessageType::Err,
                Some(ErrorCode::UnsupportedTrafficModeType),
                vec![14]
            ),
        ]
    );
    assert_eq!(
        (
            refused(&stp, "Invalid Routing Context"),
            refused(&stp, "Unsupported Traffic Mode Type")
        ),
        (1.0, 1.0)
    );
    one.send(&isup(13, 3, 2, 0, b"good"));
    assert_eq!(data(&two.expect(MessageType::Data)).user_data, b"good");
    one.send(&isup(11, 1, 2, 0, b"not active"));
    assert_eq!(answers(&mut one, 1)[0].1, Some(ErrorCode::UnexpectedMessage));
    one.send(&with(MessageType::Aspia, &[13, 99], &[]));
    assert_eq!(
        answers(&mut one, 2),
        [
            (MessageType::AspiaAck, None, vec![13]),
            (MessageType::Err, Some(ErrorCode::InvalidRoutingContext), vec![99]),
        ]
    );
    assert_eq!(refused(&stp, "Invalid Routing Context"), 2.0);
}

#[test]
fn audits_and_reports_are_for_contexts_of_the_peer() {
    let mut settings = config();
    settings.application_servers.push(server("more", 13, 3, &["a"]));
    let stp = start(settings);
    let at = stp.addresses()[0];
    let (mut one, _two) = (Asp::active(at, 11, 11), Asp::active(at, 12, 12));
    one.expect(MessageType::Dava);
    let two = (Tag::AFFECTED_POINT_CODE, 2);
    let unexpected = Some(ErrorCode::UnexpectedMessage);
    let invalid = Some(ErrorCode::InvalidRoutingContext);
    for (contexts, wanted) in [
        (&[11][..], vec![(MessageType::Dava, None, vec![11])]),
        (&[], vec![(MessageType::Dava, None, vec![11])]),
        (&[12], vec![(MessageType::Err, invalid, vec![12])]),
        (&[13], vec![(MessageType::Err, unexpected, vec![13])]),
        (
            &[99, 11, 13],
            vec![
                (MessageType::Dava, None, vec![11]),
                (MessageType::Err, invalid, vec![99]),
                (MessageType::Err, unexpected, vec![13]),
            ],
        ),
    ] {
        one.send(&with(MessageType::Daud, contexts, &[two]));
        assert_eq!(answers(&mut one, wanted.len()), wanted, "{contexts:?}");
    }
    one.send(&with(MessageType::Scon, &[99], &[two]));
    assert_eq!(answers(&mut one, 1), [(MessageType::Err, invalid, vec![99])]);
}

/// A gateway that serves two link sets of one link: what it says of one is not said of the other.
#[test]
fn a_gateway_bars_destinations_by_context() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = config();
    settings.links.push(Link {
        name: "up".to_owned(),
        role: Role::Asp,
        transport: Transport::Tcp,
        peer: vec![address(1)],
        port: Some(listener.local_addr().unwrap().port()),
        connect: true,
    });
    for context in [77, 78] {
        settings.link_sets.push(LinkSet {
            name: format!("gateway-{context}"),
            routing_context: Some(context),
            links: vec!["up".to_owned()],
            ..LinkSet::default()
        });
        settings.routes.push(Route {
            destination: (context - 27).to_string(),
            via: format!("gateway-{context}"),
            priority: 0,
        });
    }
    let stp = start(settings);
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    let mut gateway = Asp::over(listener.accept().unwrap().0);
    gateway.expect(MessageType::Aspup);
    gateway.send(&plain(MessageType::AspupAck));
    gateway.expect(MessageType::Aspac);
    let active = |codes: &[u8]| {
        let codes = AffectedPointCode::list(codes);
        codes.map(|code| code.code.0).collect::<Vec<u32>>()
    };
    let next = |one: &mut Asp, kind| {
        let octets = one.expect(kind);
        active(
            Message::parse(&octets)
                .unwrap()
                .get(Tag::AFFECTED_POINT_CODE)
                .unwrap(),
        )
    };
    // It grants one context, refuses nothing, then grants the other.
    gateway.send(&with(MessageType::AspacAck, &[78], &[]));
    assert_eq!(next(&mut one, MessageType::Dava), [51]);
    gateway.send(&with(MessageType::AspacAck, &[77], &[]));
    assert_eq!(next(&mut one, MessageType::Dava), [50]);
    let all = (Tag::AFFECTED_POINT_CODE, 14 << 24);
    gateway.send(&with(MessageType::Duna, &[77], &[all]));
    assert_eq!(next(&mut one, MessageType::Duna), [50]);
    gateway.send(&with(MessageType::Duna, &[99], &[all]));
    let refusal = gateway.expect(MessageType::Err);
    let contexts = Message::parse(&refusal).unwrap().routing_contexts();
    assert_eq!(contexts.collect::<Vec<_>>(), [99]);
    one.send(&isup(11, 1, 51, 0, b"still"));
    assert_eq!(data(&gateway.expect(MessageType::Data)).routing_context, Some(78));
}

/// RFC 4666 §3.8.1: the invalid network appearance stands in ERR.
#[test]
fn a_foreign_network_is_refused_by_its_number() {
    let mut settings = config();
    settings.network_appearance = Some(7);
    let stp = start(settings);
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    let mut label = Vec::new();
    let octets = isup(11, 1, 2, 0, b"x");
    ss7_proto::m3ua::Data {
        network_appearance: Some(8),
        ..data(&octets)
    }
    .write(&mut label);
    let audit = with(
        MessageType::Daud,
        &[11],
        &[(Tag::NETWORK_APPEARANCE, 9), (Tag::AFFECTED_POINT_CODE, 2)],
    );
    for (octets, appearance) in [(label, 8), (audit, 9)] {
        one.send(&octets);
        let refusal = one.expect(MessageType::Err);
        let message = Message::parse(&refusal).unwrap();
        assert_eq!(
            (
                message.word(Tag::ERROR_CODE),
                message.word(Tag::NETWORK_APPEARANCE)
            ),
            (Some(ErrorCode::InvalidNetworkAppearance as u32), Some(appearance))
        );
    }
    let register = registration(&[(Tag::NETWORK_APPEARANCE, 8), (Tag::DESTINATION_POINT_CODE, 1)]);
    one.send(&register);
    let answer = one.expect(MessageType::RegRsp);
    let result = Message::parse(&answer).unwrap();
    let result = RegistrationResult::read(result.get(Tag::REGISTRATION_RESULT).unwrap());
    assert_eq!(result.status, 3, "invalid network appearance");
}

/// RFC 4666 §3.3.1, §3.6.2, §3.8.1: one routing context of DATA, no network that is not configured, one destination of a key.
#[test]
fn what_settings_cannot_mean_is_refused() {
    let stp = start(config());
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    let octets = isup(11, 1, 2, 0, b"x");
    let mut foreign = Vec::new();
    ss7_proto::m3ua::Data {
        network_appearance: Some(8),
        ..data(&octets)
    }
    .write(&mut foreign);
    let mut several = Vec::new();
    let mut builder = Builder::new(MessageType::Data, &mut several);
    builder.words(Tag::ROUTING_CONTEXT, &[11, 12]);
    let message = Message::parse(&octets).unwrap();
    builder.parameter(Tag::PROTOCOL_DATA, message.get(Tag::PROTOCOL_DATA).unwrap());
    builder.finish();
    for (octets, code) in [
        (foreign, ErrorCode::InvalidNetworkAppearance),
        (several, ErrorCode::ParameterFieldError),
    ] {
        one.send(&octets);
        let refusal = one.expect(MessageType::Err);
        let message = Message::parse(&refusal).unwrap();
        assert_eq!(message.word(Tag::ERROR_CODE), Some(code as u32));
    }
    let register = registration(&[(Tag::DESTINATION_POINT_CODE, 1), (Tag::DESTINATION_POINT_CODE, 2)]);
    one.send(&register);
    let answer = one.expect(MessageType::RegRsp);
    let result = Message::parse(&answer).unwrap();
    let result = RegistrationResult::read(result.get(Tag::REGISTRATION_RESULT).unwrap());
    assert_eq!(result.status, 7, "not provisioned");
}

/// RFC 4666 §3.4.1: a mask covers every point code within it, so what is narrower and of another state is named behind it.
#[test]
fn what_a_mask_covers_is_named_behind_it() {
    let mut before = config();
    before.application_servers[1].point_codes = vec!["50".to_owned()];
    before.links.push(crate::support::link("c", 13));
    before.application_servers.push(server("three", 13, 3, &["c"]));
    before.routes = vec![Route {
        destination: "48/3".to_owned(),
        via: "three".to_owned(),
        priority: 0,
    }];
    let stp = start(before.clone());
    let at = stp.addresses()[0];
    let mut one = Asp::active(at, 11, 11);
    let news = |one: &mut Asp| loop {
        let octets = one.next().unwrap();
        let message = Message::parse(&octets).unwrap();
        let kind = message.message_type();
        if matches!(kind, MessageType::Duna | MessageType::Dava) {
            let codes = AffectedPointCode::list(message.get(Tag::AFFECTED_POINT_CODE).unwrap());
            break (
                kind,
                codes.map(|code| (code.mask, code.code.0)).collect::<Vec<_>>(),
            );
        }
    };
    let (duna, dava) = (MessageType::Duna, MessageType::Dava);
    let _three = Asp::active(at, 13, 13);
    // 50 has no ASP yet.
    assert_eq!(news(&mut one), (dava, vec![(3, 48)]));
    assert_eq!(news(&mut one), (duna, vec![(0, 50)]));
    assert_eq!(news(&mut one), (dava, vec![(0, 3)]));
    let _two = Asp::active(at, 12, 12);
    assert_eq!(news(&mut one), (dava, vec![(0, 50)]));
    // A reload takes the route of the others away.
    before.routes.clear();
    assert_eq!(stp.reload(&before), Ok(()));
    assert_eq!(news(&mut one), (duna, vec![(3, 48)]));
    assert_eq!(news(&mut one), (dava, vec![(0, 50)]));
}

/// RFC 4666 §3.8.1, §4.3.1: an ASP that is down has no routing keys.
#[test]
fn registrations_of_an_asp_that_is_down_are_unexpected() {
    let stp = start(config());
    let mut one = Asp::connect(stp.addresses()[0], 11);
    let register = registration(&[(Tag::DESTINATION_POINT_CODE, 1)]);
    let deregister = with(MessageType::DeregReq, &[11], &[]);
    let refused = |asp: &mut Asp, octets: &[u8]| {
        asp.send(octets);
        let answer = asp.next().unwrap();
        let message = Message::parse(&answer).unwrap();
        assert_eq!(message.message_type(), MessageType::Err);
        let code = ErrorCode::UnexpectedMessage as u32;
        assert_eq!(message.word(Tag::ERROR_CODE), Some(code));
    };
    refused(&mut one, &register);
    refused(&mut one, &deregister);
    one.up();
    for (octets, answer) in [
        (&register, MessageType::RegRsp),
        (&deregister, MessageType::DeregRsp),
    ] {
        one.send(octets);
        one.expect(answer);
    }
    one.send(&plain(MessageType::Aspdn));
    one.expect(MessageType::AspdnAck);
    refused(&mut one, &register);
}
