//! What can happen in a security application.

use telemetry::{Alert, When};

telemetry::events! {
    "dsr";
    /// The security application screened a message of a partner, or for one.
    Screened = "security_screened";
    /// A measure of the security application found a message to be wrong.
    Found = "security_detections", alert Alert::minor(When::Occurs, 1, "See which partner and which measure (`signalbox_dsr_security_findings_total`), and the lines of findings for the messages.");
    /// The security application dropped a message.
    Dropped = "security_dropped";
    /// The security application answered a request by an error.
    Answered = "security_answered";
    /// A measure of the security application would have found a message to be wrong, but for an exception.
    Excepted = "security_excepted";
    /// A line about a finding was not written: there were more than `findingsPerSecond`, or its file takes none.
    LineLost = "security_lines_lost";
    /// A sample of a message that was found was not written: too many waited, it is too long, or its file takes none.
    SampleLost = "security_samples_lost";
    /// The security application had no room for a subscriber (`maxSubscribers`).
    Full = "security_subscribers_refused", alert Alert::minor(When::Occurs, 1, "Raise `maxSubscribers` of the security application, or shorten `lifetime`: subscribers without a record are not held to their place and host.");
    /// The security application could not store what has changed about subscribers; it tries again.
    NotStored = "security_not_stored", alert Alert::minor(When::Occurs, 1, "See the log for the error of the store of the security application. Until it is written, a restart brings back what was stored before.");
}
