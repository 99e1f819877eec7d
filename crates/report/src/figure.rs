//! Numbers for people.

/// A number for people: 51,666 or 9.4.
#[must_use]
pub fn figure(number: f64) -> String {
    if !number.is_finite() {
        return "-".to_owned();
    }
    if number.abs() < 10.0 {
        let text = format!("{number:.2}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    if number.abs() < 100.0 {
        let text = format!("{number:.1}");
        return text.trim_end_matches(".0").to_owned();
    }
    let whole = format!("{:.0}", number.abs());
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if number < 0.0 {
        format!("-{grouped}")
    } else {
        grouped
    }
}

#[cfg(test)]
mod tests {
    use super::figure;

    #[test]
    fn figures_are_readable() {
        for (number, text) in [
            (51_666.4, "51,666"),
            (9.406, "9.41"),
            (0.0, "0"),
            (99.95, "100"),
            (12.34, "12.3"),
            (1_234_567.0, "1,234,567"),
            (7.0, "7"),
        ] {
            assert_eq!(figure(number), text);
        }
    }
}
