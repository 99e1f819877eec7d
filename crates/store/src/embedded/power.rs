//! Power failures: what was acknowledged is there, whatever the disk had not written yet.
//!
//! A store is written to while [`super::disk::tape`] records what it does to its files. Then the power fails at moments
//! chosen at random: a directory is made of what was flushed and of any part of what was not, and opened.

use std::collections::BTreeMap;
use std::path::Path;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use settings::{ByteSize, Period};

use super::disk::tape::{self, Disks, Tape};
use crate::{
    Batch, Condition, Config, DecodeError, Durability, EmbeddedConfig, Index, IndexKeys, IndexSchema, Key,
    Record, Scan, Store, Table, TableDef, TableSchema,
};

/// A number and something that differs with each write.
#[derive(Clone, Debug, PartialEq)]
struct Item(u64, Vec<u8>);

impl Record for Item {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "item",
        indexes: &[IndexSchema::many("kind")],
        by_modified: true,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&self.0.to_be_bytes())
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Index(0), &[(self.0 % 3) as u8]);
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.1);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Item, DecodeError> {
        let number = key
            .try_into()
            .map_err(|_| DecodeError("a key of 8 bytes".to_owned()))?;
        Ok(Item(u64::from_be_bytes(number), value.to_vec()))
    }
}

/// The next release, which looks up by other keys: what opens it first writes the log again.
struct Later(Item);

impl Record for Later {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "item",
        indexes: &[IndexSchema::many("length")],
        by_modified: true,
        sql: None,
    };

    fn key(&self) -> Key {
        self.0.key()
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Index(0), &[(self.0.1.len() % 7) as u8]);
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Later, DecodeError> {
        Item::decode(key, value).map(Later)
    }
}

type Model = BTreeMap<u64, Vec<u8>>;

/// Files of a few records, checkpoints all the time.
fn config(directory: &Path, durability: Durability) -> Config {
    Config {
        max_batch_bytes: ByteSize::kib(4),
        embedded: EmbeddedConfig {
            directory: directory.to_owned(),
            durability,
            segment: ByteSize::kib(16),
            group_interval: Period::from_millis(0),
            checkpoint_above: ByteSize::kib(8),
            ..EmbeddedConfig::default()
        },
        ..Config::default()
    }
}

async fn open(config: &Config) -> Result<(Store, Table<Item>), crate::Error> {
    let store = Store::open(config, &[TableDef::of::<Item>()]).await?;
    let items = store.table::<Item>()?;
    Ok((store, items))
}

async fn content(items: &Table<Item>) -> Model {
    let page = items.scan(&Scan::all(10_000)).await.unwrap();
    let mut by_kind = 0;
    for kind in 0..3 {
        by_kind += items.find(Index(0), &[kind], 10_000).await.unwrap().len();
    }
    assert_eq!(by_kind, page.records.len(), "the index has what the table has");
    page.records
        .into_iter()
        .map(|row| (row.record.0, row.record.1))
        .collect()
}

/// What a run has done: after each batch, what the store holds, and how long the tape was when the batch was begun and
/// when it was acknowledged.
struct Run {
    tape: std::sync::Arc<Tape>,
    states: Vec<(usize, usize, Model)>,
}

/// Batches at random, some of them on their way together, with restarts and changes of the indexes in between.
async fn run(directory: &Path, durability: Durability, seed: u64) -> Run {
    let tape = tape::record(directory);
    let mut random = StdRng::seed_from_u64(seed);
    let (mut model, mut states) = (Model::new(), vec![(0, 0, Model::new())]);
    for round in 0..4 {
        if round % 2 == 1 {
            let config = config(directory, durability);
            let later = Store::open(&config, &[TableDef::of::<Later>()]).await;
            later.unwrap().close().await;
        }
        let (store, items) = open(&config(directory, durability)).await.unwrap();
        for _ in 0..60 {
            let mut receipts = Vec::new();
            for _ in 0..random.random_range(1..4) {
                let mut batch = Batch::default();
                let first = random.random_range(0..30u64);
                for number in first..first + random.random_range(1..4) {
                    if random.random_bool(0.3) {
                        batch.delete(&items, &number.to_be_bytes(), Condition::Always);
                        model.remove(&number);
                    } else {
                        let value: Vec<u8> = (0..random.random_range(1..700))
                            .map(|_| random.random())
                            .collect();
                        batch.put(&items, &Item(number, value.clone()), Condition::Always);
                        model.insert(number, value);
                    }
                }
                let begun = tape.length();
                receipts.push(store.commit(batch));
                states.push((begun, usize::MAX, model.clone()));
            }
            let first = states.len() - receipts.len();
            for (place, receipt) in receipts.into_iter().enumerate() {
                receipt.await.unwrap();
                states[first + place].1 = tape.length();
            }
        }
        drop(items);
        store.close().await;
    }
    Run { tape, states }
}

/// What is wrong after a power failure at a moment; `None`: nothing.
async fn fail(
    run: &Run,
    disks: &Disks,
    at: usize,
    durability: Durability,
    random: &mut StdRng,
) -> Option<String> {
    let directory = directory();
    disks.fail(directory.path(), random);
    // Every batch that was acknowledged is there, and none that had not been begun.
    let acknowledged = run
        .states
        .iter()
        .rposition(|(_, known, _)| *known <= at)
        .unwrap_or(0);
    let begun = run
        .states
        .iter()
        .rposition(|(begun, ..)| *begun <= at)
        .unwrap_or(0);
    let config = config(directory.path(), durability);
    let (store, items) = match open(&config).await {
        Ok(open) => open,
        Err(error) => return Some(format!("it does not open: {error}")),
    };
    let found = content(&items).await;
    let is_found = |(_, _, model): &(usize, usize, Model)| *model == found;
    if !run.states[acknowledged..=begun].iter().any(is_found) {
        let earlier = run.states[..acknowledged].iter().rposition(is_found);
        return Some(format!(
            "of {acknowledged} batches acknowledged it is as after {earlier:?}"
        ));
    }
    // It goes on from there.
    let mut batch = Batch::default();
    batch.put(&items, &Item(99, vec![1]), Condition::Always);
    store.commit(batch).await.unwrap();
    drop(items);
    store.close().await;
    let (store, items) = match open(&config).await {
        Ok(open) => open,
        Err(error) => return Some(format!("it does not open a second time: {error}")),
    };
    let mut expected = found;
    expected.insert(99, vec![1]);
    let right = content(&items).await == expected;
    drop(items);
    store.close().await;
    (!right).then(|| "a restart has changed it".to_owned())
}

/// Power failures at this many moments; what was wrong after them.
async fn trials(durability: Durability, count: usize, seed: u64) -> Vec<String> {
    let directory = directory();
    let run = run(directory.path(), durability, seed).await;
    let mut random = StdRng::seed_from_u64(seed);
    let mut moments: Vec<usize> = (0..count)
        .map(|_| random.random_range(0..=run.tape.length()))
        .collect();
    moments.sort_unstable();
    let (mut disks, mut wrong) = (Disks::default(), Vec::new());
    for at in moments {
        run.tape.play(&mut disks, at);
        let fault = fail(&run, &disks, at, durability, &mut random).await;
        wrong.extend(fault.map(|fault| format!("seed {seed}, after step {at}: {fault}")));
    }
    wrong
}

/// In memory where there is such a place: what a flush means, the tape decides.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// `STORE_POWER_FAILURES`: how many.
fn count(otherwise: usize) -> usize {
    let set = std::env::var("STORE_POWER_FAILURES").ok();
    set.and_then(|count| count.parse().ok()).unwrap_or(otherwise)
}

#[tokio::test]
async fn what_was_acknowledged_outlives_power_failures() {
    const OF_A_RUN: usize = 80;
    for seed in 0..count(320).div_ceil(OF_A_RUN) {
        let wrong = trials(Durability::Fsync, OF_A_RUN, seed as u64).await;
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// Without flushes acknowledged writes are lost: these trials notice when one is missing.
#[tokio::test]
async fn without_flushes_it_does_not() {
    let wrong = trials(Durability::Os, 60, 1).await;
    assert!(wrong.len() > 10, "{} of 60", wrong.len());
}
