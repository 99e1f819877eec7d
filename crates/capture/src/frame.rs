//! Addresses and payload of a packet.

use std::net::{IpAddr, SocketAddr};

use etherparse::{EtherType, IpNumber, LaxNetSlice, LaxSlicedPacket, TransportSlice};

use crate::file::Packet;

/// Link types (tcpdump.org/linktypes.html).
const NULL: i32 = 0;
const ETHERNET: i32 = 1;
const RAW_OF_OTHERS: [i32; 2] = [12, 14];
const RAW: i32 = 101;
const LOOP: i32 = 108;
const LINUX_COOKED: i32 = 113;
const IPV4: i32 = 228;
const IPV6: i32 = 229;
const LINUX_COOKED_2: i32 = 276;

/// Why a packet is of no stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Misfit {
    /// It is a fragment of an IP packet.
    Fragment,
    /// It is not IP, TCP or SCTP, or framed wrong.
    Other,
}

/// What a packet carries from one port to another.
#[derive(Debug)]
pub(crate) struct Segment<'p> {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) content: Content<'p>,
}

#[derive(Debug)]
pub(crate) enum Content<'p> {
    Tcp(Tcp<'p>),
    /// The chunks of an SCTP packet.
    Sctp(&'p [u8]),
}

/// A segment of TCP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tcp<'p> {
    pub(crate) sequence: u32,
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
    /// What its sender has received.
    pub(crate) acknowledges: Option<u32>,
    pub(crate) data: &'p [u8],
}

/// The segment in a packet.
pub(crate) fn segment<'p>(packet: &Packet<'p>) -> Result<Segment<'p>, Misfit> {
    let sliced = slice(packet.link_type, packet.data).ok_or(Misfit::Other)?;
    let (from, to): (IpAddr, IpAddr) = match &sliced.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            (header.source_addr().into(), header.destination_addr().into())
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            (header.source_addr().into(), header.destination_addr().into())
        }
        _ => return Err(Misfit::Other),
    };
    let payload = sliced.ip_payload().ok_or(Misfit::Other)?;
    if payload.fragmented {
        return Err(Misfit::Fragment);
    }
    if let Some(TransportSlice::Tcp(tcp)) = &sliced.transport {
        let header = tcp.header_len();
        return Ok(Segment {
            from: SocketAddr::new(from, tcp.source_port()),
            to: SocketAddr::new(to, tcp.destination_port()),
            content: Content::Tcp(Tcp {
                sequence: tcp.sequence_number(),
                is_first: tcp.syn(),
                is_last: tcp.fin() || tcp.rst(),
                acknowledges: tcp.ack().then(|| tcp.acknowledgment_number()),
                data: tcp.slice().get(header..).unwrap_or_default(),
            }),
        });
    }
    if payload.ip_number != IpNumber::SCTP {
        return Err(Misfit::Other);
    }
    // The common header (RFC 9260 §3.1): ports, verification tag and checksum, which a network card may fill in later.
    match payload.payload {
        [a, b, c, d, _, _, _, _, _, _, _, _, chunks @ ..] => Ok(Segment {
            from: SocketAddr::new(from, u16::from_be_bytes([*a, *b])),
            to: SocketAddr::new(to, u16::from_be_bytes([*c, *d])),
            content: Content::Sctp(chunks),
        }),
        _ => Err(Misfit::Other),
    }
}

fn slice(link_type: i32, data: &[u8]) -> Option<LaxSlicedPacket<'_>> {
    match link_type {
        ETHERNET => LaxSlicedPacket::from_ethernet(data).ok(),
        // The address family is in the byte order of the machine; the packet says its version itself.
        NULL | LOOP => LaxSlicedPacket::from_ip(data.get(4..)?).ok(),
        LINUX_COOKED => cooked(data, 14, 16),
        LINUX_COOKED_2 => cooked(data, 0, 20),
        RAW | IPV4 | IPV6 => LaxSlicedPacket::from_ip(data).ok(),
        other if RAW_OF_OTHERS.contains(&other) => LaxSlicedPacket::from_ip(data).ok(),
        _ => None,
    }
}

/// A packet behind a header of cooked capture, which has the protocol at `protocol`.
fn cooked(data: &[u8], protocol: usize, header: usize) -> Option<LaxSlicedPacket<'_>> {
    let [high, low] = *data.get(protocol..protocol + 2)? else {
        return None;
    };
    let kind = EtherType(u16::from_be_bytes([high, low]));
    Some(LaxSlicedPacket::from_ether_type(kind, data.get(header..)?))
}
