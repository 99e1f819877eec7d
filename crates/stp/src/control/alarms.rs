//! Alarms of links, hops and destinations.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ss7_proto::asp::AspState;
use ss7_proto::m3ua::TrafficMode;
use telemetry::{AlarmKind, Alarms, Severity};

use super::ssnm::available;
use super::{Inner, id};
use crate::state::State;
use crate::tables::Hop;

/// A link carries no traffic.
pub(crate) const LINK_DOWN: AlarmKind = AlarmKind {
    number: 10570,
    name: "STP Link Unavailable",
    severity: Severity::Major,
    text: "The peer of a link is not active: the other links of its application server or link set carry the traffic.",
    advice: "Check the reason in the alarm and in `signalbox stp links`: association, ASPUP, ASPAC, routing context.",
};
/// An application server or link set takes no messages.
pub(crate) const HOP_DOWN: AlarmKind = AlarmKind {
    number: 10571,
    name: "STP Hop Unavailable",
    severity: Severity::Major,
    text: "No link of an application server or link set is active.",
    advice: "Check its links in `signalbox stp links`.",
};
/// Messages to a destination are not delivered.
pub(crate) const DESTINATION_UNREACHABLE: AlarmKind = AlarmKind {
    number: 10572,
    name: "STP Destination Unreachable",
    severity: Severity::Critical,
    text: "No route to a destination is available: messages to it are dropped, and ASPs are notified (DUNA).",
    advice: "Check the routes of the destination in `signalbox stp routes`, and their links.",
};

/// A link carries no traffic by request of an operator.
pub(crate) const LINK_INHIBITED: AlarmKind = AlarmKind {
    number: 10573,
    name: "STP Link Inhibited",
    severity: Severity::Minor,
    text: "An operator of this STP or of the adjacent node has inhibited a link: the others of its link set carry the traffic.",
    advice: "End it when the work on the link is done: `signalbox stp uninhibit LINK` at the side that has inhibited it.",
};

/// Peers connect in this time after the start: links that have not been up yet, and what they lead to, have no alarms before.
const GRACE: Duration = Duration::from_secs(10);

/// The time after the start.
pub(super) struct Grace {
    until: Instant,
    is_over: bool,
    /// Links that have carried traffic.
    been_up: HashSet<usize>,
}

impl Grace {
    pub(super) fn new() -> Self {
        Self {
            until: Instant::now() + GRACE,
            is_over: false,
            been_up: HashSet::new(),
        }
    }

    pub(super) fn wake(&self) -> Option<Instant> {
        (!self.is_over).then_some(self.until)
    }
}

impl Inner {
    pub(super) fn tick_grace(&mut self, now: Instant) {
        if let Some(grace) = &mut self.grace {
            grace.is_over = grace.until <= now;
        }
    }

    /// Whether none of these links has been up yet, shortly after the start.
    fn spares(&self, links: &[usize]) -> bool {
        let grace = self.grace.as_ref();
        grace.is_some_and(|grace| !links.iter().any(|link| grace.been_up.contains(link)))
    }

    /// Whether the time after the start has just ended.
    fn follow_grace(&mut self) -> bool {
        if self.grace.as_ref().is_none_or(|grace| grace.is_over) {
            return self.grace.take().is_some();
        }
        let links = 0..self.tables.links.len();
        let up: Vec<usize> = links.filter(|link| self.reason(*link).is_none()).collect();
        if let Some(grace) = &mut self.grace {
            grace.been_up.extend(up);
        }
        false
    }

    /// Why a link carries no traffic; `None` when it does.
    pub(super) fn reason(&self, link: usize) -> Option<String> {
        let mut mine = self.tables.hops_of(link).peekable();
        if mine.peek().is_none() {
            return Some("belongs to no application server or link set".to_owned());
        }
        if mine.any(|(at, _)| self.is_active(link, at)) {
            return None;
        }
        let status = self.links.get(link);
        let Some(peer) = status.and_then(|status| status.peer) else {
            let failure = status.and_then(|status| status.failure.clone());
            return Some(failure.unwrap_or_else(|| "no association yet".to_owned()));
        };
        // Links of M2PA and IPA say how far they have come.
        if let Some(stage) = status
            .map(|status| status.stage)
            .filter(|stage| !stage.is_empty())
        {
            return Some(format!("associated with {peer}, {stage}"));
        }
        let asp = self
            .asps
            .get(link)
            .and_then(Option::as_ref)
            .map(ss7_proto::asp::Asp::state);
        Some(match asp {
            Some(AspState::Down) => format!("associated with {peer}, which has not acknowledged ASPUP"),
            Some(_) => format!("associated with {peer}, which has not acknowledged ASPAC"),
            None if self.stands_by(link) => {
                format!("associated with {peer}, which stands by: another ASP is active")
            }
            None if self.gateway.is_up(id(link)) => {
                format!("associated with {peer}, which has sent ASPUP and no ASPAC that was accepted")
            }
            None => format!("associated with {peer}, which has sent no ASPUP"),
        })
    }

    /// Whether the peer of a link is up and inactive because another ASP has the traffic, as override means it (RFC 4666
    /// §4.3.4.3).
    fn stands_by(&self, link: usize) -> bool {
        let has_active = |(at, hop): (usize, &Hop)| {
            hop.mode == TrafficMode::Override && hop.links.iter().any(|other| self.is_active(*other, at))
        };
        self.gateway.is_up(id(link)) && self.tables.hops_of(link).all(has_active)
    }

    /// Raises and clears alarms by the state that follows another one.
    pub(super) fn alarm(&mut self, alarms: &Alarms, before: &State, state: &State) {
        let is_settled = self.follow_grace();
        for (at, link) in self.tables.links.iter().enumerate() {
            let reason = self
                .reason(at)
                .filter(|_| !self.stands_by(at) && !self.spares(&[at]));
            alarms.set(&LINK_DOWN, &link.name, reason);
            let (state, by) = self.condition(at);
            alarms.set(
                &LINK_INHIBITED,
                &link.name,
                Some(by).filter(|_| state == "inhibited"),
            );
        }
        for (hop, state) in self.tables.hops.iter().zip(&state.forward.hops) {
            let detail = match (state.up.is_empty(), state.pending) {
                (false, _) if state.restarting => Some("MTP restart: TRA is awaited"),
                (false, _) => None,
                (true, true) => Some("no ASP is active; messages are queued"),
                (true, false) => Some("no link is active"),
            };
            let detail = detail.filter(|_| !self.spares(&hop.links));
            alarms.set(&HOP_DOWN, &hop.name, detail.map(str::to_owned));
        }
        let destinations = state
            .tables
            .routes
            .destinations
            .iter()
            .zip(&state.forward.destinations);
        // There may be thousands, and few of them change at a time.
        let is_same = Arc::ptr_eq(&before.tables, &state.tables) && !is_settled;
        let stays = |at: usize| is_same && available(before, at) == available(state, at);
        for (_, (destination, hops)) in destinations.enumerate().filter(|(at, _)| !stays(*at)) {
            let name = destination.cluster.show(state.tables.points.plan);
            let via = destination
                .via
                .iter()
                .filter_map(|via| self.tables.hops.get(via.hop));
            let is_down = hops.is_empty() && !via.clone().all(|hop| self.spares(&hop.links));
            let via: Vec<&str> = via.map(|hop| hop.name.as_str()).collect();
            let detail = is_down.then(|| format!("routes by {}: none is available", via.join(", ")));
            alarms.set(&DESTINATION_UNREACHABLE, &name, detail);
        }
    }

    /// Clears the alarms of destinations that a reload has removed.
    pub(super) fn forget(&self, alarms: &Alarms, before: &State) {
        if Arc::ptr_eq(&self.tables, &before.tables) {
            return;
        }
        for destination in &before.tables.routes.destinations {
            let mut now = self.tables.routes.destinations.iter();
            if !now.any(|one| one.cluster == destination.cluster) {
                alarms.clear(
                    &DESTINATION_UNREACHABLE,
                    &destination.cluster.show(before.tables.points.plan),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::transfers::tests::{bring_up, fail, started};
    use super::*;
    use crate::config::NumberingPlan;

    #[test]
    fn what_has_not_been_up_yet_has_alarms_after_the_time_of_grace() {
        let new = || started(NumberingPlan::Itu, "2", ["3".to_owned()].into_iter());
        let numbers = |control: &super::super::Control| {
            let mut numbers: Vec<u32> = control.alarms.active().iter().map(|one| one.number).collect();
            numbers.sort_unstable();
            numbers
        };
        let all = [10570, 10571, 10572, 10572];
        let control = new();
        control.tick(Instant::now());
        assert!(numbers(&control).is_empty());
        assert!(control.wake().is_some_and(|at| at <= Instant::now() + GRACE));
        control.tick(Instant::now() + GRACE);
        assert_eq!(numbers(&control), all);
        bring_up(&control);
        assert!(numbers(&control).is_empty());

        // What has been up has them at once.
        let control = new();
        bring_up(&control);
        fail(&control);
        assert_eq!(numbers(&control), all);
    }
}
