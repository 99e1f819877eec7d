//! Metrics at `/metrics`, and what workers count.

use dp_proto::Outcome;
use telemetry::{Counter, Level, Registry};

use crate::answer::Tally;

telemetry::declare! {
    /// Everything a database processor counts.
    pub(crate) METRICS;
    counter QUERIES = "signalbox_dp_queries_total" ["outcome"]: "Queries (measurement 4170, DpQueriesReceived), by outcome: unknown, exact, realm (the name is unknown, its realm is not), damaged (the entry is damaged), congested (beyond `queriesPerSecond`), unavailable (no data are loaded, or they are of the process before, lack the entry, and no server has been asked yet).";
    counter BUNDLES = "signalbox_dp_bundles_total" []: "Frames of queries; one without queries probes the connection.";
    counter CONNECTIONS = "signalbox_dp_connections_total" ["outcome"]: "Connections: accepted, refused (beyond `connections`, or not of `clients`), idle (no whole frame for `idle`, or a router that does not read), broken (a frame that is malformed), handshake (TLS failed, or a router without a certificate that is trusted).";
    gauge OPEN = "signalbox_dp_open_connections" []: "Connections that are open.";
    gauge NUMBERS = "signalbox_dp_numbers" []: "Numbers with destinations.";
    gauge NAMES = "signalbox_dp_names" []: "Names with destinations.";
    gauge OFFSET = "signalbox_dp_journal_offset" []: "Offset of the journal up to which transactions are in effect.";
    gauge BEHIND = "signalbox_dp_journal_pending_transactions" []: "Transactions that the subscriber database server has and that are not in effect here yet.";
    counter TRANSACTIONS = "signalbox_dp_transactions_total" []: "Transactions of the journal that were put into effect.";
    counter POLLS = "signalbox_dp_polls_total" ["outcome"]: "Requests for the journal or the checkpoint, by outcome: answered, checkpoint (all data were taken), refused (an answer that cannot be used), failed (no answer, or another status).";
}

/// What workers and the control thread count; handles are resolved once.
pub(crate) struct Meters {
    outcomes: Vec<Counter>,
    pub(crate) bundles: Counter,
    pub(crate) accepted: Counter,
    pub(crate) refused: Counter,
    pub(crate) idle: Counter,
    pub(crate) broken: Counter,
    pub(crate) handshake: Counter,
    pub(crate) open: Level,
    pub(crate) transactions: Counter,
    pub(crate) polls: Polls,
}

/// What became of polls.
pub(crate) struct Polls {
    pub(crate) answered: Counter,
    pub(crate) checkpoint: Counter,
    pub(crate) refused: Counter,
    pub(crate) failed: Counter,
}

impl Meters {
    pub(crate) fn new(registry: &Registry) -> Self {
        let queries = registry.counters(&QUERIES);
        let (connections, polls) = (registry.counters(&CONNECTIONS), registry.counters(&POLLS));
        Self {
            outcomes: Outcome::ALL
                .iter()
                .map(|outcome| queries.get(&[outcome.as_str()]))
                .collect(),
            bundles: registry.counter(&BUNDLES),
            accepted: connections.get(&["accepted"]),
            refused: connections.get(&["refused"]),
            idle: connections.get(&["idle"]),
            broken: connections.get(&["broken"]),
            handshake: connections.get(&["handshake"]),
            open: registry.level(&OPEN),
            transactions: registry.counter(&TRANSACTIONS),
            polls: Polls {
                answered: polls.get(&["answered"]),
                checkpoint: polls.get(&["checkpoint"]),
                refused: polls.get(&["refused"]),
                failed: polls.get(&["failed"]),
            },
        }
    }

    /// Counts the answers to a bundle.
    pub(crate) fn count(&self, tally: &Tally) {
        self.bundles.inc();
        for (counter, count) in self.outcomes.iter().zip(tally) {
            if *count > 0 {
                counter.add(*count);
            }
        }
    }

    pub(crate) fn value(&self, outcome: Outcome) -> u64 {
        self.outcomes.get(outcome as usize).map_or(0, Counter::value)
    }
}
