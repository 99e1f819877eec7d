//! Rules over texts that many data types share.

use std::borrow::Cow;
use std::cell::Cell;

use crate::hex::hex;
use crate::identity::{Digits, NfInstanceId};
use crate::pattern::{Pattern, PatternFault};

type Verdict = Result<(), Cow<'static, str>>;

fn when(good: bool, expected: &'static str) -> Verdict {
    if good { Ok(()) } else { Err(expected.into()) }
}

/// A UUID.
pub fn uuid(text: &str) -> Verdict {
    NfInstanceId::parse(text).map(drop).map_err(Cow::from)
}

thread_local! {
    /// Whether this thread takes names of hosts where a fully qualified domain name is expected.
    static HOST_NAMES: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` with names of hosts (`amf`, `pcf.core1`) taken, or not, where [`fqdn`] is the rule.
pub fn with_host_names<T>(accepted: bool, work: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            HOST_NAMES.set(self.0);
        }
    }
    let _before = Before(HOST_NAMES.replace(accepted));
    work()
}

fn label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// A fully qualified domain name (TS 29.571 §5.2.2).
pub fn fqdn(text: &str) -> Verdict {
    const EXPECTED: &str = "expected a fully qualified domain name: labels of letters, digits and hyphens, \
                            ending in an alphabetic top-level label";
    let name = text.strip_suffix('.').unwrap_or(text);
    let (first, last) = name.rsplit_once('.').unwrap_or(("", ""));
    when(
        ((4..=253).contains(&text.len())
            && (2..=63).contains(&last.len())
            && last.bytes().all(|b| b.is_ascii_alphabetic())
            && first.split('.').all(label))
            || (HOST_NAMES.get() && host_name(text)),
        EXPECTED,
    )
}

/// Whether a text is a name of a host as in RFC 1123 §2.1, of one label or more, and not an address.
#[must_use]
pub fn host_name(text: &str) -> bool {
    // Digits and dots alone are an address, if a wrong one.
    let is_address = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.len() <= 253 && !is_address && text.split('.').all(label)
}

/// A dotted IPv4 address.
pub fn ipv4(text: &str) -> Verdict {
    when(
        text.parse::<std::net::Ipv4Addr>().is_ok(),
        "expected an IPv4 address in dotted decimal notation",
    )
}

/// An IPv6 address without embedded IPv4.
pub fn ipv6(text: &str) -> Verdict {
    when(
        !text.contains('.') && text.parse::<std::net::Ipv6Addr>().is_ok(),
        "expected an IPv6 address as in RFC 5952, without mixed IPv4 notation",
    )
}

/// An IPv6 prefix.
pub fn ipv6_prefix(text: &str) -> Verdict {
    text.parse::<crate::address::Ipv6Prefix>()
        .map(drop)
        .map_err(Cow::from)
}

/// Three digits.
pub fn mcc(text: &str) -> Verdict {
    when(
        text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit()),
        "expected three digits",
    )
}

/// Two or three digits.
pub fn mnc(text: &str) -> Verdict {
    when(
        (2..=3).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()),
        "expected two or three digits",
    )
}

/// Eleven hexadecimal digits.
pub fn nid(text: &str) -> Verdict {
    when(hex(text, &[11]).is_some(), "expected eleven hexadecimal digits")
}

/// Six hexadecimal digits.
pub fn hex6(text: &str) -> Verdict {
    when(hex(text, &[6]).is_some(), "expected six hexadecimal digits")
}

/// Two hexadecimal digits.
pub fn hex2(text: &str) -> Verdict {
    when(hex(text, &[2]).is_some(), "expected two hexadecimal digits")
}

/// An AMF set: ten bits in three hexadecimal digits.
pub fn amf_set(text: &str) -> Verdict {
    when(
        hex(text, &[3]).is_some_and(|value| value <= 0x3ff),
        "expected three hexadecimal digits, the first from 0 to 3",
    )
}

/// Four or six hexadecimal digits.
pub fn tac(text: &str) -> Verdict {
    when(
        hex(text, &[4, 6]).is_some(),
        "expected four or six hexadecimal digits",
    )
}

/// Hexadecimal digits, perhaps none.
pub fn features(text: &str) -> Verdict {
    crate::features::SupportedFeatures::parse(text)
        .map(drop)
        .map_err(Cow::from)
}

/// Decimal digits.
pub fn digits(text: &str) -> Verdict {
    when(Digits::parse(text).is_some(), "expected 1 to 38 decimal digits")
}

/// Five to fifteen decimal digits.
pub fn number5to15(text: &str) -> Verdict {
    when(
        (5..=15).contains(&text.len()) && Digits::parse(text).is_some(),
        "expected 5 to 15 decimal digits",
    )
}

/// A routing indicator.
pub fn routing_indicator(text: &str) -> Verdict {
    when(
        text.len() <= 4 && Digits::parse(text).is_some(),
        "expected 1 to 4 decimal digits",
    )
}

/// A PLMN, digits run together.
pub fn plmn_digits(text: &str) -> Verdict {
    when(
        (5..=6).contains(&text.len()) && Digits::parse(text).is_some(),
        "expected five or six decimal digits",
    )
}

/// A vendor id.
pub fn vendor(text: &str) -> Verdict {
    when(
        text.len() == 6 && Digits::parse(text).is_some(),
        "expected six decimal digits",
    )
}

/// A regular expression within bounds.
pub fn pattern(text: &str) -> Verdict {
    Pattern::new(text)
        .map(drop)
        .map_err(|fault| fault.to_string().into())
}

/// As [`pattern`], of a text that stands for itself when it is not an expression.
pub fn domain_pattern(text: &str) -> Verdict {
    match Pattern::new(text) {
        Err(fault @ PatternFault::Excess(..)) => Err(fault.to_string().into()),
        _ => Ok(()),
    }
}

/// A value of an open enumeration (NF types, names of services, states), which goes into logs, labels and
/// tables: 1 to 64 printable ASCII characters. The longest value of TS 29.510 has 31.
pub fn token(text: &str) -> Verdict {
    when(
        (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()),
        "expected 1 to 64 printable ASCII characters without spaces",
    )
}

/// Path segments that become a part of URIs (TS 29.501 §4.4.1, RFC 3986 §3.3). Some peers write the whole API root in
/// its place, which is read as that: then it has to be one.
pub fn api_prefix(text: &str) -> Verdict {
    if let Some((scheme, rest)) = text.split_once("://") {
        let authority = rest.split_once('/').map_or(rest, |(authority, _)| authority);
        let (host, port) = authority.rsplit_once(':').unwrap_or((authority, "80"));
        let is_root = ["http", "https"]
            .iter()
            .any(|one| scheme.eq_ignore_ascii_case(one))
            && !host.is_empty()
            && !authority.contains('@')
            && port.parse::<u16>().is_ok_and(|port| port > 0);
        if !is_root {
            return Err("expected path segments, or http:// or https:// with a host and a port".into());
        }
    }
    let segments = text.strip_prefix('/').unwrap_or(text);
    let segment = |segment: &str| {
        !matches!(segment, "." | "..")
            && segment
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@%".contains(&b))
    };
    when(
        text.len() <= 1_024 && segments.split('/').all(segment),
        "expected path segments as in RFC 3986, without query, fragment, `.` and `..`",
    )
}

/// A time of RFC 3339.
pub fn date_time(text: &str) -> Verdict {
    when(
        time(text).is_some(),
        "expected a date and time as in RFC 3339, such as 2024-05-01T12:00:00Z",
    )
}

/// A time of RFC 3339; a blank may stand between date and time (§5.6, note).
#[must_use]
pub fn time(text: &str) -> Option<time::OffsetDateTime> {
    // The parser takes any character there.
    let separated = matches!(text.as_bytes().get(10), Some(b'T' | b't' | b' '));
    let parsed = time::OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339);
    parsed.ok().filter(|_| separated)
}

/// An absolute URI.
pub fn uri(text: &str) -> Verdict {
    let scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    };
    when(
        text.split_once(':')
            .is_some_and(|(start, rest)| scheme(start) && !rest.is_empty())
            && !text
                .bytes()
                .any(|b| b.is_ascii_whitespace() || b.is_ascii_control() || b == b'"'),
        "expected an absolute URI as in RFC 3986",
    )
}

/// An internal group identity (TS 29.571 §5.3.2 GroupId).
pub fn group_id(text: &str) -> Verdict {
    let mut parts = text.split('-');
    let digit = |part: &str, lengths: std::ops::RangeInclusive<usize>| {
        lengths.contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit())
    };
    let good = parts.next().is_some_and(|part| hex(part, &[8]).is_some())
        && parts.next().is_some_and(|part| digit(part, 3..=3))
        && parts.next().is_some_and(|part| digit(part, 2..=3))
        && parts.next().is_some_and(|part| {
            (2..=20).contains(&part.len())
                && part.len().is_multiple_of(2)
                && part.bytes().all(|b| b.is_ascii_hexdigit())
        })
        && parts.next().is_none();
    when(good, "expected a group id such as A1B2C3D4-240-01-AB12")
}

/// `3GPP_ACCESS` or `NON_3GPP_ACCESS`: a closed enumeration.
pub fn access_type(text: &str) -> Verdict {
    when(
        matches!(text, "3GPP_ACCESS" | "NON_3GPP_ACCESS"),
        "expected 3GPP_ACCESS or NON_3GPP_ACCESS",
    )
}

/// A text of at least one character.
pub fn not_empty(text: &str) -> Verdict {
    when(
        !text.is_empty() && !text.chars().any(char::is_control),
        "expected a string that is not empty, without control characters",
    )
}
