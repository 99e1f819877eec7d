//! Metrics at `/metrics`, and what workers count.

use domain::base::iana::Rtype;
use telemetry::{Counter, Registry};

telemetry::declare! {
    /// Everything an ENUM server counts.
    pub(crate) METRICS;
    counter QUERIES = "signalbox_enum_queries_total" ["transport", "type"]: "Messages received, by transport (udp, tcp) and type of the question; none: no question could be read.";
    counter ANSWERS = "signalbox_enum_answers_total" ["outcome"]: "What became of messages: answered (NAPTR), apex (SOA, NS), any (RFC 8482), no_data (an incomplete number, or another type), unknown (NXDOMAIN), refused (outside the trees, a client that is not admitted, a transfer), malformed (FORMERR), version (BADVERS), not_implemented (NOTIMP), signature (a TSIG that does not fit), no_profile (the number's profile does not exist, or its records cannot be written), damaged (the numbers near it are damaged), dropped (an answer, or less than a header), limited (over the rate, dropped), slipped (over the rate, answered truncated).";
    counter TRUNCATED = "signalbox_enum_truncated_answers_total" []: "Answers over UDP that did not fit and were truncated.";
    counter UNSENT = "signalbox_enum_unsent_answers_total" []: "Answers over UDP that the system did not take.";
    counter CONNECTIONS = "signalbox_enum_connections_total" ["outcome"]: "TCP connections: accepted, refused (too many of one address), evicted (idle, for a new one), idle (no query for `tcp.idle`, or a client that does not read), broken (a length that lies).";
    gauge OPEN = "signalbox_enum_open_connections" []: "TCP connections that are open.";
    counter CHANGES = "signalbox_enum_changes_total" ["outcome"]: "Numbers that were changed at the admin endpoint: applied, refused, unwritten (the directory cannot be written).";
    gauge CHANGED = "signalbox_enum_changed_numbers" []: "Numbers that are changed beside the file of numbers.";
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answered,
    Apex,
    Any,
    NoData,
    Unknown,
    Refused,
    Malformed,
    Version,
    NotImplemented,
    Signature,
    NoProfile,
    Damaged,
    Dropped,
    Limited,
    Slipped,
}

impl Outcome {
    pub(crate) const ALL: [Self; 15] = [
        Self::Answered,
        Self::Apex,
        Self::Any,
        Self::NoData,
        Self::Unknown,
        Self::Refused,
        Self::Malformed,
        Self::Version,
        Self::NotImplemented,
        Self::Signature,
        Self::NoProfile,
        Self::Damaged,
        Self::Dropped,
        Self::Limited,
        Self::Slipped,
    ];

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Apex => "apex",
            Self::Any => "any",
            Self::NoData => "no_data",
            Self::Unknown => "unknown",
            Self::Refused => "refused",
            Self::Malformed => "malformed",
            Self::Version => "version",
            Self::NotImplemented => "not_implemented",
            Self::Signature => "signature",
            Self::NoProfile => "no_profile",
            Self::Damaged => "damaged",
            Self::Dropped => "dropped",
            Self::Limited => "limited",
            Self::Slipped => "slipped",
        }
    }
}

/// The types that have series of their own.
const TYPES: [(Rtype, &str); 7] = [
    (Rtype::NAPTR, "naptr"),
    (Rtype::SOA, "soa"),
    (Rtype::NS, "ns"),
    (Rtype::A, "a"),
    (Rtype::AAAA, "aaaa"),
    (Rtype::SRV, "srv"),
    (Rtype::ANY, "any"),
];

/// What workers count; handles are resolved once.
pub(crate) struct Meters {
    pub(crate) udp: Queries,
    pub(crate) tcp: Queries,
    outcomes: Vec<Counter>,
    pub(crate) truncated: Counter,
    pub(crate) unsent: Counter,
    pub(crate) connections: Connections,
    pub(crate) open: telemetry::Level,
    pub(crate) applied: Counter,
    pub(crate) refused: Counter,
    pub(crate) unwritten: Counter,
}

/// Messages of a transport by type.
pub(crate) struct Queries {
    by_type: Vec<Counter>,
    other: Counter,
    none: Counter,
}

/// What became of connections.
pub(crate) struct Connections {
    pub(crate) accepted: Counter,
    pub(crate) refused: Counter,
    pub(crate) evicted: Counter,
    pub(crate) idle: Counter,
    pub(crate) broken: Counter,
}

impl Meters {
    pub(crate) fn new(registry: &Registry) -> Self {
        let queries = registry.counters(&QUERIES);
        let by_transport = |transport: &str| Queries {
            by_type: TYPES
                .iter()
                .map(|(_, label)| queries.get(&[transport, label]))
                .collect(),
            other: queries.get(&[transport, "other"]),
            none: queries.get(&[transport, "none"]),
        };
        let answers = registry.counters(&ANSWERS);
        let connections = registry.counters(&CONNECTIONS);
        let changes = registry.counters(&CHANGES);
        Self {
            udp: by_transport("udp"),
            tcp: by_transport("tcp"),
            outcomes: Outcome::ALL
                .iter()
                .map(|outcome| answers.get(&[outcome.label()]))
                .collect(),
            truncated: registry.counter(&TRUNCATED),
            unsent: registry.counter(&UNSENT),
            connections: Connections {
                accepted: connections.get(&["accepted"]),
                refused: connections.get(&["refused"]),
                evicted: connections.get(&["evicted"]),
                idle: connections.get(&["idle"]),
                broken: connections.get(&["broken"]),
            },
            open: registry.level(&OPEN),
            applied: changes.get(&["applied"]),
            refused: changes.get(&["refused"]),
            unwritten: changes.get(&["unwritten"]),
        }
    }

    pub(crate) fn count(&self, outcome: Outcome) {
        if let Some(counter) = self.outcomes.get(outcome as usize) {
            counter.inc();
        }
    }

    pub(crate) fn value(&self, outcome: Outcome) -> u64 {
        self.outcomes.get(outcome as usize).map_or(0, Counter::value)
    }
}

impl Queries {
    pub(crate) fn count(&self, kind: Option<Rtype>) {
        let Some(kind) = kind else {
            return self.none.inc();
        };
        let at = TYPES.iter().position(|(one, _)| *one == kind);
        at.and_then(|at| self.by_type.get(at))
            .unwrap_or(&self.other)
            .inc();
    }
}
