//! Sessions of Sd: those that a TDF begins, and those that its PCRF does.

use diameter::proto::known::{self, application, command};
use diameter::proto::{MessageBuilder, MessageMut, ResultCode};
use dsr_pdra::Event;

use super::support::{AF, IMSI, PCRFS, World, initial, request, subscriber};
use crate::support::run;

/// The TDF is the peer that is the AF elsewhere.
const TDF: &str = AF;

/// A CC-Request of the TDF of this type.
fn report(session: &str, kind: i32, fill: impl FnOnce(&mut MessageBuilder)) -> MessageMut {
    request(command::CREDIT_CONTROL, application::SD, TDF, session, |b| {
        b.put(known::CC_REQUEST_TYPE, kind)
            .put(known::CC_REQUEST_NUMBER, 0_u32);
        fill(b);
    })
}

/// A request by which a PCRF begins a session at the TDF.
fn session_request(at: usize, session: &str) -> MessageMut {
    request(command::TDF_SESSION, application::SD, PCRFS[at], session, |b| {
        b.put(known::DESTINATION_HOST, TDF);
        subscriber(b, 1, IMSI);
    })
}

#[test]
fn a_tdf_finds_the_pcrf_of_its_subscriber() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "      wait: 60s").await;
        let at = world.session(&initial("pgw;1;1", IMSI)).await;
        let unsolicited = report("tdf;1;1", 1, |b| subscriber(b, 1, IMSI));
        assert_eq!(world.of_af(&unsolicited).await, at);
    });
}

#[test]
fn a_session_that_a_pcrf_begins_at_a_tdf_leads_both_ways_until_it_ends() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "      wait: 60s").await;
        for at in [0, 1] {
            let session = format!("pcrf;1;{at}");
            world.pcrfs[at]
                .send(session_request(at, &session).as_bytes())
                .await;
            let arrived = world.af.expect(command::TDF_SESSION).await;
            world.af.answer(&arrived, ResultCode::SUCCESS).await;
            world.pcrfs[at]
                .expect_result(command::TDF_SESSION, ResultCode::SUCCESS)
                .await;
            // Neither names the other.
            assert_eq!(world.of_af(&report(&session, 2, |_| ())).await, at);
            let rar = request(command::RE_AUTH, application::SD, PCRFS[at], &session, |_| ());
            world.pcrfs[at].send(rar.as_bytes()).await;
            let arrived = world.af.expect(command::RE_AUTH).await;
            assert_eq!(arrived.require(known::DESTINATION_HOST).unwrap(), TDF);
            world.af.answer(&arrived, ResultCode::SUCCESS).await;
            world.pcrfs[at]
                .expect_result(command::RE_AUTH, ResultCode::SUCCESS)
                .await;
            assert_eq!(world.of_af(&report(&session, 3, |_| ())).await, at);
            world.af.send(report(&session, 2, |_| ()).as_bytes()).await;
            world
                .af
                .expect_result(command::CREDIT_CONTROL, ResultCode::UNKNOWN_SESSION_ID)
                .await;
        }
        assert_eq!((world.count(Event::Kept), world.count(Event::Ended)), (2, 2));
    });
}

#[test]
fn a_session_that_a_tdf_refuses_is_not_kept() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "      wait: 60s").await;
        world.pcrfs[0]
            .send(session_request(0, "pcrf;1;1").as_bytes())
            .await;
        let arrived = world.af.expect(command::TDF_SESSION).await;
        world.af.answer(&arrived, ResultCode::UNABLE_TO_COMPLY).await;
        world.pcrfs[0]
            .expect_result(command::TDF_SESSION, ResultCode::UNABLE_TO_COMPLY)
            .await;
        assert_eq!(world.count(Event::Kept), 0);
        assert!(world.dsr.pdra_sessions("session", "pcrf;1;1").is_empty());
    });
}

#[test]
fn what_a_tdf_sends_behind_its_answer_reaches_the_pcrf_behind_it() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut config = super::support::agent(folder.path(), &PCRFS, "      wait: 60s");
        config.workers = 2;
        let mut world = World::of(config, &PCRFS).await;
        for number in 0..20 {
            let session = format!("pcrf;1;{number}");
            world.pcrfs[0].send(session_request(0, &session).as_bytes()).await;
            let arrived = world.af.expect(command::TDF_SESSION).await;
            let mut answer = MessageBuilder::answer(&arrived);
            answer
                .put(known::RESULT_CODE, ResultCode::SUCCESS.0)
                .put(known::ORIGIN_HOST, TDF);
            let next = report(&session, 2, |_| ());
            let both = [answer.finish().unwrap().as_bytes(), next.as_bytes()].concat();
            world.af.send(&both).await;
            world.pcrfs[0]
                .expect_result(command::TDF_SESSION, ResultCode::SUCCESS)
                .await;
            let arrived = world.pcrfs[0].expect(command::CREDIT_CONTROL).await;
            world.pcrfs[0].answer(&arrived, ResultCode::SUCCESS).await;
            world
                .af
                .expect_result(command::CREDIT_CONTROL, ResultCode::SUCCESS)
                .await;
        }
    });
}
