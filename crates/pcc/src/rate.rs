//! Bit rates (TS 29.571 §5.5.2) as numbers, and back.

/// Units, the largest first.
const UNITS: [(&str, u64); 5] = [
    ("Tbps", 1_000_000_000_000),
    ("Gbps", 1_000_000_000),
    ("Mbps", 1_000_000),
    ("Kbps", 1_000),
    ("bps", 1),
];

/// Bits per second of a bit rate; fractions of a bit are dropped.
pub(crate) fn bits(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ')?;
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |part: &str| (1..=18).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let scale = 10u128.pow(fraction.len() as u32);
    let number = whole.parse::<u128>().ok()? * scale + fraction.parse::<u128>().ok()?;
    u64::try_from(number * u128::from(*factor) / scale).ok()
}

/// A bit rate in the largest unit that gives a whole number.
pub(crate) fn text(bits: u64) -> String {
    let fits = |(_, factor): &&(&str, u64)| bits >= *factor && bits.is_multiple_of(*factor);
    match UNITS.iter().find(fits) {
        Some((unit, factor)) => format!("{} {unit}", bits / factor),
        None => format!("{bits} bps"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_written() {
        for (rate, number) in [
            ("0 bps", 0),
            ("64 Kbps", 64_000),
            ("2 Tbps", 2_000_000_000_000),
            ("1001 bps", 1001),
        ] {
            assert_eq!(bits(rate), Some(number));
            assert_eq!(text(number), rate);
        }
        assert_eq!(bits("12.2 Kbps"), Some(12_200));
        assert_eq!(bits("0.0005 Kbps"), Some(0));
        for wrong in [
            "64Kbps",
            "64 kbps",
            " 64 Kbps",
            "-1 bps",
            "1. bps",
            "1e3 bps",
            "",
            "64 Kbps ",
            "99999999 Tbps",
        ] {
            assert_eq!(bits(wrong), None, "{wrong:?}");
        }
    }
}
