//! Traced messages of several routers together: each is asked at its admin endpoint for what it has of a search.

use std::net::SocketAddr;

use crate::remote;
use crate::rows::TraceRow;

/// The rows of this router and those of the others, in the order of time. A router that does not answer has a row that
/// says so.
pub(crate) async fn collect(mut rows: Vec<TraceRow>, others: &[SocketAddr], wanted: &str) -> Vec<TraceRow> {
    // A router that is asked by another asks no further ones.
    let path = format!("/dsr/traces/{}?here", escaped(wanted));
    let mut asked = Vec::new();
    for admin in others {
        let (admin, path) = (*admin, path.clone());
        let asking = async move { remote::rows::<TraceRow>(admin, &path).await };
        asked.push((admin, tokio::spawn(asking)));
    }
    for (admin, asking) in asked {
        let answer = match asking.await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
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

/// As a part of a path (RFC 3986 §2.1).
fn escaped(text: &str) -> String {
    let each = text.bytes().map(|byte| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    each.collect()
}
