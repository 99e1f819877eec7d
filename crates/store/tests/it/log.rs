//! The log of the embedded engine: compaction, restarts, torn ends, damage.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use settings::ByteSize;
use store::{Batch, Condition, Config, Error, Scan, Store, Table, TableDef};

use crate::session::{Session, embedded_config, id};

/// Files so small that they are rolled and compacted all the time.
pub(crate) fn small_segments(directory: &Path) -> Config {
    let mut config = Config {
        max_batch_bytes: ByteSize::kib(16),
        ..embedded_config(directory)
    };
    config.embedded.segment = ByteSize::kib(64);
    config.embedded.durability = store::Durability::Os;
    // These tests write one batch after the other.
    config.embedded.group_interval = settings::Period::from_millis(0);
    config
}

async fn open(config: &Config) -> (Store, Table<Session>) {
    let store = Store::open(config, &[TableDef::of::<Session>()]).await.unwrap();
    let sessions = store.table::<Session>().unwrap();
    (store, sessions)
}

type Model = BTreeMap<u64, Session>;

/// A session whose keys and size are chosen at random; its address is its own, its subscriber is shared by some.
fn any_session(number: u64, random: &mut StdRng) -> Session {
    let mut session =
        Session::new(number, &format!("imsi-{}", number % 50)).note(&"n".repeat(random.random_range(0..600)));
    if random.random_bool(0.7) {
        session = session.address(&format!("10.0.{}.{}", number, random.random_range(0..4)));
    }
    if random.random_bool(0.3) {
        session = session.prefixes(&[&format!("p{}", number % 7), &format!("q{}", number % 3)]);
    }
    session
}

async fn compare(sessions: &Table<Session>, model: &Model) {
    for order in ["all", "modified", "subscriber"] {
        let mut next = Some(match order {
            "all" => Scan::all(100),
            "modified" => Scan::by_modified(100),
            _ => Scan::by_index(Session::SUBSCRIBER, 100),
        });
        let mut seen = Model::new();
        let mut last = 0;
        while let Some(scan) = next {
            let page = sessions.scan(&scan).await.unwrap();
            for row in page.records {
                if order == "modified" {
                    assert!(row.version.0 >= last, "by modification, oldest first");
                    last = row.version.0;
                }
                assert!(
                    seen.insert(row.id, row.record).is_none(),
                    "{order}: a record twice"
                );
            }
            next = page.next;
        }
        assert!(
            seen == *model,
            "{order}: {} records, expected {}",
            seen.len(),
            model.len()
        );
    }
    for (number, session) in model {
        assert_eq!(
            sessions.get(&id(*number)).await.unwrap().unwrap().record,
            *session
        );
        if let Some(address) = &session.address {
            let found = sessions
                .find(Session::ADDRESS, address.as_bytes(), 2)
                .await
                .unwrap();
            assert_eq!(found.iter().map(|row| row.id).collect::<Vec<_>>(), [*number]);
        }
        for prefix in &session.prefixes {
            let found = sessions
                .find(Session::PREFIX, prefix.as_bytes(), 1_000)
                .await
                .unwrap();
            assert!(found.iter().any(|row| row.id == *number));
            assert!(found.iter().all(|row| model[&row.id].prefixes.contains(prefix)));
        }
    }
}

/// Random writes against a map, through many compactions and restarts.
#[tokio::test]
async fn compaction_and_restarts_lose_and_revive_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let config = small_segments(directory.path());
    let mut random = StdRng::seed_from_u64(7);
    let (mut model, mut compactions) = (Model::new(), 0);
    for round in 0..8 {
        let (store, sessions) = open(&config).await;
        compare(&sessions, &model).await;
        for _ in 0..1_500 {
            let mut batch = Batch::default();
            let mut touched = Vec::new();
            for _ in 0..random.random_range(1..4) {
                let number = random.random_range(0..400u64);
                if touched.contains(&number) {
                    continue;
                }
                touched.push(number);
                if random.random_bool(if round % 2 == 0 { 0.3 } else { 0.6 }) {
                    batch.delete(&sessions, &id(number), Condition::Always);
                    model.remove(&number);
                } else {
                    let session = any_session(number, &mut random);
                    batch.put(&sessions, &session, Condition::Always);
                    model.insert(number, session);
                }
            }
            store.commit(batch).await.unwrap();
        }
        compare(&sessions, &model).await;
        compactions += store.stats().compactions;
        store.close().await;
    }
    assert!(compactions > 20, "{compactions} compactions");
    let (store, sessions) = open(&config).await;
    compare(&sessions, &model).await;
    drop((store, sessions));
    let bytes: u64 = files(directory.path())
        .iter()
        .map(|file| file.metadata().unwrap().len())
        .sum();
    assert!(bytes < 1 << 20, "{bytes} bytes for some 150 KB of records");
}

/// Records that do not change are found at every moment, whatever compaction does to the files around them.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn readers_find_records_while_compaction_moves_them() {
    let directory = tempfile::tempdir().unwrap();
    let (store, sessions) = open(&small_segments(directory.path())).await;
    let stable = 300u64;
    for number in 0..stable {
        let mut batch = Batch::default();
        batch.insert(
            &sessions,
            &Session::new(number, &format!("s-{}", number / 3)).address(&number.to_string()),
        );
        // Something that will be void soon lies between them.
        batch.insert(
            &sessions,
            &Session::new(10_000 + number, "void").note(&"x".repeat(400)),
        );
        store.commit(batch).await.unwrap();
    }
    let (stop, reads) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let readers: Vec<_> = (0..2u64)
        .map(|reader| {
            let (sessions, stop, reads) = (sessions.clone(), stop.clone(), reads.clone());
            tokio::task::spawn_blocking(move || {
                let now =
                    |reply: store::Reply<Vec<store::Stored<Session>>>| reply.try_now().ok().unwrap().unwrap();
                let mut number = reader;
                while !stop.load(Ordering::Relaxed) {
                    number = (number * 7 + 1) % stable;
                    let row = sessions.get(&id(number)).try_now().ok().unwrap().unwrap();
                    assert_eq!(row.unwrap().id, number);
                    assert_eq!(
                        now(sessions.find(Session::ADDRESS, number.to_string().as_bytes(), 2)).len(),
                        1
                    );
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    while store.stats().compactions < 40 || reads.load(Ordering::Relaxed) < 2_000 {
        for number in 0..stable {
            let mut batch = Batch::default();
            batch.put(
                &sessions,
                &Session::new(10_000 + number, "void").note(&"y".repeat(400)),
                Condition::Always,
            );
            store.commit(batch).await.unwrap();
        }
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
    assert_eq!(
        sessions
            .find(Session::SUBSCRIBER, b"s-7", 10)
            .await
            .unwrap()
            .len(),
        3
    );
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|end| end == "log"))
        .collect();
    files.sort();
    files
}

/// Wherever a crash has torn the end of the log: whole batches before it are there, nothing after it.
#[tokio::test]
async fn a_torn_end_is_cut_off() {
    let directory = crate::trials::directory();
    let config = embedded_config(directory.path());
    let (store, sessions) = open(&config).await;
    // As after a power failure: the mark says what it said before these writes.
    let mark = std::fs::read(directory.path().join("store.mark")).unwrap();
    for pair in 0..3u64 {
        let mut batch = Batch::default();
        batch.insert(&sessions, &Session::new(2 * pair, "even"));
        batch.insert(&sessions, &Session::new(2 * pair + 1, "odd"));
        store.commit(batch).await.unwrap();
    }
    drop(sessions);
    store.close().await;
    let file = files(directory.path()).pop().unwrap();
    let whole = std::fs::read(&file).unwrap();
    let mut last = 6;
    for cut in (16..whole.len()).rev() {
        for garbage in [&b""[..], &[0; 40], &[0xa5; 40]] {
            let torn = [&whole[..cut], garbage].concat();
            std::fs::write(&file, &torn).unwrap();
            std::fs::write(directory.path().join("store.mark"), &mark).unwrap();
            let (store, sessions) = open(&config).await;
            let count = sessions.scan(&Scan::all(100)).await.unwrap().records.len();
            assert!(count % 2 == 0 && count <= last, "cut at {cut}: {count} records");
            last = count;
            drop(sessions);
            store.close().await;
        }
    }
    assert_eq!(last, 0);
}

/// A small file system of its own; gone when dropped.
pub(crate) struct SmallDisk(pub(crate) tempfile::TempDir);

impl SmallDisk {
    /// `None` where this process may not mount.
    pub(crate) fn mount(size: &str) -> Option<SmallDisk> {
        let disk = SmallDisk(tempfile::tempdir().unwrap());
        let mounted = disk.run("mount", &["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]);
        if !mounted {
            testpeer::skip::unavailable("needs to mount a file system, as root can");
        }
        mounted.then_some(disk)
    }

    fn run(&self, program: &str, arguments: &[&str]) -> bool {
        let mut command = std::process::Command::new(program);
        command
            .args(arguments)
            .arg(self.0.path())
            .stderr(std::process::Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        self.run("umount", &["--lazy"]);
    }
}

/// A full disk refuses writes, loses nothing, and is no reason to restart.
#[tokio::test]
async fn a_full_disk_is_told_and_survived() {
    let Some(disk) = SmallDisk::mount("2m") else {
        return;
    };
    let config = small_segments(disk.0.path());
    let (store, sessions) = open(&config).await;
    let put = async |number: u64| {
        let mut batch = Batch::default();
        batch.insert(&sessions, &Session::new(number, "imsi-1").note(&"x".repeat(500)));
        store.commit(batch).await
    };
    let mut kept = 0;
    let error = loop {
        match put(kept).await {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
        assert!(kept < 10_000, "the disk never fills");
    };
    assert!(
        matches!(&error, Error::Engine(text) if text.contains("o space")),
        "{error}"
    );
    assert!(put(kept).await.is_err());
    assert!(
        sessions.get(&id(kept)).await.unwrap().is_none(),
        "what was refused is not there"
    );
    assert!(disk.run("mount", &["-o", "remount,size=4m"]));
    for number in kept..kept + 100 {
        put(number).await.unwrap();
    }
    drop(sessions);
    store.close().await;
    let (_store, sessions) = open(&config).await;
    for number in 0..kept + 100 {
        assert!(
            sessions.get(&id(number)).await.unwrap().is_some(),
            "{number} is lost"
        );
    }
}

/// Damage before the end is reported, with the place, and nothing is thrown away.
#[tokio::test]
async fn damage_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let config = small_segments(directory.path());
    let (store, sessions) = open(&config).await;
    for number in 0..400u64 {
        let mut batch = Batch::default();
        batch.insert(&sessions, &Session::new(number, "imsi-1").note(&"x".repeat(400)));
        store.commit(batch).await.unwrap();
    }
    drop(sessions);
    store.close().await;
    let file = files(directory.path()).remove(0);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[20_000] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let error = Store::open(&config, &[TableDef::of::<Session>()])
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, Error::Open(_)) && text.contains("damaged at byte 19"),
        "{text}"
    );
    assert!(
        text.contains(file.file_name().unwrap().to_str().unwrap()),
        "{text}"
    );
    bytes[20_000] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let (_store, sessions) = open(&config).await;
    assert_eq!(sessions.scan(&Scan::all(1_000)).await.unwrap().records.len(), 400);
}
