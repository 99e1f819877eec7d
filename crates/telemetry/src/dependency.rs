//! What a function needs of others (an NRF, a database, a BSF), as the last requests to them showed: last success, last error.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde::Serialize;

use crate::alarms::rfc3339;

/// Characters of an error that are kept: what peers answer may be long.
const MOST_ERROR: usize = 300;

/// One dependency; cheap to clone. A success costs a load as long as the second is the same and none failed before.
#[derive(Clone, Debug)]
pub struct Dependency {
    name: Arc<str>,
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Second since 1970 of the last success; 0: none.
    succeeded: AtomicU64,
    state: Mutex<State>,
    /// Whether the last request failed: 1, otherwise 0.
    failing: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// Since when it succeeds or fails without a pause.
    since: Option<SystemTime>,
    /// Who answered, or what the success means.
    detail: String,
    error: String,
    error_at: Option<SystemTime>,
}

/// Whether requests to a dependency succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// No request was sent yet.
    Unused,
    /// The last request succeeded.
    Good,
    /// The last request failed.
    Failing,
}

/// A dependency as pages show it; moments by RFC 3339.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DependencyRow {
    /// What it is: `registration`, `NRF set 0`, `peer hss.example`.
    pub name: String,
    /// Whether requests to it succeed.
    pub state: Standing,
    /// Since when without a pause.
    pub since: Option<String>,
    /// Who answered.
    pub detail: String,
    /// The last success.
    pub last_success: Option<String>,
    /// The last error, in words; it stays after a success.
    pub last_error: String,
    /// When that was.
    pub last_error_at: Option<String>,
}

impl DependencyRow {
    /// One line for people: `no success since T: the error`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let since = self.since.as_deref().unwrap_or("its start");
        match self.state {
            Standing::Unused => "not used yet".to_owned(),
            Standing::Good => format!("{} since {since}", or(&self.detail, "answers")),
            Standing::Failing => {
                let before = self.last_success.as_deref();
                let before = before.map_or_else(
                    || "; it has never answered".to_owned(),
                    |at| format!("; the last success was at {at}"),
                );
                format!(
                    "failing since {since}: {}{before}",
                    or(&self.last_error, "no reason is known")
                )
            }
        }
    }
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

impl Dependency {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            inner: Arc::default(),
        }
    }

    /// A request to it has succeeded; `detail` says who answered.
    pub fn succeeded(&self, detail: &str) {
        let now = SystemTime::now();
        let second = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let before = self.inner.succeeded.load(Ordering::Relaxed);
        if before == second && self.inner.failing.load(Ordering::Relaxed) == 0 {
            return;
        }
        self.inner.succeeded.store(second, Ordering::Relaxed);
        let mut state = self.inner.state.lock();
        let was_failing = self.inner.failing.swap(0, Ordering::Relaxed) == 1;
        if was_failing || before == 0 || state.detail != detail {
            state.since = Some(now);
            state.detail = cut(detail);
        }
    }

    /// A request to it has failed, for this reason.
    pub fn failed(&self, reason: &str) {
        let now = SystemTime::now();
        let mut state = self.inner.state.lock();
        if self.inner.failing.swap(1, Ordering::Relaxed) == 0 {
            state.since = Some(now);
        }
        state.error = cut(reason);
        state.error_at = Some(now);
    }

    /// As pages show it.
    #[must_use]
    pub fn row(&self) -> DependencyRow {
        let state = self.inner.state.lock();
        let succeeded = self.inner.succeeded.load(Ordering::Relaxed);
        let standing = match (self.inner.failing.load(Ordering::Relaxed), succeeded) {
            (1, _) => Standing::Failing,
            (_, 0) => Standing::Unused,
            _ => Standing::Good,
        };
        DependencyRow {
            name: self.name.to_string(),
            state: standing,
            since: state.since.map(rfc3339),
            detail: state.detail.clone(),
            last_success: (succeeded > 0).then(|| rfc3339(UNIX_EPOCH + Duration::from_secs(succeeded))),
            last_error: state.error.clone(),
            last_error_at: state.error_at.map(rfc3339),
        }
    }
}

fn cut(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(MOST_ERROR).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_says_since_when_and_why() {
        let nrf = Dependency::new("NRF");
        assert_eq!(nrf.row().state, Standing::Unused);
        nrf.failed("connection\nrefused");
        let row = nrf.row();
        assert_eq!(
            (row.state, row.last_error.as_str()),
            (Standing::Failing, "connection refused")
        );
        assert!(
            row.in_words()
                .ends_with("connection refused; it has never answered"),
            "{}",
            row.in_words()
        );
        let since = row.since;
        nrf.failed("timeout");
        assert_eq!(nrf.row().since, since, "one outage");
        nrf.succeeded("http://nrf");
        let row = nrf.row();
        assert_eq!((row.state, row.last_error.as_str()), (Standing::Good, "timeout"));
        assert!(
            row.in_words().starts_with("http://nrf since "),
            "{}",
            row.in_words()
        );
        nrf.failed(&"x".repeat(1_000));
        assert!(nrf.row().in_words().contains("the last success was at "));
        assert_eq!(nrf.row().last_error.len(), MOST_ERROR);
    }
}
