//! Notifications that simulated consumers have received, for a caller that waits for them.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ahash::AHashMap;
use bytes::Bytes;

/// Notifications that may be pending; the consumer refuses further ones.
const MOST: usize = 65_536;

/// The notifications of a consumer by path.
#[derive(Debug, Default)]
pub struct Notices {
    held: Mutex<Held>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Held {
    by_path: AHashMap<Box<str>, VecDeque<Bytes>>,
    pending: usize,
    received: u64,
}

impl Notices {
    /// Adds a notification; `false` when too many are pending.
    pub(crate) fn put(&self, path: &str, body: &[u8]) -> bool {
        let mut held = self.held();
        if held.pending >= MOST {
            return false;
        }
        held.pending += 1;
        held.received += 1;
        let queue = held.by_path.entry(path.into()).or_default();
        queue.push_back(Bytes::copy_from_slice(body));
        drop(held);
        self.arrived.notify_all();
        true
    }

    /// Takes the first notification at this path, for which it waits as long as `patience`.
    #[must_use]
    pub fn take(&self, path: &str, patience: Duration) -> Option<Bytes> {
        let end = Instant::now() + patience;
        let mut held = self.held();
        loop {
            if let Some(body) = held.by_path.get_mut(path).and_then(VecDeque::pop_front) {
                held.pending -= 1;
                return Some(body);
            }
            let left = end.checked_duration_since(Instant::now())?;
            let waited = self.arrived.wait_timeout(held, left);
            held = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(held, _)| held);
        }
    }

    /// Drops what is pending at this path, and the path.
    pub fn forget(&self, path: &str) {
        let mut held = self.held();
        let dropped = held.by_path.remove(path).map_or(0, |queue| queue.len());
        held.pending -= dropped;
    }

    /// Notifications received so far.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.held().received
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_are_taken_in_their_order_by_path() {
        let notices = Notices::default();
        assert!(notices.put("/smf/1/update", b"a") && notices.put("/smf/2/update", b"b"));
        assert!(notices.put("/smf/1/update", b"c"));
        let take = |path| notices.take(path, Duration::ZERO);
        assert_eq!(take("/smf/1/update").as_deref(), Some(&b"a"[..]));
        assert_eq!(take("/smf/2/update").as_deref(), Some(&b"b"[..]));
        assert_eq!(take("/smf/2/update"), None);
        notices.forget("/smf/1/update");
        assert_eq!(take("/smf/1/update"), None);
        assert_eq!((notices.received(), notices.held().pending), (3, 0));
    }

    #[test]
    fn a_notification_beyond_the_bound_is_refused() {
        let notices = Notices::default();
        assert!((0..MOST).all(|_| notices.put("/a", b"")));
        assert!(!notices.put("/a", b""));
        assert!(notices.take("/a", Duration::ZERO).is_some() && notices.put("/a", b""));
    }
}
