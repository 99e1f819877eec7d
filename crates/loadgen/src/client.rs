//! A blocking HTTP/2 client for work that is not measured: set-up, queries, tests.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ahash::AHashMap;
use bytes::Bytes;

use crate::engine::ClientTls;
use crate::http2::{Connection, Event, Limits, RequestHead, Role};
use crate::wire::Wire;

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// `GET`, `PUT` …
    pub method: &'static str,
    /// Path and query.
    pub path: String,
    /// Content type of the body.
    pub content_type: Option<&'static str>,
    /// The body.
    pub body: Bytes,
    /// Headers beside those that every request has.
    pub headers: Vec<(&'static str, String)>,
}

impl Request {
    /// A request without a body.
    #[must_use]
    pub fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            content_type: None,
            body: Bytes::new(),
            headers: Vec::new(),
        }
    }

    /// The same with a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The same with a body.
    #[must_use]
    pub fn with(mut self, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        self.content_type = Some(content_type);
        self.body = body.into();
        self
    }
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// Status code; 0 when the stream was reset.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
    /// The `Location` of the answer, if it has one.
    pub location: String,
}

impl Response {
    /// The body as text, for messages.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).chars().take(500).collect()
    }
}

/// One connection.
#[derive(Debug)]
pub struct Client {
    stream: Wire,
    http: Connection,
    authority: String,
    patience: Duration,
    /// Headers of every request, which the peer's table remembers.
    always: Vec<(&'static str, String)>,
}

impl Client {
    /// Connects, and waits for the peer's settings. `patience` is the timeout of each exchange.
    ///
    /// # Errors
    /// When the peer cannot be reached or does not speak HTTP/2.
    pub fn connect(peer: SocketAddr, patience: Duration) -> io::Result<Self> {
        let stream = Wire::connect(peer, patience, None)?;
        let http = Connection::new(Role::Client, Limits::default());
        Self::begin(stream, http, peer, patience)
    }

    /// As [`Client::connect`], over TLS, to a server whose certificate is for its address.
    ///
    /// # Errors
    /// As there, and when either side refuses the handshake.
    pub fn connect_secure(peer: SocketAddr, patience: Duration, tls: &ClientTls) -> io::Result<Self> {
        let stream = Wire::connect(peer, patience, Some(tls))?;
        let http = Connection::new(Role::Client, Limits::default()).secure();
        Self::begin(stream, http, peer, patience)
    }

    fn begin(stream: Wire, http: Connection, peer: SocketAddr, patience: Duration) -> io::Result<Self> {
        let mut client = Self {
            stream,
            http,
            authority: peer.to_string(),
            patience,
            always: vec![("user-agent", "AMF-lab".to_owned())],
        };
        let end = Instant::now() + patience;
        while !client.http.is_ready() {
            client.step(end, &mut |_, _| {})?;
        }
        Ok(client)
    }

    /// Adds headers to every request.
    #[must_use]
    pub fn always(mut self, headers: Vec<(&'static str, String)>) -> Self {
        self.always.extend(headers);
        self
    }

    /// Sends requests, as many at once as the peer allows, and returns their answers in order.
    ///
    /// # Errors
    /// When the connection fails or the answers do not come in time.
    pub fn exchange(&mut self, requests: &[Request]) -> io::Result<Vec<Response>> {
        let end = Instant::now() + self.patience;
        let mut answers = vec![Response::default(); requests.len()];
        let mut open: AHashMap<u32, usize> = AHashMap::new();
        let mut next = 0;
        while next < requests.len() || !open.is_empty() {
            while next < requests.len() && open.len() < self.http.streams() {
                open.insert(self.put(&requests[next]), next);
                next += 1;
            }
            if open.is_empty() {
                return Err(io::Error::other(
                    "the peer accepts no more requests on this connection",
                ));
            }
            let mut done = Vec::new();
            self.step(end, &mut |stream, part| {
                let Some(answer) = open.get(&stream).and_then(|at| answers.get_mut(*at)) else {
                    return;
                };
                match part {
                    Part::Status(status) => answer.status = status,
                    Part::Location(location) => {
                        answer.location = String::from_utf8_lossy(location).into_owned();
                    }
                    Part::Body(bytes) => answer.body.extend_from_slice(bytes),
                    Part::End => done.push(stream),
                }
            })?;
            for stream in done {
                open.remove(&stream);
            }
        }
        Ok(answers)
    }

    fn put(&mut self, request: &Request) -> u32 {
        let length = request.body.len().to_string();
        let mut own: Vec<(&str, &str)> = Vec::new();
        if let Some(kind) = request.content_type {
            own.extend([("content-type", kind), ("content-length", &length)]);
        }
        own.extend(
            request
                .headers
                .iter()
                .map(|(name, value)| (*name, value.as_str())),
        );
        // A header of the request takes the place of one of all requests.
        let is_own = |name: &str| request.headers.iter().any(|(own, _)| *own == name);
        let stable: Vec<(&str, &str)> = self
            .always
            .iter()
            .filter(|(name, _)| !is_own(name))
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let head = RequestHead {
            method: request.method,
            path: request.path.as_bytes(),
            authority: &self.authority,
            stable: &stable,
            own: &own,
        };
        self.http.request(&head, &request.body)
    }

    /// Writes pending output and reads once; `found` gets each part of an answer.
    fn step(&mut self, end: Instant, found: &mut dyn FnMut(u32, Part<'_>)) -> io::Result<()> {
        if Instant::now() > end {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"));
        }
        self.stream.write_all(&self.http.out)?;
        self.http.out.clear();
        let mut buffer = vec![0; 64 * 1024];
        let count = self.stream.read(&mut buffer)?;
        if count == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the peer closed the connection",
            ));
        }
        let mut input = &buffer[..count];
        while let Some(event) = self.http.next(&mut input).map_err(io::Error::other)? {
            match event {
                Event::Head { stream, fields, end } => {
                    let status = fields
                        .get(":status")
                        .and_then(|s| std::str::from_utf8(s).ok()?.parse().ok());
                    if let Some(status) = status.filter(|status| *status >= 200) {
                        found(stream, Part::Status(status));
                    }
                    if let Some(location) = fields.get("location") {
                        found(stream, Part::Location(location));
                    }
                    if end {
                        found(stream, Part::End);
                    }
                }
                Event::Data { stream, bytes, end } => {
                    found(stream, Part::Body(bytes));
                    if end {
                        found(stream, Part::End);
                    }
                }
                Event::Reset { stream, .. } => {
                    found(stream, Part::Status(0));
                    found(stream, Part::End);
                }
                Event::Ready | Event::GoAway { .. } => {}
            }
        }
        self.stream.write_all(&self.http.out)?;
        self.http.out.clear();
        Ok(())
    }
}

enum Part<'a> {
    Status(u16),
    Location(&'a [u8]),
    Body(&'a [u8]),
    End,
}
