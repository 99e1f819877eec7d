//! Requests of HTTP/1.1 as the service gets them, and answers as they leave.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http2::name::{CONNECTION, HOST, KEEP_ALIVE, PROXY_CONNECTION, TRANSFER_ENCODING, UPGRADE};
use http2::{RequestHead, Value};
use hyper::Version;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use sbi_proto::{Body, Response};

use crate::memory::{Account, Shares};
use crate::server::activity::InProgress;
use crate::server::host;

/// Fields that concern a connection of HTTP/1.1 alone (RFC 9110 §7.6.1).
const OF_CONNECTION: [http2::Name<'static>; 5] = [
    CONNECTION,
    KEEP_ALIVE,
    PROXY_CONNECTION,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The head of a request, with scheme and authority as one of HTTP/2 has them.
///
/// # Errors
/// Why it is ambiguous which server it is for.
pub(super) fn head_of(
    parts: http::request::Parts,
    scheme: &'static str,
) -> Result<RequestHead, &'static str> {
    let demands_host = parts.version >= Version::HTTP_11;
    let mut head = RequestHead::from(parts);
    host::check(&head.fields)?;
    let host = head.fields.get(HOST).map(|host| host.as_bytes().to_vec());
    if host.is_none() && demands_host {
        return Err("no Host (RFC 9112 §3.2)");
    }
    if head.scheme().is_empty() {
        let host = host.unwrap_or_default();
        let authority = Value::new(&host).map_err(|_| "an invalid Host")?;
        head.set_origin(Value::from_static(scheme), authority);
    }
    for name in OF_CONNECTION {
        head.fields.remove(name);
    }
    Ok(head)
}

/// Why a body is not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    TooLarge,
    /// The connection has ended, or the body is malformed.
    Broken,
}

/// Reads a body of at most `most` bytes.
pub(super) async fn whole(mut body: Incoming, most: usize, in_progress: &InProgress) -> Result<Body, Unread> {
    if body.size_hint().lower() > most as u64 {
        return Err(Unread::TooLarge);
    }
    // Segments are joined: many small chunks take no more memory than one.
    let mut joined = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let Ok(data) = frame.map_err(|_| Unread::Broken)?.into_data() else {
            continue;
        };
        if joined.len() + data.len() > most {
            return Err(Unread::TooLarge);
        }
        in_progress.charge(data.len());
        joined.extend_from_slice(&data);
    }
    Ok(Body::from(joined))
}

/// What an answer holds until it has left.
pub(super) struct Held {
    account: Rc<Account>,
    own: usize,
    shares: Shares,
    _in_progress: InProgress,
}

impl Held {
    pub(super) fn new(account: &Rc<Account>, body: &Body, in_progress: InProgress) -> Rc<Self> {
        in_progress.answered();
        let (own, shares) = account.hold(body);
        Rc::new(Self {
            account: account.clone(),
            own,
            shares,
            _in_progress: in_progress,
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.account.let_go(self.own, &self.shares);
    }
}

/// The body of an answer.
pub(super) struct Leaving {
    segments: std::vec::IntoIter<Bytes>,
    left: usize,
    /// What follows the segments.
    rest: Body,
    _held: Rc<Held>,
}

/// An answer as it leaves.
pub(super) fn leaving(response: Response, held: Rc<Held>) -> http::Response<Leaving> {
    http::Response::<Body>::from(response).map(|body| Leaving {
        segments: body.segments().to_vec().into_iter(),
        left: body.len(),
        rest: body,
        _held: held,
    })
}

impl hyper::body::Body for Leaving {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.segments.next() {
            Some(segment) => {
                self.left -= segment.len();
                Some(segment)
            }
            None => self.rest.take_rest(),
        };
        Poll::Ready(next.map(|segment| Ok(Frame::data(segment))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0 && !self.rest.is_streamed()
    }

    fn size_hint(&self) -> SizeHint {
        match self.rest.is_streamed() {
            true => SizeHint::default(),
            false => SizeHint::with_exact(self.left as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(uri: &str, version: Version, fields: &[(&str, &str)]) -> Result<RequestHead, &'static str> {
        let mut request = http::Request::get(uri).version(version);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        head_of(request.body(()).unwrap().into_parts().0, "http")
    }

    #[test]
    fn a_head_names_its_server_and_nothing_of_its_connection() {
        let fields = [
            ("host", "scef.example:80"),
            ("connection", "keep-alive, x-own"),
            ("keep-alive", "5"),
            ("upgrade", "h2c"),
            ("accept", "*/*"),
        ];
        let got = head("/a?b", Version::HTTP_11, &fields).unwrap();
        let origin = (got.scheme(), got.authority(), got.target());
        assert_eq!(origin, ("http", "scef.example:80", "/a?b"));
        let names: Vec<_> = got
            .fields
            .iter()
            .map(|field| field.name.as_str().to_owned())
            .collect();
        assert_eq!(names, ["host", "accept"]);
        let got = head("http://a.example/x", Version::HTTP_11, &[("host", "a.example")]).unwrap();
        assert_eq!((got.authority(), got.target()), ("a.example", "/x"));
        assert_eq!(head("/", Version::HTTP_10, &[]).unwrap().authority(), "");
    }

    #[test]
    fn which_server_a_request_is_for_is_clear() {
        for (uri, fields) in [
            ("/", &[][..]),
            ("/", &[("host", "a"), ("host", "a")]),
            ("http://a.example/x", &[("host", "b.example")]),
        ] {
            assert!(head(uri, Version::HTTP_11, fields).is_err(), "{uri} {fields:?}");
        }
    }
}
