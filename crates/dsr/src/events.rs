//! What can happen in a router: counted here, logged where it matters.
//!
//! Counters belong to one worker, so they are never contended; readers add them up.

use telemetry::{Alert, When};

telemetry::events! {
    "dsr";
    /// A message was processed, in the sense of MPS: read and sent on, answered or discarded by routing; or sent once more or copied.
    Message = "messages";
    /// A request came.
    Request = "requests";
    /// An answer came.
    Answer = "answers";
    /// A request was sent to a peer.
    RequestSent = "requests_sent";
    /// An answer was sent to the peer that waits for it.
    AnswerSent = "answers_sent";
    /// A message went to another worker, whose peer it is for.
    HandedOver = "handovers";
    /// A request was sent again, elsewhere.
    Rerouted = "reroutes";
    /// A request was answered by the router itself.
    Refused = "refused_requests";
    /// No peer was available for a request.
    NoRoute = "unroutable_requests", alert Alert::major(When::PartAbove { of: "signalbox_dsr_requests_total", share: 0.01 }, 5, "Check which peers are down (`signalbox dsr peers`) and whether a route fits the requests (`signalbox dsr why`).");
    /// A request was of an application that is not accepted from its peer.
    NotAccepted = "unaccepted_requests";
    /// A request came back to the router.
    Loop = "loops";
    /// A request went unanswered past its deadline.
    Timeout = "timeouts", alert Alert::major(When::PartAbove { of: "signalbox_dsr_requests_sent_total", share: 0.05 }, 5, "Find the servers that do not answer: `signalbox_dsr_peer_timeouts_total` counts by peer.");
    /// A request was in flight on a connection that was lost.
    ConnectionLost = "interrupted_requests";
    /// A request was refused by a full queue or table.
    Exhausted = "exhaustions", alert Alert::major(When::Occurs, 1, "Find the peer that does not take messages (`signalbox dsr peers`, column pending), or raise the bound in `limits` that the log names.");
    /// A request was dropped by a rule.
    Abandoned = "abandoned_requests";
    /// A request had an AVP that is framed wrong or flags that cannot be.
    BadRequest = "bad_requests";
    /// An answer had an AVP that is framed wrong.
    BadAnswer = "bad_answers";
    /// An answer had another Command-Code, Application-Id or End-to-End Identifier than its request.
    AnswerMismatched = "mismatched_answers";
    /// An answer found its peer on another connection than the request's.
    AnswerFollowed = "followed_answers";
    /// An answer to a request of an earlier connection was withheld: its peer has restarted, or uses the identifier for another request.
    AnswerAmbiguous = "withheld_answers";
    /// An answer found its peer gone.
    AnswerLost = "lost_answers";
    /// A request was discarded because its message processor is overloaded: alarm 22215.
    OverloadDiscarded = "overload_discards";
    /// A request came beyond its connection's maximum rate.
    IngressDiscarded = "ingress_discards";
    /// A request was yellow: beyond its connection's reserved rate.
    Yellow = "yellow_requests";
    /// A request was not sent to a peer whose throttle group has its fill.
    Throttled = "throttled_requests";
    /// A request was copied.
    Copied = "copies";
    /// The answer to a copy came.
    CopyAnswered = "copy_answers";
    /// A redirect was followed.
    Redirected = "redirects_followed";
    /// The route of a redirect indication was cached, by each message processor.
    RedirectCached = "redirects_cached";
    /// A cached route of a redirect indication was evicted for another.
    RedirectEvicted = "redirects_evicted";
    /// A request took a cached route of a redirect indication.
    RedirectReused = "redirects_reused";
    /// A request was answered by an application of the router, as its server.
    Served = "served_requests";
    /// An application of the router sent a request of its own.
    Originated = "own_requests";
    /// A transaction was parked for an application of the router.
    Parked = "parked_transactions";
    /// An application has resumed a transaction that was parked for it.
    Resumed = "resumed_transactions";
    /// A transaction was parked for as long as the application wanted, or as its lifetime permits.
    ParkedTooLong = "expired_transactions";
    /// A transaction was not parked: the application has as many as it may have.
    ParkingFull = "unparked_transactions";
    /// A request that was parked was dropped: its client has no connection any more on which it would get the answer.
    ParkedAlone = "parked_transactions_without_client";
    /// A request or answer was changed by mediation rules.
    Mediated = "mediated_messages";
    /// Mediation rules would have made a request or answer longer than a message can be: a request is refused, an answer stays as it was.
    MediationTooLong = "unmediated_messages";
    /// A message had names hidden or found again.
    Hidden = "hidden_messages";
    /// A message was not sent, because it would be longer than a message can be with names hidden or found again: it was refused.
    HidingTooLong = "unhidden_messages";
    /// An overload report was put into an answer.
    OverloadReported = "overload_reports";
    /// A server has sent a new overload report (OC-OLR).
    ReportHeard = "overload_reports_heard";
    /// A request was refused because of an overload report of its server or realm.
    Abated = "abated_requests";
    /// A request went to another server because of an overload report.
    Diverted = "diverted_requests";
    /// A server has reported its load (RFC 8583).
    LoadHeard = "loads_heard";
    /// Our load was reported to a peer (RFC 8583).
    LoadTold = "loads_told";
    /// A message was traced.
    Traced = "traced_messages";
    /// A message should have been traced, but the queue of the writer was full.
    TraceLost = "untraced_messages";
    /// A traced message was not written, because the files of its point cannot be (alarm 10517).
    TraceUnwritten = "unwritten_trace_messages";
    /// A connection was placed on another message processor than the one that accepted it.
    Placed = "placed_connections";
    /// Bytes of messages that were read, those of peer control left out.
    Bytes = "received_bytes";
    /// A peer became open.
    PeerUp = "peers_up";
    /// A peer was lost or left.
    PeerDown = "peers_down";
    /// A connection was refused, cut off or could not be made.
    ConnectionRefused = "refused_connections";
    /// A peer was admitted whose CER lacks a required AVP on which nothing depends (Host-IP-Address).
    CapabilitiesIncomplete = "incomplete_capabilities";
    /// A connection was cut off: more messages of the base protocol, or answers to no request, than limits.baseRate.
    Flooded = "flooding_connections";
    /// The router panicked while it handled a message or event of a connection, which was closed.
    Panicked = "panicked_connections", alert Alert::major(When::Occurs, 1, "This is a defect: report it with the lines of the log about the panic.");
}
