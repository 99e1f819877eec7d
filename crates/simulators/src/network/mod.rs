//! The simulated network: names, addresses and profiles that simulators and the traffic towards them share.

pub mod population;
pub mod profiles;

use std::net::{IpAddr, Ipv4Addr};

/// The realm of the Diameter nodes (TS 23.003 §19.2).
pub const REALM: &str = "epc.mnc001.mcc001.3gppnetwork.org";
/// Bytes that the Session-Id takes in each Diameter message.
pub const SESSION_BYTES: usize = 64;

/// Loopback addresses that end in one byte.
const BYTE: u32 = 250;

/// The FQDN of a producer.
#[must_use]
pub fn name_of(number: u32) -> String {
    format!("nf-{number}.lab.test")
}

/// The number of the producer of this FQDN, in lower case.
#[must_use]
pub fn number_named(name: &str) -> Option<u32> {
    name.strip_prefix("nf-")?.strip_suffix(".lab.test")?.parse().ok()
}

/// The loopback address of a producer.
#[must_use]
pub fn address_of(number: u32) -> Ipv4Addr {
    let byte = |value: u32| u8::try_from(value % 256).unwrap_or_default();
    Ipv4Addr::new(127, 1, byte(1 + number / BYTE), byte(1 + number % BYTE))
}

/// The producer at a loopback address.
#[must_use]
pub fn number_of(address: IpAddr) -> Option<u32> {
    let IpAddr::V4(address) = address else { return None };
    let [127, 1, high, low] = address.octets() else {
        return None;
    };
    let (high, low) = (high.checked_sub(1)?, low.checked_sub(1)?);
    Some(u32::from(high) * BYTE + u32::from(low))
}

/// The NF instance id of a producer.
#[must_use]
pub fn instance_of(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn producers_have_addresses_of_their_own_and_are_known_by_them() {
        for number in (0..10_000).step_by(7) {
            assert_eq!(number_of(address_of(number).into()), Some(number));
        }
        assert_eq!(number_of(IpAddr::V4(Ipv4Addr::LOCALHOST)), None);
        assert_eq!(address_of(251), Ipv4Addr::new(127, 1, 2, 2));
    }
}
