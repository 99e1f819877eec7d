//! Messages in flight, by their transactions.

use std::collections::VecDeque;
use std::time::Duration;

use super::messages::Next;
use crate::load::Sent;

/// A message that was sent within the last timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) sent: Sent,
    pub(super) next: Next,
    /// Whether it has arrived.
    pub(super) is_over: bool,
}

/// Messages by transaction, which are numbered one after the other. Those that have arrived stay until their time is
/// over, so that a second arrival shows.
#[derive(Debug, Default)]
pub(super) struct Pending {
    first: u32,
    flights: VecDeque<Flight>,
}

impl Pending {
    /// The transaction of the next message.
    pub(super) fn next(&self) -> u32 {
        self.first.wrapping_add(self.flights.len() as u32)
    }

    pub(super) fn push(&mut self, flight: Flight) {
        self.flights.push_back(flight);
    }

    pub(super) fn get_mut(&mut self, transaction: u32) -> Option<&mut Flight> {
        self.flights
            .get_mut(transaction.wrapping_sub(self.first) as usize)
    }

    /// Ends all, and goes on behind the last transaction.
    pub(super) fn clear(&mut self) {
        self.first = self.next();
        self.flights.clear();
    }

    /// Removes the oldest message if it was to be sent before this time.
    pub(super) fn pop_before(&mut self, time: Duration) -> Option<Flight> {
        let flight = self.flights.pop_front_if(|flight| flight.sent.intended <= time)?;
        self.first = self.first.wrapping_add(1);
        Some(flight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Ticket;

    fn flight(at: u64) -> Flight {
        Flight {
            sent: Sent {
                ticket: Ticket::default(),
                intended: Duration::from_secs(at),
                step: 1,
            },
            next: Next {
                ticket: Ticket::default(),
                from: 0,
                to: 1,
                second: None,
                sls: at as u8,
            },
            is_over: false,
        }
    }

    #[test]
    fn transactions_are_found_until_their_time_is_over() {
        let mut pending = Pending {
            first: u32::MAX - 1,
            ..Pending::default()
        };
        for at in 0..4 {
            assert_eq!(pending.next(), (u32::MAX - 1).wrapping_add(at));
            pending.push(flight(u64::from(at)));
        }
        assert_eq!(pending.get_mut(1).unwrap().next.sls, 3);
        assert!(pending.get_mut(2).is_none());
        assert_eq!(pending.pop_before(Duration::from_secs(1)).unwrap().next.sls, 0);
        assert_eq!(pending.pop_before(Duration::from_secs(1)).unwrap().next.sls, 1);
        assert!(pending.pop_before(Duration::from_secs(1)).is_none());
        assert!(pending.get_mut(u32::MAX).is_none());
        assert_eq!(pending.get_mut(0).unwrap().next.sls, 2);
        pending.clear();
        assert_eq!((pending.next(), pending.get_mut(0).is_none()), (2, true));
    }
}
