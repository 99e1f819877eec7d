//! What a checkpoint has of an index that changes meanwhile: each shard as it was when the capture began.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};

/// The captures of an index.
#[derive(Default)]
pub(super) struct Captures(AtomicU32);

impl Captures {
    /// Begins one.
    pub(super) fn begin(&self) {
        self.0.fetch_add(1, Release);
    }

    /// The number of the one that began last.
    pub(super) fn last(&self) -> u32 {
        self.0.load(Acquire)
    }
}

/// Of a shard: the capture that has it, and the entries that the one in progress must have, where they have changed since that began.
pub(super) struct Kept<E> {
    capture: u32,
    entries: Option<Vec<E>>,
}

impl<E> Default for Kept<E> {
    fn default() -> Self {
        Self {
            capture: 0,
            entries: None,
        }
    }
}

impl<E> Kept<E> {
    /// Before a change of the entries.
    pub(super) fn keep(&mut self, capture: u32, entries: impl Iterator<Item = E>) {
        if self.capture != capture {
            self.capture = capture;
            self.entries = Some(entries.collect());
        }
    }

    /// Gives this capture the entries as they were when it began, once.
    pub(super) fn take(&mut self, capture: u32, entries: impl Iterator<Item = E>, append: impl FnMut(E)) {
        if self.capture == capture {
            self.entries.take().into_iter().flatten().for_each(append);
        } else {
            entries.for_each(append);
            self.capture = capture;
        }
    }

    /// This capture is at its end.
    pub(super) fn end(&mut self, capture: u32) {
        self.capture = capture;
        self.entries = None;
    }
}
