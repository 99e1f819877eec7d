//! Sessions of a thread, by what may happen to them next. Every step takes constant time.

use ahash::AHashMap;
use rand::Rng;
use rand::rngs::SmallRng;

/// A session at a PCEF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) number: u32,
    /// The connection of its PCEF.
    pub(super) line: u16,
    /// CC-Request-Number of its next request.
    pub(super) requests: u32,
    pub(super) call: Option<Call>,
}

/// A call within a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) number: u32,
    /// The connection of its P-CSCF.
    pub(super) line: u16,
    /// Whether the PCEF has reported the charging identifier of its bearer.
    pub(super) is_reported: bool,
}

/// All sessions of a thread.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// Those without a request in flight and without a call, and those with one.
    idle: Vec<Session>,
    talking: Vec<Session>,
    /// Those with a request in flight, by number.
    busy: AHashMap<u32, Session>,
    /// Sessions that the PCRF has accepted, with the names of the rules of their calls.
    rules: AHashMap<u32, Vec<Vec<u8>>>,
}

impl Sessions {
    pub(super) fn idle(&self) -> usize {
        self.idle.len()
    }

    pub(super) fn talking(&self) -> usize {
        self.talking.len()
    }

    /// Takes any session without a call.
    pub(super) fn take_idle(&mut self, random: &mut SmallRng) -> Option<Session> {
        take(&mut self.idle, random)
    }

    /// Takes any session with a call.
    pub(super) fn take_talking(&mut self, random: &mut SmallRng) -> Option<Session> {
        take(&mut self.talking, random)
    }

    /// A request of this session is in flight.
    pub(super) fn begin(&mut self, session: Session) {
        self.busy.insert(session.number, session);
    }

    /// The request has ended.
    pub(super) fn end(&mut self, number: u32) -> Option<Session> {
        self.busy.remove(&number)
    }

    /// The session continues.
    pub(super) fn keep(&mut self, session: Session) {
        self.rules.entry(session.number).or_default();
        match session.call {
            Some(_) => self.talking.push(session),
            None => self.idle.push(session),
        }
    }

    /// The session is over.
    pub(super) fn forget(&mut self, number: u32) {
        self.rules.remove(&number);
    }

    /// Whether there is such a session at its PCEF.
    pub(super) fn knows(&self, number: u32) -> bool {
        self.rules.contains_key(&number)
    }

    /// The rules that the PCRF has installed in a session beside those of its creation.
    pub(super) fn rules(&mut self, number: u32) -> Option<&mut Vec<Vec<u8>>> {
        self.rules.get_mut(&number)
    }
}

/// Takes any of these.
pub(crate) fn take<T>(from: &mut Vec<T>, random: &mut SmallRng) -> Option<T> {
    if from.is_empty() {
        return None;
    }
    let at = random.random_range(0..from.len());
    Some(from.swap_remove(at))
}
