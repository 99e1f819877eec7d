//! The control thread: indicators become alarms, traces become files, changed files are read again.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Serialize;
use telemetry::health::Component;
use telemetry::{AlarmKind, Alarms, Histogram, Severity};
use worker::Shutdown;

use crate::config::{self, Plan};
use crate::events::Event;
use crate::router::Gauges;
use crate::service::Shared;
use crate::trace::{Record, Writer};

/// How often alarms are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How long records of traces are waited for.
const WAIT: Duration = Duration::from_millis(200);

macro_rules! alarms {
    ($($const:ident = $number:literal $name:literal $severity:ident: $text:literal;)*) => {
        $(const $const: AlarmKind = AlarmKind {
            number: $number,
            name: $name,
            severity: Severity::$severity,
            text: $text,
        };)*

        /// Every alarm a router can raise.
        pub const ALARMS: &[AlarmKind] = &[$($const),*];
    };
}

alarms! {
    STASIS = 5005 "IPFE Backend in Stasis" Minor: "A congested message processor takes no new connections and keeps those it has.";
    MESSAGE_SIZE = 10133 "RxMsgSizeAvg" Minor: "Messages are larger on average than the router was planned for.";
    MP_CPU = 10204 "MpCPUAvg" Minor: "A message processor is busier than its planning allows: consider another one.";
    CONNECTION_MPS = 10500 "RxConnAvgMPS" Minor: "A connection carries much of what it may: configure additional connections.";
    HOLD = 10502 "Transaction Hold Time" Minor: "Requests wait long for their answers: peers or links are slow.";
    TRAFFIC = 10501 "MP Message Rate" Minor: "A message processor handles much of what its profile is planned for.";
    PEER = 22051 "Peer Unavailable" Critical: "All connections to the peer are down.";
    CONNECTION = 22101 "Connection Unavailable" Major: "The connection cannot be used for requests and answers.";
    CONGESTED = 22200 "Communication Agent Routed Service Congested" Major: "The Diameter process is near or over its engineered capacity.";
    DISCARDED = 22215 "Ingress Message Discarded: DA MP Overload Control" Major: "Requests are discarded because of CPU congestion or the danger of it.";
    SYSTEM_CPU = 31052 "CPU_UtilPct_Average" Minor: "The machine's processors are busier than planned.";
    SYSTEM_RAM = 31056 "RAM_UtilPct_Average" Minor: "The machine's memory is fuller than planned.";
}

/// An indicator as it stands.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IndicatorRow {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub instance: String,
    /// Its value, averaged over `indicators.interval`.
    pub value: f64,
    /// Unit of the value.
    pub unit: &'static str,
    /// The profile that it is measured by, where one is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<&'static str>,
}

/// What was counted at a time.
#[derive(Clone, Debug, Default)]
struct Sample {
    at: Option<Instant>,
    messages: Vec<u64>,
    discarded: Vec<u64>,
    read: Vec<u64>,
    bytes: Vec<u64>,
    connections: Vec<(String, u64)>,
    cpu: Vec<f64>,
    system: Option<(u64, u64)>,
    /// Answered requests and their time in nanoseconds.
    hold: (u64, u64),
}

/// Runs until the router ends.
pub(crate) fn run(
    shared: &Weak<Shared>,
    alarms: &Alarms,
    room: &Component,
    records: &Receiver<Record>,
    hold: Histogram,
    shutdown: &Shutdown,
) {
    let mut writer = Writer::default();
    let mut watch = Watch {
        samples: VecDeque::new(),
        connections: Vec::new(),
        hold,
    };
    let mut next = Instant::now();
    loop {
        let record = records.recv_timeout(WAIT);
        let Some(shared) = shared.upgrade() else { return };
        let snapshot = shared.snapshot.borrow().clone();
        let trace = &snapshot.config.trace;
        match record {
            Ok(record) => {
                writer.write(trace, &record);
                for record in records.try_iter().take(crate::trace::QUEUE) {
                    writer.write(trace, &record);
                }
                writer.flush(trace);
            }
            Err(RecvTimeoutError::Timeout) => writer.flush(trace),
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if shutdown.has_fired() {
            return;
        }
        let now = Instant::now();
        if now >= next {
            next = now + LOOK;
            watch.look(&shared, alarms, now);
            // A front end sends new connections elsewhere then, and leaves those that stand.
            match shared.gauges.iter().all(Gauges::in_stasis) {
                true => room.not_ready("every message processor is congested and takes no new connections"),
                false => room.ready(),
            }
            shared.follow_files(now);
        }
    }
}

#[derive(Debug)]
struct Watch {
    /// Samples of the last interval, the oldest first.
    samples: VecDeque<Sample>,
    connections: Vec<String>,
    hold: Histogram,
}

/// Of two samples.
struct Between<'s> {
    old: &'s Sample,
    new: &'s Sample,
    seconds: f64,
}

impl Between<'_> {
    fn rate(&self, of: fn(&Sample) -> &Vec<u64>, worker: usize) -> f64 {
        let at = |sample: &Sample| of(sample).get(worker).copied().unwrap_or_default();
        at(self.new).saturating_sub(at(self.old)) as f64 / self.seconds
    }
}

impl Watch {
    fn look(&mut self, shared: &Shared, alarms: &Alarms, now: Instant) {
        let interval = shared.snapshot.borrow().config.indicators.interval.duration();
        let mut sample = sample(shared, now);
        sample.hold = (self.hold.count(), self.hold.sum());
        self.samples.push_back(sample);
        while self.samples.len() > 2
            && self
                .samples
                .get(1)
                .and_then(|second| second.at)
                .is_some_and(|at| now.saturating_duration_since(at) > interval)
        {
            self.samples.pop_front();
        }
        self.peers(shared, alarms);
        let (Some(old), Some(new)) = (self.samples.front(), self.samples.back()) else {
            return;
        };
        let (Some(then), Some(now)) = (old.at, new.at) else {
            return;
        };
        let seconds = now.saturating_duration_since(then).as_secs_f64();
        let last = self
            .samples
            .len()
            .checked_sub(2)
            .and_then(|before| self.samples.get(before));
        if let Some(last) = last {
            discards(shared, alarms, last, new);
        }
        if seconds > 0.0 {
            let rows = indicate(shared, alarms, &Between { old, new, seconds }, &self.samples);
            *shared.indicators.lock() = rows;
        }
    }

    /// Configured peers that are not there.
    fn peers(&mut self, shared: &Shared, alarms: &Alarms) {
        let snapshot = shared.snapshot.borrow().clone();
        let hops = shared.registry.by_host();
        let mut seen = Vec::new();
        for peer in snapshot.config.peers.iter().filter(|peer| peer.via.is_empty()) {
            let host = peer.host.to_ascii_lowercase();
            let mine = hops.get(host.as_bytes());
            let mut any = false;
            for hop in mine.into_iter().flatten() {
                let local = snapshot.config.local_nodes.get(usize::from(hop.node));
                let instance = format!("{} at {}", peer.host, local.map_or("", |node| &node.name));
                let up = hop.state() == crate::registry::HopState::Available;
                any |= up;
                alarms.set(
                    &CONNECTION,
                    &instance,
                    (!up).then(|| hop.state().as_str().to_owned()),
                );
                seen.push(instance);
            }
            alarms.set(
                &PEER,
                &peer.host,
                (!any).then(|| "no connection is available".to_owned()),
            );
            seen.push(peer.host.clone());
        }
        for gone in self.connections.iter().filter(|known| !seen.contains(known)) {
            alarms.clear(&CONNECTION, gone);
            alarms.clear(&PEER, gone);
        }
        self.connections = seen;
    }
}

fn name(worker: usize) -> String {
    format!("da-mp-{worker}")
}

fn sample(shared: &Shared, now: Instant) -> Sample {
    let each = |event: Event| {
        shared
            .counters
            .iter()
            .map(|counters| counters.get(event))
            .collect::<Vec<u64>>()
    };
    let read = shared
        .counters
        .iter()
        .map(|counters| counters.get(Event::Request) + counters.get(Event::Answer))
        .collect();
    let connections = crate::pages::peers(shared)
        .into_iter()
        .map(|row| (format!("{} at {}", row.host, row.local_node), row.messages_in))
        .collect();
    Sample {
        at: Some(now),
        messages: each(Event::Message),
        discarded: each(Event::OverloadDiscarded),
        read,
        bytes: each(Event::Bytes),
        connections,
        cpu: shared.gauges.iter().map(crate::router::Gauges::cpu).collect(),
        system: system_cpu(),
        hold: (0, 0),
    }
}

/// Levels and discards: as of now, not averaged.
fn discards(shared: &Shared, alarms: &Alarms, last: &Sample, new: &Sample) {
    let snapshot = shared.snapshot.borrow().clone();
    let levels = &snapshot.config.overload.levels;
    for (worker, gauges) in shared.gauges.iter().enumerate() {
        let instance = name(worker);
        let level = gauges.level();
        match level.checked_sub(1).and_then(|at| levels.get(at)) {
            Some(named) => {
                let severity = match level {
                    1 => Severity::Minor,
                    2 => Severity::Major,
                    _ => Severity::Critical,
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

/// How bad it is that a message processor handles so much, and what to say of it.
fn traffic(mps: f64, plan: Plan, settings: &config::Indicators) -> Option<(Severity, String)> {
    let shares = [
        (Severity::Critical, settings.traffic_critical),
        (Severity::Major, settings.traffic_major),
        (Severity::Minor, Some(settings.traffic_minor)),
    ];
    let (severity, share) = shares.into_iter().find_map(|(severity, share)| {
        let share = share?;
        (mps > f64::from(plan.mps) * share.fraction()).then_some((severity, share))
    })?;
    let profile = plan.profile.map(|name| format!(" ({name})")).unwrap_or_default();
    let limit = f64::from(plan.mps) * share.fraction();
    let (share, planned) = (share.percent(), plan.mps);
    let detail = format!(
        "{mps:.0} messages per second, above {limit:.0}: {share} % of the planned {planned}{profile}"
    );
    Some((severity, detail))
}

/// Averages over the interval, and the alarms that follow.
fn indicate(
    shared: &Shared,
    alarms: &Alarms,
    between: &Between<'_>,
    samples: &VecDeque<Sample>,
) -> Vec<IndicatorRow> {
    let snapshot = shared.snapshot.borrow().clone();
    let (settings, overload) = (&snapshot.config.indicators, &snapshot.config.overload);
    let plan = overload.plan();
    let mut rows = Vec::new();
    let mut row = |kind: &AlarmKind, instance: &str, value: f64, unit: &'static str| {
        rows.push(IndicatorRow {
            id: kind.number,
            name: kind.name,
            instance: instance.to_owned(),
            value,
            unit,
            profile: plan
                .and_then(|plan| plan.profile)
                .filter(|_| kind.number == TRAFFIC.number),
        });
    };
    let above = |value: f64, limit: f64, unit: &str| {
        (limit > 0.0 && value > limit).then(|| format!("{value:.0} {unit}, above {limit:.0}"))
    };
    let (mut bytes, mut read) = (0.0, 0.0);
    for worker in 0..shared.gauges.len() {
        let instance = name(worker);
        let cpu: f64 = samples.iter().filter_map(|sample| sample.cpu.get(worker)).sum();
        let cpu = cpu / samples.len().max(1) as f64;
        row(&MP_CPU, &instance, cpu, "percent");
        alarms.set(
            &MP_CPU,
            &instance,
            above(cpu, settings.mp_cpu.percent(), "percent"),
        );
        let mps = between.rate(|sample| &sample.messages, worker);
        row(&TRAFFIC, &instance, mps, "messages per second");
        match plan.and_then(|plan| traffic(mps, plan, settings)) {
            Some((severity, detail)) => alarms.raise_as(&TRAFFIC, severity, &instance, detail),
            None => alarms.clear(&TRAFFIC, &instance),
        }
        bytes += between.rate(|sample| &sample.bytes, worker);
        read += between.rate(|sample| &sample.read, worker);
    }
    let size = if read > 0.0 { bytes / read } else { 0.0 };
    row(&MESSAGE_SIZE, "dsr", size, "bytes");
    alarms.set(
        &MESSAGE_SIZE,
        "dsr",
        above(size, settings.message_size.bytes() as f64, "bytes"),
    );
    let answered = between.new.hold.0.saturating_sub(between.old.hold.0);
    let waited = between.new.hold.1.saturating_sub(between.old.hold.1) as f64 / 1e6;
    let hold = if answered > 0 {
        waited / answered as f64
    } else {
        0.0
    };
    row(&HOLD, "dsr", hold, "milliseconds");
    let longest = settings.hold_time.as_millis() as f64;
    alarms.set(&HOLD, "dsr", above(hold, longest, "milliseconds"));
    for (instance, count) in &between.new.connections {
        let before = between
            .old
            .connections
            .iter()
            .find(|(known, _)| known == instance);
        let mps = count.saturating_sub(before.map_or(0, |(_, count)| *count)) as f64 / between.seconds;
        row(&CONNECTION_MPS, instance, mps, "messages per second");
        let host = instance.split(' ').next().unwrap_or_default();
        let maximum = match snapshot.profile(host).ingress.maximum {
            0 => settings.connection_mps,
            maximum => maximum,
        };
        let share = mps / f64::from(maximum.max(1));
        let detail = format!("{mps:.0} messages per second of {maximum}");
        if share > settings.connection_major.fraction() {
            alarms.raise_as(&CONNECTION_MPS, Severity::Major, instance, detail);
        } else if share > settings.connection_minor.fraction() {
            alarms.raise_as(&CONNECTION_MPS, Severity::Minor, instance, detail);
        } else {
            alarms.clear(&CONNECTION_MPS, instance);
        }
    }
    for (instance, _) in &between.old.connections {
        if !between.new.connections.iter().any(|(known, _)| known == instance) {
            alarms.clear(&CONNECTION_MPS, instance);
        }
    }
    if let (Some((idle, all)), Some((idle_before, all_before))) = (between.new.system, between.old.system) {
        let (idle, all) = (
            idle.saturating_sub(idle_before) as f64,
            all.saturating_sub(all_before) as f64,
        );
        let busy = if all > 0.0 {
            100.0 * (1.0 - idle / all)
        } else {
            0.0
        };
        row(&SYSTEM_CPU, "machine", busy, "percent");
        alarms.set(
            &SYSTEM_CPU,
            "machine",
            above(busy, settings.system_cpu.percent(), "percent"),
        );
    }
    if let Some(used) = system_memory() {
        row(&SYSTEM_RAM, "machine", used, "percent");
        alarms.set(
            &SYSTEM_RAM,
            "machine",
            above(used, settings.system_memory.percent(), "percent"),
        );
    }
    rows
}

/// Idle and all ticks of the machine's processors.
fn system_cpu() -> Option<(u64, u64)> {
    parse_stat(&std::fs::read_to_string("/proc/stat").ok()?)
}

fn parse_stat(text: &str) -> Option<(u64, u64)> {
    let fields: Vec<u64> = text
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal; what guests use is counted in user.
    let idle = fields.get(3)? + fields.get(4)?;
    Some((idle, fields.iter().take(8).sum()))
}

/// Memory in use, in percent.
fn system_memory() -> Option<f64> {
    parse_meminfo(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse_meminfo(text: &str) -> Option<f64> {
    let of = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let (total, available) = (of("MemTotal:")?, of("MemAvailable:")?);
    (total > 0.0).then(|| 100.0 * (1.0 - available / total))
}

/// Rows that the control thread brings up to date.
pub(crate) type Indicators = Arc<Mutex<Vec<IndicatorRow>>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_is_read() {
        assert_eq!(parse_stat("cpu  10 0 5 80 5 0 0 0 7 0\ncpu0 1"), Some((85, 100)));
        assert_eq!(parse_stat("cpu"), None);
        assert_eq!(
            parse_meminfo("MemTotal: 200 kB\nMemFree: 1 kB\nMemAvailable: 50 kB\n"),
            Some(75.0)
        );
        assert_eq!(parse_meminfo(""), None);
    }

    #[test]
    fn traffic_is_judged_by_the_profile() {
        let plan = Plan {
            profile: Some("14K_MPS"),
            mps: 14_000,
        };
        let of_guide = config::Indicators::default();
        // The guide's own example: 60 % of 14k.
        assert!(traffic(8_400.0, plan, &of_guide).is_none());
        let (severity, detail) = traffic(8_401.0, plan, &of_guide).unwrap();
        assert_eq!(severity.as_str(), "minor");
        assert_eq!(
            detail,
            "8401 messages per second, above 8400: 60 % of the planned 14000 (14K_MPS)"
        );
        let stricter = config::Indicators {
            traffic_major: Some(settings::Percent::new(80.0)),
            traffic_critical: Some(settings::Percent::new(100.0)),
            ..of_guide
        };
        for (mps, expected) in [(11_000.0, "minor"), (11_300.0, "major"), (14_100.0, "critical")] {
            let (severity, _) = traffic(mps, plan, &stricter).unwrap();
            assert_eq!(severity.as_str(), expected, "{mps}");
        }
    }

    #[test]
    fn alarms_have_numbers_of_their_own() {
        let mut numbers: Vec<u32> = ALARMS.iter().map(|alarm| alarm.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), ALARMS.len());
    }
}
