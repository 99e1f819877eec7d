//! Diameter messages in capture files.
//!
//! [`read`] shows each message of a file, in the order of its packets, and returns what the file had and what could not be
//! read. Formats: pcap and pcapng in either byte order; Ethernet with VLANs, Linux cooked capture (both versions), loopback and
//! raw IP; TCP, whose segments are put in order, and SCTP (RFC 9260), whose fragments are joined; and exported PDUs (link type
//! 252), which `diameter::capture` writes. A stream is one of Diameter by its bytes, whatever its port is.
//!
//! Everything that grows with the file has a bound: a message [`MAX_MESSAGE`], the bytes that wait for a segment
//! [`MAX_BUFFERED`], streams [`MAX_STREAMS`].
//!
//! | file | what is there |
//! |---|---|
//! | `file` | packets of a file, with their times |
//! | `frame` | addresses and payload of a packet |
//! | `exported` | exported PDUs |
//! | `streams` | the streams of a file |
//! | `sink` | what streams find, and what they have in common |
//! | `tcp` | segments in order, and messages in them |
//! | `sctp` | chunks, and messages of several fragments |
//! | `head` | what a Diameter message begins with |

mod exported;
mod file;
mod frame;
mod head;
mod sctp;
mod sink;
mod streams;
mod tcp;

use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::time::SystemTime;

use serde::Serialize;

pub use file::Error;

use file::{LINK_TYPE_EXPORTED_PDU, Packet};
use streams::Streams;

/// Bound on a message: longer ones count as no message.
pub const MAX_MESSAGE: usize = 1 << 20;
/// Bound on the bytes that wait for the rest of their message, or for a segment before them.
pub const MAX_BUFFERED: usize = 256 << 20;
/// Bound on streams, each of one direction.
pub const MAX_STREAMS: usize = 1 << 16;

/// A Diameter message of a file.
#[derive(Debug)]
pub struct Captured<'c> {
    /// When the packet with its last byte was captured.
    pub at: SystemTime,
    /// Its sender.
    pub from: SocketAddr,
    /// Its receiver.
    pub to: SocketAddr,
    /// The comment of the packet, which pcapng has.
    pub comment: Option<&'c str>,
    /// The message: version, length and header fit, what follows is as it was sent.
    pub bytes: &'c [u8],
}

/// What a file had, and what of it could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Packets.
    pub packets: u64,
    /// Diameter messages.
    pub messages: u64,
    /// Packets of which the capture has only the beginning (snapshot length).
    pub packets_cut: u64,
    /// Packets that are not IP, TCP or SCTP, or are framed wrong.
    pub packets_of_others: u64,
    /// Fragments of IP packets; they are not joined.
    pub ip_fragments: u64,
    /// Gaps in streams: segments, or chunks of SCTP, that the capture has not.
    pub gaps: u64,
    /// Bytes of streams of Diameter that belong to no whole message.
    pub bytes_skipped: u64,
    /// Streams without a Diameter message.
    pub streams_of_others: u64,
    /// Streams that began with a TLS record: their messages are encrypted.
    pub streams_encrypted: u64,
    /// Packets with a time far ahead of their neighbours; they count as of the time of one of these.
    pub packets_out_of_time: u64,
    /// Packets of streams beyond [`MAX_STREAMS`].
    pub packets_beyond_bounds: u64,
    /// Whether the file ends within a packet, or is damaged from there on.
    pub is_damaged: bool,
}

/// Shows each message of a file to `take`.
///
/// # Errors
/// When the file cannot be opened or read, or is not a capture. One that is damaged is read up to there.
pub fn read(path: &Path, take: &mut dyn FnMut(&Captured<'_>)) -> Result<Summary, Error> {
    read_from(file::open(path)?, take)
}

/// Shows each message of a capture to `take`.
///
/// # Errors
/// As [`read`].
pub fn read_from(input: impl Read, take: &mut dyn FnMut(&Captured<'_>)) -> Result<Summary, Error> {
    let mut summary = Summary::default();
    let mut streams = Streams::default();
    let is_damaged = file::packets(input, &mut |packet: &Packet<'_>| {
        summary.packets += 1;
        summary.packets_out_of_time += u64::from(packet.is_far);
        if packet.lost > 0 {
            summary.packets_cut += 1;
        }
        if packet.link_type == LINK_TYPE_EXPORTED_PDU {
            match exported::message(packet) {
                Some(message) => {
                    summary.messages += 1;
                    take(&message);
                }
                None => summary.packets_of_others += 1,
            }
            return;
        }
        match frame::segment(packet) {
            Ok(segment) => streams.take(packet, &segment, &mut summary, take),
            Err(frame::Misfit::Fragment) => summary.ip_fragments += 1,
            Err(frame::Misfit::Other) => summary.packets_of_others += 1,
        }
    })?;
    streams.finish(&mut summary, take);
    summary.is_damaged = is_damaged;
    Ok(summary)
}
