//! The streams of a file: one from each sender to each receiver.

use std::net::SocketAddr;
use std::time::SystemTime;

use ahash::AHashMap;

use crate::file::Packet;
use crate::frame::{Content, Segment, Tcp};
use crate::sctp::Association;
use crate::tcp::Stream;
use crate::{Captured, MAX_STREAMS, Summary};

type Ends = (SocketAddr, SocketAddr);

/// Where streams put what they find.
pub(crate) struct Sink<'s> {
    pub(crate) at: SystemTime,
    pub(crate) ends: Ends,
    pub(crate) comment: Option<&'s str>,
    pub(crate) summary: &'s mut Summary,
    /// Bytes that all streams have buffered.
    pub(crate) buffered: &'s mut usize,
    pub(crate) take: &'s mut dyn FnMut(&Captured<'_>),
}

impl Sink<'_> {
    pub(crate) fn message(&mut self, bytes: &[u8]) {
        self.summary.messages += 1;
        (self.take)(&Captured {
            at: self.at,
            from: self.ends.0,
            to: self.ends.1,
            comment: self.comment,
            bytes,
        });
    }
}

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
                    return;
                }
                make_room(&mut self.tcp, |stream| stream.is_needed());
                match entry(&mut self.tcp, ends) {
                    Some(stream) => stream.take(tcp, packet.lost as usize, &mut sink),
                    None => sink.summary.packets_beyond_bounds += 1,
                }
            }
            Content::Sctp(chunks) => {
                make_room(&mut self.sctp, Association::is_needed);
                match entry(&mut self.sctp, ends) {
                    Some(association) => association.take(chunks, &mut sink),
                    None => sink.summary.packets_beyond_bounds += 1,
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

/// Drops streams that are not needed, once there are as many as there may be.
fn make_room<S>(streams: &mut AHashMap<Ends, S>, is_needed: impl Fn(&S) -> bool) {
    if streams.len() >= MAX_STREAMS {
        streams.retain(|_, stream| is_needed(stream));
    }
}

fn entry<S: Default>(streams: &mut AHashMap<Ends, S>, ends: Ends) -> Option<&mut S> {
    if streams.len() >= MAX_STREAMS && !streams.contains_key(&ends) {
        return None;
    }
    Some(streams.entry(ends).or_default())
}
