//! What operators see of single subscribers and of policy events.
//!
//! * The activity of traced subscribers: every message, decision and write about them, in memory ([`Ring`]) and in files. A
//!   request has a [`trail`] while any subscriber is traced; the place that learns whose request it is decides whether the trail
//!   keeps anything. While none is traced, a request costs one branch.
//! * Records of policy events, of every subscriber ([`PolicyEvents`]).
//!
//! Both are written by a [`Journal`], which no request waits for.

mod entry;
mod policy_events;
mod ring;
pub(crate) mod trail;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ahash::AHashMap;
use arc_swap::ArcSwap;
use function::journal::{Journal, JournalCounts};
use function::telemetry::{AlarmKind, Alarms, Severity};
use parking_lot::Mutex;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::association::{Association, AssociationId};
use crate::config::{ActivityLog, Config};
use crate::subscribers::{Pattern, Traced};
pub(crate) use entry::{Entry, of_diameter, of_outbound, of_response};

pub(crate) use policy_events::PolicyEvents;
use ring::Ring;
use trail::Mark;

/// The files of a journal cannot be written. The number is ours.
pub(crate) const UNWRITTEN: AlarmKind = AlarmKind {
    number: 10561,
    name: "PCF Journal Not Written",
    severity: Severity::Minor,
    text: "The files of the activity log or of the policy events cannot be written; they stay as they are.",
    advice: "Make room in `activityLog.files.directory` or `policyEvents.files.directory`, or correct its permissions; new files are begun within a minute.",
};

/// Whom an entry is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) supi: Option<Box<str>>,
    pub(crate) gpsi: Option<Box<str>>,
    /// None where no session was found.
    pub(crate) association: Option<AssociationId>,
}

impl Subject {
    fn of(association: &Association) -> Self {
        let text = |name| association.text_of(name).map(Into::into);
        Self {
            supi: text("supi"),
            gpsi: text("gpsi"),
            association: Some(association.id),
        }
    }

    /// Whether a text is its SUPI, GPSI or association.
    fn is(&self, wanted: &str) -> bool {
        self.supi.as_deref() == Some(wanted)
            || self.gpsi.as_deref() == Some(wanted)
            || self.association.is_some_and(|id| id.to_string() == wanted)
    }
}

/// The texts that name the traced subscribers.
#[derive(Debug, Default)]
struct Named {
    settings: Vec<String>,
    /// Those that an operator has added.
    added: Vec<String>,
    most: usize,
}

/// The activity of traced subscribers.
#[derive(Debug)]
pub(crate) struct Activity {
    is_active: AtomicBool,
    traced: ArcSwap<Traced>,
    named: Mutex<Named>,
    ring: Ring,
    journal: Journal,
    max_entry_bytes: usize,
    /// The trails of the last notification of each subscription.
    notified: Mutex<AHashMap<Arc<str>, Mark>>,
}

/// Subscriptions whose trails are kept for the answers to their notifications.
const NOTIFIED: usize = 10_000;

impl Activity {
    /// By the settings, with those that an operator has added before.
    pub(crate) fn start(config: &Config, alarms: Alarms, added: Vec<String>) -> std::io::Result<Self> {
        let settings = &config.activity_log;
        let activity = Self {
            is_active: AtomicBool::new(false),
            traced: ArcSwap::default(),
            named: Mutex::new(Named {
                added,
                ..Named::default()
            }),
            ring: Ring::new(settings.entries, settings.bytes.as_usize()),
            journal: Journal::start(settings.files.of("activity"), alarms, &UNWRITTEN)?,
            max_entry_bytes: settings.max_entry_bytes.as_usize(),
            notified: Mutex::default(),
        };
        activity.reconfigure(settings);
        Ok(activity)
    }

    /// Traces those whom the settings name now, beside those that an operator has added.
    pub(crate) fn reconfigure(&self, settings: &ActivityLog) {
        let mut named = self.named.lock();
        if named.most != settings.max_subscribers || named.settings != settings.subscribers {
            named.most = settings.max_subscribers;
            named.settings.clone_from(&settings.subscribers);
            self.compile(&named);
        }
    }

    /// Traces those whom an operator has added.
    pub(crate) fn set_added(&self, added: Vec<String>) {
        let mut named = self.named.lock();
        named.added = added;
        self.compile(&named);
    }

    fn compile(&self, named: &Named) {
        let texts = named.settings.iter().chain(&named.added);
        let traced = Traced::new(texts.map(String::as_str), named.most);
        self.is_active.store(!traced.is_empty(), Ordering::Relaxed);
        self.traced.store(Arc::new(traced));
    }

    /// Why an operator may not add this text to those that were added before.
    pub(crate) fn refuses(&self, text: &str) -> Option<String> {
        let named = self.named.lock();
        if Pattern::parse(text).is_none() {
            return Some(format!("{text} is not a subscriber: {}", Pattern::EXPECTED));
        }
        let count = named.settings.len() + named.added.len();
        (count >= named.most).then(|| {
            format!(
                "{count} are traced, which is all that `activityLog.maxSubscribers` allows; remove one first"
            )
        })
    }

    /// Whether the settings name this text, so that only they can take it away.
    pub(crate) fn is_configured(&self, text: &str) -> bool {
        self.named.lock().settings.iter().any(|own| own == text)
    }

    /// Whether an operator has added this text.
    pub(crate) fn is_added(&self, text: &str) -> bool {
        self.named.lock().added.iter().any(|own| own == text)
    }

    /// Whether a subscriber has a place by a beginning or a range alone.
    pub(crate) fn is_admitted(&self, text: &str) -> bool {
        !self.is_configured(text) && !self.is_added(text)
    }

    /// Lines for a page: each text, who has named it, and the subscribers of beginnings and ranges that have a place.
    pub(crate) fn list(&self) -> Vec<Value> {
        let named = self.named.lock();
        let of = |texts: &[String], by: &str| {
            let lines = texts.iter().map(|text| json!({"subscriber": text, "by": by}));
            lines.collect::<Vec<Value>>()
        };
        let mut lines = of(&named.settings, "settings");
        lines.extend(of(&named.added, "operator"));
        lines.extend(of(&self.traced.load().admitted(), "beginning or range"));
        lines
    }

    /// Whether any subscriber is traced.
    pub(crate) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Whether a subscriber is traced.
    pub(crate) fn traces(&self, supi: Option<&str>, gpsi: Option<&str>) -> bool {
        let traced = self.traced.load();
        supi.into_iter().chain(gpsi).any(|identity| traced.has(identity))
    }

    /// The subject of an association whose subscriber is traced.
    fn subject(&self, association: &Association) -> Option<Arc<Subject>> {
        if !self.is_active() {
            return None;
        }
        let text = |name| association.text_of(name);
        self.traces(text("supi"), text("gpsi"))
            .then(|| Arc::new(Subject::of(association)))
    }

    /// Keeps an entry. `request` identifies what belongs to one request.
    fn record(&self, subject: &Arc<Subject>, request: u64, entry: Entry) {
        let text = |value: &Option<Box<str>>| value.as_deref().map(str::to_owned);
        let mut line = json!({"time": moment(entry.at)});
        for (name, value) in [
            ("supi", text(&subject.supi)),
            ("gpsi", text(&subject.gpsi)),
            ("association", subject.association.map(|id| id.to_string())),
            ("request", Some(format!("{request:016x}"))),
        ] {
            if let Some(value) = value {
                line[name] = value.into();
            }
        }
        let line: Arc<str> = entry.complete(line, self.max_entry_bytes).to_string().into();
        self.ring.push(subject.clone(), line.clone());
        self.journal.push(line);
    }

    /// A notification of a traced subscriber is on its way.
    pub(crate) fn expect(&self, subscription: &Arc<str>, mark: Mark) {
        let mut notified = self.notified.lock();
        if notified.len() >= NOTIFIED {
            notified.clear();
        }
        notified.insert(subscription.clone(), mark);
    }

    /// A notification was answered, or not.
    pub(crate) fn answered(&self, subscription: &str, entry: impl FnOnce() -> Entry) {
        if !self.is_active() {
            return;
        }
        let mark = self.notified.lock().get(subscription).cloned();
        if let Some(mark) = mark {
            mark.note(entry());
        }
    }

    /// Entries about a subscriber or an association, the oldest first.
    pub(crate) fn search(&self, wanted: &str) -> Vec<Value> {
        let lines = self.ring.search(wanted).into_iter();
        lines
            .filter_map(|line| serde_json::from_str(&line).ok())
            .collect()
    }

    /// Entries in memory, and their bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        self.ring.size()
    }

    /// What has become of the lines of the files.
    pub(crate) fn counts(&self) -> &JournalCounts {
        self.journal.counts()
    }
}

/// A moment as RFC 3339 has it, to the microsecond.
fn moment(at: OffsetDateTime) -> String {
    let at = at.replace_microsecond(at.microsecond()).unwrap_or(at);
    at.format(&Rfc3339).unwrap_or_default()
}
