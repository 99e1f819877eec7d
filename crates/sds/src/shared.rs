//! What the threads of an SDS share.

use std::sync::Arc;

use function::Counts;
use function::sbi::Operational;
use tokio::sync::watch;

use crate::data::Data;
use crate::events::Event;
use crate::journal::{Journal, Known};
use crate::live::Live;
use crate::pollers::Pollers;
use crate::repository::Repository;
use crate::tail::Tail;

/// What the threads of an SDS share.
#[derive(Debug)]
pub struct Sds {
    pub(crate) repository: Repository,
    pub(crate) data: Arc<Data>,
    pub(crate) tail: Arc<Tail>,
    pub(crate) journal: Journal,
    pub(crate) known: watch::Receiver<Known>,
    pub(crate) pollers: Arc<Pollers>,
    pub(crate) counts: Counts<Event>,
    pub(crate) operational: Arc<Operational>,
    pub(crate) workers: usize,
    pub(crate) live: Arc<Live>,
    /// Fires when polls are not to wait any longer.
    pub(crate) shutdown: function::Shutdown,
}

impl Sds {
    /// How often something has happened, over all threads.
    #[must_use]
    pub fn count(&self, event: Event) -> u64 {
        self.counts.sum(event)
    }

    /// Transactions that the journal has.
    pub(crate) fn entries(&self) -> u64 {
        let known = self.known.borrow();
        (known.head.offset + 1).saturating_sub(known.head.first)
    }
}
