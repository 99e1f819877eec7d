//! Traffic that moves from one link set of M2PA to another. The nodes at their far ends differ, so no message says that the former
//! one is drained: it is held for some time (time-controlled changeover and diversion, Q.704 §5, §6.4; controlled rerouting, §8).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ahash::AHashMap;

use super::{Control, Frame, Inner};
use crate::cause::Cause;
use crate::config::Mtp;
use crate::path::again;
use crate::state::{Few, Selections, State, Target};

/// What is held, and the messages.
pub(super) struct Moves {
    /// T1, T3.
    timers: [Duration; 2],
    /// By destination.
    holds: HashMap<usize, Hold>,
    /// MSUs in the form of M2PA, in the order in which they came.
    frames: VecDeque<Frame>,
    most: usize,
}

#[derive(Clone, Copy)]
struct Hold {
    until: Instant,
    selections: Selections,
}

impl Moves {
    pub(super) fn new(mtp: &Mtp, most: usize) -> Self {
        Self {
            timers: [mtp.t1.duration(), mtp.t3.duration()],
            holds: HashMap::new(),
            frames: VecDeque::new(),
            most,
        }
    }

    pub(super) fn wake(&self) -> Option<Instant> {
        self.holds.values().map(|hold| hold.until).min()
    }

    pub(super) fn tick(&mut self, now: Instant) {
        self.holds.retain(|_, hold| hold.until > now);
    }

    /// Other tables, with other destinations.
    pub(super) fn end(&mut self) {
        self.holds.clear();
    }

    pub(super) fn held(&self) -> AHashMap<usize, Selections> {
        self.holds
            .iter()
            .map(|(at, hold)| (*at, hold.selections))
            .collect()
    }

    /// Holds an MSU; `false` when there are too many.
    pub(super) fn put(&mut self, frame: Frame) -> bool {
        let fits = self.frames.len() < self.most;
        if fits {
            self.frames.push_back(frame);
        }
        fits
    }
}

impl Inner {
    /// Holds what another link set takes in the next state.
    pub(super) fn hold(&mut self, before: &State, next: &mut State, now: Instant) {
        if !Arc::ptr_eq(&before.tables, &next.tables) || self.moves.timers.iter().all(Duration::is_zero) {
            return;
        }
        let mut is_new = false;
        let all = before.forward.destinations.iter().zip(&next.forward.destinations);
        for (at, (old, new)) in all.enumerate().filter(|(_, (old, new))| old != new) {
            let (selections, period) = self.moved(at, old, new, next);
            if selections.is_empty() || period.is_zero() {
                continue;
            }
            let hold = self.moves.holds.entry(at).or_insert(Hold {
                until: now,
                selections,
            });
            hold.until = hold.until.max(now + period);
            hold.selections.extend(&selections);
            is_new = true;
        }
        if is_new && let Some(forward) = Arc::get_mut(&mut next.forward) {
            forward.held = self.moves.held();
        }
    }

    /// The link selections of a destination that move from a link set to another, and for how long they are held.
    fn moved(&self, destination: usize, old: &Few, new: &Few, next: &State) -> (Selections, Duration) {
        let tables = &next.tables;
        let is_set = |hop: u16| {
            tables
                .hops
                .get(usize::from(hop))
                .is_some_and(|hop| hop.adjacent.is_some())
        };
        let by = |hops: &Few, sls: u8| {
            let at = usize::from(sls).checked_rem(hops.len())?;
            hops.get(at).copied().filter(|hop| is_set(*hop))
        };
        let cluster = tables.routes.destinations.get(destination).map(|one| one.cluster);
        // TFP: the node before has refused the messages (forced rerouting, §7), and nothing is held.
        let is_barred =
            |hop: u16| cluster.is_some_and(|cluster| self.barred.contains_key(&(usize::from(hop), cluster)));
        let [t1, t3] = self.moves.timers;
        let period = |sls: u8| {
            let (from, to) = (by(old, sls)?, by(new, sls)?);
            if from == to || is_barred(from) {
                return None;
            }
            let hop = next.forward.hops.get(usize::from(from));
            let has_failed = hop.is_none_or(|hop| hop.up.is_empty());
            Some(if has_failed { t1 } else { t3 })
        };
        if old.len() == 1 && new.len() == 1 {
            return period(0).map_or_else(Default::default, |period| (Selections::ALL, period));
        }
        let (mut selections, mut longest) = (Selections::default(), Duration::ZERO);
        for sls in 0..=u8::MAX {
            if let Some(period) = period(sls) {
                selections.insert(sls);
                longest = longest.max(period);
            }
        }
        (selections, longest)
    }

    /// Sends what is held no longer.
    pub(super) fn let_go(&mut self, control: &Control, before: &State, next: &State) {
        let is_same = Arc::ptr_eq(&before.tables, &next.tables);
        if is_same && before.forward.held == next.forward.held {
            return;
        }
        for frame in std::mem::take(&mut self.moves.frames) {
            match again(next, &frame.octets) {
                Ok(send) if send.target == Target::Held => self.moves.frames.push_back(frame),
                Ok(send) => control.resume(
                    self,
                    next,
                    send.hop,
                    &send.target,
                    Frame::data(send.octets, send.sls),
                ),
                Err(cause) => next.meters.dropped(cause),
            }
        }
    }
}

impl Control {
    /// Holds an MSU; sends it when it is held no longer.
    pub(super) fn keep(&self, frame: Frame) {
        let mut inner = self.inner.lock();
        let state = self.state.load();
        self.keep_within(&mut inner, &state, frame);
    }

    /// As [`Self::keep`], with what the lock protects.
    pub(super) fn keep_within(&self, inner: &mut Inner, state: &State, frame: Frame) {
        match again(state, &frame.octets) {
            Ok(send) if send.target == Target::Held => {
                if !inner.moves.put(frame) {
                    state.meters.dropped(Cause::Recovery);
                }
            }
            Ok(send) => self.resume(
                inner,
                state,
                send.hop,
                &send.target,
                Frame::data(send.octets, send.sls),
            ),
            Err(cause) => state.meters.dropped(cause),
        }
    }

    /// Sends an MSU that was held for a link set that has moved, or whose changeover is in progress.
    fn resume(&self, inner: &mut Inner, state: &State, hop: usize, target: &Target, frame: Frame) {
        match target {
            Target::Link(_) if frame.is_m2pa() => self.forward(target, frame),
            Target::Pending => inner.wait(hop, frame),
            _ => {
                self.post(state, target, frame);
            }
        }
    }
}
