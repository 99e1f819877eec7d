//! Nodes of a cluster that live and do not serve.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use store::{Batch, Condition, Store, TableDef};

use crate::databases::Servers;
use crate::session::{Session, id};

/// Tasks that write and read at the same time.
const WRITERS: u64 = 8;
/// How often the node that takes writes changes.
const CHANGES: u16 = 8;

/// A node that is set to read only is left for one that takes writes. No write fails, and a record is found as soon as
/// it is acknowledged, although transactions may still be committed on the node that was left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_takes_no_writes_is_left_and_no_read_misses_a_write() {
    let Some(servers) = Servers::galera(2) else { return };
    let config = servers.config("site-1", &[1, 2]);
    let store = Store::open(&config, &[TableDef::of::<Session>()]).await.unwrap();
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (store, stop, written) = (store.clone(), stop.clone(), written.clone());
            tokio::spawn(async move {
                let sessions = store.table::<Session>().unwrap();
                let mut number = writer;
                while !stop.load(Ordering::Relaxed) {
                    let mut batch = Batch::default();
                    batch.insert(&sessions, &Session::new(number, "imsi-1"));
                    store.commit(batch).await.unwrap();
                    let found = sessions.get(&id(number)).await.unwrap();
                    assert!(found.is_some(), "record {number} is acknowledged and not found");
                    written.fetch_add(1, Ordering::Relaxed);
                    number += WRITERS;
                }
            })
        })
        .collect();
    for change in 0..CHANGES {
        let (serves, not) = if change.is_multiple_of(2) { (2, 1) } else { (1, 2) };
        servers.administer(serves, "SET GLOBAL read_only = OFF");
        servers.administer(not, "SET GLOBAL read_only = ON");
        let before = written.load(Ordering::Relaxed);
        let begun = std::time::Instant::now();
        while written.load(Ordering::Relaxed) < before + 50 {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "nothing is written any more"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    assert!(
        store.stats().failovers >= u64::from(CHANGES),
        "{:?}",
        store.stats()
    );
    store.close().await;
}

/// Functions on two nodes write the same few records all the time, so that the cluster rolls transactions back in the
/// middle; what is acknowledged is there all the same, whole, on each node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_that_a_cluster_rolls_back_are_not_acknowledged() {
    /// Records that all tasks write.
    const HOT: u64 = 3;
    /// Where the records that one task writes begin.
    const OWN: u64 = 1_000;
    /// How long the tasks write at least, and at most until there are enough commits to judge by.
    const LEAST: Duration = Duration::from_secs(20);
    const MOST: Duration = Duration::from_secs(120);
    const ENOUGH: u64 = 100;
    let Some(servers) = Servers::galera(2) else { return };
    let mut stores = Vec::new();
    for node in [1, 2] {
        let config = servers.config("site-1", &[node]);
        stores.push(Store::open(&config, &[TableDef::of::<Session>()]).await.unwrap());
    }
    let (stop, next) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(OWN)));
    let committed = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = (0..12)
        .map(|task| {
            let (store, stop, next) = (stores[task % 2].clone(), stop.clone(), next.clone());
            let committed = committed.clone();
            tokio::spawn(async move {
                let sessions = store.table::<Session>().unwrap();
                let mut acknowledged = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let own = next.fetch_add(2, Ordering::Relaxed);
                    let mut batch = Batch::default();
                    batch.put(&sessions, &Session::new(own % HOT, "hot"), Condition::Always);
                    batch.insert(&sessions, &Session::new(own, "imsi-1"));
                    batch.insert(&sessions, &Session::new(own + 1, "imsi-1"));
                    if store.commit(batch).await.is_ok() {
                        acknowledged.push(own);
                        committed.fetch_add(1, Ordering::Relaxed);
                    }
                }
                acknowledged
            })
        })
        .collect();
    // How fast a cluster commits depends on the machine; the bound is for one that stands still.
    let (began, count) = (Instant::now(), || committed.load(Ordering::Relaxed));
    while began.elapsed() < LEAST || (count() <= ENOUGH && began.elapsed() < MOST) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut acknowledged = Vec::new();
    for task in tasks {
        acknowledged.extend(task.await.unwrap());
    }
    assert!(acknowledged.len() > 100, "{}", acknowledged.len());
    // Each waits for what the other has acknowledged, when it connects.
    for node in [1, 2] {
        let config = servers.config("site-1", &[node]);
        let store = Store::open(&config, &[TableDef::of::<Session>()]).await.unwrap();
        let sessions = store.table::<Session>().unwrap();
        let mut lost = Vec::new();
        for own in &acknowledged {
            for number in [*own, own + 1] {
                if sessions.get(&id(number)).await.unwrap().is_none() {
                    lost.push(number);
                }
            }
        }
        assert!(
            lost.is_empty(),
            "node {node} has lost {lost:?} of {}",
            acknowledged.len()
        );
        store.close().await;
    }
    for store in stores {
        store.close().await;
    }
}
