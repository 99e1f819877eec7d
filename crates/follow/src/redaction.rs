//! Tokens, credentials and keys in copies of messages, overwritten.

use memchr::memmem;

use crate::finder::word;

/// What is written in their place.
const REDACTED: &str = "***";
/// Groups within groups whose AVPs are searched.
const DEEPEST: usize = 8;

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
/// (TS 29.503 §6.3.6, TS 29.505, TS 29.509 §6.1.6, TS 29.518 §6.1.6, TS 29.535, TS 29.562).
const MEMBERS: [&str; 29] = [
    "access_token",
    "refresh_token",
    "id_token",
    "client_assertion",
    "client_secret",
    "password",
    "assertion",
    "kausf",
    "kseaf",
    "kSeaf",
    "keyVal",
    "nh",
    "kaf",
    "msk",
    "knrProSe",
    "ha1",
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

/// Passwords and keys without a vendor: RFC 7155 §4.3 and §4.5.7, RFC 4740 §9.5, RFC 4004 §9, RFC 4072 §4.1, RFC 6734 §3.
const AVPS: [u32; 8] = [2, 3, 69, 121, 343, 405, 464, 583];

/// The same of 3GPP: TS 29.109 §6.3, TS 29.229 §6.3, TS 29.272 §7.3.
const AVPS_3GPP: [u32; 12] = [
    405, 406, 609, 610, 625, 626, 663, 1_448, 1_449, 1_450, 1_453, 1_454,
];
const VENDOR_3GPP: u32 = 10_415;

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
    let quoted_mark = format!("\"{REDACTED}\"");
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
            copy.splice(start..end, quoted_mark.bytes());
            from = start + quoted_mark.len();
        }
    }
    copy
}

/// The text or number that is the value of the member whose name ends here; of a text that does not end, all that follows.
fn value(text: &[u8], after_name: usize) -> Option<(usize, usize)> {
    let skip = |from: usize| {
        let rest = text.get(from..)?;
        Some(from + rest.len() - rest.trim_ascii_start().len())
    };
    let colon = skip(after_name).filter(|at| text.get(*at) == Some(&b':'))?;
    let start = skip(colon + 1)?;
    let mut end = start + 1;
    match text.get(start)? {
        b'{' | b'[' => return None,
        b'"' => {}
        _ => {
            let goes_on = |byte: &&u8| !matches!(**byte, b',' | b'}' | b']');
            let length = text[start..].iter().take_while(goes_on).count();
            return Some((start, start + length));
        }
    }
    loop {
        match text.get(end) {
            Some(b'\\') => end += 2,
            Some(b'"') => return Some((start, end + 1)),
            None => return Some((start, text.len())),
            Some(_) => end += 1,
        }
    }
}

/// Overwrites the values of secret AVPs, however deep in groups.
pub(crate) fn frame(bytes: &mut [u8]) {
    // Those with a vendor or with bit M are recognized at any place, also in a message that is broken.
    let of_3gpp = AVPS_3GPP.map(|code| (code, Some(VENDOR_3GPP)));
    for (code, vendor) in AVPS.map(|code| (code, None)).into_iter().chain(of_3gpp) {
        let code = code.to_be_bytes();
        let starts: Vec<usize> = memmem::find_iter(bytes, &code).collect();
        for at in starts {
            let Some((start, end)) = secret(bytes, at, vendor) else {
                continue;
            };
            bytes[start..end].fill(b'*');
        }
    }
    if let Some(avps) = bytes.get_mut(20..) {
        group(avps, DEEPEST);
    }
}

/// Overwrites the values of secret AVPs of a group that have neither a vendor nor bit M (RFC 4072 §4.1.3).
fn group(bytes: &mut [u8], deepest: usize) {
    let mut at = 0;
    while let Some((code, header, length)) = avp(&bytes[at..]) {
        let value = &mut bytes[at + header..at + length];
        if header == 8 && AVPS.contains(&code) {
            value.fill(b'*');
        } else if deepest > 0 && is_group(value) {
            group(value, deepest - 1);
        }
        at = (at + length.next_multiple_of(4)).min(bytes.len());
    }
}

/// Whether a value consists of AVPs.
fn is_group(mut value: &[u8]) -> bool {
    while let Some((.., length)) = avp(value) {
        value = value.get(length.next_multiple_of(4)..).unwrap_or_default();
        if value.is_empty() {
            return true;
        }
    }
    false
}

/// The code of the AVP that begins here, the octets of its header, and those of all of it (RFC 6733 §4.1).
fn avp(bytes: &[u8]) -> Option<(u32, usize, usize)> {
    let (code, head) = (word(bytes, 0)?, word(bytes, 4)?);
    let header = if head >> 31 == 1 { 12 } else { 8 };
    let length = (head & 0x00ff_ffff) as usize;
    (length >= header && length <= bytes.len()).then_some((code, header, length))
}

/// The value of the AVP whose header is here, if it is one of this vendor.
fn secret(bytes: &[u8], at: usize, vendor: Option<u32>) -> Option<(usize, usize)> {
    let head = word(bytes, at + 4)?;
    let (flags, length) = (head >> 24, (head & 0x00ff_ffff) as usize);
    let header = match vendor {
        Some(vendor) => (flags & 0x80 != 0 && word(bytes, at + 8)? == vendor).then_some(12)?,
        // Without bit M these octets may be the value of one AVP and the code of the next.
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
            (
                r#"{"access_token":"unfinished\"#,
                Some(r#"{"access_token":"***""#),
            ),
            (
                r#"{"password": 12345,"x":1}"#,
                Some(r#"{"password": "***","x":1}"#),
            ),
            (
                r#"{"keyAmf":{"keyVal":"ab"}}"#,
                Some(r#"{"keyAmf":{"keyVal":"***"}}"#),
            ),
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

    #[test]
    fn keys_without_bit_m_are_overwritten_and_nothing_else() {
        let key = [0, 0, 1, 0xd0, 0, 0, 0, 12, b'k', b'e', b'y', b's'];
        let group = [&[0, 0, 1, 0x1c, 0x40, 0, 0, 20][..], &key].concat();
        // Octets that look like AVP 2: a value, and the code of the AVP after it.
        let plain = [
            0, 0, 1, 0xa0, 0, 0, 0, 12, 0, 0, 0, 2, 0, 0, 0, 0x19, 0x40, 0, 0, 25, 1, 2, 3, 4, 5, 6, 7, 8, 9,
            10, 11, 12, 13, 14, 15, 16, 17, 0, 0, 0,
        ];
        let mut bytes = [&[0; 20][..], &plain, &key, &group].concat();
        frame(&mut bytes);
        let masked: Vec<u8> = [&[0; 20][..], &plain, &key, &group].concat();
        let masked = String::from_utf8_lossy(&masked).replace("keys", "****");
        assert_eq!(String::from_utf8_lossy(&bytes), masked);
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
