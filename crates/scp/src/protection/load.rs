//! Overload control of a worker.
//!
//! The shedder, common to all functions, decides by the waiting time of requests. In addition the requests in flight and
//! their memory are bounded, because a request that waits for a slow producer holds memory but no CPU. The last quarter
//! of both bounds is reserved for important requests.

use std::cell::Cell;
use std::time::Duration;

use function::sbi::Offer;
use function::{Admission, Meters, Offered, Shedder, Shedding, Step, WaitingTime};
use sbi::Request;

use crate::config::Protection;

/// Load and requests in flight of one worker.
pub(crate) struct Load {
    shedder: Shedder,
    in_flight: Cell<u32>,
    most_in_flight: Cell<u32>,
    /// Memory of the connections of this worker, in percent of `server.maxMemory`, when it was sampled last.
    memory: Cell<u8>,
}

/// A request with the priority that this SCP gives it.
struct Prioritised<'a> {
    request: &'a Request,
    priority: u8,
    /// Whether the date of the request counts (`lateRequests.detect`).
    dated: bool,
}

impl Offered for Prioritised<'_> {
    fn priority(&self) -> u8 {
        self.priority
    }

    fn is_late(&self, waited: Duration) -> Option<bool> {
        self.dated.then(|| Offer(self.request).is_late(waited)).flatten()
    }
}

/// Settings of the shedder.
fn shedding(settings: &Protection) -> Shedding {
    let steps = settings.overload.iter().map(|step| Step {
        level: step.level.clone(),
        shares: vec![step.discard.fraction()],
        spare: None,
    });
    Shedding {
        waiting: match settings.target_load {
            Some(_) => settings.waiting.clone(),
            None => WaitingTime::off(),
        },
        steps: steps.collect(),
        classes: 1,
        apart: false,
        spare: settings.spare_priority,
        kept: settings.kept_load.fraction(),
    }
}

fn most_in_flight(settings: &Protection) -> u32 {
    match settings.max_in_flight {
        0 => u32::MAX,
        most => most,
    }
}

impl Load {
    pub(crate) fn new(settings: &Protection, meters: Meters) -> Self {
        Self {
            shedder: Shedder::new(shedding(settings), meters),
            in_flight: Cell::new(0),
            most_in_flight: Cell::new(most_in_flight(settings)),
            memory: Cell::new(0),
        }
    }

    /// Share of its memory limit that the connections of this worker hold, in percent.
    pub(crate) fn holds(&self, memory: u8) {
        self.memory.set(memory);
    }

    /// Takes over other settings; the measured load and the requests in flight stay.
    pub(crate) fn reconfigure(&self, settings: &Protection) {
        self.most_in_flight.set(most_in_flight(settings));
        self.shedder.reconfigure(shedding(settings));
    }

    /// Decides about a request of this priority.
    pub(crate) fn admit(&self, request: &Request, priority: u8, dated: bool) -> Admission {
        let message = Prioritised {
            request,
            priority,
            dated,
        };
        function::sbi::admit_as(&self.shedder, request, 0, &message)
    }

    /// Whether another request of this priority may be in flight; if so it counts, and [`Load::leave`] must follow.
    pub(crate) fn enter(&self, priority: u8) -> bool {
        let below = |used: u64, most: u64| used < most - most * u64::from(priority.min(31)) / (4 * 31);
        let free = below(self.in_flight.get().into(), self.most_in_flight.get().into())
            && below(self.memory.get().into(), 100);
        self.in_flight.set(self.in_flight.get() + u32::from(free));
        free
    }

    /// A request that was in flight has ended.
    pub(crate) fn leave(&self) {
        self.in_flight.set(self.in_flight.get().saturating_sub(1));
    }

    pub(crate) fn shedder(&self) -> &Shedder {
        &self.shedder
    }

    /// Load in percent, as it is reported to others: of processor and waiting time, or of memory if that is higher.
    pub(crate) fn percent(&self) -> u8 {
        let percent = self.shedder.load().clamp(0.0, 100.0) as u8;
        percent.max(self.memory.get())
    }

    /// Share of the requests that is refused, in percent.
    pub(crate) fn reduction(&self) -> u8 {
        (100.0 * self.shedder.reduction()).round().clamp(0.0, 100.0) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::ADMISSION;

    #[test]
    fn the_last_places_are_for_the_more_important() {
        let settings = Protection {
            max_in_flight: 124,
            ..Protection::default()
        };
        let load = Load::new(&settings, Meters::new(&ADMISSION, &telemetry::Registry::new(), 0));
        assert_eq!((0..200).filter(|_| load.enter(31)).count(), 93);
        assert_eq!((0..200).filter(|_| load.enter(15)).count(), 16);
        assert_eq!((0..200).filter(|_| load.enter(0)).count(), 15);
        load.leave();
        assert!(!load.enter(1) && load.enter(0));
    }

    #[test]
    fn the_last_memory_is_for_the_more_important() {
        let settings = Protection::default();
        let load = Load::new(&settings, Meters::new(&ADMISSION, &telemetry::Registry::new(), 0));
        for (memory, least_important) in [
            (0, Some(31)),
            (74, Some(31)),
            (80, Some(24)),
            (99, Some(1)),
            (100, None),
        ] {
            load.holds(memory);
            let admitted = (0..=31).rev().find(|priority| load.enter(*priority));
            assert_eq!(admitted, least_important, "{memory} %");
            assert!(load.percent() >= memory);
        }
    }

    #[test]
    fn a_target_load_that_is_switched_off_switches_the_waiting_time_off() {
        let settings = Protection::default();
        assert_eq!(shedding(&settings).waiting, WaitingTime::default());
        let off = Protection {
            target_load: None,
            ..settings
        };
        assert_eq!(shedding(&off).waiting, WaitingTime::off());
    }
}
