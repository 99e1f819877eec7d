//! A producer as a worker sees it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use overload::{CircuitBreaker, Discard};
use sbi::Fields;
use sbi::headers::{Oci, SbiHeader, Scope, names};
use time::OffsetDateTime;

use super::fault::Record;
use super::newness::{Stored, is_ahead, replaces};
use super::rate::Share;
use super::reports::MOST_VALID;
use crate::events::AttemptMetrics;

/// A producer as this worker sees it.
pub(crate) struct Peer {
    pub(crate) authority: Arc<str>,
    pub(super) instance: Option<Box<str>>,
    /// Rates to be kept, by service; empty where no rates are set.
    pub(super) rates: RefCell<Vec<ServiceRates>>,
    pub(super) breaker: RefCell<CircuitBreaker>,
    pub(super) outstanding: Cell<u32>,
    pub(super) most_outstanding: Cell<u32>,
    pub(super) health: Health,
    pub(super) record: Record,
    /// When it last failed.
    pub(super) failed: Cell<Option<Instant>>,
    /// Its key in the outlier detector.
    pub(super) key: Arc<str>,
    pub(super) overloaded: Cell<Option<Reduction>>,
    pub(super) shed: Cell<Discard>,
    pub(super) metrics: AttemptMetrics,
}

/// What keeps requests away from a producer.
#[derive(Debug)]
pub(super) struct Health {
    /// End of its `Retry-After` (503).
    rests: Cell<Option<Instant>>,
    /// Whether it has failed since the last success; if not, the outlier detector is not consulted.
    troubled: Cell<bool>,
    /// How many producers of the worker are unwell. As long as none is, a selection among hundreds of candidates looks
    /// none of them up.
    unwell: Rc<Cell<usize>>,
}

impl Health {
    pub(super) fn new(unwell: Rc<Cell<usize>>) -> Self {
        Self {
            rests: Cell::new(None),
            troubled: Cell::new(false),
            unwell,
        }
    }

    pub(super) fn is_troubled(&self) -> bool {
        self.troubled.get()
    }

    pub(super) fn set_troubled(&self, troubled: bool) {
        self.counted(|| self.troubled.set(troubled));
    }

    pub(super) fn rests_until(&self) -> Option<Instant> {
        self.rests.get()
    }

    pub(super) fn rest_until(&self, until: Option<Instant>) {
        if until.is_some() || self.rests.get().is_some() {
            self.counted(|| self.rests.set(until));
        }
    }

    fn is_unwell(&self) -> bool {
        self.troubled.get() || self.rests.get().is_some()
    }

    fn counted(&self, change: impl FnOnce()) {
        let before = usize::from(self.is_unwell());
        change();
        let now = usize::from(self.is_unwell());
        self.unwell.set(self.unwell.get() + now - before);
    }
}

impl Drop for Health {
    fn drop(&mut self) {
        self.unwell.set(self.unwell.get() - usize::from(self.is_unwell()));
    }
}

/// A service and the rates its requests must keep.
pub(super) type ServiceRates = (Box<str>, Rc<[Rc<Share>]>);

/// Overload that a producer has reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reduction {
    pub(super) timestamp: OffsetDateTime,
    pub(super) until: Instant,
    pub(super) share: f64,
}

impl Peer {
    /// Whether its circuit lets a request pass.
    pub(super) fn passes(&self, now: Instant) -> bool {
        !self.health.is_troubled() || self.breaker.borrow_mut().allow(now)
    }

    /// Whether its last failure was before this moment.
    pub(crate) fn failed_before(&self, moment: Instant) -> bool {
        self.failed.get().is_some_and(|failed| failed < moment)
    }

    /// Whether it has sent `Retry-After` since the last success; if not, the clock is not read.
    pub(crate) fn has_rested(&self) -> bool {
        self.health.rests_until().is_some()
    }

    pub(super) fn sheds(&self, priority: u8, spared: u8, now: Instant) -> bool {
        let Some(reduction) = self.overloaded.get() else {
            return false;
        };
        if now >= reduction.until {
            return false;
        }
        if priority <= spared {
            return false;
        }
        let mut shed = self.shed.get();
        let discards = shed.next(reduction.share);
        self.shed.set(shed);
        discards
    }

    /// Stores the newest report of an answer. A report that is not newer than the stored one is ignored
    /// (TS 29.500 §6.4.3.3): it was overtaken, or repeats a report whose validity counts from its first reception.
    /// `clock` is what its timestamp is compared with.
    pub(super) fn take_oci(&self, headers: &Fields, now: Instant, clock: OffsetDateTime) {
        let reports = headers
            .get_all(names::OCI)
            .filter_map(|value| Oci::parse(value.to_str().ok()?).ok())
            .flat_map(|oci| oci.0);
        let newest = reports
            .filter(|element| is_of_producer(&element.scope))
            .max_by_key(|element| {
                let correct = !is_ahead(element.timestamp, clock);
                (correct, element.timestamp, element.reduction)
            });
        let Some(element) = newest else { return };
        let stored = self.overloaded.get().map(|known| Stored {
            made: known.timestamp,
            valid: now < known.until,
        });
        if !replaces(element.timestamp, stored, clock) {
            return;
        }
        let validity = match element.reduction {
            0 => Duration::ZERO,
            _ => element.validity.min(MOST_VALID),
        };
        self.overloaded.set(Some(Reduction {
            timestamp: element.timestamp,
            until: now + validity,
            share: f64::from(element.reduction.min(100)) / 100.0,
        }));
    }
}

/// Whether the scope of a report is the answering producer: its instance or service, or a set it is in.
fn is_of_producer(scope: &Scope) -> bool {
    matches!(
        scope,
        Scope::NfInstance(_, None)
            | Scope::NfSet(_, None)
            | Scope::ServiceInstance(_, _, None)
            | Scope::ServiceSet(_, None)
    )
}
