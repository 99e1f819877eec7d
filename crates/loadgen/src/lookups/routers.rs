//! The connections of a generator thread to a database processor.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use rand::rngs::SmallRng;

use super::Lookups;
use super::link::Link;
use crate::engine::{Poller, Readiness};
use crate::load::{Carrier, Ended, Ledger, Ticket, Traffic};

/// Octets read at once.
const GULP: usize = 256 * 1024;

/// A look-up in flight, in the list by which late ones are found.
#[derive(Clone, Copy)]
struct Deadline {
    intended: Duration,
    link: usize,
    id: u32,
}

/// The connections of a generator thread, each that of a worker of a router; they ask in turn.
pub struct Routers {
    links: Vec<Link>,
    next_link: usize,
    lookups: Box<dyn Lookups>,
    timeout: Duration,
    deadlines: VecDeque<Deadline>,
    value: Vec<u8>,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Routers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Routers")
            .field("links", &self.links.len())
            .finish_non_exhaustive()
    }
}

impl Routers {
    /// Creates a number of connections to a processor, which are made later. A look-up without an answer after `timeout` has
    /// failed.
    #[must_use]
    pub fn new(
        processor: SocketAddr,
        connections: usize,
        lookups: Box<dyn Lookups>,
        timeout: Duration,
    ) -> Self {
        let links = (0..connections.max(1)).map(|token| Link::new(processor, token));
        Self {
            links: links.collect(),
            next_link: 0,
            lookups,
            timeout,
            deadlines: VecDeque::new(),
            value: Vec::new(),
            buffer: vec![0; GULP],
        }
    }

    /// The next connection in turn that has room; none when no connection has.
    fn turn(&mut self) -> Option<usize> {
        for _ in 0..self.links.len() {
            let at = self.next_link;
            self.next_link = (at + 1) % self.links.len();
            if self.links.get(at).is_some_and(Link::has_room) {
                return Some(at);
            }
        }
        None
    }
}

impl From<Routers> for Traffic {
    fn from(routers: Routers) -> Self {
        Self::connected(routers.lookups.operations(), Box::new(routers))
    }
}

impl Carrier for Routers {
    fn ensure(&mut self, poller: &Poller, now: Duration, _: &mut Ledger) {
        for link in &mut self.links {
            link.ensure(poller, now);
        }
    }

    fn serve(&mut self, event: Readiness, poller: &Poller, now: Duration, ledger: &mut Ledger) {
        let Some(link) = self.links.get_mut(event.token as usize) else {
            return;
        };
        if event.readable {
            link.receive(&mut self.buffer, &mut *self.lookups, poller, now, ledger);
        }
        link.is_dirty |= event.writable;
    }

    fn give_up(&mut self, now: Duration, ledger: &mut Ledger) {
        let timeout = self.timeout;
        while let Some(late) = self.deadlines.pop_front_if(|one| one.intended + timeout <= now) {
            let link = self.links.get_mut(late.link);
            if let Some(sent) = link.and_then(|link| link.expire(late.id, late.intended)) {
                ledger.end(&sent, Ended::Late, now);
            }
        }
    }

    fn lost(&mut self, _: &Ticket) {}

    fn has_room(&self) -> bool {
        self.links.iter().any(Link::has_room)
    }

    fn send(&mut self, intended: Duration, random: &mut SmallRng, ledger: &mut Ledger) {
        self.value.clear();
        let question = self.lookups.next(random, &mut self.value);
        ledger.offer(question.ticket);
        if ledger.is_full() {
            return ledger.refuse(question.ticket, true);
        }
        let Some(at) = self.turn() else {
            return ledger.refuse(question.ticket, false);
        };
        let Some(link) = self.links.get_mut(at) else {
            return;
        };
        let sent = ledger.send(question.ticket, intended);
        match link.send(&question, &self.value, sent) {
            Some(id) => self.deadlines.push_back(Deadline {
                intended,
                link: at,
                id,
            }),
            None => ledger.end(&sent, Ended::Lost, intended),
        }
    }

    fn flush(&mut self, poller: &Poller, now: Duration, ledger: &mut Ledger) {
        for link in self.links.iter_mut().filter(|link| link.is_dirty) {
            link.flush(poller, now, ledger);
        }
    }

    fn connections(&self) -> u32 {
        self.links.iter().filter(|link| link.is_connected()).count() as u32
    }

    fn bytes(&self) -> (u64, u64) {
        let each = self.links.iter().map(Link::bytes);
        each.fold((0, 0), |sum, bytes| (sum.0 + bytes.0, sum.1 + bytes.1))
    }
}
