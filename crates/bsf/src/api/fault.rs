//! Faults of a request, and the one place where they become problem details (TS 29.500 §5.2.7.2, TS 29.521 §5.7).

use function::records::{self, ChangeFault};
use http::StatusCode;
use sbi::problem::{Cause, Problem};
use serde_json::Value;

use crate::binding::DocumentFault;

/// Why a request is not carried out.
#[derive(Debug)]
pub enum Fault {
    /// The resource of the body, or a patch, cannot be used.
    Document(DocumentFault),
    /// The store failed.
    Store(store::Error),
    /// Other requests keep changing the same resource.
    Overtaken,
    /// The resource does not exist.
    NotFound(String),
    /// A query parameter is wrong.
    Query {
        /// Its name.
        name: String,
        /// What would be right.
        expected: String,
    },
    /// The query does not name what is looked for.
    QueryMissing {
        /// The parameter to blame.
        name: &'static str,
        /// What would be right.
        expected: &'static str,
    },
    /// A member is wrong beyond its shape.
    Member {
        pointer: &'static str,
        cause: Cause,
        expected: &'static str,
    },
    /// The body has more than this many bytes.
    BodyTooLarge(usize),
    /// Another PCF has a binding; these members say where it is (`ExtProblemDetails`, `MbsExtProblemDetails`).
    Existing(Vec<(&'static str, Value)>),
    /// Several sessions match, at different PCFs.
    Ambiguous(usize),
    /// A fault of the request as such, of any service.
    Request(Problem),
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        Self::Request(problem)
    }
}

impl From<DocumentFault> for Fault {
    fn from(fault: DocumentFault) -> Self {
        Self::Document(fault)
    }
}

impl From<store::Error> for Fault {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
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

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Document(fault) => of_document(fault),
            Fault::Store(error) => records::store_problem(error),
            Fault::Overtaken => records::overtaken("resource"),
            Fault::NotFound(id) => {
                let shown: String = id.chars().take(64).collect();
                Self::new(Cause::ResourceNotFound).detail(format!("{shown} does not exist here"))
            }
            Fault::Query { name, expected } => {
                Self::new(Cause::InvalidQueryParam).invalid_param(format!("query {name}"), expected)
            }
            Fault::QueryMissing { name, expected } => Self::new(Cause::MandatoryQueryParamMissing)
                .detail(format!("query parameter {name}: {expected}"))
                .invalid_param(format!("query {name}"), expected),
            Fault::Member {
                pointer,
                cause,
                expected,
            } => Self::new(cause)
                .detail(format!("{pointer}: {expected}"))
                .invalid_param(pointer, expected),
            Fault::BodyTooLarge(limit) => Self::new(Cause::PayloadTooLarge)
                .detail(format!("a body of more than {limit} bytes (maxBodySize)")),
            Fault::Existing(members) => {
                let mut problem = Self::with_cause(StatusCode::FORBIDDEN, "EXISTING_BINDING_INFO_FOUND")
                    .detail("another PCF has a binding");
                let more = members.into_iter().map(|(name, value)| (name.to_owned(), value));
                problem.details_mut().more.extend(more);
                problem
            }
            Fault::Ambiguous(count) => {
                Self::with_cause(StatusCode::BAD_REQUEST, "MULTIPLE_BINDING_INFO_FOUND").detail(format!(
                    "{count} sessions match and differ in what the query does not say: add ipDomain, dnn or snssai"
                ))
            }
            Fault::Request(problem) => problem,
        }
    }
}

fn of_document(fault: DocumentFault) -> Problem {
    let detail = fault.to_string();
    let problem = |cause| Problem::new(cause).detail(detail.clone());
    let at = |name: &str| format!("/{}", model::shape::escape(name));
    match fault {
        DocumentFault::Shape(faults) => {
            let cause = if faults.first().is_some_and(|first| first.missing) {
                Cause::MandatoryIeMissing
            } else {
                Cause::MandatoryIeIncorrect
            };
            faults.into_iter().fold(problem(cause), |problem, fault| {
                problem.invalid_param(fault.pointer, fault.expected)
            })
        }
        DocumentFault::NotAnObject => {
            problem(Cause::InvalidMsgFormat).invalid_param("", "expected an object")
        }
        DocumentFault::Fixed(name) => {
            problem(Cause::ModificationNotAllowed).invalid_param(at(&name), "cannot be changed")
        }
        DocumentFault::Mandatory(name) => {
            problem(Cause::MandatoryIeIncorrect).invalid_param(at(&name), "expected a value, not null")
        }
        DocumentFault::TooLarge(_) => problem(Cause::PayloadTooLarge),
    }
}
