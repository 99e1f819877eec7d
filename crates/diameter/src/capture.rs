//! Messages as a pcapng file that Wireshark opens (draft-ietf-opsawg-pcapng).
//!
//! Each message is a packet of link type 252, *Wireshark Upper PDU*: tags say what it is (Diameter, HTTP/2), between
//! which addresses and ports; no made-up TCP segments, so any port decodes, any length fits, and what was
//! under TLS can be read.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::{SystemTime, UNIX_EPOCH};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const LINK_TYPE_UPPER_PDU: u16 = 252;
const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const OPTION_APPLICATION: u16 = 4;
/// Tags of link type 252.
const TAG_PROTOCOL: u16 = 12;
const TAG_IPV4_SOURCE: u16 = 20;
const TAG_IPV4_DESTINATION: u16 = 21;
const TAG_IPV6_SOURCE: u16 = 22;
const TAG_IPV6_DESTINATION: u16 = 23;
const TAG_PORT_TYPE: u16 = 24;
const TAG_SOURCE_PORT: u16 = 25;
const TAG_DESTINATION_PORT: u16 = 26;
const PORT_TYPE_TCP: u32 = 2;

/// Writes messages to a file, pipe or buffer.
#[derive(Debug)]
pub struct Capture<W: Write> {
    out: W,
    block: Vec<u8>,
}

impl<W: Write> Capture<W> {
    /// Begins a capture.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W) -> io::Result<Self> {
        let mut capture = Self {
            out,
            block: Vec::new(),
        };
        capture.begin(SECTION_HEADER);
        capture.put(&BYTE_ORDER.to_le_bytes());
        // Version 1.0, length of the section not known.
        capture.put(&[1, 0, 0, 0]);
        capture.put(&u64::MAX.to_le_bytes());
        capture.option(OPTION_APPLICATION, b"Signalbox");
        capture.option(OPTION_END, &[]);
        capture.end()?;
        capture.begin(INTERFACE_DESCRIPTION);
        capture.put(&LINK_TYPE_UPPER_PDU.to_le_bytes());
        // Reserved, and no limit to a packet's length.
        capture.put(&[0; 6]);
        capture.end()?;
        Ok(capture)
    }

    /// Adds a Diameter message, given in pieces that follow one another. `comment` may say why it was captured.
    ///
    /// # Errors
    /// Those of the output.
    pub fn message(
        &mut self,
        at: SystemTime,
        from: SocketAddr,
        to: SocketAddr,
        pieces: &[&[u8]],
        comment: &str,
    ) -> io::Result<()> {
        self.message_of("diameter", at, (from, to), pieces, comment)
    }

    /// Adds a message that this dissector of Wireshark decodes.
    ///
    /// # Errors
    /// Those of the output.
    pub fn message_of(
        &mut self,
        dissector: &str,
        at: SystemTime,
        (from, to): (SocketAddr, SocketAddr),
        pieces: &[&[u8]],
        comment: &str,
    ) -> io::Result<()> {
        let micros = at
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_micros() as u64);
        self.begin(ENHANCED_PACKET);
        self.put(&0u32.to_le_bytes());
        self.put(&((micros >> 32) as u32).to_le_bytes());
        self.put(&(micros as u32).to_le_bytes());
        let lengths = self.block.len();
        self.put(&[0; 8]);
        let start = self.block.len();
        self.tag(TAG_PROTOCOL, dissector.as_bytes());
        self.address(from.ip().to_canonical(), TAG_IPV4_SOURCE, TAG_IPV6_SOURCE);
        self.address(to.ip().to_canonical(), TAG_IPV4_DESTINATION, TAG_IPV6_DESTINATION);
        self.tag(TAG_PORT_TYPE, &PORT_TYPE_TCP.to_be_bytes());
        self.tag(TAG_SOURCE_PORT, &u32::from(from.port()).to_be_bytes());
        self.tag(TAG_DESTINATION_PORT, &u32::from(to.port()).to_be_bytes());
        self.tag(OPTION_END, &[]);
        for piece in pieces {
            self.put(piece);
        }
        let length = ((self.block.len() - start) as u32).to_le_bytes();
        self.block[lengths..lengths + 4].copy_from_slice(&length);
        self.block[lengths + 4..lengths + 8].copy_from_slice(&length);
        self.pad();
        if !comment.is_empty() {
            self.option(OPTION_COMMENT, comment.as_bytes());
            self.option(OPTION_END, &[]);
        }
        self.end()
    }

    /// Hands what is buffered to the operating system.
    ///
    /// # Errors
    /// Those of the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The output.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    fn pad(&mut self) {
        let padding = self.block.len().wrapping_neg() & 3;
        self.block.extend_from_slice(&[0; 3][..padding]);
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.put(&kind.to_le_bytes());
        self.put(&[0; 4]);
    }

    fn end(&mut self) -> io::Result<()> {
        let length = ((self.block.len() + 4) as u32).to_le_bytes();
        self.block[4..8].copy_from_slice(&length);
        self.put(&length);
        self.out.write_all(&self.block)
    }

    /// An option of a block, in the file's byte order. Values beyond 64 KiB are cut.
    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.put(&code.to_le_bytes());
        self.put(&(value.len() as u16).to_le_bytes());
        self.put(value);
        self.pad();
    }

    /// A tag of the packet, in network byte order, its value padded to a multiple of four.
    fn tag(&mut self, code: u16, value: &[u8]) {
        let padded = value.len().next_multiple_of(4);
        self.put(&code.to_be_bytes());
        self.put(&(padded as u16).to_be_bytes());
        self.put(value);
        self.block.extend(std::iter::repeat_n(0, padded - value.len()));
    }

    fn address(&mut self, ip: IpAddr, v4: u16, v6: u16) {
        match ip {
            IpAddr::V4(ip) => self.tag(v4, &ip.octets()),
            IpAddr::V6(ip) => self.tag(v6, &ip.octets()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole() {
        let mut capture = Capture::new(Vec::new()).unwrap();
        let (a, b) = ("127.0.0.1:1".parse().unwrap(), "[::1]:2".parse().unwrap());
        capture
            .message(SystemTime::now(), a, b, &[b"abc", b"defgh"], "why")
            .unwrap();
        capture.message(SystemTime::now(), b, a, &[b"x"], "").unwrap();
        let file = capture.into_inner();
        let (mut rest, mut kinds) = (&file[..], Vec::new());
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            let length = word(4) as usize;
            assert!(length.is_multiple_of(4));
            assert_eq!(word(length - 4) as usize, length);
            kinds.push(word(0));
            rest = &rest[length..];
        }
        assert_eq!(kinds, [SECTION_HEADER, 1, 6, 6]);
    }
}
