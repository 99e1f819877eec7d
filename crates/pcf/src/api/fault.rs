//! Faults of a request, and the one place where they become problem details (TS 29.500 §5.2.7.2, TS 29.512 §5.7).

use std::convert::Infallible;

use function::records;
use http::StatusCode;
use model::shape;
use sbi::problem::{Cause, Problem};

use crate::association::context::Incoherent;
use crate::change::ChangeFault;
use crate::pds::Missing;
use crate::pre::{LATE, Refusal};

/// Why a request is not carried out.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The body is not of its shape.
    Shape(Vec<shape::Fault>),
    /// The body is not an object.
    NotAnObject,
    /// The body has more than this many bytes.
    BodyTooLarge(usize),
    /// There is no such association.
    NotFound(String),
    /// An update contradicts what is known of the session.
    Incoherent(Incoherent),
    /// The policy refuses the request, or cannot be evaluated.
    Policy(Refusal),
    /// The store failed.
    Store(store::Error),
    /// Others keep changing the same association.
    Overtaken,
    /// A fault of the request as such, of any service.
    Request(Problem),
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Self::Request(problem)
    }
}

impl From<store::Error> for Fault {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Policy(refusal)
    }
}

impl From<Incoherent> for Fault {
    fn from(fault: Incoherent) -> Self {
        Self::Incoherent(fault)
    }
}

impl<F: Into<Fault>> From<ChangeFault<F>> for Fault {
    fn from(fault: ChangeFault<F>) -> Self {
        match fault {
            ChangeFault::Refused(fault) => fault.into(),
            ChangeFault::Store(error) => Self::Store(error),
            ChangeFault::Overtaken => Self::Overtaken,
        }
    }
}

impl From<Infallible> for Fault {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Shape(faults) => of_shape(faults),
            Fault::NotAnObject => Self::new(Cause::InvalidMsgFormat).invalid_param("", "expected an object"),
            Fault::BodyTooLarge(limit) => Self::new(Cause::PayloadTooLarge)
                .detail(format!("a body of more than {limit} bytes (maxBodySize)")),
            Fault::NotFound(id) => {
                let shown: String = id.chars().take(64).collect();
                Self::new(Cause::ContextNotFound).detail(format!("policy association {shown} does not exist"))
            }
            Fault::Incoherent(Incoherent { member, reason }) => {
                Self::with_cause(StatusCode::BAD_REQUEST, "ERROR_TRIGGER_EVENT")
                    .detail(format!("{member}: {reason}"))
                    .invalid_param(format!("/{member}"), reason)
            }
            Fault::Policy(refusal) => of_refusal(refusal),
            Fault::Store(error) => records::store_problem(error),
            Fault::Overtaken => records::overtaken("policy association"),
            Fault::Request(problem) => problem,
        }
    }
}

fn of_shape(faults: Vec<shape::Fault>) -> Problem {
    let cause = match faults.first() {
        Some(first) if first.pointer.is_empty() => Cause::InvalidMsgFormat,
        _ if faults.iter().any(|fault| fault.missing) => Cause::MandatoryIeMissing,
        _ if faults.iter().all(|fault| fault.optional) => Cause::OptionalIeIncorrect,
        _ => Cause::MandatoryIeIncorrect,
    };
    let detail = faults
        .first()
        .map(|fault| format!("{}: {}", fault.pointer, fault.expected));
    let problem = Problem::new(cause).detail(detail.unwrap_or_default());
    faults.into_iter().fold(problem, |problem, fault| {
        problem.invalid_param(fault.pointer, fault.expected)
    })
}

fn of_refusal(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::Policy {
            status,
            cause,
            detail,
        } => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::FORBIDDEN);
            let problem = Problem::with_cause(status, &cause);
            match detail {
                Some(detail) => problem.detail(detail),
                None => problem,
            }
        }
        Refusal::Missing(Missing::User) => Problem::with_cause(StatusCode::BAD_REQUEST, "USER_UNKNOWN")
            .detail("the UDR does not know the subscriber"),
        Refusal::Missing(missing) => {
            let what = match missing {
                Missing::User | Missing::PolicyData => "no UDR answers in time",
                Missing::Counters => "no CHF or OCS answers in time",
                Missing::Quotas => "the quotas of the subscriber cannot be read",
                Missing::State => "the state variables of the subscriber cannot be read",
            };
            Problem::of_status(StatusCode::SERVICE_UNAVAILABLE)
                .detail(format!("{what}; nothing was done, try later"))
        }
        Refusal::Late => Problem::with_cause(StatusCode::FORBIDDEN, LATE).detail(
            "the subscriber has this session by a request with a more recent 3gpp-Sbi-Origination-Timestamp",
        ),
        // The log has the block; a consumer learns nothing of the project.
        Refusal::Fault(_) | Refusal::Foreign => {
            Problem::new(Cause::UnspecifiedNfFailure).detail("the policy cannot be evaluated")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::SM_CONTEXT;
    use serde_json::json;

    #[test]
    fn the_cause_says_whether_a_member_is_missing_or_wrong() {
        let good = json!({"supi": "imsi-1", "pduSessionId": 1, "pduSessionType": "IPV4", "dnn": "internet",
            "notificationUri": "http://smf/n", "sliceInfo": {"sst": 1}});
        for (name, value, cause) in [
            ("supi", None, "MANDATORY_IE_MISSING"),
            ("pduSessionId", Some(json!(256)), "MANDATORY_IE_INCORRECT"),
            ("supi", Some(json!("")), "MANDATORY_IE_INCORRECT"),
            (
                "notificationUri",
                Some(json!("ftp://a/b")),
                "MANDATORY_IE_INCORRECT",
            ),
            ("sliceInfo", Some(json!({})), "MANDATORY_IE_MISSING"),
            (
                "subsSessAmbr",
                Some(json!({"uplink": "fast", "downlink": "1 Mbps"})),
                "MANDATORY_IE_INCORRECT",
            ),
            ("ipv4Address", Some(json!("10.0.0")), "OPTIONAL_IE_INCORRECT"),
        ] {
            let mut body = good.clone();
            match value {
                Some(value) => body[name] = value,
                None => drop(body.as_object_mut().unwrap().shift_remove(name)),
            }
            let problem = Problem::from(Fault::Shape(SM_CONTEXT.check(&body)));
            let details = problem.details();
            assert_eq!(details.cause.as_deref(), Some(cause), "{body}");
            assert!(
                details.invalid_params[0].param.starts_with(&format!("/{name}")),
                "{details:?}"
            );
        }
        assert!(SM_CONTEXT.check(&good).is_empty());
        let problem = Problem::from(Fault::Shape(SM_CONTEXT.check(&json!([]))));
        assert_eq!(problem.details().cause.as_deref(), Some("INVALID_MSG_FORMAT"));
    }
}
