//! What can happen in an SDS: counted here, logged where it matters.

use function::AdmissionMetrics;
use function::sbi::TurnedAway;
use http::StatusCode;
use sbi::problem::{Cause, Problem};
use telemetry::{Alert, When};

/// The metrics of admission.
pub(crate) const ADMISSION: AdmissionMetrics = function::admission_metrics!("sds");

/// The cause of a transaction that other servers have overtaken again and again.
pub(crate) const OVERTAKEN: &str = "OVERTAKEN";

telemetry::events! {
    "sds";
    /// A transaction of this server was written.
    Transaction = "transactions";
    /// A record was set or removed by a transaction of this server.
    Change = "changes";
    /// A record was read.
    Read = "reads";
    /// A database processor polled the journal.
    Poll = "polls";
    /// A page of the journal was sent that had transactions.
    Page = "journal_pages";
    /// The journal does not have what a database processor lacks; it takes a checkpoint.
    Removed = "journal_removed";
    /// A checkpoint was begun to be sent.
    Checkpoint = "checkpoints_sent";
    /// A checkpoint ended before its end, because a block of numbers is damaged.
    CheckpointFailed = "checkpoint_failures", alert Alert::major(When::Occurs, 1, "A block of numbers is damaged: the log names it. Restart this server with a checkpoint of another one as load.csv.");
    /// The records were written to the directory.
    Saved = "saves";
    /// The records could not be written to the directory, or the journal not be trimmed.
    SaveFailed = "save_failures", alert Alert::minor(When::Occurs, 1, "The log has the reason; until records are written, the journal grows and a start takes longer.");
    /// A transaction was refused because a record was not what it expects.
    ExpectedOther = "conflicts";
    /// A transaction was refused because other servers kept writing before this one; the same one may succeed.
    Overtaken = "overtaken";
    /// A request was wrong.
    BadRequest = "bad_requests";
    /// A request failed for a reason of ours.
    Failed = "failures", alert Alert::major(When::Occurs, 1, "The log has the reason of each failure; check the store first.");
    /// A request was refused because it had waited longer than its consumer does.
    TooLate = "late_requests";
    /// A request was discarded under overload, or because too many are pending.
    Discarded = "discards";
    /// A request was refused by the limit on requests a second.
    RateLimited = "rate_limited";
    /// A request was refused because its consumer sends more than it may.
    ConsumerLimited = "consumer_limited";
    /// A request was refused because its access token does not permit it.
    Denied = "denied";
    /// A request was refused because its sender is not who it may be.
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

    /// The event of a request that was admitted and failed. Neither a bound that was reached nor another server that was
    /// faster is a failure of the store.
    pub(crate) fn of_problem(problem: &Problem) -> Self {
        match (problem.status(), problem.details().cause.as_deref()) {
            (_, Some(cause)) if cause == Cause::NfCongestion.as_str() => Self::Discarded,
            (_, Some(cause)) if cause == OVERTAKEN => Self::Overtaken,
            (StatusCode::CONFLICT, _) => Self::ExpectedOther,
            (StatusCode::GONE, _) => Self::Removed,
            (status, _) if status.is_server_error() => Self::Failed,
            _ => Self::BadRequest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_not_a_failure_and_a_condition_no_bad_request() {
        let overtaken = Problem::with_cause(StatusCode::SERVICE_UNAVAILABLE, OVERTAKEN);
        for (problem, event) in [
            (Problem::new(Cause::NfCongestion), Event::Discarded),
            (overtaken, Event::Overtaken),
            (Problem::new(Cause::Conflict), Event::ExpectedOther),
            (Problem::of_status(StatusCode::GONE), Event::Removed),
            (Problem::of_status(StatusCode::SERVICE_UNAVAILABLE), Event::Failed),
            (Problem::new(Cause::SystemFailure), Event::Failed),
            (Problem::new(Cause::InvalidMsgFormat), Event::BadRequest),
        ] {
            assert_eq!(Event::of_problem(&problem), event);
        }
    }
}
