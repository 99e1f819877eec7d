//! The twenty bytes every message begins with (RFC 6733 §3).

use std::fmt;

/// Length of the message header.
pub const HEADER_LEN: usize = 20;
/// The only version there is.
pub const VERSION: u8 = 1;
/// The largest value of a 24-bit length field.
pub const MAX_LENGTH: usize = 0x00ff_ffff;

/// Command flags (RFC 6733 §3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CommandFlags(pub u8);

impl CommandFlags {
    /// The message is a request.
    pub const REQUEST: Self = Self(0x80);
    /// The message may be proxied, relayed or redirected.
    pub const PROXIABLE: Self = Self(0x40);
    /// The answer reports a protocol error and need not follow the command's grammar.
    pub const ERROR: Self = Self(0x20);
    /// The request may be a duplicate: it was sent before and not answered.
    pub const RETRANSMITTED: Self = Self(0x10);
    /// Reserved bits; sent as zero and ignored by receivers.
    pub const RESERVED: Self = Self(0x0f);

    /// Whether every bit of `other` is set.
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags and those of `other`.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These flags without those of `other`.
    #[inline]
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether this is a request.
    #[inline]
    #[must_use]
    pub const fn is_request(self) -> bool {
        self.contains(Self::REQUEST)
    }
}

impl fmt::Debug for CommandFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `RP`, `RPT`, `E`, `-`: a letter per bit, `r` and the bits in hexadecimal for reserved ones.
impl fmt::Display for CommandFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("-");
        }
        for (flag, letter) in [
            (Self::REQUEST, "R"),
            (Self::PROXIABLE, "P"),
            (Self::ERROR, "E"),
            (Self::RETRANSMITTED, "T"),
        ] {
            if self.contains(flag) {
                f.write_str(letter)?;
            }
        }
        match self.0 & Self::RESERVED.0 {
            0 => Ok(()),
            reserved => write!(f, "r{reserved:x}"),
        }
    }
}

/// A decoded header. [`crate::Message`] reads the fields one by one where they lie; this is for building,
/// printing and for what remains of a message that could not be framed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Version as received.
    pub version: u8,
    /// Message length as claimed, header included.
    pub length: u32,
    /// Command flags.
    pub flags: CommandFlags,
    /// Command code.
    pub command: u32,
    /// Application the message belongs to.
    pub application: u32,
    /// Matches an answer to its request on one connection.
    pub hop_by_hop: u32,
    /// Identifies duplicates of a request end to end.
    pub end_to_end: u32,
}

impl Header {
    /// Reads the fields; checks nothing.
    #[must_use]
    pub fn decode(bytes: &[u8; HEADER_LEN]) -> Self {
        let [
            version,
            l0,
            l1,
            l2,
            flags,
            c0,
            c1,
            c2,
            a0,
            a1,
            a2,
            a3,
            h0,
            h1,
            h2,
            h3,
            e0,
            e1,
            e2,
            e3,
        ] = *bytes;
        Self {
            version,
            length: u32::from_be_bytes([0, l0, l1, l2]),
            flags: CommandFlags(flags),
            command: u32::from_be_bytes([0, c0, c1, c2]),
            application: u32::from_be_bytes([a0, a1, a2, a3]),
            hop_by_hop: u32::from_be_bytes([h0, h1, h2, h3]),
            end_to_end: u32::from_be_bytes([e0, e1, e2, e3]),
        }
    }

    /// The wire form. Length and command use their low 24 bits.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        out[0..4].copy_from_slice(&self.length.to_be_bytes());
        out[0] = self.version;
        out[4..8].copy_from_slice(&self.command.to_be_bytes());
        out[4] = self.flags.0;
        out[8..12].copy_from_slice(&self.application.to_be_bytes());
        out[12..16].copy_from_slice(&self.hop_by_hop.to_be_bytes());
        out[16..20].copy_from_slice(&self.end_to_end.to_be_bytes());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_survive_the_wire() {
        let header = Header {
            version: 1,
            length: 0x01_02_03,
            flags: CommandFlags::REQUEST.with(CommandFlags::PROXIABLE),
            command: 316,
            application: 16_777_251,
            hop_by_hop: 0xdead_beef,
            end_to_end: 0x0bad_cafe,
        };
        assert_eq!(Header::decode(&header.encode()), header);
        assert_eq!(header.flags.to_string(), "RP");
    }
}
