//! Entity tags and the conditions that name them (RFC 9110 §8.8.3, §13.1).

use http2::name::{IF_MATCH, IF_NONE_MATCH};
use http2::{Fields, Name};

/// A strong entity tag of bytes: their length and a 64-bit digest, in quotes.
#[must_use]
pub fn of_bytes(bytes: &[u8]) -> String {
    // FNV-1a: stable over releases and processes, as a validator that outlives a restart must be.
    let digest = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("\"{:x}-{digest:016x}\"", bytes.len())
}

/// Whether `If-None-Match` names `etag`: the client has it already (weak comparison).
#[must_use]
pub fn none_match_hits(headers: &Fields, etag: &str) -> bool {
    names(headers, IF_NONE_MATCH, |found| weak(found) == weak(etag)).unwrap_or(false)
}

/// Whether `If-Match` allows a change of a resource that has `etag`; without the header it does (strong
/// comparison).
#[must_use]
pub fn match_allows(headers: &Fields, etag: &str) -> bool {
    names(headers, IF_MATCH, |found| {
        found == etag && !found.starts_with("W/")
    })
    .unwrap_or(true)
}

fn names(headers: &Fields, header: Name<'_>, fits: impl Fn(&str) -> bool) -> Option<bool> {
    let mut values = headers.get_all(header).peekable();
    values.peek()?;
    let listed = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    Some(listed.map(str::trim).any(|found| found == "*" || fits(found)))
}

fn weak(etag: &str) -> &str {
    etag.strip_prefix("W/").unwrap_or(etag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http2::Value;

    #[test]
    fn conditions() {
        let etag = of_bytes(b"profile");
        assert_ne!(etag, of_bytes(b"profilf"));
        let headers = |name: Name<'_>, value: &str| {
            let mut fields = Fields::new();
            fields.append(name, Value::try_from(value).unwrap());
            fields
        };
        assert!(none_match_hits(
            &headers(IF_NONE_MATCH, &format!("\"x\", W/{etag}")),
            &etag
        ));
        assert!(none_match_hits(&headers(IF_NONE_MATCH, "*"), &etag));
        assert!(!none_match_hits(&Fields::new(), &etag));
        assert!(match_allows(&Fields::new(), &etag));
        assert!(match_allows(&headers(IF_MATCH, &etag), &etag));
        assert!(!match_allows(&headers(IF_MATCH, "\"x\""), &etag));
    }
}
