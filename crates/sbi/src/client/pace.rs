//! A rate limit for single actions, evenly spaced.

use std::time::{Duration, Instant};

/// Grants turns, evenly spaced.
#[derive(Debug)]
pub(super) struct Pace {
    /// `None`: no turn is ever granted.
    period: Option<Duration>,
    next: Option<Instant>,
}

impl Pace {
    /// Turns per second; with 0 no turn is ever granted.
    pub(super) fn new(per_second: u32) -> Self {
        Self {
            period: Duration::from_secs(1).checked_div(per_second),
            next: None,
        }
    }

    /// When the next turn is.
    pub(super) fn turn(&mut self, now: Instant) -> Option<Instant> {
        let mine = self.next.map_or(now, |next| next.max(now));
        self.next = Some(mine + self.period?);
        Some(mine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_spaced() {
        let (mut pace, start) = (Pace::new(10), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        for expected in [0, 100, 200] {
            assert_eq!(pace.turn(start), Some(at(expected)));
        }
        assert_eq!(pace.turn(at(1_200)), Some(at(1_200)), "no turns are saved up");
        assert_eq!(pace.turn(at(1_200)), Some(at(1_300)));
        assert_eq!(Pace::new(0).turn(start), None);
    }
}
