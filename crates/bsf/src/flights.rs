//! Requests over Rx that have no answer yet, at all workers: a BSF that stops waits for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Interval at which a BSF that stops looks again.
const STEP: Duration = Duration::from_millis(10);

/// How many are in flight. Clones share the number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flights(Arc<AtomicUsize>);

/// One of them, until dropped.
#[derive(Debug)]
pub(crate) struct Flight(Arc<AtomicUsize>);

impl Flights {
    pub(crate) fn begin(&self) -> Flight {
        self.0.fetch_add(1, Relaxed);
        Flight(self.0.clone())
    }

    /// Waits until none is left, for this long at most.
    pub(crate) async fn end(&self, at_most: Duration) {
        let all = async {
            while self.0.load(Relaxed) > 0 {
                tokio::time::sleep(STEP).await;
            }
        };
        if tokio::time::timeout(at_most, all).await.is_err() {
            tracing::warn!(
                left = self.0.load(Relaxed),
                "requests over Rx are given up at the end"
            );
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
