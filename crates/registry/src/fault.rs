//! Why a text is not a profile.

use model::shape::Fault;

/// Why a text is not a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileFault {
    /// Not JSON.
    #[error("line {line}, column {column}: {reason}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What the parser says.
        reason: String,
    },
    /// JSON, but not a profile.
    #[error("{} faults, the first at {}: {}", .0.len(), .0[0].pointer, .0[0].expected)]
    Shape(Vec<Fault>),
    /// A profile with more regular expressions than allowed; the faults say where.
    #[error("{} faults, the first at {}: {}", .0.len(), .0[0].pointer, .0[0].expected)]
    Patterns(Vec<Fault>),
}

impl ProfileFault {
    /// Whether it has more regular expressions than allowed.
    #[must_use]
    pub fn exceeds_patterns(&self) -> bool {
        matches!(self, Self::Patterns(_))
    }

    pub(crate) fn at(pointer: &str, expected: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self::Shape(vec![Fault {
            pointer: pointer.to_owned(),
            expected: expected.into(),
            missing: false,
            optional: false,
        }])
    }
}
