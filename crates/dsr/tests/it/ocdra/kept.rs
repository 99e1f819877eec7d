//! What is acknowledged survives the router, a reload and an OCS that is lost under load.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use diameter::proto::known::{self, application, command};
use diameter::proto::{MessageMut, ResultCode};
use dsr_ocdra::Event;
use testpeer::diameter::Peer;

use super::support::{
    CTF, IMSI, OCSS, TERMINATION, UPDATE, World, agent, answer, ccr, initial, is_again, later,
};
use crate::pdra::hiding::{lengthening, too_long};
use crate::support::{copy_store, run, until};

#[test]
fn every_session_that_was_acknowledged_is_there_after_a_kill() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (before, after) = (folder.path().join("before"), folder.path().join("after"));
        let id = |number: usize| format!("ctf;1;{number}");
        let mut at = Vec::new();
        {
            let mut world = World::new(&before).await;
            for number in 0..50 {
                let imsi = format!("00101{number:010}");
                at.push(world.served(&initial(&id(number), &imsi)).await);
            }
            // The router runs and has closed nothing.
            copy_store(&before, &after);
        }
        let mut world = World::new(&after).await;
        assert_eq!(world.entries("sessions"), 50);
        for (number, at) in at.into_iter().enumerate() {
            let update = later(&id(number), UPDATE, 1, OCSS[1 - at]);
            assert_eq!(world.served(&update).await, at);
        }
    });
}

#[test]
fn a_session_whose_client_got_a_failure_ends_at_its_ocs_also_after_a_kill() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (before, after) = (folder.path().join("before"), folder.path().join("after"));
        let hidden = |directory: &std::path::Path| {
            let mut config = agent(directory, "", "");
            config.topology_hiding = lengthening(application::CREDIT_CONTROL, OCSS);
            config
        };
        let is_end = |end: &MessageMut, is_again: bool| {
            assert_eq!(end.require(known::SESSION_ID).unwrap(), "ctf;1;1");
            assert_eq!(end.require(known::CC_REQUEST_TYPE).unwrap(), TERMINATION);
            assert_eq!(end.require(known::ORIGIN_HOST).unwrap(), CTF);
            assert_eq!(super::support::is_again(end), is_again);
        };
        let at = {
            let mut world = World::of(hidden(&before)).await;
            let (at, asked) = world.reaches(&initial("ctf;1;1", IMSI)).await;
            world.ocss[at].send(too_long(&asked, OCSS[at]).as_bytes()).await;
            world
                .ctf
                .expect_result(command::CREDIT_CONTROL, ResultCode::UNABLE_TO_COMPLY)
                .await;
            // It has answered: the T flag is not for that (RFC 6733 §3).
            for _ in 0..2 {
                let end = world.ocss[at].expect(command::CREDIT_CONTROL).await;
                is_end(&end, false);
                world.ocss[at].answer(&end, ResultCode::TOO_BUSY).await;
            }
            // The router runs and has closed nothing.
            copy_store(&before, &after);
            at
        };
        let mut world = World::of(hidden(&after)).await;
        let end = world.ocss[at].expect(command::CREDIT_CONTROL).await;
        is_end(&end, true);
        world.ocss[at].answer(&end, ResultCode::SUCCESS).await;
        until(|| world.count(Event::EndedForClient) == 1).await;
        assert_eq!(world.count(Event::LeftAtOcs), 0);
    });
}

#[test]
fn sessions_outlive_a_reload_that_takes_their_ocs_away() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path()).await;
        let at = world.served_with(&initial("ctf;1;1", IMSI), Some(1)).await;
        let mut config = world.dsr.snapshot().config.as_ref().clone();
        let ocdra = config.applications[0].ocdra.as_mut().unwrap();
        ocdra.pools[0].servers.remove(at);
        world.dsr.reload(&config).unwrap();
        // A worker takes the settings with one of its next turns.
        let mut number = 1;
        while world.served(&initial(&format!("ctf;2;{number}"), IMSI)).await == at {
            number += 1;
        }
        let update = later("ctf;1;1", UPDATE, 1, OCSS[at]);
        assert_eq!(world.served(&update).await, at);
        // It may still move to those that are left.
        let (same, arrived) = world.reaches(&later("ctf;1;1", UPDATE, 2, CTF)).await;
        assert_eq!(same, at);
        let busy = answer(&arrived, OCSS[at], ResultCode::TOO_BUSY, None);
        world.ocss[at].send(busy.as_bytes()).await;
        let arrived = world.ocss[1 - at].expect(command::CREDIT_CONTROL).await;
        world.answers(1 - at, &arrived, ResultCode::SUCCESS, None).await;
        assert_eq!(world.session("ctf;1;1").unwrap()["ocs"], OCSS[1 - at]);
    });
}

#[test]
fn a_reload_with_another_repository_is_refused_with_the_remedy() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (before, other) = (folder.path().join("before"), folder.path().join("other"));
        let mut world = World::new(&before).await;
        let at = world.served(&initial("ctf;1;1", IMSI)).await;
        let config = world.dsr.snapshot().config.as_ref().clone();
        let changed = |change: &dyn Fn(&mut dsr_ocdra::config::Ocdra)| {
            let mut config = config.clone();
            change(config.applications[0].ocdra.as_mut().unwrap());
            config
        };
        let refused = [
            changed(&|ocdra| ocdra.repository.store.embedded.directory.clone_from(&other)),
            changed(&|ocdra| ocdra.repository.max_sessions = 7),
        ];
        for config in &refused {
            let error = world.dsr.reload(config).unwrap_err().to_string();
            let has = |words: &str| error.contains(words);
            assert!(
                has("charging") && has("`repository`") && has("restart"),
                "{error}"
            );
        }
        assert!(!other.exists());
        // The same directory by another name is the same repository.
        let same = changed(&|ocdra| {
            ocdra.repository.store.embedded.directory = folder.path().join("./before/../before");
            ocdra.attempts = 1;
        });
        world.dsr.reload(&same).unwrap();
        assert_eq!(world.served(&later("ctf;1;1", UPDATE, 1, OCSS[1 - at])).await, at);
    });
}

#[test]
fn a_directory_has_one_application_and_must_be_usable() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut both = agent(folder.path(), "", "");
        let policy = crate::pdra::support::agent(folder.path(), &OCSS, "");
        both.applications.extend(policy.applications);
        // A check says so before the router starts, however the path is spelled.
        let again = folder.path().join(".");
        let policy = both.applications[1].pdra.as_mut().unwrap();
        policy.repository.store.embedded.directory = again;
        let mut faults = settings::Faults::default();
        dsr::check_files(&both, &mut faults);
        let faults = faults.into_vec();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(
            faults[0]
                .path
                .ends_with("pdra.repository.store.embedded.directory")
        );
        let error = dsr::start(both).err().unwrap().to_string();
        assert!(error.contains("policy"), "{error}");
        // Two of one kind share it with the same settings.
        let mut two = agent(folder.path(), "", "");
        two.applications.push(two.applications[0].clone());
        let mistakes = |config: &dsr::Config| {
            let mut faults = settings::Faults::default();
            dsr::check_files(config, &mut faults);
            faults.into_vec().len()
        };
        assert_eq!(mistakes(&two), 0);
        let other = two.applications[1].ocdra.as_mut().unwrap();
        other.repository.max_sessions = 7;
        assert_eq!(mistakes(&two), 1);
        let file = folder.path().join("file");
        std::fs::write(&file, "not a directory").unwrap();
        let error = dsr::start(agent(&file, "", "")).err().unwrap().to_string();
        assert!(error.contains("charging"), "{error}");
    });
}

/// What an OCS was sent: session, number, and whether with the T flag.
type Log = Rc<RefCell<Vec<(String, u32, bool)>>>;

/// An OCS that notes what it is sent, and answers; it breaks off with the `most`-th request.
async fn serve(mut peer: Peer, host: &'static str, failover: i32, most: usize, log: Log) {
    while let Some(message) = peer.next().await {
        if message.command() != command::CREDIT_CONTROL {
            peer.answer(&message, ResultCode::SUCCESS).await;
            continue;
        }
        let session = message.require(known::SESSION_ID).unwrap().to_owned();
        let number = message.require(known::CC_REQUEST_NUMBER).unwrap();
        log.borrow_mut().push((session, number, is_again(&message)));
        if log.borrow().len() >= most {
            return peer.break_off();
        }
        let answer = answer(&message, host, ResultCode::SUCCESS, Some(failover));
        peer.send(answer.as_bytes()).await;
    }
}

/// Requests of many sessions while the first OCS is lost. What each OCS was sent, and how many requests were answered with
/// success.
async fn lost_in_the_middle(failover: i32) -> ([Vec<(String, u32, bool)>; 2], usize, usize) {
    const SESSIONS: u32 = 60;
    const NUMBERS: u32 = 4;
    let folder = tempfile::tempdir().unwrap();
    let mut config = agent(folder.path(), "", "");
    config.workers = 2;
    let mut world = World::of(config).await;
    let logs = [Log::default(), Log::default()];
    for (at, peer) in world.ocss.drain(..).enumerate() {
        let most = if at == 0 { 70 } else { usize::MAX };
        tokio::task::spawn_local(serve(peer, OCSS[at], failover, most, logs[at].clone()));
    }
    let request = |session: u32, number: u32| -> MessageMut {
        let id = format!("ctf;1;{session}");
        match number {
            0 => initial(&id, &format!("00101{session:010}")),
            NUMBERS => ccr(&id, TERMINATION, number, |_| ()),
            _ => ccr(&id, UPDATE, number, |_| ()),
        }
    };
    // All sessions send their request of one number, and then wait for all answers.
    let (mut sent, mut succeeded) = (0, 0);
    for number in 0..=NUMBERS {
        for session in 0..SESSIONS {
            world.ctf.send(request(session, number).as_bytes()).await;
            sent += 1;
        }
        for _ in 0..SESSIONS {
            let answer = world.ctf.expect(command::CREDIT_CONTROL).await;
            let result = answer.require(known::RESULT_CODE).unwrap();
            assert!([2001, 3002, 5002].contains(&result), "{result}");
            succeeded += usize::from(result == 2001);
        }
    }
    (logs.map(|log| log.take()), sent, succeeded)
}

#[test]
fn when_an_ocs_is_lost_in_the_middle_each_request_is_at_one_ocs() {
    run(async {
        let (logs, sent, succeeded) = lost_in_the_middle(0).await;
        assert_eq!(logs[0].len(), 70, "the first OCS was lost");
        let mut met = HashMap::new();
        for (session, number, is_again) in logs.iter().flatten() {
            let before = met.insert((session, number), is_again);
            assert!(before.is_none(), "{session} {number} was sent twice");
            assert!(!is_again);
        }
        assert!(succeeded > sent / 3 && succeeded < sent, "{succeeded} of {sent}");
    });
}

#[test]
fn when_an_ocs_is_lost_in_the_middle_sessions_that_may_move_go_on() {
    run(async {
        let (logs, sent, succeeded) = lost_in_the_middle(1).await;
        assert_eq!(logs[0].len(), 70, "the first OCS was lost");
        let [first, second] = logs;
        let of_first: Vec<_> = first
            .iter()
            .map(|(session, number, _)| (session, number))
            .collect();
        // Only what the first may have got comes to the second with the T flag, and so does all that it has got as well.
        for (session, number, is_again) in &second {
            if of_first.contains(&(session, number)) {
                assert!(is_again, "{session} {number}");
            }
        }
        let of_second: Vec<_> = second
            .iter()
            .map(|(session, number, _)| (session, number))
            .collect();
        for (at, key) in of_second.iter().enumerate() {
            assert!(
                !of_second[..at].contains(key),
                "{key:?} was sent twice to the second"
            );
        }
        // The 60 that begin sessions are answered before the first OCS is lost.
        assert_eq!(succeeded, sent);
    });
}
