//! Rules for the heads of messages (RFC 9113 §8).

use http::{Method, StatusCode};

use crate::fields::name::{AUTHORITY, CONTENT_LENGTH, METHOD, PATH, PROTOCOL, SCHEME, STATUS};
use crate::fields::{Fields, Name};
use crate::head::{RequestHead, ResponseHead};
use crate::hpack::{Checked, Outcome};

/// The message is malformed (RFC 9113 §8.1.1), and why.
pub(super) type Malformed = &'static str;

const fn bit(name: Name<'static>) -> u8 {
    1 << name.known_number()
}

/// The head of a request (RFC 9113 §8.3.1), and the length of the body that it announces.
pub(super) fn request(fields: Fields, outcome: Outcome) -> Result<(RequestHead, Checked), Malformed> {
    let method = fields
        .get(METHOD)
        .and_then(|value| Method::from_bytes(value.as_bytes()).ok());
    let method = method.ok_or("no valid :method")?;
    let checked = match outcome.checked {
        Some(checked) => checked,
        None => {
            check_request(&method, &fields, outcome)?;
            Checked {
                announced: announced(&fields)?,
            }
        }
    };
    Ok((RequestHead::of_fields(method, fields), checked))
}

fn check_request(method: &Method, fields: &Fields, outcome: Outcome) -> Result<(), Malformed> {
    check_names(outcome)?;
    let has = |bits: u8| outcome.pseudo & bits == bits;
    if outcome.pseudo & (bit(STATUS) | bit(PROTOCOL)) != 0 || !has(bit(METHOD)) {
        return Err("the pseudo-header fields are not those of a request");
    }
    if *method == Method::CONNECT {
        if !has(bit(AUTHORITY)) || outcome.pseudo & (bit(SCHEME) | bit(PATH)) != 0 {
            return Err("CONNECT has :authority and neither :scheme nor :path");
        }
    } else {
        if !has(bit(SCHEME) | bit(PATH)) {
            return Err("a request has :scheme and :path");
        }
        let path = fields.get(PATH).map_or(&[][..], |value| value.as_bytes());
        if !is_path(path, method) {
            return Err("invalid :path");
        }
        let scheme = fields.get(SCHEME).map_or(&[][..], |value| value.as_bytes());
        if !is_scheme(scheme) {
            return Err("invalid :scheme");
        }
    }
    if let Some(authority) = fields.get(AUTHORITY)
        && !is_authority(authority.as_bytes())
    {
        return Err("invalid :authority");
    }
    Ok(())
}

/// The head of a response (RFC 9113 §8.3.2), and the length of the body that it announces.
pub(super) fn response(mut fields: Fields, outcome: Outcome) -> Result<(ResponseHead, Checked), Malformed> {
    let status = fields
        .get(STATUS)
        .and_then(|value| StatusCode::from_bytes(value.as_bytes()).ok());
    let status = status.ok_or("no valid :status")?;
    let checked = match outcome.checked {
        Some(checked) => checked,
        None => {
            check_names(outcome)?;
            if outcome.pseudo != bit(STATUS) {
                return Err("the pseudo-header fields are not those of a response");
            }
            if status == StatusCode::SWITCHING_PROTOCOLS {
                return Err("HTTP/2 has no 101");
            }
            Checked {
                announced: announced(&fields)?,
            }
        }
    };
    fields.remove(STATUS);
    Ok((ResponseHead { status, fields }, checked))
}

/// Trailers have no pseudo-header fields (RFC 9113 §8.1).
pub(super) fn trailers(outcome: Outcome) -> Result<(), Malformed> {
    check_names(outcome)?;
    if outcome.pseudo != 0 {
        return Err("a pseudo-header field in trailers");
    }
    Ok(())
}

/// The announced length of the body (RFC 9110 §8.6): all Content-Length fields say the same.
fn announced(fields: &Fields) -> Result<Option<u64>, Malformed> {
    let mut values = fields.get_all(CONTENT_LENGTH);
    let Some(first) = values.next() else {
        return Ok(None);
    };
    let announced = length(first.as_bytes()).ok_or("invalid content-length")?;
    for value in values {
        if length(value.as_bytes()).ok_or("invalid content-length")? != announced {
            return Err("content-length fields differ");
        }
    }
    Ok(Some(announced))
}

/// The number of these digits, of which there are 18 at most.
fn length(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    digits.iter().try_fold(0, |sum, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| sum * 10 + u64::from(digit))
    })
}

fn check_names(outcome: Outcome) -> Result<(), Malformed> {
    match outcome.malformed {
        Some(_) => Err("a field is malformed or not permitted in HTTP/2"),
        None => Ok(()),
    }
}

/// Control characters are out already: values have none but HTAB.
fn is_path(path: &[u8], method: &Method) -> bool {
    let begins = path.first() == Some(&b'/') || (path == b"*" && *method == Method::OPTIONS);
    begins
        && memchr::memchr3(b' ', b'\t', b'#', path).is_none()
        && (path.is_ascii() || std::str::from_utf8(path).is_ok())
}

fn is_scheme(scheme: &[u8]) -> bool {
    let is_other = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme == b"http"
        || scheme == b"https"
        || (scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(is_other))
}

/// Host and port (RFC 3986 §3.2), without the userinfo that RFC 9113 §8.3.1 forbids.
fn is_authority(authority: &[u8]) -> bool {
    authority.iter().all(|byte| IN_AUTHORITY[usize::from(*byte)])
}

/// Bytes of an authority.
static IN_AUTHORITY: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = 0_u8;
    while byte < 0x7f {
        allowed[byte as usize] = byte.is_ascii_graphic()
            && !matches!(
                byte,
                b'/' | b'?' | b'#' | b'@' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}'
            );
        byte += 1;
    }
    allowed
};
