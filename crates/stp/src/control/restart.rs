//! MTP restart (Q.704 §9): of this STP, and of the nodes behind its link sets of M2PA.

use std::time::Instant;

use ss7_proto::mtp3::{Management, Restart};

use super::Inner;
use super::links::to_peer;
use crate::config::Mtp;
use crate::state::State;
use crate::tables::Tables;

/// Link sets of M2PA as neighbours of a restart.
pub(super) struct Restarts {
    machine: Restart,
    /// The hops of neighbours, by their positions.
    hops: Vec<usize>,
    /// Hops whose nodes get TFP for all that is inaccessible, and TRA, with the next state.
    pub(super) allowed: Vec<usize>,
}

impl Restarts {
    pub(super) fn new(mtp: &Mtp, tables: &Tables) -> Self {
        let hops = tables.hops.iter().enumerate();
        let hops: Vec<usize> = hops
            .filter(|(_, hop)| hop.adjacent.is_some())
            .map(|(at, _)| at)
            .collect();
        Self {
            machine: Restart::new(mtp.restart_timers(tables.points.plan), hops.len()),
            hops,
            allowed: Vec::new(),
        }
    }

    pub(super) fn wake(&self) -> Option<Instant> {
        self.machine.wake()
    }

    pub(super) fn tick(&mut self, now: Instant) {
        let allowed = self.machine.tick(now);
        self.allow(allowed);
    }

    /// Whether this STP restarts: it reports no destinations to its neighbours.
    pub(super) const fn is_restarting(&self) -> bool {
        self.machine.is_restarting()
    }

    /// Whether a link set carries no traffic because this STP or its neighbour restarts.
    pub(super) fn holds(&self, hop: usize) -> bool {
        let neighbour = self.neighbour(hop);
        neighbour.is_some_and(|neighbour| self.machine.holds(neighbour))
    }

    fn neighbour(&self, hop: usize) -> Option<usize> {
        self.hops.iter().position(|one| *one == hop)
    }

    fn allow(&mut self, neighbours: Vec<usize>) {
        let hops = neighbours.into_iter().filter_map(|at| self.hops.get(at));
        self.allowed.extend(hops);
    }
}

impl Inner {
    /// TRA of the node behind a link.
    pub(super) fn traffic_restart(&mut self, link: usize, now: Instant) {
        // TFP came before.
        self.apply_transfers(now);
        let hop = self.tables.set_of(link);
        if let Some(neighbour) = hop.and_then(|hop| self.restarts.neighbour(hop)) {
            let allowed = self.restarts.machine.allowed(neighbour, now);
            self.restarts.allow(allowed);
        }
    }

    /// TRW of the node behind a link.
    pub(super) fn traffic_restart_waiting(&mut self, link: usize, now: Instant) {
        let hop = self.tables.set_of(link);
        if let Some(neighbour) = hop.and_then(|hop| self.restarts.neighbour(hop)) {
            let allowed = self.restarts.machine.waits(neighbour, now);
            self.restarts.allow(allowed);
        }
    }

    /// TRW for nodes that await the TRA of this STP.
    pub(super) fn restart_notices(&mut self, next: &State) -> Vec<(usize, Vec<u8>)> {
        let waiting = self.restarts.machine.take_waiting().into_iter();
        let hops = waiting.filter_map(|at| self.restarts.hops.get(at).copied());
        hops.filter_map(|hop| to_peer(next, Some(hop), Management::TrafficRestartWaiting))
            .collect()
    }

    /// Follows the links of each set: the first one that is available begins a restart.
    pub(super) fn follow_restarts(&mut self, before: &State, now: Instant) {
        for neighbour in 0..self.restarts.hops.len() {
            let Some(hop) = self.restarts.hops.get(neighbour).copied() else {
                continue;
            };
            if !self.sets.has_link(hop) {
                let is_in_service = self.sets.is_in_service(hop);
                self.restarts.machine.unavailable(neighbour, is_in_service);
                continue;
            }
            let adjacent = self.tables.hops.get(hop).and_then(|hop| hop.adjacent);
            let was_accessible = adjacent.is_some_and(|code| before.is_reachable(code));
            let allowed = self.restarts.machine.available(neighbour, was_accessible, now);
            self.restarts.allow(allowed);
        }
    }
}
