//! Ranges of numbers that exist without an entry of their own.

use std::sync::Arc;

use super::{Digits, Profile};

/// A range; without a profile its numbers do not exist.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) digits: Digits,
    pub(crate) profile: Option<Arc<Profile>>,
    pub(crate) least: usize,
    pub(crate) most: usize,
}

/// The ranges of a tree, by what they begin with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    /// In the order of their digits: those that begin alike are neighbours.
    sorted: Vec<Range>,
}

impl Ranges {
    /// Sorts ranges; the digits that two of them have.
    pub(crate) fn new(mut ranges: Vec<Range>) -> (Self, Vec<Digits>) {
        ranges.sort_by(|one, other| one.digits.as_slice().cmp(other.digits.as_slice()));
        let pairs = ranges.windows(2);
        let twice = pairs.filter_map(|pair| match pair {
            [one, other] if one.digits == other.digits => Some(one.digits),
            _ => None,
        });
        let twice = twice.collect();
        (Self { sorted: ranges }, twice)
    }

    pub(crate) fn len(&self) -> usize {
        self.sorted.len()
    }

    fn exact(&self, digits: &Digits) -> Option<&Range> {
        let found = self
            .sorted
            .binary_search_by(|range| range.digits.as_slice().cmp(digits.as_slice()));
        found.ok().and_then(|at| self.sorted.get(at))
    }

    /// The range with most digits that a number begins with, whatever the number's length.
    fn closest(&self, number: &Digits) -> Option<&Range> {
        if self.sorted.is_empty() {
            return None;
        }
        (0..=number.len())
            .rev()
            .find_map(|length| self.exact(&number.prefix(length)))
    }

    /// The range that decides for a number.
    pub(crate) fn find(&self, number: &Digits) -> Option<&Range> {
        self.closest(number)
            .filter(|range| (range.least..=range.most).contains(&number.len()))
    }

    /// Whether a number exists that begins with these digits and has more of them.
    pub(crate) fn has_longer(&self, digits: &Digits) -> bool {
        let exists = |range: &Range| range.profile.is_some();
        let closest = self.closest(digits);
        if closest.is_some_and(|range| exists(range) && range.most > digits.len()) {
            return true;
        }
        // A range whose digits are longer has such numbers: it has at least as many digits as its own.
        let begin = self
            .sorted
            .partition_point(|range| range.digits.as_slice() <= digits.as_slice());
        let rest = self.sorted.get(begin..).unwrap_or_default();
        rest.iter()
            .take_while(|range| range.digits.starts_with(digits))
            .any(exists)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(digits: &str, exists: bool, least: usize, most: usize) -> Range {
        let digits = Digits::parse(digits).unwrap();
        Range {
            profile: exists.then(|| Arc::new(Profile::default())),
            least: least.max(digits.len()),
            digits,
            most,
        }
    }

    #[test]
    fn the_longest_digits_decide_and_incomplete_numbers_have_longer_ones() {
        let (ranges, twice) = Ranges::new(vec![
            range("43", true, 6, 12),
            range("43660", false, 0, 15),
            range("436601", true, 10, 10),
        ]);
        assert!(twice.is_empty());
        let digits = |text: &str| Digits::parse(text).unwrap();
        let found = |text: &str| ranges.find(&digits(text)).map(|range| range.digits.to_string());
        assert_eq!(found("4312"), None, "too short");
        assert_eq!(found("431234"), Some("43".to_owned()));
        assert_eq!(found("4312345678901"), None, "too long");
        assert_eq!(found("4366012345"), Some("436601".to_owned()));
        assert_eq!(found("43660123456"), None, "the closest range decides alone");
        assert_eq!(found("436602"), Some("43660".to_owned()));
        for (text, longer) in [
            ("", true),
            ("4", true),
            ("43", true),
            ("431234567890", false),
            ("43660", true),
            ("436602", false),
            ("436601", true),
            ("4366012345", false),
            ("44", false),
        ] {
            assert_eq!(ranges.has_longer(&digits(text)), longer, "{text}");
        }
        let (_, twice) = Ranges::new(vec![range("43", true, 2, 9), range("43", true, 3, 9)]);
        assert_eq!(twice.len(), 1);
    }
}
