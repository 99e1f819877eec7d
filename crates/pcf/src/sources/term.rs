//! How long producers keep subscriptions.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The term of a subscription that has ended already by our clock, in milliseconds: it is the clock that differs, and the producer
/// is not asked in a circle.
const UNKNOWN: u64 = 60_000;

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    u64::try_from(OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000).unwrap_or(0)
}

/// As [`now_ms`], in the signed form of some records.
pub(crate) fn signed_now_ms() -> i64 {
    i64::try_from(now_ms()).unwrap_or(i64::MAX)
}

/// How long a producer keeps a subscription, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Term {
    /// When it ends, since 1970.
    until: u64,
    /// From when it was given.
    life: u64,
}

impl Term {
    /// The term of an answer that names its end (TS 29.594 `SpendingLimitStatus.expiry`, TS 29.519 `PolicyDataSubscription.expiry`).
    pub(crate) fn of(expiry: Option<&str>, now: u64) -> Option<Self> {
        let end = OffsetDateTime::parse(expiry?, &Rfc3339).ok()?;
        let until = u64::try_from(end.unix_timestamp_nanos() / 1_000_000).unwrap_or(0);
        let life = until.checked_sub(now).filter(|life| *life > 0).unwrap_or(UNKNOWN);
        Some(Self {
            until: now.saturating_add(life),
            life,
        })
    }

    /// The next term of a subscription that was renewed without a word about its end.
    pub(crate) fn again(self, now: u64) -> Self {
        Self {
            until: now.saturating_add(self.life),
            ..self
        }
    }

    /// When it is to be renewed: a third of it is left for producers that do not answer at once.
    pub(crate) fn due(self) -> u64 {
        self.until.saturating_sub(self.life / 3)
    }
}
