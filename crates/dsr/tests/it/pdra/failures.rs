//! PCRFs that are unreachable, lost, silent, busy, or not the one that was asked.

use diameter::proto::known::{self, command};
use diameter::proto::{CommandFlags, MessageBuilder, ResultCode};
use dsr_pdra::Event;

use super::support::{IMSI, PCRFS, World, aar, agent, initial, subscriber};
use crate::support::{REALM, lost, run, until};

/// Lets the connection of a PCRF end.
async fn lose(world: &mut World, at: usize) {
    lost(&world.dsr, &mut world.pcrfs[at], &world.servers[at].host).await;
}

#[test]
fn a_pcrf_that_is_unreachable_is_passed_over_and_its_subscribers_are_bound_anew_with_their_next_session() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "").await;
        let at = world.session(&initial("pgw;1;1", IMSI)).await;
        lose(&mut world, at).await;
        let by_imsi = |session: &str| aar(session, |b| subscriber(b, 1, IMSI));
        world.af.send(by_imsi("af;1;1").as_bytes()).await;
        world
            .af
            .expect_result(command::AA, ResultCode::UNABLE_TO_DELIVER)
            .await;
        assert_eq!(world.count(Event::Unreachable), 1);
        let left = 1 - at;
        world.pgw.send(initial("pgw;1;2", IMSI).as_bytes()).await;
        let arrived = world.pcrfs[left].expect(command::CREDIT_CONTROL).await;
        assert!(!arrived.flags().contains(CommandFlags::RETRANSMITTED));
        world.answers(left, &arrived, ResultCode::SUCCESS).await;
        assert_eq!(world.count(Event::Rebound), 1);
        // The newest session counts for an AF, and the older one stays where it is.
        world.af.send(by_imsi("af;1;2").as_bytes()).await;
        let arrived = world.pcrfs[left].expect(command::AA).await;
        world.pcrfs[left].answer(&arrived, ResultCode::SUCCESS).await;
        world.af.expect_result(command::AA, ResultCode::SUCCESS).await;
        let rows = world.dsr.pdra_sessions("session", "pgw;1;1");
        assert_eq!(rows[0]["pcrf"], PCRFS[at]);
    });
}

#[test]
fn a_request_that_comes_again_beside_one_in_flight_goes_to_its_own_pcrf() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "").await;
        let at = world.session(&initial("pgw;1;1", IMSI)).await;
        lose(&mut world, at).await;
        let left = 1 - at;
        world.pgw.send(initial("pgw;1;2", IMSI).as_bytes()).await;
        let arrived = world.pcrfs[left].expect(command::CREDIT_CONTROL).await;
        world.answers(left, &arrived, ResultCode::SUCCESS).await;
        world.pcrfs[at] = world.servers[at].relay(&world.dsr).await;
        let (moved, in_flight) = world.reaches(&initial("pgw;1;3", IMSI)).await;
        assert_eq!(moved, left);
        let mut again = initial("pgw;1;1", IMSI);
        again.set_flags(again.flags().with(CommandFlags::RETRANSMITTED));
        assert_eq!(world.session(&again).await, at);
        // The others do not follow it.
        let (follows, second) = world.reaches(&initial("pgw;1;4", IMSI)).await;
        assert_eq!(follows, left);
        world.answers(left, &in_flight, ResultCode::SUCCESS).await;
        world.answers(left, &second, ResultCode::SUCCESS).await;
        assert_eq!(world.session(&initial("pgw;1;5", IMSI)).await, left);
    });
}

#[test]
fn settings_keep_a_subscriber_at_its_pcrf_and_say_what_an_af_is_answered() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let more = "      rebind: never\n      onUnreachable: {resultCode: 3004, message: later}\n      onNotFound: {answer: {resultCode: 5012}}";
        let mut world = World::new(folder.path(), more).await;
        let at = world.session(&initial("pgw;1;1", IMSI)).await;
        lose(&mut world, at).await;
        world.pgw.send(initial("pgw;1;2", IMSI).as_bytes()).await;
        world
            .pgw
            .expect_result(command::CREDIT_CONTROL, ResultCode::UNABLE_TO_DELIVER)
            .await;
        for (session, imsi, result) in [
            ("af;1;1", IMSI, ResultCode::TOO_BUSY),
            ("af;1;2", "001010000000009", ResultCode::UNABLE_TO_COMPLY),
        ] {
            world
                .af
                .send(aar(session, |b| subscriber(b, 1, imsi)).as_bytes())
                .await;
            world.af.expect_result(command::AA, result).await;
        }
    });
}

#[test]
fn when_no_pcrf_is_reachable_the_subscriber_is_free_again() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "").await;
        for at in 0..2 {
            lose(&mut world, at).await;
        }
        for number in 0..3 {
            let request = initial(&format!("pgw;1;{number}"), IMSI);
            world.pgw.send(request.as_bytes()).await;
            world
                .pgw
                .expect_result(command::CREDIT_CONTROL, ResultCode::UNABLE_TO_DELIVER)
                .await;
        }
        let beginning = world.dsr.applications();
        let beginning = beginning.iter().find(|row| row.table == "beginning").unwrap();
        assert_eq!(beginning.entries, 0);
        world.pcrfs[1] = world.servers[1].relay(&world.dsr).await;
        world.pgw.send(initial("pgw;1;9", IMSI).as_bytes()).await;
        let arrived = world.pcrfs[1].expect(command::CREDIT_CONTROL).await;
        world.answers(1, &arrived, ResultCode::SUCCESS).await;
    });
}

#[test]
fn a_pcrf_that_is_lost_with_a_request_leaves_it_to_another_with_the_t_flag() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "").await;
        let (at, _) = world.reaches(&initial("pgw;1;1", IMSI)).await;
        lose(&mut world, at).await;
        let left = 1 - at;
        let arrived = world.pcrfs[left].expect(command::CREDIT_CONTROL).await;
        assert!(arrived.flags().contains(CommandFlags::RETRANSMITTED));
        assert_eq!(arrived.require(known::DESTINATION_HOST).unwrap(), PCRFS[left]);
        world.answers(left, &arrived, ResultCode::SUCCESS).await;
        let rows = world.dsr.pdra_sessions("binding", IMSI);
        assert_eq!(rows[0]["pcrf"], PCRFS[left]);
        assert_eq!(rows[0]["rule"], "chosen after another PCRF failed");
    });
}

#[test]
fn a_pcrf_that_never_answers_holds_nothing_for_good() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut config = agent(folder.path(), &PCRFS, "      attempts: 1");
        config.routing.transaction.answer = settings::Period::from_millis(500);
        let mut world = World::of(config, &PCRFS).await;
        let (_, silent) = world.reaches(&initial("pgw;1;1", IMSI)).await;
        world
            .pgw
            .expect_result(command::CREDIT_CONTROL, ResultCode::UNABLE_TO_DELIVER)
            .await;
        let beginning = || {
            let rows = world.dsr.applications();
            rows.iter()
                .any(|row| row.table == "beginning" && row.entries == 0)
        };
        until(beginning).await;
        assert!(world.dsr.pdra_sessions("binding", IMSI).is_empty());
        // Its answer comes after all: nothing is bound by it.
        for pcrf in &mut world.pcrfs {
            pcrf.answer(&silent, ResultCode::SUCCESS).await;
        }
        assert!(world.dsr.pdra_sessions("binding", IMSI).is_empty());
    });
}

#[test]
fn a_pool_that_loses_all_of_its_pcrfs_leaves_the_others_alone() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut config = agent(folder.path(), &PCRFS, "");
        let pools = &mut config.applications[0].pdra.as_mut().unwrap().pools;
        let mut ims = pools[0].clone();
        (ims.name, ims.apns) = ("ims".to_owned(), vec!["ims".to_owned()]);
        ims.pcrfs.truncate(1);
        pools[0].pcrfs.remove(0);
        pools.push(ims);
        let mut world = World::of(config, &PCRFS).await;
        let of_apn = |session: &str, apn: &str| {
            super::support::ccr(session, 1, |b| {
                subscriber(b, 1, IMSI);
                b.put(known::CALLED_STATION_ID, apn);
            })
        };
        assert_eq!(world.session(&of_apn("pgw;1;1", "ims")).await, 0);
        assert_eq!(world.session(&of_apn("pgw;1;2", "internet")).await, 1);
        lose(&mut world, 0).await;
        for session in ["pgw;2;1", "pgw;2;2"] {
            world.pgw.send(of_apn(session, "ims").as_bytes()).await;
            world
                .pgw
                .expect_result(command::CREDIT_CONTROL, ResultCode::UNABLE_TO_DELIVER)
                .await;
            world
                .pgw
                .send(of_apn(&format!("{session};b"), "internet").as_bytes())
                .await;
            let arrived = world.pcrfs[1].expect(command::CREDIT_CONTROL).await;
            world.answers(1, &arrived, ResultCode::SUCCESS).await;
        }
        // The pool is back, and so is the session that was there.
        world.pcrfs[0] = world.servers[0].relay(&world.dsr).await;
        assert_eq!(world.session(&super::support::ccr("pgw;1;1", 2, |_| ())).await, 0);
        assert_eq!(world.session(&of_apn("pgw;1;3", "ims")).await, 0);
    });
}

#[test]
fn a_busy_pcrf_gives_a_subscriber_without_a_session_to_another() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "").await;
        let (at, arrived) = world.reaches(&initial("pgw;1;1", IMSI)).await;
        world.pcrfs[at].answer(&arrived, ResultCode::TOO_BUSY).await;
        let left = 1 - at;
        let arrived = world.pcrfs[left].expect(command::CREDIT_CONTROL).await;
        world.answers(left, &arrived, ResultCode::SUCCESS).await;
        // One with a session stays.
        let (again, arrived) = world.reaches(&initial("pgw;1;2", IMSI)).await;
        assert_eq!(again, left);
        world.answers(left, &arrived, ResultCode::TOO_BUSY).await;
    });
}

#[test]
fn a_pcrf_that_cannot_be_reached_behind_a_relay_is_chosen_last() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "      suspect: 1h").await;
        let (at, arrived) = world.reaches(&initial("pgw;1;1", IMSI)).await;
        world.pcrfs[at]
            .answer(&arrived, ResultCode::UNABLE_TO_DELIVER)
            .await;
        let left = 1 - at;
        let arrived = world.pcrfs[left].expect(command::CREDIT_CONTROL).await;
        world
            .answers(left, &arrived, ResultCode::AUTHORIZATION_REJECTED)
            .await;
        // It has no session; its first choice would be the other one.
        assert_eq!(world.session(&initial("pgw;1;2", IMSI)).await, left);
    });
}

#[test]
fn an_answer_of_another_host_binds_to_a_pcrf_of_a_pool_alone() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "").await;
        let from = |request: &diameter::proto::MessageMut, host: &str| {
            let mut answer = MessageBuilder::answer(request);
            let origin = diameter::proto::Origin::new(host, REALM);
            answer.result(ResultCode::SUCCESS, &origin);
            answer.finish().unwrap()
        };
        let (at, arrived) = world.reaches(&initial("pgw;1;1", IMSI)).await;
        let other = PCRFS[1 - at];
        world.pcrfs[at].send(from(&arrived, other).as_bytes()).await;
        world
            .pgw
            .expect_result(command::CREDIT_CONTROL, ResultCode::SUCCESS)
            .await;
        assert_eq!(world.dsr.pdra_sessions("session", "pgw;1;1")[0]["pcrf"], other);
        let (at, arrived) = world.reaches(&initial("pgw;2;1", "001010000000002")).await;
        world.pcrfs[at]
            .send(from(&arrived, "stranger.example").as_bytes())
            .await;
        world
            .pgw
            .expect_result(command::CREDIT_CONTROL, ResultCode::SUCCESS)
            .await;
        assert_eq!(
            world.dsr.pdra_sessions("session", "pgw;2;1")[0]["pcrf"],
            PCRFS[at]
        );
        assert_eq!(world.count(Event::AnsweredElsewhere), 2);
    });
}
