//! HTTP/1 on a port of HTTP/2: requests of HTTP/1.1 where the service has it, elsewhere one answer, 426 (RFC 9110 §15.5.22), with
//! a text for the reader.

mod connection;
mod message;
mod progress;

use sbi_proto::Peer;

pub(super) use connection::drive;

/// What the request line of HTTP/1 may have at most to be known as such.
const LINE: usize = 8 * 1024;

/// Whether what a peer sent first is a request of HTTP/1: a line that begins with a method, in capital letters, and
/// ends with the version. `None`: it may become one.
pub(super) fn is_request(came: &[u8]) -> Option<bool> {
    if !came.first().is_some_and(u8::is_ascii_uppercase) || came.len() > LINE {
        return Some(false);
    }
    let line = came
        .split(|byte| *byte == b'\n')
        .next()
        .filter(|line| line.len() < came.len())?;
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    Some(line.len() > 9 && line[..line.len() - 1].ends_with(b" HTTP/1."))
}

/// The answer; `about` names the function that owns the port.
pub(super) fn answer(peer: &Peer, about: &str) -> Vec<u8> {
    let (upgrade, option, scheme) = match peer.tls {
        None => ("h2c", "--http2-prior-knowledge", "http"),
        Some(_) => ("HTTP/2.0", "--http2", "https"),
    };
    let space = if about.is_empty() { "" } else { " " };
    let text = format!(
        "This port speaks HTTP/2 only: it is a service-based interface of the 5G core (TS 29.500).{space}{about}\n\
         To send it a request: curl {option} {scheme}://{}/\n",
        peer.local
    );
    let head = format!(
        "HTTP/1.1 426 Upgrade Required\r\nUpgrade: {upgrade}\r\nConnection: Upgrade, close\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
        text.len()
    );
    (head + &text).into_bytes()
}
