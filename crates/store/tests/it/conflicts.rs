//! Databases that several releases and several sites write at the same time.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use settings::Period;
use store::{Batch, Condition, Config, Store, Table, TableDef};

use crate::databases::Servers;
use crate::session::{Later, Session, id};

const PATIENCE: Duration = Duration::from_secs(60);

async fn open(servers: &Servers, site: u16) -> (Store, Table<Session>) {
    open_with(&servers.config(&format!("site-{site}"), &[site])).await
}

async fn open_with(config: &Config) -> (Store, Table<Session>) {
    let store = Store::open(config, &[TableDef::of::<Session>()]).await.unwrap();
    let sessions = store.table::<Session>().unwrap();
    (store, sessions)
}

async fn put(table: &Table<Session>, session: &Session) {
    let mut batch = Batch::default();
    batch.put(table, session, Condition::Always);
    table.store().commit(batch).await.unwrap();
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn note(table: &Table<Session>, number: u64) -> Option<String> {
    table.get(&id(number)).await.unwrap().map(|row| row.record.note)
}

fn written(number: u64, site: &str) -> Session {
    Session::new(number, site)
        .prefixes(&[&format!("{site}-{number}"), &format!("both-{number}")])
        .note(site)
}

/// Changed at all sites, made at all, and removed at one, while each is cut off from the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_latest_of_the_versions_of_several_sites_wins_at_all() {
    const SITES: u16 = 4;
    const NAMES: [&str; SITES as usize] = ["one", "two", "three", "four"];
    let Some(servers) = Servers::sites(SITES) else {
        return;
    };
    let mut tables = Vec::new();
    for site in 1..=SITES {
        tables.push(open(&servers, site).await.1);
    }
    for number in 0..20 {
        put(&tables[0], &written(number, "before")).await;
    }
    for table in &tables {
        until("the records are everywhere", async || {
            note(table, 19).await.is_some()
        })
        .await;
    }
    let all = |command: &str| (1..=SITES).all(|site| servers.run(command, Some(site)));
    assert!(all("cut"));
    let mut expected = Vec::new();
    // From 20 on the records are new. Each begins at another site, so each site is the last one of some.
    for number in 0..30u64 {
        let first = usize::try_from(number).unwrap();
        let order = (0..NAMES.len()).map(|turn| (first + turn) % NAMES.len());
        for site in order {
            put(&tables[site], &written(number, NAMES[site])).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        expected.push((first + NAMES.len() - 1) % NAMES.len());
    }
    let mut batch = Batch::default();
    batch.delete(&tables[0], &id(5), Condition::Present);
    tables[0].store().commit(batch).await.unwrap();
    assert!(all("join"));
    for (number, from) in (100..).zip(&tables) {
        put(from, &written(number, "after")).await;
        for (to, site) in tables.iter().zip(NAMES) {
            let followed = format!("site {site} has record {number} of another site");
            until(&followed, async || note(to, number).await.is_some()).await;
        }
    }
    for table in &tables {
        for (number, site) in (0u64..).zip(&expected).filter(|(number, _)| *number != 5) {
            let winner = NAMES[*site];
            assert_eq!(
                note(table, number).await.as_deref(),
                Some(winner),
                "record {number}"
            );
            let both = table.find(Session::PREFIX, format!("both-{number}").as_bytes(), 9);
            assert_eq!(both.await.unwrap().len(), 1, "record {number}");
            for name in NAMES {
                let prefix = format!("{name}-{number}");
                let found = table.find(Session::PREFIX, prefix.as_bytes(), 9).await.unwrap();
                assert_eq!(
                    found.len(),
                    usize::from(name == winner),
                    "record {number} by {prefix}"
                );
            }
        }
        assert_eq!(note(table, 5).await, None);
    }
    for table in tables {
        table.store().clone().close().await;
    }
}

/// A write locks records one after the other. Replication applies transactions at the same time and commits them in
/// order: where it has written the last of these records and waits for the first, neither can go on, and the server does
/// not see it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_and_replication_that_wait_for_each_other_both_succeed() {
    let Some(servers) = Servers::sites(2) else { return };
    // One that applies transactions at once, as servers do by default.
    servers.administer(
        2,
        "STOP SLAVE 'site1'; SET GLOBAL site1.slave_parallel_mode = optimistic; START SLAVE 'site1'",
    );
    let mut config = servers.config("site-1", &[1]);
    // Replication has nothing else to apply.
    config.mariadb.heartbeat = Period::from_secs(3_600);
    let (_, there) = open_with(&config).await;
    let mut config = servers.config("site-2", &[2]);
    // Long enough for what follows to happen while the write waits for a lock.
    config.mariadb.statement_timeout = Period::from_secs(8);
    config.mariadb.retry_for = Period::from_secs(30);
    let (_, here) = open_with(&config).await;
    let arrives = async |at: &Table<Session>, number, wanted: &str| {
        until(&format!("record {number} is that of {wanted}"), async || {
            note(at, number).await.as_deref() == Some(wanted)
        })
        .await;
    };
    for number in 1..=3 {
        put(&there, &written(number, "before")).await;
        arrives(&here, number, "before").await;
    }
    let runs = async |what: &str| {
        let select = format!("SELECT COUNT(*) > 0 FROM information_schema.processlist WHERE {what}");
        until(what, async || servers.administer(2, &select).trim() == "1").await;
    };

    // The write has the first record and waits for the second; then replication waits for the first and has the third.
    let url = format!("mysql://signalbox:signalbox@{}/signalbox", servers.address(2));
    let mut between = mysql_async::Conn::from_url(url).await.unwrap();
    between.query_drop("BEGIN").await.unwrap();
    let second = "SELECT id FROM session WHERE id = x'0000000000000002' FOR UPDATE";
    between.query_drop(second).await.unwrap();
    let mut batch = Batch::default();
    for number in 1..=3 {
        batch.put(&here, &written(number, "here"), Condition::Always);
    }
    let store = here.store().clone();
    let write = tokio::spawn(async move { store.commit(batch).await });
    runs("command = 'Execute' AND info LIKE 'SELECT%FOR UPDATE'").await;
    put(&there, &written(1, "there")).await;
    put(&there, &written(3, "there")).await;
    runs("state LIKE 'Update_rows_log_event::find_row%'").await;
    runs("state LIKE 'Waiting for prior transaction to commit%'").await;
    between.query_drop("ROLLBACK").await.unwrap();

    write.await.unwrap().unwrap();
    for number in 1..=3 {
        arrives(&here, number, "here").await;
        arrives(&there, number, "here").await;
    }
    for table in [here, there] {
        table.store().clone().close().await;
    }
}

/// A write has a later version than what it replaces, also when that was stamped by a clock that is ahead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sites_that_are_upgraded_while_cut_follow_each_other_afterwards() {
    let Some(servers) = Servers::sites(2) else { return };
    let ahead = store::Clock::new(|| store::Clock::default().micros() + 3_600_000_000);
    let config = servers.config("site-1", &[1]);
    let early = Store::open_with_clock(&config, &[TableDef::of::<Session>()], ahead)
        .await
        .unwrap();
    put(&early.table().unwrap(), &written(1, "ahead")).await;
    early.close().await;
    let (store, sessions) = open(&servers, 2).await;
    until("the record is at site 2", async || {
        note(&sessions, 1).await.is_some()
    })
    .await;
    let before = sessions.get(&id(1)).await.unwrap().unwrap().version;
    put(&sessions, &written(1, "later")).await;
    assert!(sessions.get(&id(1)).await.unwrap().unwrap().version > before);
    store.close().await;

    assert!(servers.run("cut", Some(1)) && servers.run("cut", Some(2)));
    let mut stores = Vec::new();
    for site in [1, 2] {
        let config = servers.config(&format!("site-{site}"), &[site]);
        stores.push(Store::open(&config, &[TableDef::of::<Later>()]).await.unwrap());
    }
    assert!(servers.run("join", Some(1)) && servers.run("join", Some(2)));
    for (from, to, number) in [(0, 1, 2), (1, 0, 3)] {
        let [from, to]: [Table<Later>; 2] = [from, to].map(|site: usize| stores[site].table().unwrap());
        let mut batch = Batch::default();
        batch.insert(&from, &Later::of(written(number, "upgraded")));
        from.store().commit(batch).await.unwrap();
        until("the record is at the other site", async || {
            let found = to.find(Later::NOTE, b"upgraded", 9).await.unwrap();
            found.iter().any(|found| found.record.key_number() == number)
        })
        .await;
    }
    for store in stores {
        store.close().await;
    }
}

/// Processes of the release before write while those of the next one serve already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_earlier_release_writes_is_found_by_the_indexes_of_the_next() {
    let Some(servers) = Servers::sites(1) else { return };
    let (earlier, sessions) = open(&servers, 1).await;
    let url = format!("mysql://signalbox:signalbox@{}/signalbox", servers.address(1));
    let mut sql = mysql_async::Conn::from_url(url).await.unwrap();
    let mut config = servers.config("site-1", &[1]);
    config.mariadb.heartbeat = Period::from_millis(50);
    let later = Store::open(&config, &[TableDef::of::<Later>()]).await.unwrap();
    let table = later.table::<Later>().unwrap();
    put(&sessions, &written(1, "made")).await;
    let mut batch = Batch::default();
    batch.insert(&table, &Later::of(written(2, "by the next")));
    later.commit(batch).await.unwrap();
    put(&sessions, &written(2, "changed")).await;
    // A release that knows neither the column of the mark nor versions of keys.
    for statement in [
        "INSERT INTO session (id, created, version, site_id, value, i_subscriber) \
         SELECT x'0000000000000003', created, version + 4096, site_id, 'old|-|p-old|oldest', 'old' FROM session WHERE id = x'0000000000000001'",
        "INSERT INTO session__prefix (i_prefix, id) VALUES ('p-old', x'0000000000000003')",
    ] {
        sql.query_drop(statement).await.unwrap();
    }
    assert_eq!(
        sessions.find(Session::PREFIX, b"p-old", 9).await.unwrap().len(),
        1
    );
    for (note, number) in [("made", 1), ("changed", 2), ("oldest", 3)] {
        until(note, async || {
            let found = table.find(Later::NOTE, note.as_bytes(), 9).await.unwrap();
            found.iter().any(|found| found.record.key_number() == number)
        })
        .await;
    }
    assert!(
        table
            .find(Later::NOTE, b"by the next", 9)
            .await
            .unwrap()
            .is_empty()
    );
    drop((sessions, table));
    earlier.close().await;
    later.close().await;
}

/// Tables as the release before has made them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_the_release_before_are_opened_and_lose_nothing() {
    let Some(servers) = Servers::sites(1) else { return };
    let (store, sessions) = open(&servers, 1).await;
    for number in 0..30 {
        put(&sessions, &written(number, "before")).await;
    }
    drop(sessions);
    store.close().await;
    let url = format!("mysql://signalbox:signalbox@{}/signalbox", servers.address(1));
    let mut sql = mysql_async::Conn::from_url(url).await.unwrap();
    for statement in [
        "DROP TRIGGER signalbox_session_update",
        "DROP TRIGGER signalbox_session_insert",
        "ALTER TABLE session DROP COLUMN indexed_as",
        "ALTER TABLE session__prefix DROP PRIMARY KEY, DROP COLUMN record_version, ADD PRIMARY KEY (i_prefix, id)",
        "DROP TABLE signalbox_upgrades",
    ] {
        sql.query_drop(statement).await.unwrap();
    }
    let config = servers.config("site-1", &[1]);
    let (first, second) = tokio::join!(open_with(&config), open_with(&config));
    for (number, (store, sessions)) in [(30, first), (31, second)] {
        put(&sessions, &written(number, "after")).await;
        put(&sessions, &written(number - 1, "changed")).await;
        for number in 0..30 {
            let prefix = format!("both-{number}");
            let found = sessions
                .find(Session::PREFIX, prefix.as_bytes(), 9)
                .await
                .unwrap();
            assert_eq!(found.len(), 1, "by {prefix}");
        }
        drop(sessions);
        store.close().await;
    }
}
