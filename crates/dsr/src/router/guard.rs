//! What is let in: rates of connections, overload, trace points; and what a worker tells of its load.

use std::rc::Rc;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use diameter::Connection;
use diameter::proto::MessageMut;
use overload::cpu::read;

use super::{Core, Link, Origin};
use crate::config::Colour;
use crate::congestion::{Counts, Cpu};
use crate::events::Event;
use crate::routing::View;
use crate::snapshot::Snapshot;
use crate::trace::Record;

/// How often a worker looks at its load.
const SAMPLE: Duration = Duration::from_millis(50);
/// So many make about a second.
const LOOKS_PER_SECOND: u32 = 20;
/// From this level on (CL1 of the usual four) a message processor takes no new connections.
const STASIS: u8 = 2;

/// What a worker tells of its load. Written by that worker some times per second.
#[derive(Debug)]
pub(crate) struct Gauges {
    level: AtomicU8,
    cpu: AtomicU64,
    connections: AtomicI64,
    /// A load that somebody drives instead of the measured one; NaN: none.
    driven: AtomicU64,
}

impl Default for Gauges {
    fn default() -> Self {
        Self {
            level: AtomicU8::new(0),
            cpu: AtomicU64::new(0),
            connections: AtomicI64::new(0),
            driven: AtomicU64::new(f64::NAN.to_bits()),
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

    pub(super) fn connected(&self, more: i64) {
        self.connections.fetch_add(more, Ordering::Relaxed);
    }
}

impl Core {
    /// What this worker tells of its load.
    pub(super) fn gauges(&self) -> &Gauges {
        // There is one for each worker.
        &self.tools.gauges[self.worker]
    }

    /// Looks at the load, until the worker ends.
    ///
    /// `share` is the part of a core that this worker can have at most: below 1 where workers share cores.
    pub(crate) async fn watch_load(self: Rc<Self>, share: f64) {
        let mut looks = 0;
        loop {
            tokio::time::sleep(SAMPLE).await;
            let now = tokio::time::Instant::now().into_std();
            let gauges = self.gauges();
            let driven = f64::from_bits(gauges.driven.load(Ordering::Relaxed));
            let assumed = self.snapshot.borrow().config.overload.assumed_load;
            let cpu = match (driven.is_nan(), assumed) {
                (false, _) => Cpu::Driven(driven),
                (true, Some(load)) => Cpu::Driven(load.percent()),
                // Where the system does not tell, there is no load.
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
                self.telling.borrow_mut().sample(now, load);
            }
            looks = (looks + 1) % LOOKS_PER_SECOND;
            if looks == 0 {
                self.forget_loads();
            }
            gauges.level.store(congestion.level().0 as u8, Ordering::Relaxed);
            gauges.cpu.store(congestion.cpu().to_bits(), Ordering::Relaxed);
        }
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
    pub(super) fn colour(&self, link: &Link) -> Option<Colour> {
        let mut gate = link.gate().borrow_mut();
        if gate.settings().maximum == 0 && gate.settings().reserved == 0 {
            return Some(Colour::Green);
        }
        let colour = gate.colour(self.now());
        if colour == Some(Colour::Yellow) {
            self.count(Event::Yellow);
        }
        colour
    }

    /// Whether the next request is discarded for overload.
    #[inline]
    pub(super) fn discards(&self, priority: u8, colour: Colour) -> bool {
        self.congestion.borrow_mut().discards(priority, colour)
    }

    /// The trigger point that a request fits, counted from 1; 0 for none.
    #[cold]
    pub(super) fn trace_point(&self, snapshot: &Snapshot, host: &str, view: &View<'_>) -> u8 {
        let fits = snapshot.trace.iter().position(|point| {
            let of_peer =
                point.peers.is_empty() || point.peers.iter().any(|peer| peer.eq_ignore_ascii_case(host));
            of_peer && point.rules.find(view).is_some()
        });
        // There are at most 255.
        fits.map_or(0, |position| (position + 1).min(usize::from(u8::MAX)) as u8)
    }

    /// Hands a copy of a message to whoever writes it down.
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

    /// An answer for a foreign network names no host of ours.
    #[inline]
    pub(super) fn hide_answer(&self, connection: &Connection<Link>, message: MessageMut) -> MessageMut {
        let snapshot = self.snapshot.borrow();
        let Some(hiding) = &snapshot.hiding else {
            return message;
        };
        if !connection.state().is_some_and(|link| link.profile().untrusted) {
            return message;
        }
        match hiding.answer_out(&message) {
            Some(hidden) => {
                self.count(Event::Hidden);
                hidden
            }
            None => message,
        }
    }

    /// What this answer says of our own load, encoded: an overload report, and a Load where there is news for its
    /// peer. And whether there is.
    #[inline]
    pub(super) fn own_load(&self, origin: Origin, to: &Connection<Link>) -> (Bytes, bool) {
        let report = self.overload_report(origin);
        let telling = self.telling.borrow();
        if telling.is_silent() {
            return (report, false);
        }
        let news = to.state().filter(|link| !link.profile().untrusted);
        match news.and_then(|link| telling.news(origin.node, link.told())) {
            Some(load) if report.is_empty() => (load.clone(), true),
            Some(load) => ([&*report, &**load].concat().into(), true),
            None => (report, false),
        }
    }

    /// A peer has our load, as it is in effect.
    #[cold]
    pub(super) fn load_told(&self, to: &Connection<Link>) {
        self.count(Event::LoadTold);
        if let Some(link) = to.state() {
            self.telling.borrow().mark(link.told());
        }
    }

    /// The overload report for this answer, encoded; empty for none.
    #[inline]
    fn overload_report(&self, origin: Origin) -> Bytes {
        use super::Marks;
        let marks = origin.marks;
        if !marks.has(Marks::DOIC) || marks.has(Marks::ANSWER_REPORT) {
            return Bytes::new();
        }
        let congestion = self.congestion.borrow();
        let report = congestion
            .report_for(marks.has(Marks::HOST_ROUTED), marks.has(Marks::ANSWER_FEATURES))
            .clone();
        if !report.is_empty() {
            self.count(Event::OverloadReported);
        }
        report
    }
}
