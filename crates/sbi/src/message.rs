//! Requests as a service sees them: complete, with what is known of who sent them.

use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

use http::{HeaderMap, Method, Uri};

use crate::body::Body;

/// A complete response.
pub type Response = http::Response<Body>;

/// A complete request.
#[derive(Debug)]
pub struct Request {
    /// Method, URI, headers.
    pub head: http::request::Parts,
    /// The whole body.
    pub body: Body,
    /// Who sent it.
    pub peer: Rc<Peer>,
    /// When its headers were read.
    pub received: Instant,
}

/// The other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its address.
    pub addr: SocketAddr,
    /// Ours.
    pub local: SocketAddr,
    /// What TLS says of it; `None` on cleartext connections.
    pub tls: Option<TlsPeer>,
    /// Number of the connection on this worker.
    pub connection: u64,
}

/// What TLS says of a peer.
#[derive(Clone, Debug, Default)]
pub struct TlsPeer {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// DER of the certificate the peer showed; `None` without mutual TLS.
    pub certificate: Option<Vec<u8>>,
    /// DNS names and URIs that the certificate is for (subjectAltName).
    pub names: Vec<String>,
}

impl Request {
    /// The method.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.head.method
    }

    /// The URI.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.head.uri
    }

    /// The headers.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }
}

/// Something that answers requests.
///
/// The future is polled once in place and moved to a task of its own only if it is not ready then, so a
/// service that answers from memory costs no task.
pub trait Service: 'static {
    /// Answers a request. There is always an answer: a failure is one too.
    fn call(self: Rc<Self>, request: Request) -> impl Future<Output = Response> + 'static;
}
