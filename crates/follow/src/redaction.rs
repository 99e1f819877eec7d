//! Tokens, credentials and keys in copies of messages, overwritten.

use memchr::memmem;

/// What is written in their place.
const REDACTED: &str = "***";

/// Header fields that are credentials (RFC 9110 §11.6, RFC 6265; client credentials assertions: TS 29.500 §5.2.3.2.11).
const FIELDS: [&str; 8] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-api-key",
    "3gpp-sbi-client-credentials",
    "3gpp-sbi-source-nf-client-credentials",
    "3gpp-sbi-access-token",
];

/// Members of JSON, and parameters of forms and URIs: OAuth 2.0 (RFC 6749, RFC 7523), authentication vectors and keys
/// (TS 29.503 §6.3.6, TS 29.505, TS 29.509 §6.1.6).
const MEMBERS: [&str; 22] = [
    "access_token",
    "refresh_token",
    "id_token",
    "client_assertion",
    "client_secret",
    "password",
    "assertion",
    "kausf",
    "kseaf",
    "kAkma",
    "kasme",
    "ck",
    "ik",
    "ckPrime",
    "ikPrime",
    "xres",
    "xresStar",
    "hxresStar",
    "resStar",
    "encPermanentKey",
    "encOpcKey",
    "encTopcKey",
];

/// AVPs whose values are passwords or keys, with the vendor (RFC 7155, RFC 4072; TS 29.272 §7.3, TS 29.229 §6.3).
const AVPS: [(u32, Option<u32>); 10] = [
    (2, None),
    (3, None),
    (464, None),
    (1_450, Some(10_415)),
    (1_448, Some(10_415)),
    (625, Some(10_415)),
    (626, Some(10_415)),
    (610, Some(10_415)),
    (609, Some(10_415)),
    (1_449, Some(10_415)),
];

/// The value of a header field as it is stored.
pub(crate) fn field(name: &str, value: &[u8]) -> String {
    let is_secret = FIELDS.iter().any(|secret| name.eq_ignore_ascii_case(secret));
    match is_secret {
        true => REDACTED.to_owned(),
        false => String::from_utf8_lossy(value).into_owned(),
    }
}

/// A URI without the values of secret parameters.
pub(crate) fn uri(text: &str) -> String {
    let Some((path, query)) = text.split_once('?') else {
        return text.to_owned();
    };
    format!("{path}?{}", form(query))
}

/// Parameters of a form or a query.
fn form(text: &str) -> String {
    let each = text.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if MEMBERS.contains(&name) => format!("{name}={REDACTED}"),
        _ => pair.to_owned(),
    });
    each.collect::<Vec<_>>().join("&")
}

/// A body: members of JSON, or parameters of a form. `None`: it has no secret.
pub(crate) fn body(bytes: &[u8]) -> Option<Vec<u8>> {
    let is_json = matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'[' | b'-'));
    if !is_json {
        let has_any = MEMBERS
            .iter()
            .any(|name| memmem::find(bytes, name.as_bytes()).is_some());
        let text = has_any.then(|| std::str::from_utf8(bytes).ok()).flatten()?;
        return Some(form(text).into_bytes());
    }
    let mut copy: Option<Vec<u8>> = None;
    for name in MEMBERS {
        let quoted = format!("\"{name}\"");
        let mut from = 0;
        loop {
            let text = copy.as_deref().unwrap_or(bytes);
            let Some(at) = text
                .get(from..)
                .and_then(|rest| memmem::find(rest, quoted.as_bytes()))
            else {
                break;
            };
            let after = from + at + quoted.len();
            from = after;
            let Some((start, end)) = value(text, after) else {
                continue;
            };
            let copy = copy.get_or_insert_with(|| bytes.to_vec());
            copy.splice(start..end, REDACTED.bytes());
            from = start + REDACTED.len();
        }
    }
    copy
}

/// The inside of the text that is the value of the member whose name ends here; of one that does not end, all that follows.
fn value(text: &[u8], after_name: usize) -> Option<(usize, usize)> {
    let skip = |from: usize| {
        let rest = text.get(from..)?;
        Some(from + rest.len() - rest.trim_ascii_start().len())
    };
    let colon = skip(after_name).filter(|at| text.get(*at) == Some(&b':'))?;
    let quote = skip(colon + 1).filter(|at| text.get(*at) == Some(&b'"'))?;
    let start = quote + 1;
    let mut end = start;
    loop {
        match text.get(end) {
            Some(b'\\') => end += 2,
            Some(b'"') | None => return Some((start, end.min(text.len()))),
            Some(_) => end += 1,
        }
    }
}

/// Overwrites the values of secret AVPs, however deep in groups.
pub(crate) fn frame(bytes: &mut [u8]) {
    for (code, vendor) in AVPS {
        let code = code.to_be_bytes();
        let starts: Vec<usize> = memmem::find_iter(bytes, &code).collect();
        for at in starts {
            let Some((start, end)) = secret(bytes, at, vendor) else {
                continue;
            };
            bytes[start..end].fill(b'*');
        }
    }
}

/// The value of the AVP whose header is here, if it is one of this vendor.
fn secret(bytes: &[u8], at: usize, vendor: Option<u32>) -> Option<(usize, usize)> {
    let word = |at: usize| {
        let four = bytes.get(at..at.checked_add(4)?)?;
        Some(u32::from_be_bytes(four.try_into().ok()?))
    };
    let head = word(at + 4)?;
    let (flags, length) = (head >> 24, (head & 0x00ff_ffff) as usize);
    let header = match vendor {
        Some(vendor) => (flags & 0x80 != 0 && word(at + 8)? == vendor).then_some(12)?,
        // Bit M is set; the rest would be reserved.
        None => (flags == 0x40 || flags == 0x60).then_some(8)?,
    };
    let end = at.checked_add(length)?;
    let fits = at >= 20 && at.is_multiple_of(4) && length >= header && end <= bytes.len();
    fits.then_some((at + header, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_overwritten_wherever_they_are() {
        assert_eq!(field("Authorization", b"Bearer x"), "***");
        assert_eq!(field("Content-Type", b"application/json"), "application/json");
        assert_eq!(uri("/a?access_token=x&supi=y"), "/a?access_token=***&supi=y");
        for (given, expected) in [
            (
                r#"{"access_token" : "a\"b","x":1}"#,
                Some(r#"{"access_token" : "***","x":1}"#),
            ),
            (
                r#"{"a":{"kausf":"1"},"b":[{"kausf":"2"}]}"#,
                Some(r#"{"a":{"kausf":"***"},"b":[{"kausf":"***"}]}"#),
            ),
            (r#"{"access_token":"unfinished\"#, Some(r#"{"access_token":"***"#)),
            (
                "grant_type=client_credentials&client_assertion=x",
                Some("grant_type=client_credentials&client_assertion=***"),
            ),
            (r#"{"supi":"imsi-1"}"#, None),
        ] {
            let found = body(given.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
            assert_eq!(found.as_deref(), expected, "{given}");
        }
    }

    #[test]
    fn keys_in_avps_are_overwritten() {
        let mut bytes = vec![0; 20];
        bytes.extend([0, 0, 0, 2, 0x40, 0, 0, 12, b'p', b'a', b's', b's']);
        bytes.extend([0, 0, 5, 0xaa, 0xc0, 0, 0, 16, 0, 0, 0x28, 0xaf, 1, 2, 3, 4]);
        frame(&mut bytes);
        assert_eq!(&bytes[28..32], b"****");
        assert_eq!(&bytes[44..48], b"****");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..100)) {
            let text = [&b"{\"access_token\":\""[..], &bytes].concat();
            let _ = body(&text);
            let _ = body(&bytes);
            let mut avps = [&[0; 20][..], &[0, 0, 0, 2, 0x40], &bytes].concat();
            frame(&mut avps);
        }
    }
}
