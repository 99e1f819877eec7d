//! Bytes on their way to the socket: frames copied one behind the other, large bodies as the segments they are.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

/// Room for a few small frames, so that the first bytes do not make the buffer grow step by step.
const FIRST: usize = 1_024;

/// A buffer up to this size is kept for the next frames.
const KEPT: usize = 8 * FIRST;

/// What a connection wants to write. The owner writes [`slices`](Output::slices) with `writev` and reports with
/// [`advance`](Output::advance) how much the socket took.
#[derive(Debug, Default)]
pub struct Output {
    /// Frames, headers and small bodies.
    copied: Vec<u8>,
    /// How much of `copied` was written.
    at: usize,
    /// Segments of large bodies, in their order; each follows the byte of `copied` before its position.
    shared: VecDeque<(usize, Bytes)>,
    /// Bytes of all of `shared`.
    shared_len: usize,
}

impl Output {
    /// Bytes that are not written yet.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.copied.len() - self.at + self.shared_len
    }

    /// Whether everything is written.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many slices the next bytes take at most.
    #[must_use]
    #[inline]
    pub fn pieces(&self) -> usize {
        2 * self.shared.len() + 1
    }

    /// Fills `into` with the next bytes; how many slices were filled.
    #[must_use]
    pub fn slices<'a>(&'a self, into: &mut [IoSlice<'a>]) -> usize {
        let (mut at, mut filled) = (self.at, 0);
        let mut put = |bytes: &'a [u8]| {
            if bytes.is_empty() {
                return true;
            }
            let slot = into.get_mut(filled);
            filled += usize::from(slot.is_some());
            slot.map(|slot| *slot = IoSlice::new(bytes)).is_some()
        };
        for (position, segment) in &self.shared {
            if !put(self.copied.get(at..*position).unwrap_or_default()) || !put(segment) {
                return filled;
            }
            at = *position;
        }
        put(self.copied.get(at..).unwrap_or_default());
        filled
    }

    /// The next `written` bytes left. More than there are is as much as there are.
    pub fn advance(&mut self, mut written: usize) {
        while let Some((position, segment)) = self.shared.front_mut() {
            let copied = (*position - self.at).min(written);
            self.at += copied;
            written -= copied;
            if self.at < *position || written == 0 {
                return;
            }
            let taken = segment.len().min(written);
            segment.advance(taken);
            self.shared_len -= taken;
            written -= taken;
            if !segment.is_empty() {
                return;
            }
            self.shared.pop_front();
        }
        self.at = self.at.saturating_add(written).min(self.copied.len());
        if self.at == self.copied.len() {
            self.at = 0;
            self.copied.clear();
            if self.held() > KEPT {
                *self = Self::default();
            }
        }
    }

    /// Lets the memory go that is kept for the next frames: the connection is idle.
    pub fn rest(&mut self) {
        if self.is_empty() {
            *self = Self::default();
        }
    }

    /// Bytes of memory that it holds, segments of bodies left out.
    #[must_use]
    pub fn held(&self) -> usize {
        self.copied.capacity() + self.shared.capacity() * size_of::<(usize, Bytes)>()
    }

    /// The buffer that frames are appended to.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        if self.copied.capacity() == 0 {
            self.copied.reserve(FIRST);
        } else if self.at >= FIRST && self.at >= self.copied.len() / 2 {
            self.copied.drain(..self.at);
            for (position, _) in &mut self.shared {
                *position -= self.at;
            }
            self.at = 0;
        }
        &mut self.copied
    }

    /// Appends a segment without copying it.
    pub(crate) fn push(&mut self, segment: Bytes) {
        if !segment.is_empty() {
            self.shared_len += segment.len();
            self.shared.push_back((self.copied.len(), segment));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_leave_in_the_order_they_came(
            parts in proptest::collection::vec((any::<bool>(), 0usize..3_000), 1..30),
            writes in proptest::collection::vec((1usize..4_000, 1usize..5), 1..60),
        ) {
            let (mut output, mut expected, mut seen) = (Output::default(), Vec::new(), Vec::new());
            let mut writes = writes.into_iter().cycle();
            let mut write = |output: &mut Output| {
                let (len, slots) = writes.next().unwrap_or((1, 1));
                let mut into = [IoSlice::new(&[]); 4];
                let filled = output.slices(&mut into[..slots]);
                let mut bytes: Vec<u8> = into[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
                assert!(into[..filled].iter().all(|slice| !slice.is_empty()));
                assert!(filled <= output.pieces());
                bytes.truncate(len);
                output.advance(bytes.len());
                seen.extend(bytes);
            };
            for (number, (shared, len)) in parts.into_iter().enumerate() {
                let part = vec![number as u8; len];
                expected.extend(&part);
                if shared {
                    output.push(Bytes::from(part));
                } else {
                    output.buffer().extend(part);
                }
                write(&mut output);
            }
            while !output.is_empty() {
                write(&mut output);
            }
            prop_assert_eq!(seen, expected);
            output.rest();
            prop_assert_eq!(output.held(), 0);
        }
    }
}
