//! Ranges of the first digits of numbers: the range with the most digits counts.

use std::cmp::Reverse;

use numbers::{Key, Kind, MOST_DIGITS};

/// Numbers whose first `count` digits lie between two.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: u64,
    last: u64,
    value: u16,
    line: u64,
}

/// Ranges of one kind that have this count of digits.
#[derive(Debug)]
struct OfCount {
    kind: Kind,
    count: usize,
    ranges: Vec<Range>,
}

/// The ranges of all kinds.
#[derive(Debug, Default)]
pub(crate) struct Ranges(Vec<OfCount>);

impl Ranges {
    /// Whether a text is a range and not one number.
    pub(crate) fn is_range(text: &str) -> bool {
        text.ends_with('*') || text.contains("..")
    }

    /// Adds `00101*` or `00101..00104` of a line.
    ///
    /// # Errors
    /// When it is not a range.
    pub(crate) fn add(&mut self, kind: Kind, text: &str, value: u16, line: u64) -> Result<(), String> {
        let (first, last) = match text.strip_suffix('*') {
            Some(prefix) => (prefix, prefix),
            None => text.split_once("..").unwrap_or((text, text)),
        };
        let key = |text: &str| Key::new(kind, text.as_bytes()).map_err(|error| format!("`{text}`: {error}"));
        let (first, last) = (key(first)?, key(last)?);
        if first.length() != last.length() {
            return Err("the ends of the range differ in their count of digits".to_owned());
        }
        if first > last {
            return Err("the range ends before it begins".to_owned());
        }
        let range = Range {
            first: first.number(),
            last: last.number(),
            value,
            line,
        };
        let count = first.length();
        match self.0.iter_mut().find(|of| of.kind == kind && of.count == count) {
            Some(of) => of.ranges.push(range),
            None => self.0.push(OfCount {
                kind,
                count,
                ranges: vec![range],
            }),
        }
        Ok(())
    }

    /// Puts them in order.
    ///
    /// # Errors
    /// When two of the same count of digits overlap; the line of the later one, and the other.
    pub(crate) fn sort(&mut self) -> Result<(), (u64, u64)> {
        self.0.sort_by_key(|of| Reverse(of.count));
        for of in &mut self.0 {
            of.ranges.sort_by_key(|range| (range.first, range.line));
            for pair in of.ranges.windows(2) {
                if let [one, other] = pair
                    && other.first <= one.last
                {
                    return Err((one.line.max(other.line), one.line.min(other.line)));
                }
            }
        }
        Ok(())
    }

    /// The value of the range that holds a number, and how many digits it has.
    pub(crate) fn find(&self, key: Key) -> Option<(u16, usize)> {
        for of in &self.0 {
            let Some(behind) = key.length().checked_sub(of.count) else {
                continue;
            };
            if of.kind != key.kind() || behind > MOST_DIGITS {
                continue;
            }
            let digits = key.number() / 10_u64.pow(behind as u32);
            let at = of.ranges.partition_point(|range| range.first <= digits);
            let range = at.checked_sub(1).and_then(|at| of.ranges.get(at));
            if let Some(range) = range.filter(|range| digits <= range.last) {
                return Some((range.value, of.count));
            }
        }
        None
    }

    /// How many there are, and their bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let count = self.0.iter().map(|of| of.ranges.len()).sum::<usize>();
        (count, count * size_of::<Range>())
    }
}
