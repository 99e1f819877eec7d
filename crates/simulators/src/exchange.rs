//! A request to a simulator and its answer; no sockets.

use bytes::Bytes;

/// A request as a role sees it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// `GET`, `POST` …
    pub method: &'a [u8],
    /// Path and query.
    pub path: &'a [u8],
    /// The body.
    pub body: &'a [u8],
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// Content type, if there is a body.
    pub content_type: &'static str,
    /// The body.
    pub body: Bytes,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
}

impl Reply {
    /// An answer without a body.
    #[must_use]
    pub fn empty(status: u16) -> Self {
        Self {
            status,
            content_type: "",
            body: Bytes::new(),
            headers: Vec::new(),
        }
    }

    pub(crate) fn json(status: u16, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            content_type: "application/json",
            body: body.into(),
            headers: Vec::new(),
        }
    }

    /// A problem (RFC 9457) with this status and cause.
    #[must_use]
    pub fn problem(status: u16, cause: &str) -> Self {
        Self {
            status,
            content_type: "application/problem+json",
            body: format!(r#"{{"status":{status},"cause":"{cause}"}}"#).into(),
            headers: Vec::new(),
        }
    }
}
