//! Ranges of numbers as the prefixes that cover them.

use crate::digits::Digits;

/// The most digits of a prefix or range: intervals are compared as numbers of 128 bits.
pub(super) const LONGEST: usize = 32;

/// The numbers between two of the same length, as the fewest prefixes; without any when they have other lengths, digits
/// above 9, or the wrong order.
pub(super) fn prefixes(first: &Digits, last: &Digits) -> Vec<Digits> {
    let decimal = |digits: &Digits| digits.iter().all(|digit| digit < 10);
    if first.len() != last.len() || !decimal(first) || !decimal(last) || first.iter().gt(last.iter()) {
        return Vec::new();
    }
    let mut found = Vec::new();
    // Common prefix, and what follows of either end: nothing for an end that is open.
    let mut pending = vec![(Digits::EMPTY, Some(*first), Some(*last))];
    while let Some((prefix, low, high)) = pending.pop() {
        let open =
            |end: &Option<Digits>, digit: u8| end.is_none_or(|end| end.iter().all(|other| other == digit));
        // Every number below the prefix is within.
        if open(&low, 0) && open(&high, 9) {
            found.push(prefix);
            continue;
        }
        let from = low.and_then(|low| low.get(0)).unwrap_or(0);
        let to = high.and_then(|high| high.get(0)).unwrap_or(9);
        for digit in from..=to {
            let mut longer = prefix;
            if longer.push(digit).is_none() {
                return Vec::new();
            }
            let low = low.filter(|_| digit == from).map(|low| low.skip(1));
            let high = high.filter(|_| digit == to).map(|high| high.skip(1));
            pending.push((longer, low, high));
        }
    }
    found
}

/// The first and last number of an interval, extended to 32 semi-octets.
pub(super) fn interval(first: &Digits, last: &Digits) -> (u128, u128) {
    let behind = u128::MAX.checked_shr(4 * last.len() as u32).unwrap_or(0);
    (first.leading(), last.leading() | behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(first: &str, last: &str) -> String {
        let digits = |text| Digits::parse(text).unwrap();
        let mut all: Vec<_> = prefixes(&digits(first), &digits(last))
            .iter()
            .map(Digits::to_string)
            .collect();
        all.sort();
        all.join(" ")
    }

    #[test]
    fn the_fewest_prefixes() {
        assert_eq!(shown("430", "435"), "430 431 432 433 434 435");
        assert_eq!(shown("4300", "4359"), "430 431 432 433 434 435");
        assert_eq!(shown("4398", "4401"), "4398 4399 4400 4401");
        assert_eq!(shown("100", "300"), "1 2 300");
        assert_eq!(shown("4300", "4399"), "43");
        assert_eq!(shown("7", "7"), "7");
        assert_eq!(shown("000", "999"), "");
        for (first, last) in [("2", "1"), ("1", "10"), ("a", "b"), ("1", "c")] {
            assert_eq!(
                prefixes(&Digits::parse(first).unwrap(), &Digits::parse(last).unwrap()),
                []
            );
        }
    }

    #[test]
    fn every_number_is_in_exactly_one_prefix() {
        for (first, last) in [(0, 999), (7, 7), (1, 998), (99, 101), (250, 749), (123, 456)] {
            let digits = |number: u32| Digits::parse(&format!("{number:03}")).unwrap();
            let covers = prefixes(&digits(first), &digits(last));
            for number in 0..1000 {
                let number_digits = digits(number);
                let count = covers
                    .iter()
                    .filter(|prefix| number_digits.starts_with(prefix))
                    .count();
                assert_eq!(
                    count,
                    usize::from((first..=last).contains(&number)),
                    "{first} {last} {number}"
                );
            }
        }
    }
}
