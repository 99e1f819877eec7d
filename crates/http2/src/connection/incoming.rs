//! A body that is arriving: copied once, into memory that grows with what came, not with what was announced.

use bytes::Bytes;

use crate::body::Body;

/// Without an announced length, segments of this size are not grown any further.
const SEGMENT: usize = 16_384;

/// What came of a body.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    done: Body,
    tail: Vec<u8>,
}

impl Incoming {
    /// Bytes that came.
    pub(super) fn len(&self) -> usize {
        self.done.len() + self.tail.len()
    }

    /// Bytes of memory held.
    pub(super) fn held(&self) -> usize {
        self.done.len() + self.tail.capacity()
    }

    /// Appends; `announced`: the length of the whole body, if it is known.
    pub(super) fn append(&mut self, bytes: &[u8], announced: Option<usize>) {
        let room = self.tail.capacity() - self.tail.len();
        if bytes.len() > room {
            self.make_room(bytes.len(), announced);
        }
        self.tail.extend_from_slice(bytes);
    }

    /// The whole body.
    pub(super) fn take(&mut self) -> Body {
        self.finish_segment();
        std::mem::take(&mut self.done)
    }

    fn make_room(&mut self, more: usize, announced: Option<usize>) {
        let (len, tail) = (self.len(), self.tail.len());
        if let Some(left) = announced.and_then(|announced| announced.checked_sub(len)) {
            // At most twice what came: an announced length alone takes no memory.
            let wanted = left.min(more.max(tail));
            self.tail.reserve_exact(wanted.max(more));
        } else if tail >= SEGMENT / 2 {
            self.finish_segment();
            self.tail.reserve_exact(more);
        } else {
            self.tail.reserve_exact(more.max(tail));
        }
    }

    /// Drops what came.
    pub(super) fn clear(&mut self) {
        if self.held() > 0 {
            *self = Self::default();
        }
    }

    fn finish_segment(&mut self) {
        if self.tail.is_empty() {
            return;
        }
        let tail = std::mem::take(&mut self.tail);
        self.done.push(Bytes::from(tail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_came_is_whole_and_takes_little_more(
            parts in proptest::collection::vec(1usize..5_000, 0..40), is_announced in any::<bool>(),
        ) {
            let (mut incoming, mut whole) = (Incoming::default(), Vec::new());
            let announced = is_announced.then(|| parts.iter().sum());
            for (number, len) in parts.iter().enumerate() {
                let part = vec![number as u8; *len];
                incoming.append(&part, announced);
                whole.extend(part);
                prop_assert!(incoming.held() <= 2 * whole.len().max(1));
            }
            prop_assert_eq!(incoming.len(), whole.len());
            let body = incoming.take();
            let most = if is_announced { 1 } else { 1 + whole.len() / (SEGMENT / 2) };
            prop_assert!(body.segments().len() <= most);
            prop_assert_eq!(body.to_bytes(), whole);
        }
    }

    #[test]
    fn an_announced_body_is_one_piece_of_its_size() {
        let mut incoming = Incoming::default();
        for _ in 0..100 {
            incoming.append(&[7; 1_000], Some(100_000));
        }
        assert_eq!(incoming.held(), 100_000);
        assert_eq!(incoming.take().segments().len(), 1);
    }
}
