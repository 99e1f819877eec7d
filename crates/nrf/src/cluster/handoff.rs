//! What the registrar and the task of a member give each other.

use std::sync::Arc;
use std::time::Duration;

use ahash::AHashMap;
use model::NfInstanceId;
use parking_lot::Mutex;
use store::{Stored, Version};

use super::membership::View;
use super::micros;
use super::record::{Beat, ChangeRecord, Key};

/// What one poll has brought.
pub(crate) struct Drift {
    /// When it began.
    pub(crate) began: u64,
    pub(crate) view: Arc<View>,
    /// What has changed, with its version; `None`: it was removed.
    pub(crate) changes: Vec<(Key, Option<Version>)>,
    /// Whether `changes` is all there is, so that everything else was removed.
    pub(crate) complete: bool,
    /// Heart-beats that others received.
    pub(crate) beats: Vec<Beat>,
    /// Changes that members had to notify of that are not active any more.
    pub(crate) inherited: Vec<Stored<ChangeRecord>>,
}

/// What the registrar and this task give each other. Clones share it; both run on the control thread, pages read it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handoff(Arc<Mutex<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    beats: AHashMap<NfInstanceId, Beat>,
    settled: u64,
    view: Arc<View>,
    read: u64,
}

impl Handoff {
    /// A heart-beat was received here that needs no durable write.
    pub(crate) fn beat(&self, beat: Beat) {
        self.0.lock().beats.insert(beat.id, beat);
    }

    /// The heart-beats since the last time, and up to which moment subscribers have been notified.
    pub(super) fn take(&self) -> (AHashMap<NfInstanceId, Beat>, u64) {
        let mut shared = self.0.lock();
        (std::mem::take(&mut shared.beats), shared.settled)
    }

    /// These are the members.
    pub(super) fn set_view(&self, view: Arc<View>) {
        self.0.lock().view = view;
    }

    /// All that the others have changed was read now.
    pub(super) fn read(&self) {
        self.0.lock().read = micros();
    }

    /// Subscribers have been notified of all changes up to this moment.
    pub(crate) fn settle(&self, at: u64) {
        let mut shared = self.0.lock();
        shared.settled = shared.settled.max(at);
    }

    /// The members as they were read last.
    pub(crate) fn view(&self) -> Arc<View> {
        self.0.lock().view.clone()
    }

    /// How long ago the state of the others was read.
    pub(crate) fn lag(&self) -> Duration {
        Duration::from_micros(micros().saturating_sub(self.0.lock().read))
    }
}
