//! What can happen in a Policy DRA.

use telemetry::{Alert, When};

telemetry::events! {
    "dsr";
    /// The Policy DRA chose a PCRF for a subscriber without a session.
    Chosen = "pdra_pcrf_choices";
    /// The Policy DRA found the PCRF of a subscriber for a new session.
    Bound = "pdra_bound_sessions";
    /// A request waited while another one of its subscriber chose a PCRF.
    Waited = "pdra_early_waits";
    /// A request took the PCRF that another one of its subscriber had chosen.
    Followed = "pdra_early_follows";
    /// Too many requests of one subscriber waited, or one waited for too long; it was refused.
    Crowded = "pdra_early_refusals";
    /// A session was kept.
    Kept = "pdra_sessions_kept";
    /// A session was kept in place of the oldest one of its subscriber.
    KeptInstead = "pdra_sessions_replaced";
    /// A request of a PCRF waited for the answer that it had sent before it.
    Ordered = "pdra_ordered_requests";
    /// A session is found by other addresses, which its gateway has reported.
    Readdressed = "pdra_sessions_readdressed";
    /// A request was answered with the name of its PCRF, to which its client sends it again.
    Redirected = "pdra_redirections";
    /// An answer said that its session has ended.
    Ended = "pdra_sessions_ended";
    /// The gateway of a stale session was asked whether it exists.
    Audited = "pdra_audited_sessions";
    /// A stale session was removed: its gateway does not know it, or it is of an application about which none is asked.
    AuditEnded = "pdra_audited_sessions_ended";
    /// Stale sessions were not asked about for a second, because the router or the repository is congested.
    AuditSuspended = "pdra_audit_suspensions", alert Alert::minor(When::Occurs, 1, "The audit of sessions waits until router and repository are no longer congested: see `signalbox dsr workers`.");
    /// A request that begins a session was refused, or the session of an AF was not kept: the bound on such sessions is reached.
    Full = "pdra_sessions_full", alert Alert::major(When::Occurs, 1, "Raise `repository.maxSessions` of the application, or lower `repository.stale` where ends of sessions are lost.");
    /// A subscriber was bound to another PCRF, because its own failed.
    Rebound = "pdra_rebindings", alert Alert::minor(When::Occurs, 1, "A PCRF fails: see `signalbox dsr peers`. Sessions at it stay there until they end.");
    /// A request to a PCRF came to a result that counts against the binding of its subscriber.
    Suspected = "pdra_suspect_results";
    /// A session was removed with its binding, because its PCRF did not serve it.
    Unbound = "pdra_suspect_sessions_removed", alert Alert::minor(When::Occurs, 1, "A PCRF does not serve subscribers that are bound to it: see `suspectBindings` and `signalbox dsr peers`.");
    /// A session of a gateway began at the PCRF of the older one of several bindings, which sites that were cut off have begun.
    OlderBinding = "pdra_binding_conflicts_older";
    /// A session of a gateway is of a younger binding than another one of its subscriber: it keeps its PCRF until it ends.
    YoungerBinding = "pdra_binding_conflicts_younger", alert Alert::minor(When::Occurs, 1, "Subscribers were bound to two PCRFs: see whether sites were cut off from one another (`signalbox_store_replication_delay_seconds`). New sessions follow the older binding.");
    /// A session was ended at its PCRF in the name of its client, which has got a failure instead of the answer.
    EndedForClient = "pdra_sessions_ended_for_clients";
    /// A session stays at its PCRF that its client does not have: the PCRF does not answer, or too many are to end.
    LeftAtPcrf = "pdra_sessions_left_at_pcrf", alert Alert::minor(When::Occurs, 1, "PCRFs have sessions that their clients do not have: see `signalbox dsr peers`, and let the PCRFs audit their sessions.");
    /// As many sessions as are read at most have one address or number: the newest may not be among them.
    CrowdedKey = "pdra_crowded_keys", alert Alert::minor(When::Occurs, 4, "Gateways begin sessions with one address: check `ipDomains`, and which ones with `signalbox dsr pdra binding ADDRESS`.");
    /// A request was sent to another PCRF after the first one failed.
    Again = "pdra_further_attempts";
    /// A request of an AF or TDF found the session of its subscriber.
    Correlated = "pdra_correlations";
    /// Several sessions at different PCRFs fitted a request of an AF or TDF; the newest one counted.
    Ambiguous = "pdra_ambiguous_correlations";
    /// A request of an AF or TDF found no session of its subscriber.
    NotFound = "pdra_bindings_not_found", alert Alert::major(When::PartAbove { of: "signalbox_dsr_pdra_correlations_total", share: 0.05 }, 5, "AFs ask for subscribers without a session: check which addresses they send (`signalbox dsr pdra binding ADDRESS`), and that Gx passes this application.");
    /// The PCRF of a subscriber was known and unreachable for a request of an AF or TDF.
    Unreachable = "pdra_pcrf_unreachable", alert Alert::major(When::Occurs, 1, "A PCRF with bound subscribers is unreachable: see `signalbox dsr peers`.");
    /// No pool serves the APN of a request, or its pool has no PCRF left.
    NoPcrf = "pdra_without_pcrf", alert Alert::major(When::Occurs, 1, "Add the APN to a pool, or a pool without `apns`; check which PCRFs are down.");
    /// A request of a session that is not known named no host, and was refused.
    UnknownSession = "pdra_unknown_sessions";
    /// A PCRF answered that was not asked.
    AnsweredElsewhere = "pdra_answers_of_others";
    /// A request had an address, a prefix or a Session-Id that cannot be kept, and was refused.
    Invalid = "pdra_invalid_requests";
    /// The repository was congested for a second: the audit was suspended, and the use of sessions was not noted.
    Congested = "pdra_repository_congested_seconds", alert Alert::minor(When::Occurs, 1, "The store of the application is slower than messages come: check disk or database.");
    /// The repository was overloaded for a second: requests that begin sessions of gateways were refused.
    Overloaded = "pdra_repository_overloaded_seconds", alert Alert::major(When::Occurs, 1, "The store of the application is much slower than messages come: check disk or database.");
    /// A request that begins a session was refused, because the repository is overloaded.
    Shed = "pdra_repository_refusals";
    /// The repository could not be read or written in time; the request was refused.
    RepositoryFailed = "pdra_repository_failures", alert Alert::major(When::Occurs, 1, "The store of the application cannot be read or written: check disk or database.");
}
