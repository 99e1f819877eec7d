//! Lengths of time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{FormatError, number_and_unit, written_as_text};

/// A length of time, written with its unit: `150ms`, `30s`, `5m`, `24h`, `1h 30m`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period(pub Duration);

impl Period {
    /// A number of milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// A number of seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// The same as the standard library's type.
    #[must_use]
    pub const fn duration(self) -> Duration {
        self.0
    }

    /// Whole milliseconds, as many as fit.
    #[must_use]
    pub fn as_millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }

    /// Whole seconds.
    #[must_use]
    pub const fn as_secs(self) -> u64 {
        self.0.as_secs()
    }

    /// Whether it is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0.is_zero()
    }

    fn from_number(number: f64) -> Result<Self, String> {
        if number == 0.0 {
            Ok(Self(Duration::ZERO))
        } else {
            Err(format!(
                "{number} has no unit, such as in {number}s or {number}ms"
            ))
        }
    }
}

impl From<Duration> for Period {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl From<Period> for Duration {
    fn from(period: Period) -> Self {
        period.0
    }
}

/// Units from the largest: name and nanoseconds.
const UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl FromStr for Period {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let mut rest = text.trim();
        if rest == "0" {
            return Ok(Self(Duration::ZERO));
        }
        if rest.is_empty() {
            return Err(FormatError("is empty"));
        }
        let mut total = Duration::ZERO;
        while !rest.is_empty() {
            let (number, after) = number_and_unit(rest).ok_or(FormatError("does not begin with a number"))?;
            let end = after
                .find(|c: char| !(c.is_ascii_alphabetic() || c == 'µ'))
                .unwrap_or(after.len());
            let (unit, next) = after.split_at(end);
            let nanos = match unit {
                "" => return Err(FormatError("has no unit (ms, s, m, h or d)")),
                "µs" => 1_000,
                unit => UNITS
                    .iter()
                    .find(|(name, _)| *name == unit)
                    .map(|(_, nanos)| *nanos)
                    .ok_or(FormatError("has an unknown unit (known: ns, us, ms, s, m, h, d)"))?,
            };
            let part = match number.parse::<u64>() {
                Ok(whole) => u64::checked_mul(whole, nanos).map(Duration::from_nanos),
                Err(_) => number
                    .parse::<f64>()
                    .ok()
                    .and_then(|fraction| Duration::try_from_secs_f64(fraction * nanos as f64 / 1e9).ok()),
            };
            total = part
                .and_then(|part| total.checked_add(part))
                // Everything below is done in nanoseconds of 64 bits: 584 years.
                .filter(|total| u64::try_from(total.as_nanos()).is_ok())
                .ok_or(FormatError("is not a length of time, or too long a one"))?;
            rest = next.trim_start();
        }
        Ok(Self(total))
    }
}

impl fmt::Display for Period {
    /// The largest unit that says it exactly: `90s`, not `1.5m`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        if nanos == 0 {
            return f.write_str("0s");
        }
        for (name, unit) in UNITS {
            let unit = u128::from(unit);
            if nanos.is_multiple_of(unit) {
                return write!(f, "{}{name}", nanos / unit);
            }
        }
        Ok(())
    }
}

written_as_text!(Period, "period", "string", from_number);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn people_write_periods() {
        for (text, millis) in [
            ("150ms", 150),
            ("30s", 30_000),
            ("1.5s", 1_500),
            ("1h 30m", 5_400_000),
            ("1h30m", 5_400_000),
            ("24h", 86_400_000),
            ("1d", 86_400_000),
            ("0", 0),
            ("0s", 0),
        ] {
            assert_eq!(text.parse::<Period>().unwrap().as_millis(), millis, "{text}");
        }
        for text in ["", "s", "30", "30 parsecs", "-1s", "1..2s", "999999999999d", "∞"] {
            assert!(text.parse::<Period>().is_err(), "{text}");
        }
        assert_eq!(Period::from_secs(90).to_string(), "90s");
        assert_eq!(Period::from_secs(86_400).to_string(), "1d");
    }

    proptest! {
        #[test]
        fn written_and_read_back_is_the_same(nanos: u64) {
            let period = Period(Duration::from_nanos(nanos));
            prop_assert_eq!(period.to_string().parse::<Period>(), Ok(period));
        }

        #[test]
        fn any_text_is_answered(text: String) {
            let _ = text.parse::<Period>();
        }
    }
}
