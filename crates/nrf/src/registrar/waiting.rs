//! Bytes of the writes that wait, over all workers: what a stranger sends must not pile up in front of the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many bytes wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting(Arc<AtomicUsize>);

/// Bytes that wait until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    bytes: usize,
    waiting: Waiting,
}

impl Waiting {
    /// Room for so many bytes, if there is any; `most` is how many may wait.
    pub(crate) fn hold(&self, bytes: usize, most: usize) -> Option<Held> {
        let held = Held {
            bytes,
            waiting: self.clone(),
        };
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        // What has no room gives its bytes back as it is dropped.
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
