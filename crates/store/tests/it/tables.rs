//! What every engine must do alike; each function here is run on each engine.

use std::collections::BTreeSet;

use store::{Batch, Condition, Conflict, Error, Scan, Store, Table};

use crate::session::{Session, id};

/// The whole contract, on an empty store.
pub(crate) async fn contract(store: &Store) {
    let sessions = store.table::<Session>().unwrap();
    conditions(store, &sessions).await;
    indexes(store, &sessions).await;
    unique_keys(store, &sessions).await;
    batches_are_whole(store, &sessions).await;
    clear(store, &sessions).await;
    paging(store, &sessions).await;
    clear(store, &sessions).await;
    concurrent_writers(store, &sessions).await;
    clear(store, &sessions).await;
}

async fn put(store: &Store, table: &Table<Session>, session: &Session) -> store::Version {
    let mut batch = Batch::default();
    batch.put(table, session, Condition::Always);
    store.commit(batch).await.unwrap()
}

async fn conflict(store: &Store, batch: Batch) -> (usize, Conflict) {
    match store.commit(batch).await {
        Err(Error::Conflict {
            operation,
            table: "session",
            conflict,
        }) => (operation, conflict),
        other => panic!("expected a conflict, got {other:?}"),
    }
}

async fn conditions(store: &Store, sessions: &Table<Session>) {
    let first = Session::new(1, "imsi-1").note("first");
    let mut batch = Batch::default();
    batch.insert(sessions, &first);
    let version = store.commit(batch).await.unwrap();
    let stored = sessions.get(&id(1)).await.unwrap().unwrap();
    assert_eq!((&stored.record, stored.version), (&first, version));
    assert_eq!(
        (stored.created, stored.modified()),
        (version.micros(), version.micros())
    );
    assert_eq!(&*stored.site, "site-1");

    let mut again = Batch::default();
    again.insert(sessions, &first);
    assert_eq!(conflict(store, again).await, (0, Conflict::Exists(version)));

    let second = first.clone().note("second");
    let mut update = Batch::default();
    update.update(sessions, &second, version);
    let later = store.commit(update.clone()).await.unwrap();
    assert!(later > version);
    assert_eq!(conflict(store, update).await, (0, Conflict::Changed(later)));
    let stored = sessions.get(&id(1)).await.unwrap().unwrap();
    assert_eq!((stored.record.note.as_str(), stored.version), ("second", later));
    assert_eq!(
        stored.created,
        version.micros(),
        "an update keeps the time of creation"
    );

    let mut absent = Batch::default();
    absent.update(sessions, &Session::new(2, "imsi-2"), later);
    assert_eq!(conflict(store, absent).await, (0, Conflict::Absent));
    let mut absent = Batch::default();
    absent.delete(sessions, &id(2), Condition::Present);
    assert_eq!(conflict(store, absent).await, (0, Conflict::Absent));

    let mut nothing = Batch::default();
    nothing.delete(sessions, &id(2), Condition::Always);
    store.commit(nothing).await.unwrap();
    let mut delete = Batch::default();
    delete.delete(sessions, &id(1), Condition::Version(later));
    store.commit(delete).await.unwrap();
    assert!(sessions.get(&id(1)).await.unwrap().is_none());
}

async fn indexes(store: &Store, sessions: &Table<Session>) {
    for number in 1..=3 {
        put(store, sessions, &Session::new(number, "imsi-1")).await;
    }
    put(store, sessions, &Session::new(4, "imsi-10")).await;
    let found = |key: &'static str, limit| async move {
        let rows = sessions
            .find(Session::SUBSCRIBER, key.as_bytes(), limit)
            .await
            .unwrap();
        rows.iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(found("imsi-1", 10).await, [3, 2, 1], "newest first");
    assert_eq!(found("imsi-1", 2).await.len(), 2);
    assert_eq!(found("imsi-10", 10).await, [4]);
    assert!(found("imsi", 10).await.is_empty());

    // A changed key is found under the new one only.
    put(store, sessions, &Session::new(2, "imsi-10")).await;
    assert_eq!(found("imsi-1", 10).await, [3, 1]);
    assert_eq!(found("imsi-10", 10).await, [4, 2]);

    // Several keys in one index; those that stay, stay.
    let prefixes = |key: &'static str| async move {
        let rows = sessions.find(Session::PREFIX, key.as_bytes(), 10).await.unwrap();
        rows.iter().map(|row| row.id).collect::<Vec<_>>()
    };
    put(
        store,
        sessions,
        &Session::new(1, "imsi-1").prefixes(&["2001:db8:1::/64", "2001:db8:2::/64"]),
    )
    .await;
    put(
        store,
        sessions,
        &Session::new(3, "imsi-1").prefixes(&["2001:db8:2::/64"]),
    )
    .await;
    assert_eq!(prefixes("2001:db8:1::/64").await, [1]);
    assert_eq!(prefixes("2001:db8:2::/64").await, [3, 1]);
    put(
        store,
        sessions,
        &Session::new(1, "imsi-1").prefixes(&["2001:db8:2::/64", "2001:db8:3::/64"]),
    )
    .await;
    assert!(prefixes("2001:db8:1::/64").await.is_empty());
    assert_eq!(prefixes("2001:db8:2::/64").await, [3, 1]);
    assert_eq!(prefixes("2001:db8:3::/64").await, [1]);
    clear(store, sessions).await;
    assert!(prefixes("2001:db8:2::/64").await.is_empty());
    assert!(found("imsi-1", 10).await.is_empty());
}

async fn unique_keys(store: &Store, sessions: &Table<Session>) {
    let first = Session::new(1, "imsi-1").address("10.0.0.1");
    put(store, sessions, &first).await;
    put(store, sessions, &first).await;
    let mut second = Batch::default();
    second.insert(sessions, &Session::new(2, "imsi-2").address("10.0.0.1"));
    let (operation, why) = conflict(store, second).await;
    assert_eq!(operation, 0);
    assert!(
        matches!(why, Conflict::Unique { index: "address", .. }),
        "{why:?}"
    );
    assert!(sessions.get(&id(2)).await.unwrap().is_none());

    // One batch may hand the key on.
    let mut hand_on = Batch::default();
    hand_on.insert(sessions, &Session::new(2, "imsi-2").address("10.0.0.1"));
    hand_on.delete(sessions, &id(1), Condition::Present);
    store.commit(hand_on).await.unwrap();
    let found = sessions.find(Session::ADDRESS, b"10.0.0.1", 10).await.unwrap();
    assert_eq!(found.iter().map(|row| row.id).collect::<Vec<_>>(), [2]);
    // An address given up is free.
    put(store, sessions, &Session::new(2, "imsi-2")).await;
    put(store, sessions, &first).await;
    clear(store, sessions).await;
}

async fn batches_are_whole(store: &Store, sessions: &Table<Session>) {
    let version = put(store, sessions, &Session::new(1, "imsi-1")).await;
    let mut batch = Batch::default();
    batch.put(sessions, &Session::new(5, "imsi-5"), Condition::Always);
    batch.delete(sessions, &id(1), Condition::Always);
    batch.insert(sessions, &Session::new(6, "imsi-6"));
    batch.require(sessions, &id(7), Condition::Present);
    assert_eq!(conflict(store, batch).await, (3, Conflict::Absent));
    assert!(sessions.get(&id(1)).await.unwrap().is_some());
    assert!(sessions.get(&id(5)).await.unwrap().is_none());
    assert!(
        sessions
            .find(Session::SUBSCRIBER, b"imsi-6", 1)
            .await
            .unwrap()
            .is_empty()
    );

    let mut batch = Batch::default();
    batch.put(sessions, &Session::new(5, "imsi-5"), Condition::Always);
    batch.require(sessions, &id(1), Condition::Version(version));
    let version = store.commit(batch).await.unwrap();
    assert_eq!(sessions.get(&id(5)).await.unwrap().unwrap().version, version);

    let mut twice = Batch::default();
    twice.put(sessions, &Session::new(8, "imsi-8"), Condition::Always);
    twice.delete(sessions, &id(8), Condition::Always);
    assert!(matches!(store.commit(twice).await, Err(Error::Invalid(_))));
    assert!(matches!(
        store.commit(Batch::default()).await,
        Err(Error::Invalid(_))
    ));
    let mut long = Batch::default();
    long.insert(sessions, &Session::new(9, &"x".repeat(store::MAX_KEY + 1)));
    assert!(matches!(store.commit(long).await, Err(Error::Invalid(_))));
}

async fn paging(store: &Store, sessions: &Table<Session>) {
    for number in 0..25u64 {
        // Modified in another order than the primary key's; two subscribers share each key.
        let number = number * 7 % 25;
        put(
            store,
            sessions,
            &Session::new(number, &format!("imsi-{:02}", (25 - number) / 2)),
        )
        .await;
    }
    let walk = |scan: Scan| async move {
        let (mut next, mut seen, mut pages) = (Some(scan), Vec::new(), 0);
        while let Some(scan) = next {
            let page = sessions.scan(&scan).await.unwrap();
            seen.extend(page.records);
            next = page.next;
            pages += 1;
            assert!(pages < 40, "the scan does not end");
        }
        seen
    };
    for limit in [1, 4, 25, 100] {
        let mut all: Vec<u64> = walk(Scan::all(limit)).await.iter().map(|row| row.id).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..25), "limit {limit}");
        let by_index = walk(Scan::by_index(Session::SUBSCRIBER, limit)).await;
        let order: Vec<_> = by_index
            .iter()
            .map(|row| (row.subscriber.clone(), row.id))
            .collect();
        assert!(order.len() == 25 && order.is_sorted(), "limit {limit}: {order:?}");
        let by_age = walk(Scan::by_modified(limit)).await;
        assert!(
            by_age.len() == 25 && by_age.is_sorted_by_key(|row| row.version),
            "limit {limit}"
        );
        let old = walk(Scan::by_modified(limit).modified_before(by_age[10].modified())).await;
        assert_eq!(old.len(), 10, "limit {limit}");
        let some = walk(
            Scan::by_index(Session::SUBSCRIBER, limit)
                .from_key(b"imsi-03")
                .to_key(b"imsi-05"),
        )
        .await;
        assert_eq!(some.len(), 4, "limit {limit}");
        let none = Scan::by_index(Session::SUBSCRIBER, limit)
            .from_key(b"x")
            .to_key(b"a");
        assert!(walk(none).await.is_empty());
    }
    let unordered = sessions.scan(&Scan::by_index(Session::ADDRESS, 5)).await;
    assert!(matches!(unordered, Err(Error::Invalid(_))));
}

/// Many writers update one record by version: no update may be lost.
async fn concurrent_writers(store: &Store, sessions: &Table<Session>) {
    put(store, sessions, &Session::new(1, "imsi-1").note("0")).await;
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let (store, sessions) = (store.clone(), sessions.clone());
            tokio::spawn(async move {
                let mut done = 0;
                while done < 10 {
                    let row = sessions.get(&id(1)).await.unwrap().unwrap();
                    let count: u32 = row.note.parse().unwrap();
                    let mut batch = Batch::default();
                    let next = row.record.clone().note(&(count + 1).to_string());
                    batch.update(&sessions, &next, row.version);
                    match store.commit(batch).await {
                        Ok(_) => done += 1,
                        Err(Error::Conflict { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(sessions.get(&id(1)).await.unwrap().unwrap().note, "80");

    // Many batches at once, each acknowledged, each there.
    let receipts: Vec<_> = (100..400)
        .map(|number| {
            let mut batch = Batch::default();
            batch.insert(sessions, &Session::new(number, "many"));
            store.commit(batch)
        })
        .collect();
    let mut versions = BTreeSet::new();
    for receipt in receipts {
        versions.insert(receipt.await.unwrap());
    }
    assert_eq!(versions.len(), 300, "each batch has a version of its own");
    assert_eq!(
        sessions
            .find(Session::SUBSCRIBER, b"many", 1_000)
            .await
            .unwrap()
            .len(),
        300
    );
    for (key, expected) in [(&b"many"[..], 300), (b"man", 0), (b"many ", 0)] {
        let counted = sessions.count_of(Session::SUBSCRIBER, key).await;
        assert_eq!(counted.unwrap(), expected, "{key:?}");
    }
}

async fn clear(store: &Store, sessions: &Table<Session>) {
    let mut next = Some(Scan::all(100));
    while let Some(scan) = next {
        let page = sessions.scan(&scan).await.unwrap();
        let mut batch = Batch::default();
        for row in &page.records {
            batch.delete(sessions, &id(row.id), Condition::Always);
        }
        if !batch.is_empty() {
            store.commit(batch).await.unwrap();
        }
        next = page.next;
    }
}
