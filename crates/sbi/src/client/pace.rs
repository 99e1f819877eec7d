//! Something that may happen only so often.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;

/// Gives out turns, evenly spaced.
#[derive(Debug)]
pub(super) struct Pace {
    period: Duration,
    next: Cell<Option<Instant>>,
}

impl Pace {
    /// So many turns a second; 0 means that no turn ever comes.
    pub(super) fn new(per_second: u32) -> Self {
        let period = match per_second {
            0 => Duration::MAX,
            rate => Duration::from_secs(1) / rate,
        };
        Self {
            period,
            next: Cell::new(None),
        }
    }

    /// Waits for the next turn.
    pub(super) async fn turn(&self) {
        if self.period == Duration::MAX {
            return std::future::pending().await;
        }
        let now = Instant::now();
        let mine = self.next.get().map_or(now, |next| next.max(now));
        self.next.set(Some(mine + self.period));
        tokio::time::sleep_until(mine).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn turns_are_spaced() {
        let (pace, start) = (Pace::new(10), Instant::now());
        for expected in [0, 100, 200] {
            pace.turn().await;
            assert_eq!(start.elapsed(), Duration::from_millis(expected));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        pace.turn().await;
        assert_eq!(
            start.elapsed(),
            Duration::from_millis(1_200),
            "no turns are saved up"
        );
        let none = Pace::new(0);
        let never = tokio::time::timeout(Duration::from_secs(9), none.turn());
        assert!(never.await.is_err());
    }
}
