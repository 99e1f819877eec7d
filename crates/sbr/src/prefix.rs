//! IPv6 prefixes as keys: an address finds the prefix that holds it (TS 29.213 §7.3.2: a DRA matches the address of an AF with
//! the prefix of an IP-CAN session).
//!
//! A key is the part of a prefix up to a whole byte, so that few lengths occur: those of 64 bits, which nearly all have, cost
//! one lookup. What lies under the key but not under the prefix is filtered out.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use model::Ipv6Prefix;
use store::{DecodeError, IndexKeys, Key, Record, TableSchema};

/// The shortest prefix of a session. One of fewer bits would catch the addresses of others.
pub const MIN_LENGTH: u8 = 32;
/// The longest prefix.
pub const MAX_LENGTH: u8 = 128;

/// Bytes of a prefix that count for its key.
fn whole_bytes(prefix: &Ipv6Prefix) -> u8 {
    prefix.length() / 8
}

/// The key of a prefix.
pub(crate) fn key(prefix: &Ipv6Prefix) -> Key {
    cut(prefix, whole_bytes(prefix))
}

fn cut(prefix: &Ipv6Prefix, bytes: u8) -> Key {
    let octets = prefix.address().octets();
    let mut key = Key::from_slice(&[bytes]);
    key.extend(octets.into_iter().take(usize::from(bytes)));
    key
}

/// A length in bytes that a key of the store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLength(pub(crate) u8);

impl Record for KeyLength {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "sbr_prefix_length",
        indexes: &[],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        Key::from_slice(&[self.0])
    }

    fn index(&self, _: &mut IndexKeys) {}

    fn encode(&self, _: &mut Vec<u8>) {}

    fn decode(key: &[u8], _: &[u8]) -> Result<Self, DecodeError> {
        let lengths = MIN_LENGTH / 8..=MAX_LENGTH / 8;
        match key {
            [length] if lengths.contains(length) => Ok(Self(*length)),
            _ => Err(DecodeError("the length of a prefix is expected".to_owned())),
        }
    }
}

/// The lengths that keys of the store have, as far as this process knows.
#[derive(Debug)]
pub(crate) struct Lengths(AtomicU32);

impl Default for Lengths {
    fn default() -> Self {
        Self(AtomicU32::new(1 << 8))
    }
}

impl Lengths {
    /// The length of the key of a prefix, where it is not known yet.
    pub(crate) fn unknown(&self, prefix: &Ipv6Prefix) -> Option<KeyLength> {
        let bytes = whole_bytes(prefix);
        (self.0.load(Relaxed) & (1 << bytes) == 0).then_some(KeyLength(bytes))
    }

    /// Notes a length that the store has.
    pub(crate) fn note(&self, length: KeyLength) {
        self.0.fetch_or(1 << length.0, Relaxed);
    }

    /// The keys under which a prefix may be that holds this one: those of known lengths, the longest first, and then the
    /// others, which another router may have written since this one has read the lengths.
    pub(crate) fn keys(&self, wanted: &Ipv6Prefix) -> impl Iterator<Item = Key> {
        let (seen, wanted) = (self.0.load(Relaxed), *wanted);
        let all = move || (MIN_LENGTH / 8..=whole_bytes(&wanted)).rev();
        let known = all().filter(move |bytes| seen & (1 << bytes) != 0);
        let others = all().filter(move |bytes| seen & (1 << bytes) == 0);
        known.chain(others).map(move |bytes| cut(&wanted, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Ipv6Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_comes_upon_the_key_of_each_prefix_that_holds_it() {
        let address = prefix("2001:db8:1:2:3:4:5:6/128");
        for length in MIN_LENGTH..=MAX_LENGTH {
            let holds = Ipv6Prefix::new(address.address(), length);
            let lengths = Lengths::default();
            assert!(lengths.keys(&address).any(|one| one == key(&holds)), "{length}");
            if let Some(unknown) = lengths.unknown(&holds) {
                lengths.note(unknown);
            }
            assert_eq!(lengths.unknown(&holds), None);
            assert!(lengths.keys(&address).any(|one| one == key(&holds)), "{length}");
        }
    }

    #[test]
    fn the_first_key_is_that_of_64_bits() {
        let first = Lengths::default()
            .keys(&prefix("2001:db8:1:2:3:4:5:6/128"))
            .next();
        assert_eq!(first, Some(key(&prefix("2001:db8:1:2::/64"))));
        // A wider prefix is looked up among those at least as wide.
        let wide = Lengths::default();
        assert!(
            wide.keys(&prefix("2001:db8::/48"))
                .all(|one| one.first() <= Some(&6))
        );
    }
}
