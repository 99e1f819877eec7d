//! One worker's share of the SDS: what the handlers of requests work with.

use std::rc::Rc;
use std::sync::Arc;

use function::sbi::Door;
use function::{Seat, Shedder};

use crate::config::Config;
use crate::events::{ADMISSION, Counters, Event};
use crate::live::Effective;
use crate::shared::Sds;

/// A worker as its listeners see it.
pub(crate) type Front = function::Front<Sds>;

/// One worker's SDS.
pub struct Worker {
    now: Arc<Effective>,
    shared: Arc<Sds>,
    door: Door,
    counters: Arc<Counters>,
}

impl Worker {
    /// A worker by what is in effect now. What the one before has measured stays, as far as its settings do.
    pub(crate) fn new(
        shared: &Arc<Sds>,
        seat: &Seat<Sds>,
        now: Arc<Effective>,
        before: Option<&Rc<Self>>,
    ) -> Self {
        let (index, config) = (seat.context.index, &now.config);
        let gate = now
            .verification
            .gate(&config.tokens, &config.identity, &config.nf_instance_id, "SDS");
        let door = Door::new(
            &config.overload,
            gate,
            shared.workers,
            before.map(|before| &before.door),
            (&ADMISSION, &seat.registry, index),
        );
        door.shedder().enforce(config.overload.enabled);
        Self {
            shared: shared.clone(),
            door,
            counters: shared.counts.of(index),
            now,
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.now.config
    }

    pub(crate) fn effective(&self) -> &Effective {
        &self.now
    }

    /// What admits requests.
    pub(crate) fn door(&self) -> &Door {
        &self.door
    }

    pub(crate) fn shedder(&self) -> &Shedder {
        self.door.shedder()
    }

    pub(crate) fn shared(&self) -> &Arc<Sds> {
        &self.shared
    }

    /// The counters of this worker's thread.
    pub(crate) fn counters(&self) -> Arc<Counters> {
        self.counters.clone()
    }

    pub(crate) fn count(&self, event: Event) {
        self.counters.count(event);
    }

    pub(crate) fn count_by(&self, event: Event, times: usize) {
        self.counters.add(event, times as u64);
    }
}
