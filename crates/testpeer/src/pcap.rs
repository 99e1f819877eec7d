//! Captures as a test wants them: segments of TCP and chunks of SCTP, in any order and any link type.

use std::net::SocketAddrV4;

/// Link type of Ethernet.
pub const ETHERNET: u32 = 1;

/// A capture in the format of pcap, with microseconds.
#[derive(Clone, Debug)]
pub struct Pcap {
    bytes: Vec<u8>,
    /// Seconds of the next packet.
    at: u32,
}

impl Pcap {
    /// A capture without packets.
    #[must_use]
    pub fn new(link_type: u32) -> Self {
        let mut bytes = Vec::new();
        for word in [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 1 << 18, link_type] {
            bytes.extend_from_slice(&u32::to_le_bytes(word));
        }
        Self {
            bytes,
            at: 1_700_000_000,
        }
    }

    /// Adds a packet, a second after the one before.
    pub fn packet(&mut self, data: &[u8]) {
        self.cut(data, data.len());
    }

    /// Adds the first bytes of a packet.
    pub fn cut(&mut self, data: &[u8], captured: usize) {
        for word in [self.at, 0, captured as u32, data.len() as u32] {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
        self.bytes.extend_from_slice(&data[..captured]);
        self.at += 1;
    }

    /// The file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A packet of IPv4 with this protocol.
#[must_use]
pub fn ipv4(from: SocketAddrV4, to: SocketAddrV4, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend_from_slice(&(20 + payload.len() as u16).to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0, 0, 64, protocol, 0, 0]);
    packet.extend_from_slice(&from.ip().octets());
    packet.extend_from_slice(&to.ip().octets());
    packet.extend_from_slice(payload);
    packet
}

/// A segment of TCP in IPv4: sequence number, what it acknowledges, and flags.
#[must_use]
pub fn tcp(
    from: SocketAddrV4,
    to: SocketAddrV4,
    (sequence, acknowledges, flags): (u32, u32, u8),
    data: &[u8],
) -> Vec<u8> {
    let mut segment = ports(from, to);
    segment.extend_from_slice(&sequence.to_be_bytes());
    segment.extend_from_slice(&acknowledges.to_be_bytes());
    segment.extend_from_slice(&[5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
    segment.extend_from_slice(data);
    ipv4(from, to, 6, &segment)
}

/// A packet of SCTP in IPv4 with one chunk of data: transmission sequence number, and flags.
#[must_use]
pub fn sctp(from: SocketAddrV4, to: SocketAddrV4, (number, flags): (u32, u8), data: &[u8]) -> Vec<u8> {
    let mut packet = ports(from, to);
    packet.extend_from_slice(&[0; 8]);
    packet.extend_from_slice(&[0, flags]);
    packet.extend_from_slice(&(16 + data.len() as u16).to_be_bytes());
    packet.extend_from_slice(&number.to_be_bytes());
    // Stream and its number, and the payload protocol identifier of Diameter.
    packet.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 46]);
    packet.extend_from_slice(data);
    packet.resize(packet.len().next_multiple_of(4), 0);
    ipv4(from, to, 132, &packet)
}

/// A packet of IPv4 in an Ethernet frame.
#[must_use]
pub fn ethernet(packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend_from_slice(&[8, 0]);
    frame.extend_from_slice(packet);
    frame
}

fn ports(from: SocketAddrV4, to: SocketAddrV4) -> Vec<u8> {
    [from.port().to_be_bytes(), to.port().to_be_bytes()].concat()
}
