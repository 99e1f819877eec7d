//! Asking NRFs what is true of the NFs that notifications name: a few at a time, and not faster than they bear.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

use super::book::{Change, Heard, Hint};
use super::nrf::{LookedUp, NrfSet};
use crate::config::Nrf;

/// Lookups that are under way.
pub(super) struct Lookups {
    /// NFs that may be looked up or wait for it, together.
    pub(super) most: usize,
    slots: Rc<Semaphore>,
    pace: Rc<Pace>,
}

/// Spreads lookups over time.
struct Pace {
    interval: Duration,
    next: Cell<Instant>,
}

/// Tries when no NRF answers, with pauses that double; then the audit finds what has changed.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

impl Lookups {
    pub(super) fn new(settings: &Nrf) -> Self {
        Self {
            most: settings.max_lookups_waiting,
            slots: Rc::new(Semaphore::new(settings.max_lookups)),
            pace: Rc::new(Pace {
                interval: Duration::from_secs(1) / settings.lookup_rate.max(1),
                next: Cell::new(Instant::now()),
            }),
        }
    }

    /// Looks an NF up at a set; what it says comes to `told`.
    pub(super) fn begin(&self, nrf: Rc<NrfSet>, hint: Hint, told: mpsc::Sender<Heard>) {
        let (slots, pace) = (self.slots.clone(), self.pace.clone());
        tokio::task::spawn_local(async move {
            let mut found = LookedUp::Unanswered;
            for tried in 0..TRIES {
                // It is closed by nobody.
                if let Ok(_slot) = slots.acquire().await {
                    tokio::time::sleep_until(pace.turn(Instant::now())).await;
                    found = nrf.look_up(&hint.id).await;
                }
                // An NRF may know later than another of its set what that one has told: it is asked twice.
                let settled = match found {
                    LookedUp::Known(_) => !hint.gone || tried > 0,
                    LookedUp::Gone => hint.gone || tried > 0,
                    LookedUp::Unanswered => false,
                };
                if settled {
                    break;
                }
                tokio::time::sleep(PAUSE * 2_u32.pow(tried)).await;
            }
            let set = nrf.number;
            let change = Change::LookedUp(hint, found);
            // Nobody listens any more: then nobody needs it.
            let _ = told.send(Heard { set, change }).await;
        });
    }
}

impl Pace {
    /// When it is the turn of one that asks now.
    fn turn(&self, now: Instant) -> Instant {
        let turn = self.next.get().max(now);
        self.next.set(turn + self.interval);
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_spread_and_not_saved_up() {
        let (now, interval) = (Instant::now(), Duration::from_millis(2));
        let pace = Pace {
            interval,
            next: Cell::new(now),
        };
        let last = (0..501).map(|_| pace.turn(now)).last();
        assert_eq!(last, Some(now + Duration::from_secs(1)));
        let later = now + Duration::from_secs(10);
        assert_eq!((pace.turn(later), pace.turn(later)), (later, later + interval));
    }
}
