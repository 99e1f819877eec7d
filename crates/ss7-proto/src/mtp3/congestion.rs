//! Congestion on the way to destinations, as other nodes report it (TFC), and its end (signalling-route-set congestion test, Q.704
//! §13.7, §13.9): in national networks with levels of congestion. Elsewhere reports have no end, and none is kept.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::point_code::PointCode;

/// Timers of the test (Q.704 §16.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CongestionTimers {
    /// T15: after a report, until the test; 2 s to 3 s.
    pub start: Duration,
    /// T16: how long a test may take until a report follows; 1.4 s to 2 s.
    pub outcome: Duration,
}

impl Default for CongestionTimers {
    fn default() -> Self {
        Self {
            start: Duration::from_millis(2_500),
            outcome: Duration::from_millis(1_700),
        }
    }
}

/// What the user does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CongestionEvent {
    /// The level of a destination is another one; 0: there is none any more.
    Level(PointCode, u8),
    /// RCT is to be sent to a destination, with a message priority: one that the congestion stops.
    Test(PointCode, u8),
}

/// Destinations that messages of this node reach with congestion.
#[derive(Debug)]
pub struct Congestion {
    timers: CongestionTimers,
    most: usize,
    all: BTreeMap<PointCode, Status>,
}

#[derive(Debug)]
struct Status {
    /// 1 to 3.
    level: u8,
    /// T15, or T16.
    until: Instant,
    /// Whether a test was sent: T16 runs.
    is_tested: bool,
}

impl Congestion {
    /// For at most this many destinations.
    #[must_use]
    pub const fn new(timers: CongestionTimers, most: usize) -> Self {
        Self {
            timers,
            most,
            all: BTreeMap::new(),
        }
    }

    /// Destinations with their levels.
    pub fn levels(&self) -> impl Iterator<Item = (PointCode, u8)> {
        self.all.iter().map(|(code, status)| (*code, status.level))
    }

    /// When [`Self::tick`] has something to do.
    #[must_use]
    pub fn wake(&self) -> Option<Instant> {
        self.all.values().map(|status| status.until).min()
    }

    /// TFC about a destination. One without a level, and one more destination than there is room for, have no effect.
    pub fn controlled(&mut self, code: PointCode, level: u8, now: Instant) -> Option<CongestionEvent> {
        let level = level.min(3);
        if level == 0 || self.all.len() >= self.most && !self.all.contains_key(&code) {
            return None;
        }
        let status = self.all.entry(code).or_insert(Status {
            level: 0,
            until: now,
            is_tested: false,
        });
        // Links on the way differ: until a test the worst counts, its outcome is what the test has met.
        let next = if status.is_tested {
            level
        } else {
            level.max(status.level)
        };
        let has_changed = std::mem::replace(&mut status.level, next) != next;
        status.is_tested = false;
        status.until = now + self.timers.start;
        has_changed.then_some(CongestionEvent::Level(code, next))
    }

    /// Time passes.
    pub fn tick(&mut self, now: Instant, events: &mut Vec<CongestionEvent>) {
        let timers = self.timers;
        self.all.retain(|code, status| {
            if status.until > now {
                return true;
            }
            // No report has followed the test.
            if status.is_tested {
                status.level -= 1;
                events.push(CongestionEvent::Level(*code, status.level));
            }
            if status.level > 0 {
                status.is_tested = true;
                status.until = now + timers.outcome;
                events.push(CongestionEvent::Test(*code, status.level - 1));
            }
            status.level > 0
        });
    }
}
