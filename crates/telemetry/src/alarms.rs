//! Alarms: conditions that an operator must know of, from the moment they begin until they end. Each has a number, a
//! severity, advice, and a section in [`PAGE`].

mod unlisted;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock, Weak};
use std::time::SystemTime;

use parking_lot::Mutex;
use serde::Serialize;

use self::unlisted::Unlisted;
use crate::journal::{Journal, Kind};
use crate::metrics::{Counter, Family, Gauge, Registry};
use crate::severity::Severity;

crate::declare! {
    /// What is counted of alarms.
    pub METRICS;
    gauge ACTIVE = "signalbox_alarm_active" ["severity"]: "Alarms that are active now.";
    gauge BY_NUMBER = "signalbox_alarm_details" ["number", "name", "severity", "about"]: "Active alarms, 1 each, with number, name, severity and subject: at most 100, the worst first.";
    counter RAISED = "signalbox_alarm_raised_total" ["number", "name"]: "Times that an alarm was raised.";
}

/// Where changes of alarms go.
pub(crate) trait Outlet: std::fmt::Debug + Send + Sync {
    /// Takes the beginning or the end of an alarm; never waits.
    fn put(&self, alarm: &Alarm, is_active: bool);
}

/// An alarm that a function can raise. Declared once, as a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlarmKind {
    /// Stable number, by which operators' rules know it.
    pub number: u32,
    /// Stable name: `PeerUnavailable`.
    pub name: &'static str,
    /// Severity, unless raised with another.
    pub severity: Severity,
    /// What it means, in a sentence.
    pub text: &'static str,
    /// What to do, in a sentence that begins with a verb.
    pub advice: &'static str,
}

/// The page that describes each alarm, under the anchor `alarm-<number>`.
pub const PAGE: &str = "docs/operations.md";

/// The share of its limit at which an alarm of [`Alarms::above`] is cleared: 57 for a limit of 60.
const CLEAR_SHARE: f64 = 0.95;

/// An alarm that is active, or was.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Alarm {
    /// Number of its kind.
    pub number: u32,
    /// Name of its kind.
    pub name: &'static str,
    /// What it is about: a peer, a connection, a file.
    pub instance: String,
    /// How bad it is.
    pub severity: Severity,
    /// What is the case in particular.
    pub detail: String,
    /// What its kind means.
    pub text: &'static str,
    /// What to do.
    pub advice: &'static str,
    /// Where its kind is described.
    pub page: String,
    /// When it was raised, RFC 3339.
    pub raised: String,
    /// When it was cleared, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleared: Option<String>,
}

/// The alarms of a function; cheap to clone.
#[derive(Clone, Debug)]
pub struct Alarms {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    active: Vec<Gauge>,
    raised: Family<Counter>,
    journal: Journal,
    /// Where an operator's server gets them from.
    outlet: OnceLock<Box<dyn Outlet>>,
}

/// The alarms of a function, while it has them.
#[derive(Debug)]
pub(crate) struct WeakAlarms(Weak<Inner>);

impl WeakAlarms {
    pub(crate) fn upgrade(&self) -> Option<Alarms> {
        self.0.upgrade().map(|inner| Alarms { inner })
    }
}

#[derive(Debug, Default)]
struct State {
    active: BTreeMap<(u32, String), Alarm>,
    /// Further ones, by their kind.
    unlisted: BTreeMap<u32, Unlisted>,
    /// How many of them there are of each severity, in the order of [`Severity::ALL`].
    counts: [usize; Severity::ALL.len()],
    cleared: VecDeque<Alarm>,
}

/// Alarms that have a metric of their own; a collector keeps a series for each that ever was.
const MOST_SHOWN: usize = 100;
/// Characters of what an alarm is about, as a label: strangers may name it.
const MOST_ABOUT: usize = 100;
/// Active alarms that are listed one by one: more say nothing more, and peers may name instances. Beyond it one alarm stands for the
/// others of its kind.
const MOST_ACTIVE: usize = 4096;
/// Those of a kind that are listed all the same: one condition with thousands of instances hides no alarm of another kind.
const SHARE: usize = 256;
/// Cleared alarms that are remembered.
const REMEMBERED: usize = 256;

impl Alarms {
    /// No alarms; what happens is counted in `registry`.
    #[must_use]
    pub fn new(registry: &Registry) -> Self {
        let gauges = registry.gauges(&ACTIVE);
        let this = Self {
            inner: Arc::new(Inner {
                state: Mutex::default(),
                active: Severity::ALL
                    .iter()
                    .map(|severity| gauges.get(&[severity.as_str()]))
                    .collect(),
                raised: registry.counters(&RAISED),
                journal: Journal::new(),
                outlet: OnceLock::new(),
            }),
        };
        let seen = Arc::downgrade(&this.inner);
        registry.observe_all(&BY_NUMBER, move || match seen.upgrade() {
            Some(inner) => Self { inner }.shown(),
            None => Vec::new(),
        });
        this
    }

    /// What has changed in the function; alarms that are raised and cleared are entries of it.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.inner.journal
    }

    pub(crate) fn downgrade(&self) -> WeakAlarms {
        WeakAlarms(Arc::downgrade(&self.inner))
    }

    /// Puts what changes from now on here as well; the first one counts.
    pub(crate) fn send_to(&self, outlet: Box<dyn Outlet>) {
        let _ = self.inner.outlet.set(outlet);
    }

    fn put_out(&self, alarm: &Alarm, is_active: bool) {
        if let Some(outlet) = self.inner.outlet.get() {
            outlet.put(alarm, is_active);
        }
    }

    /// The values of [`BY_NUMBER`].
    fn shown(&self) -> Vec<(Vec<String>, f64)> {
        let active = self.active().into_iter().take(MOST_SHOWN);
        let labels = active.map(|alarm| {
            let about: String = alarm.instance.chars().take(MOST_ABOUT).collect();
            vec![
                alarm.number.to_string(),
                alarm.name.to_owned(),
                alarm.severity.as_str().to_owned(),
                about,
            ]
        });
        // Two long names may be one when they are cut.
        let labels: std::collections::BTreeSet<Vec<String>> = labels.collect();
        labels.into_iter().map(|labels| (labels, 1.0)).collect()
    }

    /// Raises an alarm about `instance`. While it is active already, only its detail is brought up to date.
    pub fn raise(&self, kind: &AlarmKind, instance: &str, detail: impl Into<String>) {
        self.raise_as(kind, kind.severity, instance, detail);
    }

    /// Raises an alarm with another severity than its usual one; one that is active changes to it.
    pub fn raise_as(&self, kind: &AlarmKind, severity: Severity, instance: &str, detail: impl Into<String>) {
        let detail = detail.into();
        let mut state = self.inner.state.lock();
        let key = (kind.number, instance.to_owned());
        if let Some(known) = state.active.get_mut(&key) {
            known.detail = detail;
            if known.severity == severity {
                return;
            }
            let before = std::mem::replace(&mut known.severity, severity);
            self.count(&mut state, before, usize::saturating_sub);
        } else if state.lists_another(kind.number) {
            match self.remove_unlisted(&mut state, &key) {
                Some(before) => self.count(&mut state, before, usize::saturating_sub),
                None => self.count_raised(kind),
            }
            let alarm = Alarm::new(kind, severity, instance, detail);
            state.active.insert(key.clone(), alarm);
        } else {
            self.raise_unlisted(&mut state, kind, severity, instance);
            return;
        }
        self.count(&mut state, severity, usize::saturating_add);
        let alarm = state.active.get(&key);
        // Under the lock, so that the order is that of the changes.
        if let Some(alarm) = alarm {
            self.put_out(alarm, true);
        }
        let detail = alarm.map(|alarm| alarm.detail.as_str()).unwrap_or_default();
        let (number, name) = (kind.number, kind.name);
        let words = format!("{severity}: {detail}");
        self.inner
            .journal
            .record(Kind::AlarmRaised, &subject(kind, instance), &words);
        match severity {
            Severity::Info => tracing::info!(number, name, instance, %severity, detail, "alarm raised"),
            Severity::Minor => tracing::warn!(number, name, instance, %severity, detail, "alarm raised"),
            Severity::Major | Severity::Critical => {
                tracing::error!(number, name, instance, %severity, detail, "alarm raised");
            }
        }
    }

    /// Clears an alarm; one that is not active stays so.
    pub fn clear(&self, kind: &AlarmKind, instance: &str) {
        let mut state = self.inner.state.lock();
        let key = (kind.number, instance.to_owned());
        let Some(mut alarm) = state.active.remove(&key) else {
            if let Some(severity) = self.remove_unlisted(&mut state, &key) {
                self.count(&mut state, severity, usize::saturating_sub);
            }
            return;
        };
        self.count(&mut state, alarm.severity, usize::saturating_sub);
        let (number, name) = (kind.number, kind.name);
        tracing::info!(number, name, instance, severity = %alarm.severity, "alarm cleared");
        self.inner
            .journal
            .record(Kind::AlarmCleared, &subject(kind, instance), &alarm.detail);
        alarm.cleared = Some(now());
        self.put_out(&alarm, false);
        if state.cleared.len() >= REMEMBERED {
            state.cleared.pop_front();
        }
        state.cleared.push_back(alarm);
    }

    /// Raises or clears, as `wrong` says.
    pub fn set(&self, kind: &AlarmKind, instance: &str, wrong: Option<String>) {
        match wrong {
            Some(detail) => self.raise(kind, instance, detail),
            None => self.clear(kind, instance),
        }
    }

    /// Raises while `value` is above `limit`, and clears below 95 % of it, so that a value at the limit does not raise and
    /// clear the alarm over and over. A limit of 0 switches the alarm off.
    pub fn above(&self, kind: &AlarmKind, instance: &str, value: f64, limit: f64, unit: &str) {
        let is_active = || {
            let key = (kind.number, instance.to_owned());
            self.inner.state.lock().active.contains_key(&key)
        };
        let clear = limit * CLEAR_SHARE;
        if limit <= 0.0 || value < clear {
            self.clear(kind, instance);
        } else if value > limit || is_active() {
            let detail = format!("{value:.0} {unit}; raised above {limit:.0}, cleared below {clear:.0}");
            self.raise(kind, instance, detail);
        }
    }

    /// The active alarms, the worst first. Beyond 4,096, and 256 of its kind, one about `others` stands for the further ones of a kind.
    #[must_use]
    pub fn active(&self) -> Vec<Alarm> {
        let state = self.inner.state.lock();
        let others = state.unlisted.values().map(Unlisted::alarm);
        let mut all: Vec<Alarm> = state.active.values().cloned().chain(others).collect();
        drop(state);
        all.sort_by_key(|alarm| std::cmp::Reverse(alarm.severity));
        all
    }

    /// The alarms that were cleared last, the latest first.
    #[must_use]
    pub fn cleared(&self) -> Vec<Alarm> {
        self.inner.state.lock().cleared.iter().rev().cloned().collect()
    }

    fn raise_unlisted(&self, state: &mut State, kind: &AlarmKind, severity: Severity, instance: &str) {
        let unlisted = state.unlisted.entry(kind.number);
        let unlisted = unlisted.or_insert_with(|| Unlisted::new(kind));
        if unlisted.is_full() {
            return;
        }
        let is_first = unlisted.is_empty();
        let before = unlisted.add(instance, severity);
        let others = is_first.then(|| unlisted.alarm());
        match before {
            Some(before) => self.count(state, before, usize::saturating_sub),
            None => self.count_raised(kind),
        }
        self.count(state, severity, usize::saturating_add);
        if let Some(others) = others {
            self.put_out(&others, true);
        }
    }

    /// Removes one that is not listed; its severity.
    fn remove_unlisted(&self, state: &mut State, (number, instance): &(u32, String)) -> Option<Severity> {
        let unlisted = state.unlisted.get_mut(number)?;
        let severity = unlisted.remove(instance);
        if unlisted.is_empty()
            && let Some(last) = state.unlisted.remove(number)
        {
            let cleared = Some(now());
            let alarm = Alarm {
                cleared,
                ..last.alarm()
            };
            self.put_out(&alarm, false);
        }
        severity
    }

    fn count_raised(&self, kind: &AlarmKind) {
        let number = kind.number.to_string();
        self.inner.raised.get(&[&number, kind.name]).inc();
    }

    /// Counts one more or less of a severity. Thousands may change at a time, so that none looks at the others.
    fn count(&self, state: &mut State, severity: Severity, change: fn(usize, usize) -> usize) {
        let places = state.counts.iter_mut().zip(&self.inner.active);
        for (known, (count, gauge)) in Severity::ALL.into_iter().zip(places) {
            if known == severity {
                *count = change(*count, 1);
                gauge.set(*count as f64);
            }
        }
    }
}

impl Alarm {
    fn new(kind: &AlarmKind, severity: Severity, instance: &str, detail: String) -> Self {
        Self {
            number: kind.number,
            name: kind.name,
            instance: instance.to_owned(),
            severity,
            detail,
            text: kind.text,
            advice: kind.advice,
            page: format!("{PAGE}#alarm-{}", kind.number),
            raised: now(),
            cleared: None,
        }
    }
}

impl State {
    /// Whether one more of a kind is listed.
    fn lists_another(&self, number: u32) -> bool {
        let of_kind = (number, String::new())..(number.saturating_add(1), String::new());
        self.active.len() < MOST_ACTIVE || self.active.range(of_kind).take(SHARE).count() < SHARE
    }
}

/// What an entry of the journal is about: `10530 NRF Unreachable, set 0`.
fn subject(kind: &AlarmKind, instance: &str) -> String {
    format!("{} {}, {instance}", kind.number, kind.name)
}

fn now() -> String {
    rfc3339(SystemTime::now())
}

/// A time for people, in UTC by RFC 3339.
#[must_use]
pub fn rfc3339(at: SystemTime) -> String {
    time::OffsetDateTime::from(at)
        .format(&time::format_description::well_known::Rfc3339)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOST: AlarmKind = AlarmKind {
        number: 22051,
        name: "PeerUnavailable",
        severity: Severity::Critical,
        text: "No connection to the peer is open.",
        advice: "Check the peer.",
    };

    #[test]
    fn a_value_near_its_limit_does_not_flap() {
        let registry = Registry::new();
        let alarms = Alarms::new(&registry);
        for (value, active) in [
            (60.0, false),
            (61.0, true),
            (60.0, true),
            (57.5, true),
            (56.0, false),
            (58.0, false),
        ] {
            alarms.above(&LOST, "machine", value, 60.0, "percent");
            assert_eq!(alarms.active().len(), usize::from(active), "{value}");
        }
        alarms.above(&LOST, "machine", 99.0, 60.0, "percent");
        let alarm = alarms.active().remove(0);
        assert_eq!(alarm.detail, "99 percent; raised above 60, cleared below 57");
        assert_eq!(
            (alarm.advice, alarm.page.as_str()),
            ("Check the peer.", "docs/operations.md#alarm-22051")
        );
        alarms.above(&LOST, "machine", 99.0, 0.0, "percent");
        assert!(alarms.active().is_empty());
    }

    #[test]
    fn an_alarm_is_raised_once_and_cleared_once() {
        let registry = Registry::new();
        let alarms = Alarms::new(&registry);
        alarms.raise(&LOST, "peer-a", "timeout");
        alarms.raise(&LOST, "peer-a", "refused");
        alarms.raise_as(&LOST, Severity::Minor, "peer-b", "reset");
        let active = alarms.active();
        assert_eq!(active.len(), 2);
        assert_eq!(
            (active[0].instance.as_str(), active[0].detail.as_str()),
            ("peer-a", "refused")
        );
        let page = registry.render();
        assert!(
            page.contains("signalbox_alarm_active{severity=\"critical\"} 1"),
            "{page}"
        );
        assert!(
            page.contains("signalbox_alarm_raised_total{number=\"22051\",name=\"PeerUnavailable\"} 2"),
            "{page}"
        );
        alarms.clear(&LOST, "peer-a");
        alarms.clear(&LOST, "peer-a");
        alarms.set(&LOST, "peer-b", None);
        assert!(alarms.active().is_empty());
        assert_eq!(alarms.cleared().len(), 2);
        let journal = alarms.journal().after(0);
        let words = |one: &crate::journal::Entry| format!("{}: {}", one.kind.in_words(), one.about);
        assert_eq!(
            journal.iter().map(words).collect::<Vec<_>>(),
            [
                "alarm raised: 22051 PeerUnavailable, peer-a",
                "alarm raised: 22051 PeerUnavailable, peer-b",
                "alarm cleared: 22051 PeerUnavailable, peer-a",
                "alarm cleared: 22051 PeerUnavailable, peer-b",
            ]
        );
        assert!(alarms.cleared()[0].cleared.is_some());
    }

    #[test]
    fn alarms_are_counted_by_severity() {
        let registry = Registry::new();
        let alarms = Alarms::new(&registry);
        let active = |severity: &str, count: usize| {
            let line = format!("signalbox_alarm_active{{severity=\"{severity}\"}} {count}.0\n");
            let page = registry.render();
            assert!(page.contains(&line), "not {line}: {page}");
        };
        alarms.raise(&LOST, "peer-a", "");
        alarms.raise(&LOST, "peer-a", "again");
        alarms.raise_as(&LOST, Severity::Minor, "peer-b", "");
        active("critical", 1);
        active("minor", 1);
        alarms.raise(&LOST, "peer-b", "");
        active("critical", 2);
        active("minor", 0);
        alarms.raise_as(&LOST, Severity::Minor, "peer-b", "");
        alarms.clear(&LOST, "peer-a");
        alarms.clear(&LOST, "peer-a");
        active("critical", 0);
        active("minor", 1);
        alarms.clear(&LOST, "peer-b");
        active("minor", 0);
    }

    #[test]
    fn many_of_a_kind_hide_none_of_another() {
        const FULL: AlarmKind = AlarmKind {
            number: 22052,
            name: "DiskFull",
            ..LOST
        };
        let (registry, beyond) = (Registry::new(), 10);
        let alarms = Alarms::new(&registry);
        let others = |alarms: &Alarms| {
            let all = alarms.active();
            let found = all.into_iter().find(|alarm| alarm.instance == "others");
            found.map(|alarm| alarm.detail)
        };
        for peer in 0..MOST_ACTIVE + beyond {
            alarms.raise(&LOST, &peer.to_string(), "");
            // A second time is none more.
            alarms.raise(&LOST, &peer.to_string(), "");
        }
        assert_eq!(alarms.active().len(), MOST_ACTIVE + 1);
        assert!(others(&alarms).unwrap().starts_with("10 more are active"));
        alarms.raise(&FULL, "disk", "");
        assert!(alarms.active().iter().any(|alarm| alarm.name == "DiskFull"));
        let page = registry.render();
        for line in [
            format!(
                "signalbox_alarm_active{{severity=\"critical\"}} {}.0\n",
                MOST_ACTIVE + beyond + 1
            ),
            format!(
                "signalbox_alarm_raised_total{{number=\"22051\",name=\"PeerUnavailable\"}} {}\n",
                MOST_ACTIVE + beyond
            ),
        ] {
            assert!(page.contains(&line), "not {line}");
        }
        // One that ends makes room for another one, which is listed when it is raised again.
        alarms.clear(&LOST, &MOST_ACTIVE.to_string());
        assert!(others(&alarms).unwrap().starts_with("9 more are active"));
        alarms.clear(&FULL, "disk");
        alarms.clear(&LOST, "0");
        let last = (MOST_ACTIVE + beyond - 1).to_string();
        alarms.raise(&LOST, &last, "");
        assert!(alarms.active().iter().any(|alarm| alarm.instance == last));
        assert!(others(&alarms).unwrap().starts_with("8 more are active"));
        for peer in 0..MOST_ACTIVE + beyond {
            alarms.clear(&LOST, &peer.to_string());
        }
        assert!(alarms.active().is_empty());
        assert_eq!(alarms.cleared().len(), REMEMBERED);
        let none = "signalbox_alarm_active{severity=\"critical\"} 0.0\n";
        assert!(registry.render().contains(none));
    }
}
