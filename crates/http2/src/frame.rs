//! Frames on the wire (RFC 9113 §4.1, §6): their heads, and how this side writes them.

use crate::error::Reason;

/// How a client begins (RFC 9113 §3.4).
pub(crate) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Length of the head of a frame.
pub(crate) const HEAD: usize = 9;
/// The frame size that every peer takes (RFC 9113 §4.2).
pub(crate) const MIN_MAX_FRAME: usize = 16_384;
/// The window with which connections and streams begin (RFC 9113 §6.9.2), and the largest one.
pub(crate) const INITIAL_WINDOW: u32 = 65_535;
pub(crate) const MAX_WINDOW: i64 = 0x7fff_ffff;
/// The highest stream identifier.
pub(crate) const MAX_STREAM: u32 = 0x7fff_ffff;

/// Frame types (RFC 9113 §6).
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const PRIORITY: u8 = 2;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub(crate) mod flag {
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// Identifiers of settings (RFC 9113 §6.5.2).
pub(crate) mod setting {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
    pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) len: usize,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
}

impl Head {
    #[inline]
    pub(crate) fn read(bytes: &[u8; HEAD]) -> Self {
        let [a, b, c, kind, flags, stream @ ..] = *bytes;
        Self {
            len: usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c),
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & MAX_STREAM,
        }
    }

    #[inline]
    pub(crate) fn bytes(self) -> [u8; HEAD] {
        let [_, a, b, c] = (self.len as u32).to_be_bytes();
        let [d, e, f, g] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, d, e, f, g]
    }

    #[inline]
    pub(crate) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame.
pub(crate) fn write(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let len = payload.len();
    let head = Head {
        len,
        kind,
        flags,
        stream,
    };
    out.extend_from_slice(&head.bytes());
    out.extend_from_slice(payload);
}

pub(crate) fn write_reset(out: &mut Vec<u8>, stream: u32, reason: Reason) {
    write(out, kind::RST_STREAM, 0, stream, &reason.code().to_be_bytes());
}

pub(crate) fn write_window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    write(out, kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes());
}

pub(crate) fn write_goaway(out: &mut Vec<u8>, last: u32, reason: Reason) {
    let mut payload = [0; 8];
    payload[..4].copy_from_slice(&last.to_be_bytes());
    payload[4..].copy_from_slice(&reason.code().to_be_bytes());
    write(out, kind::GOAWAY, 0, 0, &payload);
}

pub(crate) fn write_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    let payload = settings.iter().flat_map(|(id, value)| {
        let ([a, b], [c, d, e, f]) = (id.to_be_bytes(), value.to_be_bytes());
        [a, b, c, d, e, f]
    });
    let payload: Vec<u8> = payload.collect();
    write(out, kind::SETTINGS, 0, 0, &payload);
}

/// Turns what was appended to `out` since `start`, behind room for a head, into HEADERS, and CONTINUATION where it is
/// longer than `max`.
pub(crate) fn seal_headers(out: &mut Vec<u8>, start: usize, max: usize, stream: u32, end_stream: bool) {
    let len = out.len().saturating_sub(start + HEAD);
    let end_stream = if end_stream { flag::END_STREAM } else { 0 };
    let mut head = Head {
        len: len.min(max),
        kind: kind::HEADERS,
        flags: end_stream | if len <= max { flag::END_HEADERS } else { 0 },
        stream,
    };
    if let Some(room) = out.get_mut(start..start + HEAD) {
        room.copy_from_slice(&head.bytes());
    }
    if len > max {
        let rest = out.split_off(start + HEAD + max);
        let mut parts = rest.chunks(max).peekable();
        while let Some(part) = parts.next() {
            head.flags = if parts.peek().is_none() {
                flag::END_HEADERS
            } else {
                0
            };
            write(out, kind::CONTINUATION, head.flags, stream, part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_written() {
        let head = Head {
            len: 0x0a_0b0c,
            kind: kind::PING,
            flags: flag::ACK,
            stream: 0x7fff_fffe,
        };
        assert_eq!(Head::read(&head.bytes()), head);
        let mut reserved = head.bytes();
        reserved[5] |= 0x80;
        assert_eq!(Head::read(&reserved), head, "the reserved bit is ignored");
    }

    #[test]
    fn long_header_blocks_continue() {
        for (len, frames) in [(0, 1), (10, 1), (11, 2), (35, 4)] {
            let mut out = vec![9; 3 + HEAD];
            let block: Vec<u8> = (0..len).collect();
            out.extend(&block);
            seal_headers(&mut out, 3, 10, 5, true);
            let (mut seen, mut count, mut rest) = (Vec::new(), 0, &out[3..]);
            while let Some((bytes, payload)) = rest.split_first_chunk::<HEAD>() {
                let head = Head::read(bytes);
                count += 1;
                assert_eq!(head.has(flag::END_HEADERS), count == frames);
                assert_eq!(head.kind == kind::HEADERS, count == 1);
                assert_eq!(head.has(flag::END_STREAM), count == 1);
                seen.extend(&payload[..head.len]);
                rest = &payload[head.len..];
            }
            assert_eq!((seen, count), (block, frames));
        }
    }
}
