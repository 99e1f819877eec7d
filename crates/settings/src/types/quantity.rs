//! Sizes and shares.

use std::fmt;
use std::str::FromStr;

use super::{FormatError, number_and_unit, written_as_text};

/// A number of bytes, written `1500`, `64KiB`, `1MiB`, `10MB`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// A number of KiB (1024 bytes).
    #[must_use]
    pub const fn kib(count: u64) -> Self {
        Self(count << 10)
    }

    /// A number of MiB (1024 · 1024 bytes).
    #[must_use]
    pub const fn mib(count: u64) -> Self {
        Self(count << 20)
    }

    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// The number of bytes, as many as this machine can address.
    #[must_use]
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    fn from_number(number: f64) -> Result<Self, String> {
        // Whole numbers up to 2⁵³ are exact in this type; larger sizes are written with a unit.
        if (0.0..=9_007_199_254_740_992.0).contains(&number) && number.fract() == 0.0 {
            Ok(Self(number as u64))
        } else {
            Err(format!("{number} is not a number of bytes"))
        }
    }
}

/// Units: name in lower case and bytes. The largest first of each kind.
const SIZES: [(&str, u64); 9] = [
    ("tib", 1 << 40),
    ("gib", 1 << 30),
    ("mib", 1 << 20),
    ("kib", 1 << 10),
    ("tb", 1_000_000_000_000),
    ("gb", 1_000_000_000),
    ("mb", 1_000_000),
    ("kb", 1_000),
    ("b", 1),
];

impl FromStr for ByteSize {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let (number, unit) = number_and_unit(text).ok_or(FormatError("does not begin with a number"))?;
        let unit = unit.trim_end().to_ascii_lowercase();
        let factor = if unit.is_empty() {
            1
        } else {
            SIZES
                .iter()
                .find(|(name, _)| *name == unit)
                .map(|(_, factor)| *factor)
                .ok_or(FormatError(
                    "has an unknown unit (known: B, KiB, MiB, GiB, TiB, KB, MB, GB, TB)",
                ))?
        };
        let bytes = match number.parse::<u64>() {
            Ok(whole) => whole.checked_mul(factor),
            Err(_) => number
                .parse::<f64>()
                .ok()
                .map(|fraction| fraction * factor as f64)
                .filter(|bytes| *bytes < u64::MAX as f64)
                .map(|bytes| bytes.round() as u64),
        };
        bytes
            .map(Self)
            .ok_or(FormatError("is not a size, or too large a one"))
    }
}

impl fmt::Display for ByteSize {
    /// The largest binary unit that says it exactly.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, unit) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
            if self.0 != 0 && self.0.is_multiple_of(1 << unit) {
                return write!(f, "{}{name}", self.0 >> unit);
            }
        }
        write!(f, "{}B", self.0)
    }
}

written_as_text!(ByteSize, "byte-size", ["string", "integer"], from_number);

/// A share from 0 % to 100 %, written `10%` or `10`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Percent(f64);

impl Percent {
    /// A share of 100; what is outside 0 … 100 becomes the nearest end.
    #[must_use]
    pub const fn new(percent: f64) -> Self {
        if percent > 100.0 {
            Self(100.0)
        } else if percent > 0.0 {
            Self(percent)
        } else {
            // NaN included.
            Self(0.0)
        }
    }

    /// From 0 to 100.
    #[must_use]
    pub const fn percent(self) -> f64 {
        self.0
    }

    /// From 0 to 1.
    #[must_use]
    pub const fn fraction(self) -> f64 {
        self.0 / 100.0
    }

    fn from_number(number: f64) -> Result<Self, String> {
        if (0.0..=100.0).contains(&number) {
            Ok(Self(number))
        } else {
            Err(format!("{number} is not from 0% to 100%"))
        }
    }
}

impl FromStr for Percent {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let text = text.trim();
        let number = text.strip_suffix('%').unwrap_or(text).trim_end();
        let number: f64 = number.parse().map_err(|_| FormatError("is not a percentage"))?;
        Self::from_number(number).map_err(|_| FormatError("is not from 0% to 100%"))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

written_as_text!(Percent, "percent", ["string", "number"], from_number);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn people_write_sizes() {
        for (text, bytes) in [
            ("64KiB", 65_536),
            ("64 kib", 65_536),
            ("1.5MiB", 1_572_864),
            ("10MB", 10_000_000),
            ("1500", 1_500),
            ("0", 0),
        ] {
            assert_eq!(text.parse::<ByteSize>().unwrap().bytes(), bytes, "{text}");
        }
        for text in ["", "KiB", "-1", "1 furlong", "99999999TiB", "1e3"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }

    #[test]
    fn percentages_stay_between_the_ends() {
        assert_eq!("12.5%".parse::<Percent>().unwrap().fraction(), 0.125);
        for text in ["101%", "-1%", "NaN", "inf", "", "%"] {
            assert!(text.parse::<Percent>().is_err(), "{text}");
        }
        assert_eq!(Percent::new(f64::NAN), Percent::new(-3.0));
    }

    proptest! {
        #[test]
        fn sizes_read_back(bytes: u64) {
            let size = ByteSize(bytes);
            prop_assert_eq!(size.to_string().parse::<ByteSize>(), Ok(size));
        }

        #[test]
        fn any_text_is_answered(text: String) {
            let _ = text.parse::<ByteSize>();
            let _ = text.parse::<Percent>();
        }
    }
}
