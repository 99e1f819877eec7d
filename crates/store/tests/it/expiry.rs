//! Records with a lifetime, on each engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use store::{
    Batch, Clock, Condition, Config, Conflict, DecodeError, Error, Index, IndexKeys, IndexSchema, Key,
    Record, Scan, Store, Sweep, SweepConfig, Table, TableDef, TableSchema,
};

use crate::databases::Servers;
use crate::session::Session;

/// A number of an owner, until a time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lease(u64, Option<u64>);

const OWNER: Index = Index(0);
const SEAT: Index = Index(2);
/// Leases from this number on take a seat, which one of them has at a time: the last two digits.
const SEATED: u64 = 10_000;

impl Record for Lease {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "lease",
        indexes: &[
            IndexSchema::many("owner"),
            IndexSchema::many("expiry").ordered(),
            IndexSchema::unique("seat"),
        ],
        by_modified: true,
        sql: None,
    };
    const EXPIRY: Option<Index> = Some(Index(1));

    fn key(&self) -> Key {
        Key::from_slice(&self.0.to_be_bytes())
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(OWNER, b"owner");
        if self.0 >= SEATED {
            keys.add(SEAT, &(self.0 % 100).to_be_bytes());
        }
    }

    fn expires(&self) -> Option<u64> {
        self.1
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.1.iter().flat_map(|at| at.to_be_bytes()));
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Lease, DecodeError> {
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_be_bytes);
        let id = number(key).map_err(|_| DecodeError("a key of 8 bytes".to_owned()))?;
        Ok(Lease(id, number(value).ok()))
    }
}

/// A clock that a test sets.
fn clock(now: &Arc<AtomicU64>) -> Clock {
    let now = now.clone();
    Clock::new(move || now.load(Relaxed))
}

const BEGIN: u64 = 1_777_000_000_000_000;

async fn put(leases: &Table<Lease>, lease: &Lease, condition: Condition) -> Result<(), Error> {
    let mut batch = Batch::default();
    batch.put(leases, lease, condition);
    leases.store().commit(batch).await.map(drop)
}

/// The numbers that each kind of read shows; all kinds agree.
async fn seen(leases: &Table<Lease>) -> Vec<u64> {
    let mut by_key = Vec::new();
    for number in 0..20u64 {
        let got = leases.get(&number.to_be_bytes()).await.unwrap();
        by_key.extend(got.map(|stored| stored.record.0));
    }
    let found = leases.find(OWNER, b"owner", 1_000).await.unwrap();
    let scanned = async |scan: Scan| leases.scan(&scan).await.unwrap().records;
    let lists = [
        found,
        scanned(Scan::all(1_000)).await,
        scanned(Scan::by_modified(1_000)).await,
    ];
    for records in lists {
        let mut numbers: Vec<u64> = records.iter().map(|stored| stored.record.0).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, by_key);
    }
    by_key
}

async fn contract(store: &Store, now: &AtomicU64) {
    let leases = store.table::<Lease>().unwrap();
    for number in 0..10u64 {
        let expires = (number != 9).then_some(BEGIN + 1_000_000 * (1 + number));
        put(&leases, &Lease(number, expires), Condition::Absent)
            .await
            .unwrap();
    }
    assert_eq!(seen(&leases).await.len(), 10);
    now.store(BEGIN + 5_000_000, Relaxed);
    assert_eq!(seen(&leases).await, [5, 6, 7, 8, 9]);
    // One that has expired is renewed, one that has not ends earlier.
    put(&leases, &Lease(0, Some(BEGIN + 60_000_000)), Condition::Always)
        .await
        .unwrap();
    put(&leases, &Lease(5, Some(BEGIN)), Condition::Present)
        .await
        .unwrap();
    // An insert over one that has expired finds nothing, one over another finds it.
    put(&leases, &Lease(1, Some(BEGIN + 7_000_000)), Condition::Absent)
        .await
        .unwrap();
    for number in [1, 9] {
        let taken = put(&leases, &Lease(number, None), Condition::Absent).await;
        let exists = |conflict: &Conflict| matches!(conflict, Conflict::Exists(_));
        assert!(
            matches!(&taken, Err(Error::Conflict { conflict, .. }) if exists(conflict)),
            "{number}: {taken:?}"
        );
    }
    // A batch of which one record is taken writes none, whatever has expired.
    let mut batch = Batch::default();
    for number in [2, 3, 9] {
        batch.insert(&leases, &Lease(number, None));
    }
    let taken = leases.store().commit(batch).await;
    assert!(
        matches!(taken, Err(Error::Conflict { operation: 2, .. })),
        "{taken:?}"
    );
    assert_eq!(seen(&leases).await, [0, 1, 6, 7, 8, 9]);
    // Of several inserts at once, one succeeds.
    let lease = Lease(2, Some(BEGIN + 5_500_000));
    let inserts = [(); 4].map(|()| {
        let mut batch = Batch::default();
        batch.insert(&leases, &lease);
        leases.store().commit(batch)
    });
    let mut succeeded = 0;
    for insert in inserts {
        succeeded += usize::from(insert.await.is_ok());
    }
    assert_eq!(succeeded, 1);
    now.store(BEGIN + 8_000_000, Relaxed);
    assert_eq!(seen(&leases).await, [0, 8, 9]);

    let sweep = Sweep::new(leases.clone(), SweepConfig::default()).unwrap();
    sweep.round().await.unwrap();
    assert_eq!(sweep.removed(), 7);
    assert_eq!(leases.scan(&Scan::all(100)).await.unwrap().records.len(), 3);
    put(&leases, &Lease(1, None), Condition::Absent).await.unwrap();
    assert_eq!(seen(&leases).await, [0, 1, 8, 9]);
    sweep.round().await.unwrap();
    assert_eq!(sweep.removed(), 7);
    now.store(BEGIN + 3_600_000_000, Relaxed);
    sweep.round().await.unwrap();
    assert_eq!((sweep.removed(), seen(&leases).await), (9, vec![1, 9]));
    expired_records_meet_no_condition(&leases, now).await;
    expired_holders_give_unique_keys_back(&leases, now).await;
    assert_eq!(seen(&leases).await, [1, 9]);
}

/// A record that reads leave out is absent for conditions as well.
async fn expired_records_meet_no_condition(leases: &Table<Lease>, now: &AtomicU64) {
    let commit = async |fill: &dyn Fn(&mut Batch)| {
        let mut batch = Batch::default();
        fill(&mut batch);
        leases.store().commit(batch).await
    };
    let (begin, number) = (now.load(Relaxed), 50u64);
    let (key, lease) = (number.to_be_bytes(), Lease(number, Some(begin + 1_000_000)));
    let version = commit(&|batch| batch.insert(leases, &lease)).await.unwrap();
    commit(&|batch| batch.require(leases, &key, Condition::Version(version)))
        .await
        .unwrap();
    now.store(begin + 1_000_000, Relaxed);
    for condition in [Condition::Present, Condition::Version(version)] {
        let refused = [
            commit(&|batch| batch.put(leases, &Lease(number, None), condition)).await,
            commit(&|batch| batch.delete(leases, &key, condition)).await,
            commit(&|batch| batch.require(leases, &key, condition)).await,
        ];
        for refused in refused {
            let absent = |conflict: &Conflict| matches!(conflict, Conflict::Absent);
            assert!(
                matches!(&refused, Err(Error::Conflict { conflict, .. }) if absent(conflict)),
                "{condition:?}: {refused:?}"
            );
        }
    }
    commit(&|batch| batch.require(leases, &key, Condition::Absent))
        .await
        .unwrap();
    commit(&|batch| batch.delete(leases, &key, Condition::Always))
        .await
        .unwrap();
}

/// A unique key whose holder has expired is free, before the sweep has removed the holder.
async fn expired_holders_give_unique_keys_back(leases: &Table<Lease>, now: &AtomicU64) {
    let insert = async |numbers: &[u64], expires: Option<u64>| {
        let mut batch = Batch::default();
        for number in numbers {
            batch.insert(leases, &Lease(SEATED + number, expires));
        }
        leases.store().commit(batch).await
    };
    let holder = async |seat: u64| {
        let found = leases.find(SEAT, &seat.to_be_bytes(), 10).await.unwrap();
        let numbers: Vec<u64> = found.iter().map(|stored| stored.record.0 - SEATED).collect();
        numbers
    };
    let begin = now.load(Relaxed);
    insert(&[1, 2], Some(begin + 1_000_000)).await.unwrap();
    insert(&[3], None).await.unwrap();
    let taken = insert(&[101], None).await;
    let unique = |conflict: &Conflict| matches!(conflict, Conflict::Unique { index: "seat", .. });
    assert!(
        matches!(&taken, Err(Error::Conflict { conflict, .. }) if unique(conflict)),
        "{taken:?}"
    );
    now.store(begin + 1_000_000, Relaxed);
    // Of three keys one is taken: nothing is written, and the holders of the others stay expired.
    let taken = insert(&[101, 102, 103], None).await;
    assert!(
        matches!(&taken, Err(Error::Conflict { conflict, .. }) if unique(conflict)),
        "{taken:?}"
    );
    for seat in [1, 2] {
        assert!(holder(seat).await.is_empty());
    }
    insert(&[101, 102], None).await.unwrap();
    for (seat, number) in [(1, 101), (2, 102), (3, 3)] {
        assert_eq!(holder(seat).await, [number]);
    }
    let mut end = Batch::default();
    for number in [101, 102, 3] {
        let key = (SEATED + number).to_be_bytes();
        end.delete(leases, &key, Condition::Present);
    }
    leases.store().commit(end).await.unwrap();
    // The first holders were removed with the insertion.
    let sweep = Sweep::new(leases.clone(), SweepConfig::default()).unwrap();
    sweep.round().await.unwrap();
    assert_eq!(sweep.removed(), 0);
}

fn tables() -> [TableDef; 2] {
    [TableDef::of::<Lease>(), TableDef::of::<Session>()]
}

#[tokio::test]
async fn expired_records_are_not_read_and_are_swept_away() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.embedded.directory = directory.path().to_owned();
    let now = Arc::new(AtomicU64::new(BEGIN));
    let store = Store::open_with_clock(&config, &tables(), clock(&now))
        .await
        .unwrap();
    contract(&store, &now).await;
    let endless = store.table::<Session>().unwrap();
    let refused = Sweep::new(endless, SweepConfig::default()).unwrap_err();
    assert!(refused.to_string().contains("expiry"), "{refused}");

    // More than one page, at a rate that does not hold up the test, also after a restart.
    let leases = store.table::<Lease>().unwrap();
    for number in 100..1_100u64 {
        let expires = BEGIN + 3_600_000_000 + number;
        put(&leases, &Lease(number, Some(expires)), Condition::Absent)
            .await
            .unwrap();
    }
    drop(leases);
    store.close().await;
    now.store(BEGIN + 3_600_000_000 + 600, Relaxed);
    let store = Store::open_with_clock(&config, &tables(), clock(&now))
        .await
        .unwrap();
    let leases = store.table::<Lease>().unwrap();
    let sweep = Sweep::new(
        leases.clone(),
        SweepConfig {
            rate: 100_000,
            ..SweepConfig::default()
        },
    )
    .unwrap();
    sweep.round().await.unwrap();
    assert_eq!(sweep.removed(), 501);
    assert_eq!(leases.count().await.unwrap(), 501);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_keeps_the_same_contract() {
    let Some(servers) = Servers::sites(1) else { return };
    let now = Arc::new(AtomicU64::new(BEGIN));
    let config = servers.config("site-1", &[1]);
    let store = Store::open_with_clock(&config, &tables(), clock(&now))
        .await
        .unwrap();
    contract(&store, &now).await;
    store.close().await;
}

/// On a cluster.
pub(crate) async fn keeps_the_contract(config: &Config) {
    let now = Arc::new(AtomicU64::new(BEGIN));
    let store = Store::open_with_clock(config, &tables(), clock(&now))
        .await
        .unwrap();
    contract(&store, &now).await;
    store.close().await;
}

pub(crate) async fn open(config: &Config) -> Store {
    Store::open(config, &tables()).await.unwrap()
}

/// Writes a record that expires after this time.
pub(crate) async fn write_one_for(store: &Store, number: u64, lifetime: std::time::Duration) {
    let expires = Clock::default().micros() + lifetime.as_micros() as u64;
    let leases = store.table::<Lease>().unwrap();
    put(&leases, &Lease(number, Some(expires)), Condition::Always)
        .await
        .unwrap();
}
