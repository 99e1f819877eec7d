//! The store of a function: readiness, an alarm, metrics.

use std::time::{Duration, Instant};

use ::store::{Damage, LateSite, Stats, Store};
use parking_lot::Mutex;
use telemetry::{AlarmKind, Alarms, Alert, Declaration, Health, Registry, Severity, When};

use crate::contract::{NetworkFunction, Opening};
use crate::error::StartError;

/// Every alarm of a store.
pub const ALARMS: &[AlarmKind] = &[CANNOT_WRITE, DAMAGED_FILES, REPLICATION_STOPPED];

/// The store refuses all writes. The number is ours.
const CANNOT_WRITE: AlarmKind = AlarmKind {
    number: 10520,
    name: "Store Cannot Write",
    severity: Severity::Critical,
    text: "The store can make nothing durable, so the function refuses all changes.",
    advice: "Make room on the disk or repair it, or bring the database back; the alarm clears by itself. After a failed flush, restart the function.",
};

/// Files are damaged that were not read when the store was opened. The number is ours.
const DAMAGED_FILES: AlarmKind = AlarmKind {
    number: 10523,
    name: "Store Damaged",
    severity: Severity::Critical,
    text: "A file of the store's log is damaged: records in it cannot be read.",
    advice: "Stop the function, run `signalbox store verify`, restore the directory from a copy, or run `signalbox store salvage`.",
};

/// Writes of another site do not arrive. The number is ours.
const REPLICATION_STOPPED: AlarmKind = AlarmKind {
    number: 10524,
    name: "Store Replication Stopped",
    severity: Severity::Major,
    text: "Writes of another site have not arrived for longer than store.replicationAlarm.",
    advice: "Check the database's replication from that site (MariaDB: SHOW ALL SLAVES STATUS), the connection, and whether a function runs there. Of a site that was removed, delete the row in signalbox_heartbeat.",
};

/// Between two tries to reach a database, while a start waits for it.
const AGAIN: Duration = Duration::from_secs(1);
/// Between two lines in the log that say so.
const LOGGED: Duration = Duration::from_secs(10);

impl<F: NetworkFunction> Opening<F> {
    /// Waits until the database of the store can be reached, for `store.openFor` at most: machines of one site start in any
    /// order. Meanwhile the function is not ready, and says why.
    ///
    /// # Errors
    /// When it cannot be reached in time, or the process stops.
    pub async fn wait_for_store(&self, config: &::store::Config) -> Result<(), StartError> {
        let (component, begun) = (self.health.component("store"), Instant::now());
        let mut logged: Option<Instant> = None;
        loop {
            let reason = match ::store::reach(config).await {
                Ok(()) => {
                    self.alarms.clear(&CANNOT_WRITE, "store");
                    if logged.is_some() {
                        tracing::info!(function = F::NAME, "the database can be reached");
                    }
                    return Ok(());
                }
                Err(error @ ::store::Error::Unavailable { .. })
                    if begun.elapsed() < config.open_for.duration() =>
                {
                    error.to_string()
                }
                Err(error) => return Err(error.into()),
            };
            if self.health.is_stopping() {
                return Err(StartError::Store(
                    format!("stopped while waiting for the database: {reason}").into(),
                ));
            }
            component.not_ready(format!("waiting for the database: {reason}"));
            self.alarms.raise(&CANNOT_WRITE, "store", reason.clone());
            if logged.is_none_or(|at| at.elapsed() >= LOGGED) {
                logged = Some(Instant::now());
                tracing::warn!(
                    function = F::NAME,
                    reason,
                    limit_seconds = config.open_for.duration().as_secs(),
                    "the database cannot be reached; waiting"
                );
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Readiness, the alarm and metrics follow the store, which is open, from now on.
    pub fn watch_store(&self, store: &Store) {
        watch(store, &self.health, &self.alarms);
        let seen = store.clone();
        observe(&self.registry, move || Some(seen.stats()));
    }
}

/// Lets readiness and the alarms follow whether the store, which is open, can write, is damaged, and has the writes of
/// other sites.
pub fn watch(store: &Store, health: &Health, alarms: &Alarms) {
    let (component, raised) = (health.component("store"), alarms.clone());
    store.watch_damage(move |damage| {
        // The function still serves reads, so it stays ready; the alarm names the damaged file.
        let detail = damage.first().map(|first| {
            let Damage { file, byte, reason } = first;
            format!("{} damaged files; {file} at byte {byte}: {reason}", damage.len())
        });
        component.remark(detail.clone());
        raised.set(&DAMAGED_FILES, "store", detail);
    });
    let (raised, late_before) = (alarms.clone(), Mutex::new(Vec::new()));
    store.watch_replication(move |late| {
        let mut before = late_before.lock();
        for LateSite { site, delay } in late {
            let detail = format!(
                "the latest write of this site that arrived is {} s old",
                delay.as_secs()
            );
            raised.raise(&REPLICATION_STOPPED, site, detail);
        }
        let has_arrived = |site: &String| !late.iter().any(|one| one.site == *site);
        for site in before.iter().filter(|site| has_arrived(site)) {
            raised.clear(&REPLICATION_STOPPED, site);
        }
        *before = late.iter().map(|one| one.site.clone()).collect();
    });
    let (component, alarms) = (health.component("store"), alarms.clone());
    store.watch(move |trouble| {
        match trouble {
            Some(reason) => component.not_ready(reason),
            None => component.ready(),
        }
        alarms.set(&CANNOT_WRITE, "store", trouble.map(str::to_owned));
    });
}

telemetry::declare! {
    /// Every metric of a store.
    pub METRICS;
    counter BATCHES = "signalbox_store_batches_total" []: "Batches of writes that were committed.";
    counter CONFLICTS = "signalbox_store_conflicts_total" []: "Batches refused because a condition did not hold.";
    counter OVERFLOWS = "signalbox_store_overflows_total" []: "Writes and reads refused because too many were pending (queueLength, queueBytes, readQueue).",
        alert Alert::major(When::Occurs, 1, "The disk or the database is slower than the load. Check it, or raise the bound that the log names.");
    counter FAILURES = "signalbox_store_failures_total" []: "Batches that failed for any other reason.",
        alert Alert::major(When::Occurs, 1, "The log has the reason; check disk or database.");
    counter OPERATIONS = "signalbox_store_operations_total" []: "Operations that were committed.";
    counter GROUPS = "signalbox_store_groups_total" []: "Commits of the engine, each of one batch or more.";
    counter COMMIT_SECONDS = "signalbox_store_commit_seconds_total" []: "Time spent in commits of the engine.";
    gauge TROUBLED = "signalbox_store_troubled" []: "Whether nothing can be made durable and all writes are refused: 1, otherwise 0.";
    gauge WAITING = "signalbox_store_waiting" []: "Batches that are pending now (queueLength).";
    gauge WAITING_BYTES = "signalbox_store_waiting_bytes" []: "Bytes of batches that are pending now (queueBytes).";
    gauge DISK = "signalbox_store_disk_bytes" []: "Bytes of the log on disk (embedded engine).";
    gauge LIVE = "signalbox_store_live_bytes" []: "Bytes of the log that are current records (embedded engine).";
    gauge SEGMENTS = "signalbox_store_segments" []: "Files of the log (embedded engine).";
    gauge INDEX = "signalbox_store_index_bytes" []: "Bytes of the indexes in memory (embedded engine).";
    counter COMPACTIONS = "signalbox_store_compactions_total" []: "Compactions of the log (embedded engine).";
    counter COMPACTED = "signalbox_store_compacted_bytes_total" []: "Bytes that compactions have copied (embedded engine).";
    counter CHECKPOINTS = "signalbox_store_checkpoints_total" []: "Checkpoints of the indexes that were written (embedded engine).";
    gauge CHECKPOINT = "signalbox_store_checkpoint_bytes" []: "Bytes of the last checkpoint (embedded engine).";
    gauge UNREAD = "signalbox_store_unread_files" []: "Files of the log that were not read at the start, because a checkpoint knew them (embedded engine).";
    gauge DAMAGED = "signalbox_store_damaged_files" []: "Files of the log in which damage was found after the start (embedded engine).";
    counter READS = "signalbox_store_reads_total" []: "Reads that were answered: keys, keys of indexes, pages and counts (database).";
    counter RETRIES = "signalbox_store_retries_total" []: "Transactions tried again after a deadlock, a failed certification or the loss of a node (database).";
    counter FAILOVERS = "signalbox_store_failovers_total" []: "Changes to another node of the database.";
    gauge DELAY = "signalbox_store_replication_delay_seconds" ["site"]: "Replication delay of each other site (database).";
}

/// Shows the figures of a store; none when the function is gone.
pub fn observe(registry: &Registry, stats: impl Fn() -> Option<Stats> + Clone + Send + Sync + 'static) {
    type Read = fn(&Stats) -> f64;
    let figures: [(&'static Declaration, Read); 23] = [
        (&BATCHES, |stats| stats.batches as f64),
        (&CONFLICTS, |stats| stats.conflicts as f64),
        (&OVERFLOWS, |stats| stats.overflows as f64),
        (&FAILURES, |stats| stats.failures as f64),
        (&OPERATIONS, |stats| stats.operations as f64),
        (&GROUPS, |stats| stats.groups as f64),
        (&COMMIT_SECONDS, |stats| stats.commit_time.as_secs_f64()),
        (&TROUBLED, |stats| f64::from(u8::from(stats.troubled))),
        (&WAITING, |stats| stats.waiting as f64),
        (&WAITING_BYTES, |stats| stats.waiting_bytes as f64),
        (&DISK, |stats| stats.disk_bytes as f64),
        (&LIVE, |stats| stats.live_bytes as f64),
        (&SEGMENTS, |stats| stats.segments as f64),
        (&INDEX, |stats| stats.index_bytes as f64),
        (&COMPACTIONS, |stats| stats.compactions as f64),
        (&COMPACTED, |stats| stats.compacted_bytes as f64),
        (&CHECKPOINTS, |stats| stats.checkpoints as f64),
        (&CHECKPOINT, |stats| stats.checkpoint_bytes as f64),
        (&UNREAD, |stats| stats.unread as f64),
        (&DAMAGED, |stats| stats.damaged as f64),
        (&READS, |stats| stats.reads as f64),
        (&RETRIES, |stats| stats.retries as f64),
        (&FAILOVERS, |stats| stats.failovers as f64),
    ];
    for (declaration, read) in figures {
        let stats = stats.clone();
        registry.observe(declaration, move || stats().as_ref().map_or(0.0, read));
    }
    registry.observe_all(&DELAY, move || {
        let delays = stats().map(|stats| stats.replication_delay).unwrap_or_default();
        delays
            .into_iter()
            .map(|(site, delay)| (vec![site], delay.as_secs_f64()))
            .collect()
    });
}
