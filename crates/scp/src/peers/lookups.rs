//! Look-ups at NRFs of the NFs that notifications name, bounded in number and rate.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;

use super::book::{Change, Heard, Hint};
use super::nrf::{LookedUp, NrfSet};
use crate::config::Nrf;

/// Look-ups in flight.
pub(super) struct Lookups {
    /// Pending look-ups at most, those in flight included.
    pub(super) most: usize,
    slots: Rc<Semaphore>,
    pace: Rc<Pace>,
}

/// Bounds the rate of look-ups.
struct Pace {
    interval: Duration,
    next: Cell<Instant>,
}

/// Attempts when no NRF answers, with pauses that double; afterwards the audit finds the change.
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

    /// Looks up an NF at a set; sends the result to `changes`.
    pub(super) fn begin(&self, nrf: Rc<NrfSet>, hint: Hint, changes: mpsc::Sender<Heard>) {
        let (slots, pace) = (self.slots.clone(), self.pace.clone());
        tokio::task::spawn_local(async move {
            let mut found = LookedUp::Unanswered;
            for tried in 0..TRIES {
                // The semaphore is never closed.
                if let Ok(_slot) = slots.acquire().await {
                    tokio::time::sleep_until(pace.turn(Instant::now())).await;
                    found = nrf.look_up(&hint.id).await;
                }
                // Another NRF of the set may be behind the notifying one, so a contradiction is checked twice.
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
            // The book may have ended.
            let _ = changes.send(Heard { set, change }).await;
        });
    }
}

impl Pace {
    /// Returns when a look-up that is requested now may start.
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
