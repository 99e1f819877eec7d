//! Counters of a simulator; one thread counts, another reports.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// Counters of a simulator since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Requests received.
    pub requests: u64,
    /// Answers sent as the role gave them.
    pub answered: u64,
    /// Requests that met a misbehaviour other than delay.
    pub misbehaved: u64,
    /// Requests that were invalid for the role.
    pub bad_requests: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections that stand now.
    pub connections: u64,
    /// Requests that it sent itself.
    pub asked: u64,
    /// Of which answered.
    pub asked_answered: u64,
    /// Load reports of producers.
    #[serde(default)]
    pub loads: u64,
    /// Reports of an overload, or of its end, of producers.
    #[serde(default)]
    pub overloads: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Requests with the T flag (RFC 6733 §3): they may have been received before, here or elsewhere.
    #[serde(default)]
    pub retransmitted: u64,
    /// Gx sessions that have begun at PCRFs, or were refused there.
    #[serde(default)]
    pub sessions: u64,
    /// Those of them that came to a PCRF while their subscriber has one at another PCRF.
    #[serde(default)]
    pub stray_sessions: u64,
    /// AARs at PCRFs.
    #[serde(default)]
    pub media: u64,
    /// Those of them at a PCRF that has not the Gx session of their address.
    #[serde(default)]
    pub stray_media: u64,
}

/// The counters behind [`Stats`].
#[derive(Debug, Default)]
pub struct Counters {
    pub(super) requests: AtomicU64,
    pub(super) answered: AtomicU64,
    pub(super) misbehaved: AtomicU64,
    pub(super) bad_requests: AtomicU64,
    pub(super) accepted: AtomicU64,
    pub(super) connections: AtomicU64,
    pub(super) asked: AtomicU64,
    pub(super) asked_answered: AtomicU64,
    pub(super) loads: AtomicU64,
    pub(super) overloads: AtomicU64,
    pub(super) bytes_in: AtomicU64,
    pub(super) bytes_out: AtomicU64,
    pub(super) retransmitted: AtomicU64,
    pub(super) sessions: AtomicU64,
    pub(super) stray_sessions: AtomicU64,
    pub(super) media: AtomicU64,
    pub(super) stray_media: AtomicU64,
}

/// Adds to a counter that only this thread writes.
pub(super) fn add(counter: &AtomicU64, by: u64) {
    counter.store(
        counter.load(Ordering::Relaxed).wrapping_add(by),
        Ordering::Relaxed,
    );
}

impl Counters {
    /// As of now.
    #[must_use]
    pub fn read(&self) -> Stats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            requests: get(&self.requests),
            answered: get(&self.answered),
            misbehaved: get(&self.misbehaved),
            bad_requests: get(&self.bad_requests),
            accepted: get(&self.accepted),
            connections: get(&self.connections),
            asked: get(&self.asked),
            asked_answered: get(&self.asked_answered),
            loads: get(&self.loads),
            overloads: get(&self.overloads),
            bytes_in: get(&self.bytes_in),
            bytes_out: get(&self.bytes_out),
            retransmitted: get(&self.retransmitted),
            sessions: get(&self.sessions),
            stray_sessions: get(&self.stray_sessions),
            media: get(&self.media),
            stray_media: get(&self.stray_media),
        }
    }
}
