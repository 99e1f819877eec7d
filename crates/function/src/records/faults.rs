//! What a consumer learns of a store that fails (TS 29.500 §5.2.7.2).

use ::sbi::problem::{Cause, Problem};
use http::StatusCode;
use store::Error;

/// The answer to a request whose record could not be read or written.
#[must_use]
pub fn store_problem(error: Error) -> Problem {
    match error {
        Error::Overflow { .. } => Problem::new(Cause::NfCongestion).detail("too many writes wait; try later"),
        Error::Unavailable { maybe_applied, .. } => {
            // The store logs once that it is unavailable, not for each request.
            tracing::debug!(%error, "request failed");
            let detail = if maybe_applied {
                "the database failed in the middle; the request may have been carried out"
            } else {
                "the database is not available; nothing was done, try later"
            };
            Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).detail(detail)
        }
        Error::Invalid(reason) => Problem::new(Cause::PayloadTooLarge).detail(reason),
        Error::Engine(_) | Error::Closed => {
            tracing::debug!(%error, "request failed");
            Problem::new(Cause::SystemFailure)
        }
        error => {
            tracing::error!(%error, "request failed");
            Problem::new(Cause::SystemFailure)
        }
    }
}

/// The answer to a change that others have overtaken again and again; `what` is what it would change. Its sender has made no
/// mistake, and the same request may succeed in a moment.
#[must_use]
pub fn overtaken(what: &str) -> Problem {
    let detail = format!("others keep changing this {what}; nothing was done, try again");
    Problem::of_status(StatusCode::SERVICE_UNAVAILABLE).detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_the_store_are_not_those_of_the_request() {
        let unavailable = |maybe_applied| Error::Unavailable {
            reason: "the table is full".to_owned(),
            maybe_applied,
        };
        for (error, status) in [
            (unavailable(false), StatusCode::SERVICE_UNAVAILABLE),
            (unavailable(true), StatusCode::SERVICE_UNAVAILABLE),
            (
                Error::Engine("INSERT command denied".to_owned()),
                StatusCode::INTERNAL_SERVER_ERROR,
            ),
            (Error::Closed, StatusCode::INTERNAL_SERVER_ERROR),
            (
                Error::Overflow { waiting: 1, bytes: 1 },
                StatusCode::SERVICE_UNAVAILABLE,
            ),
            (
                Error::Invalid("a key of 600 bytes".to_owned()),
                StatusCode::PAYLOAD_TOO_LARGE,
            ),
        ] {
            let problem = store_problem(error);
            assert_eq!(problem.status(), status);
            let detail = problem.details().detail.clone().unwrap_or_default();
            assert!(
                !detail.contains("denied") && !detail.contains("table is full"),
                "{detail}"
            );
        }
    }
}
