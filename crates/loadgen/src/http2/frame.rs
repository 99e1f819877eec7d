//! Frame headers and the small frames (RFC 9113 §4, §6).

pub(super) const DATA: u8 = 0x0;
pub(super) const HEADERS: u8 = 0x1;
pub(super) const RST_STREAM: u8 = 0x3;
pub(super) const SETTINGS: u8 = 0x4;
pub(super) const PUSH_PROMISE: u8 = 0x5;
pub(super) const PING: u8 = 0x6;
pub(super) const GOAWAY: u8 = 0x7;
pub(super) const WINDOW_UPDATE: u8 = 0x8;
pub(super) const CONTINUATION: u8 = 0x9;

pub(super) const END_STREAM: u8 = 0x1;
pub(super) const ACK: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
pub(super) const PADDED: u8 = 0x8;
pub(super) const PRIORITY: u8 = 0x20;

pub(super) const SETTING_HEADER_TABLE_SIZE: u16 = 0x1;
pub(super) const SETTING_ENABLE_PUSH: u16 = 0x2;
pub(super) const SETTING_MAX_CONCURRENT_STREAMS: u16 = 0x3;
pub(super) const SETTING_INITIAL_WINDOW_SIZE: u16 = 0x4;
pub(super) const SETTING_MAX_FRAME_SIZE: u16 = 0x5;

/// What a client sends first (RFC 9113 §3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of a frame header.
pub(super) const HEADER: usize = 9;
/// The largest payload every peer accepts.
pub(super) const DEFAULT_PAYLOAD: usize = 16_384;

/// A frame header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Header {
    /// Reads a header; `None` while there are fewer than nine bytes.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let b = bytes.first_chunk::<HEADER>()?;
        Some(Self {
            length: usize::from(b[0]) << 16 | usize::from(b[1]) << 8 | usize::from(b[2]),
            kind: b[3],
            flags: b[4],
            stream: u32::from_be_bytes([b[5], b[6], b[7], b[8]]) & 0x7fff_ffff,
        })
    }

    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame header.
pub(super) fn put_header(out: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    out.extend_from_slice(&[a, b, c, kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
}

/// Appends a frame whose payload is one 32-bit number.
pub(super) fn put_number(out: &mut Vec<u8>, kind: u8, stream: u32, number: u32) {
    put_header(out, 4, kind, 0, stream);
    out.extend_from_slice(&number.to_be_bytes());
}

/// Appends a SETTINGS frame.
pub(super) fn put_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    put_header(out, settings.len() * 6, SETTINGS, 0, 0);
    for (id, value) in settings {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// The payload of a DATA or HEADERS frame without padding and priority; `None` when they do not fit.
pub(super) fn unpadded(header: Header, payload: &[u8]) -> Option<&[u8]> {
    let (mut payload, mut padding) = (payload, 0);
    if header.has(PADDED) {
        let (length, rest) = payload.split_first()?;
        (payload, padding) = (rest, usize::from(*length));
    }
    if header.kind == HEADERS && header.has(PRIORITY) {
        payload = payload.get(5..)?;
    }
    payload.get(..payload.len().checked_sub(padding)?)
}

/// A 32-bit number at the start of a payload.
pub(super) fn number(payload: &[u8]) -> Option<u32> {
    payload.first_chunk::<4>().map(|b| u32::from_be_bytes(*b))
}
