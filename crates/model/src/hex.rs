//! Hexadecimal digits in text.

/// Reads hexadecimal digits if the text has one of the allowed lengths. No sign, no prefix.
pub(crate) fn hex(text: &str, lengths: &[usize]) -> Option<u64> {
    if lengths.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        u64::from_str_radix(text, 16).ok()
    } else {
        None
    }
}
