//! What the threads of a PCF share.

use std::net::SocketAddr;
use std::sync::Arc;

use function::brake::Brake;
use function::sbi::{Operational, State};
use function::{Counts, Tolerated};
use sbi::dns::Dns;
use telemetry::Alarms;

use crate::activity::{Activity, PolicyEvents};
use crate::events::Event;
use crate::finished::Finished;
use crate::latency::Latencies;
use crate::live::Live;
use crate::notices::Notices;
use crate::operator::OperatorSettings;
use crate::orders::Orders;
use crate::reports::Inbox;
use crate::repository::Repository;
use crate::restarts::Restarts;
use crate::sources::Versions;

/// What the threads of a PCF share.
#[derive(Debug)]
pub struct Pcf {
    pub(crate) live: Arc<Live>,
    pub(crate) repository: Repository,
    pub(crate) notices: Notices,
    /// Its operational state, and its load.
    pub(crate) operational: Arc<Operational>,
    /// What an operator has set, as it is stored.
    pub(crate) operator: tokio::sync::Mutex<OperatorSettings>,
    pub(crate) counts: Counts<Event>,
    pub(crate) latencies: Arc<Latencies>,
    /// What is kept of traced subscribers.
    pub(crate) activity: Arc<Activity>,
    /// Held while an operator changes whom it traces.
    pub(crate) tracing: tokio::sync::Mutex<()>,
    pub(crate) policy_events: PolicyEvents,
    pub(crate) workers: usize,
    /// The ways to the Diameter nodes of all workers.
    pub(crate) orders: Orders,
    pub(crate) diameter: Vec<SocketAddr>,
    /// PCEFs that have restarted.
    pub(crate) restarts: Restarts,
    /// AF sessions over Rx that have ended a moment ago.
    pub(crate) finished: Finished,
    /// URIs of resources at other functions that were removed a moment ago.
    pub(crate) removed: Finished,
    /// About how many records each table had a moment ago.
    pub(crate) records: parking_lot::Mutex<Vec<(&'static str, u64)>>,
    /// What the audit may remove.
    pub(crate) brake: Arc<Brake>,
    pub(crate) alarms: Alarms,
    /// Where reports in answers to notifications arrive.
    pub(crate) reports: Inbox,
    /// Versions of the policy data of subscribers.
    pub(crate) versions: Versions,
    /// Members of bodies that counted as absent.
    pub(crate) tolerated: Tolerated,
    /// Resolves names for the clients of all workers; none: the system.
    pub(crate) names: Option<Dns>,
}

impl Pcf {
    /// Its associations.
    #[must_use]
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Where it listens for Diameter.
    #[must_use]
    pub fn diameter_addresses(&self) -> &[SocketAddr] {
        &self.diameter
    }

    /// Its operational state.
    #[must_use]
    pub fn state(&self) -> State {
        self.operational.state()
    }

    /// Opens it or shuts it down in steps, and keeps that in the store: it holds after a restart.
    ///
    /// # Errors
    /// When the store cannot be written; then nothing changes.
    pub async fn set_state(&self, state: State) -> Result<(), store::Error> {
        let mut settings = self.operator.lock().await;
        let mut changed = settings.clone();
        changed.state = state;
        changed.write(self.repository.store()).await?;
        *settings = changed;
        self.operational.set_state(state);
        Ok(())
    }

    /// Changes the subscribers that an operator has added to those that are traced, and keeps that in the store: it holds
    /// after a restart.
    ///
    /// # Errors
    /// When the store cannot be read or written; then nothing changes.
    pub(crate) async fn trace(&self, change: impl FnOnce(&mut Vec<String>)) -> Result<(), store::Error> {
        let _one_at_a_time = self.tracing.lock().await;
        let instance = self.live.load().config.nf_instance_id.clone();
        let mut added = self.repository.traced(&instance).await?;
        change(&mut added);
        self.repository.keep_traced(&instance, &added).await?;
        self.activity.set_added(added);
        Ok(())
    }

    /// Load of the busiest worker, in percent of a core.
    #[must_use]
    pub fn load(&self) -> u8 {
        self.operational.load()
    }

    /// How often something has happened, over all threads.
    #[must_use]
    pub fn count(&self, event: Event) -> u64 {
        self.counts.sum(event)
    }

    /// Notifications that are pending.
    #[must_use]
    pub fn notifications(&self) -> notifier::Pending {
        self.notices.queue.pending()
    }
}
