//! Faults of a patch.

use std::borrow::Cow;

use crate::problem::{Cause, Problem};

/// The kind of fault of a patch that does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The operation is none of RFC 6902.
    Format,
    /// The operation is sound, and does not fit the document as it is.
    Conflict,
    /// The operation asks for more than [`Limits`] allow.
    Excess,
}

/// Why a patch does not apply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operation {index}, {member}: {expected}")]
pub struct PatchFault {
    /// Which operation, from 0.
    pub index: usize,
    /// Which of its members is to blame.
    pub member: &'static str,
    /// What was expected.
    pub expected: String,
    /// What kind of fault it is.
    pub blame: Blame,
}

impl Blame {
    /// The cause it is answered with (TS 29.500 §5.2.7.2).
    #[must_use]
    pub fn cause(self) -> Cause {
        match self {
            Self::Format => Cause::InvalidMsgFormat,
            Self::Conflict => Cause::MandatoryIeIncorrect,
            Self::Excess => Cause::PayloadTooLarge,
        }
    }
}

impl PatchFault {
    /// The answer; it names operation and member.
    #[must_use]
    pub fn into_problem(self) -> Problem {
        Problem::new(self.blame.cause())
            .detail(self.to_string())
            .invalid_param(format!("/{}/{}", self.index, self.member), self.expected)
    }
}

/// A fault whose operation is known to the caller only.
#[derive(Debug)]
pub(super) struct Stop {
    member: &'static str,
    expected: Cow<'static, str>,
    blame: Blame,
}

impl Stop {
    pub(super) fn format(member: &'static str, expected: impl Into<Cow<'static, str>>) -> Self {
        let (expected, blame) = (expected.into(), Blame::Format);
        Self {
            member,
            expected,
            blame,
        }
    }

    pub(super) fn conflict(member: &'static str, expected: impl Into<Cow<'static, str>>) -> Self {
        let (expected, blame) = (expected.into(), Blame::Conflict);
        Self {
            member,
            expected,
            blame,
        }
    }

    pub(super) fn excess(expected: impl Into<Cow<'static, str>>) -> Self {
        Self {
            member: "op",
            expected: expected.into(),
            blame: Blame::Excess,
        }
    }

    pub(super) fn at(self, index: usize) -> PatchFault {
        PatchFault {
            index,
            member: self.member,
            expected: self.expected.into_owned(),
            blame: self.blame,
        }
    }
}
