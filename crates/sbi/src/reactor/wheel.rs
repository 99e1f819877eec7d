//! The timers of a worker.
//!
//! Every request has a deadline that hardly ever passes, so setting and cancelling a timer are what has to be cheap:
//! each changes two links of a list. Timers lie in slots by the tick they are due in; one beyond the horizon stays in
//! its slot for another round.

use std::time::{Duration, Instant};

use slab::Slab;

/// Timers are late by up to two of these.
const TICK: Duration = Duration::from_millis(4);
const TICKS_PER_SECOND: u64 = 250;
/// Slots of the wheel: a horizon of 4.1 s, beyond the usual deadline of a request. A power of two.
const SLOTS: usize = 1_024;
/// No entry.
const NONE: u32 = u32::MAX;

/// Timers, each with a value.
#[derive(Debug)]
pub(crate) struct Wheel<T> {
    origin: Instant,
    /// All timers due in this tick or before have expired.
    passed: u64,
    /// No timer is due before this tick.
    earliest: u64,
    /// The moment of this tick; `None` without a timer.
    next: Option<Instant>,
    /// First entry of each slot.
    slots: Box<[u32]>,
    entries: Slab<Entry<T>>,
    serial: u32,
}

#[derive(Debug)]
struct Entry<T> {
    tick: u64,
    before: u32,
    after: u32,
    serial: u32,
    value: T,
}

/// A timer that was set. It may have expired meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerKey {
    index: u32,
    serial: u32,
}

impl<T> Wheel<T> {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            origin: now,
            passed: 0,
            earliest: u64::MAX,
            next: None,
            slots: vec![NONE; SLOTS].into(),
            entries: Slab::new(),
            serial: 0,
        }
    }

    /// Sets a timer; it expires at `at` or up to two ticks later.
    pub(crate) fn set(&mut self, at: Instant, value: T) -> TimerKey {
        // The tick that begins after it.
        let tick = (ticks(at.saturating_duration_since(self.origin)) + 1).max(self.passed + 1);
        if tick < self.earliest {
            self.begin_with(tick);
        }
        self.serial = self.serial.wrapping_add(1);
        let serial = self.serial;
        let slot = slot_of(tick);
        let after = self.slots[slot];
        let index = self.entries.insert(Entry {
            tick,
            before: NONE,
            after,
            serial,
            value,
        });
        // A worker has fewer timers than that: each takes memory that is accounted for.
        let index = u32::try_from(index).unwrap_or(NONE);
        if let Some(next) = self.entries.get_mut(after as usize) {
            next.before = index;
        }
        self.slots[slot] = index;
        TimerKey { index, serial }
    }

    /// Removes a timer that has not expired.
    pub(crate) fn cancel(&mut self, key: TimerKey) {
        let found = self.entries.get(key.index as usize);
        if found.is_some_and(|entry| entry.serial == key.serial) {
            self.remove(key.index);
        }
    }

    /// Hands over the values of the timers that are due.
    pub(crate) fn expire(&mut self, now: Instant, due: &mut Vec<T>) {
        let reached = ticks(now.saturating_duration_since(self.origin));
        if reached < self.earliest {
            self.passed = self.passed.max(reached);
            return;
        }
        // After a full round each slot was visited.
        let rounds = (reached - self.passed).min(SLOTS as u64);
        for tick in reached + 1 - rounds..=reached {
            let mut index = self.slots[slot_of(tick)];
            while let Some(entry) = self.entries.get(index as usize) {
                let after = entry.after;
                if entry.tick <= reached
                    && let Some(value) = self.remove(index)
                {
                    due.push(value);
                }
                index = after;
            }
        }
        self.passed = reached;
        self.begin_with(match self.entries.is_empty() {
            true => u64::MAX,
            false => self.first_slot(),
        });
    }

    /// When [`Wheel::expire`] has something to do at the earliest.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// No timer is due before this tick; `u64::MAX`: there is none.
    fn begin_with(&mut self, tick: u64) {
        self.earliest = tick;
        // Asked for twice a turn, and changed rarely.
        self.next = (tick < u64::MAX).then(|| {
            let ticks = u32::try_from(tick).unwrap_or(u32::MAX);
            self.origin + TICK.saturating_mul(ticks)
        });
    }

    /// The first tick whose slot has entries.
    fn first_slot(&self) -> u64 {
        let ahead = (1..=SLOTS as u64).find(|ahead| self.slots[slot_of(self.passed + ahead)] != NONE);
        self.passed + ahead.unwrap_or(SLOTS as u64)
    }

    fn remove(&mut self, index: u32) -> Option<T> {
        let entry = self.entries.try_remove(index as usize)?;
        match self.entries.get_mut(entry.before as usize) {
            Some(before) => before.after = entry.after,
            None => self.slots[slot_of(entry.tick)] = entry.after,
        }
        if let Some(after) = self.entries.get_mut(entry.after as usize) {
            after.before = entry.before;
        }
        Some(entry.value)
    }
}

/// Whole ticks in a period. Without the division of 128 bits that `Duration` would take.
fn ticks(period: Duration) -> u64 {
    let seconds = period.as_secs().saturating_mul(TICKS_PER_SECOND);
    seconds.saturating_add(u64::from(period.subsec_nanos() / TICK.subsec_nanos()))
}

fn slot_of(tick: u64) -> usize {
    (tick % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn timers_expire_once_and_never_early(
            timers in proptest::collection::vec((0..20_000_u64, any::<bool>()), 1..60),
            steps in proptest::collection::vec(1..3_000_u64, 1..40),
        ) {
            let start = Instant::now();
            let mut wheel = Wheel::new(start);
            let mut keys = Vec::new();
            for (number, (at, cancelled)) in timers.iter().enumerate() {
                let key = wheel.set(start + Duration::from_millis(*at), number);
                if *cancelled {
                    keys.push(key);
                }
            }
            for key in keys {
                wheel.cancel(key);
                wheel.cancel(key);
            }
            let (mut now, mut expired) = (0, vec![false; timers.len()]);
            for step in steps {
                now += step;
                let mut due = Vec::new();
                if let Some(next) = wheel.next() {
                    let overdue = timers.iter().zip(&expired).any(|((at, cancelled), done)| !cancelled && !done && start + Duration::from_millis(*at) + TICK * 2 < next);
                    prop_assert!(!overdue, "the wheel would sleep past a timer");
                }
                wheel.expire(start + Duration::from_millis(now), &mut due);
                for number in due {
                    prop_assert!(!expired[number] && !timers[number].1 && timers[number].0 <= now);
                    expired[number] = true;
                }
                for ((at, cancelled), done) in timers.iter().zip(&expired) {
                    prop_assert!(*cancelled || *done || at + 8 >= now);
                }
            }
        }
    }
}
