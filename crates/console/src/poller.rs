//! Follows one function: asks it each second how it is doing, what it counts and what has changed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;
use telemetry::Journal;
use telemetry::journal::{Entry, Kind};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::client::{Connection, Failure};
use crate::config::Target;
use crate::figures::Counts;
use crate::observation::{Observation, Reach};
use crate::peers;

/// Interval at which each function is asked.
const INTERVAL: Duration = Duration::from_secs(1);
/// Rounds between two readings of metrics while no browser watches: rendering them costs the functions most.
const UNWATCHED_ROUNDS: u64 = 10;
/// A browser watches until it has asked for nothing for this long.
const WATCHED_FOR: Duration = Duration::from_secs(15);
/// Pages that are larger are not read.
const MOST_STATUS: usize = 4 << 20;
const MOST_JOURNAL: usize = 4 << 20;
const MOST_METRICS: usize = 16 << 20;
const MOST_PEERS: usize = 8 << 20;

/// Whether somebody watches.
#[derive(Debug)]
pub(crate) struct Attention {
    started: Instant,
    /// Milliseconds since `started` of the last request of a browser, and one; 0: none yet.
    last: AtomicU64,
}

impl Attention {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            last: AtomicU64::new(0),
        }
    }

    pub(crate) fn pay(&self) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now.saturating_add(1), Ordering::Relaxed);
    }

    fn is_paid(&self) -> bool {
        match self.last.load(Ordering::Relaxed) {
            0 => false,
            last => self.started.elapsed() < Duration::from_millis(last) + WATCHED_FOR,
        }
    }
}

/// A function that is followed; its task ends with it.
#[derive(Debug)]
pub(crate) struct Poller {
    pub(crate) followed: Target,
    pub(crate) known: Arc<Mutex<Observation>>,
    task: JoinHandle<()>,
}

impl Drop for Poller {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Poller {
    /// Begins to follow; what happens is recorded in the console's own journal.
    pub(crate) fn start(followed: Target, attention: Arc<Attention>, journal: Journal) -> Self {
        let known = Arc::new(Mutex::new(Observation::new(&followed.name, followed.admin)));
        let task = tokio::spawn(follow(known.clone(), followed.admin, attention, journal));
        Self {
            followed,
            known,
            task,
        }
    }
}

async fn follow(
    known: Arc<Mutex<Observation>>,
    admin: SocketAddr,
    attention: Arc<Attention>,
    journal: Journal,
) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut round = 0;
    loop {
        ticks.tick().await;
        let counts = attention.is_paid() || round % UNWATCHED_ROUNDS == 0;
        round += 1;
        if let Err(why) = ask(&known, admin, counts, &journal).await {
            let mut known = known.lock();
            let words = why.to_string();
            if known.is_lost(why) {
                journal.record(Kind::PeerDown, &known.name, &format!("{admin}: {words}"));
            }
        }
    }
}

/// One round. An error means that it does not answer; what answers wrongly is in what is known of it.
async fn ask(
    known: &Mutex<Observation>,
    admin: SocketAddr,
    counts: bool,
    journal: &Journal,
) -> Result<(), Failure> {
    let mut connection = Connection::open(admin).await?;
    let page = connection.get("/status", MOST_STATUS).await?;
    let status = match (page.status, serde_json::from_slice::<Value>(&page.body)) {
        (200, Ok(status)) if status["state"].is_string() => status,
        (200, _) => {
            known
                .lock()
                .is_foreign("what answers is not an admin endpoint".to_owned());
            return Ok(());
        }
        (status, _) => {
            let why = format!("/status is answered {status}: an earlier release, or another program");
            known.lock().is_foreign(why);
            return Ok(());
        }
    };
    let after = {
        let mut known = known.lock();
        if known.answers(status) {
            journal.record(Kind::PeerUp, &known.name, "it answers again");
        }
        if known.reach != Reach::Answers {
            return Ok(());
        }
        // The last one comes again: a journal that was begun again lacks it.
        known.last_entry().saturating_sub(1)
    };
    // What comes from here on is less: that a function serves stays known without it.
    let mut entries = read_journal(&mut connection, after).await;
    let is_another = entries
        .as_ref()
        .is_some_and(|entries| known.lock().is_another_journal(entries));
    if is_another {
        entries = read_journal(&mut connection, 0).await;
    }
    if let Some(entries) = entries {
        known.lock().journal(entries);
    }
    if counts {
        count(known, &mut connection).await;
    }
    Ok(())
}

/// Reads the entries of its journal after a number.
async fn read_journal(connection: &mut Connection, after: u64) -> Option<Vec<Entry>> {
    let page = connection
        .get(&format!("/journal?after={after}"), MOST_JOURNAL)
        .await
        .ok()?;
    serde_json::from_slice(&page.body).ok()
}

/// Reads its metrics, and its list of peers.
async fn count(known: &Mutex<Observation>, connection: &mut Connection) {
    let kind = known.lock().kind().to_owned();
    if let Ok(page) = connection.get("/metrics", MOST_METRICS).await
        && let Some(counts) = Counts::read(&kind, &String::from_utf8_lossy(&page.body))
    {
        known.lock().counted(counts);
    }
    if let Some(listing) = peers::listing(&kind)
        && let Ok(page) = connection.get(listing.path, MOST_PEERS).await
        && let Ok(rows) = serde_json::from_slice::<Value>(&page.body)
    {
        known.lock().down = listing.down(&rows);
    }
}
