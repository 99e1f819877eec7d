//! MTP restart (Q.704 §9): a node that was isolated collects what its neighbours report of destinations before it carries traffic,
//! and a neighbour that was inaccessible gets no traffic before it has reported the same.
//!
//! The end of it is TRA, which follows all TFP. T20, the longest time until TRA of a node that restarts, needs no timer here:
//! TRA leaves as soon as T18 ends, and T18 is shorter.
//!
//! In networks of ANSI (T1.111.4 §9) an STP that restarts says so: TRW to each neighbour that becomes available, again after T26, and
//! before what TRA ends. Who awaits TRA waits longer by it. T18 here has the place of T22 to T24, T21 that of T28 and T25, T19
//! that of T29.

use std::time::{Duration, Instant};

/// Timers of a restart (Q.704 §16.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RestartTimers {
    /// T18: how long a node that restarts waits for links, and for what its neighbours report; 0: it does not wait.
    pub collection: Duration,
    /// T19: after TRA to a neighbour, how long a TRA of it that was not expected has no answer: both would go on for ever.
    pub answer_guard: Duration,
    /// T21: how long a neighbour that was inaccessible may take to send TRA; 0: it gets traffic at once.
    pub neighbour: Duration,
    /// T26: how often TRW is sent while this node restarts; none in networks that do not have it.
    pub repetition: Option<Duration>,
}

impl RestartTimers {
    /// T26 of ANSI: 12 s to 15 s.
    pub const REPETITION: Duration = Duration::from_secs(12);
}

impl Default for RestartTimers {
    fn default() -> Self {
        Self {
            collection: Duration::from_secs(20),
            answer_guard: Duration::from_secs(68),
            neighbour: Duration::from_secs(64),
            repetition: None,
        }
    }
}

/// The restarts of a node and of its neighbours, which are positions.
#[derive(Debug)]
pub struct Restart {
    timers: RestartTimers,
    /// T18 of this node, while it restarts.
    own: Option<Instant>,
    /// T26.
    repetition: Option<Instant>,
    /// Neighbours that get TRW.
    waiting: Vec<usize>,
    neighbours: Vec<Neighbour>,
}

#[derive(Debug, Default)]
struct Neighbour {
    is_available: bool,
    /// Whether it has sent TRA since it was not available.
    has_allowed: bool,
    /// T21, while its TRA is awaited.
    awaited: Option<Instant>,
    /// T19.
    guarded: Option<Instant>,
}

impl Restart {
    /// With this many neighbours, none of which is available.
    #[must_use]
    pub fn new(timers: RestartTimers, neighbours: usize) -> Self {
        Self {
            timers,
            own: None,
            repetition: None,
            waiting: Vec::new(),
            neighbours: (0..neighbours).map(|_| Neighbour::default()).collect(),
        }
    }

    /// Whether this node restarts: it carries no traffic, and says nothing of destinations.
    #[must_use]
    pub const fn is_restarting(&self) -> bool {
        self.own.is_some()
    }

    /// Whether a neighbour that is available gets no traffic yet.
    #[must_use]
    pub fn holds(&self, neighbour: usize) -> bool {
        let one = self.neighbours.get(neighbour);
        one.is_some_and(|one| one.is_available && (self.own.is_some() || one.awaited.is_some()))
    }

    /// When [`Self::tick`] has something to do.
    #[must_use]
    pub fn wake(&self) -> Option<Instant> {
        let awaited = self.neighbours.iter().filter_map(|one| one.awaited);
        awaited.chain(self.own).chain(self.repetition).min()
    }

    /// Takes the neighbours that get TRW.
    #[must_use]
    pub fn take_waiting(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.waiting)
    }

    /// The first link to a neighbour is available; `was_accessible`: it could be reached by other nodes, and does not restart.
    /// Returns the neighbours that get TFP for all that is inaccessible, then TRA.
    #[must_use]
    pub fn available(&mut self, neighbour: usize, was_accessible: bool, now: Instant) -> Vec<usize> {
        let was_isolated = self.neighbours.iter().all(|one| !one.is_available);
        let has_several = self.neighbours.len() > 1;
        let (collection, awaits) = (self.timers.collection, self.timers.neighbour);
        let Some(one) = self.neighbours.get_mut(neighbour).filter(|one| !one.is_available) else {
            return Vec::new();
        };
        one.is_available = true;
        let awaits_it = !was_accessible && !one.has_allowed && !awaits.is_zero();
        one.awaited = awaits_it.then(|| now + awaits);
        // What one neighbour reports is of no use for itself.
        if was_isolated && has_several && !collection.is_zero() {
            self.own = Some(now + collection);
            self.repetition = self.timers.repetition.map(|repetition| now + repetition);
        }
        if self.own.is_some() {
            let allowed = self.finish(now);
            if self.own.is_some() && self.timers.repetition.is_some() {
                self.waiting.push(neighbour);
            }
            return allowed;
        }
        self.allow(neighbour, now)
    }

    /// No link to a neighbour is available; `is_in_service`: one is, and has not passed its test, so that an early TRA counts.
    pub fn unavailable(&mut self, neighbour: usize, is_in_service: bool) {
        let one = self.neighbours.get_mut(neighbour);
        if let Some(one) = one.filter(|one| one.is_available || !is_in_service) {
            *one = Neighbour::default();
        }
        if self.neighbours.iter().all(|one| !one.is_available) {
            (self.own, self.repetition) = (None, None);
        }
    }

    /// TRW of a neighbour: its TRA may take as long again. One that was not expected is answered as such a TRA is. Returns as
    /// [`Self::available`] does.
    #[must_use]
    pub fn waits(&mut self, neighbour: usize, now: Instant) -> Vec<usize> {
        let awaits = now + self.timers.neighbour;
        let is_own = self.own.is_some();
        let Some(one) = self.neighbours.get_mut(neighbour).filter(|one| one.is_available) else {
            return Vec::new();
        };
        if let Some(until) = &mut one.awaited {
            *until = awaits;
            return Vec::new();
        }
        if is_own || one.guarded.is_some_and(|until| until > now) {
            return Vec::new();
        }
        self.allow(neighbour, now)
    }

    /// TRA of a neighbour. Returns as [`Self::available`] does.
    #[must_use]
    pub fn allowed(&mut self, neighbour: usize, now: Instant) -> Vec<usize> {
        let Some(one) = self.neighbours.get_mut(neighbour) else {
            return Vec::new();
        };
        // The other side may have finished the test of the link first.
        let is_early = !one.is_available;
        let is_expected = one.awaited.take().is_some() || self.own.is_some();
        one.has_allowed = true;
        if is_early {
            return Vec::new();
        }
        if is_expected {
            return self.finish(now);
        }
        // It has restarted, and this side has not noticed.
        if one.guarded.is_some_and(|until| until > now) {
            return Vec::new();
        }
        self.allow(neighbour, now)
    }

    /// Time passes. Returns as [`Self::available`] does.
    #[must_use]
    pub fn tick(&mut self, now: Instant) -> Vec<usize> {
        for one in &mut self.neighbours {
            one.awaited = one.awaited.filter(|until| *until > now);
        }
        let allowed = self.finish(now);
        if let (Some(period), Some(_)) = (self.timers.repetition, self.repetition.filter(|at| *at <= now)) {
            self.repetition = Some(now + period);
            let available = self.neighbours.iter().enumerate();
            let available = available.filter(|(_, one)| one.is_available).map(|(at, _)| at);
            self.waiting.extend(available);
        }
        allowed
    }

    /// Ends the restart of this node when T18 has ended, or all neighbours have reported.
    fn finish(&mut self, now: Instant) -> Vec<usize> {
        let has_all = self.neighbours.iter().all(|one| one.has_allowed);
        if !self.own.is_some_and(|until| has_all || until <= now) {
            return Vec::new();
        }
        (self.own, self.repetition) = (None, None);
        let mut all = Vec::new();
        for neighbour in 0..self.neighbours.len() {
            if self.neighbours.get(neighbour).is_some_and(|one| one.is_available) {
                all.append(&mut self.allow(neighbour, now));
            }
        }
        all
    }

    fn allow(&mut self, neighbour: usize, now: Instant) -> Vec<usize> {
        if let Some(one) = self.neighbours.get_mut(neighbour) {
            one.guarded = Some(now + self.timers.answer_guard);
        }
        vec![neighbour]
    }
}
