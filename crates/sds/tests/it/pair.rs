//! Two servers on one database: both take writes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use http::Method;
use serde_json::{Value, json};
use settings::{Faults, Period, Validate as _};
use store::CassandraSerial;

use crate::clusters::Cluster;
use crate::databases::Servers;
use crate::process::Process;
use crate::support::{Api, config, imsi, local, set, until};

/// Settings of a server of the pair.
fn member(servers: &Servers, directory: &Path, number: u32) -> sds::Config {
    on(servers.config("site-1", &[1]), directory, number)
}

/// Settings of a server with this store.
fn on(store: store::Config, directory: &Path, number: u32) -> sds::Config {
    let mut config = config(&directory.join(number.to_string()));
    config.store = store;
    config.store.embedded.directory = directory.join(format!("{number}-own"));
    config.journal.poll = Period::from_millis(50);
    config
}

/// Writes transactions, each of which the server acknowledges; their offsets.
async fn writes(api: Api, writer: u64, count: u64) -> Vec<u64> {
    let mut offsets = Vec::new();
    while (offsets.len() as u64) < count {
        let step = offsets.len() as u64;
        let destinations = format!("hss{writer}-{step}");
        let own = json!({"imsi": imsi(writer * 1_000 + step), "destinations": destinations});
        // All writers write this one.
        let shared = json!({"name": "shared@x", "destinations": destinations});
        let got = api.write(&json!([own, shared])).await;
        // 503: others wrote before again and again, and nothing was done.
        if got.status() == 200 {
            offsets.push(got.offset());
        } else {
            assert_eq!(got.status(), 503, "{}", got.text);
        }
    }
    offsets
}

async fn offset_of(api: &Api) -> u64 {
    api.get("/checkpoint").await.number("journal-offset")
}

#[test]
fn offsets_of_two_servers_have_no_gap_and_none_comes_twice() {
    const EACH: u64 = 40;
    let Some(servers) = Servers::sites(1) else { return };
    let directory = tempfile::tempdir().unwrap();
    local(async {
        let one = Process::start(&member(&servers, directory.path(), 1));
        let two = Process::start(&member(&servers, directory.path(), 2));
        let writers: Vec<_> = (0..6)
            .map(|writer| {
                let api = [&one, &two][writer as usize % 2].api.clone();
                tokio::task::spawn_local(writes(api, writer, EACH))
            })
            .collect();
        let mut offsets = BTreeSet::new();
        for writer in writers {
            let given = writer.await.unwrap();
            assert!(given.is_sorted());
            for offset in given {
                assert!(offsets.insert(offset), "{offset} was given twice");
            }
        }
        let last = 6 * EACH;
        assert!(offsets.iter().copied().eq(1..=last), "{offsets:?}");
        for api in [&one.api, &two.api] {
            until("all transactions", async || offset_of(api).await == last).await;
        }
        let [journal, other] = [one.api.journal(0).await, two.api.journal(0).await];
        assert_eq!(journal, other);
        let numbers: Vec<u64> = journal
            .iter()
            .map(|line| line["offset"].as_u64().unwrap())
            .collect();
        assert!(numbers.into_iter().eq(1..=last));
        let [text, other] = [
            one.api.get("/checkpoint").await.text,
            two.api.get("/checkpoint").await.text,
        ];
        assert_eq!(text, other);
        let shared = &journal[last as usize - 1]["changes"][1]["destinations"];
        assert!(text.contains(&format!("name,shared@x,{}\n", shared.as_str().unwrap())));
    });
}

#[test]
fn a_server_takes_over_and_the_other_one_comes_back() {
    let Some(servers) = Servers::sites(1) else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut settings = [1, 2].map(|number| member(&servers, directory.path(), number));
    for config in &mut settings {
        config.journal.keep = 3;
        config.journal.checkpoint = Period::from_millis(50);
    }
    local(async {
        let one = Process::start(&settings[0]);
        let two = Process::start(&settings[1]);
        assert_eq!(one.api.write(&json!([set(1, "a")])).await.offset(), 1);
        // A processor that comes from the first one: the second one reads before it says that it is behind.
        let got = two.api.get("/journal?after=1&wait=0").await;
        assert_eq!(
            (got.status(), got.text.as_str(), got.number("journal-head")),
            (200, "", 1)
        );
        one.kill();
        for number in 2..=20 {
            assert_eq!(two.api.write(&json!([set(number, "b")])).await.offset(), number);
        }
        until("the removal of transactions", async || {
            two.api.get("/journal?after=10").await.status() == 410
        })
        .await;
        // The first one was away for longer than the journal goes back.
        let refused = match sds::start(settings[0].clone()) {
            Ok(_) => panic!("it starts"),
            Err(error) => error.to_string(),
        };
        assert!(refused.contains("load.csv"), "{refused}");
        let text = two.api.get("/checkpoint").await.text;
        std::fs::write(directory.path().join("1/load.csv"), text).unwrap();
        let one = Process::start(&settings[0]);
        assert_eq!(
            one.api.find(&format!("imsi/{}", imsi(7))).await.as_deref(),
            Some("b")
        );
        assert_eq!(one.api.write(&json!([set(1, "c")])).await.offset(), 21);
        until("what the other one wrote", async || {
            two.api.find(&format!("imsi/{}", imsi(1))).await.as_deref() == Some("c")
        })
        .await;
    });
}

#[test]
fn a_database_that_is_away_costs_no_acknowledged_transaction() {
    let Some(servers) = Servers::sites(1) else { return };
    let directory = tempfile::tempdir().unwrap();
    local(async {
        let sds = Process::start(&member(&servers, directory.path(), 1));
        assert_eq!(sds.api.write(&json!([set(1, "a")])).await.offset(), 1);
        assert!(servers.run("stop", Some(1)));
        let refused = sds.api.write(&json!([set(2, "a")])).await;
        assert_eq!(refused.status(), 503, "{}", refused.text);
        assert_eq!(
            sds.api.find(&format!("imsi/{}", imsi(1))).await.as_deref(),
            Some("a"),
            "reads go on"
        );
        assert!(servers.run("start", Some(1)));
        until("a write", async || {
            sds.api.write(&json!([set(3, "a")])).await.status() == 200
        })
        .await;
        let journal = sds.api.journal(0).await;
        let found = |number| {
            let has = |line: &Value| line["changes"] == json!([set(number, "a")]);
            journal.iter().any(has)
        };
        assert!(found(1) && found(3));
        let numbers: Vec<u64> = journal
            .iter()
            .map(|line| line["offset"].as_u64().unwrap())
            .collect();
        assert!(
            numbers.iter().copied().eq(1..=journal.len() as u64),
            "{numbers:?}"
        );
    });
}

/// What was acknowledged: the changes of each offset.
type Acknowledged = Rc<RefCell<BTreeMap<u64, Value>>>;

/// Writes until the server is dead, or as many are acknowledged.
async fn writes_until_death(api: Api, writer: u64, count: u64, acknowledged: Acknowledged) {
    for step in 0..count {
        let changes = json!([set(writer * 1_000 + step, &format!("hss{writer}-{step}")),
            {"name": "shared@x", "destinations": format!("hss{writer}-{step}")}]);
        loop {
            let body = changes.to_string();
            let got = api.try_ask(Method::POST, "/transactions", "application/json", body);
            let Some(got) = got.await else { return };
            if got.status() == 200 {
                let before = acknowledged.borrow_mut().insert(got.offset(), changes.clone());
                assert_eq!(before, None, "an offset was given twice");
                break;
            }
            assert_eq!(got.status(), 503, "{}", got.text);
        }
    }
}

/// Two servers write, one is killed, the other one goes on, and the first one comes back: one order for all.
async fn one_order(settings: [sds::Config; 2], each: u64) {
    let [one, two] = settings.each_ref().map(Process::start);
    let acknowledged = Acknowledged::default();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let api = [&one, &two][writer as usize % 2].api.clone();
            tokio::task::spawn_local(writes_until_death(api, writer, each, acknowledged.clone()))
        })
        .collect();
    until("some transactions", async || {
        acknowledged.borrow().len() as u64 > each / 2
    })
    .await;
    one.kill();
    for writer in writers {
        writer.await.unwrap();
    }
    // A processor that has followed the first one until now goes on at the second one, and back.
    let one = Process::start(&settings[0]);
    let again = json!([set(9_999, "again")]);
    let last = one.api.write(&again).await.offset();
    acknowledged.borrow_mut().insert(last, again);
    until("the last transaction", async || offset_of(&two.api).await == last).await;
    let [journal, other] = [one.api.journal(0).await, two.api.journal(0).await];
    assert_eq!(journal, other);
    let offsets = journal.iter().map(|line| line["offset"].as_u64().unwrap());
    assert!(offsets.eq(1..=last), "{journal:?}");
    for (offset, changes) in &*acknowledged.borrow() {
        assert_eq!(journal[*offset as usize - 1]["changes"], *changes);
    }
    let [text, other] = [
        one.api.get("/checkpoint").await.text,
        two.api.get("/checkpoint").await.text,
    ];
    assert_eq!(text, other);
}

#[test]
fn a_galera_cluster_has_one_order_of_transactions() {
    let Some(servers) = Servers::galera(3) else { return };
    let directory = tempfile::tempdir().unwrap();
    // Each server has a node of its own.
    let settings = [(1, [1, 2, 3]), (2, [2, 3, 1])]
        .map(|(number, nodes)| on(servers.config("site-1", &nodes), directory.path(), number));
    local(one_order(settings, 40));
}

#[test]
fn a_cassandra_cluster_has_one_order_of_transactions() {
    let Some(cluster) = Cluster::start(1, 1, false) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let mut store = cluster.config("site-1", 1);
    store.cassandra.serial_consistency = CassandraSerial::Serial;
    let settings = [1, 2].map(|number| on(store.clone(), directory.path(), number));
    local(one_order(settings.clone(), 25));
    // What is judged at each datacentre by itself has none.
    let mut wrong = settings[0].clone();
    wrong.store.cassandra.serial_consistency = CassandraSerial::LocalSerial;
    let mut faults = Faults::default();
    wrong.validate(&mut faults);
    let faults = format!("{faults:?}");
    assert!(
        faults.contains("serialConsistency") && faults.contains("twice"),
        "{faults}"
    );
}
