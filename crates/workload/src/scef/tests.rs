//! Messages against the dictionary, and the books.

use std::sync::Arc;

use diameter_proto::known::{self, application, command};
use diameter_proto::{CommandFlags, Dictionary, Message, MessageBuilder, check};
use loadgen::diameter::{Requests as _, Turn, append, result_of};
use loadgen::{Answer, Draft, Ticket, Workload as _};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use settings::Percent;
use simulators::Judge as _;

use super::*;
use callmodel::scef::imsi;

fn plan() -> Arc<Plan> {
    Arc::new(Plan {
        devices: 8,
        servers: 4,
        mmes: 2,
        octets: 16,
        unreachable: Percent::new(100.0),
        targets: [([127, 0, 0, 1], 1).into(), ([127, 0, 0, 1], 2).into()],
        configurations: (0..8).map(|device| format!("/c/{device}")).collect(),
        rates: [1.0; 6],
    })
}

fn strict(bytes: &[u8]) -> Message<&[u8]> {
    let message = Message::parse(bytes).unwrap();
    check::check(&message, Dictionary::standard(), check::Strictness::Pedantic).unwrap();
    message
}

/// A TDR with this number for a device.
fn downlink(number: u32, device: u32, end_to_end: u32, is_again: bool) -> Vec<u8> {
    let mut request = MessageBuilder::request(command::MT_DATA, application::T6A);
    request.identifiers(1, end_to_end);
    if is_again {
        *request.flags_mut() = request.flags_mut().with(CommandFlags::RETRANSMITTED);
    }
    request
        .put(known::SESSION_ID, "scef;1;1")
        .group(known::USER_IDENTIFIER, |user| {
            user.put(known::USER_NAME, &imsi(device));
        })
        .put(known::NON_IP_DATA, &number.to_be_bytes());
    let mut bytes = Vec::new();
    append(request, &mut bytes);
    bytes
}

#[test]
fn messages_keep_to_their_definitions() {
    let own = messages::mme(3).origin;
    for built in [
        messages::establish(&own, 7),
        messages::reachable(&own, 1, 7),
        messages::uplink(&own, 2, 7, b"data"),
        messages::report(&own, 3, 0xcafe),
    ] {
        let mut bytes = Vec::new();
        append(built, &mut bytes);
        strict(&bytes);
    }
}

#[test]
fn an_mme_knows_a_repetition_from_data_that_comes_twice() {
    let (plan, books) = (plan(), Arc::new(Books::default()));
    let mut mmes = Mmes::new(&plan, &books, (0, 1));
    let own = messages::mme(1);
    let mut take = |request: &[u8]| {
        let turn = Turn {
            line: 1,
            introduction: &own,
        };
        let mut out = Vec::new();
        mmes.asked(turn, Message::parse(request).unwrap(), &mut out);
        let first = u32::from_be_bytes([0, out[1], out[2], out[3]]) as usize;
        let (answer, rest) = out.split_at(first);
        let update = (!rest.is_empty()).then(|| strict(rest).command());
        (result_of(Message::parse(answer).unwrap()), update)
    };
    let update = Some(command::CONNECTION_MANAGEMENT);
    assert_eq!(take(&downlink(1, 3, 10, false)), (5653, update));
    books.owe(Kind::Data, 1_u32, 3);
    assert_eq!(books.tally(Kind::Data).missing, 1);
    assert_eq!(take(&downlink(1, 3, 11, false)), (2001, None));
    assert_eq!(take(&downlink(1, 3, 11, true)), (2001, None));
    let tally = books.tally(Kind::Data);
    assert_eq!((tally.owed, tally.missing, tally.twice), (1, 0, 0));
    take(&downlink(1, 3, 12, true));
    assert_eq!(books.tally(Kind::Data).twice, 1, "another identifier");
    // The device is at the other MME.
    assert_eq!(take(&downlink(2, 4, 13, false)), (5651, None));
}

#[test]
fn notifications_settle_what_is_owed() {
    let books = Arc::new(Books::default());
    let judging = Judging(books.clone());
    books.owe(Kind::Report, 0x2a_u32, 1);
    books.owe(Kind::Uplink, 7_u32, 2);
    books.owe(Kind::Trigger, 9_u32, 3);
    books.owe(Kind::Status, 0xabc_u32, 2);
    assert!(!books.is_settled());
    let report = r#"{"subscription":"x","monitoringEventReports":[{"monitoringType":"LOCATION_REPORTING",
        "locationInfo":{"cellId":"001-01-0000002a"}}]}"#;
    for (path, body, is_right) in [
        ("/s1/m/0", report, true),
        ("/s2/n/5", r#"{"niddConfiguration":"x","data":"AAAABw=="}"#, true),
        (
            "/s2/n/5",
            r#"{"niddDownlinkDataTransfer":"http://x/0abc","deliveryStatus":"SUCCESS_NEXT_HOP_ACKNOWLEDGED"}"#,
            true,
        ),
        ("/s3/t/9", r#"{"transaction":"x","result":"SUCCESS"}"#, true),
        ("/s3/t/9", r#"{"transaction":"x","result":"UNCONFIRMED"}"#, false),
        ("/s3/u/9", "{}", false),
        ("/x", "{}", false),
    ] {
        assert_eq!(judging.notified(path, body.as_bytes()), is_right, "{path} {body}");
    }
    assert!(books.is_settled());
    assert!(judging.notified("/s1/m/0", report.as_bytes()));
    assert_eq!(books.tally(Kind::Report).twice, 1);
}

#[test]
fn an_answer_at_t8_is_judged_by_what_the_mme_has() {
    let (plan, books) = (plan(), Arc::new(Books::default()));
    let mut servers = Servers::new(&plan, &books);
    let (mut random, mut draft) = (SmallRng::seed_from_u64(1), Draft::default());
    let ticket = loop {
        draft.clear();
        let ticket = servers.next(&mut random, &mut draft);
        if ticket.operation == 0 {
            break ticket;
        }
    };
    assert!(draft.path.ends_with(b"/downlink-data-deliveries"));
    let delivered = Answer {
        status: 200,
        length: 0,
        body: Some(br#"{"deliveryStatus":"SUCCESS_NEXT_HOP_UNACKNOWLEDGED"}"#),
    };
    assert!(servers.judge(&ticket, &delivered).is_err(), "no MME has it");
    let buffered = Answer {
        status: 201,
        length: 0,
        body: None,
    };
    assert!(servers.judge(&ticket, &buffered).is_err(), "without Location");
    servers.located(
        &ticket,
        b"http://scef/x/downlink-data-deliveries/00000000000000000000000000000abc",
    );
    servers.judge(&ticket, &buffered).unwrap();
    assert_eq!(books.tally(Kind::Status).missing, 1);
    let subscribe = Ticket {
        operation: 1,
        first: 5,
        second: 1,
    };
    servers.located(
        &subscribe,
        b"http://scef/3gpp-monitoring-event/v1/as1/subscriptions/0000cafe",
    );
    servers.judge(&subscribe, &buffered).unwrap();
    assert_eq!(books.any(&mut random).unwrap().reference, 0xcafe);
    assert_eq!(books.oldest(), None, "a few stay");
}
