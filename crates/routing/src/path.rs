//! The path of a request in its normal form. Access control, routing, tokens and forwarding all use this form, so that
//! none of them interprets the path differently from the producer.
//!
//! Normalisation decodes percent-encoded unreserved characters (RFC 3986 §6.2.2.2). It refuses what producers are known
//! to interpret differently: dot segments (plain or encoded), backslashes, an empty first segment, and encoded
//! separators or control characters in the API name.

use std::ops::Range;

use sbi_proto::problem::{Cause, Problem};

/// Returns path and query with the path in its normal form; `None` when it is already normal, as nearly all are.
///
/// # Errors
/// When producers may interpret the path differently.
pub fn normal(target: &str) -> Result<Option<String>, Problem> {
    if is_usual(target) {
        return Ok(None);
    }
    // A space ends the path in a log or in a request line of HTTP/1.1, `#` ends it in a URI.
    if target
        .bytes()
        .any(|byte| byte <= b' ' || byte == 0x7f || byte == b'#')
    {
        return Err(refused("it has a character that is not allowed in a path"));
    }
    let (text, query) = match target.split_once('?') {
        Some((text, query)) => (text, Some(query)),
        None => (target, None),
    };
    if is_plain(text) {
        return Ok(None);
    }
    let decoded = decoded(text).ok_or_else(|| refused("a percent-encoding is incomplete"))?;
    check(&decoded)?;
    if decoded == text {
        return Ok(None);
    }
    Ok(Some(match query {
        Some(query) => format!("{decoded}?{query}"),
        None => decoded,
    }))
}

/// Whether a target is in its normal form, in one pass over its bytes; `false` where that needs a closer look.
fn is_usual(target: &str) -> bool {
    let bytes = target.as_bytes();
    if bytes.first() != Some(&b'/') || bytes.get(1) == Some(&b'/') {
        return false;
    }
    // Most targets have none of these bytes, which a loop without a way out finds soonest.
    let is_notable = bytes
        .iter()
        .fold(false, |notable, byte| notable | NOTABLE[usize::from(*byte)]);
    !is_notable || {
        let mut before = b'/';
        bytes.iter().all(|byte| {
            let is_usual = !NOTABLE[usize::from(*byte)] || (*byte == b'.' && before != b'/');
            before = *byte;
            is_usual
        })
    }
}

/// Bytes that make [`normal`] look closer: what is not allowed in a path or is encoded, dots, and the beginning of a
/// query.
static NOTABLE: [bool; 256] = {
    let mut notable = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        notable[byte] =
            byte <= b' ' as usize || byte == 0x7f || matches!(byte as u8, b'#' | b'%' | b'\\' | b'.' | b'?');
        byte += 1;
    }
    notable
};

/// Path and query without the cache key (`ck`), by which caches before an SCP distinguish producers (TS 29.500 §6.10.2.6);
/// `None` when there is none.
pub fn without_cache_key(target: &str) -> Option<String> {
    let (path, query) = target.split_once('?')?;
    let is_key = |parameter: &&str| parameter.starts_with("ck=");
    if !query.split('&').any(|parameter| is_key(&parameter)) {
        return None;
    }
    let kept: Vec<&str> = query.split('&').filter(|parameter| !is_key(parameter)).collect();
    Some(match kept.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", kept.join("&")),
    })
}

fn refused(why: &str) -> Problem {
    Problem::new(Cause::InvalidMsgFormat)
        .detail("the path of the request can be read in different ways")
        .invalid_param("path", why)
}

/// Whether a path is in its normal form by its characters alone.
fn is_plain(path: &str) -> bool {
    let bytes = path.as_bytes();
    bytes.first() == Some(&b'/')
        && bytes.get(1) != Some(&b'/')
        && !bytes
            .iter()
            .zip(bytes.iter().skip(1).chain(std::iter::once(&b'/')))
            .any(|(one, next)| *one == b'%' || *one == b'\\' || (*one == b'/' && *next == b'.'))
}

/// The path with each encoded character that is unreserved (RFC 3986 §2.3) as itself, and the others in upper case.
fn decoded(path: &str) -> Option<String> {
    let mut found = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        found.push_str(&rest[..at]);
        let digits = rest.get(at + 1..at + 3)?;
        let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        let byte = u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                found.push(char::from(byte));
            }
            _ => {
                found.push('%');
                found.push_str(&digits.to_ascii_uppercase());
            }
        }
        rest = &rest[at + 3..];
    }
    found.push_str(rest);
    Some(found)
}

/// Refuses a decoded path that producers may read in different ways.
fn check(path: &str) -> Result<(), Problem> {
    let Some(rest) = path.strip_prefix('/') else {
        return Err(refused("it does not begin with a slash"));
    };
    if path.contains('\\') {
        return Err(refused("it has a backslash"));
    }
    let (first, _) = rest.split_once('/').unwrap_or((rest, ""));
    if first.is_empty() && !rest.is_empty() {
        return Err(refused("its first segment is empty"));
    }
    let odd = |code: &str| matches!(code.get(..2), Some("2F" | "5C" | "7F")) || code.starts_with(['0', '1']);
    if first.split('%').skip(1).any(odd) {
        return Err(refused(
            "a separator or control character is encoded in its first segment",
        ));
    }
    // Producers that decode separators, or remove segment parameters, see these segments.
    let segments = path
        .split('/')
        .flat_map(|one| one.split("%2F"))
        .flat_map(|one| one.split("%5C"));
    let is_dots = |segment: &str| matches!(segment.split(';').next(), Some("." | ".."));
    match segments.into_iter().any(is_dots) {
        true => Err(refused("it has dot segments")),
        false => Ok(()),
    }
}

/// The path of path and query.
pub fn path_of(target: &str) -> &str {
    match memchr::memchr(b'?', target.as_bytes()) {
        Some(end) => &target[..end],
        None => target,
    }
}

/// The API name of a path: its first segment.
#[must_use]
pub fn service_of(path: &str) -> &str {
    path.get(service_in(path)).unwrap_or_default()
}

/// Where the API name lies in a path.
pub fn service_in(path: &str) -> Range<usize> {
    // Names are short, so that loops over bytes are the cheapest search.
    let bytes = path.as_bytes();
    let begin = bytes.iter().position(|byte| *byte != b'/').unwrap_or(bytes.len());
    let len = bytes[begin..].iter().position(|byte| *byte == b'/');
    begin..len.map_or(bytes.len(), |len| begin + len)
}

/// The major version of the API that a path names: `/{apiName}/v{major}/…` (TS 29.501 §4.3.1).
pub fn version_of(path: &str) -> Option<u32> {
    let mut segments = path.as_bytes().split(|byte| *byte == b'/');
    major(segments.nth(2)?)
}

/// The number in `apiVersionInUri`: `v2`.
pub(crate) fn major(version: impl AsRef<[u8]>) -> Option<u32> {
    let digits = version.as_ref().strip_prefix(b"v")?;
    let number = digits.iter().try_fold(0_u32, |number, byte| {
        let digit = char::from(*byte).to_digit(10)?;
        number.checked_mul(10)?.checked_add(digit)
    });
    number.filter(|_| !digits.is_empty())
}

/// Refuses an API name that only a lenient producer takes for a known one: in upper case (TS 29.501 §4.4.1 requires
/// lower case), or followed by segment parameters.
///
/// # Errors
/// When the name is such a variant of a known name.
pub fn check_name(name: &str, is_known: impl Fn(&str) -> bool) -> Result<(), Problem> {
    if !name.bytes().any(|b| b.is_ascii_uppercase() || b == b';') {
        return Ok(());
    }
    let meant = name.split(';').next().unwrap_or_default().to_ascii_lowercase();
    match is_known(&meant) {
        true => Err(refused(
            "the API name is a variant of a known one; write it in lower case, without parameters",
        )),
        false => Ok(()),
    }
}

/// The NF type that offers a service by the standard's naming (`nudm-sdm`: `UDM`; TS 29.501 §5.2.1); `None` for others.
#[must_use]
pub fn nf_type_of_service(service: &str) -> Option<String> {
    let name = service.strip_prefix('n')?;
    // The one type with a hyphen in its name.
    let name = match name.starts_with("5g-eir-") {
        true => "5G_EIR",
        false => name.split_once('-')?.0,
    };
    let fits = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    fits.then(|| name.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_key_is_for_those_before_the_scp() {
        for (target, expected) in [
            ("/x/v1?a=%31&ck=abc&b=2", Some("/x/v1?a=%31&b=2")),
            ("/x/v1?ck=abc", Some("/x/v1")),
            ("/x/v1?ack=1&b=ck=2", None),
            ("/x/ck=1", None),
        ] {
            assert_eq!(without_cache_key(target).as_deref(), expected, "{target}");
        }
    }
    use proptest::prelude::*;

    fn of(path: &str) -> Result<String, ()> {
        match normal(path) {
            Ok(other) => Ok(other.unwrap_or_else(|| path.to_owned())),
            Err(_) => Err(()),
        }
    }

    #[test]
    fn what_is_the_same_is_made_the_same() {
        for (path, expected) in [
            ("/nudm-sdm/v2/x?a=%2e%2e/b", "/nudm-sdm/v2/x?a=%2e%2e/b"),
            ("/%6eudm-sdm/v2", "/nudm-sdm/v2"),
            ("/%6E%75dm%2Dsdm/v2/%7e?q=%6e", "/nudm-sdm/v2/~?q=%6e"),
            ("/nudm-sdm/v2/nai-a%40b%2fc", "/nudm-sdm/v2/nai-a%40b%2Fc"),
            ("/nudm-sdm/v2/...", "/nudm-sdm/v2/..."),
            ("/nudm-sdm/v2/.well-known/%2e", "refused"),
            ("/nudm-sdm/v2/.well-known", "/nudm-sdm/v2/.well-known"),
            ("/a//b/", "/a//b/"),
            ("/", "/"),
            ("/%252e%252e/x", "/%252e%252e/x"),
        ] {
            let expected = Some(expected).filter(|one| *one != "refused").map(str::to_owned);
            assert_eq!(of(path).ok(), expected, "{path}");
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        for path in [
            "/x/../nudm-sdm/v2",
            "/./nudm-sdm/v2",
            "/nudm-ee/..",
            "/x/%2e%2E/nudm-sdm/v2",
            "/x/.%2e/nudm-sdm/v2",
            "/x/..%2fnudm-sdm/v2",
            "/x/%2e%2e%5cnudm-sdm/v2",
            "/x/..;a=b/nudm-sdm/v2",
            "//nudm-sdm/v2",
            "/nudm-sdm%2fv2/x",
            "/x%5cnudm-sdm/v2",
            "/nudm-sdm%00/v2",
            "/nudm-sdm%0d%0a/v2",
            "/x\\..\\nudm-sdm/v2",
            "/nudm-sdm/v2/%",
            "/nudm-sdm/v2/%6",
            "/nudm-sdm/v2/%zz",
            "/nudm-sdm/v2/%+1",
            "/nudm-sdm/v2 HTTP/1.1",
            "/nudm-sdm/v2#/x",
            "/nudm-sdm/v2?a=\x7f",
            "",
            "*",
        ] {
            assert_eq!(of(path), Err(()), "{path}");
        }
    }

    #[test]
    fn the_api_name_is_the_first_segment() {
        for (path, name) in [
            ("/nudm-sdm/v2/x", "nudm-sdm"),
            ("/nudm-sdm", "nudm-sdm"),
            ("nudm-sdm/v2", "nudm-sdm"),
            ("//nudm-sdm/v2", "nudm-sdm"),
            ("/", ""),
            ("//", ""),
            ("", ""),
        ] {
            assert_eq!(service_of(path), name, "{path}");
            assert_eq!(path.get(service_in(path)), Some(name), "{path}");
        }
    }

    #[test]
    fn the_major_version_is_the_second_segment_of_the_path() {
        for (path, version) in [
            ("/nudm-sdm/v2/x", Some(2)),
            ("/nudm-sdm/v2", Some(2)),
            ("/nudm-sdm/v12/v3", Some(12)),
            ("/nudm-sdm/v4294967295", Some(u32::MAX)),
            ("/nudm-sdm/v4294967296", None),
            ("/nudm-sdm/v", None),
            ("/nudm-sdm/2", None),
            ("/nudm-sdm/v+2", None),
            ("/nudm-sdm/v2a", None),
            ("/nudm-sdm", None),
            ("", None),
        ] {
            assert_eq!(version_of(path), version, "{path}");
        }
    }

    #[test]
    fn names_in_another_case_are_refused_where_the_name_is_known() {
        let check = |name| check_name(name, |name| name == "nudm-sdm").is_ok();
        assert!(check("nudm-sdm") && check("Callback") && check("cb;a=b"));
        assert!(!check("NUDM-SDM") && !check("nudm-sdM") && !check("nudm-sdm;a=b"));
    }

    proptest! {
        /// Normalisation does not change a path in its normal form.
        #[test]
        fn normal_is_normal(path in "/([a-z%./;2eEfF5c]|%[0-9a-fA-F]{2}){0,30}") {
            if let Ok(once) = of(&path) {
                prop_assert_eq!(of(&once), Ok(once.clone()));
                prop_assert!(!once.split('/').any(|segment| segment == ".." || segment == "."));
            }
        }
    }
}
