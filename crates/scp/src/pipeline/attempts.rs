//! The order of attempts: the named producer, then the best of the others, then alternates of DNS.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use routing::network::ServiceRef;
use sbi::Fields;
use smallvec::SmallVec;

use super::alternates::{Alternates, InDns};
use super::message::{Caller, Target};
use super::planner::{Plan, Planner, Round};
use super::targets::Location;

/// The source of the next attempt's target.
enum Source {
    /// The request names it.
    Named(Rc<Target>),
    /// A redirection leads to it.
    Redirected(Rc<Target>),
    /// The producer that was tried last, by the SCP at this position.
    NextHop(Rc<Target>, usize),
    /// The producer that was tried last, at another of its endpoints.
    NextEndpoint(Rc<Target>),
    /// The best of the plan's candidates.
    Planned,
    /// An alternate that DNS names.
    Dns,
    /// No target is left.
    Exhausted,
}

/// The attempts of one request: those that were made, and the next.
pub(super) struct Attempts<'a> {
    planner: &'a Planner,
    caller: &'a Caller,
    pub(super) plan: &'a mut Plan,
    source: Source,
    /// The target that the request named.
    named: Option<Rc<Target>>,
    /// The farthest that is chosen now: how far the choice goes, and rerouting after a request was sent.
    pub(super) reach: u8,
    /// Whether the request was sent to a producer.
    sent: bool,
    /// Whether the current attempt follows a redirection.
    redirected: bool,
    /// The position of the SCP that takes the current attempt, where the target is reached through one.
    pub(super) hop: usize,
    /// The targets that were tried, by `host:port`.
    tried: SmallVec<[Arc<str>; 4]>,
    in_dns: InDns,
}

impl<'a> Attempts<'a> {
    pub(super) fn new(planner: &'a Planner, caller: &'a Caller, plan: &'a mut Plan) -> Self {
        let named = plan.named.take();
        Self {
            planner,
            caller,
            source: named.clone().map_or(Source::Planned, Source::Named),
            named,
            reach: plan.reach,
            sent: false,
            redirected: false,
            hop: 0,
            plan,
            tried: SmallVec::new(),
            in_dns: InDns::default(),
        }
    }

    /// The next target; `None` when none is left.
    pub(super) fn next(&mut self, headers: &Fields) -> Option<Rc<Target>> {
        self.redirected = false;
        let target = loop {
            match std::mem::replace(&mut self.source, Source::Planned) {
                Source::Named(target) if self.is_relieved(&target, headers) => {}
                Source::Named(target) | Source::NextEndpoint(target) => {
                    self.hop = self.first_hop(&target);
                    break target;
                }
                Source::Redirected(target) => {
                    self.redirected = true;
                    self.hop = self.first_hop(&target);
                    break target;
                }
                Source::NextHop(target, hop) => {
                    self.hop = hop;
                    break target;
                }
                Source::Planned => {
                    self.complete();
                    if let Some(chosen) = self.choose(headers, self.reach) {
                        let target = self.place(&chosen)?;
                        self.hop = self.first_hop(&target);
                        break target;
                    }
                    if let Some(target) = self.further() {
                        self.hop = 0;
                        break target;
                    }
                    self.source = Source::Dns;
                }
                Source::Dns => match self.in_dns.take(&self.tried) {
                    Some(target) => {
                        self.source = Source::Dns;
                        self.hop = self.first_hop(&target);
                        break target;
                    }
                    None => self.source = Source::Exhausted,
                },
                Source::Exhausted => {
                    self.source = Source::Exhausted;
                    return None;
                }
            }
        };
        self.tried.push(target.peer.authority.clone());
        Some(target)
    }

    /// Whether another producer can serve instead of the named one, which has sent `Retry-After`.
    fn is_relieved(&mut self, named: &Target, headers: &Fields) -> bool {
        let Some(farthest) = self.plan.stage.reroute.reach() else {
            return false;
        };
        if !named.peer.has_rested() || !self.planner.producers.rests(&named.peer, Instant::now()) {
            return false;
        }
        self.complete();
        let other = self.choose_of(headers, farthest, true).is_some();
        if other {
            self.reach = farthest;
        }
        other
    }

    fn place(&self, chosen: &ServiceRef) -> Option<Rc<Target>> {
        let location = Location {
            endpoint: self.planner.targets.first_endpoint(chosen),
            callback: self.plan.callback,
        };
        self.planner.targets.place(chosen, location)
    }

    /// The next target of the plan without a known profile.
    fn further(&self) -> Option<Rc<Target>> {
        let mut further = self.plan.further.iter();
        further.find(|one| !self.has_tried(&one.peer.authority)).cloned()
    }

    /// The first SCP before a target that is not ejected.
    fn first_hop(&self, target: &Target) -> usize {
        let Some(hops) = &target.hops else { return 0 };
        let (producers, now) = (&self.planner.producers, Instant::now());
        let usable = hops.iter().position(|hop| !producers.is_ejected(&hop.peer, now));
        usable.unwrap_or(0)
    }

    /// Prepares another route to the same producer after it was unreachable: through the next SCP, or at another of its
    /// endpoints. Returns whether there is one.
    pub(super) fn another_way(&mut self, failed: &Rc<Target>) -> bool {
        if self.plan.once && self.sent {
            return false;
        }
        if let Some(hops) = &failed.hops {
            let next = self.hop + 1;
            if next < hops.len() {
                self.source = Source::NextHop(failed.clone(), next);
                return true;
            }
            return false;
        }
        let Some(service) = failed.service.as_ref().filter(|_| !self.plan.callback) else {
            return false;
        };
        let endpoints = &service.service().endpoints;
        let next = endpoints.iter().position(|one| !self.has_tried(&one.authority));
        let location = next.map(|endpoint| Location {
            endpoint,
            callback: false,
        });
        let next = location.and_then(|location| self.planner.targets.place(service, location));
        match next {
            Some(next) => {
                self.source = Source::NextEndpoint(next);
                true
            }
            None => false,
        }
    }

    /// Whether the current attempt follows a redirection.
    pub(super) fn is_redirected(&self) -> bool {
        self.redirected
    }

    /// The request was sent.
    pub(super) fn sent(&mut self) {
        self.sent = true;
    }

    /// How many attempts were made before the current one.
    pub(super) fn before(&self) -> usize {
        self.tried.len().saturating_sub(1)
    }

    /// Whether a target was tried, by `host:port`.
    pub(super) fn has_tried(&self, authority: &str) -> bool {
        self.tried.iter().any(|tried| **tried == *authority)
    }

    /// The next attempt follows a redirection.
    pub(super) fn redirect(&mut self, target: Rc<Target>) {
        self.source = Source::Redirected(target);
    }

    /// Whether the consumer has not named this target itself.
    pub(super) fn is_elsewhere(&self, target: &Rc<Target>) -> bool {
        self.plan.discovered || self.named.as_ref().is_none_or(|named| !Rc::ptr_eq(named, target))
    }

    /// The last target could not get the request. Returns whether another producer may be selected: until a request was
    /// sent, the initial selection continues. After that it is rerouting, within the reach of the policy.
    pub(super) fn pass_over(&mut self) -> bool {
        if self.named.is_none() && !self.sent {
            return true;
        }
        match self.plan.stage.reroute.reach() {
            Some(farthest) => {
                self.reach = farthest;
                true
            }
            None => false,
        }
    }

    /// Whether another attempt may follow, no farther away than this.
    pub(super) fn may_follow(&mut self, headers: &Fields, farthest: u8) -> bool {
        self.complete();
        let follows = self.choose(headers, farthest).is_some()
            || self.further().is_some()
            || self.in_dns.has(&self.tried);
        if follows {
            self.reach = farthest;
        }
        follows
    }

    /// Whether rerouting has a known candidate, or is not allowed.
    pub(super) fn needs_no_other(&mut self, headers: &Fields) -> bool {
        let Some(farthest) = self.plan.stage.reroute.reach() else {
            return true;
        };
        self.complete();
        self.choose(headers, farthest).is_some() || self.further().is_some()
    }

    /// Adds the candidates that a discovery has found for a request that names its producer as well.
    pub(super) fn extend(&mut self, found: Rc<Vec<ServiceRef>>) {
        self.plan.others = found;
        if matches!(self.source, Source::Exhausted) {
            self.source = Source::Planned;
        }
    }

    /// Whether there are candidates, and the profile of none of them admits the consumer.
    pub(super) fn nobody_admits(&self, headers: &Fields) -> bool {
        let round = self.round(headers, self.reach, false);
        let others = &self.plan.others;
        !others.is_empty()
            && !others
                .iter()
                .any(|one| self.planner.admits(self.plan, one, &round))
    }

    /// Queries DNS for alternates of a producer that has failed.
    pub(super) async fn look_in_dns(&mut self, alternates: &Alternates, failed: &Rc<Target>, time: Duration) {
        let sought = self.named.as_ref().unwrap_or(failed).clone();
        let planner = self.planner;
        alternates.look(&mut self.in_dns, planner, &sought, time).await;
    }

    fn complete(&mut self) {
        self.planner.complete(self.plan, self.named.as_deref());
    }

    /// The best candidate within reach that has not been tried.
    fn choose(&self, headers: &Fields, reach: u8) -> Option<ServiceRef> {
        self.choose_of(headers, reach, false)
    }

    fn choose_of(&self, headers: &Fields, reach: u8, rested: bool) -> Option<ServiceRef> {
        self.planner
            .select(self.plan, &self.round(headers, reach, rested))
    }

    fn round<'r>(&'r self, headers: &'r Fields, reach: u8, rested: bool) -> Round<'r> {
        Round {
            caller: self.caller,
            headers,
            tried: &self.tried,
            reach,
            rested,
        }
    }
}
