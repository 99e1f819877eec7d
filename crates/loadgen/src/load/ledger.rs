//! The requests of a generator thread: counts per part of the run, and requests that have failed.

use std::time::Duration;

use super::{FailureKind, Fault, Record, Ticket};

/// A request in flight, as far as the ledger is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// The ticket that the workload gave it.
    pub(crate) ticket: Ticket,
    /// When it was to be sent.
    pub(crate) intended: Duration,
    /// The part of the run it counts for.
    pub(crate) step: u32,
}

/// How a request ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// It was answered: the verdict, and the status or result code.
    Judged(Result<(), Fault>, u32),
    /// Its stream was reset with this code.
    Reset(u32),
    /// Its connection was lost.
    Lost,
    /// No answer came in time.
    Late,
}

/// Counts of the current part of the run and of the one before it, whose answers may still arrive.
pub(crate) struct Ledger {
    pub(super) current: (u32, Record),
    pub(super) previous: (u32, Record),
    in_flight: usize,
    most_in_flight: usize,
    names: Vec<String>,
    /// Failed requests of which the workload has not been notified yet.
    pub(super) lost: Vec<Ticket>,
}

impl Ledger {
    pub(crate) fn new(names: Vec<String>, most_in_flight: usize) -> Self {
        let empty = || Record::new(names.len());
        Self {
            current: (0, empty()),
            previous: (u32::MAX, empty()),
            in_flight: 0,
            most_in_flight,
            lost: Vec::new(),
            names,
        }
    }

    /// The part of the run that requests count for.
    pub(super) fn step(&self) -> u32 {
        self.current.0
    }

    /// Requests count for `step` from now on.
    pub(super) fn begin(&mut self, step: u32) {
        std::mem::swap(&mut self.current, &mut self.previous);
        self.current = (step, Record::new(self.names.len()));
    }

    /// Results of the current part.
    pub(crate) fn total(&self) -> super::OperationRecord {
        self.current.1.total()
    }

    /// Pending requests.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Whether the number of pending requests has reached its bound.
    pub(crate) fn is_full(&self) -> bool {
        self.in_flight >= self.most_in_flight
    }

    /// Counts a request of the schedule.
    pub(crate) fn offer(&mut self, ticket: Ticket) {
        self.current.1.operations[usize::from(ticket.operation)].offered += 1;
    }

    /// Counts an offered request that is sent.
    pub(crate) fn send(&mut self, ticket: Ticket, intended: Duration) -> Sent {
        self.in_flight += 1;
        Sent {
            ticket,
            intended,
            step: self.step(),
        }
    }

    /// Counts an offered request that cannot be sent. `connected`: the open connections have no room for it.
    pub(crate) fn refuse(&mut self, ticket: Ticket, connected: bool) {
        let kind = if connected || self.in_flight > 0 {
            FailureKind::Overflow
        } else {
            FailureKind::Connection
        };
        self.current.1.operations[usize::from(ticket.operation)].fail(kind);
        self.lost.push(ticket);
    }

    pub(crate) fn end(&mut self, sent: &Sent, ended: Ended, now: Duration) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let at = usize::from(sent.ticket.operation);
        if !matches!(ended, Ended::Judged(..)) {
            self.lost.push(sent.ticket);
        }
        let record = match sent.step {
            step if step == self.current.0 => &mut self.current.1,
            step if step == self.previous.0 => &mut self.previous.1,
            _ => return,
        };
        let operation = &mut record.operations[at];
        let name = &self.names[at];
        if matches!(ended, Ended::Judged(..) | Ended::Late) {
            operation.time((now.saturating_sub(sent.intended).as_micros() as u64).max(1));
        }
        match ended {
            Ended::Judged(Ok(()), _) => operation.succeeded += 1,
            Ended::Judged(Err(Fault::Status), status) => {
                // No Diameter result code is below 1000.
                let refused = matches!(status, 429 | 503);
                operation.fail(if refused {
                    FailureKind::Refused
                } else {
                    FailureKind::Status
                });
                record.example(|| format!("{name}: status {status}"));
            }
            Ended::Judged(Err(Fault::Body(why)), _) => {
                operation.fail(FailureKind::Wrong);
                record.example(|| format!("{name}: {why}"));
            }
            Ended::Reset(code) => {
                operation.fail(FailureKind::Reset);
                record.example(|| format!("{name}: stream reset with code {code}"));
            }
            Ended::Lost => {
                operation.fail(FailureKind::Connection);
                record.example(|| format!("{name}: the connection was lost"));
            }
            Ended::Late => {
                operation.fail(FailureKind::Timeout);
                record.example(|| format!("{name}: no answer in time"));
            }
        }
    }
}
