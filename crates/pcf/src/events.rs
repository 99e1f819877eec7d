//! What can happen in a PCF: counted here, logged where it matters.
//!
//! A counter belongs to one worker or to the control thread, so it is never contended; a reader adds
//! them up.

use function::AdmissionMetrics;

/// The metrics of admission.
pub(crate) const ADMISSION: AdmissionMetrics = function::admission_metrics!("pcf");

telemetry::events! {
    "pcf";
    /// A policy association of a PDU session was created.
    SmCreated = "sm_created";
    /// A policy association of a PDU session was updated by its SMF.
    SmUpdated = "sm_updated";
    /// A policy association of a PDU session was deleted.
    SmDeleted = "sm_deleted";
    /// An AM policy association was created.
    AmCreated = "am_created";
    /// An AM policy association was updated by its AMF.
    AmUpdated = "am_updated";
    /// An AM policy association was deleted.
    AmDeleted = "am_deleted";
    /// A UE policy association was created.
    UeCreated = "ue_created";
    /// A UE policy association was updated by its AMF.
    UeUpdated = "ue_updated";
    /// A UE policy association was deleted.
    UeDeleted = "ue_deleted";
    /// The binding of a session was registered or changed at the BSF.
    BindingRegistered = "bindings_registered";
    /// The binding of a session was removed from the BSF.
    BindingRemoved = "bindings_removed";
    /// A request about a binding was sent again, after the BSF did not answer or failed.
    BindingRetried = "bindings_retried";
    /// The BSF refused a binding.
    BindingRefused = "bindings_refused";
    /// A binding was given up after all attempts.
    BindingFailed = "bindings_failed";
    /// A binding was dropped because too many were pending.
    BindingDropped = "bindings_dropped";
    /// An AF session was bound to a session, over N5 or Rx.
    AfCreated = "af_created";
    /// An AF session was changed by its AF.
    AfUpdated = "af_updated";
    /// An AF session was ended by its AF.
    AfDeleted = "af_deleted";
    /// An AF was notified of an event.
    AfNotified = "af_notified";
    /// An AF was notified that its session ends.
    AfTerminated = "af_terminated";
    /// A Gx session was created.
    GxCreated = "gx_created";
    /// A Gx session was updated by its PCEF.
    GxUpdated = "gx_updated";
    /// A Gx session has ended.
    GxDeleted = "gx_deleted";
    /// A PCEF was sent a change of a decision (RAR).
    GxReAuth = "gx_re_auths";
    /// A Diameter request came in.
    DiameterRequest = "diameter_requests";
    /// A Diameter request was refused.
    DiameterRefused = "diameter_refusals";
    /// A peer answered a Diameter request of the PCF.
    DiameterAnswered = "diameter_answered";
    /// A Diameter request of the PCF was not answered.
    DiameterUnanswered = "diameter_unanswered";
    /// A Diameter request of the PCF was dropped because too many were queued.
    DiameterDropped = "diameter_dropped";
    /// A policy project refused a request.
    Refused = "policy_refusals";
    /// An evaluation of a policy project failed, and the fallback decided.
    PolicyFault = "policy_faults";
    /// A part of a decision was changed for an application session or by new data of the subscriber.
    Changed = "decisions_changed";
    /// Others changed an association at the same moment, and the change was made again on what they left.
    Retried = "conflicts_retried";
    /// Others kept changing an association, and the request failed.
    Overtaken = "conflicts_failed";
    /// A notification was delivered.
    Notified = "notifications";
    /// A notification could not be delivered.
    NotificationFailed = "notification_failures";
    /// A notification was dropped because too many were pending.
    NotificationDropped = "notifications_dropped";
    /// A consumer wanted a notification at another address.
    NotificationRedirected = "notifications_redirected";
    /// A notification was taken by another instance of the consumer.
    NotificationRerouted = "notifications_rerouted";
    /// A notification carries the whole policy of an association, after others of it were dropped or failed.
    NotificationResynced = "notifications_resynced";
    /// A request was wrong.
    BadRequest = "bad_requests";
    /// A request failed for a reason of the PCF.
    Failed = "failures";
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
}
