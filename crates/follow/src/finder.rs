//! The search of a message for the identities of all followed subscribers.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Instant;

use aho_corasick::AhoCorasick;
use diameter_proto::known;
use memchr::memmem;
use percent_encoding::percent_decode;

use crate::identity::{Identity, Shape, masked};

/// What the text of a SUPI of digits begins with.
const IMSI: &str = "imsi-";

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
            supis: Vec::new(),
            is_of_other: false,
        }
    }

    /// The followed subscribers that have a SUPI.
    fn owners(&self, digits: &[u8]) -> impl Iterator<Item = u64> {
        let own = self.imsis.iter().filter(move |(_, own)| own.as_bytes() == digits);
        own.map(|(owner, _)| *owner)
    }
}

/// The search of one message, part after part.
#[derive(Debug)]
pub struct Search<'a> {
    finder: &'a Finder,
    best: Option<Hit>,
    /// The followed subscribers whose SUPIs the message names.
    supis: Vec<u64>,
    /// The message names a SUPI that is not followed.
    is_of_other: bool,
}

impl Search<'_> {
    /// Searches a text: a header field, a body.
    pub fn text(&mut self, part: &[u8]) {
        self.part(part, false);
        for start in memmem::find_iter(part, b"imsi-") {
            let digits = digits_at(part, start + 5);
            if !digits.is_empty() {
                self.named(digits);
            }
        }
    }

    /// Searches a URI, whose characters may be escaped (RFC 3986 §2.1).
    pub fn uri(&mut self, uri: &[u8]) {
        self.text(&Cow::from(percent_decode(uri)));
    }

    /// Searches a Diameter message.
    pub fn frame(&mut self, frame: &[u8]) {
        self.part(frame, true);
        // Only a message that was found by a learned identity is questioned.
        if self.best.as_ref().is_some_and(|hit| hit.is_learned) {
            subscriptions(frame).for_each(|digits| self.named(digits));
        }
    }

    /// The message names a SUPI.
    fn named(&mut self, supi: &[u8]) {
        let before = self.supis.len();
        self.supis.extend(self.finder.owners(supi));
        self.is_of_other |= self.supis.len() == before;
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
            let is_better = self.best.as_ref().is_none_or(|hit| needle.rank() > hit.rank());
            if !is_better || !needle.fits(part, (one.start(), one.end()), is_frame) {
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
        let is_of_other = |hit: &Hit| self.is_of_other || self.supis.iter().any(|owner| *owner != hit.owner);
        self.best
            .as_ref()
            .filter(|hit| !(hit.is_learned && is_of_other(hit) && knows(hit)))
            .cloned()
    }
}

/// What an operator has given goes before a learned SUPI, which goes before what may pass to another subscriber.
fn rank(is_learned: bool, text: &str) -> u8 {
    match (is_learned, text.starts_with(IMSI)) {
        (false, _) => 2,
        (true, true) => 1,
        (true, false) => 0,
    }
}

impl Hit {
    fn rank(&self) -> u8 {
        rank(self.is_learned, self.by.as_deref().unwrap_or_default())
    }
}

impl Needle {
    fn rank(&self) -> u8 {
        rank(self.is_learned, &self.text)
    }

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
                        && !self.is_of_other_kind(hay, start)
                        && (end - start >= TELLING_DIGITS || is_introduced(hay, start)))
            }
            Shape::Text => {
                let joins = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
                let next = hay.get(end + 1).copied();
                // A longer host name goes on with a point, a longer Session-Id with a semicolon (RFC 6733 §8.8).
                let goes_on = match after {
                    Some(b'.') => is(next, joins),
                    Some(b';') => self.text.contains(';'),
                    _ => is(after, joins),
                };
                avp().is_some() || !(is(before, joins) || before == Some(b'.') || goes_on)
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
            Shape::Ipv4Avp => avp().is_some_and(|avp| avp == Avp(known::FRAMED_IP_ADDRESS.key.code)),
            // Two octets before the prefix belong to the value: reserved, length of the prefix.
            Shape::Ipv6Avp => {
                is_frame
                    && start.checked_sub(10).is_some_and(|at| {
                        word(hay, at) == Some(known::FRAMED_IPV6_PREFIX.key.code)
                            && hay.get(start - 1).is_some_and(|bits| *bits >= 64)
                    })
            }
            Shape::Tbcd => avp().is_some_and(|avp| avp == Avp(known::MSISDN.key.code)),
        }
    }

    /// Whether digits are called an identity of another kind (TS 29.571 §5.3.2).
    fn is_of_other_kind(&self, hay: &[u8], start: usize) -> bool {
        let before = hay.get(..start).unwrap_or_default();
        [IMSI, "msisdn-", "imei-", "imeisv-"]
            .iter()
            .any(|kind| before.ends_with(kind.as_bytes()) && !self.text.starts_with(kind))
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

/// The 32 bits that begin here.
pub(crate) fn word(hay: &[u8], at: usize) -> Option<u32> {
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
    let code = known::SUBSCRIPTION_ID_TYPE.key.code.to_be_bytes();
    let starts: Vec<usize> = memmem::find_iter(frame, &code).collect();
    starts.into_iter().filter_map(|at| {
        let is_imsi = word(frame, at + 4)? & 0x00ff_ffff == 12 && word(frame, at + 8)? == 1;
        let is_data = is_imsi && word(frame, at + 12)? == known::SUBSCRIPTION_ID_DATA.key.code;
        is_data.then(|| digits_at(frame, at + 20))
    })
}
