//! The static table (RFC 7541 appendix A).

use crate::fields::Name;
use crate::fields::name::{self, KNOWN};

/// How many entries it has; the dynamic table follows it in the index space.
pub(super) const STATIC: usize = 61;

/// The entries from index 1 on.
pub(super) static ENTRIES: [(Name<'static>, &str); STATIC] = [
    (name::AUTHORITY, ""),
    (name::METHOD, "GET"),
    (name::METHOD, "POST"),
    (name::PATH, "/"),
    (name::PATH, "/index.html"),
    (name::SCHEME, "http"),
    (name::SCHEME, "https"),
    (name::STATUS, "200"),
    (name::STATUS, "204"),
    (name::STATUS, "206"),
    (name::STATUS, "304"),
    (name::STATUS, "400"),
    (name::STATUS, "404"),
    (name::STATUS, "500"),
    (name::ACCEPT_CHARSET, ""),
    (name::ACCEPT_ENCODING, "gzip, deflate"),
    (name::ACCEPT_LANGUAGE, ""),
    (name::ACCEPT_RANGES, ""),
    (name::ACCEPT, ""),
    (name::ACCESS_CONTROL_ALLOW_ORIGIN, ""),
    (name::AGE, ""),
    (name::ALLOW, ""),
    (name::AUTHORIZATION, ""),
    (name::CACHE_CONTROL, ""),
    (name::CONTENT_DISPOSITION, ""),
    (name::CONTENT_ENCODING, ""),
    (name::CONTENT_LANGUAGE, ""),
    (name::CONTENT_LENGTH, ""),
    (name::CONTENT_LOCATION, ""),
    (name::CONTENT_RANGE, ""),
    (name::CONTENT_TYPE, ""),
    (name::COOKIE, ""),
    (name::DATE, ""),
    (name::ETAG, ""),
    (name::EXPECT, ""),
    (name::EXPIRES, ""),
    (name::FROM, ""),
    (name::HOST, ""),
    (name::IF_MATCH, ""),
    (name::IF_MODIFIED_SINCE, ""),
    (name::IF_NONE_MATCH, ""),
    (name::IF_RANGE, ""),
    (name::IF_UNMODIFIED_SINCE, ""),
    (name::LAST_MODIFIED, ""),
    (name::LINK, ""),
    (name::LOCATION, ""),
    (name::MAX_FORWARDS, ""),
    (name::PROXY_AUTHENTICATE, ""),
    (name::PROXY_AUTHORIZATION, ""),
    (name::RANGE, ""),
    (name::REFERER, ""),
    (name::REFRESH, ""),
    (name::RETRY_AFTER, ""),
    (name::SERVER, ""),
    (name::SET_COOKIE, ""),
    (name::STRICT_TRANSPORT_SECURITY, ""),
    (name::TRANSFER_ENCODING, ""),
    (name::USER_AGENT, ""),
    (name::VARY, ""),
    (name::VIA, ""),
    (name::WWW_AUTHENTICATE, ""),
];

/// Where a known name stands in the static table.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    /// Index of its first entry; 0: it is not there.
    pub(super) index: u8,
    /// How many of its entries have a value.
    pub(super) values: u8,
}

/// By number of the name.
pub(super) static PLACES: [Place; KNOWN] = places();

const fn places() -> [Place; KNOWN] {
    let mut places = [Place { index: 0, values: 0 }; KNOWN];
    let mut at = STATIC;
    while at > 0 {
        let (name, value) = ENTRIES[at - 1];
        let number = name.known_number() as usize;
        places[number].index = at as u8;
        if !value.is_empty() {
            places[number].values += 1;
        }
        at -= 1;
    }
    places
}

/// The entry at an index of 1 to [`STATIC`]: number of the name, and value.
#[inline]
pub(super) fn entry(index: usize) -> Option<(u16, &'static [u8])> {
    let (name, value) = ENTRIES.get(index.wrapping_sub(1))?;
    Some((name.known_number(), value.as_bytes()))
}
