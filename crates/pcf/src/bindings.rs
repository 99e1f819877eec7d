//! Bindings that a worker has in flight and pending at the BSF.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::activity::trail::Mark;
use crate::association::AssociationId;

/// What is to be done at the BSF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// The binding of a session shall be as its addresses are.
    Bind(AssociationId),
    /// The binding at this URI shall be removed; with the trail of its session.
    Unbind(String, Option<Mark>),
}

/// What happens to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It is begun now.
    Now(Job),
    /// It is pending.
    Later,
    /// There is no room.
    Dropped,
}

/// The jobs of a worker.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    pending: RefCell<VecDeque<Job>>,
    in_flight: Cell<usize>,
    discovered: RefCell<Option<(Instant, Rc<[String]>)>>,
}

impl Bindings {
    /// Takes a job.
    pub(crate) fn push(&self, job: Job, parallel: usize, queue: usize) -> Turn {
        if self.in_flight.get() < parallel {
            self.in_flight.set(self.in_flight.get() + 1);
            return Turn::Now(job);
        }
        let mut pending = self.pending.borrow_mut();
        if pending.len() >= queue {
            return Turn::Dropped;
        }
        pending.push_back(job);
        Turn::Later
    }

    /// API roots of BSFs that were discovered less than this time ago.
    pub(crate) fn discovered(&self, now: Instant, time: Duration) -> Option<Rc<[String]>> {
        let discovered = self.discovered.borrow();
        let (at, roots) = discovered.as_ref()?;
        (now.saturating_duration_since(*at) < time).then(|| roots.clone())
    }

    /// Caches API roots that were discovered.
    pub(crate) fn set_discovered(&self, now: Instant, roots: Rc<[String]>) {
        *self.discovered.borrow_mut() = Some((now, roots));
    }

    /// A job is done: the next one that takes its place.
    pub(crate) fn done(&self) -> Option<Job> {
        let next = self.pending.borrow_mut().pop_front();
        if next.is_none() {
            self.in_flight.set(self.in_flight.get().saturating_sub(1));
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_flight_and_pending_is_bounded() {
        let bindings = Bindings::default();
        let job = |number: u8| Job::Bind(AssociationId([number; 16]));
        assert_eq!(bindings.push(job(1), 1, 1), Turn::Now(job(1)));
        assert_eq!(bindings.push(job(2), 1, 1), Turn::Later);
        assert_eq!(bindings.push(job(3), 1, 1), Turn::Dropped);
        assert_eq!(bindings.done(), Some(job(2)));
        assert_eq!(bindings.push(job(4), 1, 1), Turn::Later);
        assert_eq!(bindings.done(), Some(job(4)));
        assert_eq!(bindings.done(), None);
        assert_eq!(bindings.push(job(5), 1, 1), Turn::Now(job(5)));
    }
}
