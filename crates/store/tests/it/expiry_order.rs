//! The order of expiry in the embedded engine: through renewals, removals, compaction, and restarts with any checkpoint.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use store::{
    Batch, Condition, Config, DecodeError, Index, IndexKeys, IndexSchema, Key, Record, Scan, Store, Table,
    TableDef, TableSchema,
};

use crate::checkpoint::{config, leave_any};

/// A number with bytes, until a time.
#[derive(Clone, Debug, PartialEq)]
struct Held {
    id: u64,
    expires: u64,
    bytes: Vec<u8>,
}

const EXPIRY: Index = Index(1);
/// Long after any test: in microseconds since 1970.
const BEGIN: u64 = 10_000_000_000_000_000;

impl Record for Held {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "held",
        indexes: &[IndexSchema::many("parity"), IndexSchema::many("expiry").ordered()],
        by_modified: false,
        sql: None,
    };
    const EXPIRY: Option<Index> = Some(EXPIRY);

    fn key(&self) -> Key {
        Key::from_slice(&self.id.to_be_bytes())
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Index(0), &[(self.id % 2) as u8]);
    }

    fn expires(&self) -> Option<u64> {
        Some(self.expires)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.expires.to_be_bytes());
        out.extend(&self.bytes);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Held, DecodeError> {
        let wrong = || DecodeError("two numbers of 8 bytes".to_owned());
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_be_bytes).map_err(|_| wrong());
        let (expires, bytes) = value.split_at_checked(8).ok_or_else(wrong)?;
        Ok(Held {
            id: number(key)?,
            expires: number(expires)?,
            bytes: bytes.to_vec(),
        })
    }
}

type Model = BTreeMap<u64, Held>;

async fn open(config: &Config) -> (Store, Table<Held>) {
    let store = Store::open(config, &[TableDef::of::<Held>()]).await.unwrap();
    let held = store.table::<Held>().unwrap();
    (store, held)
}

async fn write(store: &Store, held: &Table<Held>, model: &mut Model, count: u32, random: &mut StdRng) {
    for _ in 0..count {
        let id = random.random_range(0..300u64);
        let mut batch = Batch::default();
        if random.random_bool(0.4) {
            batch.delete(held, &id.to_be_bytes(), Condition::Always);
            model.remove(&id);
        } else {
            // Few times, so that records share one; some are written again with theirs.
            let one = Held {
                id,
                expires: BEGIN + random.random_range(0..40),
                bytes: vec![7; random.random_range(0..300)],
            };
            batch.put(held, &one, Condition::Always);
            model.insert(id, one);
        }
        store.commit(batch).await.unwrap();
    }
}

/// All records by pages of this length, from before `to`.
async fn scanned(held: &Table<Held>, scan: Scan) -> Vec<Held> {
    let (mut all, mut next) = (Vec::new(), Some(scan));
    while let Some(scan) = next {
        let page = held.scan(&scan).await.unwrap();
        all.extend(page.records.into_iter().map(|stored| stored.record));
        next = page.next;
    }
    all
}

async fn compare(held: &Table<Held>, model: &Model, what: &str) {
    for length in [7, 1_000] {
        let (from, to) = ((BEGIN + 5).to_be_bytes(), (BEGIN + 30).to_be_bytes());
        let scan = Scan::by_index(EXPIRY, length).from_key(&from).to_key(&to);
        let mut got = scanned(held, scan).await;
        assert!(got.is_sorted_by_key(|one| one.expires), "{what}");
        got.sort_by_key(|one| (one.expires, one.id));
        let within = |one: &&Held| (BEGIN + 5..BEGIN + 30).contains(&one.expires);
        let mut expected: Vec<Held> = model.values().filter(within).cloned().collect();
        expected.sort_by_key(|one| (one.expires, one.id));
        assert!(got == expected, "{what}: {} of {}", got.len(), expected.len());
    }
    let time = BEGIN + 12;
    let found = held.find(EXPIRY, &time.to_be_bytes(), 1_000).await.unwrap();
    let expected = model.values().filter(|one| one.expires == time).count();
    assert_eq!(found.len(), expected, "{what}");
    let all = scanned(held, Scan::by_index(EXPIRY, 50)).await;
    assert_eq!(all.len(), model.len(), "{what}");
}

/// A process that was killed leaves some earlier checkpoint, or none.
#[tokio::test]
async fn records_are_in_the_order_of_their_expiry_with_any_checkpoint() {
    let (mut used, mut compactions) = (0, 0);
    for seed in 0..3 {
        let directory = tempfile::tempdir().unwrap();
        let (config, path) = (config(directory.path()), directory.path().join("store.index"));
        let mut random = StdRng::seed_from_u64(seed);
        let (mut model, mut earlier): (Model, Vec<Vec<u8>>) = Default::default();
        for round in 0..10 {
            let (store, held) = open(&config).await;
            used += u64::from(store.stats().unread > 0);
            compare(&held, &model, &format!("seed {seed}, round {round}")).await;
            for _ in 0..8 {
                write(&store, &held, &mut model, 120, &mut random).await;
                earlier.extend(std::fs::read(&path).ok());
            }
            compare(&held, &model, &format!("seed {seed}, after round {round}")).await;
            compactions += store.stats().compactions;
            drop(held);
            store.close().await;
            earlier.extend(std::fs::read(&path).ok());
            leave_any(&path, &mut earlier, &mut random);
        }
    }
    assert!(
        used > 5 && compactions > 20,
        "{used} used, {compactions} compactions"
    );
}

/// The times are in the checkpoint: no record is read for them.
#[tokio::test]
async fn a_start_with_a_checkpoint_reads_no_record_for_its_expiry() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path());
    let (store, held) = open(&config).await;
    for id in 0..600 {
        let one = Held {
            id,
            expires: BEGIN + id,
            bytes: vec![7; 400],
        };
        let mut batch = Batch::default();
        batch.insert(&held, &one);
        store.commit(batch).await.unwrap();
    }
    drop(held);
    store.close().await;
    let first = crate::damage::files(directory.path()).remove(0);
    let length = std::fs::read(&first).unwrap().len();
    crate::damage::flip(&first, length / 2);
    // What reads a damaged record does not open with the checkpoint, nor without it.
    let (store, held) = open(&config).await;
    assert!(store.stats().unread > 0);
    let last = Scan::by_index(EXPIRY, 10).from_key(&(BEGIN + 590).to_be_bytes());
    assert_eq!(scanned(&held, last).await.len(), 10);
}
