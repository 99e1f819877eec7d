//! Timers of a link.

use std::time::Duration;

/// How long a link waits (RFC 4165 §4.1, Q.703 §12.3 and its Annex A for links of high rate).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timers {
    /// T1: after proving for *Ready* of the peer.
    pub ready: Duration,
    /// T2: for *Alignment* of the peer.
    pub not_aligned: Duration,
    /// T3: after *Alignment* of the peer for its proving.
    pub aligned: Duration,
    /// T4 of normal proving.
    pub proving: Duration,
    /// T4 of emergency proving.
    pub emergency_proving: Duration,
    /// T5: interval of *Busy* while this side is busy.
    pub busy: Duration,
    /// T6: the longest time that the peer may be busy.
    pub remote_busy: Duration,
    /// T7: the longest time until an MSU is acknowledged.
    pub acknowledgement: Duration,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            ready: Duration::from_secs(35),
            not_aligned: Duration::from_secs(20),
            aligned: Duration::from_secs(2),
            proving: Duration::from_secs(30),
            emergency_proving: Duration::from_millis(500),
            busy: Duration::from_millis(100),
            remote_busy: Duration::from_secs(3),
            acknowledgement: Duration::from_millis(1_200),
        }
    }
}
