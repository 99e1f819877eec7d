//! One question, one answer over HTTP: for asking admin endpoints and handing spans to a collector.
//!
//! HTTP/1.0 keeps this short: the answer ends with the connection. Callers that need more use a real client.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// The largest answer that is read.
const MOST: u64 = 256 << 20;

/// A question.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// `GET`, `POST`.
    pub method: &'a str,
    /// Path and query, as they are on the wire.
    pub path: &'a str,
    /// Type of the body.
    pub content_type: &'a str,
    /// Body; empty for none.
    pub body: &'a str,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// Body.
    pub body: String,
}

impl Ask<'_> {
    /// Asks at `host:port`. Blocks, each step at most `timeout`.
    ///
    /// # Errors
    /// When the server does not answer, or not with HTTP.
    pub fn at(&self, authority: &str, timeout: Duration) -> io::Result<Answer> {
        let mut outcome = Err(io::Error::new(io::ErrorKind::NotFound, "it has no address"));
        for address in authority.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => return self.over(stream, authority, timeout),
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    fn over(&self, mut stream: TcpStream, authority: &str, timeout: Duration) -> io::Result<Answer> {
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        let Self {
            method,
            path,
            content_type,
            body,
        } = self;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: {authority}\r\nContent-Type: {content_type}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.take(MOST).read_to_end(&mut answer)?;
        parse(&String::from_utf8_lossy(&answer))
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP"))
    }
}

fn parse(answer: &str) -> Option<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let line = head.lines().next().filter(|line| line.starts_with("HTTP/1."))?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    Some(Answer {
        status,
        body: body.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_apart() {
        let answer = parse("HTTP/1.0 503 Service Unavailable\r\na: b\r\n\r\nstore: gone\n").unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (503, "store: gone\n"));
        for odd in [
            "",
            "HTTP/1.0\r\n\r\n",
            "HTTP/1.0 x\r\n\r\n",
            "\r\n\r\n",
            "SSH-2.0 200\r\n\r\n",
        ] {
            assert!(parse(odd).is_none(), "{odd:?}");
        }
    }
}
