//! The embedded engine: the contract, restarts, bounds.

use settings::ByteSize;
use store::{Batch, Condition, Config, Durability, Error, Store, TableDef};

use crate::session::{Later, Session, embedded_config, id, open_embedded};
use crate::tables;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_the_contract() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_embedded(directory.path()).await;
    tables::contract(&store).await;
    let stats = store.stats();
    assert!(stats.groups < stats.batches, "batches share commits: {stats:?}");
    assert_eq!((stats.waiting, stats.waiting_bytes), (0, 0));
}

#[tokio::test]
async fn reads_are_answered_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_embedded(directory.path()).await;
    let sessions = store.table::<Session>().unwrap();
    assert_eq!(sessions.get(&id(1)).try_now().ok().unwrap().unwrap(), None);
    assert!(sessions.find(Session::SUBSCRIBER, b"x", 1).try_now().is_ok());
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..3u64 {
        let config = Config {
            site: format!("site-{round}"),
            ..embedded_config(directory.path())
        };
        let store = Store::open(&config, &[TableDef::of::<Session>()]).await.unwrap();
        let sessions = store.table::<Session>().unwrap();
        for earlier in 0..round {
            let row = sessions.get(&id(earlier)).await.unwrap().unwrap();
            assert_eq!(&*row.site, format!("site-{earlier}").as_str());
        }
        let mut batch = Batch::default();
        batch.insert(&sessions, &Session::new(round, "imsi-1"));
        store.commit(batch).await.unwrap();
        store.clone().close().await;
        let mut late = Batch::default();
        late.insert(&sessions, &Session::new(99, "imsi-1"));
        assert_eq!(store.commit(late).await, Err(Error::Closed));
    }
}

#[tokio::test]
async fn one_process_owns_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let _store = open_embedded(directory.path()).await;
    let second = Store::open(&embedded_config(directory.path()), &[TableDef::of::<Session>()]).await;
    assert!(matches!(second, Err(Error::Open(_))), "{second:?}");
}

/// What still refers to a closed store keeps no process from opening its directory. Here it is a table, which keeps the
/// descriptor of the lock open; a process that is just being started holds a copy of it likewise.
#[tokio::test]
async fn a_closed_store_can_be_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_embedded(directory.path()).await;
    let sessions = store.table::<Session>().unwrap();
    store.close().await;
    open_embedded(directory.path()).await;
    drop(sessions);
}

#[tokio::test]
async fn a_full_queue_is_told_and_nothing_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config {
        queue_length: 4,
        ..embedded_config(directory.path())
    };
    config.embedded.durability = Durability::Fsync;
    let store = Store::open(&config, &[TableDef::of::<Session>()]).await.unwrap();
    let sessions = store.table::<Session>().unwrap();
    let receipts: Vec<_> = (0..2_000u64)
        .map(|number| {
            let mut batch = Batch::default();
            batch.insert(&sessions, &Session::new(number, "imsi-1"));
            (number, store.commit(batch))
        })
        .collect();
    let mut overflows = 0;
    for (number, receipt) in receipts {
        let kept = match receipt.await {
            Ok(_) => true,
            Err(error @ Error::Overflow { .. }) => {
                assert!(error.retry_is_safe());
                overflows += 1;
                false
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!(sessions.get(&id(number)).await.unwrap().is_some(), kept);
    }
    assert!(overflows > 0);
    assert_eq!(store.stats().overflows, overflows);
    assert_eq!(store.stats().waiting_bytes, 0);
}

#[tokio::test]
async fn oversized_batches_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config {
        max_batch_operations: 2,
        max_batch_bytes: ByteSize::kib(4),
        ..embedded_config(directory.path())
    };
    let store = Store::open(&config, &[TableDef::of::<Session>()]).await.unwrap();
    let sessions = store.table::<Session>().unwrap();
    let mut many = Batch::default();
    (0..3).for_each(|number| many.insert(&sessions, &Session::new(number, "imsi-1")));
    let mut large = Batch::default();
    large.insert(&sessions, &Session::new(1, "imsi-1").note(&"x".repeat(5_000)));
    for batch in [many, large] {
        let error = store.commit(batch).await.unwrap_err();
        assert!(
            matches!(&error, Error::Invalid(text) if text.contains("maxBatch")),
            "{error}"
        );
    }
}

#[tokio::test]
async fn large_values_are_compressed_and_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config {
        compress_above: ByteSize(256),
        ..embedded_config(directory.path())
    };
    let long = Session::new(1, "imsi-1").note(&"policy ".repeat(1_000));
    for _ in 0..2 {
        let store = Store::open(&config, &[TableDef::of::<Session>()]).await.unwrap();
        let sessions = store.table::<Session>().unwrap();
        let mut batch = Batch::default();
        batch.put(&sessions, &long, Condition::Always);
        store.commit(batch).await.unwrap();
        assert_eq!(sessions.get(&id(1)).await.unwrap().unwrap().record, long);
        store.close().await;
        // Values written with the setting are read without it.
        config.compress_above = ByteSize(0);
    }
}

#[tokio::test]
async fn a_new_index_is_built_when_the_store_opens() {
    let directory = tempfile::tempdir().unwrap();
    let store = open_embedded(directory.path()).await;
    let sessions = store.table::<Session>().unwrap();
    for number in 0..2_500u64 {
        let mut batch = Batch::default();
        let note = format!("note-{}", number % 10);
        batch.insert(
            &sessions,
            &Session::new(number, "imsi-1")
                .address(&number.to_string())
                .note(&note),
        );
        if number == 2_499 {
            store.commit(batch).await.unwrap();
        } else {
            drop(store.commit(batch));
        }
    }
    drop(sessions);
    store.close().await;

    let store = Store::open(&embedded_config(directory.path()), &[TableDef::of::<Later>()])
        .await
        .unwrap();
    let table = store.table::<Later>().unwrap();
    assert_eq!(
        table.find(Later::NOTE, b"note-3", 1_000).await.unwrap().len(),
        250
    );
    assert_eq!(
        table
            .find(Session::SUBSCRIBER, b"imsi-1", 5_000)
            .await
            .unwrap()
            .len(),
        2_500
    );
    let mut batch = Batch::default();
    batch.delete(&table, &id(3), Condition::Present);
    store.commit(batch).await.unwrap();
    assert_eq!(
        table.find(Later::NOTE, b"note-3", 1_000).await.unwrap().len(),
        249
    );
}
