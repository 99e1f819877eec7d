//! Ranges that do not overlap, sorted, of which a change copies a part: lookups need no lock.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Ranges of a part, at most.
const MOST: usize = 512;

/// A destination; none: the range leads nowhere.
pub(crate) type Listed = Option<Arc<str>>;

/// First value, last value, destination.
type Span<T> = (T, T, Listed);

/// The parts, none of which is empty.
#[derive(Clone, Debug)]
pub(crate) struct Chunks<T>(Vec<Arc<Vec<Span<T>>>>);

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Ord + Clone> Chunks<T> {
    /// The part to which a range that begins here belongs.
    fn part(&self, first: &T) -> usize {
        let begins = |part: &Arc<Vec<Span<T>>>| part.first().is_some_and(|span| span.0 <= *first);
        self.0.partition_point(begins).saturating_sub(1)
    }

    /// The last range that begins at the value or before it.
    fn before(&self, value: &T) -> Option<&Span<T>> {
        let part = self.0.get(self.part(value))?;
        part.get(part.partition_point(|span| span.0 <= *value).checked_sub(1)?)
    }

    /// What the range leads to that holds the value, if there is such a range.
    pub(crate) fn find(&self, value: &T) -> Option<Listed> {
        let span = self.before(value)?;
        (span.1 >= *value).then(|| span.2.clone())
    }

    /// Whether a range is not there yet.
    ///
    /// # Errors
    /// When it overlaps another.
    pub(crate) fn is_new(&self, first: &T, last: &T) -> Result<bool, String> {
        // Of those that begin before its end the last one alone may reach into it.
        match self.before(last) {
            Some(span) if span.0 == *first && span.1 == *last => Ok(false),
            Some(span) if span.1 >= *first => Err("it overlaps a range that was changed before".to_owned()),
            _ => Ok(true),
        }
    }

    /// The ranges with this one, which takes the place of the same range and overlaps no other.
    pub(crate) fn with(&self, first: T, last: T, to: Listed) -> Self {
        let mut parts = self.0.clone();
        let at = self.part(&first);
        let mut part = parts.get(at).map(|part| Vec::clone(part)).unwrap_or_default();
        let position = part.partition_point(|span| span.0 < first);
        match part.get_mut(position).filter(|span| span.0 == first) {
            Some(span) => *span = (first, last, to),
            None => part.insert(position, (first, last, to)),
        }
        let second = (part.len() > MOST).then(|| part.split_off(MOST / 2));
        match parts.get_mut(at) {
            Some(place) => *place = Arc::new(part),
            None => parts.push(Arc::new(part)),
        }
        if let Some(second) = second {
            parts.insert(at + 1, Arc::new(second));
        }
        Self(parts)
    }

    /// Collects the destinations.
    pub(crate) fn destinations(&self, into: &mut BTreeSet<Arc<str>>) {
        let spans = self.0.iter().flat_map(|part| part.iter());
        for to in spans.filter_map(|span| span.2.as_ref()) {
            if !into.contains(to) {
                into.insert(to.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_of_ranges_stay_in_order_whatever_the_order_of_changes() {
        let mut chunks = Chunks::<u64>::default();
        const COUNT: u64 = 5_000;
        let to = |n: u64| (!n.is_multiple_of(3)).then(|| Arc::from(n.to_string()));
        for n in 0..COUNT {
            let n = (n * 2_741) % COUNT;
            assert_eq!(chunks.is_new(&(n * 10), &(n * 10 + 4)), Ok(true));
            chunks = chunks.with(n * 10, n * 10 + 4, to(n));
        }
        for n in 0..COUNT {
            assert_eq!(chunks.find(&(n * 10)), Some(to(n)));
            assert_eq!(chunks.find(&(n * 10 + 4)), Some(to(n)));
            assert_eq!(chunks.find(&(n * 10 + 5)), None);
            assert_eq!(chunks.is_new(&(n * 10), &(n * 10 + 4)), Ok(false));
            for (first, last) in [(4, 5), (0, 3), (1, 2), (2, 12), (0, 100)] {
                assert!(
                    chunks.is_new(&(n * 10 + first), &(n * 10 + last)).is_err(),
                    "{first} {last}"
                );
            }
            assert_eq!(chunks.is_new(&(n * 10 + 5), &(n * 10 + 9)), Ok(true));
        }
        let changed = chunks.with(40, 44, None);
        assert_eq!((changed.find(&42), chunks.find(&42)), (Some(None), Some(to(4))));
    }
}
