//! What streams find, and what those of both protocols have in common.

use std::net::SocketAddr;
use std::time::SystemTime;

use crate::{Captured, MAX_BUFFERED, Summary};

/// Sender and receiver.
pub(crate) type Ends = (SocketAddr, SocketAddr);

/// Where streams put what they find.
pub(crate) struct Sink<'s> {
    pub(crate) at: SystemTime,
    pub(crate) ends: Ends,
    pub(crate) comment: Option<&'s str>,
    pub(crate) summary: &'s mut Summary,
    /// Bytes that all streams have buffered.
    pub(crate) buffered: &'s mut usize,
    pub(crate) take: &'s mut dyn FnMut(&Captured<'_>),
}

impl Sink<'_> {
    /// Whether streams may buffer this many bytes more.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.buffered.saturating_add(bytes) <= MAX_BUFFERED
    }

    pub(crate) fn message(&mut self, bytes: &[u8]) {
        self.summary.messages += 1;
        (self.take)(&Captured {
            at: self.at,
            from: self.ends.0,
            to: self.ends.1,
            comment: self.comment,
            bytes,
        });
    }
}

/// What streams of both protocols have in common.
pub(crate) trait OneWay: Default {
    /// Whether it may still have messages.
    fn is_needed(&self) -> bool;
    /// Bytes that it has buffered.
    fn size(&self) -> usize;
    /// Shows what it has of messages behind gaps.
    fn end(&mut self, _: &mut Sink<'_>) {}
    /// Counts what kind of stream it was.
    fn count(&self, summary: &mut Summary);
}
