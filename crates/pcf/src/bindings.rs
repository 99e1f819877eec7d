//! Bindings that a worker has in flight and pending at the BSF.

use std::cell::RefCell;
use std::rc::Rc;

use ahash::AHashMap;

use crate::activity::trail::Mark;
use crate::association::AssociationId;
use crate::backlog::{Backlog, Bounds, Place};

/// What is to be done at the BSF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// The binding of a session shall be as its addresses are.
    Bind(AssociationId),
    /// The binding at this URI shall be removed; with the trail of its session.
    Unbind(String, Option<Mark>),
}

impl Job {
    /// The session that it registers.
    fn session(&self) -> Option<AssociationId> {
        match self {
            Self::Bind(id) => Some(*id),
            Self::Unbind(..) => None,
        }
    }
}

/// What happens to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It is begun now.
    Now(Job),
    /// It is pending.
    Later,
    /// Another job of the session is pending, or in flight and followed by this one.
    Joined,
    /// There is no room.
    Dropped,
}

/// How far the registration of a session has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Pending,
    InFlight,
    /// It is in flight, and the session has changed since.
    Overtaken,
}

/// The jobs of a worker. Registrations of one session follow one another: two at a time would create two bindings.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    jobs: Backlog<Job>,
    /// Sessions with a registration that is pending or in flight; bounded as those are.
    sessions: RefCell<AHashMap<AssociationId, Stage>>,
    /// One more than the answers that are late and awaited.
    late: Rc<()>,
}

impl Bindings {
    /// Takes a job.
    pub(crate) fn push(&self, job: Job, parallel: usize, queue: usize) -> Turn {
        let session = job.session();
        if let Some(id) = session.filter(|id| self.sessions.borrow().contains_key(id)) {
            self.again(id);
            return Turn::Joined;
        }
        // A job has the size of its URI, which `queue` bounds well enough.
        let bounds = Bounds {
            parallel,
            queue,
            bytes: usize::MAX,
        };
        match self.jobs.push(job, 0, bounds) {
            Place::InFlight(job) => {
                self.enters(session, Stage::InFlight);
                Turn::Now(job)
            }
            Place::Pending => {
                self.enters(session, Stage::Pending);
                Turn::Later
            }
            Place::None => Turn::Dropped,
        }
    }

    /// The registration of a session that is in flight shall be followed by another.
    pub(crate) fn again(&self, id: AssociationId) {
        let mut sessions = self.sessions.borrow_mut();
        if let Some(stage) = sessions.get_mut(&id).filter(|stage| **stage == Stage::InFlight) {
            *stage = Stage::Overtaken;
        }
    }

    /// A place among the answers that are late and awaited, of which there may be `most`, as long as it is held.
    pub(crate) fn late(&self, most: usize) -> Option<Rc<()>> {
        (Rc::strong_count(&self.late) <= most).then(|| self.late.clone())
    }

    fn enters(&self, session: Option<AssociationId>, stage: Stage) {
        if let Some(id) = session {
            self.sessions.borrow_mut().insert(id, stage);
        }
    }

    /// A job is done: the next one that takes its place.
    pub(crate) fn done(&self, job: Job) -> Option<Job> {
        let session = job.session();
        let stage = session.and_then(|id| self.sessions.borrow_mut().remove(&id));
        let next = match stage {
            Some(Stage::Overtaken) => Some(job),
            _ => self.jobs.done(),
        };
        self.enters(next.as_ref().and_then(Job::session), Stage::InFlight);
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
        assert_eq!(bindings.done(job(1)), Some(job(2)));
        assert_eq!(bindings.push(job(4), 1, 1), Turn::Later);
        assert_eq!(bindings.done(job(2)), Some(job(4)));
        assert_eq!(bindings.done(job(4)), None);
        assert_eq!(bindings.push(job(5), 1, 1), Turn::Now(job(5)));
    }

    #[test]
    fn late_answers_are_bounded() {
        let bindings = Bindings::default();
        let held = [bindings.late(2), bindings.late(2)];
        assert!(held.iter().all(Option::is_some) && bindings.late(2).is_none());
        drop(held);
        assert!(bindings.late(2).is_some());
    }

    #[test]
    fn registrations_of_one_session_follow_one_another() {
        let bindings = Bindings::default();
        let job = |number: u8| Job::Bind(AssociationId([number; 16]));
        assert_eq!(bindings.push(job(1), 2, 9), Turn::Now(job(1)));
        assert_eq!(bindings.push(job(1), 2, 9), Turn::Joined);
        assert_eq!(bindings.push(job(1), 2, 9), Turn::Joined);
        assert_eq!(bindings.push(job(2), 2, 9), Turn::Now(job(2)));
        assert_eq!(bindings.push(job(3), 2, 9), Turn::Later);
        assert_eq!(bindings.push(job(3), 2, 9), Turn::Joined);
        // What has joined one in flight follows it once, what has joined one that was pending is done with it.
        assert_eq!(bindings.done(job(1)), Some(job(1)));
        assert_eq!(bindings.done(job(1)), Some(job(3)));
        assert_eq!(bindings.done(job(2)), None);
        assert_eq!(bindings.done(job(3)), None);
        assert!(bindings.sessions.borrow().is_empty());
        assert!(bindings.jobs.is_idle());
    }
}
