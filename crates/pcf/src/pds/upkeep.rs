//! What keeps a subscription alive: a producer limits it in time (`expiry`), and one that was away is asked again.

use serde::{Deserialize, Serialize};

use crate::sources::Term;

/// Doublings of the pause between attempts at most.
const DOUBLINGS: u32 = 6;

/// The upkeep of one subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Upkeep {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) term: Option<Term>,
    /// Whether there is none because no producer has answered.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) lacks: bool,
    /// Attempts in a row that have failed.
    #[serde(skip_serializing_if = "is_zero")]
    tries: u32,
    /// Whether the data that it is about are to be read again.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) reads_again: bool,
    /// When it is attempted again.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Upkeep {
    /// Of a subscription that stands.
    pub(crate) fn of(term: Option<Term>) -> Self {
        Self {
            term,
            ..Self::default()
        }
    }

    /// After an attempt that has failed: another one after a pause that grows.
    pub(crate) fn failed(self, lacks: bool, now: u64, pause: u64) -> Self {
        let pause = pause.saturating_mul(1 << self.tries.min(DOUBLINGS));
        Self {
            term: self.term,
            lacks,
            reads_again: self.reads_again,
            tries: self.tries.saturating_add(1),
            retry: Some(now.saturating_add(pause)),
        }
    }

    /// With data that are to be read again at once.
    pub(crate) fn read_again(self, now: u64) -> Self {
        Self {
            reads_again: true,
            retry: Some(now),
            ..self
        }
    }

    /// When something is due; `None`: nothing is.
    pub(crate) fn due(self) -> Option<u64> {
        self.retry.or(self.term.map(Term::due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_is_renewed_while_a_third_of_its_term_is_left() {
        let term = Term::of(Some("1970-01-01T00:01:00Z"), 30_000);
        assert_eq!(Upkeep::of(term).due(), Some(50_000));
        assert_eq!(
            Upkeep::of(term.map(|term| term.again(50_000))).due(),
            Some(70_000)
        );
        // The clocks differ.
        let past = Term::of(Some("1970-01-01T00:00:10Z"), 30_000);
        assert_eq!(Upkeep::of(past).due(), Some(70_000));
        assert_eq!(Term::of(Some("tomorrow"), 0), None);
        assert_eq!(Upkeep::default().due(), None);
    }

    #[test]
    fn pauses_between_attempts_grow_within_a_bound() {
        let mut upkeep = Upkeep::default();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            upkeep = upkeep.failed(true, 0, 10);
            pauses.extend(upkeep.due());
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 640, 640]);
    }
}
