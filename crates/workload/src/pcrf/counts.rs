//! What the PCRF must have sent, and what it has.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of all threads.
#[derive(Debug, Default)]
pub struct Counts {
    /// CCR-Us and AARs that were sent, and those that were answered with success: a PCRF may send a RAR after each.
    pub(super) sent: [AtomicU64; 2],
    pub(super) accepted: [AtomicU64; 2],
    /// Requests of standing sessions that were answered as if there were no session.
    pub(super) unknown: AtomicU64,
    /// Calls that an AAA has accepted.
    pub(super) begun: AtomicU64,
    /// Calls that an STA has ended.
    pub(super) ended: AtomicU64,
    /// Reports of a charging identifier that a CCA has accepted.
    pub(super) reported: AtomicU64,
    /// RARs at PCEFs that install rules, those that remove some, others.
    pub(super) installs: AtomicU64,
    pub(super) removals: AtomicU64,
    pub(super) other: AtomicU64,
    /// RARs and ASRs at P-CSCFs.
    pub(super) rx: AtomicU64,
    pub(super) aborts: AtomicU64,
}

/// A copy of [`Counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// CCR-Us and AARs that were sent.
    pub sent: [u64; 2],
    /// CCR-Us and AARs that were answered with success.
    pub accepted: [u64; 2],
    /// Requests of standing sessions that were answered as if there were no session.
    pub unknown: u64,
    /// Calls begun and ended.
    pub calls: (u64, u64),
    /// Reports of a charging identifier.
    pub reported: u64,
    /// RARs at PCEFs: installations and removals of rules, others.
    pub gx: (u64, u64, u64),
    /// RARs and ASRs at P-CSCFs.
    pub rx: (u64, u64),
}

impl Counts {
    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// As of now.
    #[must_use]
    pub fn seen(&self) -> Seen {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Seen {
            sent: self.sent.each_ref().map(of),
            accepted: self.accepted.each_ref().map(of),
            unknown: of(&self.unknown),
            calls: (of(&self.begun), of(&self.ended)),
            reported: of(&self.reported),
            gx: (of(&self.installs), of(&self.removals), of(&self.other)),
            rx: (of(&self.rx), of(&self.aborts)),
        }
    }

    /// Requests that the PCRF has sent.
    #[must_use]
    pub fn received(&self) -> u64 {
        let Seen { gx, rx, .. } = self.seen();
        gx.0 + gx.1 + gx.2 + rx.0 + rx.1
    }
}
