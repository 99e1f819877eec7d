//! The sessions of a thread's AFs: free ones, those with a request in flight, and each by its number.
//!
//! Every step takes constant time: a generator that slows down when answers are late would measure itself.

use std::sync::Arc;

use ahash::AHashMap;

use super::Ue;

/// A session of an AF.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// The connection of its AF.
    pub(super) line: u16,
    pub(super) number: u32,
    /// Position of its priority among those of the plan.
    pub(super) priority: u8,
    pub(super) ue: Option<Arc<Ue>>,
}

/// State of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Free, here in `idle`.
    Idle(usize),
    /// With a request in flight.
    Busy,
    /// The same, and to be ended after it.
    Doomed,
    /// Free, and to be ended next.
    Aborted,
}

/// All sessions of a thread.
#[derive(Debug, Default)]
pub(super) struct Held {
    idle: Vec<Session>,
    aborted: Vec<Session>,
    busy: Vec<Option<Session>>,
    /// Free slots in `busy`.
    free: Vec<u32>,
    places: AHashMap<u32, Place>,
}

impl Held {
    /// Sessions that exist or are being created.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Sessions that are free and may continue.
    pub(super) fn idle(&self) -> usize {
        self.idle.len()
    }

    /// Removes a free session, by its position among them.
    pub(super) fn take_idle(&mut self, at: usize) -> Session {
        let session = self.idle.swap_remove(at);
        self.places.remove(&session.number);
        if let Some(moved) = self.idle.get(at) {
            self.places.insert(moved.number, Place::Idle(at));
        }
        session
    }

    /// Removes a session that is to be ended.
    pub(super) fn take_aborted(&mut self) -> Option<Session> {
        let session = self.aborted.pop()?;
        self.places.remove(&session.number);
        Some(session)
    }

    /// A request of this session is in flight; returns the slot that [`Held::end`] takes.
    pub(super) fn begin(&mut self, session: Session) -> u32 {
        self.places.insert(session.number, Place::Busy);
        match self.free.pop() {
            Some(at) => {
                self.busy[at as usize] = Some(session);
                at
            }
            None => {
                self.busy.push(Some(session));
                self.busy.len() as u32 - 1
            }
        }
    }

    /// The request has ended: its session, and whether it is to be ended next.
    pub(super) fn end(&mut self, ticket: u32) -> Option<(Session, bool)> {
        let session = self.busy.get_mut(ticket as usize)?.take()?;
        self.free.push(ticket);
        let place = self.places.remove(&session.number);
        Some((session, place == Some(Place::Doomed)))
    }

    /// A session continues, or is to be ended next.
    pub(super) fn keep(&mut self, session: Session, is_doomed: bool) {
        let number = session.number;
        let (place, sessions) = match is_doomed {
            true => (Place::Aborted, &mut self.aborted),
            false => (Place::Idle(self.idle.len()), &mut self.idle),
        };
        sessions.push(session);
        self.places.insert(number, place);
    }

    /// Whether there is a session of this number.
    pub(super) fn knows(&self, number: u32) -> bool {
        self.places.contains_key(&number)
    }

    /// The other side asks to end this session.
    pub(super) fn abort(&mut self, number: u32) {
        match self.places.get(&number) {
            Some(Place::Idle(at)) => {
                let session = self.take_idle(*at);
                self.keep(session, true);
            }
            Some(Place::Busy) => {
                self.places.insert(number, Place::Doomed);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: u32) -> Session {
        Session {
            line: 0,
            number,
            priority: 0,
            ue: None,
        }
    }

    #[test]
    fn a_session_is_found_wherever_it_is() {
        let mut held = Held::default();
        (0..4).for_each(|number| held.keep(session(number), false));
        // Another one takes the place of one that is taken out, and is still found.
        assert_eq!(held.take_idle(0).number, 0);
        assert!(!held.knows(0) && (1..4).all(|number| held.knows(number)));
        held.abort(3);
        assert_eq!((held.idle(), held.len()), (2, 3));
        assert_eq!(held.take_aborted().map(|one| one.number), Some(3));
        assert!(held.take_aborted().is_none() && !held.knows(3));
        held.abort(2);
        held.abort(2);
        held.abort(77);
        assert_eq!(held.take_aborted().map(|one| one.number), Some(2));
        assert_eq!(held.take_idle(0).number, 1);
        assert_eq!(held.len(), 0);
    }

    #[test]
    fn one_that_is_busy_ends_when_it_is_free() {
        let mut held = Held::default();
        let (first, second) = (held.begin(session(1)), held.begin(session(2)));
        held.abort(2);
        assert!(held.knows(1) && held.knows(2));
        let (one, is_doomed) = held.end(first).unwrap();
        assert_eq!((one.number, is_doomed), (1, false));
        let (two, is_doomed) = held.end(second).unwrap();
        assert_eq!((two.number, is_doomed), (2, true));
        assert!(held.end(second).is_none() && held.len() == 0);
        held.keep(two, is_doomed);
        assert_eq!(held.take_aborted().map(|one| one.number), Some(2));
        assert_eq!(held.begin(session(3)), second, "slots are reused");
    }
}
