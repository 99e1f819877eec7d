//! Sequence numbers of both directions, and the MSUs that the peer has not acknowledged (RFC 4165 §2.2, §4.2.1).

use std::collections::VecDeque;

use super::SEQUENCE_MASK;

/// The number before that of the first MSU, 0.
const INITIAL: u32 = SEQUENCE_MASK;

/// The retransmission buffer: messages of user data in the order of their forward sequence numbers.
#[derive(Debug)]
pub(super) struct Buffer<M> {
    messages: VecDeque<M>,
    /// FSN of the last MSU that was sent.
    pub(super) sent: u32,
    /// FSN of the last MSU that the peer has acknowledged.
    acknowledged: u32,
    /// FSN of the last MSU that was accepted (BSNT).
    pub(super) accepted: u32,
}

impl<M> Buffer<M> {
    pub(super) const fn new() -> Self {
        Self {
            messages: VecDeque::new(),
            sent: INITIAL,
            acknowledged: INITIAL,
            accepted: INITIAL,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn push(&mut self, message: M) {
        self.messages.push_back(message);
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut M> {
        self.messages.iter_mut()
    }

    /// Removes what the peer has accepted; `false` when it acknowledges what was not sent, or less than before.
    pub(super) fn acknowledge(&mut self, bsn: u32) -> bool {
        let count = bsn.wrapping_sub(self.acknowledged) & SEQUENCE_MASK;
        if count as usize > self.messages.len() {
            return false;
        }
        self.messages.drain(..count as usize);
        self.acknowledged = bsn;
        true
    }

    /// Accepts the MSU that is the next in sequence, and no other.
    pub(super) const fn accept(&mut self, fsn: u32) -> bool {
        let is_next = fsn == next(self.accepted);
        if is_next {
            self.accepted = fsn;
        }
        is_next
    }

    /// What the peer has not acknowledged.
    pub(super) fn take(&mut self) -> VecDeque<M> {
        std::mem::take(&mut self.messages)
    }
}

/// The sequence number behind another.
pub(super) const fn next(number: u32) -> u32 {
    number.wrapping_add(1) & SEQUENCE_MASK
}
