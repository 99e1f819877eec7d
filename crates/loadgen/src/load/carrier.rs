//! What carries requests: the connections of a generator thread, in one protocol.

use std::time::Duration;

use rand::rngs::SmallRng;

use super::Ticket;
use super::http::HttpClients;
use super::ledger::Ledger;
use super::{Plan, Workload};
use crate::engine::{Poller, Readiness};

/// The connections of a generator thread.
pub(crate) trait Carrier {
    /// Connects what is not connected.
    fn ensure(&mut self, poller: &Poller, now: Duration, ledger: &mut Ledger);
    /// Reads what a connection has.
    fn serve(&mut self, event: Readiness, poller: &Poller, now: Duration, ledger: &mut Ledger);
    /// Fails the requests whose time is over.
    fn give_up(&mut self, now: Duration, ledger: &mut Ledger);
    /// Fails a request that gets no answer.
    fn lost(&mut self, ticket: &Ticket);
    /// Whether a connection can take a request now.
    fn has_room(&self) -> bool {
        true
    }
    /// Writes the next request to the output, to be flushed.
    fn send(&mut self, intended: Duration, random: &mut SmallRng, ledger: &mut Ledger);
    /// Writes the pending output.
    fn flush(&mut self, poller: &Poller, now: Duration, ledger: &mut Ledger);
    /// Connections that stand.
    fn connections(&self) -> u32;
    /// Bytes read and written so far.
    fn bytes(&self) -> (u64, u64);
}

/// What one generator thread sends, and its part of the whole rate.
pub struct Traffic {
    pub(super) kind: Kind,
    pub(super) weight: f64,
}

pub(super) enum Kind {
    Http(Box<dyn Workload>),
    /// Connections that exist already, with the names of their operations.
    Connected(Vec<String>, Box<dyn Carrier + Send>),
}

impl Traffic {
    /// The traffic of connections that exist already.
    pub(crate) fn connected(operations: Vec<String>, carrier: Box<dyn Carrier + Send>) -> Self {
        Self {
            kind: Kind::Connected(operations, carrier),
            weight: 1.0,
        }
    }

    /// This thread's part of the rate, in proportion to the others'; the default is 1.
    #[must_use]
    pub fn weight(self, weight: f64) -> Self {
        Self { weight, ..self }
    }

    /// Names of the operations. Threads of one generator name the same ones.
    #[must_use]
    pub fn operations(&self) -> Vec<String> {
        match &self.kind {
            Kind::Http(workload) => workload.operations(),
            Kind::Connected(operations, _) => operations.clone(),
        }
    }

    pub(super) fn is_http(&self) -> bool {
        matches!(self.kind, Kind::Http(_))
    }

    /// The connections of this thread, which is number `index` of the `count` that speak its protocol.
    pub(super) fn carrier(self, plan: &Plan, index: usize, count: usize) -> Box<dyn Carrier> {
        match self.kind {
            Kind::Http(workload) => Box::new(HttpClients::new(plan, index, count, workload)),
            Kind::Connected(_, carrier) => carrier,
        }
    }
}

impl std::fmt::Debug for Traffic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Traffic({:?}, weight {})", self.operations(), self.weight)
    }
}

impl From<Box<dyn Workload>> for Traffic {
    fn from(workload: Box<dyn Workload>) -> Self {
        Self {
            kind: Kind::Http(workload),
            weight: 1.0,
        }
    }
}

impl<W: Workload + 'static> From<Box<W>> for Traffic {
    fn from(workload: Box<W>) -> Self {
        Self::from(workload as Box<dyn Workload>)
    }
}

/// How many of `all` number `index` of `count` has, at least one.
pub(super) fn share(all: u32, index: usize, count: usize) -> usize {
    (all as usize / count + usize::from(index < all as usize % count)).max(1)
}
