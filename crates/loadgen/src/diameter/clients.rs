//! The Diameter connections of a generator thread.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use rand::rngs::SmallRng;

use super::base::Introduction;
use super::habits::Habits;
use super::line::{Around, Line};
use super::requests::{Requests, Turn};
use crate::engine::{Poller, Readiness};
use crate::load::{Carrier, Ended, Ledger, Ticket, Traffic};

/// Bytes read at once.
const GULP: usize = 256 * 1024;

/// A simulated client and the addresses that it connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Where the function under test listens.
    pub address: SocketAddr,
    /// The address that it connects to after a connection to the first has failed or ended, and vice versa.
    pub other: Option<SocketAddr>,
    /// Identity of the client.
    pub introduction: Introduction,
}

/// A request in flight, in the list by which late ones are found.
#[derive(Clone, Copy)]
struct Deadline {
    at: Duration,
    line: u32,
    id: u32,
}

/// The Diameter connections of a generator thread, each a node of its own; they send in turn.
pub struct Clients {
    lines: Vec<Line>,
    next_line: usize,
    requests: Box<dyn Requests>,
    timeout: Duration,
    deadlines: VecDeque<Deadline>,
    message: Vec<u8>,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Clients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clients")
            .field("lines", &self.lines.len())
            .finish_non_exhaustive()
    }
}

impl Clients {
    /// Creates clients that connect later and send what `requests` makes; a request without an answer after `timeout`
    /// has failed.
    #[must_use]
    pub fn new(peers: Vec<Peer>, requests: Box<dyn Requests>, timeout: Duration) -> Self {
        Self::with_habits(peers, requests, timeout, &Habits::default())
    }

    /// As [`Clients::new`], of clients with habits.
    #[must_use]
    pub fn with_habits(
        peers: Vec<Peer>,
        requests: Box<dyn Requests>,
        timeout: Duration,
        habits: &Habits,
    ) -> Self {
        let lines = peers.into_iter().enumerate().map(|(number, peer)| {
            // End-to-End Identifiers of different nodes may be equal (RFC 6733 §3).
            let seed = (number as u32).wrapping_mul(0x9e37_79b9);
            Line::new(
                (peer.address, peer.other),
                peer.introduction,
                number,
                seed,
                habits.clone(),
            )
        });
        Self {
            lines: lines.collect(),
            next_line: 0,
            requests,
            timeout,
            deadlines: VecDeque::new(),
            message: Vec::new(),
            buffer: vec![0; GULP],
        }
    }

    /// The next connection in turn that may take a request; any when none may.
    fn turn(&mut self) -> usize {
        let mut at = self.next_line;
        for _ in 0..self.lines.len() {
            at = self.next_line;
            self.next_line = (at + 1) % self.lines.len();
            if self.lines[at].has_room() {
                break;
            }
        }
        at
    }
}

impl From<Clients> for Traffic {
    fn from(clients: Clients) -> Self {
        Self::connected(clients.requests.operations(), Box::new(clients))
    }
}

impl Carrier for Clients {
    fn ensure(&mut self, poller: &Poller, now: Duration, ledger: &mut Ledger) {
        for line in &mut self.lines {
            line.keep(poller, ledger, now);
        }
    }

    fn serve(&mut self, event: Readiness, poller: &Poller, now: Duration, ledger: &mut Ledger) {
        let Some(line) = self.lines.get_mut(event.token as usize) else {
            return;
        };
        if event.readable {
            let mut around = Around {
                requests: &mut *self.requests,
                poller,
                ledger,
                now,
            };
            line.receive(&mut self.buffer, &mut around);
            line.receive_rest(&mut self.buffer, &mut around);
        }
        line.dirty |= event.writable;
    }

    fn give_up(&mut self, now: Duration, ledger: &mut Ledger) {
        while let Some(deadline) = self.deadlines.pop_front_if(|deadline| deadline.at <= now) {
            let line = &mut self.lines[deadline.line as usize];
            // The identifier may have been reused; then the intended time differs.
            let late = line
                .pending(deadline.id)
                .is_some_and(|sent| sent.intended + self.timeout == deadline.at);
            if late && let Some(sent) = line.forget(deadline.id) {
                ledger.end(&sent, Ended::Late, now);
            }
        }
    }

    fn lost(&mut self, ticket: &Ticket) {
        self.requests.lost(ticket);
    }

    fn send(&mut self, intended: Duration, random: &mut SmallRng, ledger: &mut Ledger) {
        let at = self.turn();
        let Some(line) = self.lines.get(at) else { return };
        self.message.clear();
        let turn = Turn {
            line: at,
            introduction: &line.introduction,
        };
        let next = self.requests.next(random, turn, &mut self.message);
        ledger.offer(next.ticket);
        let Some(line) = self.lines.get_mut(next.line).filter(|line| line.has_room()) else {
            return ledger.refuse(next.ticket, false);
        };
        if ledger.is_full() {
            return ledger.refuse(next.ticket, true);
        }
        let sent = ledger.send(next.ticket, intended);
        match line.send(&mut self.message, sent) {
            Some(id) => self.deadlines.push_back(Deadline {
                at: intended + self.timeout,
                line: next.line as u32,
                id,
            }),
            None => ledger.end(&sent, Ended::Lost, intended),
        }
    }

    fn flush(&mut self, poller: &Poller, now: Duration, ledger: &mut Ledger) {
        for line in self.lines.iter_mut().filter(|line| line.dirty) {
            line.flush(poller, ledger, now);
        }
    }

    fn connections(&self) -> u32 {
        self.lines.iter().filter(|line| line.is_open()).count() as u32
    }

    fn bytes(&self) -> (u64, u64) {
        self.lines
            .iter()
            .map(Line::bytes)
            .fold((0, 0), |sum, b| (sum.0 + b.0, sum.1 + b.1))
    }
}
