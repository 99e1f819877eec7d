//! What strangers send.

use domain::base::Rtype;
use domain::base::iana::Rcode;
use proptest::prelude::*;

use crate::support::{Client, config, metric, name, query, start, until, wire};

const KNOWN: &str = "7.6.5.4.3.2.1.0.6.6.3.4.e164enum.net";

/// A header with this question section.
fn with_question(question: &[u8]) -> Vec<u8> {
    let mut octets = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    octets.extend_from_slice(question);
    octets
}

#[test]
fn names_that_cannot_be_are_malformed() {
    let server = start(config());
    let client = Client::new(server.addresses()[0]);
    let kind = [0, 35, 0, 1];
    let pointers: [&[u8]; 4] = [&[0xc0, 12], &[0xc0, 13, 0], &[1, b'1', 0xc0, 12], &[0xc0, 4]];
    let mut wrong: Vec<Vec<u8>> = pointers
        .iter()
        .map(|name| with_question(&[*name, &kind].concat()))
        .collect();
    // 256 labels, a label of 64 octets, a name that goes on behind the end, none at all.
    wrong.push(with_question(
        &[[1, b'1'].repeat(256).as_slice(), &[0], &kind].concat(),
    ));
    wrong.push(with_question(&[&[64][..], &[b'1'; 64], &[0], &kind].concat()));
    wrong.push(with_question(&[63, b'1', 0, 0, 35, 0, 1]));
    wrong.push(with_question(&[]));
    wrong.push(with_question(&[&wire(KNOWN)[..], &[0, 35]].concat()));
    for octets in wrong {
        let answer = client.ask(&octets);
        assert_eq!(answer.header().rcode(), Rcode::FORMERR, "{octets:02x?}");
        assert_eq!(answer.header().id(), 7);
        assert!(answer.as_slice().len() <= octets.len().max(12));
    }
}

#[test]
fn counts_that_lie_are_malformed() {
    let server = start(config());
    let client = Client::new(server.addresses()[0]);
    // Questions, answers, authority, additional: each more than there is, or than a query has.
    for at in [5, 7, 9, 11] {
        for count in [2, 200] {
            let mut octets = query(7, KNOWN, Rtype::NAPTR, Some(1_232));
            octets[at] = count;
            let answer = client.ask(&octets);
            assert_eq!(answer.header().rcode(), Rcode::FORMERR, "{at} {count}");
        }
    }
    let mut none = query(7, KNOWN, Rtype::NAPTR, None);
    none[5] = 0;
    assert_eq!(client.ask(&none).header().rcode(), Rcode::FORMERR);
}

/// Two servers that answered answers would go on for ever.
#[test]
fn answers_and_less_than_a_header_get_no_answer() {
    let server = start(config());
    let client = Client::new(server.addresses()[0]);
    let mut answer = query(7, KNOWN, Rtype::NAPTR, None);
    answer[2] |= 0x80;
    client.assert_silent(&answer);
    for length in 0..12 {
        client.assert_silent(&query(7, KNOWN, Rtype::NAPTR, None)[..length]);
    }
    assert_eq!(
        metric(&server, "signalbox_enum_answers_total{outcome=\"dropped\"}"),
        13.0
    );
}

#[test]
fn other_operations_are_not_implemented() {
    let server = start(config());
    let client = Client::new(server.addresses()[0]);
    // IQUERY, STATUS, NOTIFY, UPDATE, DSO and the rest.
    for opcode in 1..16_u8 {
        let mut octets = query(7, KNOWN, Rtype::SOA, None);
        octets[2] = octets[2] & 0x87 | opcode << 3;
        let answer = client.ask(&octets);
        assert_eq!(
            (answer.header().rcode(), answer.header().opcode().to_int()),
            (Rcode::NOTIMP, opcode)
        );
    }
}

#[test]
fn clients_of_other_networks_are_refused() {
    let mut wanted = config();
    wanted.clients = vec!["192.0.2.0/24".parse().unwrap()];
    let server = start(wanted.clone());
    let client = Client::new(server.addresses()[0]);
    assert_eq!(client.naptr(KNOWN).header().rcode(), Rcode::REFUSED);
    wanted.clients.push("::ffff:127.0.0.0/104".parse().unwrap());
    server.reload(&wanted).unwrap();
    assert_eq!(client.naptr(KNOWN).header().rcode(), Rcode::NOERROR);
}

/// A flood costs its addresses answers, and other networks none. What is answered is never more than a share of it.
#[test]
fn a_client_over_its_rate_is_answered_truncated_now_and_then_and_over_tcp() {
    let mut wanted = config();
    wanted.workers = 1;
    wanted.rate.per_second = 1;
    wanted.rate.slip = 3;
    let server = start(wanted);
    let at = server.addresses()[0];
    let client = Client::new(at);
    for id in 0..300 {
        client
            .0
            .send(&query(id, KNOWN, Rtype::NAPTR, Some(1_232)))
            .unwrap();
    }
    let counted = |outcome: &str| {
        metric(
            &server,
            &format!("signalbox_enum_answers_total{{outcome=\"{outcome}\"}}"),
        )
    };
    until("all are judged", || {
        counted("answered") + counted("slipped") + counted("limited") == 300.0
    });
    let (slipped, limited) = (counted("slipped"), counted("limited"));
    assert!(slipped > 0.0 && limited >= slipped * 2.0, "{slipped} {limited}");
    let slips = (0..(counted("answered") + slipped) as usize)
        .map(|_| client.next())
        .filter(|answer| answer.header().tc());
    let slips: Vec<_> = slips.collect();
    assert_eq!(slips.len() as f64, slipped);
    let first = &slips[0];
    assert_eq!(
        (first.header_counts().ancount(), first.header_counts().qdcount()),
        (0, 1)
    );
    assert!(first.opt().is_some(), "as its query");
    // The honest client comes again over TCP.
    let mut stream = crate::support::connect(at);
    crate::support::send(&mut stream, &[query(9, KNOWN, Rtype::NAPTR, None)]);
    assert_eq!(
        crate::support::receive(&mut stream)
            .unwrap()
            .header_counts()
            .ancount(),
        1
    );
}

fn some_query() -> impl Strategy<Value = Vec<u8>> {
    let names = prop::sample::select(vec![
        KNOWN.to_owned(),
        name("43", "e164enum.net"),
        "e164enum.net".to_owned(),
        "3.4.e164.arpa".to_owned(),
        "example.org".to_owned(),
    ]);
    let kinds = prop::sample::select(vec![
        Rtype::NAPTR,
        Rtype::SOA,
        Rtype::ANY,
        Rtype::A,
        Rtype::OPT,
        Rtype::TSIG,
    ]);
    let sizes = prop::option::of(any::<u16>());
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    (names, kinds, sizes, changes, any::<prop::sample::Index>()).prop_map(
        |(name, kind, size, changes, cut)| {
            let mut octets = query(7, &name, kind, size);
            let changed = !changes.is_empty();
            for (at, octet) in changes {
                let at = at.index(octets.len());
                octets[at] = octet;
            }
            if changed && cut.index(3) == 0 {
                octets.truncate(cut.index(octets.len()));
            }
            octets
        },
    )
}

proptest! {
    /// Nothing panics (a worker that has would not answer the query behind it), and no answer is larger than was asked for.
    #[test]
    fn any_octets_get_an_answer_within_bounds_or_none(octets in prop_oneof![some_query(), prop::collection::vec(any::<u8>(), 0..600)]) {
        thread_local! {
            static SERVER: enum_server::Running = {
                let mut wanted = config();
                wanted.workers = 1;
                start(wanted)
            };
        }
        SERVER.with(|server| {
            let client = Client::new(server.addresses()[0]);
            client.0.send(&octets).unwrap();
            let marker = query(0x7e57, "e164enum.net", Rtype::SOA, None);
            client.0.send(&marker).unwrap();
            let mut answer = client.next();
            if answer.header().id() != 0x7e57 || answer.header_counts().qdcount() == 0 {
                prop_assert!(answer.as_slice().len() <= 1_232);
                prop_assert!(answer.header().qr());
                // Small queries without EDNS are never answered with more than 512.
                if answer.opt().is_none() {
                    prop_assert!(answer.as_slice().len() <= 512);
                }
                answer = client.next();
            }
            prop_assert!(answer.header().qr());
            Ok(())
        })?;
    }
}
