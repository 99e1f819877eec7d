//! Sessions and events: which OCS gets them, and what is kept.

use std::collections::HashSet;

use diameter::proto::known::{self, command};
use diameter::proto::{MessageBuilder, ResultCode};
use dsr_ocdra::Event;

use super::support::{
    CTF, EVENT, IMSI, INITIAL, OCSS, TERMINATION, UPDATE, World, again, agent, answer, ccr, initial, later,
    report,
};
use crate::pdra::support::subscriber;
use crate::support::{run, until};

#[test]
fn a_session_stays_at_its_ocs_whatever_host_its_requests_name() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path()).await;
        let at = world.served(&initial("ctf;1;1", IMSI)).await;
        let row = world.session("ctf;1;1").unwrap();
        assert_eq!(row["ocs"], OCSS[at]);
        assert_eq!(row["rule"], "chosen by weight");
        assert_eq!(world.entries("sessions"), 1);
        for (number, host) in [(1, OCSS[1 - at]), (2, OCSS[at]), (4, "other.example")] {
            let update = later("ctf;1;1", UPDATE, number, host);
            assert_eq!(world.served(&update).await, at, "{host}");
        }
        let bare = ccr("ctf;1;1", UPDATE, 5, |_| ());
        assert_eq!(world.served(&bare).await, at);
        for command in [command::RE_AUTH, command::ABORT_SESSION] {
            for host in [CTF, "other.example"] {
                world
                    .reports(at, command, "ctf;1;1", host, ResultCode::SUCCESS)
                    .await;
            }
        }
        let end = later("ctf;1;1", TERMINATION, 6, OCSS[1 - at]);
        assert_eq!(world.served(&end).await, at);
        world.ends("ctf;1;1").await;
        assert_eq!(world.count(Event::Kept), 1);
        assert_eq!(world.count(Event::Ended), 1);
        let update = later("ctf;1;1", UPDATE, 7, OCSS[at]);
        world.is_refused(&update, ResultCode::UNKNOWN_SESSION_ID).await;
    });
}

#[test]
fn subscribers_share_the_ocss_and_the_sessions_of_one_meet() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path()).await;
        let mut met = HashSet::new();
        for number in 0..20 {
            let imsi = format!("00101{number:010}");
            let at = world.served(&initial(&format!("a;{number}"), &imsi)).await;
            assert_eq!(world.served(&initial(&format!("b;{number}"), &imsi)).await, at);
            met.insert(at);
        }
        assert_eq!(met.len(), 2);
    });
}

#[test]
fn an_event_has_an_ocs_and_keeps_nothing() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path()).await;
        let event = |number| {
            ccr(&format!("ctf;1;{number}"), EVENT, 0, |b| {
                subscriber(b, 1, IMSI);
            })
        };
        let at = world.served(&event(1)).await;
        assert_eq!(world.served(&again(event(1))).await, at);
        assert!(world.session("ctf;1;1").is_none());
        assert_eq!([world.entries("sessions"), world.entries("beginning")], [0, 0]);
        // One that is not delivered goes to the other OCS; what an OCS refuses is final.
        let (at, arrived) = world.reaches(&event(2)).await;
        let busy = answer(&arrived, OCSS[at], ResultCode::TOO_BUSY, None);
        world.ocss[at].send(busy.as_bytes()).await;
        let arrived = world.ocss[1 - at].expect(command::CREDIT_CONTROL).await;
        world
            .answers(1 - at, &arrived, ResultCode::AUTHORIZATION_REJECTED, None)
            .await;
        assert_eq!(world.count(Event::Kept), 0);
    });
}

#[test]
fn what_comes_again_goes_to_the_ocs_of_its_session() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path()).await;
        // Twice before the answer: the second waits for the first.
        let request = initial("ctf;1;1", IMSI);
        let (at, first) = world.reaches(&request).await;
        world.ctf.send(again(request).as_bytes()).await;
        world.answers(at, &first, ResultCode::SUCCESS, None).await;
        let second = world.ocss[at].expect(command::CREDIT_CONTROL).await;
        world.answers(at, &second, ResultCode::SUCCESS, None).await;
        // After the answer, with another choice by Destination-Host.
        let named = ccr("ctf;1;1", INITIAL, 0, |b| {
            subscriber(b, 1, IMSI);
            b.put(known::DESTINATION_HOST, OCSS[1 - at]);
        });
        assert_eq!(world.served(&again(named)).await, at);
        let row = world.session("ctf;1;1").unwrap();
        assert_eq!(
            (&row["ocs"], &row["rule"]),
            (&OCSS[at].into(), &"chosen by weight".into())
        );
        assert_eq!((world.count(Event::Kept), world.count(Event::Chosen)), (1, 1));
        until(|| world.entries("beginning") == 0).await;
    });
}

#[test]
fn a_session_that_is_refused_is_not_kept() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path()).await;
        // END_USER_SERVICE_DENIED, CREDIT_CONTROL_NOT_APPLICABLE, CREDIT_LIMIT_REACHED, USER_UNKNOWN, RATING_FAILED.
        for (number, code) in [4010, 4011, 4012, 5030, 5031].into_iter().enumerate() {
            let id = format!("ctf;1;{number}");
            let (at, arrived) = world.reaches(&initial(&id, IMSI)).await;
            world.answers(at, &arrived, ResultCode(code), None).await;
            assert!(world.session(&id).is_none(), "{code}");
        }
        assert_eq!([world.entries("sessions"), world.entries("beginning")], [0, 0]);
    });
}

#[test]
fn a_request_of_the_ocs_that_overtakes_the_answer_waits_for_it() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path()).await;
        let (at, arrived) = world.reaches(&initial("ctf;1;1", IMSI)).await;
        let report = report(at, command::RE_AUTH, "ctf;1;1", CTF);
        world.ocss[at].send(report.as_bytes()).await;
        world.answers(at, &arrived, ResultCode::SUCCESS, None).await;
        let report = world.ctf.expect(command::RE_AUTH).await;
        // The client may not know its session yet: that does not end it.
        world.ctf.answer(&report, ResultCode::UNKNOWN_SESSION_ID).await;
        world.ocss[at]
            .expect_result(command::RE_AUTH, ResultCode::UNKNOWN_SESSION_ID)
            .await;
        assert_eq!(world.served(&later("ctf;1;1", UPDATE, 1, CTF)).await, at);
    });
}

#[test]
fn a_pool_serves_its_realms_and_a_request_may_name_an_ocs_of_it() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut config = agent(folder.path(), "", "");
        let ocdra = config.applications[0].ocdra.as_mut().unwrap();
        let mut other = ocdra.pools[0].clone();
        let last = ocdra.pools[0].servers.pop().unwrap();
        (other.name, other.realms, other.servers) = (
            "roaming".to_owned(),
            vec!["Roaming.example".to_owned()],
            vec![last],
        );
        ocdra.pools.push(other);
        let mut world = World::of(config).await;
        let of_realm = |id: &str, realm: &str| {
            let request = initial(id, IMSI);
            let mut builder = MessageBuilder::new(request.header());
            for avp in request.avps().map(Result::unwrap) {
                if !avp.is(known::DESTINATION_REALM) {
                    builder.copy(&avp);
                }
            }
            builder.put(known::DESTINATION_REALM, realm);
            builder.finish().unwrap()
        };
        for number in 0..3 {
            let id = |realm: &str| format!("{realm};{number}");
            let roaming = of_realm(&id("r"), "roaming.EXAMPLE");
            assert_eq!(world.served(&roaming).await, 1);
            assert_eq!(world.served(&of_realm(&id("h"), "home.example")).await, 0);
        }
        assert_eq!(world.session("r;0").unwrap()["pool"], "roaming");
    });
}

#[test]
fn a_request_may_name_an_ocs_of_the_pool() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path()).await;
        for (at, host) in OCSS.into_iter().enumerate() {
            let id = format!("ctf;1;{at}");
            let named = ccr(&id, INITIAL, 0, |b| {
                subscriber(b, 1, IMSI);
                b.put(known::DESTINATION_HOST, host);
            });
            assert_eq!(world.served(&named).await, at);
            assert_eq!(world.session(&id).unwrap()["rule"], "named by the request");
        }
    });
}
