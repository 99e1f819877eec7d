//! Bytes that wait for the engine, handed over frame by frame.
//!
//! The engine reads into buffers of 8 KiB and takes whole frames out of them. What is left over, the
//! beginning of the next frame, it copies to a new buffer. So it is given whole frames as long as they fit,
//! and of one that does not fit the nine bytes of its head: then it makes room for the rest of it first.
//!
//! Answers to PINGs that were never sent stay here: the engine can do nothing with them but log each.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::io::poll_read_buf;

use super::frames::{HEAD, Head};

/// What was read and not yet handed over.
#[derive(Debug)]
pub(super) struct Input {
    bytes: BytesMut,
    /// What is still to be handed over of the present frame (or of the client's preface).
    left: usize,
    /// What is still to come of an answer to no PING.
    dropping: usize,
    /// Answers to PINGs that may be handed over.
    pongs: u64,
    /// Frames handed over.
    frames: u64,
    /// Whether the peer has ended its side.
    ended: bool,
}

impl Input {
    /// `before`: bytes that come before the first frame.
    pub(super) fn new(before: usize) -> Self {
        Self {
            bytes: BytesMut::new(),
            left: before,
            dropping: 0,
            pongs: 0,
            frames: 0,
            ended: false,
        }
    }

    /// `more` PINGs were sent: their answers are awaited.
    pub(super) fn expect_pongs(&mut self, more: u64) {
        self.pongs += more;
    }

    /// Frames handed over so far.
    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    /// Bytes that are kept.
    pub(super) fn held(&self) -> usize {
        self.bytes.len()
    }

    /// Reads once, at most `size` bytes, and shows what came to `look`.
    pub(super) fn poll_fill<T: AsyncRead + Unpin>(
        &mut self,
        io: &mut T,
        size: usize,
        cx: &mut Context<'_>,
        look: impl FnOnce(&[u8]),
    ) -> Poll<io::Result<usize>> {
        let before = self.bytes.len();
        self.bytes.reserve(size);
        let read = poll_read_buf(Pin::new(io), cx, &mut self.bytes);
        match &read {
            Poll::Ready(Ok(0)) => self.ended = true,
            Poll::Ready(Ok(_)) => look(&self.bytes[before..]),
            Poll::Ready(Err(_)) => {}
            // An idle connection keeps no buffer.
            Poll::Pending => self.bytes = BytesMut::from(&self.bytes[..]),
        }
        read
    }

    /// Hands over what is here, as far as it fits well; whether anything was, or nothing more will come.
    pub(super) fn hand_over(&mut self, into: &mut ReadBuf<'_>) -> bool {
        self.drop_unasked();
        let len = self.cut(into.remaining());
        into.put_slice(&self.bytes[..len]);
        self.bytes.advance(len);
        len > 0 || self.ended
    }

    /// Drops answers to no PING from the front.
    fn drop_unasked(&mut self) {
        loop {
            let dropped = self.dropping.min(self.bytes.len());
            self.bytes.advance(dropped);
            self.dropping -= dropped;
            let unasked = |head: Head| head.is_pong() && self.pongs == 0;
            if self.dropping > 0 || self.left > 0 || !Head::front(&self.bytes).is_some_and(unasked) {
                return;
            }
            self.dropping = HEAD + 8;
        }
    }

    /// How many bytes to hand over into this much room.
    fn cut(&mut self, room: usize) -> usize {
        let here = self.bytes.len().min(room);
        let mut at = 0;
        loop {
            let taken = self.left.min(here - at);
            self.left -= taken;
            at += taken;
            if at == here {
                return at;
            }
            let Some(head) = self.bytes.get(at..).and_then(Head::front) else {
                // A head that is not whole yet waits, unless it never will be.
                return if self.ended { here } else { at };
            };
            let len = HEAD + head.len;
            let fits = at + len <= room;
            if at > 0 && (!fits || head.is_pong() && self.pongs == 0) {
                return at;
            }
            self.frames += 1;
            self.pongs -= u64::from(head.is_pong());
            self.left = len;
            if !fits {
                let alone = HEAD.min(here);
                self.left -= alone;
                return alone;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(len: usize) -> Vec<u8> {
        let mut bytes = vec![(len >> 16) as u8, (len >> 8) as u8, len as u8, 0, 0, 0, 0, 0, 1];
        bytes.resize(HEAD + len, 7);
        bytes
    }

    /// Reads `room` bytes at a time from a socket that gives what `arrivals` says; the pieces handed over.
    fn pieces(bytes: &[u8], arrivals: &[usize], room: usize) -> Vec<Vec<u8>> {
        let mut mock = Arrivals(bytes.to_vec(), arrivals.to_vec());
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let (mut input, mut pieces) = (Input::new(24), Vec::new());
        loop {
            let mut storage = vec![0; room];
            let mut buffer = ReadBuf::new(&mut storage);
            while !input.hand_over(&mut buffer) {
                let _ = input.poll_fill(&mut mock, 64, &mut cx, |_| {});
            }
            if buffer.filled().is_empty() {
                return pieces;
            }
            pieces.push(buffer.filled().to_vec());
        }
    }

    struct Arrivals(Vec<u8>, Vec<usize>);

    impl AsyncRead for Arrivals {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            into: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let size = self.1.pop().unwrap_or(usize::MAX);
            let len = size.min(self.0.len()).min(into.remaining());
            into.put_slice(&self.0[..len]);
            self.0.drain(..len);
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn frames_are_not_cut_where_that_can_be_avoided() {
        let mut bytes = vec![0; 24];
        for len in [10, 20, 200, 5] {
            bytes.extend(frame(len));
        }
        let lens: Vec<usize> = pieces(&bytes, &[], 100).iter().map(Vec::len).collect();
        // The preface and two frames; the head of the large one, its payload in the room there is (the
        // socket gave 64 bytes at a time), and the last frame with the end of it.
        assert_eq!(lens[0] + lens[1], 24 + 19 + 29);
        assert_eq!(lens.iter().sum::<usize>(), bytes.len());
        assert!(lens.contains(&9), "{lens:?}");
    }

    #[test]
    fn answers_to_no_ping_are_dropped() {
        let pong: Vec<u8> = [&[0, 0, 8, 6, 1, 0, 0, 0, 0][..], &[3; 8]].concat();
        let mut bytes = vec![0; 24];
        for _ in 0..50 {
            bytes.extend(pong.repeat(3));
            bytes.extend(frame(10));
        }
        for cut in [1, 7, 9, 17, 64] {
            let arrivals = vec![cut; bytes.len()];
            let handed: Vec<u8> = pieces(&bytes, &arrivals, 100).concat();
            assert_eq!(handed.len(), 24 + 50 * (HEAD + 10), "{cut} bytes at a time");
        }
        let mut input = Input::new(0);
        input.expect_pongs(2);
        input.bytes.extend_from_slice(&pong.repeat(3));
        let mut storage = [0; 200];
        let mut buffer = ReadBuf::new(&mut storage);
        input.hand_over(&mut buffer);
        assert!(!input.hand_over(&mut buffer));
        assert_eq!(buffer.filled().len(), 2 * pong.len());
        assert!(input.bytes.is_empty());
    }

    proptest! {
        #[test]
        fn everything_is_handed_over_in_order(
            lens in proptest::collection::vec(0usize..300, 0..20),
            arrivals in proptest::collection::vec(1usize..40, 0..60),
            room in 1usize..200, tail in 0usize..12,
        ) {
            let mut bytes = vec![1; 24];
            for len in lens {
                bytes.extend(frame(len));
            }
            bytes.extend(vec![0; tail]);
            prop_assert_eq!(pieces(&bytes, &arrivals, room).concat(), bytes);
        }
    }
}
