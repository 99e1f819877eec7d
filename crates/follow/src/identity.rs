//! What an operator may follow, and the bytes by which messages name it.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Octets of an identity.
const LENGTHS: std::ops::RangeInclusive<usize> = 5..=256;

/// An identity of a subscriber, or of something that belongs to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// SUPI or GPSI of digits (TS 29.571 §5.3.2): the digits.
    Digits(String),
    Ipv4(Ipv4Addr),
    /// A prefix of IPv6, with its length.
    Ipv6(Ipv6Addr, u8),
    /// The path of a resource, without its root.
    Resource,
    /// Session-Id, IMPU, NAI and others.
    Text,
}

/// How an occurrence of a pattern is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Digits,
    Text,
    Ipv4Text,
    /// Framed-IP-Address (RFC 7155 §4.4.10.5.1).
    Ipv4Avp,
    /// The beginning of an address of this prefix as text.
    Ipv6Text(Ipv6Addr, u8),
    /// Framed-IPv6-Prefix (RFC 7155 §4.4.10.5.6).
    Ipv6Avp,
    /// MSISDN (TS 29.329 §6.3.2): digits as TBCD.
    Tbcd,
}

/// Bytes to search for, and how an occurrence is checked.
pub(crate) type Pattern = (Vec<u8>, Shape);

impl Identity {
    /// The path of a resource, as `Location` names it, from the name of its API on (TS 29.501 §4.4.1): other APIs and
    /// other clients may have the same id. In a path without a version it is the last two segments.
    pub(crate) fn resource(location: &str) -> Option<Self> {
        let path = location.split(['?', '#']).next()?.trim_end_matches('/');
        let segments: Vec<&str> = path.split('/').collect();
        let last = segments.len().checked_sub(2).filter(|at| *at > 0)?;
        let version = segments
            .get(..last)?
            .iter()
            .rposition(|segment| is_version(segment));
        let name = version.and_then(|at| at.checked_sub(1));
        let named = segments.get(name.filter(|at| !segments[*at].is_empty()).unwrap_or(last)..)?;
        let text = named.join("/");
        let is_named = named.iter().all(|segment| !segment.is_empty()) && is_plain(&text);
        is_named.then_some(Self {
            text,
            kind: Kind::Resource,
        })
    }

    /// A text that stands for itself.
    pub(crate) fn literal(text: &str) -> Option<Self> {
        is_plain(text).then(|| Self {
            text: text.to_owned(),
            kind: Kind::Text,
        })
    }

    /// The digits of a SUPI.
    pub(crate) fn imsi(&self) -> Option<&str> {
        self.text.strip_prefix("imsi-")
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The bytes by which messages name it.
    pub(crate) fn patterns(&self) -> Vec<Pattern> {
        match &self.kind {
            Kind::Digits(digits) => {
                let mut all = vec![(digits.clone().into_bytes(), Shape::Digits)];
                if self.text.starts_with("msisdn-") {
                    all.push((tbcd(digits), Shape::Tbcd));
                }
                all
            }
            Kind::Ipv4(address) => vec![
                (address.to_string().into_bytes(), Shape::Ipv4Text),
                (address.octets().to_vec(), Shape::Ipv4Avp),
            ],
            Kind::Ipv6(address, length) => {
                let shape = Shape::Ipv6Text(*address, *length);
                let stem = stem(*address);
                let mut all = vec![
                    (stem.to_ascii_uppercase().into_bytes(), shape),
                    (stem.into_bytes(), shape),
                    (address.octets()[..8].to_vec(), Shape::Ipv6Avp),
                ];
                all.dedup_by(|one, other| one.0 == other.0);
                all
            }
            Kind::Resource | Kind::Text => vec![(self.text.clone().into_bytes(), Shape::Text)],
        }
    }
}

impl FromStr for Identity {
    type Err = String;

    /// Parses what an operator writes.
    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text
            .strip_prefix("imsi-")
            .or_else(|| text.strip_prefix("msisdn-"));
        let kind = if let Some(digits) = digits {
            let is_number = (5..=15).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
            if !is_number {
                return Err(format!("{text}: 5 to 15 digits follow the hyphen"));
            }
            Kind::Digits(digits.to_owned())
        } else if let Ok(address) = text.parse() {
            Kind::Ipv4(address)
        } else if let Some(kind) = prefix(text) {
            kind
        } else {
            Kind::Text
        };
        if !is_plain(text) {
            return Err(format!(
                "{text}: not a SUPI, GPSI, address, Session-Id or text of {} to {} printable ASCII characters",
                LENGTHS.start(),
                LENGTHS.end()
            ));
        }
        let text = text.to_owned();
        Ok(Self { text, kind })
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn is_plain(text: &str) -> bool {
    LENGTHS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// `v1` and the like.
fn is_version(segment: &str) -> bool {
    let number = segment.strip_prefix('v').unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// An address of IPv6, or a prefix of it. A UE has a prefix of 64 bits (TS 23.501 §5.8.2.2), so that longer ones and
/// addresses count as that.
fn prefix(text: &str) -> Option<Kind> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (
            address,
            length.parse::<u8>().ok().filter(|length| *length <= 128)?,
        ),
        None => (text, 128),
    };
    let address: Ipv6Addr = address.parse().ok()?;
    let is_usable = length >= 48 && address.segments()[0] != 0;
    is_usable.then(|| Kind::Ipv6(masked(address, length.min(64)), length.min(64)))
}

/// The address with only the first bits.
pub(crate) fn masked(address: Ipv6Addr, length: u8) -> Ipv6Addr {
    let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
    Ipv6Addr::from_bits(address.to_bits() & mask)
}

/// What each text of an address of this prefix begins with: the groups before the first that may be left out.
fn stem(address: Ipv6Addr) -> String {
    let groups = address.segments().into_iter().take(3);
    let groups = groups.take_while(|group| *group != 0);
    groups.map(|group| format!("{group:x}:")).collect()
}

/// Digits two to an octet, the first one in the lower half (TS 29.002 §17.7.8).
fn tbcd(digits: &str) -> Vec<u8> {
    let nibble = |byte: u8| byte.wrapping_sub(b'0') & 0xf;
    let pair = |pair: &[u8]| match pair {
        [low, high] => nibble(*low) | nibble(*high) << 4,
        [low] => nibble(*low) | 0xf0,
        _ => 0xff,
    };
    digits.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_what_operators_write() {
        for good in [
            "imsi-001010000000001",
            "msisdn-491700000001",
            "10.45.0.2",
            "2001:db8:1::/64",
            "2001:db8:1::5",
            "pcf.example;1;2",
            "sip:a@example.org",
            "nai-a@example.org",
        ] {
            assert_eq!(good.parse::<Identity>().unwrap().as_str(), good);
        }
        for bad in [
            "",
            "imsi-",
            "imsi-12x45",
            "imsi-0123456789012345",
            "abc",
            "a b c d e",
            "ümlaut",
        ] {
            assert!(bad.parse::<Identity>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_resource_is_its_path_within_its_api() {
        let of = |location| Identity::resource(location).map(|one| one.text);
        let found = of("http://pcf:80/npcf-smpolicycontrol/v1/sm-policies/7?x=1");
        assert_eq!(found.as_deref(), Some("npcf-smpolicycontrol/v1/sm-policies/7"));
        assert_eq!(
            of("/prefix/3gpp-monitoring-event/v1/as1/subscriptions/1").as_deref(),
            Some("3gpp-monitoring-event/v1/as1/subscriptions/1")
        );
        assert_eq!(of("/v1/pcfBindings/abc/").as_deref(), Some("pcfBindings/abc"));
        for bad in ["", "/", "x", "http://a", "/a/ b"] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }

    #[test]
    fn numbers_are_packed_as_map_packs_them() {
        assert_eq!(tbcd("12345"), [0x21, 0x43, 0xf5]);
    }
}
