//! Damage to files of the log: the store refuses to open and says where, or everything acknowledged is there.

use std::path::{Path, PathBuf};

use settings::ByteSize;
use store::{Batch, Condition, Config, Error, Store, Table, TableDef};

use crate::session::{Later, Session, embedded_config, id};

/// Files of a few records each.
pub(crate) fn config(directory: &Path) -> Config {
    let mut config = Config {
        max_batch_bytes: ByteSize::kib(4),
        ..embedded_config(directory)
    };
    config.embedded.segment = ByteSize::kib(8);
    config.embedded.group_interval = settings::Period::from_millis(0);
    config
}

pub(crate) async fn open(config: &Config) -> (Store, Table<Session>) {
    let store = Store::open(config, &[TableDef::of::<Session>()]).await.unwrap();
    let sessions = store.table::<Session>().unwrap();
    (store, sessions)
}

pub(crate) async fn put(store: &Store, sessions: &Table<Session>, number: u64) {
    let mut batch = Batch::default();
    let session = Session::new(number, "imsi-1").note(&"x".repeat(400));
    batch.put(sessions, &session, Condition::Always);
    store.commit(batch).await.unwrap();
}

/// A closed store of `count` records in files of about 16 each, all acknowledged.
pub(crate) async fn filled(directory: &Path, count: u64) -> Vec<PathBuf> {
    let (store, sessions) = open(&config(directory)).await;
    for number in 0..count {
        put(&store, &sessions, number).await;
    }
    drop(sessions);
    store.close().await;
    files(directory)
}

pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "log"))
        .collect();
    files.sort();
    files
}

pub(crate) fn flip(file: &Path, at: usize) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[at] ^= 1;
    std::fs::write(file, bytes).unwrap();
}

/// The store does not open; what it says names `file` and a byte. Nothing has been changed by trying.
pub(crate) async fn refuses(directory: &Path, file: &Path) -> String {
    let before: Vec<_> = files(directory)
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect();
    let said = Store::open(&config(directory), &[TableDef::of::<Session>()])
        .await
        .err()
        .unwrap_or_else(|| panic!("it opens, although {} is damaged", file.display()));
    let text = said.to_string();
    assert!(matches!(said, Error::Open(_)), "{text}");
    assert!(
        text.contains(file.file_name().unwrap().to_str().unwrap()),
        "{text}"
    );
    assert!(
        text.contains("byte ") && text.contains("signalbox store"),
        "{text}"
    );
    let after: Vec<_> = files(directory)
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect();
    assert!(before == after, "trying to open has changed files: {text}");
    text
}

#[tokio::test]
async fn a_damaged_head_of_the_newest_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let newest = filled(directory.path(), 40).await.pop().unwrap();
    for at in 0..16 {
        flip(&newest, at);
        refuses(directory.path(), &newest).await;
        flip(&newest, at);
    }
    let (_store, sessions) = open(&config(directory.path())).await;
    assert!(sessions.get(&id(39)).await.unwrap().is_some());
}

#[tokio::test]
async fn damage_in_the_newest_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let newest = filled(directory.path(), 40).await.pop().unwrap();
    let length = usize::try_from(newest.metadata().unwrap().len()).unwrap();
    // Also in the last entry, which could be taken for a write that a crash has torn.
    for at in [60, length / 2, length - 40] {
        flip(&newest, at);
        refuses(directory.path(), &newest).await;
        flip(&newest, at);
    }
}

#[tokio::test]
async fn a_newest_file_that_has_lost_its_end_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let newest = filled(directory.path(), 40).await.pop().unwrap();
    let whole = std::fs::read(&newest).unwrap();
    for length in [0, 8, 16, 17, whole.len() / 2, whole.len() - 9] {
        std::fs::write(&newest, &whole[..length]).unwrap();
        refuses(directory.path(), &newest).await;
    }
}

/// Entries are whole and so are batches, yet some are missing at the end of a file that is not the newest.
#[tokio::test]
async fn an_older_file_that_ends_early_between_batches_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let first = filled(directory.path(), 40).await.remove(0);
    let whole = std::fs::read(&first).unwrap();
    let mut refused = 0;
    for length in (16..whole.len()).step_by(8) {
        std::fs::write(&first, &whole[..length]).unwrap();
        refuses(directory.path(), &first).await;
        refused += 1;
    }
    assert!(refused > 500);
}

#[tokio::test]
async fn a_missing_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let all = filled(directory.path(), 60).await;
    assert!(all.len() >= 3, "{all:?}");
    for missing in &all {
        let kept = std::fs::read(missing).unwrap();
        std::fs::remove_file(missing).unwrap();
        refuses(directory.path(), missing).await;
        std::fs::write(missing, kept).unwrap();
    }
    open(&config(directory.path())).await;
}

/// A list of indexes that has changed has the log rewritten; damage is found before that.
#[tokio::test]
async fn damage_is_refused_also_when_the_indexes_have_changed() {
    let directory = tempfile::tempdir().unwrap();
    let all = filled(directory.path(), 60).await;
    for file in [&all[0], &all[all.len() - 1]] {
        let kept = std::fs::read(file).unwrap();
        flip(file, kept.len() / 2);
        let opened = Store::open(&config(directory.path()), &[TableDef::of::<Later>()]).await;
        let text = opened
            .err()
            .map(|error| error.to_string())
            .unwrap_or_else(|| panic!("it opens, although {} is damaged", file.display()));
        assert!(
            text.contains(file.file_name().unwrap().to_str().unwrap()),
            "{text}"
        );
        assert_eq!(files(directory.path()), all, "files have come or gone");
        std::fs::write(file, kept).unwrap();
    }
    let later = Store::open(&config(directory.path()), &[TableDef::of::<Later>()])
        .await
        .unwrap();
    let table = later.table::<Later>().unwrap();
    assert_eq!(
        table
            .find(Session::SUBSCRIBER, b"imsi-1", 100)
            .await
            .unwrap()
            .len(),
        60
    );
}

/// Numbers of tables stand in the log, their names only in the catalogue.
#[tokio::test]
async fn a_lost_or_damaged_catalogue_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path(), 40).await;
    let catalogue = directory.path().join("store.json");
    let kept = std::fs::read_to_string(&catalogue).unwrap();
    std::fs::remove_file(&catalogue).unwrap();
    refuses(directory.path(), &catalogue).await;
    std::fs::write(&catalogue, kept.replace("\"session\"", "\"sessiom\"")).unwrap();
    refuses(directory.path(), &catalogue).await;
    std::fs::write(&catalogue, kept).unwrap();
    open(&config(directory.path())).await;
}

/// A copy opens as the store does, and what is written to either is not in the other.
#[tokio::test]
async fn a_backup_is_a_store_of_its_own() {
    let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let copy = elsewhere.path().join("copy");
    let all = filled(directory.path(), 60).await;
    let made = store::backup(directory.path(), &copy).unwrap();
    assert_eq!((made.files, made.linked), (all.len(), all.len() - 1));
    assert!(store::backup(directory.path(), &copy).is_err(), "it is not empty");
    {
        let (store, sessions) = open(&config(directory.path())).await;
        assert!(store::backup(directory.path(), &elsewhere.path().join("open")).is_err());
        for number in 0..40 {
            put(&store, &sessions, 100 + number).await;
        }
        drop(sessions);
        store.close().await;
    }
    let (store, sessions) = open(&config(&copy)).await;
    for number in 0..60 {
        assert!(sessions.get(&id(number)).await.unwrap().is_some(), "{number}");
    }
    assert!(sessions.get(&id(100)).await.unwrap().is_none());
    for number in 0..40 {
        put(&store, &sessions, 200 + number).await;
    }
    drop(sessions);
    store.close().await;
    let (store, sessions) = open(&config(directory.path())).await;
    assert!(sessions.get(&id(139)).await.unwrap().is_some());
    assert!(sessions.get(&id(200)).await.unwrap().is_none());
    drop(sessions);
    store.close().await;
    flip(&all[0], 100);
    let refused = store::backup(directory.path(), &elsewhere.path().join("damaged")).unwrap_err();
    assert!(refused.to_string().contains("damaged at byte"), "{refused}");
}
