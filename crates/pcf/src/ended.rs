//! AF sessions that ended with the session of their UE: their AFs, which hear of it, terminate them as well (STR, TS 29.214
//! §4.4.6.1; delete, TS 29.514 §4.2.5.3), and that succeeds.
//!
//! They are in memory alone: after a restart, or at another PCF, an AF learns that there is no such session.

use std::time::{Duration, Instant};

use bounded::{Cache, Limits};
use parking_lot::Mutex;

/// Time for an AF to terminate its session.
const WITHIN: Duration = Duration::from_secs(120);

/// The names of these sessions, and when each ended. Workers take the lock when a session of a UE ends, and for an AF session
/// that does not exist.
#[derive(Debug)]
pub(crate) struct EndedSessions(Mutex<Cache<Box<str>, Instant>>);

impl EndedSessions {
    /// Holds this number of sessions; when it is full, one that was noted long ago is evicted.
    pub(crate) fn new(most: usize) -> Self {
        Self(Mutex::new(Cache::new(Limits::entries(most))))
    }

    /// A session has ended: the Session-Id of Rx, or the `appSessionId` of N5.
    pub(crate) fn note(&self, name: &str, now: Instant) {
        self.0.lock().insert(name.into(), now);
    }

    /// Whether a session has ended lately and its AF has not terminated it yet, as it does now.
    pub(crate) fn confirm(&self, name: &str, now: Instant) -> bool {
        let ended = self.0.lock().remove(name);
        ended.is_some_and(|at| now.saturating_duration_since(at) <= WITHIN)
    }

    /// Their number.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_confirmed_once_and_in_time() {
        let (ended, now) = (EndedSessions::new(2), Instant::now());
        ended.note("a", now);
        ended.note("b", now);
        assert!(ended.confirm("a", now) && !ended.confirm("a", now));
        assert!(!ended.confirm("b", now + WITHIN + Duration::from_millis(1)));
        (0..9).for_each(|number| ended.note(&number.to_string(), now));
        assert_eq!(ended.count(), 2);
    }
}
