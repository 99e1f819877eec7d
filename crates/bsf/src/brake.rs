//! The brake of the audit: how many bindings it may remove in a time without the word of an operator.
//!
//! An NRF that says something wrong of a PCF, or a PCF that does, must not empty a table. A rate bounds how fast
//! bindings go; a share of the table bounds how many. Beyond it the audit removes none until an operator releases the
//! brake, and an alarm says so. Time is an argument.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use overload::{Rate, RateLimiter};
use parking_lot::Mutex;
use telemetry::{AlarmKind, Severity};
use tokio::sync::Notify;

use crate::config::Audit;

/// The audit has removed as much as it may. The number is ours.
pub(crate) const BRAKED: AlarmKind = AlarmKind {
    number: 10_541,
    name: "BSF Audit Braked",
    severity: Severity::Major,
    text: "The audit would remove more bindings than it may without the word of an operator; they stay.",
    advice: "Check what the NRF says of the PCFs in the detail. `PUT /bsf/audit \"RELEASED\"` lets the audit remove them.",
};

/// The brake, for each table by name.
#[derive(Debug, Default)]
pub(crate) struct Brake {
    tables: Mutex<HashMap<&'static str, Table>>,
    /// The operator has released it.
    pub(crate) released: Notify,
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

/// Whether a binding may be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    Now,
    After(Duration),
    /// It stays. The first one since the brake holds is `true`.
    Never(bool),
}

/// What an operator sees of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Shown {
    table: &'static str,
    removed: u64,
    braked: bool,
    held_back: u64,
}

impl Brake {
    /// Whether one of the `total` bindings of a table may be removed.
    pub(crate) fn permit(&self, now: Instant, table: &'static str, settings: &Audit, total: u64) -> Permit {
        let rate = Rate::per_second(f64::from(settings.removal_rate));
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
        if now.saturating_duration_since(state.since) > settings.brake_period.duration() {
            (state.since, state.removed, state.released) = (now, 0, false);
        }
        let share = (total as f64 * settings.most_removed.fraction()) as u64;
        if !state.released && state.removed >= share.max(u64::from(settings.free_removals)) {
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

    /// The word of an operator: what is held back may go, for one `brakePeriod`.
    pub(crate) fn release(&self, now: Instant) {
        for state in self.tables.lock().values_mut() {
            (state.since, state.removed, state.released, state.held) = (now, 0, true, None);
        }
        self.released.notify_one();
    }

    /// Whether the brake holds for some table.
    pub(crate) fn holds(&self) -> bool {
        self.tables.lock().values().any(|state| state.held.is_some())
    }

    pub(crate) fn shown(&self) -> Vec<Shown> {
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
    use settings::{Percent, Period};

    #[test]
    fn a_share_and_a_rate_bound_what_goes_until_an_operator_says_otherwise() {
        let (brake, begun) = (Brake::default(), Instant::now());
        let settings = Audit {
            removal_rate: 10,
            most_removed: Percent::new(10.0),
            free_removals: 5,
            brake_period: Period::from_secs(3_600),
            ..Audit::default()
        };
        let second = |count: u64| begun + Duration::from_secs(count);
        let permit = |at, total| brake.permit(at, "t", &settings, total);
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
        assert_eq!(brake.permit(second(30_010), "other", &settings, 7), Permit::Now);
    }
}
