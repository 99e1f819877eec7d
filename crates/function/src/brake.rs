//! The brake of an audit: how many records it may remove in a time without the word of an operator.
//!
//! An NRF that says something wrong of a function, or a peer that does, must not empty a table. A rate bounds how fast
//! records go; a share of the table bounds how many. Beyond it the audit removes none until an operator releases the
//! brake. Time is an argument.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use overload::{Rate, RateLimiter};
use parking_lot::Mutex;
use settings::Percent;
use tokio::sync::Notify;

/// How much may go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Records of a table that are removed in a second, at most.
    pub removal_rate: u32,
    /// The share of a table's records that may be removed within `period`.
    pub most_removed: Percent,
    /// Records of a table that may be removed within `period` whatever share they are.
    pub free_removals: u32,
    /// The time in which removals are counted.
    pub period: Duration,
}

/// The brake, for each table by name.
#[derive(Debug, Default)]
pub struct Brake {
    tables: Mutex<HashMap<&'static str, Table>>,
    /// The operator has released it.
    pub released: Notify,
}

#[derive(Debug)]
struct Table {
    since: Instant,
    removed: u64,
    /// Removals refused since it holds; `None`: it does not hold.
    held: Option<u64>,
    released: bool,
    pace: RateLimiter,
}

/// Whether a record may be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// It may.
    Now,
    /// Not before this time is over; then the answer may be another.
    After(Duration),
    /// It stays. The first one since the brake holds is `true`.
    Never(bool),
}

/// What an operator sees of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    table: &'static str,
    removed: u64,
    braked: bool,
    held_back: u64,
}

impl Brake {
    /// Whether one of the `total` records of a table may be removed.
    pub fn permit(&self, now: Instant, table: &'static str, bounds: &Bounds, total: u64) -> Permit {
        let rate = Rate::per_second(f64::from(bounds.removal_rate));
        let mut tables = self.tables.lock();
        let state = tables.entry(table).or_insert_with(|| Table {
            since: now,
            removed: 0,
            held: None,
            released: false,
            pace: RateLimiter::new(rate),
        });
        if let Some(held) = &mut state.held {
            *held += 1;
            return Permit::Never(false);
        }
        if now.saturating_duration_since(state.since) > bounds.period {
            (state.since, state.removed, state.released) = (now, 0, false);
        }
        let share = (total as f64 * bounds.most_removed.fraction()) as u64;
        if !state.released && state.removed >= share.max(u64::from(bounds.free_removals)) {
            state.held = Some(1);
            return Permit::Never(true);
        }
        state.pace.set_rate(rate);
        if !state.pace.allow(now) {
            let wait = state.pace.wait(now).unwrap_or(Duration::from_secs(1));
            return Permit::After(wait.max(Duration::from_millis(1)));
        }
        state.removed += 1;
        Permit::Now
    }

    /// A record that might be removed was not: it had changed meanwhile.
    pub fn unused(&self, table: &'static str) {
        if let Some(state) = self.tables.lock().get_mut(table) {
            state.removed = state.removed.saturating_sub(1);
        }
    }

    /// The word of an operator: what is held back may go, for one period.
    pub fn release(&self, now: Instant) {
        for state in self.tables.lock().values_mut() {
            (state.since, state.removed, state.released, state.held) = (now, 0, true, None);
        }
        self.released.notify_one();
    }

    /// Whether the brake holds for some table.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.tables.lock().values().any(|state| state.held.is_some())
    }

    /// What an operator sees of each table.
    #[must_use]
    pub fn shown(&self) -> Vec<Shown> {
        let tables = self.tables.lock();
        let mut shown: Vec<Shown> = tables
            .iter()
            .map(|(table, state)| Shown {
                table,
                removed: state.removed,
                braked: state.held.is_some(),
                held_back: state.held.unwrap_or_default(),
            })
            .collect();
        shown.sort_by_key(|one| one.table);
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_and_a_rate_bound_what_goes_until_an_operator_says_otherwise() {
        let (brake, begun) = (Brake::default(), Instant::now());
        let bounds = Bounds {
            removal_rate: 10,
            most_removed: Percent::new(10.0),
            free_removals: 5,
            period: Duration::from_secs(3_600),
        };
        let second = |count: u64| begun + Duration::from_secs(count);
        let permit = |at, total| brake.permit(at, "t", &bounds, total);
        assert_eq!(permit(begun, 1_000), Permit::Now);
        assert!(matches!(permit(begun, 1_000), Permit::After(wait) if wait <= Duration::from_millis(100)));
        for count in 1..100 {
            assert_eq!(permit(second(count), 1_000), Permit::Now, "{count}");
        }
        assert_eq!(permit(second(200), 1_000), Permit::Never(true));
        assert_eq!(permit(second(201), 1_000_000), Permit::Never(false));
        // Time alone does not release it.
        assert_eq!(permit(second(20_000), 1_000), Permit::Never(false));
        assert!(brake.holds());
        assert_eq!(brake.shown()[0].held_back, 3);
        brake.release(second(20_000));
        assert!(!brake.holds());
        for count in 20_001..20_300 {
            assert_eq!(permit(second(count), 1_000), Permit::Now);
        }
        // The word holds for a period; of a small table some may always go.
        for count in 0..5 {
            assert_eq!(permit(second(30_000 + count), 7), Permit::Now);
        }
        assert_eq!(permit(second(30_010), 7), Permit::Never(true));
        assert_eq!(brake.permit(second(30_010), "other", &bounds, 7), Permit::Now);
    }
}
