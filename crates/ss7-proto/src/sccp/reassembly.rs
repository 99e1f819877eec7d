//! Segments of messages to users of this node, put together again (Q.714 §4.1.1.2.3).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

use super::cause::ReturnCause;
use super::unitdata::{Segmentation, Unitdata};
use crate::point_code::PointCode;

/// Bounds of a [`Reassembly`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReassemblyLimits {
    /// Messages of which segments are awaited.
    pub messages: usize,
    /// Octets of their data.
    pub octets: usize,
    /// T(reass): how long the segments of a message may take.
    pub timeout: Duration,
}

/// What a segment has led to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reassembled {
    /// Further segments are awaited.
    Pending,
    /// It was the last one: the data of all.
    Whole(Vec<u8>),
    /// It is discarded, with those before it.
    Refused(ReassemblyFault),
}

/// Why segments are discarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReassemblyFault {
    /// It is not the one that was awaited.
    #[error("the segment is out of sequence")]
    Sequence,
    /// Bounds of the node.
    #[error("too many segments are awaited")]
    Full,
}

impl ReassemblyFault {
    /// The cause with which the segment returns (Q.713 §3.12).
    #[must_use]
    pub const fn cause(self) -> ReturnCause {
        match self {
            Self::Sequence => ReturnCause::ERROR_IN_MESSAGE_TRANSPORT,
            Self::Full => ReturnCause::DESTINATION_CANNOT_REASSEMBLE,
        }
    }
}

/// Messages of which segments are awaited; each has a first segment `F`, which returns when the others do not come in time.
#[derive(Debug)]
pub struct Reassembly<F> {
    limits: ReassemblyLimits,
    messages: HashMap<Key, Partial<F>>,
    octets: usize,
    /// No message ends before.
    next: Option<Instant>,
}

/// A segmentation reference is unique for a calling party address and an origin only (Q.713 §3.17).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Key {
    origin: PointCode,
    calling: Vec<u8>,
    reference: u32,
}

#[derive(Debug)]
struct Partial<F> {
    first: F,
    /// Segments that are awaited.
    remaining: u8,
    data: Vec<u8>,
    until: Instant,
}

impl<F> Reassembly<F> {
    /// Nothing is awaited.
    #[must_use]
    pub fn new(limits: ReassemblyLimits) -> Self {
        Self {
            limits,
            messages: HashMap::new(),
            octets: 0,
            next: None,
        }
    }

    /// Messages of which segments are awaited.
    #[must_use]
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether none are.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// When [`Self::expired`] may have something to return.
    #[must_use]
    pub const fn wake(&self) -> Option<Instant> {
        self.next
    }

    /// A segment from an origin; `first` makes what returns, of a first segment.
    pub fn add(
        &mut self,
        origin: PointCode,
        segment: &Unitdata<'_>,
        segmentation: Segmentation,
        now: Instant,
        first: impl FnOnce() -> F,
    ) -> Reassembled {
        let key = Key {
            origin,
            calling: segment.calling.to_vec(),
            reference: segmentation.reference,
        };
        if segmentation.first {
            return self.begin(key, segment.data, segmentation.remaining, now, first);
        }
        let room = self.limits.octets.saturating_sub(self.octets);
        let Entry::Occupied(mut entry) = self.messages.entry(key) else {
            return Reassembled::Refused(ReassemblyFault::Sequence);
        };
        let partial = entry.get_mut();
        let fault = if partial.remaining != segmentation.remaining + 1 || partial.until <= now {
            Some(ReassemblyFault::Sequence)
        } else if segment.data.len() > room {
            Some(ReassemblyFault::Full)
        } else {
            None
        };
        if fault.is_none() && segmentation.remaining > 0 {
            partial.remaining = segmentation.remaining;
            partial.data.extend_from_slice(segment.data);
            self.octets += segment.data.len();
            return Reassembled::Pending;
        }
        let mut partial = entry.remove();
        self.octets -= partial.data.len();
        match fault {
            Some(fault) => Reassembled::Refused(fault),
            None => {
                partial.data.extend_from_slice(segment.data);
                Reassembled::Whole(partial.data)
            }
        }
    }

    fn begin(
        &mut self,
        key: Key,
        data: &[u8],
        remaining: u8,
        now: Instant,
        first: impl FnOnce() -> F,
    ) -> Reassembled {
        // The sender has begun again.
        if let Some(former) = self.messages.remove(&key) {
            self.octets -= former.data.len();
        }
        if self.messages.len() >= self.limits.messages || self.octets + data.len() > self.limits.octets {
            return Reassembled::Refused(ReassemblyFault::Full);
        }
        let until = now + self.limits.timeout;
        self.octets += data.len();
        self.next = Some(self.next.map_or(until, |next| next.min(until)));
        let partial = Partial {
            first: first(),
            remaining,
            data: data.to_vec(),
            until,
        };
        self.messages.insert(key, partial);
        Reassembled::Pending
    }

    /// First segments of messages whose others have not come in time.
    pub fn expired(&mut self, now: Instant) -> Vec<F> {
        if self.next.is_none_or(|next| next > now) {
            return Vec::new();
        }
        let late = self.messages.extract_if(|_, partial| partial.until <= now);
        let late: Vec<Partial<F>> = late.map(|(_, partial)| partial).collect();
        self.next = self.messages.values().map(|partial| partial.until).min();
        self.octets -= late.iter().map(|partial| partial.data.len()).sum::<usize>();
        late.into_iter().map(|partial| partial.first).collect()
    }
}
