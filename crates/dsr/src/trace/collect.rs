//! Traced messages of several routers together: each is asked at its admin endpoint for what it has of a search.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::rows::TraceRow;

/// How long another router may take to answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of an answer that are read.
const MAX_ANSWER: u64 = 16 * 1024 * 1024;

/// The rows of this router and those of the others, in the order of time. A router that does not answer has a row that
/// says so.
pub(crate) async fn collect(mut rows: Vec<TraceRow>, others: &[SocketAddr], wanted: &str) -> Vec<TraceRow> {
    let mut asked = Vec::new();
    for admin in others {
        let (admin, wanted) = (*admin, wanted.to_owned());
        let asking = async move { tokio::time::timeout(TIMEOUT, ask(admin, &wanted)).await };
        asked.push((admin, tokio::spawn(asking)));
    }
    for (admin, asking) in asked {
        let answer = match asking.await {
            Ok(Ok(answer)) => answer.map_err(|error| error.to_string()),
            Ok(Err(_)) => Err(format!("no answer within {} s", TIMEOUT.as_secs())),
            Err(error) => Err(error.to_string()),
        };
        match answer {
            Ok(theirs) => rows.extend(theirs),
            Err(text) => rows.push(TraceRow {
                router: admin.to_string(),
                what: "unreachable".to_owned(),
                text,
                ..TraceRow::default()
            }),
        }
    }
    rows.sort_by_key(|row| row.at_microseconds);
    rows
}

async fn ask(admin: SocketAddr, wanted: &str) -> std::io::Result<Vec<TraceRow>> {
    let mut stream = TcpStream::connect(admin).await?;
    let path = escaped(wanted);
    // A router that is asked by another asks no further ones.
    let request =
        format!("GET /dsr/traces/{path}?here HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER).read_to_end(&mut answer).await?;
    let invalid = |error: String| std::io::Error::new(std::io::ErrorKind::InvalidData, error);
    let body = answer.windows(4).position(|part| part == b"\r\n\r\n");
    let body = body.and_then(|at| answer.get(at + 4..)).unwrap_or_default();
    if !answer.starts_with(b"HTTP/1.1 200") {
        let head = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
        return Err(invalid(String::from_utf8_lossy(head).into_owned()));
    }
    serde_json::from_slice(body).map_err(|error| invalid(error.to_string()))
}

/// As a part of a path (RFC 3986 §2.1).
fn escaped(text: &str) -> String {
    let each = text.bytes().map(|byte| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    each.collect()
}
