//! Bytes of the pending writes of all workers: bounded, so that received bodies do not accumulate before a slow disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of the pending writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting(Arc<AtomicUsize>);

/// Bytes of one pending write; released on drop.
#[derive(Debug)]
pub(crate) struct Held {
    bytes: usize,
    waiting: Waiting,
}

impl Waiting {
    /// Reserves this many bytes if all pending writes stay within `most` bytes.
    pub(crate) fn hold(&self, bytes: usize, most: usize) -> Option<Held> {
        let held = Held {
            bytes,
            waiting: self.clone(),
        };
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        // A refused reservation releases its bytes when it is dropped.
        (before.saturating_add(bytes) <= most).then_some(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.waiting.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_and_given_back() {
        let waiting = Waiting::default();
        let first = waiting.hold(6, 10);
        assert!(first.is_some() && waiting.hold(5, 10).is_none());
        let second = waiting.hold(4, 10);
        assert!(second.is_some());
        drop((first, second));
        assert!(waiting.hold(10, 10).is_some() && waiting.hold(11, 10).is_none());
        assert_eq!(waiting.0.load(Ordering::Relaxed), 0);
    }
}
