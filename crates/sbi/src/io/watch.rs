//! What comes over a connection, as far as frame headers tell.
//!
//! The HTTP/2 engine bounds what it keeps, not how often it is asked to do something: pings, settings and
//! resets are free for it and cost the worker time that others need. So the bytes on their way to the engine
//! are read once more here, nine bytes of each frame, and counted.

use std::time::{Duration, Instant};

/// Length of the client's preface (RFC 9113 §3.4).
pub(super) const PREFACE: usize = 24;
const HEAD: usize = 9;

const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
const DATA: u8 = 0;

/// How much of what a peer may send in a second; 0 is not limited.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameLimits {
    /// PING, SETTINGS, PRIORITY and frames of unknown types.
    pub(crate) control: u32,
    /// RST_STREAM.
    pub(crate) resets: u32,
}

/// What a peer sent too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flood {
    Control,
    Resets,
}

/// Follows the frames of one direction.
#[derive(Debug)]
pub(crate) struct FrameWatch {
    limits: FrameLimits,
    /// Bytes that are not looked at: the rest of the preface or of a payload.
    skip: usize,
    head: [u8; HEAD],
    filled: usize,
    /// Whether the present header block opens a stream, and whether the present frame ends the block.
    opens: bool,
    ends_block: bool,
    /// When the present frame began, if it is not whole yet and not DATA.
    frame_since: Option<Instant>,
    /// When the present header block began, if it is not whole yet.
    block_since: Option<Instant>,
    /// Highest stream so far, and how many were opened by a whole header block.
    last_stream: u32,
    opened: u64,
    second: Option<Instant>,
    control: u32,
    resets: u32,
    flood: Option<Flood>,
}

impl FrameWatch {
    /// Of the bytes a client sends.
    pub(crate) fn of_client(limits: FrameLimits) -> Self {
        Self {
            limits,
            skip: PREFACE,
            head: [0; HEAD],
            filled: 0,
            opens: false,
            ends_block: false,
            frame_since: None,
            block_since: None,
            last_stream: 0,
            opened: 0,
            second: None,
            control: 0,
            resets: 0,
            flood: None,
        }
    }

    /// What there is too much of, once there is.
    pub(crate) fn flood(&self) -> Option<Flood> {
        self.flood
    }

    /// Streams whose header block came whole.
    pub(crate) fn opened(&self) -> u64 {
        self.opened
    }

    /// Whether headers (or another frame that is not DATA) have been on their way for longer than `limit`.
    pub(crate) fn is_slow(&self, now: Instant, limit: Duration) -> bool {
        let since = self.block_since.or(self.frame_since);
        since.is_some_and(|since| now.saturating_duration_since(since) >= limit)
    }

    /// Looks at the next bytes.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], now: Instant) {
        let second = *self.second.get_or_insert(now);
        if now.saturating_duration_since(second) >= Duration::from_secs(1) {
            self.second = Some(now);
            (self.control, self.resets) = (0, 0);
        }
        while !bytes.is_empty() {
            if self.skip > 0 {
                let passed = self.skip.min(bytes.len());
                self.skip -= passed;
                bytes = &bytes[passed..];
            } else {
                let taken = (HEAD - self.filled).min(bytes.len());
                self.head[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
                if self.filled == 0 {
                    self.frame_since = Some(now);
                }
                self.filled += taken;
                bytes = &bytes[taken..];
                if self.filled < HEAD {
                    return;
                }
                self.filled = 0;
                self.begins(now);
            }
            if self.skip == 0 {
                self.ends();
            }
        }
    }

    fn begins(&mut self, now: Instant) {
        let [a, b, c, kind, flags, stream @ ..] = self.head;
        self.skip = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        self.ends_block = false;
        match kind {
            DATA => self.frame_since = None,
            HEADERS => {
                let stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
                self.opens = stream > self.last_stream;
                self.last_stream = self.last_stream.max(stream);
                self.ends_block = flags & END_HEADERS != 0;
                if !self.ends_block {
                    self.block_since = Some(now);
                }
            }
            CONTINUATION => self.ends_block = flags & END_HEADERS != 0,
            RST_STREAM => {
                self.resets += 1;
                if self.limits.resets > 0 && self.resets > self.limits.resets {
                    self.flood = Some(Flood::Resets);
                }
            }
            // Answers to what we asked.
            PING | SETTINGS if flags & ACK != 0 => {}
            PING | SETTINGS | PRIORITY | 10.. => {
                self.control += 1;
                if self.limits.control > 0 && self.control > self.limits.control {
                    self.flood = Some(Flood::Control);
                }
            }
            _ => {}
        }
    }

    fn ends(&mut self) {
        self.frame_since = None;
        if self.ends_block {
            self.block_since = None;
            self.opened += u64::from(self.opens);
            (self.ends_block, self.opens) = (false, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u8, flags: u8, stream: u32, len: usize) -> Vec<u8> {
        let mut bytes = vec![0, (len >> 8) as u8, len as u8, kind, flags];
        bytes.extend(stream.to_be_bytes());
        bytes.resize(HEAD + len, 0);
        bytes
    }

    fn watch(control: u32, resets: u32) -> FrameWatch {
        FrameWatch::of_client(FrameLimits { control, resets })
    }

    #[test]
    fn floods_are_counted_by_the_second() {
        let (mut watch, start) = (watch(3, 2), Instant::now());
        watch.feed(&[0; PREFACE], start);
        for _ in 0..3 {
            watch.feed(&frame(PING, 0, 0, 8), start);
            watch.feed(&frame(PING, ACK, 0, 8), start);
        }
        assert_eq!(watch.flood(), None);
        let later = start + Duration::from_secs(1);
        watch.feed(&frame(SETTINGS, 0, 0, 0), later);
        for _ in 0..2 {
            watch.feed(&frame(RST_STREAM, 0, 1, 4), later);
        }
        assert_eq!(watch.flood(), None);
        watch.feed(&frame(RST_STREAM, 0, 1, 4), later);
        assert_eq!(watch.flood(), Some(Flood::Resets));
    }

    #[test]
    fn headers_that_do_not_end_are_slow() {
        let (mut watch, start) = (watch(0, 0), Instant::now());
        let (limit, late) = (Duration::from_secs(1), start + Duration::from_secs(1));
        watch.feed(&[0; PREFACE], start);
        watch.feed(&frame(HEADERS, 0, 1, 5), start);
        watch.feed(&frame(CONTINUATION, 0, 1, 5), start + limit / 2);
        assert!(watch.is_slow(late, limit), "a block counts from its beginning");
        watch.feed(&frame(CONTINUATION, END_HEADERS, 1, 5), late);
        assert!(!watch.is_slow(late + limit, limit));
        watch.feed(&frame(HEADERS, END_HEADERS, 3, 5)[..4], late);
        assert!(watch.is_slow(late + limit, limit), "so does the head of a frame");
        watch.feed(&frame(HEADERS, END_HEADERS, 3, 5)[4..], late);
        watch.feed(&frame(DATA, 0, 3, 50)[..20], late);
        assert!(
            !watch.is_slow(late + limit, limit),
            "bodies have a limit of their own"
        );
        assert_eq!(watch.opened(), 2);
        // Trailers open nothing.
        watch.feed(&[0; 30], late);
        watch.feed(&frame(HEADERS, END_HEADERS, 3, 5), late);
        assert_eq!(watch.opened(), 2);
    }

    proptest! {
        #[test]
        fn the_cut_of_the_bytes_does_not_matter(
            frames in proptest::collection::vec((0u8..12, any::<u8>(), 0u32..9, 0usize..300), 0..30),
            cuts in proptest::collection::vec(1usize..50, 1..40),
        ) {
            let mut bytes = vec![0; PREFACE];
            for (kind, flags, stream, len) in frames {
                bytes.extend(frame(kind, flags, stream, len));
            }
            let now = Instant::now();
            let (mut whole, mut cut) = (watch(2, 2), watch(2, 2));
            whole.feed(&bytes, now);
            let mut rest = &bytes[..];
            for len in cuts.iter().cycle() {
                let len = (*len).min(rest.len());
                cut.feed(&rest[..len], now);
                rest = &rest[len..];
                if rest.is_empty() { break }
            }
            prop_assert_eq!(format!("{whole:?}"), format!("{cut:?}"));
        }
    }
}
