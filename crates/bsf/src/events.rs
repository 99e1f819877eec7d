//! What can happen in a BSF: counted here, logged where it matters.
//!
//! A counter belongs to one worker or to the control thread, so it is never contended; a reader adds
//! them up.

use function::AdmissionMetrics;
use function::sbi::TurnedAway;
use telemetry::{Alert, When};

/// The metrics of admission.
pub(crate) const ADMISSION: AdmissionMetrics = function::admission_metrics!("bsf");

/// Members of bindings and subscriptions that counted as absent.
pub(crate) const DROPPED: telemetry::Declaration = function::tolerated_members!("bsf");

telemetry::events! {
    "bsf";
    /// A binding of a PDU session was registered.
    Registered = "registrations";
    /// A binding of a PDU session was changed.
    Updated = "updates";
    /// A binding of a PDU session was removed.
    Deregistered = "deregistrations";
    /// A registration was refused because another PCF has the subscriber, DNN and slice.
    ExistingFound = "existing_bindings";
    /// A discovery was answered with a binding.
    Discovered = "discoveries";
    /// A discovery found nothing.
    FoundNothing = "empty_discoveries";
    /// A discovery found several sessions at different PCFs.
    FoundSeveral = "ambiguous_discoveries";
    /// A binding of a UE was registered, changed or removed.
    UeChanged = "ue_changes";
    /// A binding of an MBS session was registered, changed or removed.
    MbsChanged = "mbs_changes";
    /// A subscription was made.
    Subscribed = "subscriptions_created";
    /// A subscription ended.
    Unsubscribed = "subscriptions_ended";
    /// A URI of a consumer or a redirection was refused because of where it leads.
    TargetDenied = "targets_denied";
    /// A notification was delivered.
    Notified = "notifications";
    /// A notification could not be delivered.
    NotificationFailed = "notification_failures";
    /// A notification was dropped because too many were pending.
    NotificationDropped = "notifications_dropped", alert Alert::minor(When::Occurs, 1, "Check the subscribers that take no notifications (the log names them), and the bounds of `notifications`.");
    /// A subscriber wanted a notification at another place.
    NotificationRedirected = "notifications_redirected";
    /// A notification was taken by another instance of the subscriber's set, or at another place of its name.
    NotificationRerouted = "notifications_rerouted";
    /// A notification carries the present state of a binding, after others of it were dropped or failed.
    NotificationResynced = "notifications_resynced";
    /// A request was wrong.
    BadRequest = "bad_requests";
    /// A request failed for a reason of ours.
    Failed = "failures", alert Alert::major(When::Occurs, 1, "The log has the reason of each failure; check the store first.");
    /// A request was refused because it had waited longer than its consumer does.
    TooLate = "late_requests";
    /// A request was discarded under overload.
    Discarded = "discards";
    /// A request was refused by the limit on requests a second.
    RateLimited = "rate_limited";
    /// A request was refused because its consumer sends more than it may.
    ConsumerLimited = "consumer_limited";
    /// A request was refused because its access token does not open the service.
    Denied = "denied";
    /// A request was refused because its sender is not the NF instance that it concerns, or proves different ones.
    IdentityRefused = "identities_refused";
    /// A request was refused because the function is being shut down in steps.
    ShutOut = "shut_out";
    /// An Rx request came.
    RxRequest = "rx_requests";
    /// An Rx request was passed on.
    RxForwarded = "rx_forwarded";
    /// An Rx request was sent again elsewhere, because the connection ended before the answer.
    RxRetried = "rx_retries";
    /// An Rx session was given to another PCF of the set, because its own could not be reached or is overloaded.
    RxOtherPcf = "rx_other_pcfs";
    /// A peer has reported another overload over Rx, or its end.
    RxReport = "rx_overload_reports";
    /// A peer has reported another load over Rx.
    RxLoad = "rx_loads";
    /// An Rx request was refused because its receiver has reported an overload.
    RxAbated = "rx_abated";
    /// An Rx request was answered with the name of the PCF.
    RxRedirected = "rx_redirected";
    /// An Rx request was about a session without a binding, or about several.
    RxNoBinding = "rx_no_binding";
    /// An Rx request was refused.
    RxRefused = "rx_refused";
    /// An Rx request was passed on and got no answer.
    RxUnanswered = "rx_unanswered", alert Alert::minor(When::PartAbove { of: "signalbox_bsf_rx_forwarded_total", share: 0.05 }, 10, "Check the PCFs that do not answer over Rx (`signalbox bsf`), and the connections to them.");
    /// An Rx request was refused because its peer sends more than it may.
    RxPeerLimited = "rx_peer_limited";
    /// An Rx request was refused under overload.
    RxDiscarded = "rx_discards";
    /// The path of an Rx session was made durable.
    RxSessionKept = "rx_sessions_kept";
    /// The path of an Rx session could not be made durable, or too many are kept.
    RxSessionNotKept = "rx_sessions_not_kept";
    /// An Rx request found its way by a path from the store.
    RxSessionRecalled = "rx_sessions_recalled";
    /// The path of an Rx session was forgotten because of its age or because too many are kept.
    RxSessionExpired = "rx_sessions_expired";
    /// An answer over Rx was dropped: no request waits for it any more, or too many wait for a worker.
    RxAnswerDropped = "rx_answers_dropped";
    /// The audit has checked a binding.
    Audited = "audit_looked_at";
    /// A binding was removed because its PCF has restarted since.
    AuditRestarted = "audit_removed_restarted";
    /// A binding was removed because its PCF is gone.
    AuditGone = "audit_removed_gone";
    /// A binding whose PCF is gone was not removed, because too many PCFs are.
    AuditHeldBack = "audit_held_back";
    /// A binding without `pcfId` was removed because nothing has written it for its lifetime.
    AuditExpired = "audit_removed_expired";
    /// A binding of a PDU session was removed because nothing has written it, nor the audit confirmed it, for
    /// `bindingLifetime`.
    BindingExpired = "expired_bindings";
    /// A binding was not removed because the brake of the audit holds.
    AuditBraked = "audit_braked";
    /// A binding was found whose PCF is not registered; it has further chances.
    AuditMissed = "audit_attempts";
    /// The NRF was asked about a PCF.
    AuditAsked = "audit_questions";
    /// The NRF did not answer the audit.
    AuditUnanswered = "audit_unanswered", alert Alert::minor(When::PartAbove { of: "signalbox_bsf_audit_questions_total", share: 0.5 }, 15, "Check the NRFs of `nrf.apiRoots`: without their answers bindings of PCFs that are gone stay.");
    /// The NRF has notified of a changed or deregistered PCF.
    PcfTold = "pcf_changes_told";
}

impl Event {
    /// The event of a request that was not admitted.
    pub(crate) fn of(why: TurnedAway) -> Self {
        match why {
            TurnedAway::ShutDown => Self::ShutOut,
            TurnedAway::IngressRate => Self::RateLimited,
            TurnedAway::ConsumerRate => Self::ConsumerLimited,
            TurnedAway::Late => Self::TooLate,
            TurnedAway::Discarded => Self::Discarded,
            TurnedAway::Token => Self::Denied,
            TurnedAway::Identity => Self::IdentityRefused,
        }
    }
}
