//! Deliveries of UE policies that a worker has pending, in flight to AMFs, and waiting for T3501.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Instant;

use tokio::sync::Notify;

use crate::association::AssociationId;
use crate::association::ue_policy::Delivery;

/// An attempt at a delivery that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) id: AssociationId,
    /// The procedure that it belongs to.
    pub(crate) pti: u8,
    /// Attempts that were made before it.
    pub(crate) attempts: u32,
}

impl Job {
    /// The next attempt at a delivery.
    pub(crate) fn of(id: AssociationId, delivery: &Delivery) -> Self {
        Self {
            id,
            pti: delivery.pti,
            attempts: delivery.attempts,
        }
    }

    /// Whether it is still due: no answer has come, and no other command is in its place.
    pub(crate) fn is_due(&self, delivery: &Delivery) -> bool {
        delivery.is_in_flight() && delivery.pti == self.pti && delivery.attempts == self.attempts
    }
}

/// The jobs of a worker.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    ready: RefCell<VecDeque<Job>>,
    /// In the order of their moments, since T3501 is the same for all.
    timers: RefCell<VecDeque<(Instant, Job)>>,
    in_flight: Cell<usize>,
    wake: Notify,
}

impl Schedule {
    /// Enqueues a job that is due now; false where `most` are pending.
    pub(crate) fn push(&self, job: Job, most: usize) -> bool {
        let mut ready = self.ready.borrow_mut();
        let has_room = ready.len() < most;
        if has_room {
            ready.push_back(job);
            self.wake.notify_one();
        }
        has_room
    }

    /// Has a job due at a moment; false where `most` timers run.
    pub(crate) fn at(&self, moment: Instant, job: Job, most: usize) -> bool {
        let mut timers = self.timers.borrow_mut();
        let has_room = timers.len() < most;
        if has_room {
            timers.push_back((moment, job));
            self.wake.notify_one();
        }
        has_room
    }

    /// Takes a job that is due, unless `parallel` are in flight.
    pub(crate) fn take(&self, now: Instant, parallel: usize) -> Option<Job> {
        if self.in_flight.get() >= parallel {
            return None;
        }
        let mut timers = self.timers.borrow_mut();
        let expired = timers.front().is_some_and(|(moment, _)| *moment <= now);
        let job = match expired {
            true => timers.pop_front().map(|(_, job)| job),
            false => self.ready.borrow_mut().pop_front(),
        }?;
        self.in_flight.set(self.in_flight.get() + 1);
        Some(job)
    }

    /// A job that was taken is done.
    pub(crate) fn done(&self) {
        self.in_flight.set(self.in_flight.get().saturating_sub(1));
        self.wake.notify_one();
    }

    /// The moment of the next timer, unless `parallel` jobs are in flight, whose end comes first.
    pub(crate) fn next_timer(&self, parallel: usize) -> Option<Instant> {
        let next = self.timers.borrow().front().map(|(moment, _)| *moment);
        next.filter(|_| self.in_flight.get() < parallel)
    }

    /// Waits until there is something to do before the next timer.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn job(number: u8) -> Job {
        Job {
            id: AssociationId([number; 16]),
            pti: 0x80,
            attempts: 0,
        }
    }

    #[test]
    fn jobs_are_bounded_and_timers_expire_in_order() {
        let schedule = Schedule::default();
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        assert!(schedule.push(job(1), 1));
        assert!(!schedule.push(job(2), 1));
        assert!(schedule.at(later, job(3), 1));
        assert!(!schedule.at(later, job(4), 1));
        assert_eq!(schedule.take(now, 1), Some(job(1)));
        assert_eq!((schedule.take(later, 1), schedule.next_timer(1)), (None, None));
        schedule.done();
        assert_eq!(
            (schedule.take(now, 1), schedule.next_timer(1)),
            (None, Some(later))
        );
        assert_eq!(schedule.take(later, 1), Some(job(3)));
    }
}
