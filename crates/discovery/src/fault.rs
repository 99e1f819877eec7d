//! Faults of a query.

use sbi_proto::problem::{Cause, Problem};

/// Parameters that each query must have (TS 29.510 table 6.2.3.2.3.1-1).
const MANDATORY: &[&str] = &["target-nf-type", "requester-nf-type"];

/// A query parameter that is missing or invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamFault {
    /// A mandatory parameter is missing.
    #[error("query parameter `{name}`: mandatory")]
    Missing {
        /// Name of the parameter.
        name: String,
    },
    /// The value of a parameter is invalid.
    #[error("query parameter `{name}`: {expected}")]
    Invalid {
        /// Name of the parameter.
        name: String,
        /// What would be right.
        expected: String,
    },
}

impl ParamFault {
    /// An invalid value.
    pub fn new(name: &str, expected: impl Into<String>) -> Self {
        let (name, expected) = (name.to_owned(), expected.into());
        Self::Invalid { name, expected }
    }

    /// A mandatory parameter that is missing.
    #[must_use]
    pub fn missing(name: &str) -> Self {
        let name = name.to_owned();
        Self::Missing { name }
    }

    /// Name of the parameter.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Missing { name } | Self::Invalid { name, .. } => name,
        }
    }

    /// What would be right.
    #[must_use]
    pub fn expected(&self) -> &str {
        match self {
            Self::Missing { .. } => "mandatory",
            Self::Invalid { expected, .. } => expected,
        }
    }
}

/// The causes of TS 29.500 table 5.2.7.2-1.
impl From<ParamFault> for Problem {
    fn from(fault: ParamFault) -> Self {
        let cause = match &fault {
            ParamFault::Missing { .. } => Cause::MandatoryQueryParamMissing,
            ParamFault::Invalid { name, .. } if MANDATORY.contains(&&**name) => {
                Cause::MandatoryQueryParamIncorrect
            }
            ParamFault::Invalid { .. } => Cause::OptionalQueryParamIncorrect,
        };
        Self::new(cause)
            .detail(fault.to_string())
            .invalid_param(format!("query {}", fault.name()), fault.expected())
    }
}
