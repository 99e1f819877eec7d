//! The nodes of a generator thread: they send on its schedule, and receive.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use ss7_proto::m3ua::Data;

use super::counts::{Absence, Counts};
use super::deliveries::{Deliveries, Fates};
use super::link::Link;
use super::messages::Messages;
use super::pending::{Flight, Pending};
use crate::engine::{Poller, Readiness};
use crate::load::{Carrier, Ended, Ledger, TICK, Ticket, Traffic};

/// Octets read at once.
const GULP: usize = 256 * 1024;

/// A simulated node: an ASP that is alone in its application server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its number over all threads.
    pub number: u32,
    /// Where the STP listens.
    pub address: SocketAddr,
    /// The address that it connects from, by which the STP knows it.
    pub source: IpAddr,
    /// What its association carries.
    pub protocol: Protocol,
}

/// What the association of a node carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// M3UA: the node is an ASP.
    M3ua {
        /// Of its application server.
        routing_context: u32,
    },
    /// SCCP in frames of IPA, without a routing label: the name of the node is that of a unit.
    Ipa,
}

/// A node whose association did not become active.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the association of {name} is not active after {} s", patience.as_secs())]
pub struct Unavailable {
    name: String,
    patience: Duration,
}

/// The nodes of a generator thread.
pub struct Nodes {
    links: Vec<Link>,
    /// Their numbers over all threads.
    numbers: Vec<u32>,
    messages: Box<dyn Messages>,
    timeout: Duration,
    pending: Pending,
    /// The last transaction by receiver, sender and link selection.
    last: AHashMap<(usize, usize, u8), u32>,
    absence: Absence,
    counts: Arc<Counts>,
    message: Vec<u8>,
    buffer: Vec<u8>,
    /// Of messages that are exchanged one after the other.
    random: SmallRng,
}

impl std::fmt::Debug for Nodes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nodes")
            .field("links", &self.links.len())
            .finish_non_exhaustive()
    }
}

impl Nodes {
    /// Nodes that send what `messages` makes; a message that has not arrived after `timeout` is lost.
    #[must_use]
    pub fn new(nodes: Vec<Node>, messages: Box<dyn Messages>, timeout: Duration) -> Self {
        let numbers = nodes.iter().map(|node| node.number).collect();
        let links = (0..).zip(nodes).map(|(token, node)| Link::new(node, token));
        Self {
            links: links.collect(),
            numbers,
            messages,
            timeout,
            pending: Pending::default(),
            last: AHashMap::default(),
            absence: Absence::default(),
            counts: Arc::default(),
            message: Vec::new(),
            buffer: vec![0; GULP],
            random: SmallRng::seed_from_u64(1),
        }
    }

    /// With counters and an absence that are shared.
    #[must_use]
    pub fn shared(self, counts: &Arc<Counts>, absence: &Absence) -> Self {
        let (counts, absence) = (counts.clone(), absence.clone());
        Self {
            counts,
            absence,
            ..self
        }
    }

    /// Connects, and waits until each association is active, so that no message of the load meets a node that is not
    /// there yet.
    ///
    /// # Errors
    /// [`Unavailable`].
    pub fn connect(&mut self, patience: Duration) -> Result<(), Unavailable> {
        let begun = Instant::now();
        let late = |links: &[Link]| {
            let link = links.iter().find(|link| !link.is_active());
            let name = link.map_or_else(String::new, |link| link.node.name.clone());
            Err(Unavailable { name, patience })
        };
        let Ok(poller) = Poller::new(TICK) else {
            return late(&self.links);
        };
        let mut ready = Vec::new();
        while !self.links.iter().all(Link::is_active) {
            let now = begun.elapsed();
            if now > patience || poller.wait(&mut ready).is_err() {
                return late(&self.links);
            }
            for event in &ready {
                self.arrive(*event, &poller, now, |_, _| {});
            }
            for link in &mut self.links {
                link.keep(&poller, now, false);
                if link.is_dirty {
                    link.flush(&poller, now);
                }
            }
        }
        self.leave(&poller);
        Ok(())
    }

    /// Another poller watches the associations from now on.
    fn leave(&mut self, poller: &Poller) {
        for link in &mut self.links {
            link.leave(poller);
        }
    }

    /// Sends messages one after the other, each when the one before has arrived or is lost; how many arrived right.
    ///
    /// # Errors
    /// When the system fails to wait.
    pub fn exchange(&mut self, count: u32, patience: Duration) -> io::Result<u64> {
        let poller = Poller::new(TICK)?;
        let mut ledger = Ledger::new(self.messages.operations(), 1);
        let mut random = self.random.clone();
        let (begun, mut ready) = (Instant::now(), Vec::new());
        for _ in 0..count {
            self.ensure(&poller, begun.elapsed(), &mut ledger);
            self.send(begun.elapsed(), &mut random, &mut ledger);
            while ledger.in_flight() > 0 && begun.elapsed() < patience {
                self.flush(&poller, begun.elapsed(), &mut ledger);
                poller.wait(&mut ready)?;
                let now = begun.elapsed();
                for event in &ready {
                    self.serve(*event, &poller, now, &mut ledger);
                }
                self.ensure(&poller, now, &mut ledger);
                self.give_up(now, &mut ledger);
            }
        }
        self.random = random;
        self.leave(&poller);
        // Times of the next load count from its own beginning.
        self.pending.clear();
        Ok(ledger.total().succeeded)
    }

    fn fates(&self) -> Fates<'_> {
        Fates {
            numbers: &self.numbers,
            absence: &self.absence,
            counts: &self.counts,
        }
    }

    /// Reads from the association of an event; `each` gets each MSU with the position of the node.
    fn arrive(
        &mut self,
        event: Readiness,
        poller: &Poller,
        now: Duration,
        mut each: impl FnMut(&mut Deliveries<'_>, &Data<'_>),
    ) {
        let at = event.token as usize;
        let Some(link) = self.links.get_mut(at) else {
            return;
        };
        if event.readable {
            let mut deliveries = Deliveries {
                at,
                now,
                messages: &mut *self.messages,
                pending: &mut self.pending,
                last: &mut self.last,
                fates: Fates {
                    numbers: &self.numbers,
                    absence: &self.absence,
                    counts: &self.counts,
                },
            };
            let read = link.receive(&mut self.buffer, &self.counts, |data| {
                each(&mut deliveries, data);
            });
            if read.is_err() {
                return link.close(poller, now);
            }
        }
        link.is_dirty |= event.writable;
    }
}

impl From<Nodes> for Traffic {
    fn from(nodes: Nodes) -> Self {
        Self::connected(nodes.messages.operations(), Box::new(nodes))
    }
}

impl Carrier for Nodes {
    fn ensure(&mut self, poller: &Poller, now: Duration, _: &mut Ledger) {
        for link in &mut self.links {
            let is_absent = self.absence.is_away(link.node.number);
            link.keep(poller, now, is_absent);
        }
        let active = u64::from(self.connections());
        self.counts.active.store(active, Ordering::Relaxed);
    }

    fn serve(&mut self, event: Readiness, poller: &Poller, now: Duration, ledger: &mut Ledger) {
        self.arrive(event, poller, now, |deliveries, data| {
            deliveries.take(data, ledger);
        });
    }

    fn give_up(&mut self, now: Duration, ledger: &mut Ledger) {
        let Some(before) = now.checked_sub(self.timeout) else {
            return;
        };
        while let Some(flight) = self.pending.pop_before(before) {
            if !flight.is_over {
                self.fates().late(&flight.next);
                ledger.end(&flight.sent, Ended::Late, now);
            }
        }
    }

    fn lost(&mut self, _: &Ticket) {}

    fn send(&mut self, intended: Duration, random: &mut SmallRng, ledger: &mut Ledger) {
        self.message.clear();
        let transaction = self.pending.next();
        let next = self.messages.next(random, transaction, &mut self.message);
        ledger.offer(next.ticket);
        let Some(link) = self.links.get_mut(next.from).filter(|link| link.has_room()) else {
            self.fates().failed(&next);
            return ledger.refuse(next.ticket, false);
        };
        if ledger.is_full() {
            self.fates().failed(&next);
            return ledger.refuse(next.ticket, true);
        }
        link.out.extend_from_slice(&self.message);
        link.is_dirty = true;
        self.pending.push(Flight {
            sent: ledger.send(next.ticket, intended),
            next,
            is_over: false,
        });
    }

    fn flush(&mut self, poller: &Poller, now: Duration, _: &mut Ledger) {
        for link in self.links.iter_mut().filter(|link| link.is_dirty) {
            link.flush(poller, now);
        }
    }

    fn connections(&self) -> u32 {
        self.links.iter().filter(|link| link.is_active()).count() as u32
    }

    fn bytes(&self) -> (u64, u64) {
        let bytes = self.links.iter().map(Link::bytes);
        bytes.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}
