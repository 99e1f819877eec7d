//! When the workers of a function have begun to serve.

use std::convert::Infallible;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;

/// Held by a worker until it accepts connections; dropped, also by a worker that fails, it says that start need not wait
/// for this worker any longer.
#[derive(Debug)]
pub struct Beginning {
    _held: Option<SyncSender<Infallible>>,
}

/// One [`Beginning`] for each worker.
pub(crate) struct Beginnings {
    held: Mutex<Vec<SyncSender<Infallible>>>,
}

/// Waits for all [`Beginnings`].
pub(crate) struct Begun(Receiver<Infallible>);

impl Beginnings {
    pub(crate) fn new(workers: usize) -> (Self, Begun) {
        let (held, begun) = sync_channel(0);
        let held = Mutex::new(vec![held; workers]);
        (Self { held }, Begun(begun))
    }

    /// For one worker. A worker that is started once more gets one for which nothing waits.
    pub(crate) fn next(&self) -> Beginning {
        Beginning {
            _held: self.held.lock().pop(),
        }
    }
}

impl Begun {
    /// Returns whether all workers have begun within this time.
    pub(crate) fn wait(&self, at_most: Duration) -> bool {
        self.0.recv_timeout(at_most) == Err(RecvTimeoutError::Disconnected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_workers_have_begun_when_the_last_has() {
        let (beginnings, begun) = Beginnings::new(2);
        let (first, second) = (beginnings.next(), beginnings.next());
        drop(first);
        assert!(!begun.wait(Duration::ZERO));
        drop(second);
        assert!(begun.wait(Duration::ZERO));
    }
}
