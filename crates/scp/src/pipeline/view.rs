//! A worker's view of the network: the current snapshot, read without a lock.

use std::cell::RefCell;
use std::sync::Arc;

use arc_swap::ArcSwap;

use routing::network::Network;

/// The current snapshot, as one worker sees it.
pub(super) struct View(RefCell<arc_swap::Cache<Arc<ArcSwap<Network>>, Arc<Network>>>);

impl View {
    pub(super) fn new(published: Arc<ArcSwap<Network>>) -> Self {
        Self(RefCell::new(arc_swap::Cache::new(published)))
    }

    pub(super) fn network(&self) -> Arc<Network> {
        self.0.borrow_mut().load().clone()
    }

    /// Whether `network` is still the current snapshot.
    pub(super) fn is_current(&self, network: &Arc<Network>) -> bool {
        Arc::ptr_eq(self.0.borrow_mut().load(), network)
    }
}
