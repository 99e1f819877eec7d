//! What comes over a connection, as far as frame headers tell.
//!
//! The HTTP/2 engine bounds what it keeps, not how often it is asked to do something: pings, settings, resets
//! and updates of windows are free for it and cost the worker time that others need. So the bytes on their
//! way to the engine are read once more here, nine bytes of each frame, and counted. What we send is followed
//! as well: it says how many answers, resets and updates of windows an honest peer has reason to send.

use std::time::{Duration, Instant};

use super::frames::{
    ACK, CONTINUATION, DATA, END_HEADERS, Follower, GOAWAY, HEADERS, Head, PING, PREFACE, PRIORITY,
    RST_STREAM, SETTINGS, Seen, WINDOW_UPDATE,
};

/// Header blocks that a server may send for each request: informational ones, the final one, trailers.
const BLOCKS_PER_REQUEST: u64 = 8;
/// Updates of windows that a peer may send for each stream, and for each DATA frame we send: one of the
/// stream's window, one of the connection's.
const UPDATES_EACH: u64 = 2;
/// This number of bytes of DATA earns one more update, for peers that read in small pieces.
const BYTES_PER_UPDATE: usize = 1_024;

/// How much of what a peer may send in a second; 0 is not limited.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameLimits {
    /// PING, SETTINGS, PRIORITY, GOAWAY, frames of unknown types, and acknowledgements of nothing.
    pub(crate) control: u32,
    /// RST_STREAM.
    pub(crate) resets: u32,
    /// WINDOW_UPDATE beyond what our DATA and the streams give reason for.
    pub(crate) windows: u32,
}

/// What a peer sent too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flood {
    Control,
    Resets,
    Windows,
}

impl Flood {
    /// In words, for those who had requests on the connection.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Control => "too many control frames",
            Self::Resets => "too many resets of streams",
            Self::Windows => "too many updates of windows",
        }
    }
}

/// Which side the peer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Client,
    Server,
}

/// Follows the frames of a connection.
#[derive(Debug)]
pub(crate) struct FrameWatch {
    side: Side,
    limits: FrameLimits,
    incoming: Follower,
    outgoing: Follower,
    /// Whether the present header block opens a stream, and whether the present frame ends the block.
    opens: bool,
    ends_block: bool,
    /// When the present frame began, if it is not whole yet and not DATA.
    frame_since: Option<Instant>,
    /// When the present header block began, and how long it is so far, if it is not whole yet.
    block_since: Option<Instant>,
    block_len: usize,
    /// Highest stream so far, and how many were opened by a whole header block.
    last_stream: u32,
    opened: u64,
    /// Of the present second.
    second: Option<Instant>,
    control: u32,
    resets: u32,
    windows: u32,
    /// What the peer has reason to send because of what passed: answers to our PING and SETTINGS, updates of
    /// windows, and as a server resets and header blocks.
    pongs: u64,
    settings_acks: u64,
    updates: u64,
    refusals: u64,
    blocks: u64,
    flood: Option<Flood>,
}

impl FrameWatch {
    /// Of a connection whose peer is a client.
    pub(crate) fn of_client(limits: FrameLimits) -> Self {
        Self::new(Side::Client, limits)
    }

    /// Of a connection whose peer is a server. Its resets have no rate: one for each request is fair (a server
    /// may refuse every one), and what is beyond counts as control frames.
    pub(crate) fn of_server(limits: FrameLimits) -> Self {
        Self::new(Side::Server, limits)
    }

    fn new(side: Side, limits: FrameLimits) -> Self {
        let (incoming, outgoing) = match side {
            Side::Client => (PREFACE, 0),
            Side::Server => (0, PREFACE),
        };
        Self {
            side,
            limits,
            incoming: Follower::new(incoming),
            outgoing: Follower::new(outgoing),
            opens: false,
            ends_block: false,
            frame_since: None,
            block_since: None,
            block_len: 0,
            last_stream: 0,
            opened: 0,
            second: None,
            control: 0,
            resets: 0,
            windows: 0,
            pongs: 0,
            settings_acks: 0,
            updates: 0,
            refusals: 0,
            blocks: 0,
            flood: None,
        }
    }

    /// Bytes the peer sends before its first frame.
    pub(super) fn preface(&self) -> usize {
        match self.side {
            Side::Client => PREFACE,
            Side::Server => 0,
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

    /// Bytes of a header block that goes on in other frames.
    pub(super) fn unfinished_block(&self) -> usize {
        self.block_len
    }

    /// Bytes that came of a frame that is not whole yet: the engine keeps them.
    pub(super) fn unfinished_frame(&self) -> usize {
        self.incoming.unfinished()
    }

    /// Whether headers (or another frame that is not DATA) have been on their way for longer than `limit`.
    pub(crate) fn is_slow(&self, now: Instant, limit: Duration) -> bool {
        let since = self.block_since.or(self.frame_since);
        since.is_some_and(|since| now.saturating_duration_since(since) >= limit)
    }

    /// Looks at the next bytes from the peer.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], now: Instant) {
        let second = *self.second.get_or_insert(now);
        if now.saturating_duration_since(second) >= Duration::from_secs(1) {
            self.second = Some(now);
            (self.control, self.resets, self.windows) = (0, 0, 0);
        }
        while let Some(seen) = self.incoming.next(&mut bytes) {
            match seen {
                Seen::Part => {
                    self.frame_since.get_or_insert(now);
                    continue;
                }
                Seen::Head(head) => {
                    self.frame_since.get_or_insert(now);
                    self.begins(head, now);
                }
                Seen::Payload => {}
            }
            if self.incoming.is_between() {
                self.ends();
            }
        }
    }

    /// Looks at the next bytes to the peer; how many PING frames began in them.
    pub(crate) fn sent(&mut self, mut bytes: &[u8]) -> u64 {
        let before = self.pongs;
        while let Some(seen) = self.outgoing.next(&mut bytes) {
            let Seen::Head(head) = seen else { continue };
            match head.kind {
                DATA => self.updates += UPDATES_EACH + (head.len / BYTES_PER_UPDATE) as u64,
                HEADERS if self.side == Side::Server => {
                    self.updates += UPDATES_EACH;
                    self.refusals += 1;
                    self.blocks += BLOCKS_PER_REQUEST;
                }
                PING if head.flags & ACK == 0 => self.pongs += 1,
                SETTINGS if head.flags & ACK == 0 => self.settings_acks += 1,
                _ => {}
            }
        }
        self.pongs - before
    }

    /// Whether what we sent ends with a whole frame, so that another may follow.
    pub(super) fn may_add_a_frame(&self) -> bool {
        self.outgoing.is_between()
    }

    fn begins(&mut self, head: Head, now: Instant) {
        self.ends_block = false;
        match head.kind {
            DATA => self.frame_since = None,
            HEADERS => {
                self.opens = head.stream > self.last_stream;
                self.last_stream = self.last_stream.max(head.stream);
                self.ends_block = head.flags & END_HEADERS != 0;
                if !self.ends_block {
                    self.block_since = Some(now);
                    self.block_len = head.len;
                }
                match self.side {
                    Side::Client if self.opens => self.updates += UPDATES_EACH,
                    Side::Client => {}
                    Side::Server if take_one(&mut self.blocks) => {}
                    Side::Server => self.control(),
                }
            }
            CONTINUATION => {
                self.ends_block = head.flags & END_HEADERS != 0;
                if !self.ends_block {
                    self.block_len = self.block_len.saturating_add(head.len);
                }
            }
            RST_STREAM if self.side == Side::Client => {
                self.resets += 1;
                if self.limits.resets > 0 && self.resets > self.limits.resets {
                    self.flood = Some(Flood::Resets);
                }
            }
            RST_STREAM if take_one(&mut self.refusals) => {}
            WINDOW_UPDATE if take_one(&mut self.updates) => {}
            WINDOW_UPDATE => {
                self.windows += 1;
                if self.limits.windows > 0 && self.windows > self.limits.windows {
                    self.flood = Some(Flood::Windows);
                }
            }
            // Answers to what we asked.
            PING if head.flags & ACK != 0 && take_one(&mut self.pongs) => {}
            SETTINGS if head.flags & ACK != 0 && take_one(&mut self.settings_acks) => {}
            PING | SETTINGS | PRIORITY | GOAWAY | RST_STREAM | 10.. => self.control(),
            // A pushed request ends the connection: the engine never allowed one.
            _ => {}
        }
    }

    fn control(&mut self) {
        self.control += 1;
        if self.limits.control > 0 && self.control > self.limits.control {
            self.flood = Some(Flood::Control);
        }
    }

    fn ends(&mut self) {
        self.frame_since = None;
        if self.ends_block {
            self.block_since = None;
            self.block_len = 0;
            self.opened += u64::from(self.opens);
            (self.ends_block, self.opens) = (false, false);
        }
    }
}

/// Takes one off what is left; whether there was one.
fn take_one(left: &mut u64) -> bool {
    let one = *left > 0;
    *left -= u64::from(one);
    one
}

#[cfg(test)]
mod tests {
    use super::super::frames::HEAD;
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u8, flags: u8, stream: u32, len: usize) -> Vec<u8> {
        let mut bytes = vec![0, (len >> 8) as u8, len as u8, kind, flags];
        bytes.extend(stream.to_be_bytes());
        bytes.resize(HEAD + len, 0);
        bytes
    }

    fn watch(control: u32, resets: u32) -> FrameWatch {
        FrameWatch::of_client(FrameLimits {
            control,
            resets,
            windows: 2,
        })
    }

    #[test]
    fn floods_are_counted_by_the_second() {
        let (mut watch, start) = (watch(3, 2), Instant::now());
        watch.feed(&[0; PREFACE], start);
        assert_eq!(watch.sent(&frame(PING, 0, 0, 8).repeat(3)), 3);
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
    fn answers_to_nothing_are_control_frames() {
        for kind in [PING, SETTINGS] {
            let (mut watch, start) = (watch(3, 0), Instant::now());
            watch.feed(&[0; PREFACE], start);
            watch.sent(&frame(kind, 0, 0, 0).repeat(2));
            watch.feed(&frame(kind, ACK, 0, 0).repeat(5), start);
            assert_eq!(watch.flood(), None);
            watch.feed(&frame(kind, ACK, 0, 0), start);
            assert_eq!(watch.flood(), Some(Flood::Control));
        }
    }

    #[test]
    fn windows_are_updated_as_often_as_data_gives_reason() {
        let (mut watch, start) = (watch(0, 0), Instant::now());
        watch.feed(&[0; PREFACE], start);
        watch.feed(&frame(HEADERS, END_HEADERS, 1, 5), start);
        watch.sent(&frame(HEADERS, END_HEADERS, 1, 5));
        watch.sent(&frame(DATA, 0, 1, 10));
        watch.sent(&frame(DATA, 0, 1, 3_000));
        // Two for the stream, two for each DATA frame, two for its bytes, and two that need no reason.
        watch.feed(&frame(WINDOW_UPDATE, 0, 1, 4).repeat(10), start);
        assert_eq!(watch.flood(), None);
        watch.feed(&frame(WINDOW_UPDATE, 0, 1, 4), start);
        assert_eq!(watch.flood(), Some(Flood::Windows));
    }

    #[test]
    fn a_server_resets_and_answers_each_request_once() {
        let limits = FrameLimits {
            control: 1,
            ..FrameLimits::default()
        };
        let start = Instant::now();
        for (kind, fair) in [(RST_STREAM, 2), (HEADERS, 2 * BLOCKS_PER_REQUEST as usize)] {
            let mut watch = FrameWatch::of_server(limits);
            watch.sent(&[0; PREFACE]);
            watch.sent(&frame(HEADERS, END_HEADERS, 1, 5).repeat(2));
            watch.feed(&frame(kind, END_HEADERS, 1, 4).repeat(fair + 1), start);
            assert_eq!(watch.flood(), None);
            watch.feed(&frame(kind, END_HEADERS, 1, 4), start);
            assert_eq!(watch.flood(), Some(Flood::Control));
        }
    }

    #[test]
    fn headers_that_do_not_end_are_slow() {
        let (mut watch, start) = (watch(0, 0), Instant::now());
        let (limit, late) = (Duration::from_secs(1), start + Duration::from_secs(1));
        watch.feed(&[0; PREFACE], start);
        watch.feed(&frame(HEADERS, 0, 1, 5), start);
        watch.feed(&frame(CONTINUATION, 0, 1, 5), start + limit / 2);
        assert!(watch.is_slow(late, limit), "a block counts from its beginning");
        assert_eq!(watch.unfinished_block(), 10);
        watch.feed(&frame(CONTINUATION, END_HEADERS, 1, 5), late);
        assert!(!watch.is_slow(late + limit, limit));
        assert_eq!(watch.unfinished_block(), 0);
        watch.feed(&frame(HEADERS, END_HEADERS, 3, 5)[..4], late);
        assert!(watch.is_slow(late + limit, limit), "so does the head of a frame");
        watch.feed(&frame(HEADERS, END_HEADERS, 3, 5)[4..], late);
        watch.feed(&frame(DATA, 0, 3, 50)[..20], late);
        assert!(
            !watch.is_slow(late + limit, limit),
            "bodies have a limit of their own"
        );
        assert_eq!(watch.unfinished_frame(), 20 - HEAD);
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
