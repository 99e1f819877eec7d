//! What the threads of an NRF share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::ArcSwap;
use function::Counts;
use registry::Snapshot;
use sbi::dns::Dns;
use store::Store;
use tokio::sync::mpsc;

use crate::cluster::Handoff;
use crate::events::Event;
use crate::growth::Standing;
use crate::live::Live;
use crate::registrar::{Look, Waiting, Write};

/// What the threads of an NRF share.
#[derive(Debug)]
pub struct Nrf {
    pub(crate) published: Arc<ArcSwap<Snapshot>>,
    pub(crate) counts: Counts<Event>,
    pub(crate) writes: mpsc::Sender<Write>,
    pub(crate) waiting: Waiting,
    /// The members of its cluster, if it is in one.
    pub(crate) cluster: Option<Handoff>,
    /// Resolves names; none: the system does.
    pub(crate) names: Option<Dns>,
    /// The settings in effect.
    pub(crate) live: Arc<Live>,
    /// Questions of admin pages for the registrar.
    pub(crate) looks: mpsc::Sender<Look>,
    /// How the other sets stand.
    pub(crate) growth: Vec<Arc<Standing>>,
    /// What the registrar writes to, for copies of it.
    pub(crate) store: Store,
    /// By worker: which SCPs of `slf.scps` did not answer its last check, as bits.
    pub(crate) scps_down: Box<[AtomicU64]>,
}

impl Nrf {
    /// The registry as of now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.published.load_full()
    }

    /// How often something has happened, over all threads.
    #[must_use]
    pub fn count(&self, event: Event) -> u64 {
        self.counts.sum(event)
    }
}
