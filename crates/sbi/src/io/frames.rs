//! Where frames begin and end in a stream of bytes, whatever way the bytes are cut.

/// Length of the client's preface (RFC 9113 §3.4).
pub(super) const PREFACE: usize = 24;
/// Length of the head of a frame (RFC 9113 §4.1).
pub(super) const HEAD: usize = 9;

/// Frame types (RFC 9113 §6) and flags.
pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;
pub(super) const ACK: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) len: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Head {
    pub(super) fn of(bytes: &[u8; HEAD]) -> Self {
        let [a, b, c, kind, flags, stream @ ..] = *bytes;
        Self {
            len: usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c),
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
        }
    }

    /// The head at the front of `bytes`, when it is whole.
    pub(super) fn front(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk::<HEAD>().map(Self::of)
    }

    /// Whether it is a well-formed answer to a PING (RFC 9113 §6.7).
    pub(super) fn is_pong(self) -> bool {
        self.kind == PING && self.flags & ACK != 0 && self.len == 8 && self.stream == 0
    }
}

/// What the next bytes were.
#[derive(Debug)]
pub(super) enum Seen {
    /// The beginning of a head that is not whole yet.
    Part,
    /// The last bytes of a head.
    Head(Head),
    /// Bytes of the preface or of a payload.
    Payload,
}

/// Follows the frames of one direction.
#[derive(Debug)]
pub(super) struct Follower {
    /// Bytes that are not looked at: the rest of the preface or of a payload.
    skip: usize,
    /// Length of the present payload.
    len: usize,
    head: [u8; HEAD],
    filled: usize,
}

impl Follower {
    /// `before`: bytes that come before the first frame.
    pub(super) fn new(before: usize) -> Self {
        Self {
            skip: before,
            len: before,
            head: [0; HEAD],
            filled: 0,
        }
    }

    /// Takes bytes off the front; `None` when there are none left.
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Option<Seen> {
        if bytes.is_empty() {
            return None;
        }
        if self.skip > 0 {
            let passed = self.skip.min(bytes.len());
            self.skip -= passed;
            *bytes = &bytes[passed..];
            return Some(Seen::Payload);
        }
        let taken = (HEAD - self.filled).min(bytes.len());
        self.head[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
        self.filled += taken;
        *bytes = &bytes[taken..];
        if self.filled < HEAD {
            return Some(Seen::Part);
        }
        self.filled = 0;
        let head = Head::of(&self.head);
        (self.skip, self.len) = (head.len, head.len);
        Some(Seen::Head(head))
    }

    /// Bytes that passed of a payload that is not whole yet.
    pub(super) fn unfinished(&self) -> usize {
        if self.skip == 0 { 0 } else { self.len - self.skip }
    }

    /// Whether the last frame was whole and no other has begun.
    pub(super) fn is_between(&self) -> bool {
        self.skip == 0 && self.filled == 0
    }
}
