//! Exported PDUs (link type 252, *Wireshark Upper PDU*): tags, each with a length, and the message behind them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::file::Packet;
use crate::{Captured, head};

const END: u16 = 0;
const DISSECTOR: u16 = 12;
const IPV4_SOURCE: u16 = 20;
const IPV4_DESTINATION: u16 = 21;
const IPV6_SOURCE: u16 = 22;
const IPV6_DESTINATION: u16 = 23;
const SOURCE_PORT: u16 = 25;
const DESTINATION_PORT: u16 = 26;

/// The Diameter message of a packet; none: it is of another protocol, not whole, or without addresses.
pub(crate) fn message<'p>(packet: &Packet<'p>) -> Option<Captured<'p>> {
    let (mut from, mut to) = ((None, 0), (None, 0));
    let mut is_diameter = false;
    let mut rest = packet.data;
    loop {
        let (tag, value, behind) = tag(rest)?;
        rest = behind;
        match tag {
            END => break,
            DISSECTOR => is_diameter = trimmed(value) == b"diameter",
            IPV4_SOURCE | IPV6_SOURCE => from.0 = address(value),
            IPV4_DESTINATION | IPV6_DESTINATION => to.0 = address(value),
            SOURCE_PORT => from.1 = port(value)?,
            DESTINATION_PORT => to.1 = port(value)?,
            _ => {}
        }
    }
    let is_whole = head::length(rest) == Some(rest.len());
    (is_diameter && is_whole).then_some(())?;
    Some(Captured {
        at: packet.at,
        from: SocketAddr::new(from.0?, from.1),
        to: SocketAddr::new(to.0?, to.1),
        comment: packet.comment,
        bytes: rest,
    })
}

/// A tag, its value and what follows.
fn tag(data: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let [a, b, c, d, rest @ ..] = data else {
        return None;
    };
    let length = usize::from(u16::from_be_bytes([*c, *d]));
    let (value, rest) = rest.split_at_checked(length)?;
    Some((u16::from_be_bytes([*a, *b]), value, rest))
}

/// Text, which may be filled with zeros.
fn trimmed(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| *byte == 0);
    text.get(..end.unwrap_or(text.len())).unwrap_or_default()
}

fn address(value: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(value).map(|bytes| Ipv4Addr::from(bytes).into());
    four.or_else(|_| <[u8; 16]>::try_from(value).map(|bytes| Ipv6Addr::from(bytes).into()))
        .ok()
}

fn port(value: &[u8]) -> Option<u16> {
    let port = u32::from_be_bytes(value.try_into().ok()?);
    u16::try_from(port).ok()
}
