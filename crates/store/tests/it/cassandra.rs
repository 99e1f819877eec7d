//! The engine for CQL against a real Cassandra: the contract, several processes, crashes, lost nodes, two sites.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use scylla::client::session::Session as Cql;
use scylla::client::session_builder::SessionBuilder;
use settings::Period;
use store::{Batch, Condition, Config, Conflict, Error, Store, Table, TableDef};

use crate::clusters::Cluster;
use crate::expiry;
use crate::session::{Later, Session, id};
use crate::tables;

/// CI machines are slow.
const PATIENCE: Duration = Duration::from_secs(120);

async fn open(config: &Config) -> (Store, Table<Session>) {
    let store = Store::open(config, &[TableDef::of::<Session>()]).await.unwrap();
    let sessions = store.table::<Session>().unwrap();
    (store, sessions)
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn cql(config: &Config) -> Cql {
    let nodes = config.cassandra.nodes.iter().map(ToString::to_string);
    let session = SessionBuilder::new()
        .known_nodes(nodes)
        .user("cassandra", "cassandra");
    session.build().await.unwrap()
}

async fn ids(sessions: &Table<Session>, index: store::Index, key: &str) -> Vec<u64> {
    let found = sessions.find(index, key.as_bytes(), 100).await.unwrap();
    found.iter().map(|stored| stored.id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_the_contract() {
    let Some(cluster) = Cluster::start(1, 1, true) else {
        return;
    };
    let mut config = cluster.config("site-1", 1);
    config.cassandra.transaction_lifetime = Period::from_millis(500);
    let (store, sessions) = open(&config).await;
    tables::contract(&store).await;
    two_processes_share(&store, &config).await;
    unique_keys_hold_among_processes(&store, &config).await;
    crashed_transactions_are_settled(&sessions, &config).await;
    new_indexes_are_built(&sessions, &config).await;
    let stats = store.stats();
    assert!(
        stats.reads > 0 && stats.batches > 0 && !stats.troubled,
        "{stats:?}"
    );
    drop(sessions);
    store.clone().close().await;
    let mut late = Batch::default();
    late.insert(&store.table::<Session>().unwrap(), &Session::new(1, "late"));
    assert_eq!(store.commit(late).await, Err(Error::Closed));

    expiry::keeps_the_contract(&config).await;
    records_have_a_time_to_live(&config).await;

    let mut wrong = config.clone();
    wrong.cassandra.datacentre = "elsewhere".to_owned();
    let refused = Store::open(&wrong, &[TableDef::of::<Session>()])
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("dc1"), "{refused}");
}

/// Two stores on one keyspace: conditions hold between them, and a batch is whole.
async fn two_processes_share(one: &Store, config: &Config) {
    let (other, sessions) = open(config).await;
    for round in 0..20u64 {
        let receipts = [one, &other].map(|store| {
            let sessions = store.table::<Session>().unwrap();
            let mut batch = Batch::default();
            for number in [round, 1_000 + round] {
                let subscriber = if std::ptr::eq(store, one) { "one" } else { "other" };
                batch.insert(&sessions, &Session::new(number, subscriber));
            }
            store.commit(batch)
        });
        let mut written = 0;
        for receipt in receipts {
            match receipt.await {
                Ok(_) => written += 1,
                Err(Error::Conflict {
                    conflict: Conflict::Exists(_),
                    ..
                }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(written, 1, "round {round}");
        let both = [round, 1_000 + round].map(|number| sessions.get(&id(number)));
        let mut owners = BTreeSet::new();
        for record in both {
            owners.insert(record.await.unwrap().unwrap().subscriber.clone());
        }
        assert_eq!(owners.len(), 1, "round {round}: a batch of each, {owners:?}");
    }
    other.close().await;
}

async fn unique_keys_hold_among_processes(one: &Store, config: &Config) {
    let (other, sessions) = open(config).await;
    for round in 0..20u64 {
        let address = format!("10.0.0.{round}");
        let receipts = [(one, 2_000 + round), (&other, 3_000 + round)].map(|(store, number)| {
            let mut batch = Batch::default();
            let session = Session::new(number, "race").address(&address);
            batch.insert(&store.table::<Session>().unwrap(), &session);
            store.commit(batch)
        });
        let mut written = 0;
        for receipt in receipts {
            match receipt.await {
                Ok(_) => written += 1,
                Err(Error::Conflict {
                    conflict: Conflict::Unique { index: "address", .. },
                    ..
                }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(written, 1, "round {round}");
        assert_eq!(ids(&sessions, Session::ADDRESS, &address).await.len(), 1);
    }
    assert_eq!(ids(&sessions, Session::SUBSCRIBER, "race").await.len(), 20);
    other.close().await;
}

/// What a process leaves that dies between two steps of a transaction: before it is committed nothing of it is seen, and
/// after it everything.
async fn crashed_transactions_are_settled(sessions: &Table<Session>, config: &Config) {
    let cql = cql(config).await;
    // Long over: the next process that meets it gives it up.
    leave_intents(sessions, &cql, 5_000, 1_000_000).await;
    finds_no_trace(sessions, 5_000, "before").await;

    // One that runs: nothing gives it up before its owner has had its time, unless the machine pauses for longer.
    let decide = "INSERT INTO signalbox.signalbox_transactions (id, state, participants) VALUES (?, 1, ?) IF NOT EXISTS";
    let mut number = 5_010;
    let transaction = loop {
        let begun = Instant::now();
        let now = store::Clock::default().micros();
        let transaction = leave_intents(sessions, &cql, number, now).await;
        cql.query_unpaged(decide, (&transaction, &participants(number)))
            .await
            .unwrap();
        if begun.elapsed() < config.cassandra.transaction_lifetime.duration() {
            break transaction;
        }
        number += 2;
    };
    finds_no_trace(sessions, number, "after").await;
    until("a reader finishes and removes it once it is old", async || {
        sessions.get(&id(number)).await.unwrap();
        decisions(&cql, &transaction).await == 0
    })
    .await;
}

/// Writes two records, and on them what a transaction of that time, in µs, intends for them; its number.
async fn leave_intents(sessions: &Table<Session>, cql: &Cql, number: u64, time: u64) -> Vec<u8> {
    for number in [number, number + 1] {
        // One by one: a batch of several is acknowledged while its own intents may still be there.
        let mut batch = Batch::default();
        batch.insert(sessions, &Session::new(number, "before"));
        sessions.store().commit(batch).await.unwrap();
    }
    // Its time, its number, its datacentre.
    let transaction = [&id(time)[..], &id(number), b"dc1"].concat();
    let version = store::Version::at(store::Clock::default().micros())
        .0
        .cast_signed();
    for number in [number, number + 1] {
        let set = "UPDATE signalbox.session SET tx = ?, n_kind = 1, n_version = ?, n_created = 1, n_site = 'dead', \
             n_value = ?, n_keys = ? WHERE id = ? IF tx = null";
        let (value, keys) = (&b"after|-||note"[..], &b""[..]);
        let values = (&transaction, version, value, keys, &id(number)[..]);
        cql.query_unpaged(set, values).await.unwrap();
    }
    transaction
}

/// The rows of [`leave_intents`], as its decision names them.
fn participants(number: u64) -> Vec<u8> {
    let mut participants = Vec::new();
    for number in [number, number + 1] {
        for part in [b"signalbox.session".as_slice(), &id(number)] {
            participants.extend_from_slice(&(part.len() as u16).to_be_bytes());
            participants.extend_from_slice(part);
        }
    }
    participants
}

/// Readers have these values, and the next writer meets no trace of the transaction.
async fn finds_no_trace(sessions: &Table<Session>, number: u64, expected: &str) {
    for number in [number, number + 1] {
        let record = sessions.get(&id(number)).await.unwrap().unwrap();
        assert_eq!(record.subscriber, expected, "record {number}");
    }
    let mut batch = Batch::default();
    batch.put(sessions, &Session::new(number + 1, "next"), Condition::Present);
    sessions.store().commit(batch).await.unwrap();
    let record = sessions.get(&id(number + 1)).await.unwrap().unwrap();
    assert_eq!(record.subscriber, "next");
}

async fn decisions(cql: &Cql, transaction: &[u8]) -> usize {
    let select = "SELECT id FROM signalbox.signalbox_transactions WHERE id = ?";
    let rest = cql.query_unpaged(select, (transaction,)).await.unwrap();
    rest.into_rows_result().unwrap().rows_num()
}

/// A later release looks up by note as well, and an earlier one comes back.
async fn new_indexes_are_built(sessions: &Table<Session>, config: &Config) {
    for number in 6_000..6_040u64 {
        let mut batch = Batch::default();
        let session = Session::new(number, "reindexed").address(&format!("a-{number}"));
        batch.insert(sessions, &session.note(&format!("note-{}", number % 4)));
        sessions.store().commit(batch).await.unwrap();
    }
    let later = Store::open(config, &[TableDef::of::<Later>()]).await.unwrap();
    let table = later.table::<Later>().unwrap();
    assert_eq!(table.find(Later::NOTE, b"note-3", 100).await.unwrap().len(), 10);
    later.close().await;
    let (again, sessions) = open(config).await;
    assert_eq!(ids(&sessions, Session::ADDRESS, "a-6007").await, [6_007]);
    let mut taken = Batch::default();
    taken.insert(&sessions, &Session::new(6_100, "thief").address("a-6007"));
    assert!(matches!(again.commit(taken).await, Err(Error::Conflict { .. })));
    again.close().await;
}

/// A record that expires is removed by the cluster too, should no sweep do it.
async fn records_have_a_time_to_live(config: &Config) {
    let cql = cql(config).await;
    let store = expiry::open(config).await;
    expiry::write_one_for(&store, 77, Duration::from_secs(100)).await;
    let ttl = "SELECT TTL(value) FROM signalbox.lease WHERE id = ?";
    let found = cql.query_unpaged(ttl, (&id(77)[..],)).await.unwrap();
    let found = found.into_rows_result().unwrap();
    let (seconds,) = found.single_row::<(Option<i32>,)>().unwrap();
    let margin = config.cassandra.expiry_margin.duration().as_secs() as i32;
    assert!(
        seconds.is_some_and(|it| (margin - PATIENCE.as_secs() as i32..=margin + 100).contains(&it)),
        "{seconds:?}"
    );
    store.close().await;
}

/// Tasks that write at the same time.
const WRITERS: u64 = 8;

/// While no node serves, reads and writes fail soon, however long they are tried otherwise, and the first after its return
/// succeed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_no_node_serves_callers_get_the_error() {
    let Some(cluster) = Cluster::start(1, 1, false) else {
        return;
    };
    let mut config = cluster.config("site-1", 1);
    // Longer than any test waits.
    config.cassandra.retry_for = Period::from_secs(3_600);
    config.cassandra.leftover_after = Period::from_secs(20_000);
    config.cassandra.unavailable_after = Period::from_millis(500);
    let (store, sessions) = open(&config).await;
    assert!(cluster.run("kill", Some(1)));
    until("the heart-beat finds it", async || store.trouble().is_some()).await;
    for number in 0..3 {
        let mut batch = Batch::default();
        batch.insert(&sessions, &Session::new((1 << 40) + number, "x"));
        let refused = store.commit(batch).await;
        assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
        let read = sessions.get(&id(1)).await;
        assert!(matches!(read, Err(Error::Unavailable { .. })), "{read:?}");
    }
    assert!(cluster.run("restart", Some(1)));
    until("it writes again", async || {
        let mut batch = Batch::default();
        batch.insert(&sessions, &Session::new(1 << 41, "y"));
        match store.commit(batch).await {
            Ok(_) | Err(Error::Conflict { .. }) => true,
            Err(_) => false,
        }
    })
    .await;
    assert!(sessions.get(&id(1 << 41)).await.unwrap().is_some());
    until("it is well", async || store.trouble().is_none()).await;
    drop(sessions);
    store.close().await;
}

/// One of three nodes is killed, and comes back, while tasks write: no write fails, none that was acknowledged is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_with_a_node() {
    let Some(cluster) = Cluster::start(3, 1, false) else {
        return;
    };
    let mut config = cluster.config("site-1", 1);
    config.cassandra.statement_timeout = Period::from_secs(2);
    // A busy machine may take longer for a heart-beat than a statement may: while two nodes live, nothing fails for that.
    config.cassandra.retry_for = Period::from(PATIENCE);
    config.cassandra.unavailable_after = Period::from(PATIENCE);
    let (store, sessions) = open(&config).await;
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (store, sessions) = (store.clone(), sessions.clone());
            let (stop, written) = (stop.clone(), written.clone());
            tokio::spawn(async move {
                let mut number = writer;
                while !stop.load(Ordering::Relaxed) {
                    // Each of a record and its unique key: a transaction of two rows.
                    let mut batch = Batch::default();
                    let session = Session::new(number, "drill").address(&format!("address-{number}"));
                    batch.insert(&sessions, &session);
                    store.commit(batch).await.unwrap();
                    let found = sessions.get(&id(number)).await.unwrap();
                    assert!(found.is_some(), "record {number} is acknowledged and not found");
                    written.fetch_add(1, Ordering::Relaxed);
                    number += WRITERS;
                }
                number
            })
        })
        .collect();
    let progress = async |what: &str| {
        let before = written.load(Ordering::Relaxed);
        until(what, async || written.load(Ordering::Relaxed) >= before + 100).await;
    };
    progress("three nodes take writes").await;
    assert!(cluster.run("kill", Some(2)));
    progress("two of three nodes take writes").await;
    assert!(cluster.run("restart", Some(2)));
    progress("three nodes take writes again").await;
    assert!(cluster.run("kill", Some(3)));
    progress("the other two take writes").await;
    stop.store(true, Ordering::Relaxed);
    let mut ends = Vec::new();
    for writer in writers {
        ends.push(writer.await.unwrap());
    }
    for (first, end) in (0..WRITERS).zip(ends) {
        for number in (first..end).step_by(WRITERS as usize) {
            let found = ids(&sessions, Session::ADDRESS, &format!("address-{number}")).await;
            assert_eq!(found, [number], "record {number} by its address");
        }
    }

    // Without most replicas nothing is acknowledged, and health says why.
    assert!(cluster.run("kill", Some(2)));
    until("health knows", async || store.trouble().is_some()).await;
    let reason = store.trouble().unwrap();
    eprintln!("without most replicas: {reason}");
    assert!(cluster.run("restart", Some(2)));
    until("health knows that it is over", async || store.trouble().is_none()).await;
    let mut batch = Batch::default();
    batch.insert(&sessions, &Session::new(1_000_000, "after"));
    store.commit(batch).await.unwrap();
    drop(sessions);
    store.close().await;
}

/// Each of two sites writes while the other is away, whose nodes do not answer or are killed. Afterwards both have the
/// later write of each record, its keys, and no record or key that either has removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes; make test-sites runs it"]
async fn of_two_sites_the_later_write_stays() {
    let Some(cluster) = Cluster::start(2, 2, false) else {
        return;
    };
    let sites = [1, 2].map(|site| cluster.config(&format!("site-{site}"), site));
    for (round, (leave, arrive)) in [("cut", "join"), ("kill", "restart")].into_iter().enumerate() {
        sites_leave_in_turns(&cluster, &sites, leave, arrive, 10 * round as u64).await;
    }
}

async fn sites_leave_in_turns(cluster: &Cluster, sites: &[Config; 2], leave: &str, arrive: &str, base: u64) {
    let [first, second] = sites;
    let note = |site: &str| format!("{site}-{leave}");
    let write = async |config: &Config, numbers: &[u64], site: &str| {
        let (store, sessions) = open(config).await;
        for number in numbers {
            let mut batch = Batch::default();
            let session = Session::new(base + number, site).note(&note(site));
            batch.put(&sessions, &session.prefixes(&[&note(site)]), Condition::Always);
            store.commit(batch).await.unwrap();
        }
        drop(sessions);
        store.close().await;
    };
    let remove = async |config: &Config, number: u64| {
        let (store, sessions) = open(config).await;
        let mut batch = Batch::default();
        batch.delete(&sessions, &id(base + number), Condition::Present);
        store.commit(batch).await.unwrap();
        drop(sessions);
        store.close().await;
    };
    write(first, &[1, 4, 5], "before").await;
    let (store, sessions) = open(second).await;
    for number in [1, 4, 5] {
        until("the record is at site 2", async || {
            sessions.get(&id(base + number)).await.unwrap().is_some()
        })
        .await;
    }
    drop(sessions);
    store.close().await;

    assert!(cluster.run(leave, Some(2)));
    write(first, &[1, 2], "first").await;
    remove(first, 4).await;
    if leave == "kill" {
        // What its node keeps for the other one in memory alone dies with it, see docs/store.md.
        hints_are_written(cluster, 1).await;
    }
    assert!(cluster.run(leave, Some(1)) && cluster.run(arrive, Some(2)));
    write(second, &[1, 3], "second").await;
    remove(second, 5).await;
    if leave == "kill" {
        hints_are_written(cluster, 2).await;
    }
    assert!(cluster.run(arrive, Some(1)));
    for config in sites {
        let (store, sessions) = open(config).await;
        for (number, winner) in [(1, "second"), (2, "first"), (3, "second")] {
            until("the later write is at both sites", async || {
                let found = sessions.get(&id(base + number)).await.unwrap();
                found.is_some_and(|found| found.note == note(winner))
            })
            .await;
        }
        for number in [4, 5] {
            until("what was removed is so at both sites", async || {
                sessions.get(&id(base + number)).await.unwrap().is_none()
            })
            .await;
        }
        until("the keys of the later write are at both sites", async || {
            ids(&sessions, Session::PREFIX, &note("second")).await == [base + 3, base + 1]
        })
        .await;
        assert_eq!(ids(&sessions, Session::PREFIX, &note("first")).await, [base + 2]);
        assert!(ids(&sessions, Session::PREFIX, &note("before")).await.is_empty());
        assert!(store.stats().replication_delay.len() == 1, "{:?}", store.stats());
        drop(sessions);
        store.close().await;
    }
}

/// Waits until a node has on its disk what it keeps for nodes that do not answer: hints, which it makes when a write to
/// them has timed out and flushes each second.
async fn hints_are_written(cluster: &Cluster, node: u16) {
    let folder = cluster
        .directory
        .path()
        .join(format!("cluster/node{node}/data/hints"));
    let bytes = || -> u64 {
        let files = std::fs::read_dir(&folder).unwrap().flatten();
        files
            .map(|file| file.metadata().map_or(0, |metadata| metadata.len()))
            .sum()
    };
    let (mut before, mut same) = (0, 0);
    // Longer than `write_request_timeout` and `hints_flush_period` of the script together.
    while same < 8 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = bytes();
        same = if now > 0 && now == before { same + 1 } else { 0 };
        before = now;
    }
}
