//! The HTTP/2 connections of a generator thread.

use std::collections::VecDeque;
use std::time::Duration;

use rand::rngs::SmallRng;

use super::carrier::{Carrier, share};
use super::ledger::{Ended, Ledger};
use super::link::{Link, Pending};
use super::{Draft, Plan, Ticket, Workload};
use crate::engine::{Poller, Readiness};

/// Bytes read at once.
const GULP: usize = 256 * 1024;

/// A request in flight, in the list by which late ones are found.
struct Deadline {
    at: Duration,
    link: u32,
    stream: u32,
}

/// Connections that share the requests of a workload in turn.
pub(super) struct HttpClients {
    links: Vec<Link>,
    next_link: usize,
    /// Connections with pending output, each once.
    dirty: Vec<u32>,
    /// Whether a connection may be missing.
    incomplete: bool,
    workload: Box<dyn Workload>,
    authority: String,
    stable: Vec<(&'static str, String)>,
    draft: Draft,
    deadlines: VecDeque<Deadline>,
    timeout: Duration,
    buffer: Vec<u8>,
}

impl HttpClients {
    pub(super) fn new(plan: &Plan, index: usize, count: usize, workload: Box<dyn Workload>) -> Self {
        let links = (0..share(plan.connections, index, count))
            .map(|at| {
                let of_all = at * count + index;
                let target = plan.targets[of_all % plan.targets.len()];
                let source = plan.sources.get(of_all % plan.sources.len().max(1)).copied();
                Link::new(target, plan.tls.clone(), at as u64, &of_all.to_string()).with_source(source)
            })
            .collect();
        Self {
            links,
            next_link: 0,
            dirty: Vec::new(),
            incomplete: true,
            stable: workload.headers(),
            workload,
            authority: plan.authority.clone(),
            draft: Draft::default(),
            deadlines: VecDeque::new(),
            timeout: plan.timeout,
            buffer: vec![0; GULP],
        }
    }

    /// The next connection in turn that may take a request.
    fn free_link(&mut self) -> Option<usize> {
        for _ in 0..self.links.len() {
            let at = self.next_link;
            self.next_link = (self.next_link + 1) % self.links.len();
            if self.links[at].room() > 0 {
                return Some(at);
            }
        }
        None
    }

    /// Records a connection that has pending output, or has closed. With hundreds of connections and a few requests per
    /// turn, a search through all of them would cost more than the requests.
    fn note(&mut self, at: usize) {
        let link = &mut self.links[at];
        if link.dirty && !link.queued {
            link.queued = true;
            self.dirty.push(at as u32);
        }
        self.incomplete |= !link.is_connected();
    }
}

impl Carrier for HttpClients {
    fn ensure(&mut self, poller: &Poller, now: Duration, _ledger: &mut Ledger) {
        if !std::mem::take(&mut self.incomplete) {
            return;
        }
        for at in 0..self.links.len() {
            self.links[at].ensure(poller, now);
            self.note(at);
        }
    }

    fn serve(&mut self, event: Readiness, poller: &Poller, now: Duration, ledger: &mut Ledger) {
        let Some(link) = self.links.get_mut(event.token as usize) else {
            return;
        };
        let mut ended = |pending: Pending, how| ledger.end(&pending.sent, how, now);
        if event.readable {
            link.receive(&mut self.buffer, &mut *self.workload, poller, now, &mut ended);
        }
        link.dirty |= event.writable;
        self.note(event.token as usize);
    }

    fn give_up(&mut self, now: Duration, ledger: &mut Ledger) {
        while let Some(deadline) = self.deadlines.pop_front_if(|deadline| deadline.at <= now) {
            let link = &mut self.links[deadline.link as usize];
            // The stream number may be reused on a new connection; then the intended time differs.
            let late = link
                .pending
                .get(&deadline.stream)
                .is_some_and(|p| p.sent.intended + self.timeout == deadline.at);
            if !late {
                continue;
            }
            if let Some(pending) = link.cancel(deadline.stream) {
                ledger.end(&pending.sent, Ended::Late, now);
            }
            self.note(deadline.link as usize);
        }
    }

    fn lost(&mut self, ticket: &Ticket) {
        self.workload.lost(ticket);
    }

    fn has_room(&self) -> bool {
        let (before, after) = self.links.split_at(self.next_link);
        after.iter().chain(before).any(|link| link.room() > 0)
    }

    fn send(&mut self, intended: Duration, random: &mut SmallRng, ledger: &mut Ledger) {
        self.draft.clear();
        let ticket = self.workload.next(random, &mut self.draft);
        ledger.offer(ticket);
        let link = if ledger.is_full() { None } else { self.free_link() };
        let Some(at) = link else {
            let connected = self.links.iter().any(|link| link.room() > 0);
            return ledger.refuse(ticket, connected);
        };
        let stable: smallvec::SmallVec<[(&str, &str); 8]> = self
            .stable
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let sent = ledger.send(ticket, intended);
        let stream = self.links[at].send(&self.draft, &self.authority, &stable, sent);
        self.deadlines.push_back(Deadline {
            at: intended + self.timeout,
            link: at as u32,
            stream,
        });
        drop(stable);
        self.note(at);
    }

    fn flush(&mut self, poller: &Poller, now: Duration, ledger: &mut Ledger) {
        for at in self.dirty.drain(..) {
            let link = &mut self.links[at as usize];
            link.queued = false;
            link.flush(poller, now, &mut |pending, how| {
                ledger.end(&pending.sent, how, now);
            });
            self.incomplete |= !link.is_connected();
        }
    }

    fn connections(&self) -> u32 {
        self.links
            .iter()
            .filter(|link| link.room() > 0 || !link.pending.is_empty())
            .count() as u32
    }

    fn bytes(&self) -> (u64, u64) {
        self.links
            .iter()
            .map(Link::bytes)
            .fold((0, 0), |sum, b| (sum.0 + b.0, sum.1 + b.1))
    }
}
