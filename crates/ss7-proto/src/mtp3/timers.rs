//! Timers of link sets (Q.704 §16.8).

use std::time::Duration;

/// Timers of a link set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkSetTimers {
    /// T1: how long MSUs of an inhibited link are held before another one carries them (time-controlled changeover).
    pub diversion: Duration,
    /// T2: the longest time until a changeover is acknowledged.
    pub changeover: Duration,
    /// T4: the longest time until a changeback is acknowledged.
    pub changeback: Duration,
    /// T5: the same for its repetition.
    pub second_changeback: Duration,
    /// T12: the longest time until LUA, twice.
    pub uninhibit: Duration,
    /// T13: the longest time until LFU has an effect, twice.
    pub forced_uninhibit: Duration,
    /// T14: the longest time until LIA or LID, twice.
    pub inhibit: Duration,
    /// T22 and T23: interval of LLT and LRT.
    pub inhibit_test: Duration,
}

impl Default for LinkSetTimers {
    fn default() -> Self {
        Self {
            diversion: Duration::from_secs(1),
            changeover: Duration::from_millis(1_500),
            changeback: Duration::from_secs(1),
            second_changeback: Duration::from_secs(1),
            uninhibit: Duration::from_millis(1_200),
            forced_uninhibit: Duration::from_millis(1_200),
            inhibit: Duration::from_millis(2_500),
            inhibit_test: Duration::from_secs(240),
        }
    }
}
