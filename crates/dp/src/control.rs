//! What pages, timers and workers of a database processor look at.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use function::live::Live;
use telemetry::Alarms;

use crate::config::Config;
use crate::data::Holder;
use crate::metrics::Meters;

/// What is in effect, what was counted, and what is wrong.
pub(crate) struct Control {
    pub(crate) live: Arc<Live<Config, Arc<Holder>>>,
    pub(crate) meters: Arc<Meters>,
    pub(crate) alarms: Alarms,
    pub(crate) progress: Arc<Progress>,
}

/// How far the journal of the servers is followed.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    offset: AtomicU64,
    head: AtomicU64,
}

impl Progress {
    /// Notes where the data are, and the newest offset that a server has reported.
    pub(crate) fn report(&self, offset: u64, head: u64) {
        self.offset.store(offset, Ordering::Relaxed);
        self.head.store(head.max(offset), Ordering::Relaxed);
    }

    /// The offset up to which transactions are in effect.
    pub(crate) fn offset(&self) -> u64 {
        self.offset.load(Ordering::Relaxed)
    }

    /// Transactions that are known of and not in effect yet.
    pub(crate) fn behind(&self) -> u64 {
        self.head.load(Ordering::Relaxed).saturating_sub(self.offset())
    }
}
