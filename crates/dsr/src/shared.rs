//! State that the workers of a router share with its control thread and its admin pages.

use std::sync::Arc;

use arc_swap::ArcSwap;
use diameter::proto::{Dictionary, ResultCode};
use dsr_app::{Application as _, Finding, Table};
use dsr_ocdra::Ocdra;
use dsr_pdra::Pdra;
use function::Counts;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::derived::Live;
use crate::events::Event;
use crate::hosting::Arrival;
use crate::measures::{Published, Transaction};
use crate::registry::ByHost;
use crate::router::{Gauges, Mailbox, Post, Tools};
use crate::rows::{ApplicationRow, IndicatorRow, MeasureRow, PeerRow, RouteRow, ThrottleRow, TraceRow};
use crate::snapshot::Snapshot;
use crate::trace::Cache;

/// A Diameter signaling router: what its threads share.
pub struct Dsr {
    pub(crate) live: Arc<Live>,
    pub(crate) counts: Counts<Event>,
    /// Rows of the peers of each worker.
    pub(crate) reports: Vec<ArcSwap<Vec<PeerRow>>>,
    /// What each worker has measured.
    pub(crate) measures: Vec<ArcSwap<Published>>,
    /// Rows that the control thread keeps current.
    pub(crate) indicators: Mutex<Vec<IndicatorRow>>,
    /// Traced messages.
    pub(crate) traces: Cache,
    pub(crate) tools: Tools,
    /// What each worker takes when it starts.
    pub(crate) places: Mutex<Vec<Place>>,
}

/// What one worker takes when it starts.
#[derive(Default)]
pub(crate) struct Place {
    pub(crate) post: Option<Post>,
    pub(crate) mailbox: Option<Mailbox>,
    /// What applications resume.
    pub(crate) resumed: Option<mpsc::Receiver<Arrival>>,
    /// By local node.
    pub(crate) seats: Vec<diameter::Seat>,
}

impl std::fmt::Debug for Dsr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dsr")
    }
}

impl Dsr {
    /// Count of an event, over all workers.
    #[must_use]
    pub fn count(&self, event: Event) -> u64 {
        self.counts.sum(event)
    }

    /// Count of an event of a kind of application, over all workers.
    #[must_use]
    pub fn count_of<A: dsr_app::Application>(&self, event: A::Event) -> u64 {
        self.tools.hosting.sum::<A>(event)
    }

    /// The peers of all workers by name, as of at most half a second ago.
    #[must_use]
    pub fn peers(&self) -> Vec<PeerRow> {
        let reports = self.reports.iter().map(ArcSwap::load);
        let mut rows: Vec<PeerRow> = reports.flat_map(|report| Vec::clone(&report)).collect();
        rows.sort_by(|a, b| (&a.host, &a.local_node).cmp(&(&b.host, &b.local_node)));
        rows
    }

    /// Traced messages of this router: those of transactions with `wanted` in one of their messages.
    #[must_use]
    pub fn traces(&self, wanted: &str) -> Vec<TraceRow> {
        let config = self.live.load().config.clone();
        let router = config.local_nodes.first().map_or("", |node| &node.host);
        self.traces.search(router, wanted)
    }

    /// The members of every route list, and their state.
    #[must_use]
    pub fn route_lists(&self) -> Vec<RouteRow> {
        let mut rows = Vec::new();
        for list in self.snapshot().lists() {
            let active = list.active();
            for (index, group) in list.groups().iter().enumerate() {
                rows.extend(group.hops().map(|hop| RouteRow {
                    list: list.name.clone(),
                    group: group.name.clone(),
                    active: active == Some(index),
                    host: hop.host.to_string(),
                    state: hop.state().as_str(),
                    worker: hop.home(),
                }));
            }
        }
        rows
    }

    /// What all workers have measured, as of at most half a second ago.
    pub(crate) fn measures(&self) -> Published {
        let each: Vec<_> = self.measures.iter().map(ArcSwap::load_full).collect();
        Published::sum(each.iter().map(|one| &**one))
    }

    /// What rules, route lists, throttle groups and trace points did, and transactions by their result.
    #[must_use]
    pub fn measurements(&self) -> Vec<MeasureRow> {
        let measures = self.measures();
        let named = measures
            .named
            .into_iter()
            .map(|((subject, name), count)| MeasureRow {
                kind: subject.as_str(),
                name: name.into(),
                meaning: String::new(),
                count,
            });
        let transactions = measures.transactions.into_iter().map(|(key, count)| MeasureRow {
            kind: "transaction",
            name: format!(
                "application {} command {} vendor {} result {}",
                key.application, key.command, key.vendor, key.result
            ),
            meaning: meaning(&key),
            count,
        });
        named.chain(transactions).collect()
    }

    /// The tables of the applications inside the router.
    #[must_use]
    pub fn applications(&self) -> Vec<ApplicationRow> {
        let snapshot = self.snapshot();
        let rows = snapshot.applications().flat_map(|(name, application)| {
            let row = move |table: Table| ApplicationRow {
                name: name.to_owned(),
                kind: application.kind(),
                table: table.name,
                entries: table.entries,
                bytes: table.bytes,
            };
            application.tables().into_iter().map(row)
        });
        rows.collect()
    }

    /// What the applications inside the router have found wrong with messages, by the name of the application.
    #[must_use]
    pub fn findings(&self) -> Vec<(String, Finding)> {
        let snapshot = self.snapshot();
        let rows = snapshot.applications().flat_map(|(name, application)| {
            let found = application.findings().into_iter();
            found.map(move |row| (name.to_owned(), row))
        });
        rows.collect()
    }

    /// What the applications know of a subject: of equipment, an IMEI, or IMEI and IMSI with a hyphen between; of ranges, an
    /// identity and its value with a colon between.
    #[must_use]
    pub fn look_up(&self, subject: &str) -> Vec<Value> {
        let snapshot = self.snapshot();
        let known = snapshot.applications().filter_map(|(name, application)| {
            let mut found = application.look_up(subject)?;
            if let Some(found) = found.as_object_mut() {
                found.insert("application".to_owned(), name.into());
            }
            Some(found)
        });
        known.collect()
    }

    /// Sessions that Policy DRAs know, by `session` and its Session-Id or by `binding` and a key of the subscriber. It may wait
    /// for a database.
    #[must_use]
    pub fn pdra_sessions(&self, kind: &str, key: &str) -> Vec<Value> {
        self.sessions_of(Pdra::KIND, &format!("{kind}:{key}"))
    }

    /// The session of this Session-Id that online charging DRAs know. It may wait for a database.
    #[must_use]
    pub fn ocdra_sessions(&self, id: &str) -> Vec<Value> {
        self.sessions_of(Ocdra::KIND, &format!("session:{id}"))
    }

    /// Sessions that applications of a kind know of a subject.
    fn sessions_of(&self, kind: &str, subject: &str) -> Vec<Value> {
        let snapshot = self.snapshot();
        let mut rows = Vec::new();
        let all = snapshot.applications();
        for (name, application) in all.filter(|(_, application)| application.kind() == kind) {
            let mut found = application.look_up(subject).unwrap_or_default();
            let sessions = found
                .get_mut("sessions")
                .and_then(Value::as_array_mut)
                .map(std::mem::take);
            // Without sessions it says what is wrong.
            for mut row in sessions.unwrap_or_else(|| vec![found]) {
                row["application"] = name.into();
                rows.push(row);
            }
        }
        rows
    }

    /// Changes an entry of the application of this name. It may wait for the disk.
    ///
    /// # Errors
    /// What is wrong; then nothing is changed.
    pub fn change_entry(&self, application: &str, subject: &str, list: &str) -> Result<(), String> {
        let snapshot = self.snapshot();
        let mut all = snapshot.applications();
        let found = all.find(|(name, _)| *name == application);
        let changed = found.and_then(|(_, found)| found.change(subject, list));
        let none = || {
            Err(format!(
                "`{application}` is not an application whose entries can be changed"
            ))
        };
        changed.unwrap_or_else(none)
    }

    /// Throttle groups: their demand here, and the part of their rates.
    #[must_use]
    pub fn throttles(&self) -> Vec<ThrottleRow> {
        let config = self.live.load().config.clone();
        let row = |group: &crate::config::ThrottleGroup| {
            let (demand, share) = self.tools.demands.of_group(&group.name);
            ThrottleRow {
                name: group.name.clone(),
                rate: group.rate,
                demand,
                share,
            }
        };
        config.throttle_groups.iter().map(row).collect()
    }

    /// Indicators as of at most a second ago.
    #[must_use]
    pub fn indicators(&self) -> Vec<IndicatorRow> {
        self.indicators.lock().clone()
    }

    /// Every hop by the name of its peer in lower case.
    #[must_use]
    pub fn hops(&self) -> Arc<ByHost> {
        self.live.load().registry.by_host()
    }

    /// The configuration in effect, as workers read it.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.live.load().snapshot.clone()
    }

    /// What each worker reports of its load.
    pub(crate) fn gauges(&self) -> &[Gauges] {
        &self.tools.gauges
    }

    /// The congestion level of a message processor; 0 for none.
    #[must_use]
    pub fn congestion_level(&self, worker: usize) -> usize {
        self.gauges().get(worker).map_or(0, Gauges::level)
    }

    /// The open connections of a message processor.
    #[must_use]
    pub fn connections_of(&self, worker: usize) -> i64 {
        self.gauges().get(worker).map_or(0, Gauges::connections)
    }

    /// Sets the CPU load of a message processor in percent, instead of the measured one; none: the measured one. For
    /// drills and tests.
    pub fn drive_load(&self, worker: usize, load: Option<f64>) {
        if let Some(gauges) = self.gauges().get(worker) {
            gauges.drive(load);
        }
    }
}

/// The names of a transaction where the dictionary has them: `S6a Update-Location: DIAMETER_SUCCESS (2001)`.
fn meaning(key: &Transaction) -> String {
    let dictionary = Dictionary::standard();
    let application = dictionary.application(key.application);
    let application = application.map_or_else(|| key.application.to_string(), |known| known.name.to_string());
    let command = dictionary.command(key.command, key.application);
    let command = command.map_or_else(|| key.command.to_string(), |known| known.name.to_string());
    let result = match key.vendor {
        0 => ResultCode(key.result).to_string(),
        vendor => {
            let of = dictionary
                .vendor(vendor)
                .map_or_else(|| vendor.to_string(), str::to_owned);
            format!("{} of {of}", key.result)
        }
    };
    format!("{application} {command}: {result}")
}
