//! The output queue of one connection: segments of messages, by reference. One system call writes as many as it can.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes, BytesMut};

/// Slices offered to one system call.
pub(crate) const SLICES: usize = 256;
/// Segments moved out of read buffers are put together up to this size.
const OWN_CHUNK: usize = 64 * 1024;

/// A piece of a message.
#[derive(Debug)]
struct Segment {
    bytes: Bytes,
    /// Whether a message ends here.
    last: bool,
    /// Whether the bytes are our own copy, not part of a read buffer.
    own: bool,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct OutQueue {
    segments: VecDeque<Segment>,
    bytes: usize,
    /// Of `segments`, from the front, those that are our own copies.
    own: usize,
}

impl OutQueue {
    #[inline]
    pub(crate) fn push(&mut self, bytes: Bytes, last: bool) {
        self.bytes += bytes.len();
        self.segments.push_back(Segment {
            bytes,
            last,
            own: false,
        });
    }

    #[inline]
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// The front of the queue, for a vectored write.
    pub(crate) fn slices<'s>(&'s self, out: &mut [IoSlice<'s>; SLICES]) -> usize {
        let mut count = 0;
        for (slot, segment) in out.iter_mut().zip(&self.segments) {
            *slot = IoSlice::new(&segment.bytes);
            count += 1;
        }
        count
    }

    /// The segments of the first message, for transports that send message by message.
    pub(crate) fn first_message<'s>(&'s self, out: &mut [IoSlice<'s>; SLICES]) -> usize {
        let mut count = 0;
        for (slot, segment) in out.iter_mut().zip(&self.segments) {
            *slot = IoSlice::new(&segment.bytes);
            count += 1;
            if segment.last {
                break;
            }
        }
        count
    }

    /// Removes the first `written` bytes.
    pub(crate) fn advance(&mut self, mut written: usize) {
        self.bytes -= written.min(self.bytes);
        while let Some(first) = self.segments.front_mut() {
            if written < first.bytes.len() {
                first.bytes.advance(written);
                return;
            }
            written -= first.bytes.len();
            self.segments.pop_front();
            self.own = self.own.saturating_sub(1);
        }
    }

    /// Copies queued segments out of their read buffers: a slow reader must not keep whole buffers alive for a few
    /// bytes. Segments copied before are not copied again.
    pub(crate) fn make_own(&mut self) {
        let mut moved: Vec<Segment> = Vec::new();
        let mut chunk = BytesMut::new();
        for segment in self.segments.drain(self.own..) {
            if segment.own {
                moved.push(segment);
                continue;
            }
            if chunk.capacity() - chunk.len() < segment.bytes.len() {
                chunk.reserve(segment.bytes.len().max(OWN_CHUNK));
            }
            chunk.extend_from_slice(&segment.bytes);
            moved.push(Segment {
                bytes: chunk.split().freeze(),
                last: segment.last,
                own: true,
            });
        }
        self.segments.extend(moved);
        self.own = self.segments.len();
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(queue: &mut OutQueue, step: usize) -> Vec<u8> {
        let mut out = Vec::new();
        while !queue.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = queue.slices(&mut slices);
            let all: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).collect();
            let taken = step.min(all.len());
            out.extend_from_slice(&all[..taken]);
            queue.advance(taken);
        }
        assert_eq!(queue.bytes(), 0);
        out
    }

    #[test]
    fn the_order_stays_however_many_bytes_a_call_writes() {
        for step in [1, 2, 5, 1000] {
            for own_after in 0..4 {
                let mut queue = OutQueue::default();
                for (round, part) in [&b"abc"[..], b"d", b"efgh", b"ij"].into_iter().enumerate() {
                    if round == own_after {
                        queue.make_own();
                    }
                    queue.push(Bytes::from_static(part), round % 2 == 1);
                }
                queue.make_own();
                assert_eq!(queue.bytes(), 10);
                assert_eq!(drained(&mut queue, step), b"abcdefghij");
            }
        }
    }

    #[test]
    fn messages_can_be_taken_one_by_one() {
        let mut queue = OutQueue::default();
        queue.push(Bytes::from_static(b"head"), false);
        queue.push(Bytes::from_static(b"tail"), true);
        queue.push(Bytes::from_static(b"next"), true);
        let mut slices = [IoSlice::new(&[]); SLICES];
        assert_eq!(queue.first_message(&mut slices), 2);
        assert_eq!(queue.slices(&mut slices), 3);
    }
}
