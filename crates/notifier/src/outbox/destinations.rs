//! What waits for each destination, and which destinations do not answer.

use ahash::{AHashMap, AHashSet};
use http::uri::Authority;

use crate::queue::Pending;
use crate::{Answer, Notification};

/// Silent destinations that are distinguished; further ones are judged by their subscriptions alone.
const MOST_SILENT: usize = 10_000;

/// The destinations of all pending notifications.
#[derive(Default)]
pub(super) struct Destinations {
    waiting: AHashMap<Authority, Pending>,
    /// Those that did not answer the last attempt: what is for them is doubtful, whichever subscription it is of.
    silent: AHashSet<Authority>,
    /// What waits for those.
    for_silent: Pending,
}

impl Destinations {
    /// Whether a destination has not answered the last attempt.
    pub(super) fn is_silent(&self, destination: Option<&Authority>) -> bool {
        destination.is_some_and(|destination| self.silent.contains(destination))
    }

    /// What waits for those that are silent.
    pub(super) fn for_silent(&self) -> Pending {
        self.for_silent
    }

    /// A notification waits.
    pub(super) fn add(&mut self, notification: &Notification) {
        let Some(destination) = notification.target.authority() else {
            return;
        };
        let bytes = notification.body.len();
        if self.silent.contains(destination) {
            self.for_silent.add(1, bytes);
        }
        match self.waiting.get_mut(destination) {
            Some(waiting) => waiting.add(1, bytes),
            None => self.waiting.entry(destination.clone()).or_default().add(1, bytes),
        }
    }

    /// A notification that has waited does not any more.
    pub(super) fn remove(&mut self, notification: &Notification) {
        let Some(destination) = notification.target.authority() else {
            return;
        };
        let bytes = notification.body.len();
        if self.silent.contains(destination) {
            self.for_silent.sub(1, bytes);
        }
        let Some(waiting) = self.waiting.get_mut(destination) else {
            return;
        };
        waiting.sub(1, bytes);
        if waiting.notifications == 0 {
            self.waiting.remove(destination);
        }
    }

    /// Takes the answer of a destination to an attempt; whether it was silent before and has answered.
    pub(super) fn heard(&mut self, destination: Option<&Authority>, answer: &Answer) -> bool {
        let Some(destination) = destination else {
            return false;
        };
        let waiting = self.waiting.get(destination).copied().unwrap_or_default();
        if !matches!(answer, Answer::Retry(_)) {
            let was_silent = self.silent.remove(destination);
            if was_silent {
                self.for_silent.sub(waiting.notifications, waiting.bytes);
            }
            return was_silent;
        }
        if self.silent.len() < MOST_SILENT && self.silent.insert(destination.clone()) {
            self.for_silent.add(waiting.notifications, waiting.bytes);
        }
        false
    }
}
