//! A query that cannot be answered as it stands.

use sbi::problem::{Cause, Problem};

/// A query parameter that is missing or cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamFault {
    /// Name of the parameter.
    pub name: String,
    /// What was expected.
    pub expected: String,
    /// Whether it is missing altogether.
    pub missing: bool,
}

impl ParamFault {
    /// A value that cannot be used.
    pub fn new(name: &str, expected: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            expected: expected.into(),
            missing: false,
        }
    }

    /// A mandatory parameter that is not there.
    #[must_use]
    pub fn missing(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            expected: "mandatory".to_owned(),
            missing: true,
        }
    }

    /// The answer (TS 29.500 table 5.2.7.2-1).
    #[must_use]
    pub fn into_problem(self) -> Problem {
        let cause = if self.missing {
            Cause::MandatoryQueryParamMissing
        } else {
            Cause::InvalidQueryParam
        };
        Problem::new(cause)
            .detail(format!("query parameter `{}`: {}", self.name, self.expected))
            .invalid_param(format!("query {}", self.name), self.expected)
    }
}
