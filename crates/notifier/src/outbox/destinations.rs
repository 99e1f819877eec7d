//! What waits for each destination, and which destinations do not answer.

use ahash::{AHashMap, AHashSet};
use http::uri::Authority;

use crate::queue::Pending;
use crate::{Answer, Notification};

/// Silent destinations that are distinguished, those first for which something is pending; further ones are judged by their
/// subscriptions alone.
const MOST_SILENT: usize = 10_000;
/// The share of them, one of this many, for which nothing is pending: from there on they are evicted, together.
const IDLE_SHARE: usize = 10;

/// The destinations of all pending notifications.
#[derive(Default)]
pub(super) struct Destinations {
    waiting: AHashMap<Authority, Pending>,
    /// Those that did not answer the last attempt: what is for them is doubtful, whichever subscription it is of.
    silent: AHashSet<Authority>,
    /// Those of them for which nothing is pending.
    idle: usize,
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

    /// Counts a notification that is queued.
    pub(super) fn add(&mut self, notification: &Notification) {
        let Some(destination) = notification.target.authority() else {
            return;
        };
        let bytes = notification.body.len();
        let is_silent = self.silent.contains(destination);
        if is_silent {
            self.for_silent.add(1, bytes);
        }
        if let Some(waiting) = self.waiting.get_mut(destination) {
            waiting.add(1, bytes);
        } else {
            self.waiting.entry(destination.clone()).or_default().add(1, bytes);
            self.idle -= usize::from(is_silent);
        }
    }

    /// Counts a notification that leaves the queue.
    pub(super) fn remove(&mut self, notification: &Notification) {
        let Some(destination) = notification.target.authority() else {
            return;
        };
        let bytes = notification.body.len();
        let is_silent = self.silent.contains(destination);
        if is_silent {
            self.for_silent.sub(1, bytes);
        }
        let Some(waiting) = self.waiting.get_mut(destination) else {
            return;
        };
        waiting.sub(1, bytes);
        if waiting.notifications == 0 {
            self.waiting.remove(destination);
            self.idle += usize::from(is_silent);
        }
    }

    /// Takes the answer of a destination to an attempt; whether it was silent before and has answered.
    pub(super) fn heard(&mut self, destination: Option<&Authority>, answer: &Answer) -> bool {
        let Some(destination) = destination else {
            return false;
        };
        let waiting = self.waiting.get(destination).copied();
        let is_idle = usize::from(waiting.is_none());
        let Pending { notifications, bytes } = waiting.unwrap_or_default();
        if !matches!(answer, Answer::Retry(_)) {
            let was_silent = self.silent.remove(destination);
            if was_silent {
                self.for_silent.sub(notifications, bytes);
                self.idle -= is_idle;
            }
            return was_silent;
        }
        if self.silent.contains(destination) {
            return false;
        }
        if self.silent.len() >= MOST_SILENT && self.idle * IDLE_SHARE >= MOST_SILENT {
            // Most of them have left for ever: what they were owed was given up.
            self.silent.retain(|one| self.waiting.contains_key(one));
            self.idle = 0;
        }
        if self.silent.len() < MOST_SILENT {
            self.silent.insert(destination.clone());
            self.for_silent.add(notifications, bytes);
            self.idle += is_idle;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn at(number: usize) -> Authority {
        Authority::try_from(format!("pod-{number}.example")).unwrap()
    }

    fn notification(number: usize) -> Notification {
        Notification {
            subscription: "s".into(),
            subject: "1".into(),
            whole: true,
            target: format!("http://pod-{number}.example/callback").parse().unwrap(),
            callback: "",
            body: Bytes::from_static(b"1"),
            set: None,
            mark: 0,
        }
    }

    #[test]
    fn destinations_that_have_left_make_room_for_others() {
        let mut destinations = Destinations::default();
        for number in 0..3 * MOST_SILENT {
            destinations.heard(Some(&at(number)), &Answer::Retry(None));
            assert!(destinations.is_silent(Some(&at(number))), "{number}");
        }
        assert!(destinations.silent.len() <= MOST_SILENT);
    }

    #[test]
    fn destinations_with_something_pending_stay() {
        let mut destinations = Destinations::default();
        let owed = 9 * MOST_SILENT / 10;
        for number in 0..owed {
            destinations.add(&notification(number));
            destinations.heard(Some(&at(number)), &Answer::Retry(None));
        }
        for number in owed..2 * MOST_SILENT {
            destinations.heard(Some(&at(number)), &Answer::Retry(None));
        }
        assert!((0..owed).all(|number| destinations.is_silent(Some(&at(number)))));
        assert_eq!(destinations.for_silent().notifications, owed);
        // They answer, or what is pending is given up: no count is left.
        for number in 0..owed {
            if number % 2 == 0 {
                destinations.heard(Some(&at(number)), &Answer::Delivered);
            }
            destinations.remove(&notification(number));
        }
        assert_eq!(destinations.for_silent().notifications, 0);
        let idle = destinations.silent.len();
        assert_eq!(destinations.idle, idle);
    }
}
