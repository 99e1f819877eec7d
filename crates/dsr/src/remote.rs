//! What other routers (siblings, mates) show at their admin endpoints.

use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Timeout of a query.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of an answer that are read.
const MAX_ANSWER: u64 = 16 * 1024 * 1024;

/// The rows of a page of another router.
///
/// # Errors
/// When it does not answer within [`TIMEOUT`], or with anything else.
pub(crate) async fn rows<T: DeserializeOwned>(admin: SocketAddr, path: &str) -> std::io::Result<Vec<T>> {
    let late = || {
        let reason = format!("no answer within {} s", TIMEOUT.as_secs());
        Error::new(ErrorKind::TimedOut, reason)
    };
    let answer = tokio::time::timeout(TIMEOUT, read(admin, path));
    let answer = answer.await.map_err(|_| late())??;
    let invalid = |error: String| Error::new(ErrorKind::InvalidData, error);
    let body = answer.windows(4).position(|part| part == b"\r\n\r\n");
    let body = body.and_then(|at| answer.get(at + 4..)).unwrap_or_default();
    if !answer.starts_with(b"HTTP/1.1 200") {
        let head = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
        return Err(invalid(String::from_utf8_lossy(head).into_owned()));
    }
    serde_json::from_slice(body).map_err(|error| invalid(error.to_string()))
}

async fn read(admin: SocketAddr, path: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(admin).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER).read_to_end(&mut answer).await?;
    Ok(answer)
}
