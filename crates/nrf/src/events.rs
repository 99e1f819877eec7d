//! What can happen in an NRF: counted here, logged where it matters.
//!
//! A counter belongs to one worker or to the control thread, so it is never contended; a reader adds the counters of all
//! threads.

use function::AdmissionMetrics;
use telemetry::{Alert, When};

/// The metrics of admission.
pub(crate) const ADMISSION: AdmissionMetrics = function::admission_metrics!("nrf");

/// Members of profiles and subscriptions that counted as absent.
pub(crate) const DROPPED: telemetry::Declaration = function::tolerated_members!("nrf");

telemetry::declare! {
    /// Times in which a request waits for other functions.
    pub WAITS;
    histogram SLF_TIME = "signalbox_nrf_slf_seconds" [] in SECONDS: "Time of a query for the group of a subscriber, all attempts together.";
    histogram FORWARD_TIME = "signalbox_nrf_forward_seconds" [] in SECONDS: "Time of a request to another NRF, all attempts together.";
}

telemetry::events! {
    "nrf";
    /// An NF registered for the first time.
    Registered = "registrations";
    /// A profile was replaced or patched.
    Updated = "updates";
    /// A heart-beat came.
    HeartBeat = "heartbeats";
    /// An NF deregistered.
    Deregistered = "deregistrations";
    /// An NF was suspended for missed heart-beats.
    Suspended = "suspensions", alert Alert::minor(When::Occurs, 1, "Check the NFs that sent no heart-beat (`signalbox nrf instances`), and the network to them; they are not discovered meanwhile.");
    /// A suspended NF was removed.
    Expired = "expirations";
    /// A registration was refused by screening.
    ScreenedOut = "screened_out";
    /// A body, or what a patch would make of it, was refused because it is too large or takes too much work.
    TooLarge = "too_large";
    /// A profile or subscription was refused because it has too many regular expressions.
    TooManyPatterns = "too_many_patterns";
    /// A subscription was refused because its subscriber or source has as many as it may.
    ShareUsedUp = "subscription_shares_used_up";
    /// A notification URI, an `hnrf-uri` or a target of a registered profile was refused because of where it leads.
    TargetDenied = "targets_denied";
    /// A discovery was answered.
    Discovered = "discoveries";
    /// A discovery found nothing.
    FoundNothing = "empty_discoveries";
    /// A discovery was answered from a worker's kept answers.
    AnswerReused = "reused_answers";
    /// A discovery was answered 304.
    NotModified = "not_modified";
    /// A request was wrong.
    BadRequest = "bad_requests";
    /// A request was discarded under overload.
    Discarded = "discards";
    /// A request was refused because it had waited longer than its consumer does.
    TooLate = "late_requests";
    /// A group was asked for.
    SlfAsked = "slf_queries";
    /// No location function answered.
    SlfFailed = "slf_failures";
    /// A query of a location function was not sent because of `slf.rate`.
    SlfHeldBack = "slf_held_back";
    /// A request was not forwarded because of `forwarding.rate`.
    ForwardHeldBack = "forward_held_back";
    /// A question was forwarded.
    Forwarded = "forwarded";
    /// Another place of the name of an NRF, location function or SCP was tried because it did not answer.
    Rerouted = "rerouted";
    /// No other NRF answered.
    ForwardFailed = "forward_failures", alert Alert::minor(When::PartAbove { of: "signalbox_nrf_forwarded_total", share: 0.1 }, 10, "Check the other NRFs of the settings and the network to them.");
    /// The state of another NRF set was retrieved, or found unchanged.
    GrowthRetrieved = "growth_retrievals";
    /// No NRF of another set answered; what is known of the set stays.
    GrowthFailed = "growth_failures";
    /// A subscription was made.
    Subscribed = "subscriptions_created";
    /// A subscription ended.
    Unsubscribed = "subscriptions_ended";
    /// A notification was delivered.
    Notified = "notifications";
    /// A notification could not be delivered.
    NotificationFailed = "notification_failures";
    /// A notification was dropped because too many were pending.
    NotificationDropped = "notifications_dropped", alert Alert::minor(When::Occurs, 1, "Check the subscribers that take no notifications (the log names them), and the bounds of `notifications`.");
    /// A subscriber wanted a notification at another place.
    NotificationRedirected = "notifications_redirected";
    /// A notification was taken at another place of the subscriber's name.
    NotificationRerouted = "notifications_rerouted";
    /// A notification carries the present state of an NF instance, after others of it were dropped or failed.
    NotificationResynced = "notifications_resynced";
    /// A token was issued.
    TokenIssued = "tokens";
    /// A token was refused.
    TokenRefused = "tokens_refused";
    /// A request was refused because its sender is not the NF instance that it concerns, or proves different ones.
    IdentityRefused = "identities_refused";
    /// A write was refused because too many writes, or bytes of them, waited.
    WriteOverflow = "write_overflows", alert Alert::major(When::Occurs, 1, "Check how fast the disk or the database commits (`signalbox_store_commit_seconds_total`), and spread the NFs over more NRFs.");
    /// A change that another NRF of the cluster made took effect here.
    ClusterChange = "cluster_changes";
    /// Another NRF of the cluster had changed the record that was to be written; it was read again.
    ClusterConflict = "cluster_conflicts";
    /// An NF that another NRF of the cluster had suspended was resumed, because it had sent its heart-beats here.
    ClusterResumed = "cluster_resumptions";
    /// A notification was sent in the place of an NRF of the cluster that is not active any more.
    ClusterInherited = "cluster_inherited_notifications";
}
