//! Each sees what the other changes, no update is lost, each change is notified once.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use testpeer::local_within;
use testpeer::sbi::Server;

use super::{
    A_WHILE, Member, PATCH, events, eventually, member_config, member_here, path_of, sink, turn, udm,
};
use crate::databases::Servers;
use crate::support::{id, local};

#[test]
fn two_nrfs_share_registrations_subscriptions_and_notifications() {
    let _turn = turn();
    let Some(servers) = Servers::sites(1) else { return };
    let directory = tempfile::tempdir().unwrap();
    let started = [1, 2].map(|number| {
        let config = member_config(&servers, directory.path(), &[1], number);
        nrf::start(config).unwrap()
    });
    local(async {
        let [a, b] = [0, 1].map(|index: usize| member_here(&started[index]));
        registrations_are_visible(&a, &b).await;
        no_update_is_lost(&a, &b).await;
        each_change_is_notified_once(&a, &b).await;
        a_heart_beat_at_one_counts_at_the_other(&a, &b).await;
    });
    for running in started {
        running.stop().unwrap();
    }
}

async fn registrations_are_visible(a: &Member, b: &Member) {
    assert_eq!(a.put(&udm(1)).await, StatusCode::CREATED);
    // At once by its id, soon by discovery.
    assert_eq!(b.get(&id(1)).await.status, StatusCode::OK);
    assert_eq!(
        b.patch(&id(1), json!([{"op": "add", "path": "/priority", "value": 7}]))
            .await,
        StatusCode::OK
    );
    eventually("A has the patch of B", async || {
        a.get(&id(1)).await.json["priority"] == 7
    })
    .await;
    assert_eq!(a.put(&udm(2)).await, StatusCode::CREATED);
    eventually("B discovers both", async || b.found().await.len() == 2).await;
    // PUT at the other one replaces.
    assert_eq!(b.put(&udm(2)).await, StatusCode::OK);
    assert_eq!(b.delete(&path_of(&id(1))).await, StatusCode::NO_CONTENT);
    eventually("A discovers one", async || a.found().await == [id(2)]).await;
    assert_eq!(a.get(&id(1)).await.status, StatusCode::NOT_FOUND);
    assert_eq!(a.put(&udm(1)).await, StatusCode::CREATED);
    assert_eq!(b.delete(&path_of(&id(1))).await, StatusCode::NO_CONTENT);
    // Right after that the other one may still have it: the conflict shows that it is removed.
    assert_eq!(a.delete(&path_of(&id(1))).await, StatusCode::NOT_FOUND);
    assert_eq!(a.delete(&path_of(&id(2))).await, StatusCode::NO_CONTENT);
    let (_sink, uri) = sink();
    let path = a.subscribe(&uri).await;
    let longer = json!([{"op": "replace", "path": "/validityTime", "value": "2999-01-01T00:00:00Z"}]);
    let extended = b.ask(Method::PATCH, &path, PATCH, longer.to_string()).await;
    assert_eq!(extended.status, StatusCode::OK, "{}", extended.json);
    assert_eq!(b.delete(&path).await, StatusCode::NO_CONTENT);
    assert_eq!(a.delete(&path).await, StatusCode::NOT_FOUND);
}

/// Both patch the same instances at the same time, each its own members: all of them are there in the end.
async fn no_update_is_lost(a: &Member, b: &Member) {
    const INSTANCES: u32 = 5;
    const PATCHES: u32 = 20;
    for number in 0..INSTANCES {
        // Registered by both at once: one creates, one replaces.
        let profile = udm(100 + number);
        let (one, other) = tokio::join!(a.put(&profile), b.put(&profile));
        let mut both = [one, other];
        both.sort();
        assert_eq!(both, [StatusCode::OK, StatusCode::CREATED]);
    }
    let patches = async |member: &Member, name: &str| {
        for patch in 0..PATCHES {
            for number in 0..INSTANCES {
                let path = format!("/{name}{patch}");
                let patch = json!([{"op": "add", "path": path, "value": patch}]);
                assert_eq!(member.patch(&id(100 + number), patch).await, StatusCode::OK);
            }
        }
    };
    tokio::join!(patches(a, "a"), patches(b, "b"));
    for number in 0..INSTANCES {
        eventually("both have all members", async || {
            let got = [
                a.get(&id(100 + number)).await.json,
                b.get(&id(100 + number)).await.json,
            ];
            let complete = |profile: &Value| {
                (0..PATCHES).all(|patch| {
                    ["a", "b"]
                        .iter()
                        .all(|name| profile[format!("{name}{patch}")] == patch)
                })
            };
            got.iter().all(complete)
        })
        .await;
    }
    for number in 0..INSTANCES {
        assert_eq!(
            a.delete(&path_of(&id(100 + number))).await,
            StatusCode::NO_CONTENT
        );
    }
}

/// Instances that both register at the same time; more by `NRF_CLUSTER_INSTANCES`.
fn instances() -> u32 {
    let wanted = std::env::var("NRF_CLUSTER_INSTANCES").ok();
    wanted.and_then(|count| count.parse().ok()).unwrap_or(150)
}

/// Both register the same instances at the same time, each in its own order: one creates, the other one replaces.
async fn both_register_the_same(a: &Member, b: &Member) {
    const CONSUMERS: u32 = 8;
    let (count, begun) = (instances(), std::time::Instant::now());
    let created = Cell::new(0);
    let consumer = async |consumer: u32| {
        let member = [a, b][consumer as usize % 2];
        for step in (consumer / 2..count).step_by(CONSUMERS as usize / 2) {
            let number = 10_000
                + if consumer.is_multiple_of(2) {
                    step
                } else {
                    count - 1 - step
                };
            match member.put(&udm(number)).await {
                StatusCode::CREATED => created.set(created.get() + 1),
                status => assert_eq!(status, StatusCode::OK),
            }
        }
    };
    futures_util::future::join_all((0..CONSUMERS).map(consumer)).await;
    eprintln!(
        "{count} instances registered by both at once in {:?}",
        begun.elapsed()
    );
    assert_eq!(created.get(), count);
    for number in 10_000..10_000 + count {
        let number = id(number);
        let (one, other) = tokio::join!(a.get(&number), b.get(&number));
        assert_eq!(
            (one.status, other.status),
            (StatusCode::OK, StatusCode::OK),
            "{number}"
        );
        if one.header("etag") != other.header("etag") {
            eventually("both have the same", async || {
                let (one, other) = tokio::join!(a.get(&number), b.get(&number));
                one.header("etag") == other.header("etag")
            })
            .await;
        }
    }
}

pub(super) async fn each_change_is_notified_once(a: &Member, b: &Member) {
    // A subscriber may be notified of what changed at another NRF just before it subscribed.
    eventually("the removals are visible at both", async || {
        a.found().await.is_empty() && b.found().await.is_empty()
    })
    .await;
    tokio::time::sleep(A_WHILE).await;
    let sinks: Vec<(Server, String)> = (0..8).map(|_| sink()).collect();
    for (number, (_, uri)) in sinks.iter().enumerate() {
        [a, b][number % 2].subscribe(uri).await;
    }
    eventually(
        "both have all subscriptions, and nothing registered",
        async || a.found().await.is_empty() && b.found().await.is_empty(),
    )
    .await;
    tokio::time::sleep(A_WHILE).await;
    for number in 0..10 {
        let member = [a, b][number % 2];
        assert_eq!(member.put(&udm(200 + number as u32)).await, StatusCode::CREATED);
    }
    for (sink, _) in &sinks {
        eventually("a notification of each registration", async || sink.count() >= 10).await;
    }
    // What would be sent twice comes by then.
    tokio::time::sleep(A_WHILE).await;
    for (sink, _) in &sinks {
        let mut counts: BTreeMap<(String, String), u32> = BTreeMap::new();
        events(sink)
            .into_iter()
            .for_each(|event| *counts.entry(event).or_default() += 1);
        let wanted = (200..210).map(|number| (("NF_REGISTERED".to_owned(), id(number)), 1));
        assert_eq!(counts, wanted.collect());
    }
    for number in 0..10 {
        assert_eq!(
            a.delete(&path_of(&id(200 + number))).await,
            StatusCode::NO_CONTENT
        );
    }
    for (sink, _) in &sinks {
        eventually("a notification of each deregistration", async || {
            sink.count() >= 20
        })
        .await;
    }
}

async fn a_heart_beat_at_one_counts_at_the_other(a: &Member, b: &Member) {
    let mut quick = udm(300);
    quick["heartBeatTimer"] = 3.into();
    let mut silent = udm(301);
    silent["heartBeatTimer"] = 1.into();
    assert_eq!(a.put(&quick).await, StatusCode::CREATED);
    assert_eq!(a.put(&silent).await, StatusCode::CREATED);
    // Whichever of the two audits them: one is suspended, one beats at B and is not.
    let mut load = 0;
    eventually("the silent one is suspended at both", async || {
        load = (load + 1) % 100;
        let beat = json!([{"op": "replace", "path": "/nfStatus", "value": "REGISTERED"}, {"op": "add", "path": "/load", "value": load}]);
        assert_eq!(b.patch(&id(300), beat).await, StatusCode::NO_CONTENT);
        let (one, other) = (a.get(&id(301)).await, b.get(&id(301)).await);
        [one, other].iter().all(|got| got.json["nfStatus"] == "SUSPENDED")
    })
    .await;
    for member in [a, b] {
        assert_eq!(member.get(&id(300)).await.json["nfStatus"], "REGISTERED");
    }
    eventually("A has the load that B received", async || {
        a.get(&id(300)).await.json["load"] == load
    })
    .await;
    let load = json!([{"op": "add", "path": "/nfServices/0/load", "value": 17}]);
    assert_eq!(a.patch(&id(300), load).await, StatusCode::NO_CONTENT);
    eventually("B has the load of the service", async || {
        b.get(&id(300)).await.json["nfServices"][0]["load"] == 17
    })
    .await;
    // A suspended one comes back at either.
    let beat = json!([{"op": "replace", "path": "/nfStatus", "value": "REGISTERED"}]);
    assert_eq!(a.patch(&id(301), beat).await, StatusCode::NO_CONTENT);
    eventually("B has it back", async || {
        b.get(&id(301)).await.json["nfStatus"] == "REGISTERED"
    })
    .await;
}

/// Each NRF prefers a node of its own.
#[test]
fn two_nrfs_on_two_nodes_of_galera_lose_no_update() {
    let _turn = turn();
    let Some(servers) = Servers::galera(2) else { return };
    let directory = tempfile::tempdir().unwrap();
    let started = [(1, [1, 2]), (2, [2, 1])].map(|(number, nodes)| {
        nrf::start(member_config(&servers, directory.path(), &nodes, number)).unwrap()
    });
    // 4 ms an instance on two idle cores; five times that.
    let deadline = Duration::from_secs(300) + instances() * Duration::from_millis(20);
    local_within(deadline, async {
        let [a, b] = [0, 1].map(|index: usize| member_here(&started[index]));
        registrations_are_visible(&a, &b).await;
        no_update_is_lost(&a, &b).await;
        both_register_the_same(&a, &b).await;
    });
    for running in started {
        running.stop().unwrap();
    }
}
