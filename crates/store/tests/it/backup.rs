//! A copy of a store that serves, and a store made of it again.

use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use settings::ByteSize;
use store::{BackupError, Batch, Condition, Config, Store, Table, TableDef};

use crate::expiry::Lease;
use crate::log::{SmallDisk, small_segments};
use crate::session::{Session, id};

/// Files end and compactions run all the time.
fn config(directory: &Path) -> Config {
    let mut config = small_segments(directory);
    config.embedded.compaction_rate = ByteSize::mib(1_000);
    config
}

async fn open(directory: &Path) -> (Store, Table<Session>) {
    let store = Store::open(&config(directory), &[TableDef::of::<Session>()])
        .await
        .unwrap();
    let sessions = store.table::<Session>().unwrap();
    (store, sessions)
}

async fn write(store: &Store, sessions: &Table<Session>, number: u64, text: &str) {
    let mut batch = Batch::default();
    batch.put(sessions, &Session::new(number, "x").note(text), Condition::Always);
    store.commit(batch).await.unwrap();
}

/// Ten thousand characters that are not compressed to nothing.
fn noise(number: u64) -> String {
    let text = (0..10_000_u64).map(|at| char::from(b'a' + ((at * at + number) % 23) as u8));
    text.collect()
}

/// Writes new records, changes of one record and pairs, until it is to end; returns how many of each were acknowledged.
async fn traffic(store: Store, done: Arc<AtomicBool>, acknowledged: Arc<AtomicU64>) {
    let sessions = store.table::<Session>().unwrap();
    let padding = "x".repeat(2_000);
    let mut number = 0;
    while !done.load(Ordering::Relaxed) {
        number += 1;
        let mut batch = Batch::default();
        // Both or none: a copy must not have half of a batch.
        batch.put(
            &sessions,
            &Session::new(2 * number, "x").note(&padding),
            Condition::Always,
        );
        batch.put(
            &sessions,
            &Session::new(2 * number + 1, "x").note(&padding),
            Condition::Always,
        );
        batch.put(
            &sessions,
            &Session::new(1, "last").note(&number.to_string()),
            Condition::Always,
        );
        // Room for compaction.
        if number > 100 {
            batch.delete(&sessions, &id(2 * (number - 100)), Condition::Always);
        }
        store.commit(batch).await.unwrap();
        acknowledged.store(number, Ordering::Relaxed);
    }
}

/// How many batches of the traffic a store has, once it was checked that it has all of each.
async fn batches(directory: &Path) -> u64 {
    let verified = store::verify(directory).unwrap();
    assert_eq!(verified.damage, [], "{}", directory.display());
    let (store, sessions) = open(directory).await;
    let marker = sessions.get(&id(1)).await.unwrap().unwrap();
    let last: u64 = marker.note.parse().unwrap();
    for number in 1..=last + 1 {
        let (even, odd) = (
            sessions.get(&id(2 * number)).await.unwrap(),
            sessions.get(&id(2 * number + 1)).await.unwrap(),
        );
        assert_eq!(odd.is_some(), number <= last, "{number} of {last}");
        let is_deleted = number + 100 <= last;
        assert_eq!(
            even.is_some(),
            number <= last && !is_deleted,
            "{number} of {last}"
        );
    }
    drop(sessions);
    store.close().await;
    last
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_under_traffic_has_all_that_was_acknowledged_before() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("store");
    let (store, sessions) = open(&directory).await;
    let (done, acknowledged) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
    let writing = tokio::spawn(traffic(store.clone(), done.clone(), acknowledged.clone()));
    let mut copies = Vec::new();
    // Until compaction has removed files and several have ended.
    while copies.len() < 8 || store.stats().compactions < 3 {
        let wanted = acknowledged.load(Ordering::Relaxed) + 50;
        while acknowledged.load(Ordering::Relaxed) < wanted {
            tokio::task::yield_now().await;
        }
        let before = acknowledged.load(Ordering::Relaxed);
        let to = folder.path().join(format!("copy-{}", copies.len()));
        let made = store.backup(&to).await.unwrap();
        let after = acknowledged.load(Ordering::Relaxed);
        assert!(made.files > 0 && made.bytes > 0, "{made:?}");
        copies.push((to, before, after));
        if copies.len() > 8 {
            let (oldest, ..) = copies.remove(0);
            std::fs::remove_dir_all(oldest).unwrap();
        }
    }
    done.store(true, Ordering::Relaxed);
    writing.await.unwrap();
    drop(sessions);
    store.close().await;
    for (copy, before, after) in &copies {
        let has = batches(copy).await;
        // One more may have been committed and not yet counted.
        assert!((*before..=after + 1).contains(&has), "{before} {has} {after}");
    }
    // The drill: what was there is lost, the copy takes its place.
    let (copy, before, _) = copies.last().unwrap();
    let last = batches(copy).await;
    std::fs::write(directory.join("nf-instance-id"), "of the function").unwrap();
    let made = store::restore(copy, &directory).unwrap();
    assert!(
        made.aside
            .as_ref()
            .is_some_and(|aside| aside.join("store.json").exists())
    );
    assert!(directory.join("nf-instance-id").exists(), "it stays");
    assert_eq!(batches(&directory).await, last);
    assert!(last >= *before);
    assert_eq!(batches(copy).await, last, "the copy is as it was");
    // And of one into nothing.
    let fresh = folder.path().join("fresh");
    assert_eq!(store::restore(copy, &fresh).unwrap().aside, None);
    assert_eq!(batches(&fresh).await, last);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_whole_or_absent_and_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("store");
    let mut slow = config(&directory);
    slow.embedded.segment = ByteSize::mib(64);
    slow.embedded.compaction_rate = ByteSize::mib(1);
    let store = Store::open(&slow, &[TableDef::of::<Session>()]).await.unwrap();
    let sessions = store.table::<Session>().unwrap();
    for number in 0..300 {
        write(&store, &sessions, number, &noise(number)).await;
    }
    let at = |name: &str| folder.path().join(name);
    let refused = |error: BackupError, word: &str| assert!(error.to_string().contains(word), "{error}");
    refused(store.backup(Path::new("copy")).await.unwrap_err(), "absolute");
    refused(store.backup(&at("absent/copy")).await.unwrap_err(), "absent");
    refused(
        store.backup(&directory.join("copy")).await.unwrap_err(),
        "inside the directory",
    );
    refused(store.backup(&at("store")).await.unwrap_err(), "not empty");
    refused(
        store.backup(Path::new("/")).await.unwrap_err(),
        "name of a directory",
    );
    std::fs::write(at("file"), "").unwrap();
    assert!(store.backup(&at("file")).await.is_err());
    // The active file has some megabytes, of which one is copied a second.
    let (to, first) = (at("copy"), store.clone());
    let copying = tokio::spawn({
        let to = to.clone();
        async move { first.backup(&to).await }
    });
    while !at("copy.incomplete").exists() && !copying.is_finished() {
        tokio::task::yield_now().await;
    }
    if !copying.is_finished() {
        let second = store.backup(&at("second")).await;
        assert!(
            second == Err(BackupError::Busy(to.clone())) || to.exists(),
            "{second:?}"
        );
        // The store serves meanwhile.
        write(&store, &sessions, 1_000, "meanwhile").await;
    }
    copying.await.unwrap().unwrap();
    assert!(!at("copy.incomplete").exists());
    assert_eq!(store::verify(&to).unwrap().damage, []);
    // One that was broken off is named.
    std::fs::create_dir(at("third.incomplete")).unwrap();
    refused(store.backup(&at("third")).await.unwrap_err(), "third.incomplete");
    // A store that ends ends a copy.
    let (to, last) = (at("last"), store.clone());
    let copying = tokio::spawn(async move { last.backup(&to).await });
    while !at("last.incomplete").exists() && !copying.is_finished() {
        tokio::task::yield_now().await;
    }
    drop(sessions);
    store.clone().close().await;
    let ended = copying.await.unwrap();
    assert_eq!(ended.is_ok(), at("last").exists(), "{ended:?}");
    assert!(!at("last.incomplete").exists());
    refused(store.backup(&at("closed")).await.unwrap_err(), "closed");
    // A damaged copy is not restored, and an open store not replaced.
    let copy = at("copy");
    let (other, _sessions) = open(&at("other")).await;
    let refused = store::restore(&copy, &at("other")).unwrap_err();
    assert!(refused.to_string().contains("another process"), "{refused}");
    assert!(store::restore(&copy, &copy).is_err());
    assert!(store::restore(folder.path(), &at("empty")).is_err(), "no store");
    let log = std::fs::read_dir(&copy)
        .unwrap()
        .map(|file| file.unwrap().path())
        .find(|path| path.extension().is_some_and(|ending| ending == "log"))
        .unwrap();
    let mut bytes = std::fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    let refused = store::restore(&copy, &at("empty")).unwrap_err();
    assert!(refused.to_string().contains("nothing was restored"), "{refused}");
    assert!(!at("empty/store.json").exists());
    other.close().await;
}

/// The disk of the copy has no room: it is said at once, nothing of the copy is left, and the store goes on.
#[tokio::test]
async fn a_full_disk_at_the_target_is_named() {
    let Some(disk) = SmallDisk::mount("1m") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (store, sessions) = open(&folder.path().join("store")).await;
    write(&store, &sessions, 1, "before").await;
    let to = disk.0.path().join("copy");
    let refused = store.backup(&to).await.unwrap_err();
    assert!(matches!(&refused, BackupError::Failed(_)), "{refused:?}");
    assert!(refused.to_string().contains("the disk has"), "{refused}");
    assert_eq!(std::fs::read_dir(disk.0.path()).unwrap().count(), 0);
    write(&store, &sessions, 2, "after").await;
    assert_eq!(store.trouble(), None);
    let good = folder.path().join("good");
    store.backup(&good).await.unwrap();
    assert_eq!(store::verify(&good).unwrap().damage, []);
    drop(sessions);
    store.close().await;
}

/// A store of this size in bytes, closed.
async fn closed(directory: &Path, bytes: usize) {
    let (store, sessions) = open(directory).await;
    for number in 0..bytes as u64 / 10_000 {
        write(&store, &sessions, number, &noise(number)).await;
    }
    drop(sessions);
    store.close().await;
}

/// The old store stays where it is until all of the copy is on the disk.
#[tokio::test]
async fn a_full_disk_does_not_take_the_store_away() {
    let Some(disk) = SmallDisk::mount("52m") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (copy, directory) = (folder.path().join("copy"), disk.0.path().join("store"));
    closed(&copy, 6_000_000).await;
    closed(&directory, 10_000).await;
    let names = || {
        let files = std::fs::read_dir(&directory).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let refused = store::restore(&copy, &directory).unwrap_err().to_string();
    assert!(refused.contains("the disk has"), "{refused}");
    assert_eq!(names(), before);
    assert_eq!(store::verify(&directory).unwrap().damage, []);
    // An attempt that was broken off does not stop the next one.
    std::fs::create_dir(directory.join("store.incomplete")).unwrap();
    std::fs::write(directory.join("store.incomplete/store.json"), "x").unwrap();
    let small = folder.path().join("small");
    closed(&small, 20_000).await;
    let made = store::restore(&small, &directory).unwrap();
    assert!(made.aside.is_some() && !directory.join("store.incomplete").exists());
    assert_eq!(store::verify(&directory).unwrap().damage, []);
}

#[tokio::test]
async fn the_copy_of_another_function_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    closed(&at("one"), 10_000).await;
    let tables = [
        (at("other"), vec![TableDef::of::<Lease>()]),
        (
            at("newer"),
            vec![TableDef::of::<Session>(), TableDef::of::<Lease>()],
        ),
    ];
    for (directory, tables) in tables {
        let store = Store::open(&config(&directory), &tables).await.unwrap();
        store.close().await;
    }
    let refused = store::restore(&at("one"), &at("other")).unwrap_err().to_string();
    for words in [
        "of another function",
        "a table session",
        "lacks lease",
        "nothing was restored",
    ] {
        assert!(refused.contains(words), "{refused}");
    }
    assert!(at("other/store.json").exists());
    // An earlier or a later release of the same function has fewer tables, or more.
    store::restore(&at("one"), &at("newer")).unwrap();
    std::fs::write(at("newer/store.json"), "damaged").unwrap();
    store::restore(&at("one"), &at("newer")).unwrap();
}

/// Root restores for the user of the function, who owns all of it then.
#[tokio::test]
async fn root_restores_into_the_directory_of_another_user() {
    const USER: u32 = 65_534;
    let folder = tempfile::tempdir().unwrap();
    let (copy, home) = (folder.path().join("copy"), folder.path().join("home"));
    closed(&copy, 10_000).await;
    std::fs::create_dir(&home).unwrap();
    if chown(&home, Some(USER), Some(USER)).is_err() {
        testpeer::skip::unavailable("needs to give a directory to another user, as root can");
        return;
    }
    // The directory is absent first, then there with a store.
    let directory = home.join("run/bsf");
    for round in 0..2 {
        let made = store::restore(&copy, &directory).unwrap();
        assert_eq!(made.aside.is_some(), round == 1);
    }
    let mut folders = vec![home];
    while let Some(folder) = folders.pop() {
        for file in std::fs::read_dir(folder).unwrap() {
            let file = file.unwrap();
            assert_eq!(file.metadata().unwrap().uid(), USER, "{}", file.path().display());
            if file.file_type().unwrap().is_dir() {
                folders.push(file.path());
            }
        }
    }
}
