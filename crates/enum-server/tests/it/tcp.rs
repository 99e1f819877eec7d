//! Connections.

use std::io::{Read as _, Write as _};

use domain::base::Rtype;
use settings::Period;

use crate::support::{
    Client, config, connect, framed, metric, name, naptrs, query, receive, send, start, until,
};

const KNOWN: &str = "7.6.5.4.3.2.1.0.6.6.3.4.e164enum.net";

#[test]
fn pipelined_queries_are_answered_in_their_order_however_they_are_cut() {
    let server = start(config());
    let mut stream = connect(server.addresses()[0]);
    let messages: Vec<Vec<u8>> = (0..300).map(|id| query(id, KNOWN, Rtype::NAPTR, None)).collect();
    send(&mut stream, &messages);
    for id in 0..300 {
        let answer = receive(&mut stream).unwrap();
        assert_eq!((answer.header().id(), naptrs(&answer).len()), (id, 1));
    }
    // Octet by octet.
    for octet in framed(&messages[..2]) {
        stream.write_all(&[octet]).unwrap();
    }
    assert_eq!(receive(&mut stream).unwrap().header().id(), 0);
    assert_eq!(receive(&mut stream).unwrap().header().id(), 1);
}

#[test]
fn a_length_that_lies_ends_the_connection_and_no_other() {
    let server = start(config());
    let at = server.addresses()[0];
    let mut honest = connect(at);
    for octets in [&[0xff, 0xff][..], &[0x10, 0x01, 0], &[0xff, 0xff, 0, 0, 0, 0]] {
        let mut stream = connect(at);
        stream.write_all(octets).unwrap();
        assert!(receive(&mut stream).is_none());
    }
    // Too short for a header, and empty: no answer, and the connection goes on.
    honest.write_all(&[0, 0, 0, 3, 1, 2, 3]).unwrap();
    send(&mut honest, &[query(5, KNOWN, Rtype::NAPTR, None)]);
    assert_eq!(receive(&mut honest).unwrap().header().id(), 5);
    until("lengths that lie are counted", || {
        metric(&server, "signalbox_enum_connections_total{outcome=\"broken\"}") == 3.0
    });
}

#[test]
fn idle_connections_end_also_when_octets_trickle() {
    let mut wanted = config();
    wanted.tcp.idle = Period::from_millis(300);
    let server = start(wanted);
    let mut stream = connect(server.addresses()[0]);
    let mut trickle = connect(server.addresses()[0]);
    trickle.write_all(&[0]).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(trickle.read(&mut [0; 1]).unwrap(), 0);
    until("both are counted", || {
        metric(&server, "signalbox_enum_connections_total{outcome=\"idle\"}") == 2.0
    });
    until("none is open", || {
        metric(&server, "signalbox_enum_open_connections") == 0.0
    });
}

/// What has no answer does not count as use of a connection, however much of it comes.
#[test]
fn messages_that_are_not_queries_keep_no_connection_open() {
    let mut wanted = config();
    wanted.tcp.idle = Period::from_millis(300);
    let server = start(wanted);
    let mut stream = connect(server.addresses()[0]);
    let mut answer = query(1, KNOWN, Rtype::NAPTR, None);
    answer[2] |= 0x80;
    let octets = framed(&[Vec::new(), answer]);
    until("the connection ends", || stream.write_all(&octets).is_err());
    until("it is counted", || {
        metric(&server, "signalbox_enum_connections_total{outcome=\"idle\"}") == 1.0
    });
}

/// Far more clients than positions: the longest idle ones give way, and an honest one is answered at any time.
#[test]
fn a_crowd_of_idle_clients_locks_out_no_other() {
    let mut wanted = config();
    wanted.workers = 1;
    wanted.tcp.connections = 50;
    wanted.tcp.per_address = 1_000;
    wanted.tcp.idle = Period::from_secs(600);
    let server = start(wanted);
    let at = server.addresses()[0];
    let mut crowd = Vec::new();
    for round in 0..400_u16 {
        crowd.push(connect(at));
        if round % 40 == 0 {
            let mut honest = connect(at);
            send(&mut honest, &[query(round, KNOWN, Rtype::NAPTR, None)]);
            assert_eq!(receive(&mut honest).unwrap().header().id(), round);
        }
    }
    until("most have given way", || {
        metric(&server, "signalbox_enum_connections_total{outcome=\"evicted\"}") >= 350.0
    });
    until("the others are open", || {
        metric(&server, "signalbox_enum_open_connections") <= 50.0
    });
    // UDP beside them.
    assert_eq!(
        naptrs(&Client::new(at).naptr(&name("436601234567", "e164enum.net"))).len(),
        1
    );
}

#[test]
fn an_address_has_its_bound_of_connections() {
    let mut wanted = config();
    wanted.workers = 1;
    wanted.tcp.per_address = 2;
    let server = start(wanted);
    let at = server.addresses()[0];
    let mut held: Vec<_> = (0..2)
        .map(|id| {
            let mut stream = connect(at);
            send(&mut stream, &[query(id, KNOWN, Rtype::NAPTR, None)]);
            assert!(receive(&mut stream).is_some());
            stream
        })
        .collect();
    assert!(receive(&mut connect(at)).is_none());
    assert_eq!(
        metric(&server, "signalbox_enum_connections_total{outcome=\"refused\"}"),
        1.0
    );
    held.pop();
    until("a position is free", || {
        let mut stream = connect(at);
        stream
            .write_all(&framed(&[query(7, KNOWN, Rtype::NAPTR, None)]))
            .is_ok()
            && receive(&mut stream).is_some()
    });
}
