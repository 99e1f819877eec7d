//! Requests per second of a connection.

use std::time::{Duration, Instant};

/// Requests of the running second.
#[derive(Debug, Default)]
pub(super) struct RateWindow {
    began: Option<Instant>,
    count: u32,
}

impl RateWindow {
    /// Counts a request; whether it is within `limit` a second (0: no limit).
    pub(super) fn admits(&mut self, limit: u32, now: Instant) -> bool {
        if limit == 0 {
            return true;
        }
        let over = |began| now.saturating_duration_since(began) >= Duration::from_secs(1);
        if self.began.is_none_or(over) {
            self.began = Some(now);
            self.count = 0;
        }
        self.count = self.count.saturating_add(1);
        self.count <= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_second_admits_again() {
        let (mut window, start) = (RateWindow::default(), Instant::now());
        let admitted = |window: &mut RateWindow, at| (0..5).filter(|_| window.admits(3, at)).count();
        assert_eq!(admitted(&mut window, start), 3);
        assert_eq!(admitted(&mut window, start + Duration::from_millis(999)), 0);
        assert_eq!(admitted(&mut window, start + Duration::from_secs(1)), 3);
        assert!(window.admits(0, start));
    }
}
