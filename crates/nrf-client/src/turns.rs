use std::cell::Cell;

use sbi::headers::{SbiHeader as _, TargetApiRoot};

/// NRFs that hold the same profiles: requests go to one until it fails, then to the next.
#[derive(Debug, Default)]
pub struct Turns {
    nrfs: Vec<TargetApiRoot>,
    turn: Cell<usize>,
}

impl Turns {
    /// The NRFs at these API roots; invalid roots are ignored here because the settings check reports them.
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

    /// Whether the set contains this NRF.
    #[must_use]
    pub fn contains(&self, nrf: &TargetApiRoot) -> bool {
        self.nrfs.contains(nrf)
    }

    /// Number of NRFs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nrfs.len()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nrfs.is_empty()
    }

    /// All NRFs, beginning with the current one.
    pub fn in_turn(&self) -> impl Iterator<Item = &TargetApiRoot> {
        let first = self.turn.get();
        (0..self.nrfs.len()).map(move |step| &self.nrfs[(first + step) % self.nrfs.len()])
    }

    /// Makes the NRF after `failed` the current one. A late failure of an NRF that is not the current one changes
    /// nothing.
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
    fn a_failed_nrf_comes_last() {
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
        assert_eq!(first().origin.host(), "two", "a late failure changes nothing");
        turns.next(&first());
        assert_eq!(first(), one);
        Turns::default().next(&one);
    }
}
