//! Addresses of UEs: the keys under which an association is found, and whether it has an address.
//!
//! An AF names one address, a session has a prefix that covers it. Prefixes of 64 bits and longer are under the 64 bits that
//! they begin with, shorter ones under their first 48 or 32 bits, so that a search takes at most three reads whatever
//! lengths occur. Framed IPv4 routes are under their first 24, 16 or 8 bits likewise.

use std::net::{Ipv4Addr, Ipv6Addr};

use model::Ipv6Prefix;
use serde_json::Value;
use store::Key;

use super::Association;

/// The address of a UE, as an AF or a peer names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UeAddress {
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 address, or the prefix of a UE.
    V6(Ipv6Prefix),
    /// The MAC address of a device.
    Mac([u8; 6]),
}

/// Lengths to which IPv6 prefixes are cut in keys, the longest first.
const V6_LENGTHS: [u8; 3] = [64, 48, 32];
/// Lengths to which framed IPv4 routes are cut in keys, the longest first.
const ROUTE_LENGTHS: [u8; 3] = [24, 16, 8];
/// Longest text that is a key as it is.
const LONGEST: usize = 255;

impl UeAddress {
    /// Parses an IPv4 address, an IPv6 address, an IPv6 prefix or a MAC address of TS 29.571.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let address = || text.parse::<Ipv6Addr>().ok().map(|own| Ipv6Prefix::new(own, 128));
        let v4 = || text.parse().ok().map(Self::V4);
        v4().or_else(|| text.parse().ok().or_else(address).map(Self::V6))
            .or_else(|| mac(text).map(Self::Mac))
    }

    /// The keys to search under, in the order in which a match counts; `domain` is that of an IPv4 address.
    #[must_use]
    pub fn searches(self, domain: Option<&str>) -> Vec<Key> {
        match self {
            Self::V4(own) => {
                let first = match domain {
                    Some(domain) => domain_key(own, domain),
                    None => v4_key(own),
                };
                let routes = ROUTE_LENGTHS.iter().map(|length| route_key(own, *length));
                std::iter::once(first).chain(routes).collect()
            }
            Self::V6(prefix) => V6_LENGTHS
                .iter()
                .filter(|length| **length <= prefix.length())
                .map(|length| v6_key(prefix, *length))
                .collect(),
            Self::Mac(own) => vec![mac_key(own)],
        }
    }

    /// The key of the sessions in a DNN that have this address, for what is not framed: many private networks have the same
    /// addresses, and a search by the address alone reads some of their sessions only.
    #[must_use]
    pub fn search_in(self, dnn: &str) -> Key {
        let plain = match self {
            Self::V4(own) => v4_key(own),
            Self::V6(prefix) => v6_key(prefix, key_length(prefix.length(), &V6_LENGTHS)),
            Self::Mac(own) => mac_key(own),
        };
        in_dnn(&plain, dnn)
    }

    /// Whether an association has this address.
    #[must_use]
    pub fn is_of(self, association: &Association, domain: Option<&str>) -> bool {
        match self {
            Self::V4(own) => {
                let same_domain = domain.is_none() || association.text_of("ipDomain") == domain;
                let held = association
                    .text_of("ipv4Address")
                    .and_then(|text| text.parse().ok());
                same_domain
                    && (held == Some(own)
                        || routes4(association).any(|(net, length)| cut(own, length) == cut(net, length)))
            }
            Self::V6(prefix) => prefixes(association).any(|held| held.covers(&prefix)),
            Self::Mac(own) => macs(association).any(|held| held == own),
        }
    }
}

/// The keys of an association's addresses.
pub(super) fn keys(association: &Association) -> impl Iterator<Item = Key> + '_ {
    let v4: Option<Ipv4Addr> = association
        .text_of("ipv4Address")
        .and_then(|text| text.parse().ok());
    let in_domain = association.text_of("ipDomain").zip(v4);
    let v4 = v4.map(v4_key).into_iter();
    let in_domain = in_domain.map(|(domain, address)| domain_key(address, domain));
    let v6 = prefixes(association).map(|prefix| v6_key(prefix, key_length(prefix.length(), &V6_LENGTHS)));
    let routes = routes4(association).map(|(net, length)| route_key(net, key_length(length, &ROUTE_LENGTHS)));
    let macs = macs(association).map(mac_key);
    let dnn = association.text_of("dnn");
    let of_dnn = move |plain: Key| {
        let narrow = dnn.map(|dnn| in_dnn(&plain, dnn));
        std::iter::once(plain).chain(narrow)
    };
    let own = v4.chain(v6).chain(macs).flat_map(of_dnn);
    own.chain(in_domain).chain(routes)
}

/// The key of an address in a DNN, by its network identifier (TS 23.003 §9.1).
fn in_dnn(plain: &Key, dnn: &str) -> Key {
    let mut key = Key::from_slice(b"n");
    key.extend_from_slice(plain);
    key.extend_from_slice(&text_key(&super::claims::network(dnn).to_ascii_lowercase()));
    key
}

/// A text as a key: itself, or where it is too long for a key its beginning and a checksum.
#[must_use]
pub fn text_key(text: &str) -> Key {
    if text.len() <= LONGEST {
        return Key::from_slice(text.as_bytes());
    }
    let mut key = Key::from_slice(&text.as_bytes()[..LONGEST]);
    key.extend_from_slice(&crc32fast::hash(text.as_bytes()).to_be_bytes());
    key
}

/// A MAC address as TS 29.571 writes it: `00-1b-21-3c-9d-f0`.
#[must_use]
pub fn mac(text: &str) -> Option<[u8; 6]> {
    let mut bytes = [0; 6];
    let mut parts = text.split('-');
    for byte in &mut bytes {
        let part = parts.next().filter(|part| part.len() == 2)?;
        *byte = u8::from_str_radix(part, 16)
            .ok()
            .filter(|_| !part.starts_with('+'))?;
    }
    parts.next().is_none().then_some(bytes)
}

/// A framed IPv4 route: `198.51.100.0/24`.
#[must_use]
pub fn route4(text: &str) -> Option<(Ipv4Addr, u8)> {
    let (address, length) = text.split_once('/')?;
    let length = length.parse().ok().filter(|length| *length <= 32)?;
    Some((address.parse().ok()?, length))
}

fn texts<'a>(association: &'a Association, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let list = association.context.get(name).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

fn prefixes(association: &Association) -> impl Iterator<Item = Ipv6Prefix> + '_ {
    let own = association.text_of("ipv6AddressPrefix").into_iter();
    let further = association.addresses.ipv6.iter().map(String::as_str);
    let routed = texts(association, "ipv6FrameRouteList");
    own.chain(further)
        .chain(routed)
        .filter_map(|text| text.parse().ok())
}

fn routes4(association: &Association) -> impl Iterator<Item = (Ipv4Addr, u8)> + '_ {
    texts(association, "ipv4FrameRouteList").filter_map(route4)
}

fn macs(association: &Association) -> impl Iterator<Item = [u8; 6]> + '_ {
    association.addresses.mac.iter().filter_map(|text| mac(text))
}

/// The length to which a prefix of this length is cut; the shortest of the list where it is shorter than all.
fn key_length(length: u8, lengths: &[u8]) -> u8 {
    let fitting = lengths.iter().copied().find(|cut| *cut <= length);
    fitting.or(lengths.last().copied()).unwrap_or(length)
}

fn cut(address: Ipv4Addr, length: u8) -> u32 {
    let mask = u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0);
    u32::from(address) & mask
}

fn v4_key(address: Ipv4Addr) -> Key {
    let mut key = Key::from_slice(b"4");
    key.extend_from_slice(&address.octets());
    key
}

fn domain_key(address: Ipv4Addr, domain: &str) -> Key {
    let mut key = Key::from_slice(b"d");
    key.extend_from_slice(&address.octets());
    key.extend_from_slice(&text_key(domain));
    key
}

fn route_key(address: Ipv4Addr, length: u8) -> Key {
    let mut key = Key::from_slice(&[b'r', length]);
    key.extend_from_slice(&cut(address, length).to_be_bytes());
    key
}

fn v6_key(prefix: Ipv6Prefix, length: u8) -> Key {
    let first = Ipv6Prefix::new(prefix.address(), length).address().octets();
    let mut key = Key::from_slice(&[b'6', length]);
    key.extend_from_slice(&first[..8]);
    key
}

fn mac_key(bytes: [u8; 6]) -> Key {
    let mut key = Key::from_slice(b"m");
    key.extend_from_slice(&bytes);
    key
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;
    use serde_json::json;

    fn found(association: &Association, text: &str, domain: Option<&str>) -> bool {
        let address = UeAddress::parse(text).unwrap();
        let keys: Vec<Key> = keys(association).collect();
        let searched = address.searches(domain);
        searched.iter().any(|key| keys.contains(key)) && address.is_of(association, domain)
    }

    #[test]
    fn a_session_is_found_by_each_of_its_addresses() {
        let context = json!({"ipv4Address": "10.0.0.1", "ipDomain": "a", "ipv6AddressPrefix": "2001:db8:1:2::/64",
            "ipv4FrameRouteList": ["192.0.2.0/25"], "ipv6FrameRouteList": ["2001:db8:f::/52", "2001:dead::/30"]});
        let mut association = Association::new(Kind::Sm, context);
        association.addresses.mac.push("00-1b-21-3c-9d-f0".to_owned());
        association.addresses.ipv6.push("2001:db8:5::7/128".to_owned());
        for (text, domain, is_found) in [
            ("10.0.0.1", None, true),
            ("10.0.0.1", Some("a"), true),
            ("10.0.0.1", Some("b"), false),
            ("10.0.0.2", None, false),
            ("192.0.2.9", None, true),
            ("192.0.2.129", None, false),
            ("2001:db8:1:2::99", None, true),
            ("2001:db8:1:2::/64", None, true),
            ("2001:db8:1::/48", None, false),
            ("2001:db8:1:3::99", None, false),
            ("2001:db8:5::7", None, true),
            ("2001:db8:5::8", None, false),
            ("2001:db8:f:fff::1", None, true),
            ("2001:db8:f:1fff::1", None, false),
            ("00-1B-21-3C-9D-F0", None, true),
            ("00-1b-21-3c-9d-f1", None, false),
        ] {
            assert_eq!(found(&association, text, domain), is_found, "{text} {domain:?}");
        }
        assert_eq!(UeAddress::parse("nonsense"), None);
    }

    #[test]
    fn long_texts_have_keys_of_their_own() {
        let (one, other) = (format!("{}a", "x".repeat(300)), format!("{}b", "x".repeat(300)));
        assert_ne!(text_key(&one), text_key(&other));
        assert!(text_key(&one).len() <= store::MAX_KEY / 2 + 8);
        assert_eq!(&*text_key("imsi-1"), b"imsi-1");
    }
}
