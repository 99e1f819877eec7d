//! Requests of AFs find the PCRF of their subscriber, and requests of sessions their peers.

use diameter::proto::known::{self, application, command};
use diameter::proto::{MessageBuilder, ResultCode};
use dsr_pdra::Event;

use super::support::{AF, IMSI, PCRFS, PGW, World, aar, ccr, initial, request, subscriber};
use crate::support::run;

const PREFIX: &[u8] = &[0, 64, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 1];

/// An address under the prefix: all of its bits.
fn address() -> Vec<u8> {
    let mut bytes = vec![0, 128];
    bytes.extend(&PREFIX[2..]);
    bytes.extend([0, 0, 0, 0, 0, 0, 0, 9]);
    bytes
}

fn whole(builder: &mut MessageBuilder) {
    subscriber(builder, 1, IMSI);
    subscriber(builder, 0, "491701234567");
    builder
        .put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, 1])
        .put(known::FRAMED_IPV6_PREFIX, PREFIX)
        .put(known::CALLED_STATION_ID, "IMS.mnc001.mcc001.gprs");
}

#[test]
fn an_af_finds_the_pcrf_by_each_key_as_soon_as_the_session_has_begun() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "").await;
        let at = world.session(&ccr("pgw;1;1", 1, whole)).await;
        let with =
            |number: u8, fill: &dyn Fn(&mut MessageBuilder)| aar(&format!("af;1;{number}"), |b| fill(b));
        let found = [
            with(1, &|b| {
                b.put(known::FRAMED_IPV6_PREFIX, &address());
            }),
            with(2, &|b| {
                b.put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, 1]);
            }),
            with(3, &|b| subscriber(b, 0, "491701234567")),
            with(4, &|b| subscriber(b, 1, IMSI)),
            // The key that leads nowhere is passed over, the APN is that of the session.
            with(5, &|b| {
                b.put(known::CALLED_STATION_ID, "ims");
                subscriber(b, 1, IMSI);
            }),
        ];
        for one in &found {
            assert_eq!(world.of_af(one).await, at);
        }
        assert_eq!(world.count(Event::Correlated), 5);
        let none = [
            with(6, &|b| {
                b.put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, 2]);
            }),
            with(7, &|b| {
                b.put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, 1])
                    .put(known::CALLED_STATION_ID, "internet");
            }),
            with(8, &|b| {
                b.put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, 1]);
                subscriber(b, 1, "001010000000002");
            }),
            with(9, &|_| ()),
        ];
        for one in &none {
            world.is_unknown(one).await;
        }
        assert_eq!(world.count(Event::NotFound), 4);
    });
}

#[test]
fn requests_of_a_session_find_its_peers_without_their_names_until_it_ends() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "      wait: 60s").await;
        let at = world.session(&ccr("pgw;1;1", 1, whole)).await;
        let by_address = |session: &str| {
            aar(session, |b| {
                b.put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, 1]);
            })
        };
        assert_eq!(world.of_af(&by_address("af;1;1")).await, at);

        // Of the client, of the PCRF to the gateway, of the PCRF to the AF.
        assert_eq!(world.session(&ccr("pgw;1;1", 2, |_| ())).await, at);
        for (application, session, is_gateway) in [
            (application::GX, "pgw;1;1", true),
            (application::RX, "af;1;1", false),
        ] {
            for command in [command::RE_AUTH, command::ABORT_SESSION] {
                let sent = request(command, application, PCRFS[at], session, |_| ());
                world.pcrfs[at].send(sent.as_bytes()).await;
                let (peer, host) = if is_gateway {
                    (&mut world.pgw, PGW)
                } else {
                    (&mut world.af, AF)
                };
                let arrived = peer.expect(command).await;
                assert_eq!(arrived.require(known::DESTINATION_HOST).unwrap(), host);
                peer.answer(&arrived, ResultCode::SUCCESS).await;
                world.pcrfs[at].expect_result(command, ResultCode::SUCCESS).await;
            }
        }
        // The AF's session outlives that of the gateway, which is not found as soon as its end is answered.
        assert_eq!(world.session(&ccr("pgw;1;1", 3, |_| ())).await, at);
        world.is_unknown(&by_address("af;1;2")).await;
        let str = request(
            command::SESSION_TERMINATION,
            application::RX,
            AF,
            "af;1;1",
            |_| (),
        );
        assert_eq!(world.of_af(&str).await, at);
        world.holds(0).await;
    });
}

#[test]
fn requests_of_sessions_that_are_not_known_are_refused_or_go_where_they_say() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "").await;
        for kind in [2, 3] {
            world.pgw.send(ccr("pgw;9;9", kind, |_| ()).as_bytes()).await;
            world
                .pgw
                .expect_result(command::CREDIT_CONTROL, ResultCode::UNKNOWN_SESSION_ID)
                .await;
        }
        let rar = request(command::RE_AUTH, application::GX, PCRFS[0], "pgw;9;9", |_| ());
        world.pcrfs[0].send(rar.as_bytes()).await;
        world.pcrfs[0]
            .expect_result(command::RE_AUTH, ResultCode::UNKNOWN_SESSION_ID)
            .await;
        assert_eq!(world.count(Event::UnknownSession), 3);
        let named = ccr("pgw;9;9", 3, |b| {
            b.put(known::DESTINATION_HOST, PCRFS[1]);
        });
        let (at, arrived) = world.reaches(&named).await;
        assert_eq!(at, 1);
        world.answers(1, &arrived, ResultCode::UNKNOWN_SESSION_ID).await;
    });
}

#[test]
fn a_session_that_one_of_its_ends_does_not_know_is_ended() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "      wait: 60s").await;
        let at = world.session(&ccr("pgw;1;1", 1, whole)).await;
        let rar = |to: &str| {
            request(command::RE_AUTH, application::GX, PCRFS[at], "pgw;1;1", |b| {
                b.put(known::DESTINATION_HOST, to);
            })
        };
        // Another peer that says so does not end it, nor does a client that may not have heard of it yet.
        for to in [AF, PGW] {
            world.pcrfs[at].send(rar(to).as_bytes()).await;
            let peer = if to == AF { &mut world.af } else { &mut world.pgw };
            let arrived = peer.expect(command::RE_AUTH).await;
            peer.answer(&arrived, ResultCode::UNKNOWN_SESSION_ID).await;
            world.pcrfs[at]
                .expect_result(command::RE_AUTH, ResultCode::UNKNOWN_SESSION_ID)
                .await;
            world.holds(1).await;
        }
        assert_eq!(world.count(Event::Ended), 0);
        let (to, arrived) = world.reaches(&ccr("pgw;1;1", 2, |_| ())).await;
        assert_eq!(to, at);
        world.answers(at, &arrived, ResultCode::UNKNOWN_SESSION_ID).await;
        world.holds(0).await;
        assert_eq!(world.count(Event::Ended), 1);
    });
}

#[test]
fn a_session_whose_termination_fails_for_good_has_ended() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "").await;
        let at = world.session(&ccr("pgw;1;1", 1, whole)).await;
        let end = ccr("pgw;1;1", 3, |_| ());
        // The client tries again after the first one: the session leads to the PCRF.
        for code in [ResultCode::TOO_BUSY, ResultCode::UNABLE_TO_COMPLY] {
            let (to, arrived) = world.reaches(&end).await;
            assert_eq!(to, at);
            world.answers(at, &arrived, code).await;
        }
        world.holds(0).await;
    });
}

#[test]
fn the_page_says_which_pcrf_since_when_and_why() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "").await;
        let at = world.session(&ccr("pgw;1;1", 1, whole)).await;
        let keys = [
            ("session", "pgw;1;1"),
            ("binding", IMSI),
            ("binding", "491701234567"),
            ("binding", "10.0.0.1"),
            ("binding", "2001:db8:0:1::7"),
            ("binding", "2001:db8:0:1::/64"),
        ];
        for (kind, key) in keys {
            let rows = world.dsr.pdra_sessions(kind, key);
            assert_eq!(rows.len(), 1, "{kind} {key}");
            assert_eq!(rows[0]["pcrf"], PCRFS[at]);
            assert_eq!(rows[0]["client"], PGW);
            assert_eq!(rows[0]["rule"], "chosen by weight");
            assert_eq!(rows[0]["application"], "policy");
            assert!(rows[0]["since"].as_str().unwrap().starts_with("20"));
        }
        for (kind, key) in [
            ("session", "pgw;1;2"),
            ("binding", "10.0.0.2"),
            ("other", "x"),
            ("binding", ""),
        ] {
            let rows = world.dsr.pdra_sessions(kind, key);
            assert!(rows.iter().all(|row| row.get("pcrf").is_none()), "{kind} {key}");
        }
        let (_, body) = testpeer::page(world.dsr.handle().routes(), "/dsr/pdra/session/pgw;1;1").await;
        assert!(body.contains(PCRFS[at]), "{body}");
    });
}

#[test]
fn a_session_stays_that_of_its_subscriber_and_of_its_ends() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "").await;
        let at = world.session(&ccr("pgw;1;1", 1, whole)).await;
        // Another subscriber under the same Session-Id.
        let other = ccr("pgw;1;1", 1, |b| subscriber(b, 1, "001010000000002"));
        world.pgw.send(other.as_bytes()).await;
        world
            .pgw
            .expect_result(command::CREDIT_CONTROL, ResultCode::INVALID_AVP_VALUE)
            .await;
        // The end of a session of another application under it.
        let end = request(
            command::SESSION_TERMINATION,
            application::RX,
            AF,
            "pgw;1;1",
            |b| {
                b.put(known::DESTINATION_HOST, PCRFS[at]);
            },
        );
        assert_eq!(world.of_af(&end).await, at);
        // A request without a type, or of one that no session has.
        for (kind, code) in [
            (None, ResultCode::MISSING_AVP),
            (Some(4), ResultCode::INVALID_AVP_VALUE),
        ] {
            let typed = request(command::CREDIT_CONTROL, application::GX, PGW, "pgw;1;2", |b| {
                if let Some(kind) = kind {
                    b.put(known::CC_REQUEST_TYPE, kind);
                }
            });
            world.pgw.send(typed.as_bytes()).await;
            world.pgw.expect_result(command::CREDIT_CONTROL, code).await;
        }
        let found = aar("af;1;1", |b| {
            b.put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, 1]);
        });
        assert_eq!(world.of_af(&found).await, at);
    });
}

#[test]
fn afs_that_fill_their_sessions_keep_no_gateway_out() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut config = super::support::agent(folder.path(), &PCRFS, "");
        for application in &mut config.applications {
            let repository = &mut application.pdra.as_mut().unwrap().repository;
            repository.max_sessions = 3;
            // Counts are those of each write.
            repository.sweep.pause = settings::Period::from_secs(3_600);
        }
        let mut world = World::of(config, &PCRFS).await;
        let at = world.session(&ccr("pgw;1;1", 1, whole)).await;
        // Each is answered; the fourth and fifth are not kept.
        for number in 1..=5 {
            let found = aar(&format!("af;1;{number}"), |b| subscriber(b, 1, IMSI));
            assert_eq!(world.of_af(&found).await, at);
        }
        assert_eq!((world.count(Event::Kept), world.count(Event::Full)), (4, 2));
        let rows = |session: &str| world.dsr.pdra_sessions("session", session).len();
        assert_eq!([rows("af;1;3"), rows("af;1;4")], [1, 0]);
        // Gateways have their own bound.
        for number in 2..=3 {
            world.session(&initial(&format!("pgw;1;{number}"), IMSI)).await;
        }
        world.pgw.send(initial("pgw;1;4", IMSI).as_bytes()).await;
        world
            .pgw
            .expect_result(command::CREDIT_CONTROL, ResultCode::TOO_BUSY)
            .await;
        // An AF whose sessions end has room again.
        let end = request(
            command::SESSION_TERMINATION,
            application::RX,
            AF,
            "af;1;1",
            |_| (),
        );
        assert_eq!(world.of_af(&end).await, at);
        world.holds(5).await;
        world.of_af(&aar("af;1;6", |b| subscriber(b, 1, IMSI))).await;
        assert_eq!(world.count(Event::Kept), 7);
    });
}

#[test]
fn a_request_right_behind_the_answer_that_ends_a_session_does_not_find_it() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "      wait: 60s").await;
        for number in 0..50 {
            let session = format!("pgw;1;{number}");
            let at = world.session(&ccr(&session, 1, whole)).await;
            assert_eq!(world.session(&ccr(&session, 3, |_| ())).await, at);
            let of_af = aar(&format!("af;1;{number}"), |b| subscriber(b, 1, IMSI));
            world.is_unknown(&of_af).await;
        }
        assert_eq!(world.count(Event::Ended), 50);
    });
}
