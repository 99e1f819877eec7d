//! Two sites, each an NRF and a MariaDB of its own that replicates to the other asynchronously (`deploy/two-sites`).

use std::path::Path;

use http::StatusCode;
use nrf::{Config, Running};
use serde_json::{Value, json};
use settings::Period;
use testpeer::sbi::Server;

use super::sharing::each_change_is_notified_once;
use super::{
    A_WHILE, Member, PATCH, events, eventually, has_alarm, member, member_config, member_here, path_of, sink,
    turn, udm,
};
use crate::databases::Servers;
use crate::process::Process;
use crate::support::{id, local};

/// Settings of the NRF of a site, 1 or 2.
fn at_site(servers: &Servers, directory: &Path, site: u16) -> Config {
    let mut config = member_config(servers, directory, &[site], site.into());
    config.store.site = format!("site-{site}");
    // A change may be visible three seconds later than its version says: a longer cut is one.
    config.store.mariadb.retry_for = Period::from_secs(1);
    config.store.mariadb.statement_timeout = Period::from_secs(1);
    config.store.mariadb.heartbeat = Period::from_millis(100);
    config.cluster.dead_after = Period::from_secs(8);
    config
}

/// Waits until both have what the other one has registered.
async fn know_one_another(a: &Member, b: &Member) {
    for (number, one, other) in [(90, a, b), (91, b, a)] {
        assert_eq!(one.put(&udm(number)).await, StatusCode::CREATED);
        eventually("replication brings it", async || {
            other.found().await.contains(&id(number))
        })
        .await;
        assert_eq!(other.delete(&path_of(&id(number))).await, StatusCode::NO_CONTENT);
        eventually("replication removes it", async || {
            !one.found().await.contains(&id(number))
        })
        .await;
    }
}

async fn patch(member: &Member, id: &str, name: &str, value: impl Into<Value>) -> StatusCode {
    let path = format!("/{name}");
    let patch = json!([{"op": "add", "path": path, "value": value.into()}]);
    member.patch(id, patch).await
}

/// A heart-beat as it is sent most of the time.
async fn beat(member: &Member, id: &str) -> StatusCode {
    let beat = json!([{"op": "replace", "path": "/nfStatus", "value": "REGISTERED"}]);
    member.patch(id, beat).await
}

fn has_event(sink: &Server, event: &str, number: u32) -> bool {
    events(sink).contains(&(event.to_owned(), id(number)))
}

#[test]
fn two_sites_share_registrations_subscriptions_notifications_and_heart_beats() {
    let _turn = turn();
    let Some(servers) = Servers::sites(2) else { return };
    let directory = tempfile::tempdir().unwrap();
    let started = [1, 2].map(|site| nrf::start(at_site(&servers, directory.path(), site)).unwrap());
    local(async {
        let [a, b] = [0, 1].map(|index: usize| member_here(&started[index]));
        know_one_another(&a, &b).await;
        assert_eq!(a.put(&udm(1)).await, StatusCode::CREATED);
        eventually("B has it", async || b.get(&id(1)).await.status == StatusCode::OK).await;
        assert_eq!(patch(&b, &id(1), "priority", 7).await, StatusCode::OK);
        eventually("A has the patch of B", async || {
            a.get(&id(1)).await.json["priority"] == 7
        })
        .await;
        assert_eq!(b.delete(&path_of(&id(1))).await, StatusCode::NO_CONTENT);
        eventually("A has the removal", async || {
            a.get(&id(1)).await.status == StatusCode::NOT_FOUND
        })
        .await;
        a_subscription_is_extended_and_ended_at_the_other(&a, &b).await;
        each_change_is_notified_once(&a, &b).await;
        heart_beats_count_at_both(&a, &b).await;
    });
    for running in started {
        running.stop().unwrap();
    }
}

async fn a_subscription_is_extended_and_ended_at_the_other(a: &Member, b: &Member) {
    let (_sink, uri) = sink();
    let path = a.subscribe(&uri).await;
    let longer = json!([{"op": "replace", "path": "/validityTime", "value": "2999-01-01T00:00:00Z"}]);
    eventually("B knows the subscription", async || {
        let extended = b.ask(http::Method::PATCH, &path, PATCH, longer.to_string()).await;
        extended.status == StatusCode::OK
    })
    .await;
    assert_eq!(b.delete(&path).await, StatusCode::NO_CONTENT);
    eventually("A knows the end", async || {
        a.ask(http::Method::PATCH, &path, PATCH, longer.to_string())
            .await
            .status
            == StatusCode::NOT_FOUND
    })
    .await;
}

/// One sends its heart-beats to the other site than the one at which it registered, one sends none.
async fn heart_beats_count_at_both(a: &Member, b: &Member) {
    let mut beating = udm(300);
    beating["heartBeatTimer"] = 3.into();
    let mut silent = udm(301);
    silent["heartBeatTimer"] = 1.into();
    for profile in [&beating, &silent] {
        assert_eq!(a.put(profile).await, StatusCode::CREATED);
    }
    let both = async || b.found().await.len() == 2;
    eventually("B discovers both", both).await;
    eventually("the silent one is suspended at both", async || {
        assert_eq!(beat(b, &id(300)).await, StatusCode::NO_CONTENT);
        let (one, other) = (a.get(&id(301)).await, b.get(&id(301)).await);
        [one, other].iter().all(|got| got.json["nfStatus"] == "SUSPENDED")
    })
    .await;
    for member in [a, b] {
        assert_eq!(member.get(&id(300)).await.json["nfStatus"], "REGISTERED");
    }
    assert_eq!(patch(b, &id(300), "load", 17).await, StatusCode::NO_CONTENT);
    eventually("A has the load that B received", async || {
        a.get(&id(300)).await.json["load"] == 17
    })
    .await;
}

/// Each site goes on alone while replication is cut; afterwards both have the same, and subscribers have been notified of
/// what the other site changed.
#[test]
fn a_cut_between_sites_heals() {
    let _turn = turn();
    let Some(servers) = Servers::sites(2) else { return };
    let directory = tempfile::tempdir().unwrap();
    let started = [1, 2].map(|site| {
        let mut config = at_site(&servers, directory.path(), site);
        config.cluster.dead_after = Period::from_secs(2);
        config.heart_beat.missed = 5;
        nrf::start(config).unwrap()
    });
    local(async {
        let [a, b] = [0, 1].map(|index: usize| member_here(&started[index]));
        know_one_another(&a, &b).await;
        for number in [1, 2, 3] {
            assert_eq!(a.put(&udm(number)).await, StatusCode::CREATED);
        }
        let (before_at_a, uri) = sink();
        a.subscribe(&uri).await;
        let mut lively = udm(4);
        lively["heartBeatTimer"] = 4.into();
        assert_eq!(b.put(&lively).await, StatusCode::CREATED);
        eventually("both have all", async || {
            a.found().await.len() == 4 && b.found().await.len() == 4
        })
        .await;

        for site in [1, 2] {
            assert!(servers.run("cut", Some(site)));
        }
        eventually("each takes the other one for dead", async || {
            assert_eq!(beat(&b, &id(4)).await, StatusCode::NO_CONTENT);
            started.iter().all(has_alarm)
        })
        .await;
        while_cut(&started, &a, &b).await;
        let (in_cut_at_a, uri) = sink();
        a.subscribe(&uri).await;
        let (in_cut_at_b, uri) = sink();
        b.subscribe(&uri).await;
        assert_eq!(b.put(&udm(11)).await, StatusCode::CREATED);
        assert_eq!(a.put(&udm(12)).await, StatusCode::CREATED);
        assert_eq!(beat(&b, &id(4)).await, StatusCode::NO_CONTENT);
        for site in [1, 2] {
            assert!(servers.run("join", Some(site)));
        }

        eventually("neither takes the other one for dead", async || {
            !started.iter().any(has_alarm)
        })
        .await;
        // Of 1 the later change, that of B; 2 was removed at A, and changed at B. What A has suspended, as the later change,
        // B resumes before its next heart-beat.
        let wanted = [1, 3, 4, 10, 11, 12].map(id);
        eventually("both have the same, and what beats is discovered", async || {
            let (mut at_a, mut at_b) = (a.found().await, b.found().await);
            at_a.sort();
            at_b.sort();
            at_a == wanted && at_b == wanted
        })
        .await;
        for instance in &wanted {
            eventually("both have the same text", async || {
                let (one, other) = (a.get(instance).await, b.get(instance).await);
                one.header("etag") == other.header("etag")
            })
            .await;
        }
        assert_eq!(started[1].count(nrf::Event::ClusterResumed), 1);
        assert_eq!(a.get(&id(1)).await.json["site"], "b");
        eventually("all are notified of what the other site changed", async || {
            let news = [
                (&before_at_a, 10),
                (&before_at_a, 11),
                (&in_cut_at_a, 11),
                (&in_cut_at_b, 12),
            ];
            let all = news
                .iter()
                .all(|(sink, number)| has_event(sink, "NF_REGISTERED", *number));
            all && has_event(&before_at_a, "NF_DEREGISTERED", 2)
        })
        .await;
        assert!(
            !has_event(&before_at_a, "NF_DEREGISTERED", 4),
            "it sent its heart-beats to the other site"
        );
        // One writes what the other one has written in the cut.
        assert_eq!(patch(&a, &id(10), "priority", 1).await, StatusCode::OK);
        assert_eq!(patch(&b, &id(3), "priority", 1).await, StatusCode::OK);
        for number in [3, 10] {
            eventually("both have the change", async || {
                a.get(&id(number)).await.json["priority"] == 1
                    && b.get(&id(number)).await.json["priority"] == 1
            })
            .await;
        }
    });
    for running in started {
        running.stop().unwrap();
    }
}

/// What both change while no change of one reaches the other.
async fn while_cut(started: &[Running], a: &Member, b: &Member) {
    assert_eq!(patch(a, &id(1), "site", "a").await, StatusCode::OK);
    assert_eq!(patch(b, &id(2), "site", "b").await, StatusCode::OK);
    assert_eq!(a.delete(&path_of(&id(2))).await, StatusCode::NO_CONTENT);
    assert_eq!(b.put(&udm(10)).await, StatusCode::CREATED);
    // Longer than a change can be late without a cut, and than what beats at B only may be silent at A.
    eventually("A has suspended what beats at B", async || {
        assert_eq!(beat(b, &id(4)).await, StatusCode::NO_CONTENT);
        started[0].count(nrf::Event::Suspended) > 0 && a.get(&id(4)).await.json["nfStatus"] == "SUSPENDED"
    })
    .await;
    assert_eq!(b.get(&id(4)).await.json["nfStatus"], "REGISTERED", "it beats");
    assert_eq!(a.get(&id(10)).await.status, StatusCode::NOT_FOUND);
    assert_eq!(patch(b, &id(1), "site", "b").await, StatusCode::OK);
}

/// A site dies with its database. The other one serves all, notifies in its place, and has what it acknowledged as far as
/// replication had brought it; when the site is back it has what it missed.
#[test]
fn the_other_site_goes_on_for_one_that_dies() {
    let _turn = turn();
    let Some(servers) = Servers::sites(2) else { return };
    let directory = tempfile::tempdir().unwrap();
    let settings = |site| {
        let mut config = at_site(&servers, directory.path(), site);
        config.cluster.dead_after = Period::from_secs(2);
        config
    };
    let running = nrf::start(settings(1)).unwrap();
    let victim = Process::start(&settings(2));
    local(async {
        let (a, b) = (member_here(&running), member(&victim.origin));
        know_one_another(&a, &b).await;
        let sinks: Vec<(Server, String)> = (0..6).map(|_| sink()).collect();
        for (_, uri) in &sinks {
            b.subscribe(uri).await;
        }
        let mut beating = udm(1);
        beating["heartBeatTimer"] = 5.into();
        assert_eq!(b.put(&beating).await, StatusCode::CREATED);
        eventually("A has what B has", async || a.found().await == [id(1)]).await;
        tokio::time::sleep(A_WHILE).await;
        assert!(servers.run("kill", Some(2)));
        victim.kill();

        assert_eq!(a.put(&udm(2)).await, StatusCode::CREATED);
        assert_eq!(a.delete(&path_of(&id(2))).await, StatusCode::NO_CONTENT);
        assert_eq!(a.put(&udm(3)).await, StatusCode::CREATED);
        eventually("the site is dead, and all are notified", async || {
            assert_eq!(beat(&a, &id(1)).await, StatusCode::NO_CONTENT);
            let notified =
                |sink: &Server| has_event(sink, "NF_REGISTERED", 3) && has_event(sink, "NF_DEREGISTERED", 2);
            has_alarm(&running) && sinks.iter().all(|(sink, _)| notified(sink))
        })
        .await;
        let mut found = a.found().await;
        found.sort();
        assert_eq!(found, [id(1), id(3)]);

        assert!(servers.run("restart", Some(2)));
        let again = Process::start(&settings(2));
        let b = member(&again.origin);
        eventually("the site has what it missed", async || {
            assert_eq!(beat(&a, &id(1)).await, StatusCode::NO_CONTENT);
            let mut found = b.found().await;
            found.sort();
            found == [id(1), id(3)]
        })
        .await;
        assert_eq!(b.put(&udm(5)).await, StatusCode::CREATED);
        eventually("A has what B registers, and all are notified", async || {
            assert_eq!(beat(&b, &id(1)).await, StatusCode::NO_CONTENT);
            let notified = |sink: &Server| has_event(sink, "NF_REGISTERED", 5);
            a.found().await.contains(&id(5)) && sinks.iter().all(|(sink, _)| notified(sink))
        })
        .await;
        eventually("the alarm is cleared", async || !has_alarm(&running)).await;
        again.kill();
    });
    running.stop().unwrap();
}
