//! What is let in: rates of connections, overload, trace points; and what a worker reports of its load.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use diameter::proto::{Fault, MessageBuilder, MessageMut, ResultCode, known};
use diameter::{Connection, Node};
use dsr_app::View;
use overload::cpu::read;

use super::{Core, Link, Origin, RequestFlags, Transit};
use crate::config::Colour;
use crate::congestion::{Counts, Cpu};
use crate::demands::Claim;
use crate::edit::{Edit, edit};
use crate::events::Event;
use crate::hiding::Renamed;
use crate::registry::Hop;
use crate::snapshot::Snapshot;
use crate::trace::Record;

/// How often a worker samples at its load.
const SAMPLE: Duration = Duration::from_millis(50);
/// This number makes about a second.
const SAMPLES_PER_SECOND: u32 = 20;
/// From this level on (CL1 of the usual four) a message processor takes no new connections.
const STASIS: u8 = 2;

/// What a worker reports of its load. Written by that worker some times per second.
#[derive(Debug)]
pub(crate) struct Gauges {
    level: AtomicU8,
    cpu: AtomicU64,
    connections: AtomicI64,
    /// Transactions that are parked for applications.
    parked: AtomicI64,
    /// Kept requests, in percent of the bytes that may be kept.
    pool: AtomicU64,
    /// A load that somebody drives instead of the measured one; NaN: none.
    driven: AtomicU64,
    /// Whether the worker stops and has nothing in flight any more.
    idle: AtomicBool,
}

impl Default for Gauges {
    fn default() -> Self {
        Self {
            level: AtomicU8::new(0),
            cpu: AtomicU64::new(0),
            connections: AtomicI64::new(0),
            parked: AtomicI64::new(0),
            pool: AtomicU64::new(0),
            driven: AtomicU64::new(f64::NAN.to_bits()),
            idle: AtomicBool::new(false),
        }
    }
}

impl Gauges {
    /// The congestion level, 0 for none.
    pub(crate) fn level(&self) -> usize {
        usize::from(self.level.load(Ordering::Relaxed))
    }

    /// The load in percent of a core.
    pub(crate) fn cpu(&self) -> f64 {
        f64::from_bits(self.cpu.load(Ordering::Relaxed))
    }

    /// Kept requests, in percent of the bytes that may be kept.
    pub(crate) fn pool(&self) -> f64 {
        f64::from_bits(self.pool.load(Ordering::Relaxed))
    }

    /// Transactions that are parked for applications.
    pub(crate) fn parked(&self) -> i64 {
        self.parked.load(Ordering::Relaxed)
    }

    /// Reports how many transactions are parked.
    pub(super) fn report_parked(&self, count: usize) {
        self.parked.store(count as i64, Ordering::Relaxed);
    }

    /// Open connections.
    pub(crate) fn connections(&self) -> i64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Whether it takes no new connections.
    pub(crate) fn in_stasis(&self) -> bool {
        self.level.load(Ordering::Relaxed) >= STASIS
    }

    /// From now on this is the load; none: the measured one.
    pub(crate) fn drive(&self, load: Option<f64>) {
        self.driven
            .store(load.unwrap_or(f64::NAN).to_bits(), Ordering::Relaxed);
    }

    /// Whether the worker stops and has nothing in flight any more.
    pub(super) fn is_idle(&self) -> bool {
        self.idle.load(Ordering::Acquire)
    }

    pub(super) fn report_idle(&self, is_idle: bool) {
        self.idle.store(is_idle, Ordering::Release);
    }

    pub(super) fn connected(&self, more: i64) {
        self.connections.fetch_add(more, Ordering::Relaxed);
    }
}

impl Core {
    /// What this worker reports of its load.
    pub(super) fn gauges(&self) -> &Gauges {
        // There is one for each worker.
        &self.tools.gauges[self.worker]
    }

    /// Looks at the load, until the worker ends.
    ///
    /// `share` is the part of a core that this worker can have at most: below 1 where workers share cores.
    pub(crate) async fn watch_load(self: Rc<Self>, share: f64) {
        let (mut samples, mut before) = (0, 0);
        loop {
            tokio::time::sleep(SAMPLE).await;
            let now = tokio::time::Instant::now().into_std();
            let gauges = self.gauges();
            let driven = f64::from_bits(gauges.driven.load(Ordering::Relaxed));
            let assumed = self.snapshot.borrow().config.overload.assumed_load;
            let cpu = match (driven.is_nan(), assumed) {
                (false, _) => Cpu::Driven(driven),
                (true, Some(load)) => Cpu::Driven(load.percent()),
                // Where the system does not report CPU time, the load is 0.
                (true, None) => {
                    read::thread().map_or(Cpu::Driven(0.0), |used| Cpu::Used(used.div_f64(share)))
                }
            };
            let discarded =
                self.counters.get(Event::OverloadDiscarded) + self.counters.get(Event::IngressDiscarded);
            let offered = self.counters.get(Event::Request);
            let counts = Counts {
                offered,
                accepted: offered.saturating_sub(discarded),
                messages: self.counters.get(Event::Message),
            };
            let mut congestion = self.congestion.borrow_mut();
            if let Some(change) = congestion.sample(now, cpu, counts) {
                let (level, name) = congestion.level();
                tracing::warn!(
                    worker = self.worker,
                    from = change.from,
                    level,
                    name,
                    "congestion level changed"
                );
            }
            if let Some(load) = congestion.load() {
                self.load_reporter.borrow_mut().sample(now, load);
            }
            samples = (samples + 1) % SAMPLES_PER_SECOND;
            if samples == 0 {
                self.forget_loads();
                self.share_throttles();
                self.wake_idle(offered != before);
                self.follow_administration();
                before = offered;
            }
            gauges.level.store(congestion.level().0 as u8, Ordering::Relaxed);
            let load = congestion.load().unwrap_or_default();
            gauges.cpu.store(load.to_bits(), Ordering::Relaxed);
            gauges.pool.store(self.pool().to_bits(), Ordering::Relaxed);
        }
    }

    /// Takes the part of each throttle group: by the peers which are available here, and by demand.
    fn share_throttles(&self) {
        let (snapshot, now) = (self.snapshot.borrow(), self.now());
        for (position, throttle) in self.throttles.borrow_mut().iter_mut().enumerate() {
            let demand = throttle.demand(now);
            let claim = Claim {
                group: throttle.name(),
                worker: self.worker,
                demand,
                peers: snapshot.throttle_peers(position, self.worker),
                siblings: &snapshot.throttle_siblings(position),
            };
            let share = self.tools.demands.share(&claim, now);
            throttle.set_share(share);
        }
    }

    /// Kept requests of the fullest local node, in percent of the bytes that it may keep.
    fn pool(&self) -> f64 {
        let most = self.nodes.borrow().iter().map(Node::kept_bytes).max();
        let limit = self.snapshot.borrow().config.limits.pending_bytes.bytes();
        100.0 * most.unwrap_or_default() as f64 / limit.max(1) as f64
    }

    /// Connects to peers that stay away, where there is something to send.
    fn wake_idle(&self, busy: bool) {
        for (index, node) in self.nodes().iter().enumerate() {
            node.wake_idle(busy, |host| {
                let mut hops = self.hops.borrow_mut();
                let hops = hops.find(host.as_bytes()).into_iter().flatten();
                hops.filter(|hop| usize::from(hop.node) == index)
                    .any(|hop| hop.take_wanted())
            });
        }
    }

    /// The hop of a peer at that local node.
    pub(crate) fn hop_of(&self, host: &str, node: usize) -> Option<Arc<Hop>> {
        let mut hops = self.hops.borrow_mut();
        let hops = hops.find(host.as_bytes())?;
        hops.iter().find(|hop| usize::from(hop.node) == node).cloned()
    }

    /// Where a new connection should live: with the fewest, but not with a message processor that has too much
    /// to do.
    pub(super) fn place(&self) -> Option<usize> {
        let mine = self.gauges();
        let free = self
            .tools
            .gauges
            .iter()
            .enumerate()
            .filter(|(_, other)| !other.in_stasis());
        let (index, best) = free.min_by_key(|(index, other)| (other.connections(), *index != self.worker))?;
        let better = mine.in_stasis() || best.connections() < mine.connections();
        if better && index != self.worker {
            self.count(Event::Placed);
            return Some(index);
        }
        None
    }

    /// The colour of a connection's next request; none when it comes too soon.
    #[inline]
    pub(super) fn colour(&self, link: &Link, priority: u8) -> Option<Colour> {
        let mut gate = link.gate().borrow_mut();
        if gate.settings().maximum == 0 && gate.settings().reserved == 0 {
            return Some(Colour::Green);
        }
        let colour = gate.colour(self.now(), priority);
        if colour == Some(Colour::Yellow) {
            self.count(Event::Yellow);
        }
        colour
    }

    /// Whether a new request is discarded for overload.
    #[inline]
    pub(super) fn discards(&self, link: &Link, transit: &Transit, colour: Colour) -> bool {
        let flags = transit.origin.flags;
        let mut congestion = self.congestion.borrow_mut();
        // Our reports are about requests that name no host.
        let obeyed = match flags.has(RequestFlags::DOIC) && !flags.has(RequestFlags::HOST_ROUTED) {
            true => {
                let mut obedience = link.obedience().borrow_mut();
                obedience.request(self.now());
                obedience.reduction(self.now())
            }
            false => 0.0,
        };
        congestion.discards(transit.priority, colour, obeyed)
    }

    /// Whether a request that another worker has admitted is discarded because this worker, which has the server's
    /// connection, is loaded more than that one.
    #[inline]
    pub(super) fn discards_for_another(&self, transit: &Transit) -> bool {
        let admitted_by = usize::from(transit.origin.worker);
        if admitted_by == self.worker || self.congestion.borrow().is_calm() {
            return false;
        }
        let other = self.tools.gauges.get(admitted_by);
        let mine = self.congestion.borrow().level().0;
        if other.is_some_and(|other| other.level() >= mine) {
            return false;
        }
        let colour = match transit.origin.flags.has(RequestFlags::YELLOW) {
            true => Colour::Yellow,
            false => Colour::Green,
        };
        self.congestion
            .borrow_mut()
            .discards(transit.priority, colour, 0.0)
    }

    /// The trigger point that a request fits, counted from 1; 0 for none.
    #[cold]
    pub(super) fn trace_point(&self, snapshot: &Snapshot, host: &str, view: &View<'_>) -> u8 {
        let fits = snapshot.trace.iter().position(|point| {
            let of_peer =
                point.peers.is_empty() || point.peers.iter().any(|peer| peer.eq_ignore_ascii_case(host));
            of_peer && point.rules.find(view).is_some()
        });
        if let Some(point) = fits.and_then(|position| snapshot.trace.get(position)) {
            self.measure(point.count);
        }
        // There are at most 255.
        fits.map_or(0, |position| (position + 1).min(usize::from(u8::MAX)) as u8)
    }

    /// Hands a copy of a message to the writer of traces.
    #[cold]
    pub(super) fn trace(
        &self,
        trace: u8,
        what: &'static str,
        connection: &Connection<Link>,
        pieces: [&[u8]; 2],
    ) {
        let Some(point) = trace.checked_sub(1) else { return };
        let (ours, theirs) = (connection.local(), connection.remote());
        let (from, to) = if what.ends_with("in") {
            (theirs, ours)
        } else {
            (ours, theirs)
        };
        let peer = connection
            .state()
            .map(|link| link.hop().host.clone())
            .unwrap_or_default();
        let mut message = pieces.concat();
        // The length field counts what is appended.
        let [_, l0, l1, l2] = (message.len() as u32).to_be_bytes();
        if let Some(length) = message.get_mut(1..4) {
            length.copy_from_slice(&[l0, l1, l2]);
        }
        let record = Record {
            at: SystemTime::now(),
            point,
            what,
            peer,
            from,
            to,
            message,
        };
        self.count(match self.tools.tracer.try_send(record) {
            Ok(()) => Event::Traced,
            Err(_) => Event::TraceLost,
        });
    }

    /// An answer for a foreign network, or for a client that knows other names, names no host of ours.
    #[inline]
    pub(super) fn hide_answer(
        &self,
        connection: &Connection<Link>,
        origin: Origin,
        message: MessageMut,
    ) -> MessageMut {
        match self.renamed(self.hidden_answer(connection, origin, &message)) {
            Ok(Some(hidden)) => hidden,
            Ok(None) => message,
            Err(_) => self.without_names(connection, origin, &message),
        }
    }

    #[inline]
    fn hidden_answer(&self, connection: &Connection<Link>, origin: Origin, message: &MessageMut) -> Renamed {
        let snapshot = self.snapshot.borrow();
        let scope = snapshot.hiding.scope(origin.scope);
        let first = scope.map_or(Ok(None), |scope| scope.answer_out(message))?;
        let untrusted = snapshot.hiding.untrusted.as_ref();
        let untrusted = untrusted.filter(|_| connection.state().is_some_and(|link| link.profile().untrusted));
        let whole = first.as_ref().unwrap_or(message);
        let second = untrusted.map_or(Ok(None), |hiding| hiding.answer_out(whole))?;
        Ok(second.or(first))
    }

    /// What a client gets in place of an answer, if that gets too long without our names.
    #[cold]
    pub(super) fn refused_for_length(
        &self,
        connection: &Connection<Link>,
        origin: Origin,
        answer: &MessageMut,
    ) -> Option<MessageMut> {
        self.hidden_answer(connection, origin, answer).err()?;
        self.count(Event::HidingTooLong);
        Some(self.without_names(connection, origin, answer))
    }

    /// What a client gets in place of an answer that gets too long without our names.
    #[cold]
    fn without_names(
        &self,
        connection: &Connection<Link>,
        origin: Origin,
        answer: &MessageMut,
    ) -> MessageMut {
        let why = "the answer is longer than a message can be";
        let fault = Fault::new(ResultCode::UNABLE_TO_COMPLY, why);
        let names = self.names(origin.node);
        // An answer has the Session-Id and the Proxy-Infos of its request.
        let refusal = MessageBuilder::error_answer(answer, names, &fault);
        match self.hidden_answer(connection, origin, &refusal) {
            Ok(hidden) => hidden.unwrap_or(refusal),
            Err(_) => MessageBuilder::error_answer_to_header(&answer.header(), names, &fault),
        }
    }

    /// An answer for a foreign network without overload reports of ours (RFC 7683 §10.4).
    #[inline]
    pub(super) fn withhold_reports(
        &self,
        connection: &Connection<Link>,
        origin: Origin,
        message: MessageMut,
    ) -> MessageMut {
        let withheld = origin.flags.has(RequestFlags::ANSWER_REPORT)
            && connection
                .state()
                .is_some_and(|link| !link.profile().trusts_reports);
        if !withheld {
            return message;
        }
        let decide = |avp: &diameter::proto::Avp<'_>| match avp.is(known::OC_OLR) {
            true => Edit::Drop,
            false => Edit::<'_>::Keep,
        };
        edit(&message, decide, &[]).unwrap_or(message)
    }

    /// What this answer says of our own load, encoded: an overload report, and a Load where its peer has
    /// not got it. And whether there is such a Load.
    #[inline]
    pub(super) fn own_load(&self, origin: Origin, to: &Connection<Link>) -> (Bytes, bool) {
        let trusted = to.state().is_some_and(|link| link.profile().trusts_reports);
        let report = match trusted {
            true => self.overload_report(origin, to),
            false => Bytes::new(),
        };
        let load_reporter = self.load_reporter.borrow();
        if load_reporter.is_silent() {
            return (report, false);
        }
        let news = to.state().filter(|link| !link.profile().untrusted);
        match news.and_then(|link| load_reporter.unreported(origin.node, link.last_reported())) {
            Some(load) if report.is_empty() => (load.clone(), true),
            Some(load) => ([&*report, &**load].concat().into(), true),
            None => (report, false),
        }
    }

    /// A peer has our load, as it is in effect.
    #[cold]
    pub(super) fn load_reported(&self, to: &Connection<Link>) {
        self.count(Event::LoadTold);
        if let Some(link) = to.state() {
            self.load_reporter.borrow().mark_reported(link.last_reported());
        }
    }

    /// The overload report for this answer, encoded; empty for none.
    #[inline]
    fn overload_report(&self, origin: Origin, to: &Connection<Link>) -> Bytes {
        let flags = origin.flags;
        if !flags.has(RequestFlags::DOIC) || flags.has(RequestFlags::ANSWER_REPORT) {
            return Bytes::new();
        }
        let congestion = self.congestion.borrow();
        let report = congestion
            .report_for(
                flags.has(RequestFlags::HOST_ROUTED),
                flags.has(RequestFlags::ANSWER_FEATURES),
            )
            .clone();
        if congestion.is_reporting() && !flags.has(RequestFlags::HOST_ROUTED) {
            self.count(Event::OverloadReported);
            let now = self.now();
            if let (Some(link), Some((reduction, validity))) = (to.state(), congestion.reported(now)) {
                link.obedience().borrow_mut().reported(now, reduction, validity);
            }
        }
        report
    }
}
