//! Bytes that wait for the kernel.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use smallvec::SmallVec;
use tokio::io::AsyncWrite;

use super::offer;

/// Pieces a single system call takes.
const PIECES: usize = 64;
/// A quiet connection keeps no larger buffer than this.
const KEPT: usize = 64 * 1024;

/// What is to be written, in order: bytes copied here, and shared bytes in between.
#[derive(Debug, Default)]
pub(super) struct Output {
    copied: Vec<u8>,
    /// What of `copied` was written.
    copied_at: usize,
    pieces: VecDeque<Piece>,
    len: usize,
}

#[derive(Debug)]
enum Piece {
    /// So many of the bytes that were copied.
    Copied(usize),
    Shared(Bytes),
}

impl Output {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds bytes at the end; shares them if they were offered, copies them otherwise.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            // An empty piece at the end would never be written, and so never go.
            return;
        }
        self.len += bytes.len();
        if let Some(shared) = offer::offered(bytes) {
            self.pieces.push_back(Piece::Shared(shared));
            return;
        }
        self.copied.extend_from_slice(bytes);
        match self.pieces.back_mut() {
            Some(Piece::Copied(len)) => *len += bytes.len(),
            _ => self.pieces.push_back(Piece::Copied(bytes.len())),
        }
    }

    /// One system call; how much it took.
    pub(super) fn poll_write<T: AsyncWrite + Unpin>(
        &mut self,
        io: &mut T,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let wrote = match self.pieces.front() {
            None => return Poll::Ready(Ok(0)),
            Some(Piece::Copied(len)) if self.pieces.len() == 1 => {
                let bytes = &self.copied[self.copied_at..self.copied_at + len];
                ready!(Pin::new(io).poll_write(cx, bytes))?
            }
            Some(_) => {
                let mut at = self.copied_at;
                let slices: SmallVec<[IoSlice<'_>; PIECES]> = self
                    .pieces
                    .iter()
                    .take(PIECES)
                    .map(|piece| match piece {
                        Piece::Shared(bytes) => IoSlice::new(bytes),
                        Piece::Copied(len) => {
                            at += len;
                            IoSlice::new(&self.copied[at - len..at])
                        }
                    })
                    .collect();
                ready!(Pin::new(io).poll_write_vectored(cx, &slices))?
            }
        };
        self.advance(wrote);
        Poll::Ready(Ok(wrote))
    }

    fn advance(&mut self, mut wrote: usize) {
        self.len -= wrote;
        while wrote > 0 {
            // No writer takes more than it was given.
            let Some(piece) = self.pieces.front_mut() else {
                break;
            };
            let taken = match piece {
                Piece::Copied(len) => {
                    let taken = wrote.min(*len);
                    *len -= taken;
                    self.copied_at += taken;
                    taken
                }
                Piece::Shared(bytes) => {
                    let taken = wrote.min(bytes.len());
                    *bytes = bytes.slice(taken..);
                    taken
                }
            };
            wrote -= taken;
            if matches!(piece, Piece::Copied(0)) || matches!(piece, Piece::Shared(bytes) if bytes.is_empty())
            {
                self.pieces.pop_front();
            }
        }
        if self.pieces.is_empty() {
            self.copied_at = 0;
            self.copied.clear();
            // A burst leaves no large buffer behind on a quiet connection.
            self.copied.shrink_to(KEPT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Takes at most so many bytes at a time.
    struct Sip(usize, Vec<u8>);

    impl AsyncWrite for Sip {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let taken = bytes.len().min(self.0);
            self.1.extend_from_slice(&bytes[..taken]);
            Poll::Ready(Ok(taken))
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let first: Vec<u8> = slices
                .iter()
                .flat_map(|slice| &slice[..])
                .take(self.0)
                .copied()
                .collect();
            self.poll_write(cx, &first)
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn empty_pieces_leave_nothing_behind() {
        let (mut output, mut sink) = (Output::default(), Sip(10_000, Vec::new()));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        output.push(b"x");
        offer::offer(&[Bytes::new()]);
        output.push(b"");
        let _ = output.poll_write(&mut sink, &mut cx);
        assert!(output.pieces.is_empty() && output.copied.is_empty());
    }

    proptest! {
        #[test]
        fn bytes_leave_in_order(sizes in proptest::collection::vec(0usize..4_000, 0..90), sip in 200usize..9_000) {
            let (mut output, mut expected, mut sink) = (Output::default(), Vec::new(), Sip(sip, Vec::new()));
            let mut cx = Context::from_waker(std::task::Waker::noop());
            for (i, size) in sizes.into_iter().enumerate() {
                let bytes = Bytes::from(vec![i as u8; size]);
                if i % 3 > 0 {
                    offer::offer(std::slice::from_ref(&bytes));
                }
                output.push(&bytes);
                expected.extend_from_slice(&bytes);
                if i % 7 == 0 {
                    let _ = output.poll_write(&mut sink, &mut cx);
                }
            }
            while output.len() > 0 {
                prop_assert!(matches!(output.poll_write(&mut sink, &mut cx), Poll::Ready(Ok(1..))));
            }
            prop_assert_eq!(sink.1, expected);
            prop_assert!(output.copied.is_empty() && output.pieces.is_empty());
        }
    }
}
