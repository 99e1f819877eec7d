//! Progress on stderr: count, rate, share, remaining time.

use std::time::{Duration, Instant};

use crate::complain;

/// What is shown of long work, every two seconds.
pub(super) struct Display {
    begun: Instant,
    shown: Instant,
    /// The present part of the work, and when it began.
    part: (&'static str, Instant),
}

impl Display {
    const EVERY: Duration = Duration::from_secs(2);

    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            begun: now,
            shown: now,
            part: ("", now),
        }
    }

    /// Shows how far a part of the work is, and the share of it that is done where that is known.
    pub(super) fn show(&mut self, what: &'static str, count: u64, share: Option<f64>) {
        let now = Instant::now();
        if self.part.0 != what {
            self.part = (what, if self.part.0.is_empty() { self.begun } else { now });
        }
        if now - self.shown < Self::EVERY {
            return;
        }
        self.shown = now;
        complain(&line(what, count, now - self.part.1, share));
    }

    /// Time since the beginning.
    pub(super) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

fn line(what: &str, count: u64, took: Duration, share: Option<f64>) -> String {
    let seconds = took.as_secs_f64().max(0.001);
    let mut text = format!("{count} {what}, {:.0} a second", count as f64 / seconds);
    if let Some(share) = share.filter(|share| *share > 0.0) {
        let left = (seconds / share.min(1.0) - seconds).ceil();
        text += &format!(", {:.0} %, {left:.0} s left", share.min(1.0) * 100.0);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_has_rate_share_and_remaining_time() {
        let text = line("lines read", 4_000_000, Duration::from_secs(4), Some(0.25));
        assert_eq!(text, "4000000 lines read, 1000000 a second, 25 %, 12 s left");
        let text = line("lines read", 10, Duration::from_secs(5), None);
        assert_eq!(text, "10 lines read, 2 a second");
    }
}
