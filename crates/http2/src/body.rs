//! Complete message bodies as shared segments.
//!
//! A body is never copied on its way: what a peer sent in several DATA frames stays several segments, and a
//! function may assemble an answer from bytes it serialised before. HTTP/2 frames are cut across segments,
//! so a body of many small segments takes few frames.

use std::fmt;
use std::io::IoSlice;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, Bytes};
use smallvec::SmallVec;

/// A body: zero or more segments of shared bytes. Cloning it shares them.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// Nearly all bodies have one segment; room for more would make all messages larger to move.
    segments: SmallVec<[Bytes; 1]>,
    /// First segment that still has bytes, for reading as [`Buf`].
    at: usize,
    len: usize,
    /// What follows the segments, made while they are sent.
    rest: Option<Arc<Rest>>,
}

/// The rest of a body that is made while it is sent. Clones of a body share it.
struct Rest(Mutex<Box<dyn FnMut() -> Option<Bytes> + Send>>);

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rest")
    }
}

impl Body {
    /// No bytes.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// A body that is made while it is sent: `next` returns one segment after the other, and is called when all before it
    /// are in the output, on the thread of the connection. The body has the first segment from the start; [`Self::len`] and
    /// readers know of no more. It goes without Content-Length.
    pub fn streamed(mut next: impl FnMut() -> Option<Bytes> + Send + 'static) -> Self {
        let mut body = Self::empty();
        if let Some(first) = next_of(&mut next) {
            body.push(first);
            body.rest = Some(Arc::new(Rest(Mutex::new(Box::new(next)))));
        }
        body
    }

    /// Whether more than the segments may follow.
    #[must_use]
    pub fn is_streamed(&self) -> bool {
        self.rest.is_some()
    }

    /// The segment that follows all that are here; `None` behind the last one.
    pub fn take_rest(&mut self) -> Option<Bytes> {
        let next = {
            let mut rest = self
                .rest
                .as_ref()?
                .0
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            next_of(&mut **rest)
        };
        if next.is_none() {
            self.rest = None;
        }
        next
    }

    /// Replaces the segments, which were sent, by the one that follows them.
    pub(crate) fn continue_with(&mut self, segment: Bytes) {
        self.segments.clear();
        (self.at, self.len) = (0, segment.len());
        self.segments.push(segment);
    }

    /// Adds a segment at the end; an empty one adds nothing.
    pub fn push(&mut self, segment: impl Into<Bytes>) {
        let segment = segment.into();
        if !segment.is_empty() {
            self.len += segment.len();
            self.segments.push(segment);
        }
    }

    /// Length in bytes.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes the first segment and returns it; no bytes where there is none.
    pub(crate) fn take_first(&mut self) -> Bytes {
        let Some(first) = self.segments.get_mut(self.at) else {
            return Bytes::new();
        };
        let first = std::mem::take(first);
        self.len -= first.len();
        self.at += 1;
        first
    }

    /// Removes all bytes.
    pub(crate) fn clear(&mut self) {
        self.segments.clear();
        (self.at, self.len, self.rest) = (0, 0, None);
    }

    /// The segments; none of them is empty.
    #[must_use]
    #[inline]
    pub fn segments(&self) -> &[Bytes] {
        &self.segments[self.at..]
    }

    /// The bytes in one piece. Copies only when there are several segments.
    #[must_use]
    pub fn into_bytes(mut self) -> Bytes {
        match self.segments() {
            [] => Bytes::new(),
            [_] => std::mem::take(&mut self.segments[self.at]),
            _ => self.copy_to_bytes(self.len),
        }
    }

    /// The bytes in one piece, keeping the body. Copies only when there are several segments.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        self.clone().into_bytes()
    }
}

/// The next segment that is not empty.
fn next_of(next: &mut (dyn FnMut() -> Option<Bytes> + Send)) -> Option<Bytes> {
    std::iter::from_fn(next).find(|segment| !segment.is_empty())
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        let mut body = Self::empty();
        body.push(bytes);
        body
    }
}

impl FromIterator<Bytes> for Body {
    fn from_iter<I: IntoIterator<Item = Bytes>>(segments: I) -> Self {
        let mut body = Self::empty();
        segments.into_iter().for_each(|segment| body.push(segment));
        body
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len
            && self
                .segments()
                .iter()
                .flatten()
                .eq(other.segments().iter().flatten())
    }
}

impl Buf for Body {
    #[inline]
    fn remaining(&self) -> usize {
        self.len
    }

    #[inline]
    fn chunk(&self) -> &[u8] {
        self.segments.get(self.at).map_or(&[], |segment| segment)
    }

    #[inline]
    fn chunks_vectored<'a>(&'a self, out: &mut [IoSlice<'a>]) -> usize {
        let filled = out.iter_mut().zip(self.segments());
        filled
            .map(|(slot, segment)| *slot = IoSlice::new(segment))
            .count()
    }

    #[inline]
    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.len, "advanced past the end of a body");
        self.len -= count;
        while count > 0 {
            let segment = &mut self.segments[self.at];
            if count < segment.len() {
                segment.advance(count);
                return;
            }
            count -= segment.len();
            *segment = Bytes::new();
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_segment_is_not_copied() {
        let bytes = Bytes::from(vec![7; 100]);
        let body = Body::from(bytes.clone());
        assert_eq!(body.into_bytes().as_ptr(), bytes.as_ptr());
    }

    proptest! {
        #[test]
        fn segments_read_as_one_text(parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 0..9), cut in 0usize..80) {
            let whole: Vec<u8> = parts.concat();
            let mut body: Body = parts.iter().cloned().map(Bytes::from).collect();
            prop_assert_eq!(body.len(), whole.len());
            prop_assert_eq!(&body.to_bytes()[..], &whole[..]);
            let cut = cut.min(whole.len());
            body.advance(cut);
            let mut slots = [IoSlice::new(&[]); 16];
            let filled = body.chunks_vectored(&mut slots);
            let seen: Vec<u8> = slots[..filled].iter().flat_map(|slot| slot.to_vec()).collect();
            prop_assert_eq!(&seen, &whole[cut..]);
            prop_assert_eq!(body.into_bytes(), &whole[cut..]);
        }
    }
}
