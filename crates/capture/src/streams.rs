//! The streams of a file: one from each sender to each receiver.

use std::time::SystemTime;

use ahash::AHashMap;

use crate::file::Packet;
use crate::frame::{Content, Segment, Tcp};
use crate::sctp::Association;
use crate::sink::{Ends, OneWay, Sink};
use crate::tcp::Stream;
use crate::{Captured, MAX_STREAMS, Summary};

/// Refused packets between two searches for streams that are not needed any more.
const SEARCH_EVERY: u64 = 4096;

/// All streams.
#[derive(Default, Debug)]
pub(crate) struct Streams {
    tcp: AHashMap<Ends, Stream>,
    sctp: AHashMap<Ends, Association>,
    buffered: usize,
    /// Time of the last packet.
    at: Option<SystemTime>,
}

impl Streams {
    /// Takes a packet.
    pub(crate) fn take(
        &mut self,
        packet: &Packet<'_>,
        segment: &Segment<'_>,
        summary: &mut Summary,
        take: &mut dyn FnMut(&Captured<'_>),
    ) {
        self.at = Some(packet.at);
        let ends = (segment.from, segment.to);
        let mut sink = Sink {
            at: packet.at,
            ends,
            comment: packet.comment,
            summary,
            buffered: &mut self.buffered,
            take,
        };
        match &segment.content {
            Content::Tcp(tcp) => {
                acknowledge(&mut self.tcp, tcp, &mut sink);
                sink.ends = ends;
                if tcp.data.is_empty() && !tcp.is_first {
                    if tcp.is_last
                        && let Some(stream) = self.tcp.get_mut(&ends)
                    {
                        stream.close();
                    }
                    return;
                }
                if let Some(stream) = entry(&mut self.tcp, &mut sink) {
                    stream.take(tcp, packet.lost as usize, &mut sink);
                }
            }
            Content::Sctp(chunks) => {
                if let Some(association) = entry(&mut self.sctp, &mut sink) {
                    association.take(chunks, &mut sink);
                }
            }
        }
    }

    /// Ends all streams: what they have of messages behind a gap is shown.
    pub(crate) fn finish(mut self, summary: &mut Summary, take: &mut dyn FnMut(&Captured<'_>)) {
        let at = self.at.unwrap_or(SystemTime::UNIX_EPOCH);
        for (ends, mut stream) in self.tcp {
            let mut sink = Sink {
                at,
                ends,
                comment: None,
                summary: &mut *summary,
                buffered: &mut self.buffered,
                take: &mut *take,
            };
            stream.end(&mut sink);
            stream.count(summary);
        }
        for association in self.sctp.values() {
            association.count(summary);
        }
    }
}

/// What a receiver has acknowledged, the capture will not have any more.
fn acknowledge(streams: &mut AHashMap<Ends, Stream>, tcp: &Tcp<'_>, sink: &mut Sink<'_>) {
    let back = (sink.ends.1, sink.ends.0);
    if let Some(number) = tcp.acknowledges
        && let Some(stream) = streams.get_mut(&back)
    {
        sink.ends = back;
        stream.acknowledged(number, sink);
    }
}

/// The stream of a packet; none: there are too many. Those that are not needed any more are dropped then, now and then, since a
/// search for each packet would take long.
fn entry<'s, S: OneWay>(streams: &'s mut AHashMap<Ends, S>, sink: &mut Sink<'_>) -> Option<&'s mut S> {
    if streams.len() >= MAX_STREAMS && !streams.contains_key(&sink.ends) {
        if sink.summary.packets_beyond_bounds.is_multiple_of(SEARCH_EVERY) {
            let ends = sink.ends;
            streams.retain(|key, stream| {
                let is_needed = stream.is_needed();
                if !is_needed {
                    sink.ends = *key;
                    *sink.buffered = sink.buffered.saturating_sub(stream.size());
                    stream.end(sink);
                    stream.count(sink.summary);
                }
                is_needed
            });
            sink.ends = ends;
        }
        if streams.len() >= MAX_STREAMS {
            sink.summary.packets_beyond_bounds += 1;
            return None;
        }
    }
    Some(streams.entry(sink.ends).or_default())
}
