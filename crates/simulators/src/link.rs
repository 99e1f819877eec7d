//! One connection to a simulator.

use ahash::AHashMap;

use super::exchange::{Reply, Request};
use crate::network::number_of;
use loadgen::engine::{Poller, Received, Socket};
use loadgen::http2::{CANCEL, Connection, Event, Limits, Role as Side};

/// Bodies longer than this are cut off.
const LONGEST_BODY: usize = 4 << 20;

/// A request whose body is still coming.
#[derive(Debug, Default)]
struct Partial {
    method: Vec<u8>,
    path: Vec<u8>,
    body: Vec<u8>,
}

/// One connection to a simulator.
#[derive(Debug)]
pub(super) struct Link {
    token: u64,
    socket: Socket,
    http: Connection,
    partial: AHashMap<u32, Partial>,
    /// The producer that is asked here, by the address of this end.
    pub(super) number: Option<u32>,
    /// Something is put out and not yet written.
    pub(super) dirty: bool,
    /// The connection has ended.
    pub(super) closed: bool,
}

impl Link {
    pub(super) fn new(socket: Socket, token: u64, max_streams: u32) -> Self {
        let limits = Limits {
            max_streams,
            ..Limits::default()
        };
        let http = Connection::new(Side::Server, limits);
        Self {
            number: socket.local_ip().and_then(number_of),
            token,
            socket,
            http,
            partial: AHashMap::new(),
            dirty: true,
            closed: false,
        }
    }

    /// Reads; complete requests go to `take` with their stream.
    pub(super) fn receive(&mut self, buffer: &mut [u8], take: &mut impl FnMut(u32, Request<'_>)) {
        loop {
            match self.socket.receive(buffer) {
                Received::Bytes(count) => {
                    if !self.handle(&buffer[..count], take) {
                        self.closed = true;
                        return;
                    }
                    if count < buffer.len() {
                        break;
                    }
                }
                Received::Nothing => break,
                Received::Closed => {
                    self.closed = true;
                    return;
                }
            }
        }
        self.dirty |= !self.http.out.is_empty();
    }

    fn handle(&mut self, mut input: &[u8], take: &mut impl FnMut(u32, Request<'_>)) -> bool {
        loop {
            let event = match self.http.next(&mut input) {
                Ok(Some(event)) => event,
                Ok(None) => return true,
                Err(_) => return false,
            };
            match event {
                Event::Head { stream, fields, end } => {
                    let method = fields.get(":method").unwrap_or_default();
                    let path = fields.get(":path").unwrap_or_default();
                    if end && let Some(partial) = self.partial.remove(&stream) {
                        // Trailers.
                        take(
                            stream,
                            Request {
                                method: &partial.method,
                                path: &partial.path,
                                body: &partial.body,
                            },
                        );
                    } else if end {
                        take(
                            stream,
                            Request {
                                method,
                                path,
                                body: b"",
                            },
                        );
                    } else {
                        let partial = Partial {
                            method: method.to_vec(),
                            path: path.to_vec(),
                            body: Vec::new(),
                        };
                        self.partial.insert(stream, partial);
                    }
                }
                Event::Data { stream, bytes, end } => {
                    let Some(partial) = self.partial.get_mut(&stream) else {
                        continue;
                    };
                    if partial.body.len() + bytes.len() <= LONGEST_BODY {
                        partial.body.extend_from_slice(bytes);
                    }
                    if end && let Some(partial) = self.partial.remove(&stream) {
                        take(
                            stream,
                            Request {
                                method: &partial.method,
                                path: &partial.path,
                                body: &partial.body,
                            },
                        );
                    }
                }
                Event::Reset { stream, .. } => {
                    self.partial.remove(&stream);
                }
                Event::Ready | Event::GoAway { .. } => {}
            }
        }
    }

    /// Puts an answer out.
    pub(super) fn answer(&mut self, stream: u32, reply: &Reply) {
        let length = reply.body.len().to_string();
        let mut own: smallvec::SmallVec<[(&str, &str); 4]> = smallvec::SmallVec::new();
        if !reply.body.is_empty() {
            own.push(("content-length", &length));
        }
        own.extend(reply.headers.iter().map(|(name, value)| (*name, value.as_str())));
        let kind = [("content-type", reply.content_type)];
        let stable = if reply.body.is_empty() {
            &kind[..0]
        } else {
            &kind[..]
        };
        self.http.respond(stream, reply.status, stable, &own, &reply.body);
        self.dirty = true;
    }

    /// Gives a request up.
    pub(super) fn reset(&mut self, stream: u32) {
        self.http.reset(stream, CANCEL);
        self.dirty = true;
    }

    /// Ends the connection rudely.
    pub(super) fn abort(&mut self) {
        self.socket.abort_on_drop();
        self.closed = true;
    }

    /// Writes what is put out.
    pub(super) fn flush(&mut self, poller: &Poller) {
        self.dirty = false;
        self.closed |= self.socket.flush(&mut self.http.out, poller, self.token).is_err();
    }

    /// Bytes read and written since the last call.
    pub(super) fn take_bytes(&mut self) -> (u64, u64) {
        (
            std::mem::take(&mut self.socket.bytes_in),
            std::mem::take(&mut self.socket.bytes_out),
        )
    }

    pub(super) fn forget(&self, poller: &Poller) {
        poller.remove(&self.socket);
    }
}
