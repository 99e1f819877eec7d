//! The body of a request on its way out.

use std::io::IoSlice;

use bytes::Buf;

use crate::body::Body;

/// A body whose bytes are shared with the writer.
#[derive(Debug)]
pub(super) struct Outgoing(pub(super) Body);

impl Buf for Outgoing {
    fn remaining(&self) -> usize {
        self.0.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.0.chunk()
    }

    fn chunks_vectored<'a>(&'a self, out: &mut [IoSlice<'a>]) -> usize {
        self.0.offer(out.len());
        self.0.chunks_vectored(out)
    }

    fn advance(&mut self, count: usize) {
        self.0.advance(count);
    }
}
