//! What a writer answers when a change cannot be made.

use std::sync::Arc;

use function::records::store_problem;
use model::NfInstanceId;
use sbi::problem::{Cause, Problem};

use registry::{Entry, ProfileFault};

use super::Preconditions;

/// Whether the profile is as the request requires it (RFC 9110 §13.1.1, §13.1.2).
pub(super) fn check_match(before: Option<&Arc<Entry>>, wanted: &Preconditions) -> Result<(), Problem> {
    let etag = before.map(|entry| entry.etag());
    if let Some(unwanted) = &wanted.none_match {
        // Weak comparison.
        let tag = |one: &str| Some(one.strip_prefix("W/").unwrap_or(one)) == etag.as_deref();
        let mut listed = unwanted.split(',').map(str::trim);
        if etag.is_some() && listed.any(|one| one == "*" || tag(one)) {
            return Err(Problem::new(Cause::PreconditionFailed)
                .detail("the profile is one of those that If-None-Match excludes"));
        }
    }
    let Some(wanted) = &wanted.matches else {
        return Ok(());
    };
    let holds = etag.is_some_and(|etag| {
        wanted
            .split(',')
            .map(str::trim)
            .any(|one| one == "*" || one == etag)
    });
    if holds {
        return Ok(());
    }
    Err(Problem::new(Cause::PreconditionFailed).detail("the profile is not the one that If-Match names"))
}

/// Returns the problem details of the faults of a profile.
pub(super) fn problem_of(fault: ProfileFault) -> Problem {
    match fault {
        ProfileFault::Syntax { .. } => Problem::new(Cause::InvalidMsgFormat)
            .detail(format!("the body is not JSON: {fault}"))
            .invalid_param("", fault.to_string()),
        ProfileFault::Shape(faults) | ProfileFault::Patterns(faults) => {
            // TS 29.500 table 5.2.7.2-1: the worst of them.
            let cause = if faults.iter().any(|fault| fault.missing) {
                Cause::MandatoryIeMissing
            } else if faults.iter().all(|fault| fault.optional) {
                Cause::OptionalIeIncorrect
            } else {
                Cause::MandatoryIeIncorrect
            };
            let problem = Problem::new(cause).detail("invalid NF profile");
            // At most 32 faults, so that the answer stays readable.
            let listed = faults.into_iter().take(32);
            listed.fold(problem, |problem, fault| {
                problem.invalid_param(fault.pointer, fault.expected.into_owned())
            })
        }
    }
}

/// What identifies a registered NF stays: it deregisters first.
pub(super) fn type_stays() -> Problem {
    Problem::new(Cause::ModificationNotAllowed)
        .detail("nfInstanceId and nfType of a registered NF cannot be changed")
}

/// Whether something is refused because it is too large.
pub(super) fn is_excess(problem: &Problem) -> bool {
    problem.status() == Cause::PayloadTooLarge.status()
}

pub(crate) fn not_found(id: NfInstanceId) -> Problem {
    Problem::new(Cause::ResourceNotFound).detail(format!("no NF instance {id} is registered"))
}

pub(crate) fn no_subscription(id: &str) -> Problem {
    Problem::new(Cause::SubscriptionNotFound).detail(format!("subscription {id} does not exist"))
}

pub(super) fn store_failed(error: store::Error) -> Problem {
    use store::Error;
    match error {
        Error::Overflow { .. } | Error::Unavailable { .. } => store_problem(error),
        _ => {
            // The store logs the begin and the end of an outage; a line for each change would flood the log.
            tracing::debug!(%error, "a change could not be made durable");
            Problem::new(Cause::InsufficientResources).detail("the change could not be made durable")
        }
    }
}
