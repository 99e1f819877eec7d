//! Where frames begin and end in the bytes of the peer, whatever way they are cut.

use std::time::{Duration, Instant};

use super::event::StreamId;
use crate::frame::{HEAD, Head, PREFACE};

/// What the next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// The head of a frame.
    Head,
    /// The payload of a frame that is handled when it is whole.
    Payload(Head),
    /// The length of the padding of a DATA frame, then the rest of its payload.
    PadLength(Data),
    /// The payload of a DATA frame, handled as it comes.
    Data(Data),
    /// Bytes that are dropped, `timed` if they belong to a frame that is not DATA.
    Skipped { left: usize, timed: bool },
}

/// The rest of a DATA frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Data {
    pub(super) stream: StreamId,
    pub(super) left: usize,
    pub(super) padding: usize,
    pub(super) ends_stream: bool,
}

/// What was kept between two calls of `receive`.
#[derive(Debug)]
pub(super) struct Input {
    /// Bytes of the preface that came.
    pub(super) preface: usize,
    pub(super) expected: Expected,
    head: [u8; HEAD],
    head_len: usize,
    payload: Vec<u8>,
    /// Since when a frame that is not DATA has been incomplete.
    since: Option<Instant>,
}

/// A payload: mostly it lies whole in what was read.
pub(super) enum Payload<'a> {
    Read(&'a [u8]),
    Kept(Vec<u8>),
}

impl Payload<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Read(bytes) => bytes,
            Self::Kept(bytes) => bytes,
        }
    }
}

impl Input {
    /// `preface`: how much of it came; all of it where the peer is a server.
    pub(super) fn new(preface: usize) -> Self {
        Self {
            preface,
            expected: Expected::Head,
            head: [0; HEAD],
            head_len: 0,
            payload: Vec::new(),
            since: None,
        }
    }

    pub(super) fn has_preface(&self) -> bool {
        self.preface >= PREFACE.len()
    }

    /// Takes what came of the preface; whether it is right so far.
    pub(super) fn take_preface(&mut self, bytes: &mut &[u8]) -> bool {
        let missing = PREFACE.get(self.preface..).unwrap_or_default();
        let (came, rest) = bytes.split_at(missing.len().min(bytes.len()));
        self.preface += came.len();
        *bytes = rest;
        missing.starts_with(came)
    }

    /// Takes the head of a frame, if it is whole.
    #[inline]
    pub(super) fn take_head(&mut self, bytes: &mut &[u8]) -> Option<Head> {
        if self.head_len == 0
            && let Some((head, rest)) = bytes.split_first_chunk::<HEAD>()
        {
            *bytes = rest;
            return Some(Head::read(head));
        }
        let (came, rest) = bytes.split_at((HEAD - self.head_len).min(bytes.len()));
        let room = self.head.get_mut(self.head_len..self.head_len + came.len())?;
        room.copy_from_slice(came);
        self.head_len += came.len();
        *bytes = rest;
        if self.head_len < HEAD {
            return None;
        }
        self.head_len = 0;
        Some(Head::read(&self.head))
    }

    /// Takes a payload of this length, if it is whole.
    #[inline]
    pub(super) fn take_payload<'a>(&mut self, len: usize, bytes: &mut &'a [u8]) -> Option<Payload<'a>> {
        if self.payload.is_empty()
            && let Some((payload, rest)) = bytes.split_at_checked(len)
        {
            *bytes = rest;
            return Some(Payload::Read(payload));
        }
        let missing = len.saturating_sub(self.payload.len());
        let (came, rest) = bytes.split_at(missing.min(bytes.len()));
        self.payload.extend_from_slice(came);
        *bytes = rest;
        (self.payload.len() >= len).then(|| Payload::Kept(std::mem::take(&mut self.payload)))
    }

    /// A frame is whole.
    #[inline]
    pub(super) fn frame_ends(&mut self) {
        self.expected = Expected::Head;
        self.since = None;
    }

    /// All bytes that came are taken.
    pub(super) fn pause(&mut self, now: Instant) {
        let incomplete = match self.expected {
            Expected::Head => self.head_len > 0,
            Expected::Payload(_) => true,
            Expected::Skipped { timed, .. } => timed,
            Expected::PadLength(_) | Expected::Data(_) => false,
        };
        if !incomplete {
            self.since = None;
        } else if self.since.is_none() {
            self.since = Some(now);
        }
    }

    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        self.since.map(|since| now.saturating_duration_since(since))
    }

    pub(super) fn held(&self) -> usize {
        self.payload.capacity()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.preface);
    }
}
