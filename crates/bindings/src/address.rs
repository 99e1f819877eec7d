//! Where a UE is: addresses and prefixes, as keys of the store.
//!
//! A question names one address, a binding a prefix that holds it. The lengths of prefixes that occur are few,
//! so the store remembers them ([`Forms`]) and a look-up asks once per length, longest first.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use model::Ipv6Prefix;
use records::{DecodeError, IndexKeys, Key, Record, TableSchema};

/// An address or prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// IPv4 address or framed route.
    V4(Ipv4Addr, u8),
    /// IPv6 prefix.
    V6(Ipv6Prefix),
    /// MAC address.
    Mac([u8; 6]),
}

impl Place {
    /// Of a MAC address as TS 29.571 writes it: `00-1b-21-3c-9d-f0`.
    #[must_use]
    pub fn mac(text: &str) -> Option<Self> {
        let mut bytes = [0; 6];
        let mut parts = text.split('-');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2)?;
            *byte = u8::from_str_radix(part, 16)
                .ok()
                .filter(|_| !part.starts_with('+'))?;
        }
        parts.next().is_none().then_some(Self::Mac(bytes))
    }

    /// Of `198.51.100.0/24`.
    #[must_use]
    pub fn route4(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let length: u8 = length.parse().ok().filter(|length| *length <= 32)?;
        let address: Ipv4Addr = address.parse().ok()?;
        Some(Self::V4(address, length).cut(length))
    }

    /// The prefix of this length that it lies in.
    #[must_use]
    pub fn cut(self, length: u8) -> Self {
        match self {
            Self::V4(address, _) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0);
                Self::V4(Ipv4Addr::from(u32::from(address) & mask), length)
            }
            Self::V6(prefix) => Self::V6(Ipv6Prefix::new(prefix.address(), length)),
            mac @ Self::Mac(_) => mac,
        }
    }

    /// Key in the index of its own kind.
    #[must_use]
    pub fn key(self) -> Key {
        match self {
            Self::V4(address, _) => Key::from_slice(&address.octets()),
            Self::V6(prefix) => {
                let mut key = Key::from_slice(&[prefix.length()]);
                key.extend_from_slice(&prefix.address().octets()[..usize::from(prefix.length()).div_ceil(8)]);
                key
            }
            Self::Mac(bytes) => Key::from_slice(&bytes),
        }
    }

    /// Key in the index of further addresses, which has all kinds.
    #[must_use]
    pub fn further_key(self) -> Key {
        let mut key = Key::new();
        match self {
            Self::V4(_, length) => key.extend_from_slice(&[b'4', length]),
            Self::V6(_) => key.push(b'6'),
            Self::Mac(_) => key.push(b'm'),
        }
        key.extend_from_slice(&self.key());
        key
    }

    /// The place of a key of [`Place::further_key`], as people write it.
    #[must_use]
    pub fn further_text(key: &[u8]) -> String {
        match key {
            [b'4', length, rest @ ..] => format!("{}/{length}", Self::v4_text(rest)),
            [b'6', rest @ ..] => Self::v6_text(rest),
            [_, rest @ ..] => Self::mac_text(rest),
            [] => String::new(),
        }
    }

    /// The address of four bytes.
    #[must_use]
    pub fn v4_text(key: &[u8]) -> String {
        let octets: [u8; 4] = key.try_into().unwrap_or_default();
        Ipv4Addr::from(octets).to_string()
    }

    /// The prefix of a length and its bytes.
    #[must_use]
    pub fn v6_text(key: &[u8]) -> String {
        let mut octets = [0; 16];
        let (length, bytes) = key.split_first().unwrap_or((&0, &[]));
        octets.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        format!("{}/{length}", std::net::Ipv6Addr::from(octets))
    }

    /// The MAC address of six bytes.
    #[must_use]
    pub fn mac_text(key: &[u8]) -> String {
        let parts: Vec<String> = key.iter().map(|byte| format!("{byte:02x}")).collect();
        parts.join("-")
    }
}

/// A kind of address, and its prefix length, under which bindings may be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `ipv6Prefix` of this length.
    V6(u8),
    /// Further IPv6 prefixes and framed routes of this length.
    FurtherV6(u8),
    /// Framed IPv4 routes of this length.
    RouteV4(u8),
    /// Further MAC addresses.
    FurtherMac,
}

impl Form {
    fn bytes(self) -> [u8; 2] {
        match self {
            Self::V6(length) => [b'6', length],
            Self::FurtherV6(length) => [b'a', length],
            Self::RouteV4(length) => [b'4', length],
            Self::FurtherMac => [b'm', 48],
        }
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        match *bytes {
            [b'6', length @ ..=128] => Some(Self::V6(length)),
            [b'a', length @ ..=128] => Some(Self::FurtherV6(length)),
            [b'4', length @ ..=32] => Some(Self::RouteV4(length)),
            [b'm', 48] => Some(Self::FurtherMac),
            _ => None,
        }
    }
}

/// A [`Form`] as the store keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormRecord(pub Form);

impl Record for FormRecord {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "address_form",
        indexes: &[],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&self.0.bytes())
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(key: &[u8], _: &[u8]) -> Result<Self, DecodeError> {
        let form = Form::of(key).ok_or_else(|| DecodeError("not a form of address".to_owned()))?;
        Ok(Self(form))
    }
}

/// The forms that occur. Shared by all workers; written once per form.
#[derive(Debug, Default)]
pub struct Forms {
    v6: [AtomicU64; 3],
    further_v6: [AtomicU64; 3],
    route_v4: AtomicU64,
    further_mac: AtomicU64,
}

impl Forms {
    fn bit(&self, form: Form) -> (&AtomicU64, u64) {
        match form {
            Form::V6(length) => (&self.v6[usize::from(length / 64)], 1 << (length % 64)),
            Form::FurtherV6(length) => (&self.further_v6[usize::from(length / 64)], 1 << (length % 64)),
            Form::RouteV4(length) => (&self.route_v4, 1 << length),
            Form::FurtherMac => (&self.further_mac, 1),
        }
    }

    /// Whether it occurs.
    #[must_use]
    pub fn has(&self, form: Form) -> bool {
        let (word, bit) = self.bit(form);
        word.load(Relaxed) & bit != 0
    }

    /// It occurs from now on.
    pub fn add(&self, form: Form) {
        let (word, bit) = self.bit(form);
        word.fetch_or(bit, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_read_back_as_people_write_them() {
        let v6 = Place::V6("2001:db8:1::/56".parse().unwrap());
        assert_eq!(Place::v6_text(&v6.key()), "2001:db8:1::/56");
        assert_eq!(Place::further_text(&v6.further_key()), "2001:db8:1::/56");
        assert_eq!(v6.key().len(), 8);
        let route = Place::route4("198.51.100.7/24").unwrap();
        assert_eq!(Place::further_text(&route.further_key()), "198.51.100.0/24");
        let mac = Place::mac("00-1B-21-3c-9d-f0").unwrap();
        assert_eq!(Place::further_text(&mac.further_key()), "00-1b-21-3c-9d-f0");
        assert_eq!(
            Place::V4(Ipv4Addr::new(10, 1, 2, 3), 32).cut(0),
            Place::V4(Ipv4Addr::UNSPECIFIED, 0)
        );
        for wrong in [
            "",
            "00:1b:21:3c:9d:f0",
            "00-1b-21-3c-9d",
            "00-1b-21-3c-9d-f0-01",
            "+0-1b-21-3c-9d-f0",
        ] {
            assert_eq!(Place::mac(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn forms_are_remembered() {
        let forms = Forms::default();
        for form in [
            Form::V6(0),
            Form::V6(64),
            Form::V6(128),
            Form::FurtherV6(128),
            Form::RouteV4(32),
            Form::FurtherMac,
        ] {
            assert!(!forms.has(form));
            forms.add(form);
            assert!(forms.has(form), "{form:?}");
            assert_eq!(Form::of(&form.bytes()), Some(form));
        }
        assert!(!forms.has(Form::V6(63)) && !forms.has(Form::RouteV4(0)));
    }
}
