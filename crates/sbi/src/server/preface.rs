//! How a connection begins.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::http1;

/// What a client of HTTP/2 sends first (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What is read in one piece at most; a client's SETTINGS and first request often come with the preface.
const PIECE: usize = 4 * 1024;

/// What the first bytes of a peer are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// The preface of HTTP/2; these bytes came, the preface among them.
    Http2(Vec<u8>),
    /// A request of HTTP/1, which begins with these bytes.
    Http1(Vec<u8>),
    /// Something else, or nothing.
    Other,
}

/// Reads until it is clear what the peer speaks.
///
/// # Errors
/// When the connection breaks.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Opening> {
    let mut came = Vec::with_capacity(PIECE);
    loop {
        let known = came.len().min(PREFACE.len());
        if came[..known] != PREFACE[..known] {
            match http1::is_request(&came) {
                Some(true) => return Ok(Opening::Http1(came)),
                Some(false) => return Ok(Opening::Other),
                // The request line is not whole yet.
                None => {}
            }
        }
        if came.starts_with(PREFACE) {
            return Ok(Opening::Http2(came));
        }
        if stream.read_buf(&mut came).await? == 0 {
            return Ok(Opening::Other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn peers_are_known_by_their_first_bytes() {
        let with_more = [PREFACE, b"more"].concat();
        for (bytes, opening) in [
            (&with_more[..], Opening::Http2(with_more.clone())),
            (
                b"GET / HTTP/1.1\r\n",
                Opening::Http1(b"GET / HTTP/1.1\r\n".to_vec()),
            ),
            (
                b"PRI * HTTP/1.1\r\n",
                Opening::Http1(b"PRI * HTTP/1.1\r\n".to_vec()),
            ),
            (b"INVALID CONNECTION PREFACE\r\n\r\n", Opening::Other),
            (b"GET / HTT", Opening::Other),
            (b"\x16\x03\x01", Opening::Other),
            (b"PRI * HT", Opening::Other),
            (b"", Opening::Other),
        ] {
            let mut stream = bytes;
            assert_eq!(read(&mut stream).await.unwrap(), opening, "{bytes:?}");
        }
    }
}
