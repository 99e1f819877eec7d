//! The pending notifications of one subscription, and what its subscriber has missed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ahash::AHashMap;
use http::uri::Authority;

use super::Number;
use super::progress::Progress;
use crate::Notification;

/// One subscription. Notifications have numbers in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct Subscriber {
    waiting: BTreeMap<Number, Waiting>,
    bytes: usize,
    /// Those that a later whole notification of the same subject replaces.
    superseded: BTreeSet<Number>,
    /// The others, by subject: the last whole one, and what follows it.
    current: AHashMap<Arc<str>, Vec<Number>>,
    pub(super) phase: Phase,
    /// Whether the last notification has failed: the subscriber is unreachable.
    pub(super) failing: bool,
    /// Whether the last attempt had no answer, or one that asks for another attempt.
    pub(super) silent: bool,
    /// Host and port of its last notification.
    pub(super) destination: Option<Authority>,
    /// Subjects whose state was dropped or has failed.
    pub(super) missed: BTreeSet<Arc<str>>,
    /// While the present state is being fetched: subjects that have changed since, and whether a whole notification
    /// was among them.
    pub(super) touched: Option<AHashMap<Arc<str>, bool>>,
}

/// Phase of a subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing: it has no notifications.
    #[default]
    Idle,
    /// It waits for its turn.
    Ready,
    /// It waits for the time of the next attempt.
    Paused,
    /// Its oldest notification has left for a step.
    InFlight,
}

#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) notification: Notification,
    pub(super) progress: Progress,
}

impl Subscriber {
    /// Pending notifications, and their bytes.
    pub(super) fn waiting(&self) -> (usize, usize) {
        (self.waiting.len(), self.bytes)
    }

    pub(super) fn head(&self) -> Option<&Waiting> {
        self.waiting.first_key_value().map(|(_, head)| head)
    }

    pub(super) fn head_number(&self) -> Option<Number> {
        self.waiting.first_key_value().map(|(number, _)| *number)
    }

    /// Removes the least useful notification: the oldest that a later one replaces, else the oldest.
    pub(super) fn remove_least(&mut self) -> Option<(Number, Waiting, bool)> {
        let number = self.superseded.first().copied().or_else(|| self.head_number())?;
        let (waiting, superseded) = self.remove(number)?;
        Some((number, waiting, superseded))
    }

    /// Adds a notification: a new one at the end, or one that was in flight at the head again.
    pub(super) fn insert(&mut self, number: Number, notification: Notification, progress: Progress) {
        let replaced = self.replaces(&notification.subject, number);
        self.bytes += notification.body.len();
        if replaced {
            self.superseded.insert(number);
        } else {
            let current = self.current.entry(notification.subject.clone()).or_default();
            let (after, before): (Vec<Number>, Vec<Number>) =
                current.iter().partition(|other| **other > number);
            if notification.whole {
                self.superseded.extend(before);
                *current = vec![number];
            } else {
                *current = before;
                current.push(number);
            }
            current.extend(after);
        }
        self.waiting.insert(
            number,
            Waiting {
                notification,
                progress,
            },
        );
    }

    /// Takes a notification out, and whether a later one replaces it.
    pub(super) fn remove(&mut self, number: Number) -> Option<(Waiting, bool)> {
        let waiting = self.waiting.remove(&number)?;
        self.bytes -= waiting.notification.body.len();
        let superseded = self.superseded.remove(&number);
        let subject = &waiting.notification.subject;
        if !superseded && let Some(current) = self.current.get_mut(subject) {
            current.retain(|other| *other != number);
            if current.is_empty() {
                self.current.remove(subject);
            }
        }
        Some((waiting, superseded))
    }

    /// Whether a whole notification of the subject waits that is later than this one.
    pub(super) fn replaces(&self, subject: &str, number: Number) -> bool {
        let current = self.current.get(subject).into_iter().flatten();
        current
            .filter(|later| **later > number)
            .any(|later| self.waiting.get(later).is_some_and(|one| one.notification.whole))
    }

    /// A subject has changed.
    pub(super) fn touch(&mut self, subject: &Arc<str>, whole: bool) {
        if let Some(touched) = &mut self.touched {
            *touched.entry(subject.clone()).or_default() |= whole;
        }
    }

    /// Whether the subscription has neither pending notifications nor missed subjects.
    pub(super) fn is_forgettable(&self) -> bool {
        self.phase == Phase::Idle
            && self.waiting.is_empty()
            && self.missed.is_empty()
            && self.touched.is_none()
    }
}
