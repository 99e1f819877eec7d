//! Numbers and texts into each other, as in ECMA-262.

/// The text of a number (ECMA-262 Number::toString): the shortest digits that give it back.
pub(super) fn to_text(number: f64) -> String {
    /// Below this, an integer is written as it is.
    const WHOLE: f64 = 1e15;
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if number.fract() == 0.0 && number.abs() < WHOLE {
        return (number as i64).to_string();
    }
    let scientific = format!("{:e}", number.abs());
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let digits = digits.replace('.', "");
    // The position of the point, counted from the first digit.
    let point = exponent.parse::<i32>().unwrap_or(0) + 1;
    let length = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    let text = if length <= point && point <= 21 {
        format!("{digits}{}", zeros(point - length))
    } else if 0 < point && point <= 21 {
        let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or(0));
        format!("{whole}.{fraction}")
    } else if -6 < point && point <= 0 {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        format!("{first}{dot}{rest}e{:+}", point - 1)
    };
    if number < 0.0 { format!("-{text}") } else { text }
}

/// The number of a text (ECMA-262 StringToNumber); none where the text is not a decimal number and might be another one.
pub(super) fn of_text(text: &str) -> Option<f64> {
    if let Some(whole) = few_digits(text) {
        return Some(whole);
    }
    if !text.is_ascii() {
        return None;
    }
    let text = text.trim_matches(['\t', '\n', '\u{b}', '\u{c}', '\r', ' ']);
    if text.is_empty() {
        return Some(0.0);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned == "Infinity" {
        return Some(if text.starts_with('-') {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        });
    }
    // Hexadecimal numbers and the like, signed or not.
    if unsigned.len() > 1 && unsigned.starts_with('0') && unsigned.as_bytes()[1].is_ascii_alphabetic() {
        return None;
    }
    if !is_decimal(unsigned) {
        return Some(f64::NAN);
    }
    text.parse().ok()
}

/// A number of up to 15 digits, each of which is exact.
fn few_digits(text: &str) -> Option<f64> {
    if text.is_empty() || text.len() > 15 {
        return None;
    }
    let add = |sum: u64, byte: u8| byte.is_ascii_digit().then(|| 10 * sum + u64::from(byte - b'0'));
    let sum = text.bytes().try_fold(0_u64, add)?;
    Some(sum as f64)
}

/// `1`, `1.`, `.5`, `1.5e+3`.
fn is_decimal(text: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (
            mantissa,
            Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)),
        ),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let some = !whole.is_empty() || !fraction.is_empty();
    some && digits(whole)
        && digits(fraction)
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
}
