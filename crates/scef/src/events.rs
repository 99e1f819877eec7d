//! What can happen in an SCEF: counted here, logged where it matters.

use function::AdmissionMetrics;
use function::sbi::TurnedAway;
use telemetry::{Alert, When};

/// The metrics of admission.
pub(crate) const ADMISSION: AdmissionMetrics = function::admission_metrics!("scef");

telemetry::events! {
    "scef";
    /// A message of non-IP data delivery was received or sent, over T8, S6t or T6a (DxNiddMsgRateMetric is its rate).
    NiddMessage = "nidd_messages";
    /// A message of monitoring was received or sent, over T8, S6t or T6a (DxMonMsgRateMetric is its rate).
    MonitoringMessage = "monitoring_messages";
    /// A message of device triggering was received or sent, over T8, S6m or T4 (DxDevTriggMsgRateMetric is its rate).
    TriggerMessage = "trigger_messages";
    /// A subscription to a monitoring event was made.
    Subscribed = "subscriptions_created";
    /// A subscription to a monitoring event was ended by its SCS/AS, or after its last report.
    Unsubscribed = "subscriptions_ended";
    /// A monitoring event was reported by an HSS, MME or SGSN.
    Reported = "reports";
    /// A report was about a reference that does not exist here; the sender was answered so.
    UnknownReference = "unknown_references";
    /// A NIDD configuration was made.
    Configured = "configurations_created";
    /// A NIDD configuration was ended by its SCS/AS, or its time was over.
    Unconfigured = "configurations_ended";
    /// A connection of a device was established.
    Connected = "connections_established";
    /// A connection of a device was released.
    Disconnected = "connections_released";
    /// A connection of a device was refused.
    ConnectionRefused = "connections_refused", alert Alert::minor(When::Occurs, 1, "Devices connect without a NIDD configuration, or nidd.maxConnections is reached: the log names the reason.");
    /// Uplink data was received from a device.
    Uplink = "uplink_packets";
    /// Downlink data was accepted for a device and buffered.
    Buffered = "downlink_buffered";
    /// Downlink data was delivered to the MME or SGSN of a device.
    Delivered = "downlink_delivered";
    /// Downlink data was sent again, with the same End-to-End Identifier.
    Resent = "downlink_resent";
    /// Downlink data was not delivered: its time was over, or the MME or SGSN refused it.
    Undelivered = "downlink_failures";
    /// Downlink data was refused because the buffer of the device is full.
    BufferFull = "downlink_buffer_full";
    /// A device trigger was accepted by the SMS-SC.
    Triggered = "triggers_accepted";
    /// A device trigger was recalled by its SCS/AS.
    Recalled = "triggers_recalled";
    /// The delivery of a device trigger was reported by the SMS-SC.
    TriggerReported = "triggers_reported";
    /// The delivery of a device trigger was not reported within its validity.
    TriggerUnreported = "triggers_unreported";
    /// A change of an authorization, or a report about a device trigger, was refused: its sender is not the HSS or SMS-SC that was asked.
    SenderRefused = "senders_refused", alert Alert::minor(When::Occurs, 1, "The log names the request: check who sends it (`diameter.realms`, `diameter.networks`), and `diameter.hssHost` or `diameter.smsScHost` where HSS or SMS-SC are several.");
    /// A request of a peer was a duplicate, and had the first answer.
    Duplicate = "duplicates";
    /// A Diameter request was received.
    DiameterRequest = "diameter_requests";
    /// A Diameter request was refused.
    DiameterRefused = "diameter_refused";
    /// A Diameter request of ours had no answer.
    DiameterUnanswered = "diameter_unanswered", alert Alert::minor(When::Occurs, 1, "Check the HSS, the MMEs and the SMS-SC of `diameter.peers`, and the connections to them.");
    /// A notification was delivered.
    Notified = "notifications";
    /// A notification was refused, had all attempts, or was not accepted within `notifications.keep`.
    NotificationFailed = "notification_failures", alert Alert::minor(When::Occurs, 1, "Check the SCS/AS that accept no notifications: the log names the destination.");
    /// A notification waits in the store, because too many are pending in memory.
    NotificationDeferred = "notifications_deferred";
    /// An SCS/AS wanted a notification at another address.
    NotificationRedirected = "notifications_redirected";
    /// A URI of an SCS/AS was refused because of where it leads.
    TargetDenied = "targets_denied";
    /// A request was refused because its SCS/AS has all that `limits` allows.
    QuotaExceeded = "quota_exceeded";
    /// A request was refused because its SCS/AS sends more than `limits.rate`.
    RateExceeded = "rate_exceeded";
    /// A request was wrong.
    BadRequest = "bad_requests";
    /// A request failed for a reason of ours, or of the network.
    Failed = "failures", alert Alert::major(When::Occurs, 1, "The log has the reason of each failure; check the store and the HSS first.");
    /// A request was refused because it had waited longer than its consumer does.
    TooLate = "late_requests";
    /// A request was discarded under overload.
    Discarded = "discards";
    /// A request was refused by the limit on requests a second.
    RateLimited = "rate_limited";
    /// A request was refused because its consumer sends more than it may.
    ConsumerLimited = "consumer_limited";
    /// A request was refused because its access token does not open the API.
    Denied = "denied";
    /// A request was refused because its sender is not the SCS/AS of the path.
    IdentityRefused = "identities_refused";
}

impl Event {
    /// The event of a request that was not admitted.
    pub(crate) fn of(why: TurnedAway) -> Self {
        match why {
            TurnedAway::IngressRate => Self::RateLimited,
            TurnedAway::ConsumerRate => Self::ConsumerLimited,
            TurnedAway::Late => Self::TooLate,
            TurnedAway::Discarded | TurnedAway::ShutDown => Self::Discarded,
            TurnedAway::Token => Self::Denied,
            TurnedAway::Identity => Self::IdentityRefused,
        }
    }
}
