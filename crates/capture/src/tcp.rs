//! A TCP stream in one direction: its segments in order, and the messages in them.

use std::collections::BTreeMap;

use crate::Summary;
use crate::frame::Tcp;
use crate::head::{self, HEADER};
use crate::sink::{OneWay, Sink};

/// Bound on segments behind a gap: with more of them the gap will not be filled.
const MAX_LATER: usize = 1024;
/// A sequence number further from the last one belongs to another connection of the same ports.
const WINDOW: u32 = 1 << 27;

/// A stream.
#[derive(Default, Debug)]
pub(crate) struct Stream {
    /// Sequence number of the next byte; none: nothing has been seen.
    next: Option<u32>,
    /// Bytes before the next one.
    position: u64,
    /// In order, from the beginning of a message.
    buffer: Vec<u8>,
    /// Segments behind a gap, by their position.
    later: BTreeMap<u64, Vec<u8>>,
    /// Whether messages follow one another; otherwise the next one is looked for at the beginning of each segment.
    is_synchronous: bool,
    /// Whether there was a message.
    is_diameter: bool,
    is_encrypted: bool,
    is_closed: bool,
}

impl Stream {
    /// Takes a segment, of which the capture lacks the last `lost` bytes.
    pub(crate) fn take(&mut self, tcp: &Tcp<'_>, lost: usize, sink: &mut Sink<'_>) {
        let before = self.size();
        // A SYN takes a number of its own (RFC 9293 §3.4).
        let first = tcp.sequence.wrapping_add(u32::from(tcp.is_first));
        let distance = |next: u32| first.wrapping_sub(next).cast_signed();
        let is_other = |next: u32| tcp.is_first || distance(next).unsigned_abs() > WINDOW;
        // A repeated SYN is not a new connection.
        if self.next.is_some_and(|next| is_other(next) && next != first) {
            self.end(sink);
            self.next = None;
        }
        self.is_closed = tcp.is_last || self.is_closed && !tcp.is_first;
        let distance = distance(*self.next.get_or_insert(first));
        match u64::try_from(distance) {
            Ok(0) => self.append(tcp.data, sink),
            Ok(ahead) => self.hold(self.position + ahead, tcp.data, sink),
            // It has come before, at least in part.
            Err(_) => {
                let known = distance.unsigned_abs() as usize;
                if let Some(data) = tcp.data.get(known..).filter(|data| !data.is_empty()) {
                    self.append(data, sink);
                }
            }
        }
        if lost > 0 && distance <= 0 {
            self.skip(sink);
            sink.summary.gaps += 1;
            self.advance(lost);
        }
        self.follow(sink);
        while self.later.len() > MAX_LATER {
            self.leap(sink);
        }
        self.account(before, sink);
    }

    /// The receiver has everything before this number: a gap before it is one of the capture.
    pub(crate) fn acknowledged(&mut self, number: u32, sink: &mut Sink<'_>) {
        let Some(next) = self.next else { return };
        let before = self.size();
        let ahead = number.wrapping_sub(next).cast_signed();
        let until = self.position.saturating_add_signed(ahead.into());
        while self.later.first_key_value().is_some_and(|(at, _)| *at < until) {
            self.leap(sink);
        }
        self.account(before, sink);
    }

    /// Its sender has ended it.
    pub(crate) const fn close(&mut self) {
        self.is_closed = true;
    }

    /// Counts what it has buffered, which was `before`. Beyond the bound of all streams it gives its message up.
    fn account(&mut self, before: usize, sink: &mut Sink<'_>) {
        *sink.buffered = (*sink.buffered + self.size()).saturating_sub(before);
        if !self.buffer.is_empty() && !sink.has_room(0) {
            *sink.buffered = sink.buffered.saturating_sub(self.buffer.len());
            sink.summary.gaps += 1;
            self.skip(sink);
        }
    }

    fn advance(&mut self, bytes: usize) {
        self.position += bytes as u64;
        self.next = self.next.map(|next| next.wrapping_add(bytes as u32));
    }

    /// Keeps a segment until those before it are there.
    fn hold(&mut self, at: u64, data: &[u8], sink: &Sink<'_>) {
        let is_longer = self.later.get(&at).is_none_or(|known| known.len() < data.len());
        if is_longer && sink.has_room(data.len()) {
            self.later.insert(at, data.to_vec());
        }
    }

    /// Reads the segments that follow without a gap.
    fn follow(&mut self, sink: &mut Sink<'_>) {
        while let Some(first) = self.later.first_entry()
            && *first.key() <= self.position
        {
            let (at, data) = first.remove_entry();
            let known = (self.position - at) as usize;
            if let Some(data) = data.get(known..).filter(|data| !data.is_empty()) {
                self.append(data, sink);
            }
        }
    }

    /// Goes on behind the first gap.
    fn leap(&mut self, sink: &mut Sink<'_>) {
        let Some(at) = self.later.keys().next().copied() else {
            return;
        };
        let missing = at.saturating_sub(self.position);
        if missing > 0 {
            sink.summary.gaps += 1;
            self.skip(sink);
            self.advance(missing as usize);
        }
        self.follow(sink);
    }

    /// Gives up what there is of a message.
    fn skip(&mut self, sink: &mut Sink<'_>) {
        if self.is_diameter {
            sink.summary.bytes_skipped += self.buffer.len() as u64;
        } else if matches!(self.buffer.as_slice(), [0x16, 3, ..]) {
            // A record of the TLS handshake (RFC 8446 §5.1).
            self.is_encrypted = true;
        }
        self.buffer.clear();
        self.is_synchronous = false;
    }

    /// Adds the next bytes, and shows the messages that are whole.
    fn append(&mut self, data: &[u8], sink: &mut Sink<'_>) {
        self.advance(data.len());
        self.buffer.extend_from_slice(data);
        let mut at = 0;
        loop {
            let rest = self.buffer.get(at..).unwrap_or_default();
            let is_head = if self.is_synchronous {
                rest.len() < 4 || head::length(rest).is_some()
            } else {
                let may_be = rest.first().is_none_or(|first| *first == 1);
                may_be && (rest.len() < HEADER || head::begins(rest))
            };
            if !is_head {
                self.buffer.drain(..at);
                self.skip(sink);
                return;
            }
            let message = head::length(rest).and_then(|length| rest.get(..length));
            let Some(message) = message else { break };
            (self.is_synchronous, self.is_diameter) = (true, true);
            sink.message(message);
            at += message.len();
        }
        self.buffer.drain(..at);
        if self.buffer.len() >= HEADER {
            self.is_synchronous = true;
        }
    }
}

impl OneWay for Stream {
    fn end(&mut self, sink: &mut Sink<'_>) {
        while !self.later.is_empty() {
            self.leap(sink);
        }
        self.skip(sink);
    }

    fn is_needed(&self) -> bool {
        self.is_diameter && !self.is_closed
    }

    fn size(&self) -> usize {
        self.buffer.len() + self.later.values().map(Vec::len).sum::<usize>()
    }

    fn count(&self, summary: &mut Summary) {
        if self.is_encrypted {
            summary.streams_encrypted += 1;
        } else if !self.is_diameter {
            summary.streams_of_others += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_BUFFERED;

    #[test]
    fn a_message_beyond_the_bound_of_all_streams_is_given_up() {
        let (mut summary, mut buffered) = (Summary::default(), MAX_BUFFERED - 10);
        let address = std::net::SocketAddr::from(([192, 0, 2, 1], 3868));
        let mut sink = Sink {
            at: std::time::SystemTime::UNIX_EPOCH,
            ends: (address, address),
            comment: None,
            summary: &mut summary,
            buffered: &mut buffered,
            take: &mut |_| {},
        };
        let mut stream = Stream::default();
        // A message of 100 bytes begins.
        let head = [1_u8, 0, 0, 100, 0x80, 0, 1, 60];
        let more = [&[0_u8; 12][..], &[0, 0, 1, 8, 0x40, 0, 0, 12]].concat();
        for (sequence, data, size) in [(0, &head[..], head.len()), (8, &more[..], 0)] {
            let segment = Tcp {
                sequence,
                is_first: false,
                is_last: false,
                acknowledges: None,
                data,
            };
            stream.take(&segment, 0, &mut sink);
            assert_eq!(stream.size(), size);
            assert_eq!(*sink.buffered, MAX_BUFFERED - 10 + size);
        }
        assert_eq!(summary.gaps, 1);
    }
}
