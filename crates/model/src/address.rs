//! Ranges of IP addresses (TS 29.510 §6.1.6.2.13, .14; TS 29.571 §5.2.2).

use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// IPv4 addresses from `start` to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Ipv4Range {
    /// First address.
    pub start: Ipv4Addr,
    /// Last address.
    pub end: Ipv4Addr,
}

impl Ipv4Range {
    /// Whether the address lies in the range.
    #[must_use]
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        (self.start..=self.end).contains(&address)
    }
}

/// An IPv6 prefix with its length; the bits after it are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipv6Prefix {
    bits: u128,
    length: u8,
}

impl Ipv6Prefix {
    /// The prefix of an address.
    #[must_use]
    pub fn new(address: Ipv6Addr, length: u8) -> Self {
        let length = length.min(128);
        let mask = if length == 0 {
            0
        } else {
            u128::MAX << (128 - u32::from(length))
        };
        Self {
            bits: u128::from(address) & mask,
            length,
        }
    }

    /// First and last address under the prefix.
    #[must_use]
    pub fn bounds(&self) -> (u128, u128) {
        let host = if self.length == 128 {
            0
        } else {
            u128::MAX >> u32::from(self.length)
        };
        (self.bits, self.bits | host)
    }

    /// Whether `other` lies under this prefix.
    #[must_use]
    pub fn covers(&self, other: &Ipv6Prefix) -> bool {
        let (first, last) = self.bounds();
        let (start, end) = other.bounds();
        first <= start && end <= last
    }

    /// Number of leading bits that count.
    #[must_use]
    pub fn length(&self) -> u8 {
        self.length
    }

    /// The first address.
    #[must_use]
    pub fn address(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.bits)
    }
}

impl FromStr for Ipv6Prefix {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected an IPv6 prefix, address/length with a length of 0 to 128";
        let (address, length) = text.split_once('/').ok_or(EXPECTED)?;
        let length: u8 = length.parse().map_err(|_| EXPECTED)?;
        if length > 128 {
            return Err(EXPECTED);
        }
        Ok(Self::new(address.parse().map_err(|_| EXPECTED)?, length))
    }
}

impl<'de> Deserialize<'de> for Ipv6Prefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// IPv6 prefixes from `start` to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Ipv6PrefixRange {
    /// First prefix.
    pub start: Ipv6Prefix,
    /// Last prefix.
    pub end: Ipv6Prefix,
}

impl Ipv6PrefixRange {
    /// Whether the whole prefix lies in the range.
    #[must_use]
    pub fn contains(&self, prefix: &Ipv6Prefix) -> bool {
        let (start, end) = prefix.bounds();
        self.start.bounds().0 <= start && end <= self.end.bounds().1
    }
}

/// One IP address of any family, or a prefix (TS 29.571 §5.4.4.61).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum IpAddrChoice {
    /// An IPv4 address.
    #[serde(rename = "ipv4Addr")]
    V4(Ipv4Addr),
    /// An IPv6 address.
    #[serde(rename = "ipv6Addr")]
    V6(Ipv6Addr),
    /// An IPv6 prefix.
    #[serde(rename = "ipv6Prefix")]
    Prefix(Ipv6Prefix),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_and_ranges() {
        let wide: Ipv6Prefix = "2001:db8::/32".parse().unwrap();
        let narrow: Ipv6Prefix = "2001:db8:1::/48".parse().unwrap();
        assert!(wide.covers(&narrow) && !narrow.covers(&wide));
        assert!("::/0".parse::<Ipv6Prefix>().unwrap().covers(&wide));
        assert!("::1/129".parse::<Ipv6Prefix>().is_err());
        assert!("::1".parse::<Ipv6Prefix>().is_err());
        let range = Ipv6PrefixRange {
            start: "2001:db8::/48".parse().unwrap(),
            end: "2001:db8:ff::/48".parse().unwrap(),
        };
        assert!(range.contains(&narrow));
        assert!(!range.contains(&wide));
        let range: Ipv4Range = serde_json::from_str(r#"{"start":"10.0.0.1","end":"10.0.0.9"}"#).unwrap();
        assert!(range.contains("10.0.0.9".parse().unwrap()) && !range.contains("10.0.0.10".parse().unwrap()));
    }
}
