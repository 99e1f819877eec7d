//! Complete messages, and the peer that sent a request.

use std::cell::RefCell;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use http2::{Fields, Name, RequestHead, ResponseHead, Value};

use crate::Body;

/// A complete request that came in.
#[derive(Debug)]
pub struct Request {
    /// Method, target, header fields.
    pub head: RequestHead,
    /// The whole body.
    pub body: Body,
    /// Who sent it.
    pub peer: Rc<Peer>,
    /// When its headers were read.
    pub received: Instant,
    /// How long its bytes waited for the worker before that, at most.
    pub waited: Duration,
    /// Number of its stream on the connection.
    pub stream: u32,
}

impl Request {
    /// Whether its sender has given it up since it came.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.peer.given_up.has(self.stream)
    }
}

/// A request on its way out. Scheme and authority are those of the origin that it is sent to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outbound {
    /// Method, target, header fields.
    pub head: RequestHead,
    /// The whole body.
    pub body: Body,
}

/// A complete response.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// Status and header fields.
    pub head: ResponseHead,
    /// The whole body.
    pub body: Body,
}

/// The peer of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its address.
    pub addr: SocketAddr,
    /// The local address.
    pub local: SocketAddr,
    /// Its TLS session; `None` on cleartext connections.
    pub tls: Option<TlsPeer>,
    /// Number of the connection on this worker.
    pub connection: u64,
    /// Requests that it has given up.
    pub given_up: GivenUp,
}

/// The requests of a connection that its peer has reset and that are not answered yet, by the number of their stream; all
/// of them once the connection has ended. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct GivenUp(Rc<RefCell<Streams>>);

#[derive(Debug, Default)]
struct Streams {
    reset: Vec<u32>,
    all: bool,
}

impl GivenUp {
    /// More than can be in progress on a connection.
    const MOST: usize = 4_096;

    /// The peer has reset this stream.
    pub fn add(&self, stream: u32) {
        let streams = &mut self.0.borrow_mut().reset;
        if streams.len() >= Self::MOST {
            streams.remove(0);
        }
        streams.push(stream);
    }

    /// The connection has ended: no answer reaches the peer any more.
    pub fn add_all(&self) {
        self.0.borrow_mut().all = true;
    }

    /// The request of this stream is answered.
    pub fn forget(&self, stream: u32) {
        let streams = &mut self.0.borrow_mut().reset;
        if !streams.is_empty() {
            streams.retain(|one| *one != stream);
        }
    }

    /// Whether the peer has reset this stream or left.
    #[must_use]
    pub fn has(&self, stream: u32) -> bool {
        let streams = self.0.borrow();
        streams.all || streams.reset.contains(&stream)
    }
}

/// TLS session of a peer.
#[derive(Clone, Debug, Default)]
pub struct TlsPeer {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// DER of the certificate the peer showed; `None` without mutual TLS.
    pub certificate: Option<Vec<u8>>,
    /// DNS names and URIs that the certificate is for (subjectAltName).
    pub names: Vec<String>,
}

macro_rules! requests {
    ($($type:ident)+) => { $(
        impl $type {
            /// The method.
            #[must_use]
            pub fn method(&self) -> &Method {
                self.head.method()
            }

            /// Path and query.
            #[must_use]
            pub fn target(&self) -> &str {
                self.head.target()
            }

            /// The path, without the query.
            #[must_use]
            pub fn path(&self) -> &str {
                self.head.path()
            }

            /// The query, without `?`.
            #[must_use]
            pub fn query(&self) -> Option<&str> {
                self.head.query()
            }

            /// The header fields; pseudo-header fields are among them.
            #[must_use]
            pub fn headers(&self) -> &Fields {
                &self.head.fields
            }

            /// The header fields, to be changed.
            pub fn headers_mut(&mut self) -> &mut Fields {
                &mut self.head.fields
            }
        }
    )+ };
}

requests!(Request Outbound);

impl Outbound {
    /// A request without header fields and body; `target` is path and query.
    #[must_use]
    pub fn new(method: Method, target: Value<'_>) -> Self {
        Self {
            head: RequestHead::to(method, target),
            body: Body::empty(),
        }
    }

    /// With this field, in the place of those of its name.
    #[must_use]
    pub fn with<'n, 'v>(mut self, name: impl Into<Name<'n>>, value: impl Into<Value<'v>>) -> Self {
        self.head.fields.set(name, value);
        self
    }

    /// With this body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self
    }
}

/// A request that is sent on as it came.
impl From<Request> for Outbound {
    fn from(request: Request) -> Self {
        Self {
            head: request.head,
            body: request.body,
        }
    }
}

impl From<http::Request<Body>> for Outbound {
    fn from(request: http::Request<Body>) -> Self {
        let (head, body) = request.into_parts();
        Self {
            head: head.into(),
            body,
        }
    }
}

impl Response {
    /// A response without header fields and body.
    #[must_use]
    pub fn new(status: StatusCode) -> Self {
        Self {
            head: ResponseHead::new(status),
            body: Body::empty(),
        }
    }

    /// 200 with this body.
    #[must_use]
    pub fn ok(body: impl Into<Body>) -> Self {
        Self::default().with_body(body)
    }

    /// With this field, in the place of those of its name.
    #[must_use]
    pub fn with<'n, 'v>(mut self, name: impl Into<Name<'n>>, value: impl Into<Value<'v>>) -> Self {
        self.head.fields.set(name, value);
        self
    }

    /// With this body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// The status, to be changed.
    pub fn status_mut(&mut self) -> &mut StatusCode {
        &mut self.head.status
    }

    /// The header fields.
    #[must_use]
    pub fn headers(&self) -> &Fields {
        &self.head.fields
    }

    /// The header fields, to be changed.
    pub fn headers_mut(&mut self) -> &mut Fields {
        &mut self.head.fields
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// The body, to be changed.
    pub fn body_mut(&mut self) -> &mut Body {
        &mut self.body
    }

    /// The body alone.
    #[must_use]
    pub fn into_body(self) -> Body {
        self.body
    }

    /// Head and body.
    #[must_use]
    pub fn into_parts(self) -> (ResponseHead, Body) {
        (self.head, self.body)
    }
}

/// 200 without header fields and body.
impl Default for Response {
    fn default() -> Self {
        Self::new(StatusCode::OK)
    }
}

impl From<http::Response<Body>> for Response {
    fn from(response: http::Response<Body>) -> Self {
        let (head, body) = response.into_parts();
        Self {
            head: head.into(),
            body,
        }
    }
}

impl From<Response> for http::Response<Body> {
    fn from(response: Response) -> Self {
        let mut converted = http::Response::new(response.body);
        *converted.status_mut() = response.head.status;
        *converted.headers_mut() = (&response.head.fields).into();
        converted
    }
}

/// Something that answers requests.
///
/// The future is polled once in place and moved to a task of its own only if it is not ready then, so a
/// service that answers from memory costs no task.
pub trait Service: 'static {
    /// Answers a request. There is always an answer: a failure is one too.
    fn call(self: Rc<Self>, request: Request) -> impl Future<Output = Response> + 'static;

    /// Completes an answer that the server makes without this service, such as 413 for a body that is too large: the
    /// originator of an error is named in its headers (TS 29.500 §6.10.8.2).
    fn complete(&self, _response: &mut Response) {}

    /// Whether it serves HTTP/1.1 beside HTTP/2, as T8 does (TS 29.122 §5.2.2); interfaces of the 5G core have HTTP/2 alone
    /// (TS 29.500 §5.2.1).
    fn has_http1(&self) -> bool {
        false
    }

    /// A sentence for people who come with a browser: which function this is, and where its admin pages are.
    fn about(&self) -> String {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name;

    #[test]
    fn messages_of_the_http_crate_keep_their_fields() {
        let mut secret = http::HeaderValue::from_static("Bearer x");
        secret.set_sensitive(true);
        let request = http::Request::put("/x?y=1")
            .header(name::AUTHORIZATION, secret)
            .header("x-Twice", Value::from_static("1"))
            .header("x-twice", "2")
            .body(Body::from("b"));
        let request = Outbound::from(request.unwrap());
        assert_eq!(
            (request.method(), request.path(), request.query()),
            (&Method::PUT, "/x", Some("y=1"))
        );
        let fields: Vec<_> = request
            .headers()
            .iter()
            .map(|f| (f.name.as_str(), f.value, f.sensitive))
            .collect();
        let expected = [
            ("authorization", "Bearer x", true),
            ("x-twice", "1", false),
            ("x-twice", "2", false),
        ];
        assert_eq!(
            fields,
            expected.map(|(name, value, sensitive)| (name, Value::from_static(value), sensitive))
        );

        let response = Response::new(StatusCode::CREATED)
            .with(name::LOCATION, Value::from_static("/y"))
            .with_body("c");
        let there: http::Response<Body> = response.clone().into();
        assert_eq!(
            (there.status(), &there.headers()["location"] == "/y"),
            (StatusCode::CREATED, true)
        );
        assert_eq!(Response::from(there), response);
    }
}
