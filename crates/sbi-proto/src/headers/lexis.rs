//! The small grammar that the headers share.

/// A header value that its ABNF does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("header {header}: {expected}")]
pub struct HeaderError {
    /// Name of the header.
    pub header: String,
    /// What would be right.
    pub expected: &'static str,
}

impl HeaderError {
    pub(super) fn of<H: super::SbiHeader>(expected: &'static str) -> Self {
        Self {
            header: H::NAME.as_str().to_owned(),
            expected,
        }
    }
}

/// White space around values: spaces and tabs only (RFC 9110 §5.6.3).
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// `token` of RFC 9110 §5.6.2.
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(is_tchar)
}

pub(super) fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Splits at `separator` outside quotes; trims each part. Empty parts are left out.
pub(super) fn split(text: &str, separator: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        loop {
            let text = rest?;
            let (part, more) = match find_outside_quotes(text, separator) {
                Some(at) => (&text[..at], Some(&text[at + 1..])),
                None => (text, None),
            };
            rest = more;
            let part = trim(part);
            if !part.is_empty() {
                return Some(part);
            }
        }
    })
}

/// Position of an ASCII byte outside double quotes.
pub(super) fn find_outside_quotes(text: &str, wanted: u8) -> Option<usize> {
    let mut quoted = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        if escaped {
            escaped = false;
        } else if quoted {
            match byte {
                b'\\' => escaped = true,
                b'"' => quoted = false,
                _ => {}
            }
        } else if byte == wanted {
            return Some(at);
        } else if byte == b'"' {
            quoted = true;
        }
    }
    None
}

/// `name=value`, both trimmed.
pub(super) fn assignment(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    Some((trim(name), trim(value)))
}

/// What follows a literal, which has no case (RFC 5234 §2.3).
pub(super) fn strip_prefix<'a>(text: &'a str, literal: &str) -> Option<&'a str> {
    let (first, rest) = text.split_at_checked(literal.len())?;
    first.eq_ignore_ascii_case(literal).then_some(rest)
}

/// The inside of `"…"` without escapes; the headers that quote hold URIs, dates and prefixes, none of which
/// can contain a quote.
pub(super) fn unquote(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('"')?.strip_suffix('"')?;
    (!inside.contains(['"', '\\'])).then_some(inside)
}

/// Digits only, and a value in range.
pub(super) fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}
