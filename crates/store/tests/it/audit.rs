//! The audit: which records it sees, at what rate, and what it does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use settings::Period;
use store::{Audit, AuditConfig, Batch, Clock, Condition, Decision, Store, TableDef};

use crate::session::{Session, embedded_config, id};

#[tokio::test(start_paused = true)]
async fn old_records_are_looked_at_and_what_is_decided_happens() {
    let directory = tempfile::tempdir().unwrap();
    let micros = Arc::new(AtomicU64::new(1_000_000_000_000));
    let clock = {
        let micros = micros.clone();
        Clock::new(move || micros.load(Ordering::Relaxed))
    };
    let config = embedded_config(directory.path());
    let store = Store::open_with_clock(&config, &[TableDef::of::<Session>()], clock.clone())
        .await
        .unwrap();
    let sessions = store.table::<Session>().unwrap();
    let put = async |session: Session| {
        let mut batch = Batch::default();
        batch.put(&sessions, &session, Condition::Always);
        store.commit(batch).await.unwrap();
    };
    for number in 0..50 {
        put(Session::new(number, "old")).await;
    }
    micros.fetch_add(Duration::from_secs(7_200).as_micros() as u64, Ordering::Relaxed);
    for number in 50..60 {
        put(Session::new(number, "young")).await;
    }
    let config = AuditConfig {
        older_than: Period::from_secs(3_600),
        rate: 10,
        ..AuditConfig::default()
    };
    let audit = Audit::new(sessions.clone(), config, clock.clone());
    let begun = tokio::time::Instant::now();
    let mut decide = async |stored: &store::Stored<Session>| match stored.id % 5 {
        0 => Decision::Delete,
        1 => Decision::Refresh(stored.record.clone().note("seen")),
        2 if stored.id == 2 => {
            // Somebody writes it while the function makes up its mind.
            put(stored.record.clone().note("busy")).await;
            Decision::Delete
        }
        _ => Decision::Keep,
    };
    audit.round(&mut decide).await.unwrap();
    let took = begun.elapsed();
    assert!(
        took >= Duration::from_secs(5),
        "50 records at 10 a second took {took:?}"
    );

    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let counters = audit.counters();
    assert_eq!((count(&counters.seen), count(&counters.rounds)), (50, 1));
    assert_eq!((count(&counters.deleted), count(&counters.refreshed)), (10, 10));
    assert_eq!((count(&counters.kept), count(&counters.changed)), (29, 1));
    assert!(sessions.get(&id(5)).await.unwrap().is_none());
    assert_eq!(sessions.get(&id(6)).await.unwrap().unwrap().note, "seen");
    assert_eq!(sessions.get(&id(2)).await.unwrap().unwrap().note, "busy");

    // What was refreshed, or written meanwhile, is young now.
    audit.round(&mut async |_| Decision::Keep).await.unwrap();
    assert_eq!(count(&audit.counters().seen), 50 + 29);
}

/// A clock was years ahead for one write; versions only grow, so that all writes since have its year.
#[tokio::test(start_paused = true)]
async fn records_of_the_future_are_audited_once_in_each_walk() {
    let directory = tempfile::tempdir().unwrap();
    const NOW: u64 = 1_000_000_000_000;
    let micros = Arc::new(AtomicU64::new(NOW));
    let clock = {
        let micros = micros.clone();
        Clock::new(move || micros.load(Ordering::Relaxed))
    };
    let config = embedded_config(directory.path());
    let store = Store::open_with_clock(&config, &[TableDef::of::<Session>()], clock.clone())
        .await
        .unwrap();
    let sessions = store.table::<Session>().unwrap();
    for number in 0..130 {
        let years = if number == 50 { 14 } else { 0 };
        micros.store(NOW + years * 31_557_600_000_000, Ordering::Relaxed);
        let mut batch = Batch::default();
        batch.insert(&sessions, &Session::new(number, "imsi-1"));
        store.commit(batch).await.unwrap();
    }
    let config = AuditConfig {
        older_than: Period::from_secs(3_600),
        rate: 100,
        ..AuditConfig::default()
    };
    let audit = Audit::new(sessions.clone(), config, clock);
    for walk in 1..=3 {
        let mut seen = Vec::new();
        let mut decide = async |stored: &store::Stored<Session>| {
            seen.push(stored.id);
            Decision::Refresh(stored.record.clone())
        };
        audit.round(&mut decide).await.unwrap();
        seen.sort_unstable();
        assert!(seen == (50..130).collect::<Vec<_>>(), "walk {walk}: {seen:?}");
    }
}
