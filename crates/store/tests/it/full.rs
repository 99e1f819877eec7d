//! A log that has reached its number of files.

use std::process::Command;
use std::time::Duration;

use settings::ByteSize;
use store::{Batch, Condition, Config, Error, Store, Table, TableDef};

use crate::log::{SmallDisk, small_segments};
use crate::session::{Session, id};

async fn open(config: &Config) -> (Store, Table<Session>) {
    let store = Store::open(config, &[TableDef::of::<Session>()]).await.unwrap();
    let sessions = store.table::<Session>().unwrap();
    (store, sessions)
}

async fn insert(store: &Store, sessions: &Table<Session>, number: u64) -> Result<(), Error> {
    let mut batch = Batch::default();
    batch.insert(sessions, &Session::new(number, "imsi-1").note(&"x".repeat(1_500)));
    store.commit(batch).await.map(drop)
}

/// It takes deletions, also after a restart, and everything again when compaction has made room.
#[tokio::test]
async fn a_full_log_can_be_emptied() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = small_segments(directory.path());
    config.embedded.files = 32;
    config.embedded.compaction_rate = ByteSize::mib(1_000);
    let (store, sessions) = open(&config).await;
    let mut count = 0;
    let refused = loop {
        match insert(&store, &sessions, count).await {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(refused.to_string().contains("embedded.files"), "{refused}");
    assert!(count > 500, "{count}");
    drop(sessions);
    store.close().await;
    let (store, sessions) = open(&config).await;
    assert!(insert(&store, &sessions, count).await.is_err());
    for number in 0..count {
        let mut batch = Batch::default();
        batch.delete(&sessions, &id(number), Condition::Present);
        store.commit(batch).await.unwrap();
    }
    let emptied = async {
        while insert(&store, &sessions, count).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), emptied)
        .await
        .unwrap();
    assert!(sessions.get(&id(count)).await.unwrap().is_some());
    assert!(sessions.get(&id(0)).await.unwrap().is_none());
}

/// Runs [`more_files`] in a process of its own, whose limit is lower than the log has files.
#[test]
fn the_limit_of_open_files_is_raised() {
    let directory = tempfile::tempdir().unwrap();
    let limited = "test $(ulimit -Hn) = unlimited -o $(ulimit -Hn) -ge 2000 || exit 0; \
        ulimit -Sn 100 && exec \"$0\" --exact full::more_files";
    let status = Command::new("sh")
        .args(["-c", limited])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, directory.path())
        .status()
        .unwrap();
    assert!(status.success());
}

const CHILD: &str = "STORE_FULL_CHILD";

#[tokio::test]
async fn more_files() {
    let Some(directory) = std::env::var_os(CHILD) else {
        return;
    };
    let (store, sessions) = open(&small_segments(directory.as_ref())).await;
    let mut number = 0;
    while store.stats().segments < 150 {
        insert(&store, &sessions, number).await.unwrap();
        number += 1;
    }
    drop(sessions);
    store.close().await;
}

/// A disk without room takes deletions, also after a restart, and everything again when these have made room.
#[tokio::test]
async fn a_full_disk_can_be_emptied() {
    let Some(disk) = SmallDisk::mount("6m") else {
        return;
    };
    let mut config = small_segments(&disk.0.path().join("store"));
    config.embedded.durability = store::Durability::Fsync;
    config.embedded.compaction_rate = ByteSize::mib(1_000);
    let (store, sessions) = open(&config).await;
    let mut count = 0;
    while insert(&store, &sessions, count).await.is_ok() {
        count += 1;
    }
    assert!(count > 300, "{count}");
    let refused = insert(&store, &sessions, count).await.unwrap_err();
    assert!(refused.to_string().contains("only deletions"), "{refused}");
    assert!(
        store
            .trouble()
            .is_some_and(|trouble| trouble.contains("only deletions"))
    );
    drop(sessions);
    store.close().await;
    let (store, sessions) = open(&config).await;
    while insert(&store, &sessions, count).await.is_ok() {
        count += 1;
    }
    for number in 0..count {
        let mut batch = Batch::default();
        batch.delete(&sessions, &id(number), Condition::Present);
        store
            .commit(batch)
            .await
            .unwrap_or_else(|error| panic!("{number} of {count}: {error}"));
    }
    let emptied = async {
        while insert(&store, &sessions, count).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), emptied)
        .await
        .unwrap();
    assert!(store.trouble().is_none());
    assert!(sessions.get(&id(count)).await.unwrap().is_some());
    assert!(sessions.get(&id(0)).await.unwrap().is_none());
    drop(sessions);
    store.close().await;
}
