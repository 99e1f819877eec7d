//! `kill -9` under load: what was acknowledged is there afterwards, batches are whole.
//!
//! The child is this test program itself, running [`child`] with a directory in its environment. It writes as fast
//! as it can and reports each acknowledgement on its standard output. More rounds: `STORE_CRASH_ROUNDS=100`.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rand::Rng as _;
use settings::ByteSize;
use store::{Batch, Condition, Config, Durability, Scan, Store, TableDef};

use crate::log::small_segments;
use crate::session::{Session, id};

const DIRECTORY: &str = "STORE_CRASH_DIRECTORY";
const ROUNDS: &str = "STORE_CRASH_ROUNDS";
/// The other half of each pair.
const PARTNER: u64 = 1 << 32;

fn config(directory: &Path) -> Config {
    let mut config = small_segments(directory);
    config.embedded.durability = Durability::Fsync;
    config.embedded.segment = ByteSize::kib(256);
    config
}

/// What is done to a pair of records, in this order; each step is one batch on both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Inserted = 1,
    Updated,
    Deleted,
}

/// Not a test of its own: what the killed process does.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = Store::open(&config(Path::new(&directory)), &[TableDef::of::<Session>()])
            .await
            .unwrap();
        let sessions = store.table::<Session>().unwrap();
        let mut first = 0;
        let mut next = Some(Scan::all(1_000));
        while let Some(scan) = next {
            let page = sessions.scan(&scan).await.unwrap();
            first = page
                .records
                .iter()
                .map(|row| (row.id % PARTNER) + 1)
                .fold(first, u64::max);
            next = page.next;
        }
        // Numbers above all that any earlier round may have used, also for records that were deleted again.
        first = first.next_multiple_of(1_000_000);
        let mut waiting = std::collections::VecDeque::new();
        for number in first.. {
            let pair = |note: &str| {
                [number, number + PARTNER].map(|number| {
                    Session::new(number, &format!("imsi-{number}"))
                        .address(&number.to_string())
                        .note(note)
                })
            };
            let mut insert = Batch::default();
            pair(&"x".repeat(300))
                .iter()
                .for_each(|session| insert.insert(&sessions, session));
            waiting.push_back((number, Step::Inserted, store.commit(insert)));
            if number % 3 != 0 {
                let mut update = Batch::default();
                pair("updated")
                    .iter()
                    .for_each(|session| update.put(&sessions, session, Condition::Present));
                waiting.push_back((number, Step::Updated, store.commit(update)));
            }
            if number % 2 == 0 {
                let mut delete = Batch::default();
                [number, number + PARTNER].iter().for_each(|number| {
                    delete.delete(&sessions, &id(*number), Condition::Present);
                });
                waiting.push_back((number, Step::Deleted, store.commit(delete)));
            }
            while waiting.len() > 64 {
                let (number, step, receipt) = waiting.pop_front().unwrap();
                receipt.await.unwrap();
                let mut out = std::io::stdout().lock();
                writeln!(out, "ack {number} {}", step as u8).unwrap();
                out.flush().unwrap();
            }
        }
    });
}

#[test]
fn no_acknowledged_write_is_lost_when_the_process_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let rounds = std::env::var(ROUNDS)
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(4);
    let mut acknowledged: BTreeMap<u64, Step> = BTreeMap::new();
    let mut total = 0;
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::child", "--nocapture", "--test-threads", "1"])
            .env(DIRECTORY, directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // The time of the kill counts from the first acknowledgement, so that each round has some.
        let first = lines
            .by_ref()
            .find_map(|line| parse(&line.unwrap()))
            .expect("the child writes");
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(rand::rng().random_range(20..250)));
            child.kill().unwrap();
            child.wait().unwrap();
        });
        let rest = lines.map_while(Result::ok).filter_map(|line| parse(&line));
        let mut acks = 0;
        for (number, step) in std::iter::once(first).chain(rest) {
            let known = acknowledged.entry(number).or_insert(step);
            *known = step.max(*known);
            acks += 1;
        }
        killer.join().unwrap();
        total += acks;
        verify(directory.path(), &acknowledged, round);
    }
    assert!(total > 100, "{total} acknowledgements in all");
}

fn parse(line: &str) -> Option<(u64, Step)> {
    let mut parts = line.strip_prefix("ack ")?.split(' ');
    let number = parts.next()?.parse().ok()?;
    let step = match parts.next()? {
        "1" => Step::Inserted,
        "2" => Step::Updated,
        "3" => Step::Deleted,
        // The last line may be cut by the kill.
        _ => return None,
    };
    Some((number, step))
}

/// Both records of each pair are in the same state, and at least as far as was acknowledged.
fn verify(directory: &Path, acknowledged: &BTreeMap<u64, Step>, round: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = Store::open(&config(directory), &[TableDef::of::<Session>()])
            .await
            .unwrap();
        let sessions = store.table::<Session>().unwrap();
        let step = async |number: u64| {
            let row = sessions.get(&id(number)).await.unwrap();
            let found = sessions
                .find(Session::ADDRESS, number.to_string().as_bytes(), 2)
                .await
                .unwrap();
            assert_eq!(
                found.len(),
                usize::from(row.is_some()),
                "round {round}: index and record of {number}"
            );
            match row {
                None => None,
                Some(row) if row.note == "updated" => Some(Step::Updated),
                Some(_) => Some(Step::Inserted),
            }
        };
        for (&number, &least) in acknowledged {
            let (one, other) = (step(number).await, step(number + PARTNER).await);
            assert_eq!(one, other, "round {round}: the pair {number} is torn");
            // A record that is gone was deleted, or never inserted; after an acknowledged insert only the former.
            let reached = one.unwrap_or(Step::Deleted);
            assert!(
                reached >= least,
                "round {round}: {number} was {least:?}, is {reached:?}"
            );
            assert!(
                reached != Step::Deleted || number % 2 == 0,
                "round {round}: {number} is lost"
            );
        }
        // Pairs whose acknowledgement was on its way when the process died are whole as well.
        let mut next = Some(Scan::all(1_000));
        while let Some(scan) = next {
            let page = sessions.scan(&scan).await.unwrap();
            for row in &page.records {
                assert_eq!(
                    step(row.id % PARTNER).await,
                    step(row.id % PARTNER + PARTNER).await
                );
            }
            next = page.next;
        }
        drop(sessions);
        store.close().await;
    });
}
