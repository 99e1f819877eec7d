//! What the threads of a BSF share.

use std::net::SocketAddr;
use std::sync::Arc;

use function::brake::Brake;
use function::sbi::State;
use function::{Counts, Tolerated};
use sbi::dns::Dns;
use tokio::sync::mpsc;

use crate::events::Event;
use crate::flights::Flights;
use crate::latency::Latencies;
use crate::live::Live;
use crate::notify::Notices;
use crate::operator::OperatorSettings;
use crate::peers::pcfs;
use crate::peers::sets::Sets;
use crate::repository::Repository;
use crate::score::Score;
use crate::state::Switches;

/// What the threads of a BSF share.
#[derive(Debug)]
pub struct Bsf {
    pub(crate) live: Arc<Live>,
    pub(crate) notices: Notices,
    pub(crate) switches: Arc<Switches>,
    /// What an operator has set, as it is stored.
    pub(crate) operator: tokio::sync::Mutex<OperatorSettings>,
    /// Whether the configuration that it started with switches congestion control on.
    pub(crate) congestion_configured: bool,
    /// Changes of PCFs that the NRF notifies, for the audit.
    pub(crate) pcf_changes: mpsc::Sender<pcfs::Changed>,
    /// What the audit may remove.
    pub(crate) brake: Arc<Brake>,
    /// Requests over Rx that are not answered yet.
    pub(crate) flights: Flights,
    /// How long requests over Rx take.
    pub(crate) rx_latency: Latencies,
    /// PCFs of a set, for the Diameter agents.
    pub(crate) sets: Sets,
    /// The resolver of names; none: the system.
    pub(crate) names: Option<Dns>,
    pub(crate) counts: Counts<Event>,
    pub(crate) tolerated: Tolerated,
    pub(crate) workers: usize,
    pub(crate) diameter: Vec<SocketAddr>,
}

impl Bsf {
    /// Its bindings.
    #[must_use]
    pub fn repository(&self) -> &Repository {
        &self.notices.repository
    }

    /// Where it listens for Diameter.
    #[must_use]
    pub fn diameter_addresses(&self) -> &[SocketAddr] {
        &self.diameter
    }

    /// Its operational state.
    #[must_use]
    pub fn state(&self) -> State {
        self.switches.operational().state()
    }

    /// Opens it or shuts it down in steps, and keeps that in the store: it holds after a restart.
    ///
    /// # Errors
    /// When the store cannot be written; then nothing changes.
    pub async fn set_state(&self, state: State) -> Result<(), store::Error> {
        let change = |settings: &mut OperatorSettings| settings.state = state;
        self.set(change, |switches| switches.operational().set_state(state))
            .await
    }

    /// Stores a change of what an operator has set, then applies it. Changes follow one another, so that what is stored last
    /// is what applies.
    async fn set(
        &self,
        change: impl FnOnce(&mut OperatorSettings),
        apply: impl FnOnce(&Switches),
    ) -> Result<(), store::Error> {
        let mut settings = self.operator.lock().await;
        let mut changed = settings.clone();
        change(&mut changed);
        changed.write(self.repository().store()).await?;
        *settings = changed;
        apply(&self.switches);
        Ok(())
    }

    /// Whether requests are discarded at congestion levels.
    #[must_use]
    pub fn congestion_control(&self) -> bool {
        self.switches.congestion()
    }

    /// Turns discards at congestion levels on or off, and keeps that in the store: it holds until the configuration of a later
    /// start says something else than that of this one.
    ///
    /// # Errors
    /// When the store cannot be written; then nothing changes.
    pub async fn set_congestion_control(&self, on: bool) -> Result<(), store::Error> {
        let configured = self.congestion_configured;
        let change = |settings: &mut OperatorSettings| settings.switch_congestion_control(on, configured);
        self.set(change, |switches| switches.set_congestion(on)).await?;
        tracing::info!(on, "an operator has switched congestion control");
        Ok(())
    }

    /// Bindings that may be removed in a second (`audit.removalRate`).
    pub(crate) fn removal_rate(&self) -> u32 {
        self.live.load().config.audit.removal_rate.max(1)
    }

    /// Load of the busiest worker, in percent of a core.
    #[must_use]
    pub fn load(&self) -> u8 {
        self.switches.operational().load()
    }

    /// The score of the last interval.
    #[must_use]
    pub fn score(&self) -> Score {
        self.switches.score()
    }

    /// How often something has happened, over all threads.
    #[must_use]
    pub fn count(&self, event: Event) -> u64 {
        self.counts.sum(event)
    }

    /// Notifications that wait for subscribers.
    #[must_use]
    pub fn notifications(&self) -> notifier::Pending {
        self.notices.queue.pending()
    }
}
