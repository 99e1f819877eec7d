//! Spellings that every reader knows, of texts that some readers refuse in another one.

use std::fmt::Write as _;
use std::net::Ipv6Addr;

/// An IPv6 address outside the pattern of TS 29.571 §5.2.2, which has small letters and no leading zeros.
#[must_use]
pub fn ipv6(text: &str) -> Option<String> {
    let usual = |group: &str| {
        (group.len() <= 1 || !group.starts_with('0')) && !group.bytes().any(|b| b.is_ascii_uppercase())
    };
    if text.split(':').all(usual) {
        return None;
    }
    let address: Ipv6Addr = text.parse().ok()?;
    Some(match address.to_ipv4_mapped() {
        // The mixed notation is outside the pattern as well.
        Some(_) => address.segments().iter().fold(String::new(), |mut text, group| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{}{group:x}", if text.is_empty() { "" } else { ":" });
            text
        }),
        None => address.to_string(),
    })
}

/// An IPv6 prefix likewise.
#[must_use]
pub fn ipv6_prefix(text: &str) -> Option<String> {
    let (address, length) = text.split_once('/')?;
    Some(format!("{}/{length}", ipv6(address)?))
}

/// A time with small letters, with a blank, or in a leap second, which RFC 3339 §5.6 and §5.7 allow and libraries of
/// several languages refuse. A leap second becomes the second before it.
#[must_use]
pub fn date_time(text: &str) -> Option<String> {
    let leap = text.get(17..19) == Some("60");
    let usual = text.as_bytes().get(10) == Some(&b'T') && !text.ends_with('z') && !leap;
    if usual {
        return None;
    }
    let (date, rest) = (text.get(..10)?, text.get(11..)?);
    let rest = match leap {
        true => format!("{}59{}", rest.get(..6)?, rest.get(8..)?),
        false => rest.to_owned(),
    };
    Some(format!("{date}T{}", rest.replace('z', "Z")))
}
