//! Work that a worker does aside from its answers: so much at once, so much pending, and no more.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Jobs of a worker in flight and pending, both within bounds.
#[derive(Debug)]
pub(crate) struct Backlog<J> {
    pending: RefCell<VecDeque<(J, usize)>>,
    bytes: Cell<usize>,
    in_flight: Cell<usize>,
}

/// The bounds of a backlog.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Jobs in flight.
    pub(crate) parallel: usize,
    /// Jobs that are pending.
    pub(crate) queue: usize,
    /// Bytes of the pending jobs.
    pub(crate) bytes: usize,
}

/// What happens to a job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place<J> {
    /// It begins now.
    InFlight(J),
    /// It is pending.
    Pending,
    /// There is no room.
    None,
}

impl<J> Default for Backlog<J> {
    fn default() -> Self {
        Self {
            pending: RefCell::default(),
            bytes: Cell::new(0),
            in_flight: Cell::new(0),
        }
    }
}

impl<J> Backlog<J> {
    /// Takes a job of this size.
    pub(crate) fn push(&self, job: J, size: usize, bounds: Bounds) -> Place<J> {
        if self.in_flight.get() < bounds.parallel {
            self.in_flight.set(self.in_flight.get() + 1);
            return Place::InFlight(job);
        }
        let mut pending = self.pending.borrow_mut();
        let bytes = self.bytes.get().saturating_add(size);
        if pending.len() >= bounds.queue || bytes > bounds.bytes {
            return Place::None;
        }
        self.bytes.set(bytes);
        pending.push_back((job, size));
        Place::Pending
    }

    /// A job in flight is done: the next one that takes its place.
    pub(crate) fn done(&self) -> Option<J> {
        match self.pending.borrow_mut().pop_front() {
            Some((job, size)) => {
                self.bytes.set(self.bytes.get().saturating_sub(size));
                Some(job)
            }
            None => {
                self.in_flight.set(self.in_flight.get().saturating_sub(1));
                None
            }
        }
    }

    /// Whether nothing is in flight or pending.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight.get() == 0 && self.pending.borrow().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_flight_and_pending_is_bounded() {
        let bounds = Bounds {
            parallel: 1,
            queue: 2,
            bytes: 10,
        };
        let backlog = Backlog::default();
        assert_eq!(backlog.push(1, 100, bounds), Place::InFlight(1));
        assert_eq!(backlog.push(2, 6, bounds), Place::Pending);
        assert_eq!(backlog.push(3, 5, bounds), Place::None);
        assert_eq!(backlog.push(4, 4, bounds), Place::Pending);
        assert_eq!(backlog.push(5, 0, bounds), Place::None);
        assert_eq!(backlog.done(), Some(2));
        assert_eq!(backlog.push(6, 6, bounds), Place::Pending);
        assert_eq!((backlog.done(), backlog.done()), (Some(4), Some(6)));
        assert!(!backlog.is_idle());
        assert_eq!(backlog.done(), None);
        assert!(backlog.is_idle());
    }
}
