//! Bytes that wait for the engine, handed over frame by frame.
//!
//! The engine reads into buffers of 8 KiB and takes whole frames out of them. What is left over, the
//! beginning of the next frame, it copies to a new buffer. So it is given whole frames as long as they fit,
//! and of one that does not fit the nine bytes of its head: then it makes room for the rest of it first.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::io::poll_read_buf;

const HEAD: usize = 9;

/// What was read and not yet handed over.
#[derive(Debug)]
pub(super) struct Input {
    bytes: BytesMut,
    /// What is still to be handed over of the present frame (or of the client's preface).
    left: usize,
    /// Whether the peer has ended its side.
    ended: bool,
}

impl Input {
    /// `before`: bytes that come before the first frame.
    pub(super) fn new(before: usize) -> Self {
        Self {
            bytes: BytesMut::new(),
            left: before,
            ended: false,
        }
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
        let len = self.cut(into.remaining());
        into.put_slice(&self.bytes[..len]);
        self.bytes.advance(len);
        len > 0 || self.ended
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
            let Some(head) = self.bytes.get(at..at + HEAD) else {
                // A head that is not whole yet waits, unless it never will be.
                return if self.ended { here } else { at };
            };
            let len = HEAD + (usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]));
            if at + len <= room {
                self.left = len;
            } else if at > 0 {
                return at;
            } else {
                self.left = len;
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
