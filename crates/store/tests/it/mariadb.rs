//! The engine for databases against real servers: the contract, restarts, a cluster that loses nodes, two sites.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use store::{
    Batch, Condition, Conflict, DecodeError, Error, Index, IndexKeys, IndexSchema, Key, Page, Record, Scan,
    Store, Table, TableDef, TableSchema,
};

use crate::databases::Servers;
use crate::mapped;
use crate::session::{Later, Session, id};
use crate::tables;

async fn open(config: &store::Config) -> (Store, Table<Session>) {
    let store = Store::open(config, &[TableDef::of::<Session>()]).await.unwrap();
    let sessions = store.table::<Session>().unwrap();
    (store, sessions)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_the_contract_on_one_server() {
    let Some(servers) = Servers::sites(1) else { return };
    let config = servers.config("site-1", &[1]);
    let (store, sessions) = open(&config).await;
    tables::contract(&store).await;
    let stats = store.stats();
    // Batches whose condition did not hold took part in a transaction, too.
    assert!(
        stats.groups < stats.batches + stats.conflicts,
        "batches share transactions: {stats:?}"
    );
    sessions.get(b"absent").await.unwrap();
    sessions.count().await.unwrap();
    sessions.scan(&Scan::all(10)).await.unwrap();
    assert_eq!(store.stats().reads, stats.reads + 3);
    two_processes_share(&store, &config).await;
    a_deadlock_is_tried_again(&servers, &sessions).await;
    new_indexes_are_built(&sessions, &config).await;
    mapped::columns_are_readable(&config).await;
    drop(sessions);
    store.clone().close().await;
    let mut late = Batch::default();
    late.insert(&store.table::<Session>().unwrap(), &Session::new(1, "late"));
    assert_eq!(store.commit(late).await, Err(Error::Closed));
    a_server_is_killed(&servers, &config).await;
    a_lost_database_is_told(&servers, &config).await;
}

/// Two stores on one database: conditions hold between them.
async fn two_processes_share(one: &Store, config: &store::Config) {
    let (other, sessions) = open(config).await;
    let mut winners = 0;
    for round in 0..20u64 {
        let batches = [one, &other].map(|store| {
            let mut batch = Batch::default();
            batch.insert(
                &store.table::<Session>().unwrap(),
                &Session::new(round, "race").address(&round.to_string()),
            );
            store.commit(batch)
        });
        let mut written = 0;
        for receipt in batches {
            match receipt.await {
                Ok(_) => written += 1,
                Err(Error::Conflict {
                    conflict: Conflict::Exists(_) | Conflict::Unique { .. },
                    ..
                }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(written, 1, "round {round}");
        winners += written;
    }
    assert_eq!(
        sessions
            .find(Session::SUBSCRIBER, b"race", 100)
            .await
            .unwrap()
            .len(),
        winners
    );
    other.close().await;
}

/// A record whose unique keys are in a table of their own.
#[derive(Debug)]
struct Booking(u64);

impl Record for Booking {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "booking",
        indexes: &[IndexSchema::unique("seat").multi()],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&id(self.0))
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Index(0), &id(self.0 % 1_000));
    }

    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(key: &[u8], _: &[u8]) -> Result<Self, DecodeError> {
        let number = key
            .try_into()
            .map_err(|_| DecodeError("a short key".to_owned()))?;
        Ok(Self(u64::from_be_bytes(number)))
    }
}

/// Two batches insert one record at once, each beside a record with unique keys of its own: what the loser learns is that the
/// record exists. Where the unique key is taken, it learns that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_insertion_is_not_taken_for_a_unique_key_of_another_table() {
    let Some(servers) = Servers::sites(1) else { return };
    let config = servers.config("site-1", &[1]);
    let tables = [TableDef::of::<Booking>(), TableDef::of::<Session>()];
    let mut stores = Vec::new();
    for _ in 0..4 {
        stores.push(Store::open(&config, &tables).await.unwrap());
    }
    let insert = |store: &Store, booking: u64, session: u64| {
        let mut batch = Batch::default();
        batch.insert(&store.table().unwrap(), &Booking(booking));
        batch.insert(&store.table().unwrap(), &Session::new(session, "race"));
        store.commit(batch)
    };
    for round in 0..40 {
        let receipts = stores.iter().zip(round * 4..);
        let receipts: Vec<_> = receipts
            .map(|(store, booking)| insert(store, booking, round))
            .collect();
        let mut written = 0;
        for receipt in receipts {
            match receipt.await {
                Ok(_) => written += 1,
                Err(Error::Conflict {
                    table: "session",
                    conflict: Conflict::Exists(_),
                    ..
                }) => {}
                Err(error) => panic!("round {round}: {error}"),
            }
        }
        assert_eq!(written, 1, "round {round}");
    }
    let first: Page<Booking> = stores[0].table().unwrap().scan(&Scan::all(1)).await.unwrap();
    let taken = insert(&stores[0], first.records[0].record.0 + 1_000, 1_000).await;
    assert!(
        matches!(
            &taken,
            Err(Error::Conflict {
                table: "booking",
                conflict: Conflict::Unique { index: "seat", .. },
                ..
            })
        ),
        "{taken:?}"
    );
}

/// Somebody else holds a record that a batch needs, and then wants one that the batch has: the server ends the one
/// that has done less, which is the batch, and it is tried again.
async fn a_deadlock_is_tried_again(servers: &Servers, sessions: &Table<Session>) {
    clear(sessions).await;
    let store = sessions.store();
    let mut batch = Batch::default();
    (0..300).for_each(|number| batch.insert(sessions, &Session::new(number, "before")));
    store.commit(batch).await.unwrap();
    let retries = store.stats().retries;
    let url = format!("mysql://signalbox:signalbox@{}/signalbox", servers.address(1));
    let mut other = mysql_async::Conn::from_url(url).await.unwrap();
    let hex = |number: u64| format!("x'{number:016x}'");
    for statement in [
        "START TRANSACTION".to_owned(),
        format!("UPDATE session SET site_id = 'elsewhere' WHERE id >= {}", hex(2)),
    ] {
        other.query_drop(statement).await.unwrap();
    }
    let mut batch = Batch::default();
    for number in [1, 2] {
        batch.put(sessions, &Session::new(number, "after"), Condition::Present);
    }
    let receipt = store.commit(batch);
    // The batch has the first of its records by now, and waits for the second.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let wanted = format!("UPDATE session SET site_id = 'elsewhere' WHERE id = {}", hex(1));
    other.query_drop(wanted).await.unwrap();
    other.query_drop("COMMIT").await.unwrap();
    receipt.await.unwrap();
    assert!(store.stats().retries > retries);
    for number in [1, 2] {
        assert_eq!(
            sessions.get(&id(number)).await.unwrap().unwrap().subscriber,
            "after"
        );
    }
    clear(sessions).await;
}

/// A later release looks up by note as well.
async fn new_indexes_are_built(sessions: &Table<Session>, config: &store::Config) {
    for number in 1_000..1_700u64 {
        let mut batch = Batch::default();
        batch.insert(
            sessions,
            &Session::new(number, "reindexed").note(&format!("note-{}", number % 7)),
        );
        let receipt = sessions.store().commit(batch);
        if number == 1_699 {
            receipt.await.unwrap();
        }
    }
    let later = Store::open(config, &[TableDef::of::<Later>()]).await.unwrap();
    let table = later.table::<Later>().unwrap();
    assert_eq!(
        table.find(Later::NOTE, b"note-3", 1_000).await.unwrap().len(),
        100
    );
    assert_eq!(
        table
            .find(Session::SUBSCRIBER, b"reindexed", 1_000)
            .await
            .unwrap()
            .len(),
        700
    );
    drop(table);
    later.close().await;
}

/// Writers that never stop, and what they were told.
struct Load {
    stop: Arc<AtomicBool>,
    writers: Vec<tokio::task::JoinHandle<BTreeMap<u64, bool>>>,
    last: Arc<AtomicU64>,
    gap: Arc<AtomicU64>,
}

impl Load {
    /// Inserts pairs of records; remembers which were acknowledged (true) and which may be there (false).
    fn start(store: &Store, first: u64) -> Load {
        let begun = Instant::now();
        let (stop, last, gap) = <(Arc<AtomicBool>, Arc<AtomicU64>, Arc<AtomicU64>)>::default();
        let writers = (0..4u64).map(|writer| {
            let (store, stop, last, gap) = (store.clone(), stop.clone(), last.clone(), gap.clone());
            tokio::spawn(async move {
                let sessions = store.table::<Session>().unwrap();
                let mut told = BTreeMap::new();
                let mut waiting = VecDeque::new();
                let mut number = first + writer * 1_000_000;
                while !stop.load(Ordering::Relaxed) || !waiting.is_empty() {
                    while waiting.len() < 16 && !stop.load(Ordering::Relaxed) {
                        let mut batch = Batch::default();
                        batch.insert(
                            &sessions,
                            &Session::new(number, "load").address(&format!("a{number}")),
                        );
                        batch.insert(&sessions, &Session::new(number + PARTNER, "load"));
                        waiting.push_back((number, store.commit(batch)));
                        number += 1;
                    }
                    let Some((number, receipt)) = waiting.pop_front() else {
                        continue;
                    };
                    match receipt.await {
                        Ok(_) => {
                            told.insert(number, true);
                            let now = begun.elapsed().as_millis() as u64;
                            gap.fetch_max(
                                now - last.swap(now, Ordering::Relaxed).min(now),
                                Ordering::Relaxed,
                            );
                        }
                        Err(Error::Unavailable { maybe_applied, .. }) => {
                            if maybe_applied {
                                told.insert(number, false);
                            }
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
                told
            })
        });
        Load {
            writers: writers.collect(),
            stop,
            last,
            gap,
        }
    }

    /// Waits until something was acknowledged after now.
    async fn goes_on(&self) {
        let before = self.last.load(Ordering::Relaxed);
        let begun = Instant::now();
        while self.last.load(Ordering::Relaxed) <= before + 50 {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "nothing was written for a minute"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Stops; everything acknowledged is there, pairs are whole, and nothing else is there.
    async fn verify(self, sessions: &Table<Session>) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        let mut told = BTreeMap::new();
        for writer in self.writers {
            told.extend(writer.await.unwrap());
        }
        let mut found = BTreeMap::new();
        let mut next = Some(Scan::all(1_000));
        while let Some(scan) = next {
            let page = sessions.scan(&scan).await.unwrap();
            found.extend(page.records.into_iter().map(|row| (row.id, row.record)));
            next = page.next;
        }
        for (number, acknowledged) in &told {
            let pair = (
                found.contains_key(number),
                found.contains_key(&(number + PARTNER)),
            );
            assert_eq!(pair.0, pair.1, "the pair {number} is torn");
            assert!(pair.0 || !acknowledged, "{number} was acknowledged and is lost");
        }
        for number in found.keys().filter(|number| **number < PARTNER) {
            assert!(told.contains_key(number), "{number} was refused and is there");
        }
        let acknowledged = told.values().filter(|acknowledged| **acknowledged).count();
        eprintln!(
            "{acknowledged} pairs acknowledged, longest silence {} ms",
            self.gap.load(Ordering::Relaxed)
        );
        acknowledged
    }
}

const PARTNER: u64 = 1 << 32;

async fn clear(sessions: &Table<Session>) {
    loop {
        let page = sessions.scan(&Scan::all(1_000)).await.unwrap();
        if page.records.is_empty() {
            return;
        }
        let mut batch = Batch::default();
        page.records
            .iter()
            .for_each(|row| batch.delete(sessions, &id(row.id), Condition::Always));
        sessions.store().commit(batch).await.unwrap();
    }
}

/// The only server dies and comes back while batches are on their way.
async fn a_server_is_killed(servers: &Servers, config: &store::Config) {
    let mut config = config.clone();
    config.mariadb.retry_for = settings::Period::from_secs(30);
    config.mariadb.remember_commits = settings::Period::from_secs(600);
    let (store, sessions) = open(&config).await;
    clear(&sessions).await;
    let load = Load::start(&store, 0);
    load.goes_on().await;
    assert!(servers.run("kill", Some(1)));
    assert!(servers.run("restart", Some(1)));
    load.goes_on().await;
    assert!(load.verify(&sessions).await > 10);
    assert!(store.stats().retries > 0);
    drop(sessions);
    store.close().await;
}

/// A write that was given up is reported until the database takes writes again, also where no further write comes.
async fn a_lost_database_is_told(servers: &Servers, config: &store::Config) {
    let mut config = config.clone();
    config.mariadb.retry_for = settings::Period::from_millis(500);
    let (store, sessions) = open(&config).await;
    assert_eq!(store.trouble(), None);
    assert!(servers.run("kill", Some(1)));
    let mut batch = Batch::default();
    batch.insert(&sessions, &Session::new(1 << 40, "last"));
    let refused = store.commit(batch).await;
    assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
    assert!(store.trouble().is_some() && store.stats().troubled);
    assert!(servers.run("restart", Some(1)));
    for _ in 0..600 {
        if store.trouble().is_none() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(store.trouble(), None);
    drop(sessions);
    store.close().await;
}

/// While no node serves, reads and writes fail soon, however long they are tried otherwise, and the first after its return
/// succeed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_no_node_serves_callers_get_the_error() {
    let Some(servers) = Servers::sites(1) else { return };
    let mut config = servers.config("site-1", &[1]);
    // Longer than any test waits.
    config.mariadb.retry_for = settings::Period::from_secs(3_600);
    config.mariadb.remember_commits = settings::Period::from_secs(7_200);
    config.mariadb.unavailable_after = settings::Period::from_millis(500);
    let (store, sessions) = open(&config).await;
    assert!(servers.run("kill", Some(1)));
    for number in 0..3 {
        let mut batch = Batch::default();
        batch.insert(&sessions, &Session::new((1 << 40) + number, "x"));
        let refused = store.commit(batch).await;
        assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
        let read = sessions.get(&id(1)).await;
        assert!(matches!(read, Err(Error::Unavailable { .. })), "{read:?}");
    }
    assert!(store.trouble().is_some());
    assert!(servers.run("restart", Some(1)));
    let mut batch = Batch::default();
    batch.insert(&sessions, &Session::new(1 << 41, "y"));
    while store.commit(batch.clone()).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(sessions.get(&id(1 << 41)).await.unwrap().is_some());
    trouble(&store, false).await;
    drop(sessions);
    store.close().await;
}

/// Waits until the store has trouble, or none any more; returns it.
async fn trouble(store: &Store, is_there: bool) -> Option<String> {
    for _ in 0..600 {
        if store.trouble().is_some() == is_there {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(store.trouble().is_some(), is_there);
    store.trouble()
}

async fn connection(servers: &Servers) -> mysql_async::Conn {
    let url = format!("mysql://signalbox:signalbox@{}/signalbox", servers.address(1));
    mysql_async::Conn::from_url(url).await.unwrap()
}

/// Readiness follows the connection and the tables, also while no function writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_gone_is_trouble_before_a_write_meets_it() {
    let Some(servers) = Servers::sites(1) else { return };
    let config = servers.config("site-1", &[1]);
    store::reach(&config).await.unwrap();
    let (store, sessions) = open(&config).await;
    let mut client = connection(&servers).await;
    client
        .query_drop("RENAME TABLE session TO elsewhere")
        .await
        .unwrap();
    let reason = trouble(&store, true).await.unwrap();
    assert!(reason.contains("session"), "{reason}");
    client
        .query_drop("RENAME TABLE elsewhere TO session")
        .await
        .unwrap();
    trouble(&store, false).await;
    assert!(servers.run("kill", Some(1)));
    trouble(&store, true).await;
    let unreachable = store::reach(&config).await.unwrap_err();
    assert!(matches!(unreachable, Error::Unavailable { .. }), "{unreachable}");
    assert!(servers.run("restart", Some(1)));
    trouble(&store, false).await;
    drop(sessions);
    store.close().await;

    // A table of another program stays as it is.
    let mut client = connection(&servers).await;
    client.query_drop("DROP TABLE session").await.unwrap();
    client
        .query_drop("CREATE TABLE session (id INT, value TEXT)")
        .await
        .unwrap();
    let refused = Store::open(&config, &[TableDef::of::<Session>()]).await;
    let words = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(
        words.contains("the table session is not one of this program"),
        "{words}"
    );
    let columns: Vec<String> = client
        .query("SELECT column_name FROM information_schema.columns WHERE table_name = 'session'")
        .await
        .unwrap();
    assert_eq!(columns.len(), 2, "{columns:?}");
}

/// Nodes of a cluster die in turn, the one in use among them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_loses_nodes_and_no_acknowledged_write() {
    let Some(servers) = Servers::galera(3) else { return };
    let (store, sessions) = open(&servers.config("site-1", &[1, 2, 3])).await;
    tables::contract(&store).await;
    two_nodes_certify(&sessions, &servers.config("site-1", &[2])).await;
    let load = Load::start(&store, 0);
    load.goes_on().await;
    // The one in use.
    assert!(servers.run("kill", Some(1)));
    load.goes_on().await;
    // To the second node, or to the third where the second is not ready before the first one is voted out.
    assert!(store.stats().failovers >= 1);
    assert!(servers.run("restart", Some(1)));
    load.goes_on().await;
    // One that is not in use, as a rule: the others stop for the time it takes to vote it out.
    assert!(servers.run("kill", Some(3)));
    load.goes_on().await;
    assert!(servers.run("restart", Some(3)));
    load.goes_on().await;
    assert!(load.verify(&sessions).await > 10);
    // A function on another node sees all of it.
    let (other, elsewhere) = open(&servers.config("site-1", &[3])).await;
    let count = async |table: &Table<Session>| {
        let (mut count, mut next) = (0, Some(Scan::all(1_000)));
        while let Some(scan) = next {
            let page = table.scan(&scan).await.unwrap();
            (count, next) = (count + page.records.len(), page.next);
        }
        count
    };
    assert_eq!(count(&elsewhere).await, count(&sessions).await);
    drop((sessions, elsewhere));
    other.close().await;
    store.close().await;
}

/// Functions on two nodes count in the same few records: what one node has let through the other may refuse when it
/// is committed. Such a transaction is tried again, and no count is lost.
async fn two_nodes_certify(here: &Table<Session>, other: &store::Config) {
    const RECORDS: u64 = 3;
    clear(here).await;
    let mut batch = Batch::default();
    (0..RECORDS).for_each(|number| batch.insert(here, &Session::new(number, "counted").note("0")));
    here.store().commit(batch).await.unwrap();
    let (elsewhere, there) = open(other).await;
    let count = async |table: Table<Session>| {
        let mut counted = 0;
        for turn in 0..150 {
            let row = table.get(&id(turn % RECORDS)).await.unwrap().unwrap();
            let next = row.note.parse::<u64>().unwrap() + 1;
            let mut batch = Batch::default();
            batch.update(&table, &row.record.clone().note(&next.to_string()), row.version);
            match table.store().commit(batch).await {
                Ok(_) => counted += 1,
                Err(Error::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        counted
    };
    let (one, two) = tokio::join!(count(here.clone()), count(there.clone()));
    // A node may be a moment behind; what was acknowledged has been certified.
    let begun = Instant::now();
    loop {
        let mut sum = 0;
        for number in 0..RECORDS {
            sum += here
                .get(&id(number))
                .await
                .unwrap()
                .unwrap()
                .note
                .parse::<u64>()
                .unwrap();
        }
        if sum == one + two {
            break;
        }
        assert!(
            sum < one + two && begun.elapsed() < Duration::from_secs(10),
            "{sum} of {one} + {two}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(one > 0 && two > 0, "{one} and {two}");
    let retries = here.store().stats().retries + there.store().stats().retries;
    eprintln!(
        "two nodes counted {one} and {two} times in {RECORDS} records, {retries} transactions tried again"
    );
    drop(there);
    elsewhere.close().await;
    clear(here).await;
}

/// Two sites follow each other; when one dies, the other has its sessions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sites_replicate_and_tell_the_delay() {
    let Some(servers) = Servers::sites(2) else { return };
    let (one, here) = open(&servers.config("site-1", &[1])).await;
    let (other, there) = open(&servers.config("site-2", &[2])).await;
    let arrives = async |table: &Table<Session>, number: u64| {
        let begun = Instant::now();
        loop {
            if let Some(row) = table.get(&id(number)).await.unwrap() {
                return row;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "{number} has not arrived"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    for (number, (table, from)) in [(&here, &there), (&there, &here)].into_iter().enumerate() {
        let number = number as u64;
        let mut batch = Batch::default();
        batch.insert(from, &Session::new(number, "imsi-1").prefixes(&["p"]));
        from.store().commit(batch).await.unwrap();
        let row = arrives(table, number).await;
        assert_eq!(&*row.site, if number == 0 { "site-2" } else { "site-1" });
        assert!(
            table
                .find(Session::PREFIX, b"p", 5)
                .await
                .unwrap()
                .iter()
                .any(|row| row.id == number)
        );
    }
    let begun = Instant::now();
    let delays = loop {
        let delays = one.stats().replication_delay;
        if !delays.is_empty() || begun.elapsed() > Duration::from_secs(20) {
            break delays;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(
        delays.iter().map(|(site, _)| site.as_str()).collect::<Vec<_>>(),
        ["site-2"]
    );
    eprintln!("replication delay of site-2 seen at site-1: {:?}", delays[0].1);

    // Site 2 no longer hears of the others, and tells.
    assert!(servers.run("cut", Some(2)));
    let begun = Instant::now();
    while other
        .stats()
        .replication_delay
        .first()
        .is_none_or(|(_, delay)| *delay < Duration::from_secs(1))
    {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{:?}",
            other.stats().replication_delay
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut batch = Batch::default();
    batch.insert(&here, &Session::new(10, "while cut"));
    one.commit(batch).await.unwrap();
    assert!(servers.run("join", Some(2)));
    arrives(&there, 10).await;

    // Site 1 dies; its sessions are served at site 2.
    assert!(servers.run("kill", Some(1)));
    let row = there.get(&id(10)).await.unwrap().unwrap();
    let mut batch = Batch::default();
    batch.update(&there, &row.record.clone().note("taken over"), row.version);
    other.commit(batch).await.unwrap();
    assert!(servers.run("restart", Some(1)));
    let begun = Instant::now();
    while here.get(&id(10)).await.unwrap().unwrap().note != "taken over" {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "the change has not arrived"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop((here, there));
    one.close().await;
    other.close().await;
}
