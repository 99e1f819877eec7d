//! Metrics at `/metrics`, and what workers count.

use ss7_proto::m3ua::ErrorCode;
use telemetry::{Counter, Registry};

use crate::cause::{CallOutcome, CallService, Cause, Equipment, NumberOutcome, Segmented, Shared};
use crate::tables::{Passed, Tables};

telemetry::declare! {
    /// Everything an STP counts.
    pub(crate) METRICS;
    counter RECEIVED = "signalbox_stp_received_messages_total" ["link"]: "MSUs received on a link (M3UA DATA), those that were not admitted included.";
    counter SENT = "signalbox_stp_sent_messages_total" ["link"]: "MSUs written to a link, those that return to their senders included.";
    counter RECEIVED_BYTES = "signalbox_stp_received_bytes_total" ["link"]: "Octets of M3UA messages received on a link.";
    counter SENT_BYTES = "signalbox_stp_sent_bytes_total" ["link"]: "Octets of M3UA messages written to a link.";
    counter INGRESS = "signalbox_stp_ingress_messages_total" ["hop"]: "MSUs admitted from an application server or link set.";
    counter EGRESS = "signalbox_stp_egress_messages_total" ["hop"]: "MSUs routed to an application server or link set. Of these, those are counted as undelivered as well that meet a full queue or an association that ends.";
    counter DROPPED = "signalbox_stp_undelivered_messages_total" ["why"]: "MSUs that were not delivered: point_code (it, the service or the network indicator exceeds its bits), loop (own origin, or back to the link set they came by), screened, no_route, unreachable, user_part (no such user here), syntax (of SCCP), connection (SCCP class 2 and 3 to this STP), no_translation, hop_counter, subsystem (unequipped or prohibited), encoding, congested (the queue of a link is full), recovery (T(r) ended, or the queue of pending messages is full), association (queued for a link, or in part written, when its association ended).";
    counter RETURNED = "signalbox_stp_returned_messages_total" []: "Undelivered SCCP messages that returned to their senders (UDTS, XUDTS, LUDTS).";
    counter REFUSED = "signalbox_stp_refused_messages_total" ["error"]: "M3UA messages answered by ERR, by its code (RFC 4666 §3.8.1).";
    counter SCREENED = "signalbox_stp_screening_decisions_total" ["list", "rule"]: "MSUs that a screening rule fitted: the rule that decided, and those before it that led to its list.";
    counter TRANSLATED = "signalbox_stp_translated_messages_total" ["set"]: "MSUs whose called party address was translated by a set.";
    counter NUMBERS = "signalbox_stp_number_lookups_total" ["outcome"]: "MSUs whose called number was looked up (number services): home (an HLR of this network), answered (ported, sendRoutingInfo answered with the routing number), relayed (ported, sent on with the routing number), unlisted and unconditioned (no number of 5 to 15 digits) go to global title translation; circular (it came with a routing number of this network and is not here) and damaged (its part of the file) return.";
    counter CALLS = "signalbox_stp_calls_total" ["service", "outcome"]: "Calls of number services. Service: query (a message to a subsystem of `numberServices.calls`), interception (an IAM). Outcome: routed (ported: Connect, or the IAM with the routing number), home (a number of this network), unlisted, unconditioned (no number of 5 to 15 digits) and circular (it came with a routing number of this network and is not here) go on as they were, with Continue; released (unallocated: ReleaseCall or REL), damaged (its part of the file: an error of the operation; the IAM passes), prepaid (InitialDP relayed to a service control point), refused (no InitialDP that can be served: error, Reject or Abort), queried (the number was queried before: the IAM passes), oversize (no room for the routing number: the IAM passes).";
    counter EQUIPMENT = "signalbox_stp_equipment_checks_total" ["status"]: "What the lists of equipment say to checkIMEI requests: white, black, grey, unknown (answered unknownEquipment), unreadable (without an IMEI of 14 to 16 digits, answered dataMissing or rejected).";
    counter SEGMENTED = "signalbox_stp_reassemblies_total" ["outcome"]: "Messages in segments to a subsystem of this STP: whole (all segments came), sequence (one was out of sequence), full (`segments` is reached), late (they did not come in time). All but the first return where the sender asks for it.";
    counter SHARED = "signalbox_stp_transaction_messages_total" ["outcome"]: "MSUs to groups that share by transaction: new (Begin: a node by weight), kept (the node of the transaction), moved (that node is unavailable: another one), unknown (a transaction that is not kept: a node by its identifier), other (a segment, or no transaction: a node by origin and link selection).";
    counter EVICTED = "signalbox_stp_evicted_transactions_total" []: "Identifiers of transactions that were evicted because `transactions.number` is reached: their later messages may find another node.";
    counter CONNECTIONS = "signalbox_stp_connections_total" ["outcome"]: "Connections of peers: accepted, connected, failed (this STP could not connect), refused (the address is that of no link), replaced (the peer connected again before its former connection ended), silent (nothing received for twice the heartbeat, or the peer does not read), broken (the octets are no M3UA).";
    counter MISPLACED = "signalbox_stp_data_on_stream_0_total" ["link"]: "M3UA DATA received on stream 0 of SCTP, where RFC 4666 §1.4.7 forbids it; with `strictStreams` they are refused.";
    counter LINK_TESTS = "signalbox_stp_discarded_link_tests_total" ["link"]: "Link tests (SLTM, SLTA) of M2PA for another node, network or link code: the link is connected to a wrong one, or the other side is configured otherwise.";
    gauge QUEUED = "signalbox_stp_queued_messages" ["link"]: "Messages queued for a link.";
    gauge LINKS = "signalbox_stp_link_available" ["link"]: "Whether the peer of a link is active for an application server or link set: 1 or 0.";
    gauge HOPS = "signalbox_stp_hop_available" ["hop"]: "Whether an application server or link set takes messages: 1 or 0.";
    gauge DESTINATIONS = "signalbox_stp_destination_available" ["destination"]: "Whether messages to a destination are sent: 1 or 0.";
    gauge SEGMENTS = "signalbox_stp_awaited_messages" ["hop"]: "Messages in segments to a subsystem of this STP of which segments are awaited, by the application server or link set that they come from.";
    gauge ENTRIES = "signalbox_stp_translations" ["set"]: "Translations of a set, those of its file included.";
    gauge TRANSACTIONS = "signalbox_stp_transactions" []: "Identifiers of transactions whose node is kept (`transactions.number` at most), those included whose time has ended and that no message has asked for since.";
    gauge CONGESTED = "signalbox_stp_congested_destinations" []: "Destinations that messages of this STP reach with congestion, as other nodes report it (TFC), in networks with levels of congestion.";
}

/// What workers count; handles are resolved once for each set of tables.
pub(crate) struct Meters {
    pub(crate) received: Vec<Counter>,
    pub(crate) sent: Vec<Counter>,
    pub(crate) received_bytes: Vec<Counter>,
    pub(crate) sent_bytes: Vec<Counter>,
    /// By link.
    pub(crate) misplaced: Vec<Counter>,
    pub(crate) link_tests: Vec<Counter>,
    pub(crate) ingress: Vec<Counter>,
    pub(crate) egress: Vec<Counter>,
    dropped: Vec<Counter>,
    pub(crate) returned: Counter,
    refused: Vec<(ErrorCode, Counter)>,
    /// By list and rule.
    pub(crate) screened: Vec<Vec<Counter>>,
    pub(crate) translated: Vec<Counter>,
    pub(crate) numbers: Vec<Counter>,
    /// By service and outcome.
    calls: Vec<Vec<Counter>>,
    pub(crate) equipment: Vec<Counter>,
    pub(crate) segmented: Vec<Counter>,
    pub(crate) shared: Vec<Counter>,
    pub(crate) connections: Connections,
}

/// What became of connections.
pub(crate) struct Connections {
    pub(crate) accepted: Counter,
    pub(crate) connected: Counter,
    pub(crate) failed: Counter,
    pub(crate) refused: Counter,
    pub(crate) replaced: Counter,
    pub(crate) silent: Counter,
    pub(crate) broken: Counter,
}

impl Meters {
    pub(crate) fn new(registry: &Registry, tables: &Tables) -> Self {
        let by_link = |declaration| {
            let family = registry.counters(declaration);
            tables
                .links
                .iter()
                .map(|link| family.get(&[&link.name]))
                .collect()
        };
        let by_hop = |declaration| {
            let family = registry.counters(declaration);
            tables.hops.iter().map(|hop| family.get(&[&hop.name])).collect()
        };
        let screened = registry.counters(&SCREENED);
        let rules = |screen: &crate::tables::Screen| {
            screen
                .rules()
                .map(|rule| screened.get(&[&screen.name, rule]))
                .collect()
        };
        let dropped = registry.counters(&DROPPED);
        let refused = registry.counters(&REFUSED);
        let translated = registry.counters(&TRANSLATED);
        let connections = registry.counters(&CONNECTIONS);
        let numbers = registry.counters(&NUMBERS);
        let equipment = registry.counters(&EQUIPMENT);
        let segmented = registry.counters(&SEGMENTED);
        let shared = registry.counters(&SHARED);
        Self {
            received: by_link(&RECEIVED),
            sent: by_link(&SENT),
            received_bytes: by_link(&RECEIVED_BYTES),
            sent_bytes: by_link(&SENT_BYTES),
            misplaced: by_link(&MISPLACED),
            link_tests: by_link(&LINK_TESTS),
            ingress: by_hop(&INGRESS),
            egress: by_hop(&EGRESS),
            dropped: Cause::ALL
                .iter()
                .map(|cause| dropped.get(&[cause.label()]))
                .collect(),
            returned: registry.counter(&RETURNED),
            refused: ErrorCode::ALL
                .iter()
                .map(|code| (*code, refused.get(&[code.name()])))
                .collect(),
            screened: tables.screens.iter().map(rules).collect(),
            translated: tables
                .translations
                .sets
                .iter()
                .map(|set| translated.get(&[set]))
                .collect(),
            numbers: NumberOutcome::ALL
                .iter()
                .map(|outcome| numbers.get(&[outcome.label()]))
                .collect(),
            calls: calls(registry),
            equipment: Equipment::ALL
                .iter()
                .map(|found| equipment.get(&[found.label()]))
                .collect(),
            segmented: Segmented::ALL
                .iter()
                .map(|outcome| segmented.get(&[outcome.label()]))
                .collect(),
            shared: Shared::ALL
                .iter()
                .map(|outcome| shared.get(&[outcome.label()]))
                .collect(),
            connections: Connections {
                accepted: connections.get(&["accepted"]),
                connected: connections.get(&["connected"]),
                failed: connections.get(&["failed"]),
                refused: connections.get(&["refused"]),
                replaced: connections.get(&["replaced"]),
                silent: connections.get(&["silent"]),
                broken: connections.get(&["broken"]),
            },
        }
    }

    pub(crate) fn dropped(&self, cause: Cause) {
        if let Some(counter) = self.dropped.get(cause as usize) {
            counter.inc();
        }
    }

    /// Counts the rules of screening lists that fitted a message.
    pub(crate) fn screened(&self, rules: &Passed) {
        for (list, rule) in rules {
            if let Some(counters) = self.screened.get(*list) {
                count(counters, *rule);
            }
        }
    }

    pub(crate) fn call(&self, service: CallService, outcome: CallOutcome) {
        if let Some(counters) = self.calls.get(service as usize) {
            count(counters, outcome as usize);
        }
    }

    pub(crate) fn refused(&self, code: ErrorCode) {
        if let Some((_, counter)) = self.refused.iter().find(|(one, _)| *one == code) {
            counter.inc();
        }
    }
}

fn calls(registry: &Registry) -> Vec<Vec<Counter>> {
    let family = registry.counters(&CALLS);
    let outcomes = |service: &CallService| {
        let all = CallOutcome::ALL.iter();
        all.map(|outcome| family.get(&[service.label(), outcome.label()]))
            .collect()
    };
    CallService::ALL.iter().map(outcomes).collect()
}

/// Counts at a position, where there is one.
pub(crate) fn count(counters: &[Counter], at: usize) {
    if let Some(counter) = counters.get(at) {
        counter.inc();
    }
}
