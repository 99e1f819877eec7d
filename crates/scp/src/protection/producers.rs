//! State of each producer, and whether it may get a request now.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use overload::{BreakerState, CircuitBreaker, Discard, OutlierDetector, Verdict};
use routing::network::ServiceRef;
use sbi::client::{Origin, SendErrorKind};
use sbi::headers::names;
use telemetry::Alarms;

use super::attempt::{Ended, Held, Way, rest_of};
use super::fault::{Record, Says, Sent};
use super::producer::{Health, Peer};
use super::rate::{Rates, Share, Shares};
use super::reports::{Board, Reports};
use super::standing::PeerState;
use crate::alarms::SET_UNAVAILABLE;
use crate::config::Protection;
use crate::events::{AttemptMetrics, Metrics, Unanswered};
use crate::refusal::Refusal;

/// Producers that a worker has sent to, by `host:port`.
pub(crate) struct Peers {
    settings: RefCell<Protection>,
    metrics: Metrics,
    rates: RefCell<Arc<Rates>>,
    shares: Shares,
    most: usize,
    known: RefCell<AHashMap<Arc<str>, Rc<Peer>>>,
    /// How many of them are unwell.
    unwell: Rc<Cell<usize>>,
    outliers: RefCell<OutlierDetector<Arc<str>>>,
    alarms: Alarms,
    worker: usize,
    /// Load reports of producers with known profiles.
    pub(crate) reports: Reports,
}

/// Requests that may be outstanding at one producer.
fn most_outstanding(settings: &Protection) -> u32 {
    match settings.max_outstanding {
        0 => u32::MAX,
        most => most,
    }
}

impl Peers {
    pub(crate) fn new(
        settings: &Protection,
        metrics: &Metrics,
        alarms: Alarms,
        rates: Arc<Rates>,
        board: Arc<Board>,
        worker: usize,
        most: usize,
    ) -> Self {
        Self {
            reports: Reports::new(settings, board),
            settings: RefCell::new(settings.clone()),
            metrics: metrics.clone(),
            rates: RefCell::new(rates),
            shares: Shares::new(worker),
            alarms,
            worker,
            most,
            known: RefCell::default(),
            unwell: Rc::default(),
            outliers: RefCell::new(OutlierDetector::new(settings.outliers.clone())),
        }
    }

    /// Takes over other settings. Circuits, ejections, counts of outstanding requests and reports stay, but for what
    /// a changed setting makes invalid: other `breaker` settings close the circuits, others of `outliers` end the
    /// ejections.
    pub(crate) fn reconfigure(&self, before: &Protection, now: &Protection, rates: Arc<Rates>) {
        let known = self.known.borrow();
        if before.outliers != now.outliers {
            let mut outliers = OutlierDetector::new(now.outliers.clone());
            outliers.set_peers(known.keys().cloned(), Instant::now());
            *self.outliers.borrow_mut() = outliers;
        }
        let other_rates = !Arc::ptr_eq(&rates, &self.rates.borrow());
        if other_rates {
            *self.rates.borrow_mut() = rates;
            self.shares.clear();
        }
        for peer in known.values() {
            peer.most_outstanding.set(most_outstanding(now));
            if before.breaker != now.breaker {
                *peer.breaker.borrow_mut() = CircuitBreaker::new(now.breaker.clone());
            }
            if other_rates {
                peer.rates.borrow_mut().clear();
            }
            if !now.honour_oci {
                peer.overloaded.set(None);
            }
        }
        self.reports.reconfigure(now);
        *self.settings.borrow_mut() = now.clone();
    }

    /// Returns the producer at an origin. Without a known profile it is a separate producer: a request that names a
    /// producer differently from its profile, such as with the other scheme, does not affect that producer.
    pub(crate) fn at(&self, origin: &Origin, instance: Option<&str>, now: Instant) -> Rc<Peer> {
        let mut known = self.known.borrow_mut();
        let key: Cow<'_, str> = match instance {
            Some(_) => origin.authority().into(),
            None => origin.to_string().into(),
        };
        if let Some(peer) = known.get(&*key) {
            return peer.clone();
        }
        if known.len() >= self.most {
            // Evict producers without outstanding requests; they are recreated at their next use.
            known.retain(|_, peer| peer.outstanding.get() > 0);
        }
        let (key, authority): (Arc<str>, Arc<str>) = (key.into(), origin.authority().into());
        let peer = Rc::new(Peer {
            instance: instance.map(Into::into),
            rates: RefCell::default(),
            authority: authority.clone(),
            breaker: RefCell::new(CircuitBreaker::new(self.settings.borrow().breaker.clone())),
            outstanding: Cell::new(0),
            most_outstanding: Cell::new(most_outstanding(&self.settings.borrow())),
            health: Health::new(self.unwell.clone()),
            record: Record::default(),
            failed: Cell::new(None),
            key: key.clone(),
            overloaded: Cell::new(None),
            shed: Cell::new(Discard::new()),
            metrics: AttemptMetrics::new(&self.metrics, &authority),
        });
        known.insert(key, peer.clone());
        self.outliers.borrow_mut().set_peers(known.keys().cloned(), now);
        peer
    }

    /// Whether a producer may be ejected or rest now. If not, none needs to be looked up.
    pub(crate) fn any_unwell(&self) -> bool {
        self.unwell.get() > 0
    }

    /// The producer at an authority of a profile, if it has got a request.
    pub(crate) fn known(&self, authority: &str) -> Option<Rc<Peer>> {
        self.known.borrow().get(authority).cloned()
    }

    /// A producer has registered, or its name has moved: its failures were those of another process or address. What a
    /// later answer clears stays until then.
    pub(crate) fn restore(&self, peer: &Peer) {
        if peer.health.is_troubled() {
            self.outliers.borrow_mut().restore(&*peer.key);
            *peer.breaker.borrow_mut() = CircuitBreaker::new(self.settings.borrow().breaker.clone());
        }
    }

    /// Whether a producer is ejected now.
    pub(crate) fn is_ejected(&self, peer: &Peer, now: Instant) -> bool {
        peer.health.is_troubled() && self.outliers.borrow().is_ejected(&*peer.key, now)
    }

    /// Whether a producer has sent `Retry-After` that has not passed (TS 29.500 §6.4.2.2): another one is selected if
    /// there is one.
    pub(crate) fn rests(&self, peer: &Peer, now: Instant) -> bool {
        peer.health.rests_until().is_some_and(|until| now < until)
    }

    /// Checks whether the producer may get a request now. If so, [`Peers::ended`] must follow.
    ///
    /// # Errors
    /// Why it may not.
    pub(crate) fn may_send(&self, way: Way<'_>, priority: u8, now: Instant) -> Result<(), Held> {
        let (metrics, peer) = (&self.metrics, way.peer);
        let held = |counter: &telemetry::Counter, why| {
            counter.inc();
            Err(why)
        };
        let hop = way.hop().map(|hop| &*hop.peer);
        if self.is_ejected(peer, now) || hop.is_some_and(|hop| self.is_ejected(hop, now)) {
            return held(&metrics.over_ejected, Held::Ejected);
        }
        if peer.outstanding.get() >= peer.most_outstanding.get() {
            return held(&metrics.over_outstanding, Held::Outstanding);
        }
        let settings = self.settings.borrow();
        let sheds = match way.service {
            Some(service) => self.reports.sheds(service, way.hop_name(), priority, now),
            None => settings.honour_oci && peer.sheds(priority, settings.spare_priority, now),
        };
        if sheds {
            return held(&metrics.over_oci, Held::Overloaded);
        }
        // Circuits before rates: the try of a half-open circuit can be released when a rate refuses the request, the
        // token of a rate cannot.
        if !peer.passes(now) {
            return held(&metrics.over_open, Held::Open);
        }
        if hop.is_some_and(|hop| !hop.passes(now)) {
            self.says_nothing(peer);
            return held(&metrics.over_open, Held::Open);
        }
        if !settings.egress.is_empty() && !Share::allow_all(&self.shares_of(peer, way.api), now) {
            self.says_nothing(peer);
            hop.into_iter().for_each(|hop| self.says_nothing(hop));
            return held(&metrics.over_rate, Held::Rate);
        }
        peer.outstanding.set(peer.outstanding.get() + 1);
        Ok(())
    }

    /// Counts a producer whose connections are all at their rate.
    pub(crate) fn at_connection_rate(&self) -> Held {
        self.metrics.over_connection_rate.inc();
        Held::ConnectionRate
    }

    /// As [`Peers::may_send`] for an explanation, without counting.
    ///
    /// # Errors
    /// Why it may not.
    pub(crate) fn would_send(&self, way: Way<'_>, priority: u8, now: Instant) -> Result<(), Refusal> {
        let (peer, settings) = (way.peer, self.settings.borrow());
        let reduction = match way.service {
            Some(service) => self.reports.reduction(service, way.hop_name(), now),
            None => peer
                .overloaded
                .get()
                .filter(|reduction| now < reduction.until)
                .map_or(0.0, |reduction| reduction.share),
        };
        let hop = way.hop().map(|hop| &*hop.peer);
        let both = || std::iter::once(peer).chain(hop);
        let has_room = |share: &Rc<Share>| share.wait(now) == Some(Duration::ZERO);
        let is_open =
            |peer: &Peer| peer.health.is_troubled() && peer.breaker.borrow().state(now) == BreakerState::Open;
        let held = if both().any(|peer| self.is_ejected(peer, now)) {
            Held::Ejected
        } else if peer.outstanding.get() >= peer.most_outstanding.get() {
            Held::Outstanding
        } else if settings.honour_oci && reduction >= 1.0 && priority > settings.spare_priority {
            Held::Overloaded
        } else if both().any(is_open) {
            Held::Open
        } else if !settings.egress.is_empty() && !self.shares_of(peer, way.api).iter().all(has_room) {
            Held::Rate
        } else {
            return Ok(());
        };
        Err(held.refusal())
    }

    /// The shares of the rates that a request for a service to a producer keeps to.
    fn shares_of(&self, peer: &Peer, api: &str) -> Rc<[Rc<Share>]> {
        /// Services with their own shares at one producer at most; the names come from consumers.
        const SERVICES: usize = 64;
        /// Longest name that is cached, in bytes.
        const LONGEST: usize = 64;
        let mut known = peer.rates.borrow_mut();
        if let Some((_, shares)) = known.iter().find(|(name, _)| **name == *api) {
            return shares.clone();
        }
        let (authority, instance) = (&*peer.authority, peer.instance.as_deref());
        let (rates, settings) = (self.rates.borrow(), self.settings.borrow());
        let shares = rates.of_producer(&settings, authority, instance, api, &self.shares);
        if api.len() > LONGEST {
            return shares;
        }
        if known.len() >= SERVICES {
            // Evict any; `rates` still has its limits.
            known.swap_remove(0);
        }
        known.push((api.into(), shares.clone()));
        shares
    }

    /// A request that was sent is cancelled before its end.
    pub(crate) fn abandoned(&self, way: Way<'_>) {
        let peer = way.peer;
        peer.outstanding.set(peer.outstanding.get().saturating_sub(1));
        self.says_nothing(peer);
        way.hop().into_iter().for_each(|hop| self.says_nothing(&hop.peer));
    }

    /// Records the outcome of a request that was sent. `members` returns the alternates of the producer; called before
    /// an ejection.
    pub(crate) fn ended(
        &self,
        way: Way<'_>,
        sent: Sent,
        ended: &Ended<'_>,
        now: Instant,
        members: impl Fn() -> Vec<ServiceRef>,
    ) {
        let peer = way.peer;
        peer.outstanding.set(peer.outstanding.get().saturating_sub(1));
        let hop = way.hop();
        // A request without an answer counts against the SCP before the producer.
        let at_hop = hop.filter(|_| ended.is_of_hop());
        let metrics = at_hop.map_or(&peer.metrics, |hop| &hop.peer.metrics);
        let says = match ended {
            Ended::Answered(status, headers) => {
                metrics.answered(*status);
                if at_hop.is_none() {
                    let rest = rest_of(*status, headers);
                    peer.health
                        .rest_until(rest.and_then(|rest| now.checked_add(rest)));
                }
                match way.service {
                    Some(service) => self.reports.take(headers, service, way.hop_name(), now),
                    None if self.settings.borrow().honour_oci && headers.contains(names::OCI) => {
                        peer.take_oci(headers, now, self.reports.clock());
                    }
                    None => {}
                }
                Says::by_status(*status, sent)
            }
            Ended::Failed(error) => {
                metrics.unanswered(match error.kind {
                    SendErrorKind::Connect(_) | SendErrorKind::NoTls => Unanswered::Connect,
                    SendErrorKind::Timeout => Unanswered::Timeout,
                    _ if error.is_refused_stream() => Unanswered::Refused,
                    SendErrorKind::Reset(_) | SendErrorKind::GoAway => Unanswered::Reset,
                    _ => Unanswered::Other,
                });
                Says::by_error(&error.kind, sent)
            }
        };
        if let Some((hops, _)) = way.hops
            && let Some(hop) = hop
        {
            let says = at_hop.map_or(Says::Well, |_| says);
            let group = || Some(hops.iter().map(|one| one.peer.key.clone()).collect());
            self.judge(&hop.peer, says, sent, now, group);
        }
        if at_hop.is_some() {
            return self.says_nothing(peer);
        }
        let group = || {
            way.service.map(|_| {
                let members = members();
                let keys = members.iter().map(|one| one.endpoint().authority.clone());
                keys.collect::<Vec<_>>()
            })
        };
        let change = self.judge(peer, says, sent, now, group);
        if let Some(service) = way.service.filter(|_| change) {
            self.watch_set(peer, service, &members(), now);
        }
    }

    /// Applies the verdict about a peer. Returns whether its circuit or ejection changed. `group`: the keys of its
    /// alternates.
    fn judge(
        &self,
        peer: &Peer,
        says: Says,
        sent: Sent,
        now: Instant,
        group: impl FnOnce() -> Option<Vec<Arc<str>>>,
    ) -> bool {
        let well = match says {
            Says::Well => {
                peer.record.served(sent.source, now);
                true
            }
            Says::Doubtful => {
                let long = self.settings.borrow().outliers.interval.duration();
                if !peer.record.failed(sent.source, long, now) {
                    self.says_nothing(peer);
                    return false;
                }
                false
            }
            Says::Failed => false,
            Says::Nothing => {
                self.says_nothing(peer);
                return false;
            }
        };
        if well && !peer.health.is_troubled() {
            return false;
        }
        let mut breaker = peer.breaker.borrow_mut();
        let mut changed = breaker.report(well, now);
        if changed {
            tracing::warn!(producer = %peer.authority, state = ?breaker.state(now), "circuit changed");
        }
        let verdict = self
            .outliers
            .borrow_mut()
            .report_among(&*peer.key, well, now, group);
        if let Verdict::Ejected(long) = verdict {
            tracing::warn!(producer = %peer.authority, ?long, "failing producer ejected");
            changed = true;
        }
        let closed = breaker.state(now) == BreakerState::Closed;
        drop(breaker);
        let recovered = well && closed && !self.outliers.borrow().is_ejected(&*peer.key, now);
        peer.health.set_troubled(!recovered);
        if !well {
            peer.failed.set(Some(now));
        }
        changed || recovered
    }

    /// State of the producers that are in use, fail, or have sent `Retry-After`. `connections`: those of this worker, by
    /// authority.
    pub(crate) fn states(&self, now: Instant, connections: &AHashMap<String, u32>) -> Vec<PeerState> {
        let known = self.known.borrow();
        let connected = |peer: &Peer| connections.get(&*peer.authority).copied().unwrap_or(0);
        let worth = known.values().filter(|peer| {
            peer.outstanding.get() > 0
                || connected(peer) > 0
                || peer.health.is_troubled()
                || self.rests(peer, now)
        });
        let state = |peer: &Rc<Peer>| PeerState {
            authority: peer.authority.clone(),
            instance: peer.instance.clone(),
            ejected: self.is_ejected(peer, now),
            circuit: match peer.breaker.borrow().state(now) {
                BreakerState::Closed => "closed",
                BreakerState::Open => "open",
                BreakerState::HalfOpen => "halfOpen",
            },
            outstanding: peer.outstanding.get(),
            connections: connected(peer),
            rests: self.rests(peer, now),
        };
        worth.map(state).collect()
    }

    /// Raises or clears the alarm of a producer's set, after one of its members has changed.
    fn watch_set(&self, peer: &Peer, service: &ServiceRef, members: &[ServiceRef], now: Instant) {
        let is_blocked = |peer: &Peer| {
            let open = || peer.breaker.borrow().state(now) == BreakerState::Open;
            self.is_ejected(peer, now) || (peer.health.is_troubled() && open())
        };
        let member_blocked = |one: &ServiceRef| {
            let member = self.known(&one.endpoint().authority);
            member.is_some_and(|member| is_blocked(&member))
        };
        let blocked = is_blocked(peer) && members.iter().all(member_blocked);
        let set = service.producer.sets.first().unwrap_or(&service.producer.id);
        let instance = format!("{set} {} (worker {})", service.service().name, self.worker);
        let wrong = blocked.then(|| format!("none of its {} producers accepts requests", members.len() + 1));
        self.alarms.set(&SET_UNAVAILABLE, &instance, wrong);
    }

    /// A request has ended without a verdict about its producer: if it was a try, another may follow.
    fn says_nothing(&self, peer: &Peer) {
        if peer.health.is_troubled() {
            peer.breaker.borrow_mut().release();
        }
    }
}

#[cfg(test)]
mod tests;
