//! Paths as those compare them that look resources up.

use std::borrow::Cow;

/// A path whose unreserved characters are not encoded: `%2D` and `-` are the same (RFC 3986 §6.2.2.2). Others stay as they
/// are: `%2F` does not end a segment.
#[must_use]
pub fn usual(path: &str) -> Cow<'_, str> {
    let Some(first) = path.find('%') else {
        return Cow::Borrowed(path);
    };
    let (head, mut rest) = path.split_at(first);
    let mut out = head.to_owned();
    while let Some(at) = rest.find('%') {
        let (before, encoded) = rest.split_at(at);
        out.push_str(before);
        let byte = encoded
            .get(1..3)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let unreserved = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
        let length = match byte.filter(unreserved) {
            Some(byte) => {
                out.push(char::from(byte));
                3
            }
            None => {
                out.push('%');
                1
            }
        };
        rest = encoded.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_letters_are_letters() {
        for (path, expected) in [
            (
                "/nnrf%2Dnfm/v1/nf-%69nstances/%61%2F%2d",
                "/nnrf-nfm/v1/nf-instances/a%2F-",
            ),
            ("/a%", "/a%"),
            ("/a%zz%4", "/a%zz%4"),
            ("/é%7E", "/é~"),
            ("/plain", "/plain"),
        ] {
            assert_eq!(usual(path), expected);
        }
    }
}
