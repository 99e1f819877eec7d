//! A server that takes what a process sends to an operator's servers.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// Reads a request: its head in lower case, and its body.
pub(crate) fn request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut octets = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).unwrap();
        assert_ne!(read, 0, "the connection ended within a request");
        octets.extend_from_slice(&buffer[..read]);
        let Some(end) = octets.windows(4).position(|four| four == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8(octets[..end].to_vec())
            .unwrap()
            .to_ascii_lowercase();
        let length: usize = field(&head, "content-length").unwrap().parse().unwrap();
        let body = &octets[end + 4..];
        if body.len() >= length {
            return (head, body.to_vec());
        }
    }
}

/// A field of a head.
pub(crate) fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

pub(crate) fn answer(stream: &mut TcpStream, status: &str) {
    let text = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}");
    stream.write_all(text.as_bytes()).unwrap();
}
