//! Questions to the admin endpoint of a function.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long an admin endpoint may take to answer: a reload may read files of millions of lines.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bound of its answer in bytes.
const MOST: u64 = 16 << 20;

/// Status and body of a page; `None` without an answer.
pub(super) fn ask(admin: SocketAddr, method: &str, path: &str) -> Option<(u16, String)> {
    send(admin, method, path, "")
}

/// As [`ask`], with a body.
pub(super) fn send(admin: SocketAddr, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&admin, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: {admin}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .ok()?;
    let mut bytes = Vec::new();
    stream.take(MOST).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.get(..3)?.parse().ok()?;
    Some((status, body.to_owned()))
}
