//! Two engines joined by pipes, and peers that write frames by hand.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::Instant;

use http::{Method, StatusCode};
use http2::{Body, Config, Connection, Event, Fault, RequestHead, ResponseHead, Value, name};

pub fn value(text: &str) -> Value<'_> {
    Value::new(text.as_bytes()).unwrap()
}

pub fn get(path: &str) -> RequestHead {
    RequestHead::new(Method::GET, value("http"), value("nrf.example"), value(path))
}

pub fn post(path: &str) -> RequestHead {
    let mut head = RequestHead::new(Method::POST, value("http"), value("nrf.example"), value(path));
    head.fields.append(name::CONTENT_TYPE, value("application/json"));
    head
}

pub fn ok() -> ResponseHead {
    ResponseHead::new(StatusCode::OK)
}

/// Takes at most `most` bytes of what an engine wants to write.
pub fn written(engine: &mut Connection, most: usize) -> Vec<u8> {
    let output = engine.output();
    let mut slices = [IoSlice::new(&[]); 16];
    let filled = output.slices(&mut slices);
    let mut bytes: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
    bytes.truncate(most);
    output.advance(bytes.len());
    bytes
}

/// All that an engine wants to write.
pub fn drain(engine: &mut Connection) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let part = written(engine, usize::MAX);
        if part.is_empty() {
            return all;
        }
        all.extend(part);
    }
}

pub fn events(engine: &mut Connection) -> Vec<Event> {
    std::iter::from_fn(|| engine.next_event()).collect()
}

/// A server and a client, their first SETTINGS exchanged.
pub struct Pair {
    pub server: Connection,
    pub client: Connection,
    pub now: Instant,
}

impl Pair {
    pub fn new(server: Config, client: Config) -> Self {
        let now = Instant::now();
        let mut pair = Self {
            server: Connection::server(Arc::new(server), now),
            client: Connection::client(Arc::new(client), now),
            now,
        };
        pair.settle().unwrap();
        assert_eq!(events(&mut pair.server), [Event::Settings]);
        assert_eq!(events(&mut pair.client), [Event::Settings]);
        assert!(pair.server.is_acknowledged() && pair.client.is_acknowledged());
        pair
    }

    /// Moves bytes until none are left.
    pub fn settle(&mut self) -> Result<(), Fault> {
        loop {
            let (up, down) = (drain(&mut self.client), drain(&mut self.server));
            if up.is_empty() && down.is_empty() {
                return Ok(());
            }
            assert_eq!(self.server.receive(&up, self.now)?, up.len());
            assert_eq!(self.client.receive(&down, self.now)?, down.len());
        }
    }

    pub fn default() -> Self {
        Self::new(Config::default(), Config::default())
    }
}

pub fn body(len: usize) -> Body {
    Body::from(vec![b'x'; len])
}

/// A frame by hand.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;
pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// A header block of literals that no table keeps.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            let len = text.len();
            if len < 127 {
                block.push(len as u8);
            } else {
                block.push(127);
                let mut left = len - 127;
                while left >= 128 {
                    block.push(left as u8 | 128);
                    left /= 128;
                }
                block.push(left as u8);
            }
            block.extend(text.bytes());
        }
    }
    block
}

/// A request block with further fields.
pub fn request_block(method: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let mut fields = vec![
        (":method", method),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "nrf"),
    ];
    fields.extend(more);
    block(&fields)
}

pub fn headers(stream: u32, end: bool) -> Vec<u8> {
    let flags = END_HEADERS | if end { END_STREAM } else { 0 };
    frame(HEADERS, flags, stream, &request_block("POST", &[]))
}

/// An engine whose peer writes frames by hand.
pub struct Alone {
    pub engine: Connection,
    pub now: Instant,
}

impl Alone {
    pub fn server(config: Config) -> Self {
        let now = Instant::now();
        let mut alone = Self {
            engine: Connection::server(Arc::new(config), now),
            now,
        };
        alone.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        alone.begin()
    }

    pub fn client(config: Config) -> Self {
        let now = Instant::now();
        let engine = Connection::client(Arc::new(config), now);
        Self { engine, now }.begin()
    }

    fn begin(mut self) -> Self {
        self.send(&frame(SETTINGS, 0, 0, &[])).unwrap();
        self.send(&frame(SETTINGS, ACK, 0, &[])).unwrap();
        assert_eq!(events(&mut self.engine), [Event::Settings]);
        drain(&mut self.engine);
        self
    }

    /// The peer sends.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = self.engine.receive(rest, self.now)?;
            assert!(taken > 0);
            rest = &rest[taken..];
        }
        Ok(())
    }

    /// The peer sends it again and again, until the connection ends or `most` times.
    pub fn flood(&mut self, most: u32, flood: impl Fn(u32) -> Vec<u8>) -> (u32, Option<Fault>) {
        for times in 0..most {
            if let Err(fault) = self.send(&flood(times)) {
                return (times, Some(fault));
            }
            drain(&mut self.engine);
            events(&mut self.engine);
        }
        (most, None)
    }

    /// The frames that the engine has written: type, stream and payload.
    pub fn frames(&mut self) -> Vec<(u8, u32, Vec<u8>)> {
        let (bytes, mut frames) = (drain(&mut self.engine), Vec::new());
        let mut rest = &bytes[..];
        while let Some((head, after)) = rest.split_first_chunk::<9>() {
            let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            frames.push((head[3], stream, after[..len].to_vec()));
            rest = &after[len..];
        }
        assert!(rest.is_empty());
        frames
    }
}
