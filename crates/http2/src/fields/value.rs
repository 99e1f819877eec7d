//! Values of fields.

use std::fmt;

/// The value of a header field: no control characters but HTAB (RFC 9110 §5.5), and no blank or HTAB at its start or
/// end (RFC 9113 §8.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value<'a>(&'a [u8]);

/// Bytes that no field value may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a field value has no control characters but HTAB (RFC 9110 §5.5), and no blank at its start or end (RFC 9113 §8.2.1)"
)]
pub struct InvalidValue;

/// The value has bytes beyond ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the field value is not visible ASCII text")]
pub struct NotText;

impl<'a> Value<'a> {
    /// The value of these bytes.
    ///
    /// # Errors
    /// When one of them is a control character, or the first or the last one is a blank.
    pub fn new(bytes: &'a [u8]) -> Result<Self, InvalidValue> {
        let is_padded = bytes.first().is_some_and(is_blank) || bytes.last().is_some_and(is_blank);
        if !is_padded && (has_no_controls(bytes) || bytes.iter().all(is_value)) {
            Ok(Self(bytes))
        } else {
            Err(InvalidValue)
        }
    }

    /// A value known when this program is built.
    ///
    /// # Panics
    /// When it has a control character, or a blank at its start or end; where the value is a constant, the compiler finds that.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Value<'static> {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            assert!((bytes[at] >= 0x20 && bytes[at] != 0x7f) || bytes[at] == b'\t');
            at += 1;
        }
        assert!(bytes.is_empty() || (!is_blank(&bytes[0]) && !is_blank(&bytes[bytes.len() - 1])));
        Value(bytes)
    }

    /// A value that [`Value::new`] accepted before.
    #[inline]
    pub(crate) fn again(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Its text.
    ///
    /// # Errors
    /// When it has bytes beyond ASCII.
    #[inline]
    pub fn to_str(self) -> Result<&'a str, NotText> {
        if !self.0.is_ascii() {
            return Err(NotText);
        }
        std::str::from_utf8(self.0).map_err(|_| NotText)
    }

    /// Length in bytes.
    #[must_use]
    #[inline]
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Whether it has no bytes.
    #[must_use]
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

const fn is_blank(byte: &u8) -> bool {
    matches!(*byte, b' ' | b'\t')
}

fn is_value(byte: &u8) -> bool {
    (*byte >= 0x20 && *byte != 0x7f) || *byte == b'\t'
}

/// Whether none of the bytes is a control character, HTAB among them: eight bytes in one step.
#[inline]
fn has_no_controls(bytes: &[u8]) -> bool {
    let all = |byte: u8| u64::from_ne_bytes([byte; 8]);
    // The highest bit of a byte of the result is set if some byte is below 0x20, or is 0x7f.
    let controls = |word: u64| {
        let delete = word ^ all(0x7f);
        (word.wrapping_sub(all(0x20)) & !word | delete.wrapping_sub(all(1)) & !delete) & all(0x80)
    };
    if let Some(last) = bytes.last_chunk::<8>() {
        let (words, _) = bytes.as_chunks::<8>();
        let words = words.iter().map(|word| controls(u64::from_ne_bytes(*word)));
        return words.fold(controls(u64::from_ne_bytes(*last)), |some, word| some | word) == 0;
    }
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some([a, b, c, d]), Some([e, f, g, h])) => {
            controls(u64::from_ne_bytes([*a, *b, *c, *d, *e, *f, *g, *h])) == 0
        }
        _ => bytes.iter().all(is_value),
    }
}

impl PartialEq<str> for Value<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Value<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl<'a> TryFrom<&'a str> for Value<'a> {
    type Error = InvalidValue;

    fn try_from(text: &'a str) -> Result<Self, InvalidValue> {
        Self::new(text.as_bytes())
    }
}

/// Values of the `http` crate have no control characters either; blanks at their ends, which it permits, are left out.
impl<'a> From<&'a http::HeaderValue> for Value<'a> {
    fn from(value: &'a http::HeaderValue) -> Self {
        Self(value.as_bytes().trim_ascii())
    }
}

impl TryFrom<Value<'_>> for http::HeaderValue {
    type Error = http::header::InvalidHeaderValue;

    fn try_from(value: Value<'_>) -> Result<Self, Self::Error> {
        Self::from_bytes(value.as_bytes())
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.0))
    }
}
