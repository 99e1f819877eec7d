//! Followed messages as a pcapng file: each message is a packet of its own, which decodes without the others.

use std::fs::{File, Permissions};
use std::io::{self, BufWriter};
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use diameter::capture::Capture;
use follow::Message;
use follow::ladder::Arrow;

/// Types and flags of frames (RFC 9113 §6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Only the owner reads and writes.
const PRIVATE: u32 = 0o600;

/// Writes a file that only its owner may read: it holds personal data. One that is there may have been readable.
pub(super) fn write(file: &Path, arrows: &[Arrow]) -> io::Result<()> {
    let mut options = File::options();
    let out = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(PRIVATE)
        .open(file)?;
    // A pipe or device keeps its rights.
    if out.metadata()?.is_file() {
        out.set_permissions(Permissions::from_mode(PRIVATE))?;
    }
    let mut capture = Capture::new(BufWriter::new(out))?;
    for arrow in arrows {
        let message = &arrow.message;
        let (dissector, bytes) = match (message.interface.as_str(), message.kind.as_str()) {
            (_, "lost") => continue,
            ("diameter", _) => ("diameter", message.bytes()),
            _ => ("http2", http2(message)),
        };
        let address = |text: &str| {
            text.parse()
                .unwrap_or_else(|_| SocketAddr::from(([0, 0, 0, 0], 0)))
        };
        let addresses = (address(&message.from), address(&message.to));
        let at = UNIX_EPOCH + Duration::from_micros(message.microseconds);
        let comment = format!("{} > {}", arrow.from, arrow.to);
        capture.message_of(dissector, at, addresses, &[&bytes], &comment)?;
    }
    capture.flush()
}

/// A message as HEADERS and DATA. Literal fields without indexing (RFC 7541 §6.2.2) need no state of the connection.
fn http2(message: &Message) -> Vec<u8> {
    let mut block = Vec::new();
    if message.kind == "answer" {
        literal(&mut block, ":status", &message.title);
    }
    // Bodies are copied without their coding, which Wireshark would try to decode.
    let headers = message.headers.iter();
    for (name, value) in headers.filter(|(name, _)| name != "content-encoding") {
        literal(&mut block, name, value);
    }
    let body = match message.hex.is_empty() {
        true => message.text.clone().into_bytes(),
        false => message.bytes(),
    };
    let ends = if body.is_empty() { END_STREAM } else { 0 };
    let mut bytes = Vec::with_capacity(block.len() + body.len() + 18);
    frame(&mut bytes, HEADERS, END_HEADERS | ends, message.stream, &block);
    if !body.is_empty() {
        frame(&mut bytes, DATA, END_STREAM, message.stream, &body);
    }
    bytes
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u64, payload: &[u8]) {
    // The length of a frame has 24 bits; a longer body was never stored.
    let payload = &payload[..payload.len().min(0x00ff_ffff)];
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&(stream as u32).to_be_bytes());
    out.extend_from_slice(payload);
}

fn literal(out: &mut Vec<u8>, name: &str, value: &str) {
    out.push(0);
    for text in [name, value] {
        integer(out, text.len());
        out.extend_from_slice(text.as_bytes());
    }
}

/// An integer with a prefix of seven bits (RFC 7541 §5.1); the eighth says that the text is not Huffman-coded.
fn integer(out: &mut Vec<u8>, value: usize) {
    const PREFIX: usize = 0x7f;
    if value < PREFIX {
        out.push(value as u8);
        return;
    }
    out.push(PREFIX as u8);
    let mut rest = value - PREFIX;
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}
