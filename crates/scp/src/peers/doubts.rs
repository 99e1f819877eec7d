//! Reasons to check the NRFs at once: a discovery or a heart-beat that none of them answered.

use tokio::sync::watch;

/// Raised by workers, followed by the thread that learns the network.
#[derive(Debug)]
pub(crate) struct Doubts(watch::Sender<()>);

impl Default for Doubts {
    fn default() -> Self {
        Self(watch::channel(()).0)
    }
}

impl Doubts {
    /// No NRF has answered.
    pub(crate) fn raise(&self) {
        self.0.send_replace(());
    }

    /// Follows what is raised from now on.
    pub(super) fn follow(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }
}
