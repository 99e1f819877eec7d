//! The bindings that stand.

use std::collections::VecDeque;

use super::{Binding, Numbers, Sessions};

/// Bindings that stand, the oldest first: those that were in the store before the load, whose identities follow
/// from their numbers, then those that were registered.
#[derive(Debug, Default)]
pub struct Stock {
    before: Numbers,
    since: VecDeque<Binding>,
}

impl From<Numbers> for Stock {
    fn from(before: Numbers) -> Self {
        Self {
            before,
            ..Self::default()
        }
    }
}

impl From<Vec<Binding>> for Stock {
    fn from(registered: Vec<Binding>) -> Self {
        Self {
            since: registered.into(),
            ..Self::default()
        }
    }
}

impl Stock {
    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.before.count as usize + self.since.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The session of the one at this position.
    #[must_use]
    pub fn number(&self, position: usize) -> Option<u32> {
        match position.checked_sub(self.before.count as usize) {
            // Below a count of 32 bits.
            None => Some(self.before.at(position as u32)),
            Some(since) => self.since.get(since).map(|binding| binding.number),
        }
    }

    /// Takes the oldest away.
    pub fn pop(&mut self) -> Option<Binding> {
        match self.before.pop() {
            Some(number) => Some(Binding {
                number,
                id: Sessions::id(number).to_string().into(),
            }),
            None => self.since.pop_front(),
        }
    }

    /// Another one.
    pub fn push(&mut self, binding: Binding) {
        self.since.push_back(binding);
    }
}
