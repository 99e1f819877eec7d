//! Checkpoints of the indexes: what opens with one is what the log says, and nothing about a checkpoint that is old,
//! damaged or of another log can change that.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use settings::ByteSize;
use store::{
    Batch, Condition, Config, DecodeError, Error, IndexKeys, IndexSchema, Key, Record, Scan, Store, Table,
    TableDef, TableSchema,
};

use crate::damage::{files, flip};
use crate::log::small_segments;
use crate::session::{Later, Session, id};

type Model = BTreeMap<u64, Session>;

/// Checkpoints are written all the time.
pub(crate) fn config(directory: &Path) -> Config {
    let mut config = small_segments(directory);
    config.embedded.checkpoint_above = ByteSize(0);
    config
}

/// Leaves what a process may that was killed: the last checkpoint, none, or one of the earlier ones.
pub(crate) fn leave_any(path: &Path, earlier: &mut Vec<Vec<u8>>, random: &mut StdRng) {
    earlier.dedup();
    match random.random_range(0..4) {
        0 => {}
        1 => drop(std::fs::remove_file(path)),
        _ if earlier.is_empty() => {}
        _ => {
            let recent = earlier.len().saturating_sub(12);
            let any = random.random_range(recent..earlier.len());
            std::fs::write(path, &earlier[any]).unwrap();
        }
    }
}

/// None is written.
fn without(directory: &Path) -> Config {
    let mut config = small_segments(directory);
    config.embedded.checkpoint_above = ByteSize::mib(1_000_000);
    config
}

fn index(directory: &Path) -> PathBuf {
    directory.join("store.index")
}

async fn open(config: &Config) -> (Store, Table<Session>) {
    let store = Store::open(config, &[TableDef::of::<Session>()]).await.unwrap();
    let sessions = store.table::<Session>().unwrap();
    (store, sessions)
}

fn any_session(number: u64, random: &mut StdRng) -> Session {
    let subscriber = format!("imsi-{}", random.random_range(0..20));
    let note = "n".repeat(random.random_range(0..500));
    let address = format!("10.0.{number}.{}", random.random_range(0..3));
    let prefix = format!("p{}", random.random_range(0..9));
    Session::new(number, &subscriber)
        .note(&note)
        .address(&address)
        .prefixes(&[&prefix])
}

/// Some writes, in batches.
async fn write(store: &Store, sessions: &Table<Session>, model: &mut Model, count: u32, random: &mut StdRng) {
    for _ in 0..count {
        let mut batch = Batch::default();
        let mut touched = Vec::new();
        for _ in 0..random.random_range(1..4) {
            let number = random.random_range(0..200u64);
            if touched.contains(&number) {
                continue;
            }
            touched.push(number);
            if random.random_bool(0.45) {
                batch.delete(sessions, &id(number), Condition::Always);
                model.remove(&number);
            } else {
                let session = any_session(number, random);
                batch.put(sessions, &session, Condition::Always);
                model.insert(number, session);
            }
        }
        store.commit(batch).await.unwrap();
    }
}

/// Each record by its key, by each of its index keys and in both scans, and no other one.
async fn compare(sessions: &Table<Session>, model: &Model, what: &str) {
    for number in 0..200 {
        let found = sessions.get(&id(number)).await.unwrap().map(|row| row.record);
        assert_eq!(found.as_ref(), model.get(&number), "{what}: {number}");
    }
    for scan in [Scan::all(500), Scan::by_index(Session::SUBSCRIBER, 500)] {
        let page = sessions.scan(&scan).await.unwrap();
        let all: Model = page.records.into_iter().map(|row| (row.id, row.record)).collect();
        assert!(all == *model, "{what}: {} of {}", all.len(), model.len());
    }
    for prefix in 0..9 {
        let prefix = format!("p{prefix}");
        let found = sessions
            .find(Session::PREFIX, prefix.as_bytes(), 500)
            .await
            .unwrap();
        let expected = model.values().filter(|one| one.prefixes[0] == prefix).count();
        assert_eq!(found.len(), expected, "{what}: {prefix}");
    }
    for (number, session) in model {
        let address = session.address.as_ref().unwrap();
        let found = sessions
            .find(Session::ADDRESS, address.as_bytes(), 5)
            .await
            .unwrap();
        assert!(found.len() == 1 && found[0].id == *number, "{what}: {address}");
    }
}

/// A process that was killed leaves some earlier checkpoint. With each that there ever was, the store opens with what
/// was acknowledged, through compactions and restarts that came after it.
#[tokio::test]
async fn with_any_earlier_checkpoint_a_store_is_as_its_log_says() {
    let (mut used, mut compactions) = (0, 0);
    for seed in 0..4 {
        let directory = tempfile::tempdir().unwrap();
        let (config, path) = (config(directory.path()), index(directory.path()));
        let mut random = StdRng::seed_from_u64(seed);
        let (mut model, mut earlier): (Model, Vec<Vec<u8>>) = Default::default();
        for round in 0..10 {
            let (store, sessions) = open(&config).await;
            used += u64::from(store.stats().unread > 0);
            compare(&sessions, &model, &format!("seed {seed}, round {round}")).await;
            for _ in 0..8 {
                write(&store, &sessions, &mut model, 60, &mut random).await;
                earlier.extend(std::fs::read(&path).ok());
            }
            compactions += store.stats().compactions;
            drop(sessions);
            store.close().await;
            earlier.extend(std::fs::read(&path).ok());
            leave_any(&path, &mut earlier, &mut random);
        }
    }
    assert!(
        used > 10 && compactions > 40,
        "{used} used, {compactions} compactions"
    );
}

/// A closed store with a checkpoint and some files that it knows, in which nothing is to be compacted.
async fn filled(directory: &Path, seed: u64) -> Model {
    let mut random = StdRng::seed_from_u64(seed);
    let mut model = Model::new();
    let (store, sessions) = open(&config(directory)).await;
    for number in 0..200 {
        let session = any_session(number, &mut random).note(&format!("{number}{}", "x".repeat(1_500)));
        let mut batch = Batch::default();
        batch.insert(&sessions, &session);
        store.commit(batch).await.unwrap();
        model.insert(number, session);
    }
    drop(sessions);
    store.close().await;
    model
}

/// The files that a start with the checkpoint does not read.
async fn unread(directory: &Path, model: &Model, what: &str) -> u64 {
    let (store, sessions) = open(&without(directory)).await;
    compare(&sessions, model, what).await;
    let unread = store.stats().unread;
    drop(sessions);
    store.close().await;
    unread
}

#[tokio::test]
async fn a_damaged_checkpoint_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let model = filled(directory.path(), 1).await;
    let path = index(directory.path());
    let whole = std::fs::read(&path).unwrap();
    assert!(unread(directory.path(), &model, "whole").await > 0);
    let mut random = StdRng::seed_from_u64(2);
    for round in 0..60 {
        let mut damaged = whole.clone();
        let at = match round {
            0..24 => round,
            _ => random.random_range(0..whole.len()),
        };
        match round % 3 {
            0 => damaged.truncate(at),
            _ => damaged[at] ^= 1 << random.random_range(0..8),
        }
        std::fs::write(&path, &damaged).unwrap();
        assert_eq!(
            unread(directory.path(), &model, &format!("byte {at}")).await,
            0,
            "byte {at}"
        );
    }
}

/// A checkpoint of another store, or of this one as it was before some of its files were restored from a copy.
#[tokio::test]
async fn a_checkpoint_of_another_log_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path(), 1).await;
    let checkpoint = std::fs::read(index(directory.path())).unwrap();
    let other = tempfile::tempdir().unwrap();
    let model = filled(other.path(), 9).await;
    std::fs::write(index(other.path()), checkpoint).unwrap();
    assert_eq!(unread(other.path(), &model, "of another log").await, 0);
}

/// A list of indexes that has changed has the log rewritten.
#[tokio::test]
async fn other_indexes_are_built_from_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let model = filled(directory.path(), 1).await;
    let later = Store::open(&config(directory.path()), &[TableDef::of::<Later>()])
        .await
        .unwrap();
    let table = later.table::<Later>().unwrap();
    assert_eq!(later.stats().unread, 0);
    assert_eq!(
        table.scan(&Scan::all(500)).await.unwrap().records.len(),
        model.len()
    );
    for session in model.values() {
        let found = table
            .find(Later::NOTE, session.note.as_bytes(), 500)
            .await
            .unwrap();
        assert!(!found.is_empty());
    }
}

/// A session of which nothing is in an order: of indexes that are ordered, but for the expiry, the store reads the records.
#[derive(Debug)]
struct Plain(Session);

impl Record for Plain {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "plain",
        indexes: &[IndexSchema::many("subscriber")],
        by_modified: true,
        sql: None,
    };

    fn key(&self) -> Key {
        self.0.key()
    }

    fn index(&self, keys: &mut IndexKeys) {
        keys.add(Session::SUBSCRIBER, self.0.subscriber.as_bytes());
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Plain, DecodeError> {
        Session::decode(key, value).map(Plain)
    }
}

/// Damage in a file that a checkpoint knows is found when its record is read, and without that by a check after the
/// store was opened. An end of the file that is damaged is seen at once.
#[tokio::test]
async fn damage_in_an_unread_file_is_found_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = without(directory.path());
    config.embedded.compact_at = settings::Percent::new(90.0);
    let open = async |config: &Config| {
        let store = Store::open(config, &[TableDef::of::<Plain>()]).await.unwrap();
        let sessions = store.table::<Plain>().unwrap();
        (store, sessions)
    };
    let (store, sessions) = open(&config).await;
    for number in 0..600 {
        let mut batch = Batch::default();
        let session = Session::new(number, "imsi-1").note(&"x".repeat(400));
        batch.insert(&sessions, &Plain(session));
        store.commit(batch).await.unwrap();
    }
    drop(sessions);
    store.close().await;
    config.embedded.checkpoint_above = ByteSize(0);
    let (store, sessions) = open(&config).await;
    drop(sessions);
    store.close().await;
    let first = files(directory.path()).remove(0);
    let length = std::fs::read(&first).unwrap().len();
    flip(&first, length / 2);
    let (store, sessions) = open(&config).await;
    assert!(store.stats().unread > 0);
    let (reports, mut reported) = tokio::sync::mpsc::channel(8);
    store.watch_damage(move |damage| drop(reports.try_send(damage.to_vec())));
    let mut corrupt = 0;
    for number in 0..600 {
        match sessions.get(&id(number)).await {
            Ok(found) => assert_eq!(found.unwrap().record.0.id, number),
            Err(Error::Corrupt { .. }) => corrupt += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(corrupt, 1);
    let found = async {
        loop {
            match reported.recv().await {
                Some(damage) if damage.is_empty() => {}
                damage => return damage.unwrap_or_default(),
            }
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(60), found)
        .await
        .unwrap();
    assert_eq!(store.stats().damaged, 1);
    assert!(store.trouble().is_none(), "it can write");
    drop(sessions);
    store.close().await;
    let damage = store::verify(directory.path()).unwrap().damage;
    assert_eq!(damage.len(), 1, "{damage:?}");
    assert_eq!((&found[0].file, found[0].byte), (&damage[0].file, damage[0].byte));
    flip(&first, length / 2);
    flip(&first, length - 20);
    let refused = Store::open(&config, &[TableDef::of::<Plain>()]).await;
    let said = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(
        said.contains(first.file_name().unwrap().to_str().unwrap()),
        "{said}"
    );
}
