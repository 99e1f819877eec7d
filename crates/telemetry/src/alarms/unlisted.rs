//! Active alarms of a kind that are not listed one by one: counted, and one alarm in their place.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use super::{Alarm, AlarmKind, MOST_ACTIVE};
use crate::severity::Severity;

/// What the alarm that stands for them is about.
const OTHERS: &str = "others";
/// They are counted up to this number.
const MOST: usize = 65_536;

#[derive(Debug)]
pub(super) struct Unlisted {
    /// Their severities, by a hash of what they are about: peers may give it a long name.
    severities: HashMap<u64, Severity>,
    hash: RandomState,
    alarm: Alarm,
}

impl Unlisted {
    pub(super) fn new(kind: &AlarmKind) -> Self {
        Self {
            severities: HashMap::new(),
            hash: RandomState::new(),
            alarm: Alarm::new(kind, kind.severity, OTHERS, String::new()),
        }
    }

    /// Adds one; the severity that it had before.
    pub(super) fn add(&mut self, instance: &str, severity: Severity) -> Option<Severity> {
        if self.is_empty() {
            let (number, name) = (self.alarm.number, self.alarm.name);
            tracing::warn!(number, name, "further alarms of the kind are counted, not listed");
        }
        self.alarm.severity = self.alarm.severity.max(severity);
        self.severities.insert(self.hash.hash_one(instance), severity)
    }

    /// Removes one; its severity.
    pub(super) fn remove(&mut self, instance: &str) -> Option<Severity> {
        self.severities.remove(&self.hash.hash_one(instance))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.severities.is_empty()
    }

    /// Whether further ones are not even counted.
    pub(super) fn is_full(&self) -> bool {
        self.severities.len() >= MOST
    }

    /// The alarm that stands for them.
    pub(super) fn alarm(&self) -> Alarm {
        let least = match self.is_full() {
            true => "at least ",
            false => "",
        };
        let count = self.severities.len();
        Alarm {
            detail: format!(
                "{least}{count} more are active: a function lists {MOST_ACTIVE} alarms one by one"
            ),
            ..self.alarm.clone()
        }
    }
}
