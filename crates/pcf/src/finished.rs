//! What has ended a moment ago, by its name. Session-Ids of AF sessions: a copy of an earlier AAR that comes after the STR begins nothing,
//! which no AF would end; Session-Ids never come again (RFC 6733 §8.8). URIs of resources at other functions.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ahash::{AHashMap, RandomState};
use parking_lot::Mutex;

/// How long a request may be in flight.
const WITHIN: Duration = Duration::from_secs(10);
/// Names at most; the oldest make room.
const MOST: usize = 65_536;

/// Those of all workers of a PCF.
#[derive(Debug)]
pub(crate) struct Finished {
    within: Duration,
    hashes: RandomState,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    order: VecDeque<(Instant, u64)>,
    last: AHashMap<u64, Instant>,
}

impl Default for Finished {
    fn default() -> Self {
        Self::within(WITHIN)
    }
}

impl Finished {
    /// Of what has ended within this time.
    pub(crate) fn within(within: Duration) -> Self {
        Self {
            within,
            hashes: RandomState::default(),
            inner: Mutex::default(),
        }
    }

    /// Something of this name has ended.
    pub(crate) fn note(&self, name: &str, now: Instant) {
        let hash = self.hashes.hash_one(name);
        let mut inner = self.inner.lock();
        inner.expire(now, self.within);
        inner.order.push_back((now, hash));
        inner.last.insert(hash, now);
    }

    /// Whether something of this name has ended a moment ago.
    pub(crate) fn has(&self, name: &str, now: Instant) -> bool {
        let hash = self.hashes.hash_one(name);
        let inner = self.inner.lock();
        let ended = inner.last.get(&hash);
        ended.is_some_and(|ended| now.saturating_duration_since(*ended) < self.within)
    }
}

impl Inner {
    fn expire(&mut self, now: Instant, within: Duration) {
        while let Some((at, hash)) = self.order.front().copied() {
            let is_old = now.saturating_duration_since(at) >= within;
            if !is_old && self.order.len() < MOST {
                return;
            }
            self.order.pop_front();
            if self.last.get(&hash) == Some(&at) {
                self.last.remove(&hash);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_known_for_a_while_and_the_memory_is_bounded() {
        let (finished, begin) = (Finished::default(), Instant::now());
        finished.note("a;1", begin);
        assert!(finished.has("a;1", begin) && !finished.has("a;2", begin));
        assert!(!finished.has("a;1", begin + WITHIN));
        for number in 0..MOST + 10 {
            finished.note(&format!("b;{number}"), begin);
        }
        assert!(!finished.has("a;1", begin), "the oldest makes room");
        let inner = finished.inner.lock();
        assert!(inner.order.len() <= MOST && inner.last.len() <= MOST);
    }
}
