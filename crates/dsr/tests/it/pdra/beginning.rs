//! Requests that begin sessions of one subscriber: one PCRF for all of them.

use diameter::proto::known::{self, application, command};
use diameter::proto::{CommandFlags, ResultCode};
use dsr_pdra::Event;

use super::support::{IMSI, PCRFS, PGW, World, agent, ccr, client, initial, request, subscriber};
use crate::support::run;

#[test]
fn the_second_one_waits_for_the_first_and_takes_its_pcrf() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "      wait: 60s").await;
        let (first, second) = (initial("pgw;1;1", IMSI), initial("pgw;1;2", IMSI));
        let (at, first) = world.second_waits(&first, &second).await;
        let second = world.serves_both(at, &first).await;
        assert_eq!(second.require(known::SESSION_ID).unwrap(), "pgw;1;2");
        assert_eq!(world.count(Event::Kept), 2);
        assert_eq!(world.count(Event::Chosen), 1);
        // One that comes later finds the binding.
        assert_eq!(world.session(&initial("pgw;1;3", IMSI)).await, at);
        assert_eq!(world.count(Event::Bound), 1);
    });
}

#[test]
fn after_a_refusal_the_one_that_waits_chooses() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "      wait: 60s").await;
        let (first, second) = (initial("pgw;1;1", IMSI), initial("pgw;1;2", IMSI));
        let (at, first) = world.second_waits(&first, &second).await;
        world
            .answers(at, &first, ResultCode::AUTHORIZATION_REJECTED)
            .await;
        let (_, second) = world.arrival(command::CREDIT_CONTROL).await;
        assert_eq!(second.require(known::SESSION_ID).unwrap(), "pgw;1;2");
        assert_eq!(world.count(Event::Chosen), 2);
        assert!(world.dsr.pdra_sessions("binding", IMSI).is_empty());
    });
}

#[test]
fn one_that_follows_takes_the_pcrf_at_once() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "      early: follow").await;
        let (at, first) = world.reaches(&initial("pgw;1;1", IMSI)).await;
        let (other, second) = world.reaches(&initial("pgw;1;2", IMSI)).await;
        assert_eq!(at, other);
        // The first one is refused; the binding is that of the second.
        world.pcrfs[at]
            .answer(&first, ResultCode::AUTHORIZATION_REJECTED)
            .await;
        world.pcrfs[at].answer(&second, ResultCode::SUCCESS).await;
        for result in [ResultCode::AUTHORIZATION_REJECTED, ResultCode::SUCCESS] {
            world.pgw.expect_result(command::CREDIT_CONTROL, result).await;
        }
        assert_eq!(world.dsr.pdra_sessions("binding", IMSI).len(), 1);
        assert_eq!(world.count(Event::Followed), 1);
    });
}

#[test]
fn one_that_waits_for_too_long_and_too_many_are_refused() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let more = "      wait: 300ms";
        let mut config = agent(folder.path(), &PCRFS, more);
        for application in &mut config.applications {
            application.pdra.as_mut().unwrap().repository.max_waiting = 2;
        }
        let mut world = World::of(config, &PCRFS).await;
        let (at, first) = world.reaches(&initial("pgw;1;1", IMSI)).await;
        for number in 2..=10 {
            world
                .pgw
                .send(initial(&format!("pgw;1;{number}"), IMSI).as_bytes())
                .await;
        }
        for _ in 2..=10 {
            world
                .pgw
                .expect_result(command::CREDIT_CONTROL, ResultCode::TOO_BUSY)
                .await;
        }
        assert_eq!(world.count(Event::Crowded), 9);
        // Another subscriber is served beside it.
        world.session(&initial("pgw;2;1", "001010000000002")).await;
        world.answers(at, &first, ResultCode::SUCCESS).await;
        assert_eq!(world.dsr.pdra_sessions("binding", IMSI).len(), 1);
    });
}

#[test]
fn a_request_that_comes_again_goes_to_the_pcrf_of_its_session() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "      wait: 60s").await;
        // Twice with one Session-Id, before the answer.
        let (first, second) = (initial("pgw;1;1", IMSI), initial("pgw;1;1", IMSI));
        let (at, first) = world.second_waits(&first, &second).await;
        world.serves_both(at, &first).await;
        // After the answer, with the T flag.
        let mut again = initial("pgw;1;1", IMSI);
        again.set_flags(again.flags().with(CommandFlags::RETRANSMITTED));
        assert_eq!(world.session(&again).await, at);
        let rows = world.dsr.pdra_sessions("binding", IMSI);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0]["rule"], "chosen by weight");
    });
}

#[test]
fn one_that_follows_with_the_session_id_of_another_session_is_refused() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "      wait: 60s").await;
        let mut other = client(&world.dsr, "pgw2.example").await;
        let at = world.session(&initial("pgw;1;1", IMSI)).await;
        let foreign = "001010000000002";
        world.session(&initial("pgw;2;1", foreign)).await;
        // Requests that come now follow this one to the PCRF of the subscriber.
        let (same, in_flight) = world.reaches(&initial("pgw;1;2", IMSI)).await;
        assert_eq!(same, at);
        let of_other = request(
            command::CREDIT_CONTROL,
            application::GX,
            "pgw2.example",
            "pgw;1;1",
            |b| {
                b.put(known::CC_REQUEST_TYPE, 1)
                    .put(known::CC_REQUEST_NUMBER, 0_u32);
                subscriber(b, 1, IMSI);
            },
        );
        other.send(of_other.as_bytes()).await;
        other
            .expect_result(command::CREDIT_CONTROL, ResultCode::INVALID_AVP_VALUE)
            .await;
        world.pgw.send(initial("pgw;2;1", IMSI).as_bytes()).await;
        world
            .pgw
            .expect_result(command::CREDIT_CONTROL, ResultCode::INVALID_AVP_VALUE)
            .await;
        assert_eq!(world.count(Event::Followed), 2);
        world.answers(at, &in_flight, ResultCode::SUCCESS).await;
        // The next request that the PCRF gets is none of those.
        let (_, next) = world.reaches(&initial("pgw;1;3", IMSI)).await;
        assert_eq!(next.require(known::SESSION_ID).unwrap(), "pgw;1;3");
    });
}

#[test]
fn many_sessions_of_one_subscriber_take_the_place_of_its_oldest() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "").await;
        let honest = world.session(&initial("honest", "001010000000002")).await;
        for number in 0..40 {
            world.session(&initial(&format!("pgw;1;{number}"), IMSI)).await;
        }
        assert_eq!(world.count(Event::KeptInstead), 24);
        assert_eq!(world.dsr.pdra_sessions("binding", IMSI).len(), 16);
        let rows = world.dsr.pdra_sessions("binding", "001010000000002");
        assert_eq!(rows[0]["pcrf"], PCRFS[honest]);
    });
}

#[test]
fn addresses_that_are_none_are_refused_with_the_avp() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "").await;
        let long = [&[0, 129][..], &[1; 16]].concat();
        let wrong: [(&[u8], u32); 4] = [
            (&long, 5004),
            (&[0, 0], 5004),
            (&[0, 8, 0x20], 5004),
            (&[0], 5014),
        ];
        for (prefix, code) in wrong {
            let request = ccr("pgw;1;1", 1, |b| {
                subscriber(b, 1, IMSI);
                b.put(known::FRAMED_IPV6_PREFIX, prefix);
            });
            world.pgw.send(request.as_bytes()).await;
            let answer = world
                .pgw
                .expect_result(command::CREDIT_CONTROL, ResultCode(code))
                .await;
            let failed = answer.require(known::FAILED_AVP).unwrap();
            assert!(matches!(failed.find(known::FRAMED_IPV6_PREFIX), Ok(Some(_))));
        }
        // Bits of the host are left out: nothing depends on them.
        let with_host = [
            &[0, 64, 0x20, 1, 0xd, 0xb8][..],
            &[0, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9],
        ]
        .concat();
        let request = ccr("pgw;1;1", 1, |b| {
            subscriber(b, 1, IMSI);
            b.put(known::FRAMED_IPV6_PREFIX, &with_host);
        });
        let at = world.session(&request).await;
        let rows = world.dsr.pdra_sessions("binding", "2001:db8:0:1::1");
        assert_eq!(rows[0]["pcrf"], PCRFS[at]);
        assert_eq!(world.count(Event::Invalid), 4);
    });
}

#[test]
fn a_subscriber_without_a_number_has_a_session_and_a_named_pcrf_is_taken() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "").await;
        for (position, host) in PCRFS.iter().enumerate() {
            let session = format!("pgw;1;{position}");
            let request = ccr(&session, 1, |b| {
                b.put(known::FRAMED_IP_ADDRESS, &[10, 0, 0, position as u8])
                    .put(known::DESTINATION_HOST, *host);
            });
            assert_eq!(world.session(&request).await, position);
            let rows = world.dsr.pdra_sessions("binding", &format!("10.0.0.{position}"));
            assert_eq!(
                (&rows[0]["pcrf"], &rows[0]["rule"]),
                (&(*host).into(), &"named by the request".into())
            );
            assert_eq!(rows[0]["client"], PGW);
        }
    });
}
