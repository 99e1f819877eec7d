//! Frames as bytes, and bytes as frames.

use bytes::{Buf, Bytes, BytesMut};

use super::huffman;

/// Frame types (RFC 9113 §6).
#[allow(missing_docs)]
pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Frame flags; ACK and END_STREAM are the same bit.
#[allow(missing_docs)]
pub mod flag {
    pub const ACK: u8 = 1;
    pub const END_STREAM: u8 = 1;
    pub const END_HEADERS: u8 = 4;
}

/// Settings (RFC 9113 §6.5.2).
#[allow(missing_docs)]
pub mod setting {
    pub const HEADER_TABLE_SIZE: u16 = 1;
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
}

/// A frame that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// One of [`kind`].
    pub kind: u8,
    /// Bits of [`flag`].
    pub flags: u8,
    /// Stream, 0 for the connection.
    pub stream: u32,
    /// What follows the nine bytes.
    pub payload: Bytes,
}

impl Frame {
    /// Takes a whole frame from the front of `bytes`, when there is one.
    pub fn take(bytes: &mut BytesMut) -> Option<Self> {
        let head = bytes.get(..9)?;
        let len = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        if bytes.len() < 9 + len {
            return None;
        }
        let (kind, flags) = (head[3], head[4]);
        let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        bytes.advance(9);
        let payload = bytes.split_to(len).freeze();
        Some(Self {
            kind,
            flags,
            stream,
            payload,
        })
    }

    /// Whether it ends its stream.
    #[must_use]
    pub fn ends_stream(&self) -> bool {
        self.flags & flag::END_STREAM != 0
    }

    /// Error code of RST_STREAM or GOAWAY.
    #[must_use]
    pub fn code(&self) -> Option<u32> {
        let at = match self.kind {
            kind::RST_STREAM => 0,
            kind::GOAWAY => 4,
            _ => return None,
        };
        let code = self.payload.get(at..at + 4)?;
        Some(u32::from_be_bytes(code.try_into().ok()?))
    }

    /// Last stream of GOAWAY.
    #[must_use]
    pub fn last_stream(&self) -> Option<u32> {
        (self.kind == kind::GOAWAY).then_some(())?;
        Some(u32::from_be_bytes(self.payload.get(..4)?.try_into().ok()?))
    }

    /// `:status` of a HEADERS frame. It stands first (RFC 9113 §8.3), as an index of the static table or as
    /// three digits; the peer forbids the dynamic table, so there is no third way.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        (self.kind == kind::HEADERS).then_some(())?;
        const STATIC: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
        // A change of the table's size may precede (RFC 7541 §6.3).
        let mut block = &self.payload[..];
        while block.first().is_some_and(|byte| byte & 0xe0 == 0x20) {
            block = &block[1..];
        }
        let (first, rest) = block.split_first()?;
        match first {
            0x88..=0x8e => Some(STATIC[usize::from(first - 0x88)]),
            // Literal with the name `:status`: with indexing, without, never indexed.
            0x48 | 0x08 | 0x18 => {
                let (len, rest) = rest.split_first()?;
                let text = rest.get(..usize::from(len & 0x7f))?;
                let digits = if len & 0x80 == 0 {
                    text.to_vec()
                } else {
                    huffman::digits(text)?
                };
                std::str::from_utf8(&digits).ok()?.parse().ok()
            }
            _ => None,
        }
    }
}

/// Any frame at all.
#[must_use]
pub fn raw(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut bytes = vec![len[1], len[2], len[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// A header block of literals, never indexed and without Huffman coding (RFC 7541 §6.2.3).
#[must_use]
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in fields {
        bytes.push(0x10);
        for text in [name, value] {
            length(&mut bytes, text.len());
            bytes.extend(text.as_bytes());
        }
    }
    bytes
}

/// An integer with a prefix of seven bits (RFC 7541 §5.1).
fn length(into: &mut Vec<u8>, len: usize) {
    if len < 127 {
        into.push(len as u8);
        return;
    }
    into.push(127);
    let mut rest = len - 127;
    while rest >= 128 {
        into.push((rest % 128) as u8 | 0x80);
        rest /= 128;
    }
    into.push(rest as u8);
}

/// HEADERS with the whole block.
#[must_use]
pub fn headers(stream: u32, fields: &[(&str, &str)], end_stream: bool) -> Vec<u8> {
    let flags = flag::END_HEADERS | if end_stream { flag::END_STREAM } else { 0 };
    raw(kind::HEADERS, flags, stream, &block(fields))
}

/// The fields of a request.
#[must_use]
pub fn request_fields<'a>(method: &'a str, path: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        (":method", method),
        (":scheme", "http"),
        (":authority", "test.example"),
        (":path", path),
    ]
}

/// A request without a body.
#[must_use]
pub fn get(stream: u32, path: &str) -> Vec<u8> {
    headers(stream, &request_fields("GET", path), true)
}

/// The head of a request whose body is to follow.
#[must_use]
pub fn post(stream: u32, path: &str) -> Vec<u8> {
    headers(stream, &request_fields("POST", path), false)
}

/// The head of a response.
#[must_use]
pub fn status(stream: u32, status: u16, end_stream: bool) -> Vec<u8> {
    headers(stream, &[(":status", &status.to_string())], end_stream)
}

/// DATA.
#[must_use]
pub fn data(stream: u32, bytes: &[u8], end_stream: bool) -> Vec<u8> {
    let flags = if end_stream { flag::END_STREAM } else { 0 };
    raw(kind::DATA, flags, stream, bytes)
}

/// RST_STREAM.
#[must_use]
pub fn reset(stream: u32, code: u32) -> Vec<u8> {
    raw(kind::RST_STREAM, 0, stream, &code.to_be_bytes())
}

/// SETTINGS.
#[must_use]
pub fn settings(pairs: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> = pairs
        .iter()
        .flat_map(|(id, value)| id.to_be_bytes().into_iter().chain(value.to_be_bytes()))
        .collect();
    raw(kind::SETTINGS, 0, 0, &payload)
}

/// PING.
#[must_use]
pub fn ping(opaque: [u8; 8]) -> Vec<u8> {
    raw(kind::PING, 0, 0, &opaque)
}

/// GOAWAY.
#[must_use]
pub fn goaway(last_stream: u32, code: u32) -> Vec<u8> {
    let mut payload = last_stream.to_be_bytes().to_vec();
    payload.extend(code.to_be_bytes());
    raw(kind::GOAWAY, 0, 0, &payload)
}

/// WINDOW_UPDATE.
#[must_use]
pub fn window(stream: u32, more: u32) -> Vec<u8> {
    raw(kind::WINDOW_UPDATE, 0, stream, &more.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let mut bytes = BytesMut::from(&data(7, b"abc", true)[..]);
        bytes.extend(goaway(5, 11));
        let data = Frame::take(&mut bytes).unwrap();
        assert_eq!(
            (data.stream, &data.payload[..], data.ends_stream()),
            (7, &b"abc"[..], true)
        );
        let goaway = Frame::take(&mut bytes).unwrap();
        assert_eq!((goaway.last_stream(), goaway.code()), (Some(5), Some(11)));
        assert_eq!(Frame::take(&mut bytes), None);
    }

    #[test]
    fn statuses() {
        let status_of = |block: &[u8]| {
            let bytes = raw(kind::HEADERS, flag::END_HEADERS, 1, block);
            Frame::take(&mut BytesMut::from(&bytes[..])).unwrap().status()
        };
        assert_eq!(status_of(&[0x88]), Some(200));
        assert_eq!(status_of(&[0x48, 0x03, b'4', b'2', b'9']), Some(429));
        // 413 in Huffman code: 011010 00001 011001 and ones to the end of the byte.
        assert_eq!(
            status_of(&[0x20, 0x08, 0x83, 0b0110_1000, 0b0010_1100, 0b1111_1111]),
            Some(413)
        );
        assert_eq!(status_of(&[]), None);
    }

    #[test]
    fn long_values() {
        let long = "x".repeat(1_000);
        let block = block(&[("a", &long)]);
        // 1000 - 127 = 873 = 6 * 128 + 105.
        assert_eq!(block[..6], [0x10, 1, b'a', 127, 105 | 0x80, 6]);
        assert_eq!(block.len(), 1_006);
    }
}
