//! The STP as an ASP of another gateway, and as an IPSP.

use std::net::TcpListener;

use settings::Period;
use ss7_proto::m3ua::{Message, MessageType, Tag};
use stp::Config;
use stp::config::{Link, LinkSet, Role, Route, Transport};

use crate::support::{Asp, address, config, data, isup, plain, start, with_word};

/// A link set to a peer that listens, and a route to point code 50 by it.
fn connecting(role: Role) -> (Config, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = config();
    config.reconnect = Period::from_millis(20);
    config.links.push(Link {
        name: "up".to_owned(),
        role,
        transport: Transport::Tcp,
        peer: vec![address(1)],
        port: Some(listener.local_addr().unwrap().port()),
        connect: true,
    });
    config.link_sets = vec![LinkSet {
        name: "gateway".to_owned(),
        routing_context: Some(77),
        links: vec!["up".to_owned()],
        ..LinkSet::default()
    }];
    config.routes = vec![Route {
        destination: "50".to_owned(),
        via: "gateway".to_owned(),
        priority: 0,
    }];
    (config, listener)
}

/// The peer of a link that the STP has made active.
fn accept(listener: &TcpListener) -> Asp {
    let mut peer = Asp::over(listener.accept().unwrap().0);
    peer.expect(MessageType::Aspup);
    peer.send(&plain(MessageType::AspupAck));
    let wanted = peer.expect(MessageType::Aspac);
    let contexts: Vec<u32> = Message::parse(&wanted).unwrap().routing_contexts().collect();
    assert_eq!(contexts, [77]);
    peer.send(&with_word(MessageType::AspacAck, Tag::ROUTING_CONTEXT, 77));
    peer
}

#[test]
fn a_gateway_is_used_as_long_as_it_serves_the_destination() {
    let (settings, listener) = connecting(Role::Asp);
    let stp = start(settings);
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    let mut gateway = accept(&listener);
    one.expect(MessageType::Dava);
    one.send(&isup(11, 1, 50, 0, b"out"));
    let received = gateway.expect(MessageType::Data);
    assert_eq!(
        (data(&received).routing_context, data(&received).user_data),
        (Some(77), &b"out"[..])
    );
    gateway.send(&isup(77, 50, 1, 0, b"in"));
    assert_eq!(data(&one.expect(MessageType::Data)).user_data, b"in");
    // A message does not go back to the link set that it came by.
    gateway.send(&isup(77, 51, 50, 0, b"circle"));
    gateway.settle();
    gateway.send(&with_word(MessageType::Duna, Tag::AFFECTED_POINT_CODE, 50));
    one.expect(MessageType::Duna);
    gateway.send(&with_word(MessageType::Dava, Tag::AFFECTED_POINT_CODE, 50));
    one.expect(MessageType::Dava);
    // The gateway is killed, and returns.
    drop(gateway);
    one.expect(MessageType::Duna);
    let mut gateway = accept(&listener);
    one.expect(MessageType::Dava);
    one.send(&isup(11, 1, 50, 0, b"again"));
    assert_eq!(data(&gateway.expect(MessageType::Data)).user_data, b"again");
    // An ASP may not say what a gateway says.
    one.send(&with_word(MessageType::Duna, Tag::AFFECTED_POINT_CODE, 50));
    one.expect(MessageType::Err);
    one.send(&isup(11, 1, 50, 0, b"still"));
    assert_eq!(data(&gateway.expect(MessageType::Data)).user_data, b"still");
}

#[test]
fn either_side_of_an_ipsp_link_may_ask() {
    let (settings, listener) = connecting(Role::Ipsp);
    let stp = start(settings);
    let mut one = Asp::active(stp.addresses()[0], 11, 11);
    let mut peer = Asp::over(listener.accept().unwrap().0);
    // The peer asks, and leaves the requests of the STP without an answer.
    peer.up();
    peer.send(&crate::support::aspac(77));
    peer.expect(MessageType::AspacAck);
    one.expect(MessageType::Dava);
    one.send(&isup(11, 1, 50, 0, b"out"));
    assert_eq!(data(&peer.expect(MessageType::Data)).user_data, b"out");
    drop(peer);
    one.expect(MessageType::Duna);
    // Now the STP asks alone.
    let mut peer = accept(&listener);
    one.expect(MessageType::Dava);
    peer.send(&isup(77, 50, 1, 0, b"in"));
    assert_eq!(data(&one.expect(MessageType::Data)).user_data, b"in");
}
