//! Requests per second of a connection to a peer.

use std::time::{Duration, Instant};

/// Length of a slot. A request counts for a second and at most this long beyond it, so that a connection at its rate
/// sends at least 95 % of it.
const SLOT: Duration = Duration::from_millis(50);

/// The running slot, and those that a second before it may reach into.
const SLOTS: usize = 21;

/// The requests of the last second. Wherever a peer's own seconds begin, none of them has more than the limit.
#[derive(Clone, Debug)]
pub(super) struct RateWindow {
    /// Requests per second. 0: not limited.
    limit: u32,
    /// When the running slot began.
    began: Instant,
    /// Position of the running slot.
    running: usize,
    slots: [u32; SLOTS],
    /// Sum of the slots.
    sent: u32,
}

impl RateWindow {
    pub(super) fn new(limit: u32, now: Instant) -> Self {
        Self {
            limit,
            began: now,
            running: 0,
            slots: [0; SLOTS],
            sent: 0,
        }
    }

    pub(super) fn is_limited(&self) -> bool {
        self.limit > 0
    }

    /// Requests that may be sent at `now`.
    pub(super) fn room(&mut self, now: Instant) -> u32 {
        if !self.is_limited() {
            return u32::MAX;
        }
        self.advance(now);
        self.limit.saturating_sub(self.sent)
    }

    /// Counts a request that is sent at `now`.
    pub(super) fn take(&mut self, now: Instant) {
        if self.is_limited() {
            self.advance(now);
            self.slots[self.running] += 1;
            self.sent += 1;
        }
    }

    /// Moves on to the slot that `now` lies in.
    fn advance(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.began);
        if passed < SLOT {
            return;
        }
        let steps = passed.as_nanos() / SLOT.as_nanos();
        if steps >= SLOTS as u128 {
            *self = Self::new(self.limit, now);
            return;
        }
        for _ in 0..steps {
            self.running = (self.running + 1) % SLOTS;
            self.sent -= std::mem::take(&mut self.slots[self.running]);
            self.began += SLOT;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sends as many of `offered` as there is room for.
    fn send(window: &mut RateWindow, offered: u32, now: Instant) -> u32 {
        let sent = (0..offered).take_while(|_| {
            let may = window.room(now) > 0;
            if may {
                window.take(now);
            }
            may
        });
        u32::try_from(sent.count()).unwrap()
    }

    #[test]
    fn a_second_later_there_is_room_again() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut window = RateWindow::new(10, start);
        assert_eq!(send(&mut window, 20, start), 10);
        assert_eq!(send(&mut window, 20, at(1_000)), 0);
        assert_eq!(send(&mut window, 20, at(1_050)), 10);
        assert_eq!(send(&mut window, 20, at(9_000)), 10, "no room is saved up");
        let mut free = RateWindow::new(0, start);
        assert_eq!(send(&mut free, 1_000, start), 1_000);
    }

    proptest! {
        #[test]
        fn no_second_has_more_than_the_limit(
            limit in 1_u32..50,
            steps in prop::collection::vec((0_u64..400, 0_u32..60), 1..80),
        ) {
            let start = Instant::now();
            let mut window = RateWindow::new(limit, start);
            let mut now = start;
            let mut sent: Vec<(Instant, u32)> = Vec::new();
            for (pause, offered) in steps {
                now += Duration::from_millis(pause);
                sent.push((now, send(&mut window, offered, now)));
                let second = sent.iter().filter(|(at, _)| now - *at < Duration::from_secs(1));
                prop_assert!(second.map(|(_, count)| count).sum::<u32>() <= limit);
            }
        }

        #[test]
        fn what_is_offered_all_the_time_is_sent_at_the_rate(limit in 20_u32..200) {
            let start = Instant::now();
            let mut window = RateWindow::new(limit, start);
            let sent: u32 = (0..10_000)
                .map(|ms| send(&mut window, limit, start + Duration::from_millis(ms)))
                .sum();
            prop_assert!(f64::from(sent) >= 0.95 * 10.0 * f64::from(limit), "{} of {}", sent, limit);
        }
    }
}
