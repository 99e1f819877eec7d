use std::cell::Cell;

use sbi::headers::{SbiHeader as _, TargetApiRoot};

/// NRFs that know the same: whoever answers is asked until it fails.
#[derive(Debug, Default)]
pub struct Turns {
    nrfs: Vec<TargetApiRoot>,
    turn: Cell<usize>,
}

impl Turns {
    /// The NRFs at these API roots; what is none is left out, as settings are checked when they are read.
    pub fn new<'a>(roots: impl IntoIterator<Item = &'a String>) -> Self {
        let roots = roots.into_iter();
        Self {
            nrfs: roots.filter_map(|root| TargetApiRoot::parse(root).ok()).collect(),
            turn: Cell::new(0),
        }
    }

    /// This NRF alone.
    #[must_use]
    pub fn one(nrf: TargetApiRoot) -> Self {
        Self {
            nrfs: vec![nrf],
            turn: Cell::new(0),
        }
    }

    /// Whether this is one of them.
    #[must_use]
    pub fn contains(&self, nrf: &TargetApiRoot) -> bool {
        self.nrfs.contains(nrf)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nrfs.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nrfs.is_empty()
    }

    /// All of them, beginning with the one whose turn it is.
    pub fn in_turn(&self) -> impl Iterator<Item = &TargetApiRoot> {
        let first = self.turn.get();
        (0..self.nrfs.len()).map(move |step| &self.nrfs[(first + step) % self.nrfs.len()])
    }

    /// The one whose turn it was does not help: the next one is first from now on. A late failure of one whose turn
    /// it is no more says nothing of the next.
    pub fn next(&self, failed: &TargetApiRoot) {
        if self.in_turn().next() == Some(failed) {
            self.turn.set((self.turn.get() + 1) % self.nrfs.len().max(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_fails_is_asked_last() {
        let roots = ["http://one:1", "no root", "http://two:1/prefix"].map(str::to_owned);
        let turns = Turns::new(&roots);
        let first = || turns.in_turn().next().unwrap().clone();
        assert_eq!((turns.len(), turns.is_empty()), (2, false));
        let one = first();
        assert_eq!(one.origin.host(), "one");
        turns.next(&one);
        assert_eq!(
            (first().origin.host(), first().prefix.as_str()),
            ("two", "/prefix")
        );
        turns.next(&one);
        assert_eq!(first().origin.host(), "two", "a late failure moves nobody");
        turns.next(&first());
        assert_eq!(first(), one);
        Turns::default().next(&one);
    }
}
