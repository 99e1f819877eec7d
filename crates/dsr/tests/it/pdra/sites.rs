//! Routers at two sites that are cut off from one another, each on a database of its own that replicates to the other.

use std::time::Duration;

use diameter::proto::known::{self, command};
use diameter::proto::{MessageMut, ResultCode};
use dsr_pdra::Event;
use testpeer::local_within;

use super::support::{IMSI, PCRFS, World, agent, ccr, subscriber};
use crate::databases::Servers;
use crate::support::until;

/// A request that begins a session of the subscriber and names a PCRF.
fn naming(session: &str, pcrf: &str) -> MessageMut {
    ccr(session, 1, |b| {
        subscriber(b, 1, IMSI);
        b.put(known::DESTINATION_HOST, pcrf);
    })
}

fn both(servers: &Servers, command: &str) {
    for site in [1, 2] {
        assert!(servers.run(command, Some(site)));
    }
}

#[test]
fn after_a_cut_new_sessions_follow_the_older_binding_and_those_of_the_younger_go_on() {
    let Some(servers) = Servers::sites(2) else { return };
    local_within(Duration::from_secs(300), async {
        let folder = tempfile::tempdir().unwrap();
        let config = |site: u16| {
            let mut config = agent(folder.path(), &PCRFS, "      wait: 60s");
            let repository = &mut config.applications[0].pdra.as_mut().unwrap().repository;
            repository.store = servers.config(&format!("site-{site}"), &[site]);
            repository.sweep.pause = settings::Period::from_millis(50);
            config
        };
        let mut one = World::of(config(1), &PCRFS).await;
        let mut two = one.beside(config(2)).await;
        both(&servers, "cut");
        assert_eq!(one.session(&naming("older", PCRFS[0])).await, 0);
        assert_eq!(two.session(&naming("younger", PCRFS[1])).await, 1);
        both(&servers, "join");
        let knows = |world: &World, session: &str| !world.dsr.pdra_sessions("session", session).is_empty();
        until(|| knows(&one, "younger") && knows(&two, "older")).await;

        // The binding of site 1 is the older one, also for a request that names the other PCRF.
        assert_eq!(two.session(&naming("next", PCRFS[1])).await, 0);
        assert_eq!(one.session(&naming("last", PCRFS[1])).await, 0);
        // One of the sites has counted the session of the younger binding, which goes on at its PCRF, from either site.
        let counted = |event: Event| one.count(event) + two.count(event);
        until(|| counted(Event::YoungerBinding) == 1).await;
        let conflict = |world: &World| {
            let rows = world.dsr.pdra_sessions("session", "younger");
            rows[0]["conflict"] != ""
        };
        until(|| conflict(&one) && conflict(&two)).await;
        for world in [&mut one, &mut two] {
            assert_eq!(world.session(&ccr("younger", 2, |_| ())).await, 1);
        }
        assert_eq!(one.session(&ccr("younger", 3, |_| ())).await, 1);
        let unknown = ccr("younger", 2, |_| ());
        one.pgw.send(unknown.as_bytes()).await;
        one.pgw
            .expect_result(command::CREDIT_CONTROL, ResultCode::UNKNOWN_SESSION_ID)
            .await;
        assert_eq!(
            one.count(Event::YoungerBinding) + two.count(Event::YoungerBinding),
            1
        );
    });
}
