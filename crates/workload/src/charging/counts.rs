//! What gateways have sent, and what they have got.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::Kind;

/// Refused requests that are noted, at most.
const MOST_REFUSED: usize = 1 << 20;

/// A request that was answered with another result than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What it was.
    pub kind: Kind,
    /// The number of its session.
    pub session: u32,
    /// CC-Request-Number.
    pub number: u32,
    /// The result.
    pub code: u32,
}

/// Counts of all threads.
#[derive(Debug, Default)]
pub struct Counts {
    /// CCRs that were sent, and those that were answered with success.
    pub(super) sent: AtomicU64,
    pub(super) answered: AtomicU64,
    /// CCR-Us among them: an OCS may send a RAR after each.
    pub(super) updates: [AtomicU64; 2],
    /// RARs at the gateway of their session.
    pub(super) re_auths: AtomicU64,
    refused: Mutex<Vec<Refused>>,
}

/// A copy of [`Counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// CCRs that were sent.
    pub sent: u64,
    /// CCRs that were answered with success.
    pub answered: u64,
    /// CCR-Us that were sent, and those that were answered with success.
    pub updates: [u64; 2],
    /// RARs at the gateway of their session.
    pub re_auths: u64,
}

impl Counts {
    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refuse(&self, refused: Refused) {
        let mut all = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MOST_REFUSED {
            all.push(refused);
        }
    }

    /// As of now.
    #[must_use]
    pub fn seen(&self) -> Seen {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Seen {
            sent: of(&self.sent),
            answered: of(&self.answered),
            updates: self.updates.each_ref().map(of),
            re_auths: of(&self.re_auths),
        }
    }

    /// The refused requests, the first million of them.
    #[must_use]
    pub fn refused(&self) -> Vec<Refused> {
        self.refused
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
