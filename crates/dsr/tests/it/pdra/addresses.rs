//! Addresses that a gateway reports while its session exists.

use diameter::proto::known::{self, command};
use diameter::proto::{CommandFlags, MessageBuilder, MessageMut, ResultCode};
use dsr_pdra::Event;

use super::support::{IMSI, PCRFS, World, aar, ccr, client, request, subscriber};
use crate::support::run;

const ALLOCATE: i32 = 18;
const RELEASE: i32 = 19;

fn ipv4(builder: &mut MessageBuilder, last: u8) {
    builder.put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, last]);
}

fn ipv6(builder: &mut MessageBuilder, last: u8) {
    let prefix = [0, 64, 0x20, 1, 0xd, 0xb8, 0, 0, 0, last];
    builder.put(known::FRAMED_IPV6_PREFIX, &prefix);
}

/// A CC-Request of type UPDATE_REQUEST.
fn update(events: &[i32], fill: impl FnOnce(&mut MessageBuilder)) -> MessageMut {
    ccr("pgw;1;1", 2, |b| {
        for event in events {
            b.put(known::EVENT_TRIGGER, *event);
        }
        fill(b);
    })
}

fn by_ipv4(session: &str, last: u8) -> MessageMut {
    aar(session, |b| ipv4(b, last))
}

fn by_ipv6(session: &str, last: u8) -> MessageMut {
    aar(session, |b| ipv6(b, last))
}

#[test]
fn an_af_finds_a_session_by_the_addresses_that_its_gateway_has_reported_last() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "").await;
        let at = world
            .session(&ccr("pgw;1;1", 1, |b| {
                subscriber(b, 1, IMSI);
                ipv6(b, 1);
            }))
            .await;
        world.is_unknown(&by_ipv4("af;1;1", 1)).await;

        // A deferred allocation, and another address in its place: an AF that asks after the answer finds the session.
        for last in [1, 2] {
            assert_eq!(world.session(&update(&[ALLOCATE], |b| ipv4(b, last))).await, at);
            assert_eq!(world.of_af(&by_ipv4(&format!("af;2;{last}"), last)).await, at);
        }
        world.is_unknown(&by_ipv4("af;3;1", 1)).await;
        assert_eq!(world.of_af(&by_ipv6("af;3;2", 1)).await, at);

        // With both events the address is the new one; so it is without an event.
        world.session(&update(&[RELEASE, ALLOCATE], |b| ipv4(b, 3))).await;
        assert_eq!(world.of_af(&by_ipv4("af;4;1", 3)).await, at);
        world.session(&update(&[], |b| ipv6(b, 2))).await;
        assert_eq!(world.of_af(&by_ipv6("af;4;2", 2)).await, at);
        world.is_unknown(&by_ipv6("af;4;3", 1)).await;
        assert_eq!(world.count(Event::Readdressed), 4);

        // The release of another address than that of the session, and of its own.
        world.session(&update(&[RELEASE], |b| ipv4(b, 9))).await;
        assert_eq!(world.of_af(&by_ipv4("af;5;1", 3)).await, at);
        world.session(&update(&[RELEASE], |b| ipv4(b, 3))).await;
        world.is_unknown(&by_ipv4("af;5;2", 3)).await;
        let in_report = update(&[], |b| {
            b.group(known::EVENT_REPORT_INDICATION, |group| {
                group.put(known::EVENT_TRIGGER, RELEASE);
            });
            ipv6(b, 2);
        });
        world.session(&in_report).await;
        world.is_unknown(&by_ipv6("af;5;3", 2)).await;
        assert_eq!(world.count(Event::Readdressed), 6);
    });
}

#[test]
fn what_another_client_or_a_refused_request_reports_changes_nothing() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "").await;
        let first = ccr("pgw;1;1", 1, |b| {
            subscriber(b, 1, IMSI);
            ipv4(b, 1);
        });
        let at = world.session(&first).await;
        // Refused by the PCRF.
        let (_, arrived) = world.reaches(&update(&[ALLOCATE], |b| ipv4(b, 2))).await;
        world
            .answers(at, &arrived, ResultCode::AUTHORIZATION_REJECTED)
            .await;
        world.is_unknown(&by_ipv4("af;1;1", 2)).await;
        // Of another client.
        let mut other = client(&world.dsr, "pgw2.example").await;
        let foreign = request(
            command::CREDIT_CONTROL,
            known::application::GX,
            "pgw2.example",
            "pgw;1;1",
            |b| {
                b.put(known::CC_REQUEST_TYPE, 2)
                    .put(known::CC_REQUEST_NUMBER, 1_u32);
                ipv4(b, 2);
            },
        );
        other.send(foreign.as_bytes()).await;
        let (_, arrived) = world.arrival(command::CREDIT_CONTROL).await;
        world.pcrfs[at].answer(&arrived, ResultCode::SUCCESS).await;
        other
            .expect_result(command::CREDIT_CONTROL, ResultCode::SUCCESS)
            .await;
        world.is_unknown(&by_ipv4("af;1;2", 2)).await;
        // A prefix that cannot be one of a subscriber is refused as in the first request.
        let wrong = update(&[ALLOCATE], |b| {
            b.put(known::FRAMED_IPV6_PREFIX, &[0, 8, 0x20]);
        });
        world.pgw.send(wrong.as_bytes()).await;
        world
            .pgw
            .expect_result(command::CREDIT_CONTROL, ResultCode::INVALID_AVP_VALUE)
            .await;
        assert_eq!(world.count(Event::Readdressed), 0);
        // A first request that comes again does not bring back the addresses that it has.
        world.session(&update(&[ALLOCATE], |b| ipv4(b, 3))).await;
        let mut again = first;
        again.set_flags(again.flags().with(CommandFlags::RETRANSMITTED));
        assert_eq!(world.session(&again).await, at);
        assert_eq!(world.of_af(&by_ipv4("af;2;1", 3)).await, at);
        world.is_unknown(&by_ipv4("af;2;2", 1)).await;
        assert_eq!(
            world.dsr.pdra_sessions("binding", "10.0.0.3")[0]["client"],
            "pgw.example"
        );
    });
}

/// A gateway of its own begins a session at this PCRF, with the address that others have as well.
async fn overlapping(world: &mut World, gateway: &str, apn: &str, at: usize) {
    let mut peer = client(&world.dsr, gateway).await;
    let session = format!("{gateway};1");
    let first = request(
        command::CREDIT_CONTROL,
        known::application::GX,
        gateway,
        &session,
        |b| {
            b.put(known::CC_REQUEST_TYPE, 1)
                .put(known::CC_REQUEST_NUMBER, 0_u32)
                .put(known::CALLED_STATION_ID, apn)
                .put(known::DESTINATION_HOST, PCRFS[at]);
            ipv4(b, 1);
        },
    );
    peer.send(first.as_bytes()).await;
    let arrived = world.pcrfs[at].expect(command::CREDIT_CONTROL).await;
    world.pcrfs[at].answer(&arrived, ResultCode::SUCCESS).await;
    peer.expect_result(command::CREDIT_CONTROL, ResultCode::SUCCESS)
        .await;
}

#[test]
fn an_af_finds_the_session_of_its_domain_or_apn_among_those_of_one_address() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let domains = "      ipDomains:
        - {id: north, gateways: [PGW-N.example]}
        - {id: south, apns: [corp.mnc001.mcc001.gprs]}";
        let mut world = World::new(folder.path(), domains).await;
        overlapping(&mut world, "pgw-n.example", "internet", 0).await;
        overlapping(&mut world, "pgw-s.example", "corp", 1).await;
        let asked = |session: &str, domain: &str, apn: &str| {
            aar(session, |b| {
                ipv4(b, 1);
                if !domain.is_empty() {
                    b.put(known::IP_DOMAIN_ID, domain.as_bytes());
                }
                if !apn.is_empty() {
                    b.put(known::CALLED_STATION_ID, apn);
                }
            })
        };
        let expected = [
            ("north", "", 0),
            ("south", "", 1),
            ("", "internet", 0),
            ("", "corp", 1),
            ("south", "corp", 1),
        ];
        for (number, (domain, apn, at)) in expected.into_iter().enumerate() {
            let request = asked(&format!("af;1;{number}"), domain, apn);
            assert_eq!(world.of_af(&request).await, at, "{domain} {apn}");
        }
        assert_eq!(world.count(Event::Ambiguous), 0);
        for (number, (domain, apn)) in [("west", ""), ("north", "corp"), ("", "ims")]
            .into_iter()
            .enumerate()
        {
            world
                .is_unknown(&asked(&format!("af;2;{number}"), domain, apn))
                .await;
        }
        // Neither: the newest one.
        assert_eq!(world.of_af(&asked("af;3;1", "", "")).await, 1);
        assert_eq!(world.count(Event::Ambiguous), 1);
        // A session of no domain fits each, but one of the domain comes first.
        overlapping(&mut world, "pgw-x.example", "other", 1).await;
        assert_eq!(world.of_af(&asked("af;4;1", "north", "")).await, 0);
        assert_eq!(world.of_af(&asked("af;4;2", "west", "")).await, 1);
    });
}
