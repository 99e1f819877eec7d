//! What can happen in an online charging DRA.

use telemetry::{Alert, When};

telemetry::events! {
    "dsr";
    /// The online charging DRA chose an OCS for a session or an event.
    Chosen = "ocdra_ocs_choices";
    /// A request that begins a session came again, and went to the OCS that has the session or may have it.
    Repeated = "ocdra_repeated_requests";
    /// A charging session was kept.
    Kept = "ocdra_sessions_kept";
    /// An answer said that its charging session has ended.
    Ended = "ocdra_sessions_ended";
    /// A charging session was led to another OCS, which has taken it over.
    Moved = "ocdra_sessions_moved", alert Alert::minor(When::Occurs, 1, "An OCS fails, and others take over its sessions: see `signalbox dsr peers`.");
    /// A request of a charging session was led by its Session-Id.
    Led = "ocdra_session_requests";
    /// A request was sent to another OCS after the first one failed.
    Again = "ocdra_further_attempts";
    /// A request was not sent to another OCS, because one may have got it and their sessions are not shared.
    Doubtful = "ocdra_doubtful_requests", alert Alert::minor(When::Occurs, 1, "An OCS was lost or silent after it got requests: see `signalbox dsr peers`. If the OCSs of the pool share their sessions, set `shared`.");
    /// The OCS of a charging session was unreachable, and the session stays there.
    Unreachable = "ocdra_ocs_unreachable", alert Alert::major(When::Occurs, 1, "An OCS with sessions that cannot move is unreachable: see `signalbox dsr peers`.");
    /// A request that begins a session was refused: the bound on sessions is reached.
    Full = "ocdra_sessions_full", alert Alert::major(When::Occurs, 1, "Raise `repository.maxSessions` of the application, or lower `repository.stale` where ends of sessions are lost.");
    /// A charging session was ended at its OCS in the name of its client, which has got a failure instead of the answer.
    EndedForClient = "ocdra_sessions_ended_for_clients";
    /// A charging session stays at its OCS that its client does not have: the OCS does not answer, or too many are to end.
    LeftAtOcs = "ocdra_sessions_left_at_ocs", alert Alert::minor(When::Occurs, 1, "OCSs hold quota for sessions that their clients do not have: see `signalbox dsr peers`, and let the OCSs supervise their sessions (Tcc of RFC 8506).");
    /// No pool serves the realm of a request, or its pool has no OCS left.
    NoOcs = "ocdra_without_ocs", alert Alert::major(When::Occurs, 1, "Add the realm to a pool, or a pool without `realms`; check which OCSs are down.");
    /// A request of a charging session that is not known came.
    UnknownSession = "ocdra_unknown_sessions", alert Alert::minor(When::PartAbove { of: "signalbox_dsr_ocdra_session_requests_total", share: 0.05 }, 5, "Sessions began before the router knew of them, or outlived `repository.stale`: `unknownSession: route` lets them go on.");
    /// An OCS answered that was not asked.
    AnsweredElsewhere = "ocdra_answers_of_others";
    /// A credit-control request lacked an AVP, or had one that it may not have, and was refused.
    Invalid = "ocdra_invalid_requests";
    /// Too many requests with one Session-Id waited, or one waited for too long; it was refused.
    Crowded = "ocdra_early_refusals";
    /// The repository was congested: the use of sessions was not noted. Checked every 10 seconds.
    Congested = "ocdra_repository_congestions", alert Alert::minor(When::Occurs, 1, "The store of the application is slower than messages come: check disk or database.");
    /// The repository was overloaded: requests that begin sessions were refused. Checked every 10 seconds.
    Overloaded = "ocdra_repository_overloads", alert Alert::major(When::Occurs, 1, "The store of the application is much slower than messages come: check disk or database.");
    /// A request that begins a session was refused, because the repository is overloaded.
    Shed = "ocdra_repository_refusals";
    /// The repository could not be read or written in time; the request was refused.
    RepositoryFailed = "ocdra_repository_failures", alert Alert::major(When::Occurs, 1, "The store of the application cannot be read or written: check disk or database.");
}
