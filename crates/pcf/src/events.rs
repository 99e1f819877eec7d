//! What can happen in a PCF: counted here, logged where it matters.
//!
//! A counter belongs to one worker or to the control thread, so it is never contended; a reader adds
//! them up.

use function::AdmissionMetrics;
use function::sbi::{QueueMetrics, TurnedAway};
use telemetry::{Alert, When};

/// The metrics of admission.
pub(crate) const ADMISSION: AdmissionMetrics = function::admission_metrics!("pcf");

/// The metrics of requests that are begun and queued.
pub(crate) const QUEUE: QueueMetrics = function::queue_metrics!("pcf");

/// Members of bodies that counted as absent.
pub(crate) const DROPPED: telemetry::Declaration = function::tolerated_members!("pcf");

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
    /// The BSF has made a binding and answered after `bsf.timeout`.
    BindingLate = "bindings_late";
    /// The BSF refused a binding.
    BindingRefused = "bindings_refused";
    /// A binding was given up after all attempts.
    BindingFailed = "bindings_failed", alert Alert::major(When::Occurs, 1, "Check the BSF and the connection to it: AFs do not find the sessions whose binding was given up.");
    /// A binding was dropped because too many were pending.
    BindingDropped = "bindings_dropped";
    /// A server of the operator took a message of a policy project.
    MessageSent = "notifier_messages_sent";
    /// A message of a policy project was sent again, after its server did not answer or failed.
    MessageRetried = "notifier_messages_retried";
    /// A server of the operator refused a message of a policy project.
    MessageRefused = "notifier_messages_refused";
    /// A message of a policy project was given up after all attempts.
    MessageFailed = "notifier_messages_failed";
    /// A message of a policy project was dropped because too many were pending at its server.
    MessageDropped = "notifier_messages_dropped";
    /// A message of a policy project was dropped because `notifier.enabled` is false.
    MessageSuppressed = "notifier_messages_suppressed";
    /// An NRF granted an access token for a service of another function.
    PeerTokenGranted = "peer_tokens";
    /// No NRF granted an access token for a service of another function.
    PeerTokenFailed = "peer_token_failures";
    /// A UE policy was sent to a UE through its AMF.
    UePolicySent = "ue_policies_sent";
    /// A UE policy was sent again, because the UE had not answered in time (T3501).
    UePolicyResent = "ue_policies_resent";
    /// A UE has accepted its policy.
    UePolicyDelivered = "ue_policies_delivered";
    /// A UE has refused its policy, or part of it.
    UePolicyRejected = "ue_policies_rejected";
    /// The delivery of a UE policy was given up.
    UePolicyFailed = "ue_policies_failed";
    /// A delivery of a UE policy found no room at its worker, and is taken up from the store later.
    UePolicyDeferred = "ue_policies_deferred";
    /// A delivery of a UE policy was taken up from the store.
    UePolicyResumed = "ue_policies_resumed";
    /// A message of a UE or an AMF fits no delivery in flight.
    UePolicyStray = "ue_policy_strays";
    /// An AF session was bound to a session, over N5 or Rx.
    AfCreated = "af_created";
    /// An AF session was refused because the session of the UE has as many as it may have.
    AfSessionsFull = "af_sessions_full";
    /// An AF session was changed by its AF.
    AfUpdated = "af_updated";
    /// An AF session was ended by its AF.
    AfDeleted = "af_deleted";
    /// An AF was notified of an event.
    AfNotified = "af_notified";
    /// An AF was notified that its session ends.
    AfTerminated = "af_terminated";
    /// The consumer of a session was asked to restore the P-CSCF of the UE, over N7 or Gx.
    PcscfRestored = "pcscf_restorations";
    /// An AF asked for the P-CSCF restoration of a session whose consumer does not have the feature.
    PcscfNotRestored = "pcscf_restorations_unsupported";
    /// An SMF reported in its answer to a notification, such as rules that it could not install.
    AnswerReport = "answer_reports";
    /// A report in the answer to a notification was dropped because too many were pending.
    AnswerReportDropped = "answer_reports_dropped";
    /// An SM policy association ended because its SMF does not know it.
    SmLost = "sm_policies_lost";
    /// A policy of background data transfers was created.
    BdtCreated = "bdt_policies_created";
    /// A policy of background data transfers was changed by its consumer.
    BdtUpdated = "bdt_policies_updated";
    /// A request for background data transfers was refused because no transfer policy fits.
    BdtNotOffered = "bdt_policies_not_offered";
    /// A provider was warned of a degraded network.
    BdtWarned = "bdt_warnings";
    /// A UDR has taken the data of a background data transfer.
    BdtStored = "bdt_data_stored";
    /// A UDR has refused the data of a background data transfer.
    BdtNotStored = "bdt_data_refused";
    /// A Gx session was created.
    GxCreated = "gx_created";
    /// A Gx session was updated by its PCEF.
    GxUpdated = "gx_updated";
    /// A Gx session ended because its PCEF has restarted (Origin-State-Id).
    GxLost = "gx_sessions_lost";
    /// A Gx session has ended.
    GxDeleted = "gx_deleted";
    /// A PCEF was sent a change of a decision (RAR).
    GxReAuth = "gx_re_auths";
    /// A RAR was sent to a PCEF again, after one that was not answered.
    GxReAuthRetried = "gx_re_auths_retried";
    /// A RAR of a process that has ended was sent again by another.
    GxReAuthResumed = "gx_re_auths_resumed";
    /// A PCEF answered none of the attempts of a RAR: the next CCR brings it the decision.
    GxReAuthGivenUp = "gx_re_auths_failed", alert Alert::minor(When::Occurs, 1, "Check the PCEFs that do not answer a RAR (the log names them), and the Diameter agents between.");
    /// A Diameter request came in.
    DiameterRequest = "diameter_requests";
    /// A Diameter request was refused.
    DiameterRefused = "diameter_refusals";
    /// A peer that is not configured as an agent sent a Diameter request under the name of another node.
    DiameterForged = "diameter_forged_requests";
    /// A Diameter request concerned the session of another node.
    DiameterForeign = "diameter_foreign_requests";
    /// A peer answered a Diameter request of the PCF.
    DiameterAnswered = "diameter_answered";
    /// A Diameter request of the PCF was not answered.
    DiameterUnanswered = "diameter_unanswered", alert Alert::minor(When::PartAbove { of: "signalbox_pcf_diameter_answered_total", share: 0.05 }, 10, "Check the Diameter peers (`signalbox pcf`), and the agents between.");
    /// A Diameter request of the PCF was dropped because too many were queued.
    DiameterDropped = "diameter_dropped";
    /// A policy project refused a request.
    Refused = "policy_refusals";
    /// An evaluation of a policy project failed, and the fallback decided.
    PolicyFault = "policy_faults", alert Alert::major(When::Occurs, 1, "The log names project and place; test the project with `signalbox policy test`. The fallback decides meanwhile.");
    /// Policy data of a subscriber were queried at the UDR.
    UdrQueried = "udr_queries";
    /// Policy data of a subscriber were cached.
    UdrCached = "udr_cache_hits";
    /// The UDR does not know a subscriber.
    UdrUnknown = "udr_unknown_users";
    /// No UDR answered a query in time, or not as it should.
    UdrFailed = "udr_failures";
    /// A request was refused because no UDR answered.
    UdrRejected = "udr_rejections", alert Alert::major(When::PartAbove { of: "signalbox_pcf_udr_queries_total", share: 0.05 }, 5, "Check the UDR and the connection to it; sessions are refused meanwhile. The settings can have a default instead.");
    /// Policies read the default of the settings because no UDR answered.
    UdrDefaulted = "udr_defaults";
    /// Policies read what was cached of a subscriber, whatever its age, because no UDR answered.
    UdrStale = "udr_stale_reads";
    /// The PCF subscribed to changes of policy data.
    UdrSubscribed = "udr_subscriptions";
    /// The PCF could not subscribe to changes of policy data.
    UdrSubscriptionFailed = "udr_subscription_failures";
    /// A UDR notified of changed policy data.
    UdrNotified = "udr_notifications";
    /// The profile of a subscriber was queried in the directory.
    LdapQueried = "ldap_queries";
    /// The profile of a subscriber was cached.
    LdapCached = "ldap_cache_hits";
    /// The directory does not know a subscriber.
    LdapUnknown = "ldap_unknown_users";
    /// The directory did not answer in time, or not with one entry.
    LdapFailed = "ldap_failures";
    /// The directory referred to another, which was not queried.
    LdapReferral = "ldap_referrals";
    /// A request was refused because the directory did not answer.
    LdapRejected = "ldap_rejections", alert Alert::major(When::PartAbove { of: "signalbox_pcf_ldap_queries_total", share: 0.05 }, 5, "Check the directory and the connection to it; sessions are refused meanwhile. The settings can have a default instead.");
    /// Policies read the default of the settings because the directory did not answer.
    LdapDefaulted = "ldap_defaults";
    /// Policies read the cached profile of a subscriber, whatever its age, because the directory did not answer.
    LdapStale = "ldap_stale_reads";
    /// The PCF subscribed to policy counters.
    ChfSubscribed = "chf_subscriptions";
    /// No CHF answered in time, or not as it should.
    ChfFailed = "chf_failures";
    /// A request was refused because no CHF answered.
    ChfRejected = "chf_rejections", alert Alert::major(When::PartAbove { of: "signalbox_pcf_chf_subscriptions_total", share: 0.05 }, 5, "Check the CHF and the connection to it; sessions are refused meanwhile. The settings can have a default instead.");
    /// Policies read the default counters of the settings because no CHF answered.
    ChfDefaulted = "chf_defaults";
    /// A CHF notified of changed policy counters.
    ChfNotified = "chf_notifications";
    /// A CHF ended a subscription to policy counters.
    ChfTerminated = "chf_terminations";
    /// A Sy session with an OCS began.
    SySubscribed = "sy_sessions";
    /// A session joined the Sy session of its subscriber.
    SyShared = "sy_sessions_shared";
    /// No OCS answered in time, or not as it should.
    SyFailed = "sy_failures";
    /// A request was refused because no OCS answered.
    SyRejected = "sy_rejections", alert Alert::major(When::PartAbove { of: "signalbox_pcf_sy_sessions_total", share: 0.05 }, 5, "Check the OCS and the connection to it; sessions are refused meanwhile. The settings can have a default instead.");
    /// Policies read the default counters of the settings because no OCS answered.
    SyDefaulted = "sy_defaults";
    /// An OCS notified of changed policy counters.
    SyNotified = "sy_notifications";
    /// An OCS asked for the end of a Sy session.
    SyAborted = "sy_aborts";
    /// A Sy session was ended.
    SyEnded = "sy_sessions_ended";
    /// The end of a Sy session did not reach the OCS.
    SyLeft = "sy_sessions_left";
    /// A TDF was asked for a session (TSR).
    SdOpened = "sd_requests";
    /// A TDF was sent a change of its ADC rules, or the end of its session (RAR).
    SdReAuth = "sd_re_auths";
    /// A TSR or RAR was sent to a TDF again, after one that was not answered.
    SdRetried = "sd_requests_retried";
    /// A TDF answered none of the attempts of a TSR or RAR.
    SdFailed = "sd_requests_failed";
    /// A TDF has lost a session, and another one begins.
    SdLost = "sd_sessions_lost";
    /// A TDF reported something (CCR).
    SdReported = "sd_reports";
    /// A TDF has ended a session.
    SdEnded = "sd_sessions_ended";
    /// A TDF has not ended a session in time that it was asked to end.
    SdLeft = "sd_sessions_left";
    /// A subscription at a UDR or a CHF, or a Sy session, was renewed, or made after its producer was away.
    SubscriptionRenewed = "subscriptions_renewed";
    /// A subscription at a UDR or a CHF, or a Sy session, was not renewed or made again; that is repeated.
    SubscriptionRenewalFailed = "subscription_renewal_failures";
    /// A subscription at a UDR or a CHF was ended.
    SubscriptionEnded = "subscriptions_ended";
    /// A subscription or binding of an association that has ended was removed by the sweep.
    EndResumed = "ends_resumed";
    /// A subscription or binding of an association that has ended was left after all attempts.
    EndGivenUp = "ends_given_up";
    /// A subscription at a UDR or a CHF could not be ended.
    SubscriptionLeft = "subscriptions_left";
    /// A session reported usage of a quota.
    UsageReported = "usage_reports";
    /// A quota of a subscriber was used up.
    UsageExhausted = "usage_exhaustions";
    /// A PCEF or SMF sent a request again whose usage was counted before.
    UsageRepeated = "usage_repetitions";
    /// The UDR got what is left of a subscriber's quotas.
    UsageWritten = "usage_udr_updates";
    /// The UDR did not take what is left of a subscriber's quotas, after all attempts.
    UsageUnwritten = "usage_udr_failures";
    /// What is left of a subscriber's quotas was not sent to the UDR because too many were pending.
    UsageDropped = "usage_udr_dropped";
    /// State variables of a subscriber were read from the store.
    SubscriberStateRead = "subscriber_state_reads";
    /// State variables of a subscriber were written.
    SubscriberStateWritten = "subscriber_state_writes";
    /// A state variable of a subscriber was not kept: it exceeds `subscriberState`, or the association names no subscriber.
    SubscriberStateRefused = "subscriber_state_refused";
    /// New data of a subscriber made a policy refuse an association, whose consumer was asked to end it.
    Terminated = "terminations";
    /// A part of a decision was changed for an application session or by new data of the subscriber.
    Changed = "decisions_changed";
    /// The audit has checked an association.
    Audited = "audited";
    /// The consumer of an association has answered the audit and keeps it.
    AuditConfirmed = "audit_confirmed";
    /// The consumer of an association did not answer the audit.
    AuditUnanswered = "audit_unanswered";
    /// The audit has removed an association that its consumer does not know any more.
    AuditUnknown = "audit_removed_unknown";
    /// The audit has removed an association whose consumer does not answer and is not registered.
    AuditLost = "audit_removed_lost";
    /// The audit has removed an association whose consumer has not answered for `audit.lifetime`.
    AuditExpired = "audit_removed_expired";
    /// An association was not removed because the brake of the audit holds.
    AuditBraked = "audit_braked";
    /// A session was replaced because it was established again.
    Collided = "collisions";
    /// A request for a session was refused because of a session of the subscriber whose establishment was begun later.
    Late = "late_overlapping_requests";
    /// Others changed an association at the same moment, and the change was made again on what they left.
    Retried = "conflicts_retried";
    /// Others kept changing an association, and the request failed.
    Overtaken = "conflicts_failed";
    /// A URI of a consumer or a redirection was refused because of where it leads.
    TargetDenied = "targets_denied";
    /// A notification was delivered.
    Notified = "notifications";
    /// A notification could not be delivered.
    NotificationFailed = "notification_failures";
    /// A notification was dropped because too many were pending.
    NotificationDropped = "notifications_dropped", alert Alert::minor(When::Occurs, 1, "Check the subscribers that take no notifications (the log names them), and the bounds of `notifications`.");
    /// A consumer wanted a notification at another address.
    NotificationRedirected = "notifications_redirected";
    /// A notification was taken by another instance of the consumer.
    NotificationRerouted = "notifications_rerouted";
    /// A notification carries the whole policy of an association, after others of it were dropped or failed.
    NotificationResynced = "notifications_resynced";
    /// A consumer that had not confirmed changes of its policy gets the whole policy, or is asked again to end it; of this process or one that has ended.
    NotificationResumed = "notifications_resumed";
    /// A message to an AF that had not answered it, of this process or one that has ended, was sent again.
    AfResumed = "af_messages_resumed";
    /// An AF has answered none of the attempts of a message.
    AfGivenUp = "af_messages_given_up";
    /// A request was wrong.
    BadRequest = "bad_requests";
    /// A request failed for a reason of the PCF.
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
