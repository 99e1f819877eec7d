//! Session-Ids of AF sessions that their AFs have ended a moment ago: a copy of an earlier AAR that comes after the STR begins nothing,
//! which no AF would end. Session-Ids never come again (RFC 6733 §8.8).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ahash::{AHashMap, RandomState};
use parking_lot::Mutex;

/// How long a request may be on its way.
const WITHIN: Duration = Duration::from_secs(10);
/// Session-Ids at most; the oldest make room.
const MOST: usize = 65_536;

/// Those of all workers of a PCF.
#[derive(Debug, Default)]
pub(crate) struct Finished {
    hashes: RandomState,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    order: VecDeque<(Instant, u64)>,
    last: AHashMap<u64, Instant>,
}

impl Finished {
    /// An AF ends a session.
    pub(crate) fn note(&self, session_id: &str, now: Instant) {
        let hash = self.hashes.hash_one(session_id);
        let mut inner = self.inner.lock();
        inner.expire(now);
        inner.order.push_back((now, hash));
        inner.last.insert(hash, now);
    }

    /// Whether an AF has ended a session a moment ago.
    pub(crate) fn has(&self, session_id: &str, now: Instant) -> bool {
        let hash = self.hashes.hash_one(session_id);
        let inner = self.inner.lock();
        let ended = inner.last.get(&hash);
        ended.is_some_and(|ended| now.saturating_duration_since(*ended) < WITHIN)
    }
}

impl Inner {
    fn expire(&mut self, now: Instant) {
        while let Some((at, hash)) = self.order.front().copied() {
            let is_old = now.saturating_duration_since(at) >= WITHIN;
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
