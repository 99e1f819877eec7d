//! Requests that are wrong, of unknown sessions, of others' sessions, or too many.

use diameter::proto::known::{self, application, command};
use diameter::proto::{MessageBuilder, MessageMut, ResultCode};
use dsr_ocdra::Event;

use super::support::{
    CTF, EVENT, IMSI, INITIAL, OCSS, TERMINATION, UPDATE, World, again, agent, ccr, client, initial, later,
    report,
};
use crate::pdra::support::request;
use crate::support::{invalid_settings, run, until};

/// A CC-Request with these AVPs after its names.
fn bare(fill: impl FnOnce(&mut MessageBuilder)) -> MessageMut {
    request(
        command::CREDIT_CONTROL,
        application::CREDIT_CONTROL,
        CTF,
        "ctf;1;1",
        fill,
    )
}

#[test]
fn requests_that_lack_an_avp_or_have_a_wrong_one_are_refused_with_it() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path()).await;
        let number = |b: &mut MessageBuilder| {
            b.put(known::CC_REQUEST_NUMBER, 0_u32);
        };
        let kind = |kind: i32| {
            move |b: &mut MessageBuilder| {
                b.put(known::CC_REQUEST_TYPE, kind);
            }
        };
        let typed = |wrong: i32| {
            bare(|b| {
                kind(wrong)(b);
                number(b);
            })
        };
        let mut wrong = vec![
            (bare(number), ResultCode::MISSING_AVP),
            (bare(|_| ()), ResultCode::MISSING_AVP),
            (typed(0), ResultCode::INVALID_AVP_VALUE),
            (typed(5), ResultCode::INVALID_AVP_VALUE),
            (typed(-1), ResultCode::INVALID_AVP_VALUE),
            (initial(&"x".repeat(513), IMSI), ResultCode::INVALID_AVP_VALUE),
            (initial("", IMSI), ResultCode::INVALID_AVP_VALUE),
        ];
        for of_type in [INITIAL, UPDATE, TERMINATION, EVENT] {
            wrong.push((bare(kind(of_type)), ResultCode::MISSING_AVP));
        }
        let count = wrong.len() as u64;
        for (request, result) in wrong {
            let answer = world.is_refused(&request, result).await;
            assert!(answer.get(known::FAILED_AVP).unwrap().is_some(), "{request:?}");
        }
        assert_eq!(world.count(Event::Invalid), count);
        assert_eq!([world.entries("sessions"), world.entries("beginning")], [0, 0]);
        world.served(&initial("ctf;1;1", IMSI)).await;
    });
}

#[test]
fn requests_of_unknown_sessions_are_answered() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path()).await;
        let unknown = ResultCode::UNKNOWN_SESSION_ID;
        for kind in [UPDATE, TERMINATION] {
            for request in [
                later("ctf;9;9", kind, 1, OCSS[0]),
                ccr("ctf;9;9", kind, 1, |_| ()),
            ] {
                world.is_refused(&request, unknown).await;
                world.is_refused(&again(request), unknown).await;
            }
        }
        for command in [command::RE_AUTH, command::ABORT_SESSION] {
            let report = report(0, command, "ctf;9;9", CTF);
            world.ocss[0].send(report.as_bytes()).await;
            world.ocss[0].expect_result(command, unknown).await;
        }
        assert_eq!(world.count(Event::UnknownSession), 10);
        assert_eq!(world.entries("beginning"), 0);
    });
}

#[test]
fn requests_of_unknown_sessions_are_routed_where_the_settings_say_so() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let config = agent(folder.path(), "", "      unknownSession: route");
        let mut world = World::of(config).await;
        for at in [0, 1] {
            let update = later("ctf;9;9", UPDATE, 1, OCSS[at]);
            assert_eq!(world.served(&update).await, at);
        }
        world
            .reports(1, command::RE_AUTH, "ctf;9;9", CTF, ResultCode::SUCCESS)
            .await;
        assert_eq!(world.entries("sessions"), 0);
    });
}

#[test]
fn a_session_is_that_of_its_client() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path()).await;
        let at = world.served(&initial("ctf;1;1", IMSI)).await;
        let mut other = client(&world.dsr, "mallory.example").await;
        let of_other = |kind: i32| {
            let command = command::CREDIT_CONTROL;
            let host = "mallory.example";
            request(command, application::CREDIT_CONTROL, host, "ctf;1;1", |b| {
                b.put(known::CC_REQUEST_TYPE, kind)
                    .put(known::CC_REQUEST_NUMBER, 1_u32);
            })
        };
        other.send(of_other(INITIAL).as_bytes()).await;
        other
            .expect_result(command::CREDIT_CONTROL, ResultCode::INVALID_AVP_VALUE)
            .await;
        // Beside a request of the client as well, which others with its Session-Id follow.
        let (same, repeated) = world.reaches(&again(initial("ctf;1;1", IMSI))).await;
        assert_eq!(same, at);
        for kind in [INITIAL, UPDATE, TERMINATION] {
            other.send(of_other(kind).as_bytes()).await;
            other
                .expect_result(command::CREDIT_CONTROL, ResultCode::INVALID_AVP_VALUE)
                .await;
        }
        assert_eq!(world.count(Event::Invalid), 4);
        world.answers(at, &repeated, ResultCode::SUCCESS, None).await;
        let update = later("ctf;1;1", UPDATE, 1, OCSS[at]);
        assert_eq!(world.served(&update).await, at);
    });
}

#[test]
fn a_session_that_its_ocs_does_not_know_ends() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path()).await;
        for (number, kind) in [INITIAL, UPDATE, TERMINATION].into_iter().enumerate() {
            let id = format!("ctf;1;{number}");
            world.served(&initial(&id, IMSI)).await;
            let (at, arrived) = world.reaches(&ccr(&id, kind, 1, |_| ())).await;
            world
                .answers(at, &arrived, ResultCode::UNKNOWN_SESSION_ID, None)
                .await;
            world.ends(&id).await;
        }
    });
}

#[test]
fn a_result_code_of_a_vendor_ends_no_session_and_leads_to_no_other_ocs() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::of(agent(folder.path(), ", shared: true", "")).await;
        let at = world.served(&initial("ctf;1;1", IMSI)).await;
        // The numbers of DIAMETER_UNKNOWN_SESSION_ID, DIAMETER_UNABLE_TO_DELIVER and DIAMETER_TOO_BUSY.
        for (number, code) in [(1, 5002), (2, 3002), (3, 3004)] {
            let (same, arrived) = world.reaches(&later("ctf;1;1", UPDATE, number, CTF)).await;
            assert_eq!(same, at);
            let mut answer = MessageBuilder::answer(&arrived);
            answer.group(known::EXPERIMENTAL_RESULT, |group| {
                group
                    .put(known::VENDOR_ID, 10415_u32)
                    .put(known::EXPERIMENTAL_RESULT_CODE, code);
            });
            answer.put(known::ORIGIN_HOST, OCSS[at]);
            world.ocss[at].send(answer.finish().unwrap().as_bytes()).await;
            world.ctf.expect(command::CREDIT_CONTROL).await;
        }
        assert_eq!((world.count(Event::Ended), world.count(Event::Again)), (0, 0));
    });
}

#[test]
fn beyond_the_bound_sessions_do_not_begin_and_the_others_go_on() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut config = agent(folder.path(), "", "");
        let ocdra = config.applications[0].ocdra.as_mut().unwrap();
        ocdra.repository.max_sessions = 2;
        let mut world = World::of(config).await;
        for id in ["ctf;1;1", "ctf;1;2"] {
            world.served(&initial(id, IMSI)).await;
        }
        world
            .is_refused(&initial("ctf;1;3", IMSI), ResultCode::TOO_BUSY)
            .await;
        assert_eq!(world.count(Event::Full), 1);
        world.served(&again(initial("ctf;1;1", IMSI))).await;
        world.served(&ccr("ctf;1;4", EVENT, 0, |_| ())).await;
        world.served(&later("ctf;1;2", TERMINATION, 1, OCSS[0])).await;
        world.ends("ctf;1;2").await;
        world.served(&initial("ctf;1;3", IMSI)).await;
        until(|| world.entries("beginning") == 0).await;
    });
}

#[test]
fn requests_do_not_live_as_long_as_their_session_ids_are_held() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = agent(folder.path(), "", "");
    config.routing.transaction.lifetime = settings::Period::from_secs(59);
    assert!(invalid_settings(&config).is_empty());
    config.routing.transaction.lifetime = settings::Period::from_secs(60);
    assert_eq!(invalid_settings(&config), ["applications[0].ocdra"]);
}
