//! The check of deliveries: the right node, once, in the order of the link selection.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use ahash::AHashMap;
use ss7_proto::m3ua::Data;

use super::counts::{Absence, Counts, count};
use super::messages::{Messages, Next};
use super::pending::{Flight, Pending};
use crate::load::{Ended, Fault, Ledger};

/// What judges the messages that arrive at a node.
pub(super) struct Deliveries<'a> {
    pub(super) at: usize,
    pub(super) now: Duration,
    pub(super) messages: &'a mut dyn Messages,
    pub(super) pending: &'a mut Pending,
    pub(super) last: &'a mut AHashMap<(usize, usize, u8), u32>,
    pub(super) fates: Fates<'a>,
}

/// What counts failures by the nodes that were away.
#[derive(Clone, Copy)]
pub(super) struct Fates<'a> {
    pub(super) numbers: &'a [u32],
    pub(super) absence: &'a Absence,
    pub(super) counts: &'a Counts,
}

impl Fates<'_> {
    pub(super) fn failed(&self, next: &Next) {
        self.count(next, &self.counts.elsewhere);
    }

    pub(super) fn late(&self, next: &Next) {
        self.count(next, &self.counts.late_elsewhere);
    }

    fn count(&self, next: &Next, counter: &AtomicU64) {
        if self
            .absence
            .spares([self.number(next.from), self.number(next.to)])
        {
            count(counter);
        }
    }

    /// Whether a node is the one that drills take away.
    fn is_absentee(&self, at: usize) -> bool {
        self.absence.concerns(self.number(at))
    }

    fn number(&self, at: usize) -> u32 {
        self.numbers.get(at).copied().unwrap_or_default()
    }
}

impl Deliveries<'_> {
    pub(super) fn take(&mut self, data: &Data<'_>, ledger: &mut Ledger) {
        let counts = self.fates.counts;
        if self.fates.is_absentee(self.at) {
            count(&counts.arrived_there);
        }
        let Some(reading) = self.messages.read(data) else {
            return count(&counts.strays);
        };
        let Some(flight) = self.pending.get_mut(reading.transaction) else {
            return count(&counts.strays);
        };
        if flight.is_over {
            return count(&counts.doubled);
        }
        flight.is_over = true;
        let Flight { sent, next, .. } = *flight;
        if let Some(cause) = reading.returned.filter(|_| next.from != next.to) {
            count(&counts.returned);
            self.fates.failed(&next);
            let ended = Ended::Judged(Err(Fault::Status), u32::from(cause));
            return ledger.end(&sent, ended, self.now);
        }
        if next.second == Some(self.at) {
            count(&counts.seconds);
        }
        let verdict = if self.at != next.to && next.second != Some(self.at) {
            count(&counts.misrouted);
            let words = format!("arrived at node {} instead of {}", self.at, next.to);
            Err(Fault::Body(words))
        } else if data.sls != next.sls {
            let words = format!("link selection {} instead of {}", data.sls, next.sls);
            Err(Fault::Body(words))
        } else if self.overtakes((self.at, next.from, next.sls), reading.transaction) {
            count(&counts.disordered);
            Err(Fault::Body("arrived before an earlier one".to_owned()))
        } else {
            self.messages.judge(&sent.ticket, reading.transaction, data)
        };
        if verdict.is_err() {
            self.fates.failed(&next);
        }
        ledger.end(&sent, Ended::Judged(verdict, 0), self.now);
    }

    /// Whether a later transaction of the same order has arrived.
    fn overtakes(&mut self, order: (usize, usize, u8), transaction: u32) -> bool {
        let last = self.last.insert(order, transaction);
        // Numbers start again from 0 after 2^32.
        last.is_some_and(|last| (transaction.wrapping_sub(last) as i32) < 0)
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;

    use super::*;
    use crate::load::{FailureKind, Ticket};
    use crate::m3ua::Reading;
    use ss7_proto::PointCode;
    use ss7_proto::m3ua::ServiceIndicator;

    /// Messages whose user data are their transaction, and a cause where they have returned.
    struct Plain;

    impl Messages for Plain {
        fn operations(&self) -> Vec<String> {
            vec!["plain".to_owned()]
        }

        fn next(&mut self, _: &mut SmallRng, _: u32, _: &mut Vec<u8>) -> Next {
            next(0)
        }

        fn read(&self, data: &Data<'_>) -> Option<Reading> {
            Some(Reading {
                transaction: u32::from(*data.user_data.first()?),
                returned: data.user_data.get(1).copied(),
            })
        }

        fn judge(&mut self, _: &Ticket, transaction: u32, _: &Data<'_>) -> Result<(), Fault> {
            (transaction != 9).then_some(()).ok_or(Fault::Status)
        }
    }

    fn next(sls: u8) -> Next {
        Next {
            ticket: Ticket::default(),
            from: 0,
            to: 1,
            second: None,
            sls,
        }
    }

    fn data(sls: u8, user_data: &[u8]) -> Data<'_> {
        Data {
            network_appearance: None,
            routing_context: None,
            opc: PointCode(1),
            dpc: PointCode(2),
            si: ServiceIndicator::SCCP,
            ni: 2,
            mp: 0,
            sls,
            user_data,
            correlation_id: None,
        }
    }

    /// What is wrong with a delivery is counted, whatever the message says.
    #[test]
    fn each_kind_of_wrong_delivery_is_counted() {
        let mut ledger = Ledger::new(vec!["plain".to_owned()], 100);
        let (counts, absence) = (Counts::default(), Absence::of(12));
        let (mut pending, mut last, mut messages) = (Pending::default(), AHashMap::default(), Plain);
        for sls in [1, 1, 1, 1, 2, 1, 1, 1, 1, 1] {
            pending.push(Flight {
                sent: ledger.send(Ticket::default(), Duration::ZERO),
                next: next(sls),
                is_over: false,
            });
        }
        let mut arrive = |at: usize, sls: u8, octets: &[u8]| {
            let fates = Fates {
                numbers: &[10, 11, 12],
                absence: &absence,
                counts: &counts,
            };
            let mut deliveries = Deliveries {
                at,
                now: Duration::from_millis(1),
                messages: &mut messages,
                pending: &mut pending,
                last: &mut last,
                fates,
            };
            deliveries.take(&data(sls, octets), &mut ledger);
        };
        // Right: in the order of the link selection, which another one may overtake.
        arrive(1, 1, &[0]);
        arrive(1, 1, &[2]);
        arrive(1, 2, &[4]);
        // Twice; behind a later one; at another node; with another link selection; back; wrong; of no one.
        arrive(1, 1, &[2]);
        arrive(1, 1, &[1]);
        arrive(2, 1, &[3]);
        arrive(1, 3, &[5]);
        arrive(0, 1, &[6, 11]);
        arrive(1, 1, &[9]);
        arrive(1, 1, &[77]);
        arrive(1, 1, &[]);
        let read = |all: [&AtomicU64; 7]| all.map(Counts::read);
        let Counts {
            misrouted,
            disordered,
            doubled,
            strays,
            returned,
            elsewhere,
            arrived_there,
            ..
        } = &counts;
        assert_eq!(
            read([
                misrouted,
                disordered,
                doubled,
                strays,
                returned,
                elsewhere,
                arrived_there
            ]),
            [1, 1, 1, 2, 1, 5, 1]
        );
        let total = ledger.total();
        assert_eq!((total.succeeded, total.failures()), (3, 5));
        assert_eq!(total.failed[FailureKind::Wrong as usize], 3);
        assert_eq!(total.failed[FailureKind::Status as usize], 2);
        assert_eq!(ledger.in_flight(), 2);
    }
}
