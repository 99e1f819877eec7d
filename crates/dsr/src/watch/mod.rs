//! The control thread: indicators become alarms, traces become files, changed files are reloaded.

pub(crate) mod alarms;
mod export;
mod indicators;
mod machine;
mod records;
mod resolution;
mod sample;
mod siblings;

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use function::Shutdown;
use telemetry::health::Component;
use telemetry::{AlarmKind, Alarms, Health, Severity};
use tokio::sync::mpsc;

use crate::config::LevelSeverity;
use crate::derived::follow_files;
use crate::events::Event;
use crate::incidents::Alarm;
use crate::registry::{Hop, HopState};
use crate::router::Gauges;
use crate::shared::Dsr;
use crate::snapshot::Snapshot;
use crate::trace::{QUEUE, Record, Writer};
use alarms::{BAD_ANSWERS, CONGESTED, CONNECTION, DISCARDED, PEER, REFUSED, STASIS, TRACE};
use export::Exporter;
use indicators::Indicate;
use sample::{Between, Sample, name};
use siblings::Siblings;

/// Interval at which indicators are computed and files checked.
const INTERVAL: Duration = Duration::from_secs(1);

/// What the control thread does.
pub(crate) struct Control {
    dsr: Arc<Dsr>,
    alarms: Alarms,
    room: Component,
    traces: Writer,
    /// Trace points with an alarm.
    untraced: Vec<String>,
    /// Alarms for what peers did wrong lately, and their subjects.
    incidents: Vec<(&'static AlarmKind, String)>,
    /// Samples of the last interval, the oldest first.
    samples: VecDeque<Sample>,
    exporter: Exporter,
    /// Subjects of the alarms for peers.
    peers: Vec<String>,
    siblings: Siblings,
    /// Loads a changed file.
    loading: Option<JoinHandle<()>>,
}

impl Control {
    pub(crate) fn new(dsr: Arc<Dsr>, alarms: Alarms, health: &Health) -> Self {
        let room = health.component("message processors");
        room.ready();
        Self {
            dsr,
            alarms,
            room,
            traces: Writer::default(),
            untraced: Vec::new(),
            incidents: Vec::new(),
            samples: VecDeque::new(),
            exporter: Exporter::default(),
            peers: Vec::new(),
            siblings: Siblings::default(),
            loading: None,
        }
    }

    /// Runs until the workers have ended.
    pub(crate) async fn run(mut self, mut records: mpsc::Receiver<Record>, drained: Shutdown) {
        let mut batch = Vec::new();
        // What is counted from now on is within the first interval.
        self.samples.push_back(Sample::of(&self.dsr, Instant::now()));
        // Connections to peers take a moment: a start is not an outage.
        let mut next = tokio::time::Instant::now() + INTERVAL;
        loop {
            tokio::select! {
                _ = records.recv_many(&mut batch, QUEUE) => self.trace(&mut batch),
                () = tokio::time::sleep_until(next) => {
                    next = tokio::time::Instant::now() + INTERVAL;
                    self.check(Instant::now());
                    self.siblings.follow(&self.dsr).await;
                }
                () = drained.fired() => break,
            }
        }
        while let Ok(record) = records.try_recv() {
            batch.push(record);
        }
        self.trace(&mut batch);
    }

    /// Writes the records of a batch.
    fn trace(&mut self, batch: &mut Vec<Record>) {
        let config = self.dsr.live.load().config.clone();
        for record in batch.drain(..) {
            self.traces.take(&config.trace, &self.dsr.traces, record);
        }
        self.traces.flush(&config.trace);
        let unwritten = self.traces.take_unwritten();
        self.dsr.counts.control().add(Event::TraceUnwritten, unwritten);
    }

    /// Alarms for trace points whose files cannot be written.
    fn check_traces(&mut self) {
        let mut stopped = Vec::new();
        for (point, reason) in self.traces.stopped() {
            self.alarms.set(&TRACE, point, Some(reason.to_owned()));
            stopped.push(point.to_owned());
        }
        for ended in self.untraced.iter().filter(|known| !stopped.contains(known)) {
            self.alarms.clear(&TRACE, ended);
        }
        self.untraced = stopped;
    }

    /// Alarms for what peers did wrong lately.
    fn check_incidents(&mut self, now: Instant) {
        let mut shown = Vec::new();
        for (alarm, kind) in [(Alarm::Refused, &REFUSED), (Alarm::BadAnswer, &BAD_ANSWERS)] {
            for (subject, text) in self.dsr.tools.incidents.recent(alarm, now) {
                self.alarms.set(kind, &subject, Some(text));
                shown.push((kind, subject));
            }
        }
        for ended in self.incidents.iter().filter(|known| !shown.contains(known)) {
            self.alarms.clear(ended.0, &ended.1);
        }
        self.incidents = shown;
    }

    fn check(&mut self, now: Instant) {
        self.indicate(now);
        self.exporter.follow(&self.dsr, SystemTime::now());
        // A front end sends new connections elsewhere then, and leaves those that are open.
        match self.dsr.gauges().iter().all(Gauges::in_stasis) {
            true => self
                .room
                .not_ready("every message processor is congested and takes no new connections"),
            false => self.room.ready(),
        }
        self.trace(&mut Vec::new());
        self.check_traces();
        self.check_incidents(now);
        follow_files(&self.dsr.live, &self.alarms, now, &mut self.loading);
    }

    fn indicate(&mut self, now: Instant) {
        let snapshot = self.dsr.snapshot();
        let interval = snapshot.config.indicators.interval.duration();
        self.samples.push_back(Sample::of(&self.dsr, now));
        while self.samples.len() > 2
            && self
                .samples
                .get(1)
                .and_then(|second| second.at)
                .is_some_and(|at| now.saturating_duration_since(at) > interval)
        {
            self.samples.pop_front();
        }
        let has_mate = self.check_peers(&snapshot);
        let (Some(old), Some(new)) = (self.samples.front(), self.samples.back()) else {
            return;
        };
        let (Some(then), Some(now)) = (old.at, new.at) else {
            return;
        };
        let seconds = now.saturating_duration_since(then).as_secs_f64();
        let before = self.samples.len().checked_sub(2);
        if let Some(last) = before.and_then(|before| self.samples.get(before)) {
            discards(&self.dsr, &snapshot, &self.alarms, last, new);
            resolution::congestion(&self.alarms, last, new);
            resolution::processors(&self.alarms, last, new);
        }
        if seconds > 0.0 {
            let indicate = Indicate {
                snapshot: &snapshot,
                alarms: &self.alarms,
                has_mate,
                between: Between { old, new, seconds },
                samples: &self.samples,
                rows: Vec::new(),
            };
            *self.dsr.indicators.lock() = indicate.run();
        }
    }

    /// Alarms for configured peers without a connection. Returns whether a mate has one.
    fn check_peers(&mut self, snapshot: &Snapshot) -> bool {
        let (hops, alarms) = (self.dsr.hops(), &self.alarms);
        let (mut seen, mut has_mate) = (Vec::new(), false);
        for peer in snapshot.config.peers.iter().filter(|peer| peer.via.is_empty()) {
            let host = peer.host.to_ascii_lowercase();
            let mine = hops.get(host.as_bytes());
            let mut any = false;
            let mut why = "no connection is available".to_owned();
            for hop in mine.into_iter().flatten() {
                let local = snapshot.config.local_nodes.get(usize::from(hop.node));
                let instance = format!("{} at {}", peer.host, local.map_or("", |node| &node.name));
                let up = hop.state() == HopState::Available;
                any |= up;
                let down = (!up).then(|| reason(hop));
                if let Some(down) = down.as_ref().filter(|down| **down != hop.state().as_str()) {
                    why = format!("no connection is available: {down}");
                }
                alarms.set(&CONNECTION, &instance, down);
                seen.push(instance);
            }
            has_mate |= any && peer.mate;
            alarms.set(&PEER, &peer.host, (!any).then_some(why));
            seen.push(peer.host.clone());
        }
        for gone in self.peers.iter().filter(|known| !seen.contains(known)) {
            alarms.clear(&CONNECTION, gone);
            alarms.clear(&PEER, gone);
        }
        self.peers = seen;
        has_mate
    }
}

/// Why a peer cannot be used.
fn reason(hop: &Hop) -> String {
    match hop.trouble() {
        Some(trouble) => trouble.text,
        None => hop.state().as_str().to_owned(),
    }
}

/// Alarms for congestion levels and discards: of the last second, not averaged.
fn discards(dsr: &Dsr, snapshot: &Snapshot, alarms: &Alarms, last: &Sample, new: &Sample) {
    let levels = &snapshot.config.overload.levels;
    for (worker, gauges) in dsr.gauges().iter().enumerate() {
        let instance = name(worker);
        let level = gauges.level();
        match level.checked_sub(1).and_then(|at| levels.get(at)) {
            Some(named) => {
                let severity = match (named.severity, level) {
                    (Some(LevelSeverity::Minor), _) | (None, 1) => Severity::Minor,
                    (Some(LevelSeverity::Major), _) | (None, 2) => Severity::Major,
                    (Some(LevelSeverity::Critical) | None, _) => Severity::Critical,
                };
                let detail = format!("{}: dsr.Cpu {:.0} %", named.name, gauges.cpu());
                alarms.raise_as(&CONGESTED, severity, &instance, detail);
            }
            None => alarms.clear(&CONGESTED, &instance),
        }
        let stasis = gauges.in_stasis().then(|| format!("level {level}"));
        alarms.set(&STASIS, &instance, stasis);
        let at = |sample: &Sample| sample.discarded.get(worker).copied().unwrap_or_default();
        let gone = at(new).saturating_sub(at(last));
        alarms.set(
            &DISCARDED,
            &instance,
            (gone > 0).then(|| format!("{gone} in the last second")),
        );
    }
}
