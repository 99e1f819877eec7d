//! Records of policy events: what happens to sessions, rules and quotas of every subscriber, one JSON object for each.

use std::sync::atomic::{AtomicBool, Ordering};

use function::journal::{Journal, JournalCounts};
use function::telemetry::Alarms;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use super::{UNWRITTEN, moment};
use crate::association::Association;
use crate::config::PolicyEvents as Settings;

/// Sections of a decision that are rules, with the word for each.
const RULES: [(&str, &str); 2] = [("sessRules", "sessionRule"), ("pccRules", "pccRule")];

/// Writes the records.
#[derive(Debug)]
pub(crate) struct PolicyEvents {
    is_enabled: AtomicBool,
    journal: Journal,
}

impl PolicyEvents {
    pub(crate) fn start(settings: &Settings, alarms: Alarms) -> std::io::Result<Self> {
        Ok(Self {
            is_enabled: AtomicBool::new(settings.enabled),
            journal: Journal::start(settings.files.of("policy-events"), alarms, &UNWRITTEN)?,
        })
    }

    /// Writes records or none, as the settings say now.
    pub(crate) fn reconfigure(&self, settings: &Settings) {
        self.is_enabled.store(settings.enabled, Ordering::Relaxed);
    }

    /// An association was written: it began (`before` is none), changed, or ended (`after` is none).
    pub(crate) fn written(&self, before: Option<&Association>, after: Option<&Association>) {
        if !self.is_enabled.load(Ordering::Relaxed) {
            return;
        }
        let (Some(association), event) = (
            after.or(before),
            match (before, after) {
                (None, _) => "sessionCreated",
                (_, None) => "sessionEnded",
                _ => "sessionModified",
            },
        ) else {
            return;
        };
        self.push(association, event, Map::new());
        let decision = |one: Option<&Association>| one.map(Association::decision).unwrap_or_default();
        for (event, section, id) in changes(&decision(before), &decision(after)) {
            let members = json!({"section": section, "rule": id});
            self.push(
                association,
                event,
                members.as_object().cloned().unwrap_or_default(),
            );
        }
    }

    /// A quota of a subscriber is used up.
    pub(crate) fn exhausted(&self, association: &Association, limit: &str) {
        if self.is_enabled.load(Ordering::Relaxed) {
            let members = [("limit".to_owned(), limit.into())].into_iter().collect();
            self.push(association, "quotaExhausted", members);
        }
    }

    /// A request was refused. `event` is what policies know it by.
    pub(crate) fn refused(&self, association: &Association, event: &str, cause: &str) {
        if self.is_enabled.load(Ordering::Relaxed) {
            let members = json!({"at": event, "cause": cause});
            self.push(
                association,
                "refused",
                members.as_object().cloned().unwrap_or_default(),
            );
        }
    }

    fn push(&self, association: &Association, event: &str, members: Map<String, Value>) {
        let mut line = json!({
            "time": moment(OffsetDateTime::now_utc()),
            "event": event,
            "kind": association.kind.name(),
            "association": association.id.to_string(),
        });
        for name in [
            "supi",
            "gpsi",
            "dnn",
            "sliceInfo",
            "ipv4Address",
            "ipv6AddressPrefix",
        ] {
            if let Some(value) = association.context.get(name) {
                line[name] = value.clone();
            }
        }
        if let Value::Object(line) = &mut line {
            line.extend(members);
        }
        self.journal.push(line.to_string().into());
    }

    /// What has become of the records.
    pub(crate) fn counts(&self) -> &JournalCounts {
        self.journal.counts()
    }
}

/// What of the rules of a decision a change installs, modifies and removes.
fn changes(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Vec<(&'static str, &'static str, String)> {
    let mut changes = Vec::new();
    for (section, word) in RULES {
        let entries = |decision: &Map<String, Value>| {
            let rules = decision.get(section).and_then(Value::as_object).cloned();
            rules.unwrap_or_default()
        };
        let (has, shall) = (entries(before), entries(after));
        for (id, rule) in &shall {
            match has.get(id) {
                None => changes.push(("ruleInstalled", word, id.clone())),
                Some(old) if old != rule => changes.push(("ruleModified", word, id.clone())),
                Some(_) => {}
            }
        }
        let removed = has.keys().filter(|id| !shall.contains_key(*id));
        changes.extend(removed.map(|id| ("ruleRemoved", word, id.clone())));
    }
    changes
}
