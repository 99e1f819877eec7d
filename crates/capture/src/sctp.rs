//! An SCTP association in one direction (RFC 9260): its chunks of data, and the messages in them.

use std::collections::{BTreeMap, VecDeque};

use ahash::AHashSet;

use crate::head;
use crate::sink::{OneWay, Sink};
use crate::{MAX_MESSAGE, Summary};

/// Types of chunks (RFC 9260 §3.2).
const DATA: u8 = 0;
const INIT: u8 = 1;
/// ABORT, SHUTDOWN, SHUTDOWN ACK and SHUTDOWN COMPLETE: their sender has no more data (RFC 9260 §9).
const LAST: [u8; 4] = [6, 7, 8, 14];
/// Flags of DATA (RFC 9260 §3.3.1).
const ENDS: u8 = 1;
const BEGINS: u8 = 2;
/// Payload protocol identifier of Diameter in DTLS (RFC 6733 §11.5).
const DIAMETER_IN_DTLS: u32 = 47;
/// Bound on sequence numbers by which a chunk that is sent again is known.
const MAX_KNOWN: usize = 4096;
/// Bound on fragments of messages that are not whole.
const MAX_FRAGMENTS: usize = 1024;

/// An association.
#[derive(Default, Debug)]
pub(crate) struct Association {
    known: AHashSet<u32>,
    /// The same numbers, the oldest first.
    order: VecDeque<u32>,
    /// Flags and data by transmission sequence number.
    fragments: BTreeMap<u32, (u8, Vec<u8>)>,
    is_diameter: bool,
    is_encrypted: bool,
    is_closed: bool,
}

impl Association {
    /// Takes the chunks of a packet.
    pub(crate) fn take(&mut self, chunks: &[u8], sink: &mut Sink<'_>) {
        let mut rest = chunks;
        while let [kind, flags, high, low, ..] = *rest {
            let length = usize::from(u16::from_be_bytes([high, low]));
            let Some(body) = rest.get(4..length) else {
                // The capture has only the beginning of the packet.
                sink.summary.gaps += u64::from(kind == DATA);
                return;
            };
            match (kind, body) {
                (INIT, _) => self.begin(sink),
                (last, _) if LAST.contains(&last) => self.is_closed = true,
                (DATA, [a, b, c, d, _, _, _, _, e, f, g, h, data @ ..]) => {
                    self.is_encrypted |= u32::from_be_bytes([*e, *f, *g, *h]) == DIAMETER_IN_DTLS;
                    self.data(u32::from_be_bytes([*a, *b, *c, *d]), flags, data, sink);
                }
                _ => {}
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
    }

    /// A new association of the same addresses and ports.
    fn begin(&mut self, sink: &mut Sink<'_>) {
        if !self.fragments.is_empty() {
            self.give_up(sink);
        }
        self.known.clear();
        self.order.clear();
        self.is_closed = false;
    }

    /// Drops the fragments of messages that are not whole.
    fn give_up(&mut self, sink: &mut Sink<'_>) {
        let bytes = self.size();
        *sink.buffered = sink.buffered.saturating_sub(bytes);
        sink.summary.bytes_skipped += bytes as u64;
        sink.summary.gaps += 1;
        self.fragments.clear();
    }

    fn data(&mut self, number: u32, flags: u8, data: &[u8], sink: &mut Sink<'_>) {
        if !self.known.insert(number) {
            return;
        }
        self.order.push_back(number);
        if self.order.len() > MAX_KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        if flags & (BEGINS | ENDS) == BEGINS | ENDS {
            self.message(data, sink);
            return;
        }
        if self.fragments.len() >= MAX_FRAGMENTS || !sink.has_room(data.len()) {
            self.give_up(sink);
            if !sink.has_room(data.len()) {
                sink.summary.bytes_skipped += data.len() as u64;
                return;
            }
        }
        *sink.buffered += data.len();
        self.fragments.insert(number, (flags, data.to_vec()));
        self.join(number, sink);
    }

    /// Shows the message of a fragment, when all others are there. Their numbers follow one another (RFC 9260 §6.9).
    fn join(&mut self, number: u32, sink: &mut Sink<'_>) {
        let find = |step: u32, wanted: u8| {
            let mut at = number;
            for _ in 0..MAX_FRAGMENTS {
                let (flags, _) = self.fragments.get(&at)?;
                if flags & wanted != 0 {
                    return Some(at);
                }
                at = at.wrapping_add(step);
            }
            None
        };
        let (Some(first), Some(last)) = (find(u32::MAX, BEGINS), find(1, ENDS)) else {
            return;
        };
        let mut message = Vec::new();
        for step in 0..=last.wrapping_sub(first) {
            if let Some((_, data)) = self.fragments.remove(&first.wrapping_add(step)) {
                *sink.buffered = sink.buffered.saturating_sub(data.len());
                message.extend_from_slice(&data);
            }
        }
        self.message(&message, sink);
    }

    fn message(&mut self, data: &[u8], sink: &mut Sink<'_>) {
        let is_whole = data.len() <= MAX_MESSAGE && head::length(data) == Some(data.len());
        if is_whole {
            self.is_diameter = true;
            sink.message(data);
        } else if self.is_diameter {
            sink.summary.bytes_skipped += data.len() as u64;
        }
    }
}

impl OneWay for Association {
    fn is_needed(&self) -> bool {
        self.is_diameter && !self.is_closed
    }

    fn size(&self) -> usize {
        self.fragments.values().map(|(_, data)| data.len()).sum()
    }

    fn count(&self, summary: &mut Summary) {
        if self.is_encrypted {
            summary.streams_encrypted += 1;
        } else if !self.is_diameter {
            summary.streams_of_others += 1;
        } else {
            // Messages that are not whole.
            let bytes = self.size();
            summary.bytes_skipped += bytes as u64;
            summary.gaps += u64::from(bytes > 0);
        }
    }
}
