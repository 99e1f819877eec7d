//! Subscribers that are held for requests whose pool or client goes: they are released.

use diameter::proto::known::{self, command};
use diameter::proto::{MessageMut, ResultCode};
use dsr_pdra::Event;

use super::support::{IMSI, PCRFS, World, ccr, client, initial, subscriber};
use crate::support::{run, until};

impl World {
    /// Subscribers with requests in flight that begin a session.
    fn held(&self) -> usize {
        let tables = self.dsr.applications();
        let beginning = tables.iter().find(|row| row.table == "beginning");
        beginning.unwrap().entries
    }
}

/// A request that begins a session of this APN.
fn of_apn(session: &str, apn: &str) -> MessageMut {
    ccr(session, 1, |b| {
        subscriber(b, 1, IMSI);
        b.put(known::CALLED_STATION_ID, apn);
    })
}

/// A router with a pool for the APN `ims` beside the one for all others.
async fn with_two_pools(folder: &std::path::Path) -> World {
    let mut config = super::support::agent(folder, &PCRFS, "      wait: 60s");
    let pools = &mut config.applications[0].pdra.as_mut().unwrap().pools;
    let mut ims = pools[0].clone();
    (ims.name, ims.apns) = ("ims".to_owned(), vec!["ims".to_owned()]);
    pools.push(ims);
    World::of(config, &PCRFS).await
}

/// Reloads the router with only these of its pools.
fn reload(world: &World, keep: impl Fn(&dsr_pdra::config::Pool) -> bool) {
    let mut config = world.dsr.snapshot().config.as_ref().clone();
    let pdra = config.applications[0].pdra.as_mut().unwrap();
    pdra.pools.retain(keep);
    world.dsr.reload(&config).unwrap();
}

#[test]
fn a_reload_that_removes_a_pool_keeps_what_is_in_flight_and_holds_no_subscriber() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = with_two_pools(folder.path()).await;
        let (first, second) = (of_apn("pgw;1;1", "ims"), of_apn("pgw;1;2", "ims"));
        let (at, asked) = world.second_waits(&first, &second).await;
        reload(&world, |pool| pool.name != "ims");
        // The PCRF has the session: it is kept as what it is, and the second one follows it.
        world.serves_both(at, &asked).await;
        for session in ["pgw;1;1", "pgw;1;2"] {
            let rows = world.dsr.pdra_sessions("session", session);
            assert_eq!(rows.len(), 1, "{session}");
            assert_eq!(rows[0]["pool"], "ims");
            assert_eq!(rows[0]["pcrf"], PCRFS[at]);
        }
        until(|| world.held() == 0).await;
        world.session(&of_apn("pgw;1;3", "ims")).await;
    });
}

#[test]
fn what_waits_for_a_pool_that_is_removed_is_refused_and_holds_no_subscriber() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = with_two_pools(folder.path()).await;
        let (first, second) = (of_apn("pgw;1;1", "other"), of_apn("pgw;1;2", "other"));
        let (at, asked) = world.second_waits(&first, &second).await;
        // No pool serves the APN any more.
        reload(&world, |pool| pool.name == "ims");
        world.answers(at, &asked, ResultCode::UNABLE_TO_COMPLY).await;
        world
            .pgw
            .expect_result(command::CREDIT_CONTROL, ResultCode::UNABLE_TO_DELIVER)
            .await;
        until(|| world.held() == 0).await;
    });
}

#[test]
fn a_request_whose_client_has_gone_while_it_waited_is_dropped_and_counted() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(folder.path(), "      wait: 60s").await;
        let mut other = client(&world.dsr, "pgw2.example").await;
        let (at, asked) = world.reaches(&initial("pgw;1;1", IMSI)).await;
        other.send(initial("pgw2;1;1", IMSI).as_bytes()).await;
        until(|| world.count(Event::Waited) == 1).await;
        crate::support::lost(&world.dsr, &mut other, "pgw2.example").await;
        // Its turn comes; no PCRF gets it, and the subscriber is free.
        world.answers(at, &asked, ResultCode::UNABLE_TO_COMPLY).await;
        until(|| world.dsr.count(dsr::Event::ParkedAlone) == 1 && world.held() == 0).await;
        let (at, next) = world.reaches(&initial("pgw;1;2", IMSI)).await;
        assert_eq!(next.require(known::SESSION_ID).unwrap(), "pgw;1;2");
        world.answers(at, &next, ResultCode::SUCCESS).await;
    });
}
