//! The open streams of a connection, and those that were reset lately.

use std::collections::VecDeque;
use std::time::Instant;

use super::event::StreamId;
use super::incoming::Incoming;
use crate::body::Body;

/// What is still to come from the peer on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiving {
    /// The head of the response.
    Head,
    /// The body.
    Body,
    /// A body that is discarded.
    Rest,
    /// Nothing: the peer ended its side.
    Nothing,
}

/// What this side has still to send on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// The response.
    Message,
    /// The rest of the body.
    Body,
    /// Nothing.
    Nothing,
}

/// An open stream.
#[derive(Debug)]
pub(super) struct Stream {
    /// 0: the slot is free.
    number: u32,
    pub(super) receiving: Receiving,
    pub(super) sending: Sending,
    /// The method of the request is HEAD: its response has no body.
    pub(super) is_head: bool,
    /// The outgoing body is in the queue of those that have something to send.
    pub(super) is_queued: bool,
    /// The body has grown in this `receive`.
    pub(super) has_grown: bool,
    /// The length of the body that the peer announced.
    pub(super) announced: Option<u64>,
    pub(super) incoming: Incoming,
    /// Bytes of DATA that count for the stream's window, padding among them.
    pub(super) flow: u64,
    /// Bytes of DATA that are to be given back to the connection's window.
    pub(super) unreleased: u32,
    /// Bytes of padding received that the window of the stream was not given back.
    pub(super) padding: u32,
    /// What the peer lets this side send.
    pub(super) window: i64,
    pub(super) outgoing: Body,
    /// Since when this number of bytes has been left of the outgoing body.
    pub(super) stalled: Option<(Instant, usize)>,
}

impl Stream {
    fn free() -> Self {
        Self {
            number: 0,
            receiving: Receiving::Nothing,
            sending: Sending::Message,
            is_head: false,
            is_queued: false,
            has_grown: false,
            announced: None,
            incoming: Incoming::default(),
            flow: 0,
            unreleased: 0,
            padding: 0,
            window: 0,
            outgoing: Body::empty(),
            stalled: None,
        }
    }

    /// Makes a free slot an open stream, in place: its bodies are empty.
    fn open(&mut self, number: u32, receiving: Receiving, window: i64) {
        self.number = number;
        (self.receiving, self.sending) = (receiving, Sending::Message);
        (self.is_head, self.is_queued, self.has_grown) = (false, false, false);
        (self.announced, self.stalled) = (None, None);
        (self.flow, self.unreleased, self.padding) = (0, 0, 0);
        self.window = window;
    }
}

/// The open streams: slots, and their numbers in ascending order, as streams are opened.
#[derive(Debug, Default)]
pub(super) struct Streams {
    slots: Vec<Stream>,
    free: Vec<u32>,
    order: VecDeque<StreamId>,
}

/// What a stream held that was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Removed {
    /// Bytes of its outgoing body that were not in the output.
    pub(super) unsent: usize,
    /// Bytes of memory of its arriving body.
    pub(super) arriving: usize,
    /// Bytes of DATA to be given back to the connection's window.
    pub(super) unreleased: u32,
}

/// Slots that a connection without streams keeps.
const KEPT: usize = 8;

impl Streams {
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Adds a stream; its number is higher than those before.
    pub(super) fn insert(
        &mut self,
        number: u32,
        receiving: Receiving,
        window: i64,
    ) -> (StreamId, &mut Stream) {
        // A free slot is one of those there are.
        let free = self.free.pop().filter(|slot| (*slot as usize) < self.slots.len());
        let slot = free.unwrap_or_else(|| {
            self.slots.push(Stream::free());
            self.slots.len() as u32 - 1
        });
        let id = StreamId { number, slot };
        self.order.push_back(id);
        let stream = &mut self.slots[slot as usize];
        stream.open(number, receiving, window);
        (id, stream)
    }

    #[inline]
    pub(super) fn get(&mut self, id: StreamId) -> Option<&mut Stream> {
        let stream = self.slots.get_mut(id.slot as usize)?;
        (stream.number == id.number).then_some(stream)
    }

    /// The stream with this number.
    #[inline]
    pub(super) fn find(&self, number: u32) -> Option<StreamId> {
        match self.order.back() {
            Some(last) if last.number == number => Some(*last),
            Some(last) if last.number > number => self.order.get(self.position(number)?).copied(),
            _ => None,
        }
    }

    pub(super) fn remove(&mut self, id: StreamId) -> Option<Removed> {
        let stream = self.get(id)?;
        let removed = Removed {
            unsent: stream.outgoing.len(),
            arriving: stream.incoming.held(),
            unreleased: stream.unreleased,
        };
        stream.number = 0;
        stream.incoming.clear();
        stream.outgoing.clear();
        if let Some(position) = self.position(id.number) {
            self.order.remove(position);
        }
        self.free.push(id.slot);
        if self.order.is_empty() && self.slots.len() > KEPT {
            // A connection that is idle after a burst keeps nothing of it.
            *self = Self::default();
        }
        Some(removed)
    }

    /// All streams, in ascending order.
    pub(super) fn ids(&self) -> impl Iterator<Item = StreamId> + use<'_> {
        self.order.iter().copied()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Bytes of memory held, bodies left out.
    pub(super) fn held(&self) -> usize {
        self.slots.capacity() * size_of::<Stream>()
            + self.order.capacity() * size_of::<StreamId>()
            + self.free.capacity() * size_of::<u32>()
    }

    #[inline]
    fn position(&self, number: u32) -> Option<usize> {
        self.order.binary_search_by_key(&number, |id| id.number).ok()
    }
}

/// Streams that this side reset: the peer's frames for them may still be on their way (RFC 9113 §5.4.2).
#[derive(Debug, Default)]
pub(super) struct ResetStreams {
    numbers: VecDeque<u32>,
    /// The highest number that was evicted: frames of streams up to it are not held against the peer.
    evicted: u32,
}

/// How many reset streams a connection keeps.
const REMEMBERED: usize = 256;

impl ResetStreams {
    pub(super) fn push(&mut self, number: u32) {
        if self.numbers.len() >= REMEMBERED
            && let Some(evicted) = self.numbers.pop_front()
        {
            self.evicted = self.evicted.max(evicted);
        }
        self.numbers.push_back(number);
    }

    /// Whether frames for this stream may still come.
    pub(super) fn may_hold(&self, number: u32) -> bool {
        number <= self.evicted || self.numbers.contains(&number)
    }

    pub(super) fn held(&self) -> usize {
        self.numbers.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_found_until_they_are_removed() {
        let mut streams = Streams::default();
        let ids: Vec<StreamId> = (0..100)
            .map(|i| streams.insert(2 * i + 1, Receiving::Body, 0).0)
            .collect();
        for (at, id) in ids.iter().enumerate() {
            if at % 3 == 0 {
                assert!(streams.remove(*id).is_some() && streams.remove(*id).is_none());
            }
        }
        let again = streams.insert(301, Receiving::Body, 0).0;
        for (at, id) in ids.iter().enumerate() {
            let expected = (at % 3 != 0).then_some(*id);
            assert_eq!(streams.find(id.number), expected);
            assert_eq!(streams.get(*id).is_some(), expected.is_some());
        }
        assert_eq!(streams.find(301), Some(again));
        assert_eq!(
            (streams.find(303), streams.find(2), streams.len()),
            (None, None, 67)
        );
        let left: Vec<StreamId> = streams.ids().collect();
        for id in left {
            streams.remove(id);
        }
        assert_eq!(streams.held(), 0);
    }

    #[test]
    fn reset_streams_are_bounded() {
        let mut reset = ResetStreams::default();
        for number in (1..2_001).step_by(2) {
            reset.push(number);
        }
        assert!(reset.may_hold(1) && reset.may_hold(1_999) && !reset.may_hold(2_001));
        assert!(reset.held() <= 2 * REMEMBERED * 4);
    }
}
