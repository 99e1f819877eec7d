//! Which subscribers are traced: by identity, by its beginning, by a range of numbers.

use std::collections::BTreeSet;

use ahash::AHashSet;
use parking_lot::Mutex;

/// Subscribers as an operator names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// One SUPI or GPSI.
    One(String),
    /// All whose SUPI or GPSI begins so.
    Beginning(String),
    /// All whose SUPI or GPSI has this beginning and then a number of this many digits between two.
    Range {
        beginning: String,
        digits: usize,
        from: u128,
        to: u128,
    },
}

/// What SUPIs and GPSIs begin with (TS 29.571 §5.3.2): a text without it would trace nothing.
const TYPES: &[&str] = &["imsi-", "nai-", "gci-", "gli-", "msisdn-", "extid-"];
/// Longest text of a pattern.
const LONGEST: usize = 256;
/// Digits of a number of a range.
const MOST_DIGITS: usize = 30;

impl Pattern {
    /// What is accepted.
    pub(crate) const EXPECTED: &'static str = "a SUPI or GPSI (imsi-001010000000001), its beginning (imsi-00101*) or a range (imsi-001010000000001..imsi-001010000000099)";

    /// Parses the text of an operator.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_plain =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'*');
        let is_typed = TYPES.iter().any(|kind| text.starts_with(kind));
        if text.len() > LONGEST || !is_typed {
            return None;
        }
        if let Some((from, to)) = text.split_once("..") {
            return Self::range(from, to);
        }
        if let Some(beginning) = text.strip_suffix('*') {
            return is_plain(beginning).then(|| Self::Beginning(beginning.to_owned()));
        }
        is_plain(text).then(|| Self::One(text.to_owned()))
    }

    fn range(from: &str, to: &str) -> Option<Self> {
        let (beginning, first) = number(from)?;
        let (other, last) = number(to)?;
        let (low, high) = (first.parse().ok()?, last.parse().ok()?);
        let is_range = beginning == other && first.len() == last.len() && low <= high;
        is_range.then(|| Self::Range {
            beginning: beginning.to_owned(),
            digits: first.len(),
            from: low,
            to: high,
        })
    }

    fn has(&self, identity: &str) -> bool {
        match self {
            Self::One(one) => one == identity,
            Self::Beginning(beginning) => identity.starts_with(beginning),
            Self::Range {
                beginning,
                digits,
                from,
                to,
            } => number(identity).is_some_and(|(own, number)| {
                own == beginning
                    && number.len() == *digits
                    && number
                        .parse::<u128>()
                        .is_ok_and(|number| (*from..=*to).contains(&number))
            }),
        }
    }
}

/// The digits at the end of an identity, and what is before them.
fn number(identity: &str) -> Option<(&str, &str)> {
    let digits = identity.bytes().rev().take_while(u8::is_ascii_digit).count();
    let is_number = (1..=MOST_DIGITS).contains(&digits);
    is_number.then(|| identity.split_at(identity.len() - digits))
}

/// The subscribers that are traced now.
#[derive(Debug, Default)]
pub(crate) struct Traced {
    single: AHashSet<String>,
    patterns: Vec<Pattern>,
    /// Subscribers of the patterns that have a place, of which there are this many.
    admitted: Mutex<BTreeSet<String>>,
    places: usize,
}

impl Traced {
    /// Those of these texts, `most` at once. Single ones have their places first.
    pub(crate) fn new<'a>(texts: impl Iterator<Item = &'a str>, most: usize) -> Self {
        let (mut single, mut patterns) = (AHashSet::new(), Vec::new());
        for pattern in texts.filter_map(Pattern::parse) {
            match pattern {
                Pattern::One(one) if single.len() < most => drop(single.insert(one)),
                Pattern::One(_) => {}
                pattern => patterns.push(pattern),
            }
        }
        Self {
            places: most.saturating_sub(single.len()),
            single,
            patterns,
            admitted: Mutex::default(),
        }
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.single.is_empty() && self.patterns.is_empty()
    }

    /// Whether a subscriber is traced. One of a pattern takes a place, as long as there is one.
    pub(crate) fn has(&self, identity: &str) -> bool {
        if self.single.contains(identity) {
            return true;
        }
        if !self.patterns.iter().any(|pattern| pattern.has(identity)) {
            return false;
        }
        let mut admitted = self.admitted.lock();
        if admitted.contains(identity) {
            return true;
        }
        let has_place = admitted.len() < self.places;
        if has_place {
            admitted.insert(identity.to_owned());
        }
        has_place
    }

    /// Subscribers of patterns that have a place.
    pub(crate) fn admitted(&self) -> Vec<String> {
        self.admitted.lock().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscribers_are_named_by_identity_beginning_and_range() {
        let texts = [
            "imsi-001010000000001",
            "msisdn-15*",
            "imsi-001010000000100..imsi-001010000000199",
        ];
        let traced = Traced::new(texts.into_iter(), 100);
        for (identity, expected) in [
            ("imsi-001010000000001", true),
            ("imsi-0010100000000010", false),
            ("msisdn-155", true),
            ("msisdn-165", false),
            ("imsi-001010000000100", true),
            ("imsi-001010000000199", true),
            ("imsi-001010000000200", false),
            ("imsi-1010000000150", false),
            ("", false),
        ] {
            assert_eq!(traced.has(identity), expected, "{identity}");
        }
        for wrong in [
            "",
            "*",
            "a b",
            "001010000000001",
            "subscriber*",
            "imsi-2..imsi-1",
            "imsi-1..msisdn-2",
            "imsi-1..imsi-",
            "imsi-1..imsi-22",
        ] {
            assert_eq!(Pattern::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_number_of_traced_subscribers_is_bounded() {
        let traced = Traced::new(["imsi-1", "imsi-9*"].into_iter(), 3);
        assert!(traced.has("imsi-90") && traced.has("imsi-91") && traced.has("imsi-1"));
        assert!(!traced.has("imsi-92") && traced.has("imsi-91"));
        assert_eq!(traced.admitted(), ["imsi-90", "imsi-91"]);
    }
}
