//! The search of a message for the identities of all followed subscribers.

use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Instant;

use aho_corasick::AhoCorasick;
use memchr::memmem;

use crate::identity::{FRAMED_IP_ADDRESS, FRAMED_IPV6_PREFIX, Identity, Shape, masked};

/// Codes of AVPs whose values are compared as they are.
const MSISDN: u32 = 701;
const SUBSCRIPTION_ID_TYPE: u32 = 450;
const SUBSCRIPTION_ID_DATA: u32 = 444;

/// Digits that need nothing around them to be an identity.
const TELLING_DIGITS: usize = 10;

/// Patterns of all followed subscribers.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    automaton: Option<AhoCorasick>,
    needles: Vec<Needle>,
    /// The IMSIs of each followed subscriber.
    imsis: Vec<(u64, Box<str>)>,
    /// When following the first of them ends.
    ends: Option<Instant>,
}

#[derive(Debug)]
struct Needle {
    owner: u64,
    shape: Shape,
    is_learned: bool,
    text: Arc<str>,
}

/// The identity by which a message was found.
#[derive(Clone, Debug)]
pub struct Hit {
    /// The followed subscriber.
    pub(crate) owner: u64,
    /// The identity in the message; `None`: the message was sent for one that belongs to the subscriber.
    pub(crate) by: Option<Arc<str>>,
    /// Whether the identity is a learned one.
    pub(crate) is_learned: bool,
}

/// An identity, the followed subscriber that has it, and whether it was learned.
pub(crate) type Known<'a> = (u64, &'a Identity, bool);

impl Finder {
    /// Compiles the patterns. An automaton that cannot be built (it would be too large) finds nothing.
    pub(crate) fn new<'a>(known: impl Iterator<Item = Known<'a>>, ends: Option<Instant>) -> Self {
        let (mut patterns, mut needles, mut imsis) = (Vec::new(), Vec::new(), Vec::new());
        for (owner, identity, is_learned) in known {
            let text: Arc<str> = identity.as_str().into();
            if let Some(imsi) = identity.imsi() {
                imsis.push((owner, imsi.into()));
            }
            for (bytes, shape) in identity.patterns() {
                patterns.push(bytes);
                needles.push(Needle {
                    owner,
                    shape,
                    is_learned,
                    text: text.clone(),
                });
            }
        }
        let automaton = (!patterns.is_empty()).then(|| AhoCorasick::new(&patterns).ok());
        Self {
            automaton: automaton.flatten(),
            needles,
            imsis,
            ends,
        }
    }

    /// Whether following one of the subscribers has ended.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.ends.is_some_and(|ends| ends <= now)
    }

    /// Begins the search of a message.
    pub(crate) fn search(&self) -> Search<'_> {
        Search {
            finder: self,
            best: None,
            other: false,
        }
    }

    fn has_imsi(&self, digits: &[u8]) -> bool {
        self.imsis.iter().any(|(_, own)| own.as_bytes() == digits)
    }
}

/// The search of one message, part after part.
#[derive(Debug)]
pub struct Search<'a> {
    finder: &'a Finder,
    best: Option<Hit>,
    /// The message names a SUPI that is not followed.
    other: bool,
}

impl Search<'_> {
    /// Searches a text: a header field, a body.
    pub fn text(&mut self, part: &[u8]) {
        self.part(part, false);
        for start in memmem::find_iter(part, b"imsi-") {
            let digits = digits_at(part, start + 5);
            self.other |= !digits.is_empty() && !self.finder.has_imsi(digits);
        }
    }

    /// Searches a URI, whose characters may be escaped (RFC 3986 §2.1).
    pub fn uri(&mut self, uri: &[u8]) {
        match memchr::memchr(b'%', uri) {
            Some(_) => self.text(&unescaped(uri)),
            None => self.text(uri),
        }
    }

    /// Searches a Diameter message.
    pub fn frame(&mut self, frame: &[u8]) {
        self.part(frame, true);
        // Only a message that was found by a learned identity is questioned.
        if self.best.as_ref().is_some_and(|hit| hit.is_learned) {
            self.other |= subscriptions(frame).any(|digits| !self.finder.has_imsi(digits));
        }
    }

    fn part(&mut self, part: &[u8], is_frame: bool) {
        let Some(automaton) = &self.finder.automaton else {
            return;
        };
        if self.best.as_ref().is_some_and(|hit| !hit.is_learned) {
            return;
        }
        let Ok(found) = automaton.try_find_overlapping_iter(part) else {
            return;
        };
        for one in found {
            let Some(needle) = self.finder.needles.get(one.pattern().as_usize()) else {
                continue;
            };
            if (self.best.is_some() && needle.is_learned)
                || !needle.fits(part, (one.start(), one.end()), is_frame)
            {
                continue;
            }
            self.best = Some(Hit {
                owner: needle.owner,
                by: Some(needle.text.clone()),
                is_learned: needle.is_learned,
            });
        }
    }

    /// The identity by which the message belongs to a followed subscriber. A learned one does not count in a message that
    /// names another SUPI: an address or an id may have passed to another subscriber.
    #[must_use]
    pub fn hit(self) -> Option<Hit> {
        let knows = |hit: &Hit| self.finder.imsis.iter().any(|(owner, _)| *owner == hit.owner);
        self.best
            .filter(|hit| !(hit.is_learned && self.other && knows(hit)))
    }
}

impl Needle {
    /// Whether an occurrence is the identity, and not a part of something longer.
    fn fits(&self, hay: &[u8], (start, end): (usize, usize), is_frame: bool) -> bool {
        let avp = || is_frame.then(|| Avp::around(hay, start, end)).flatten();
        let before = start.checked_sub(1).and_then(|at| hay.get(at)).copied();
        let after = hay.get(end).copied();
        let is = |byte: Option<u8>, kind: fn(&u8) -> bool| byte.as_ref().is_some_and(kind);
        match self.shape {
            Shape::Digits => {
                avp().is_some()
                    || (is_number(hay, start, end)
                        && (end - start >= TELLING_DIGITS || is_introduced(hay, start)))
            }
            Shape::Text => {
                let joins = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
                avp().is_some() || !(is(before, joins) || is(after, joins))
            }
            Shape::Ipv4Text => {
                let next = hay.get(end + 1).copied();
                let goes_on = after == Some(b'.') && is(next, u8::is_ascii_digit);
                let joins = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
                !(is(before, joins) || is(after, u8::is_ascii_digit) || goes_on)
            }
            Shape::Ipv6Text(prefix, length) => {
                !is(before, |byte| byte.is_ascii_hexdigit() || *byte == b':')
                    && address_at(hay, start).is_some_and(|found| masked(found, length) == prefix)
            }
            Shape::Ipv4Avp => avp().is_some_and(|avp| avp == Avp(FRAMED_IP_ADDRESS)),
            // Two octets before the prefix belong to the value: reserved, length of the prefix.
            Shape::Ipv6Avp => {
                is_frame
                    && start.checked_sub(10).is_some_and(|at| {
                        word(hay, at) == Some(FRAMED_IPV6_PREFIX)
                            && hay.get(start - 1).is_some_and(|bits| *bits >= 64)
                    })
            }
            Shape::Tbcd => avp().is_some_and(|avp| avp == Avp(MSISDN)),
        }
    }
}

/// The code of an AVP whose value is exactly a range of bytes.
#[derive(PartialEq)]
struct Avp(u32);

impl Avp {
    fn around(hay: &[u8], start: usize, end: usize) -> Option<Self> {
        let of = |header: usize| {
            let at = start.checked_sub(header)?;
            let length = word(hay, at + 4)? & 0x00ff_ffff;
            let is_exact = length as usize == header + (end - start);
            // A vendor's id lies between the header and the value (RFC 6733 §4.1).
            let has_vendor = hay.get(at + 4)? & 0x80 != 0;
            let fits = is_exact && has_vendor == (header == 12);
            fits.then(|| word(hay, at).map(Self)).flatten()
        };
        of(8).or_else(|| of(12))
    }
}

fn word(hay: &[u8], at: usize) -> Option<u32> {
    let bytes = hay.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

fn digits_at(hay: &[u8], start: usize) -> &[u8] {
    let rest = hay.get(start..).unwrap_or_default();
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    &rest[..count]
}

/// Whether digits are a number of their own. A root NAI has one digit before an IMSI (TS 23.003 §19.3.2).
fn is_number(hay: &[u8], start: usize, end: usize) -> bool {
    let digit = |at: Option<usize>| at.and_then(|at| hay.get(at)).is_some_and(u8::is_ascii_digit);
    if digit(Some(end)) {
        return false;
    }
    let is_nai = end - start == 15 && hay.get(end) == Some(&b'@') && !digit(start.checked_sub(2));
    is_nai || !digit(start.checked_sub(1))
}

/// Whether a short number follows what makes it an identity.
fn is_introduced(hay: &[u8], start: usize) -> bool {
    let before = &hay[..start];
    [&b"imsi-"[..], b"msisdn-", b"+", b"tel:", b"sip:"]
        .iter()
        .any(|word| before.ends_with(word))
}

/// The address of IPv6 that begins here.
fn address_at(hay: &[u8], start: usize) -> Option<Ipv6Addr> {
    let rest = hay.get(start..)?;
    let count = rest
        .iter()
        .take(39)
        .take_while(|byte| byte.is_ascii_hexdigit() || **byte == b':');
    std::str::from_utf8(&rest[..count.count()]).ok()?.parse().ok()
}

/// The IMSIs among the Subscription-Ids of a message (RFC 8506 §8.46): the type before the data.
fn subscriptions(frame: &[u8]) -> impl Iterator<Item = &[u8]> {
    let code = SUBSCRIPTION_ID_TYPE.to_be_bytes();
    let starts: Vec<usize> = memmem::find_iter(frame, &code).collect();
    starts.into_iter().filter_map(|at| {
        let is_imsi = word(frame, at + 4)? & 0x00ff_ffff == 12 && word(frame, at + 8)? == 1;
        let is_data = is_imsi && word(frame, at + 12)? == SUBSCRIPTION_ID_DATA;
        is_data.then(|| digits_at(frame, at + 20))
    })
}

fn unescaped(uri: &[u8]) -> Vec<u8> {
    let nibble = |byte: &u8| char::from(*byte).to_digit(16);
    let (mut out, mut rest) = (Vec::with_capacity(uri.len()), uri);
    while let [first, tail @ ..] = rest {
        let escaped = match rest {
            [b'%', high, low, ..] => nibble(high).zip(nibble(low)),
            _ => None,
        };
        match escaped {
            // Two hexadecimal digits are an octet.
            Some((high, low)) => {
                out.push((high * 16 + low) as u8);
                rest = &rest[3..];
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finder(texts: &[&str]) -> Finder {
        let all: Vec<Identity> = texts.iter().map(|text| text.parse().unwrap()).collect();
        Finder::new(all.iter().map(|identity| (1, identity, false)), None)
    }

    fn in_text(identity: &str, text: &str) -> bool {
        let finder = finder(&[identity]);
        let mut search = finder.search();
        search.uri(text.as_bytes());
        search.hit().is_some()
    }

    #[test]
    fn an_identity_is_found_alone_and_not_within_a_longer_one() {
        for (identity, text, is_found) in [
            ("imsi-001010000000001", r#"{"supi":"imsi-001010000000001"}"#, true),
            ("imsi-001010000000001", "0001010000000001@wlan.mnc001", true),
            ("imsi-00101000000001", "imsi-001010000000012", false),
            ("imsi-001010000000001", "imsi-0010100000000012", false),
            ("msisdn-4917", "port 4917", false),
            ("msisdn-49170", "tel:+49170", true),
            ("10.45.0.2", r#""ipv4Address":"10.45.0.2""#, true),
            ("10.45.0.2", "10.45.0.20", false),
            ("10.45.0.2", "110.45.0.2", false),
            ("10.45.0.2", "10.45.0.2.7", false),
            ("2001:db8:1::/64", "ipv6Prefix=2001%3Adb8%3A1%3A%3A%2F64", true),
            ("2001:db8:1::/64", "\"2001:0db8:1::\"", false),
            ("2001:db8:1::/64", "\"2001:DB8:1::7\"", true),
            ("2001:db8:1::/64", "2001:db8:1:7::/64", false),
            ("a.example;1;2", "a.example;1;23", false),
            ("a.example;1;2", "a.example;1;2.", true),
        ] {
            let is_valid = identity.parse::<Identity>().is_ok();
            assert_eq!(
                is_valid && in_text(identity, text),
                is_found,
                "{identity} in {text}"
            );
        }
    }

    fn avp(code: u32, vendor: Option<u32>, value: &[u8]) -> Vec<u8> {
        let header = if vendor.is_some() { 12 } else { 8 };
        let mut bytes = code.to_be_bytes().to_vec();
        let flags = if vendor.is_some() { 0xc0_u32 } else { 0x40 };
        bytes.extend((flags << 24 | (header + value.len() as u32)).to_be_bytes());
        bytes.extend(vendor.into_iter().flat_map(u32::to_be_bytes));
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn in_frame(identity: &str, frame: &[u8]) -> bool {
        let finder = finder(&[identity]);
        let mut search = finder.search();
        search.frame(frame);
        search.hit().is_some()
    }

    #[test]
    fn values_of_avps_are_compared_whole() {
        let prefix = [
            &[0, 64][..],
            &"2001:db8:1::".parse::<Ipv6Addr>().unwrap().octets()[..8],
        ]
        .concat();
        for (identity, frame, is_found) in [
            ("10.45.0.2", avp(8, None, &[10, 45, 0, 2]), true),
            ("10.45.0.2", avp(9, None, &[10, 45, 0, 2]), false),
            ("2001:db8:1::/64", avp(97, None, &prefix), true),
            ("2001:db8:1::/64", avp(98, None, &prefix), false),
            ("msisdn-12345", avp(701, Some(10_415), &[0x21, 0x43, 0xf5]), true),
            ("msisdn-12345", avp(702, Some(10_415), &[0x21, 0x43, 0xf5]), false),
            ("imsi-001010000000001", avp(444, None, b"001010000000001"), true),
            ("msisdn-12345", avp(444, None, b"12345"), true),
            ("msisdn-12345", avp(444, None, b"123456"), false),
        ] {
            assert_eq!(in_frame(identity, &frame), is_found, "{identity} in {frame:x?}");
        }
        // The length of an AVP before a value may look like a letter or a digit.
        for length in 8..120_usize {
            let session = format!("host{};1", "x".repeat(length));
            assert!(
                in_frame(&session, &avp(263, None, session.as_bytes())),
                "{session}"
            );
        }
    }

    #[test]
    fn a_learned_address_ends_where_another_subscriber_has_it() {
        let (supi, address): (Identity, Identity) = (
            "imsi-001010000000001".parse().unwrap(),
            "10.45.0.2".parse().unwrap(),
        );
        let finder = Finder::new([(1, &supi, false), (1, &address, true)].into_iter(), None);
        let found = |text: &str| {
            let mut search = finder.search();
            search.text(text.as_bytes());
            search.hit().is_some()
        };
        assert!(found(r#"{"ueIpv4":"10.45.0.2"}"#));
        assert!(!found(r#"{"ueIpv4":"10.45.0.2","supi":"imsi-001010000000009"}"#));
        let data = avp(444, None, b"001010000000009");
        let group = avp(443, None, &[avp(450, None, &[0, 0, 0, 1]), data].concat());
        let mut search = finder.search();
        search.frame(&[avp(8, None, &[10, 45, 0, 2]), group].concat());
        assert!(search.hit().is_none());
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_searched(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), cut in 0..40_usize) {
            let finder = finder(&["imsi-001010000000001", "msisdn-12345", "10.45.0.2", "2001:db8::/64", "%%%%%"]);
            let whole = [&bytes[..], &avp(444, None, b"001010000000001")[cut.min(20)..], b"imsi-12345", &[0, 0, 1, 194]].concat();
            let mut search = finder.search();
            search.frame(&whole);
            search.uri(&whole);
            let _ = search.hit();
        }
    }
}
