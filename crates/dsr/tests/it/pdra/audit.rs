//! Stale sessions, about which gateways are asked.

use std::path::Path;

use diameter::proto::known::{self, command};
use diameter::proto::{MessageMut, ResultCode};
use dsr::Config;
use dsr_pdra::Event;
use settings::{Percent, Period};

use super::support::{IMSI, PCRFS, PGW, World, aar, agent, ccr, initial, subscriber};
use crate::support::run;

/// A router whose sessions of an earlier run are stale. It is congested, so that it asks about none yet.
async fn congested(folder: &Path, earlier: &[MessageMut]) -> World {
    let (before, after) = (folder.join("before"), folder.join("after"));
    let config = |directory: &Path, minutes: u64, rate: u32| {
        let mut config = agent(directory, &PCRFS, "");
        let repository = &mut config.applications[0].pdra.as_mut().unwrap().repository;
        repository.stale = Period::from_secs(60 * minutes);
        repository.audit_rate = rate;
        config
    };
    {
        // They stay for 30 minutes, which is less than the hour that is left of one that is stale.
        let mut world = World::of(config(&before, 30, 0), &PCRFS).await;
        for request in earlier {
            world.session(request).await;
        }
        crate::support::copy_store(&before, &after);
    }
    let mut config = config(&after, 60, 100);
    config.overload.assumed_load = Some(Percent::new(95.0));
    World::of(config, &PCRFS).await
}

/// Ends the congestion.
fn calm(world: &World) {
    let mut config: Config = world.dsr.snapshot().config.as_ref().clone();
    config.overload.assumed_load = Some(Percent::new(0.0));
    world.dsr.reload(&config).unwrap();
}

/// When a session expires, as its page says.
fn expires(world: &World, session: &str) -> String {
    let rows = world.dsr.pdra_sessions("session", session);
    rows[0]["expires"].as_str().unwrap().to_owned()
}

#[test]
fn a_stale_session_is_renewed_or_removed_as_its_gateway_says() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let numbers = ["1", "2", "3"];
        let earlier = numbers.map(|number| {
            ccr(&format!("pgw;1;{number}"), 1, |b| {
                subscriber(b, 1, &format!("{IMSI}{number}")[1..]);
            })
        });
        let mut world = congested(folder.path(), &earlier).await;
        calm(&world);
        let mut asked = Vec::new();
        for _ in numbers {
            let rar = world.pgw.expect(command::RE_AUTH).await;
            assert_eq!(rar.require(known::DESTINATION_HOST).unwrap(), PGW);
            assert!(PCRFS.contains(&rar.require(known::ORIGIN_HOST).unwrap()));
            assert_eq!(
                rar.require(known::AUTH_APPLICATION_ID).unwrap(),
                known::application::GX
            );
            assert_eq!(rar.require(known::RE_AUTH_REQUEST_TYPE).unwrap(), 0);
            asked.push(rar);
        }
        let sessions = asked.iter().map(|rar| rar.require(known::SESSION_ID).unwrap());
        let mut sessions: Vec<String> = sessions.map(str::to_owned).collect();
        let before = expires(&world, &sessions[0]);
        let results = [
            ResultCode::SUCCESS,
            ResultCode::UNKNOWN_SESSION_ID,
            ResultCode::UNABLE_TO_COMPLY,
        ];
        for (rar, result) in asked.iter().zip(results) {
            world.pgw.answer(rar, result).await;
        }
        world.holds(2).await;
        crate::support::until(|| expires(&world, &sessions[0]) > before).await;
        // The binding has gone with its last session.
        let ended = sessions.remove(1);
        assert!(world.dsr.pdra_sessions("session", &ended).is_empty());
        let number = ended.rsplit_once(';').unwrap().1;
        let of_af = aar("af;1;1", |b| subscriber(b, 1, &format!("{IMSI}{number}")[1..]));
        world.is_unknown(&of_af).await;
        assert_eq!(
            (world.count(Event::Audited), world.count(Event::AuditEnded)),
            (3, 1)
        );
        // What exists, and what is not known, stay.
        for id in &sessions {
            assert!(!expires(&world, id).is_empty());
        }
    });
}

#[test]
fn the_audit_waits_while_the_router_is_congested() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = congested(folder.path(), &[initial("pgw;1;1", IMSI)]).await;
        crate::support::until(|| world.count(Event::AuditSuspended) > 0).await;
        assert_eq!(world.count(Event::Audited), 0);
        calm(&world);
        let rar = world.pgw.expect(command::RE_AUTH).await;
        world.pgw.answer(&rar, ResultCode::UNKNOWN_SESSION_ID).await;
        world.holds(0).await;
    });
}
