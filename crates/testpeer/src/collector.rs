//! A collector of OTLP over HTTP/1.1, JSON with gzip: the spans that it has taken.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::read::GzDecoder;
use serde_json::Value;

/// Octets of an export, at most.
const EXPORT: usize = 16 << 20;

/// A collector on loopback with a thread for each connection, until the process ends.
pub struct Collector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<Value>>>,
}

impl Collector {
    /// One on a free port.
    ///
    /// # Errors
    /// When it cannot listen.
    pub fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let spans = Arc::new(Mutex::new(Vec::new()));
        let taken = spans.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let taken = taken.clone();
                std::thread::spawn(move || take(&stream, &taken));
            }
        });
        Ok(Self { address, spans })
    }

    /// Host and port, as `traces.collector` takes them.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// The spans for which something holds, as OTLP has them; beside its members each has `service.name` as `service`.
    pub fn spans(&self, holds: impl Fn(&Value) -> bool) -> Vec<Value> {
        let spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        spans.iter().filter(|span| holds(span)).cloned().collect()
    }
}

/// The text of an attribute of a span.
#[must_use]
pub fn attribute<'a>(span: &'a Value, key: &str) -> Option<&'a str> {
    named(span.get("attributes")?, key)
}

fn named<'a>(attributes: &'a Value, key: &str) -> Option<&'a str> {
    let found = attributes.as_array()?.iter().find(|one| one["key"] == key)?;
    found["value"]["stringValue"].as_str()
}

/// Takes the exports of a connection.
fn take(stream: &TcpStream, spans: &Mutex<Vec<Value>>) {
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    while let Some(export) = export(&mut reader) {
        let resources = export["resourceSpans"].as_array().into_iter().flatten();
        for resource in resources {
            let service = named(&resource["resource"]["attributes"], "service.name");
            let sent = resource["scopeSpans"][0]["spans"]
                .as_array()
                .into_iter()
                .flatten();
            let mut spans = spans.lock().unwrap_or_else(PoisonError::into_inner);
            spans.extend(sent.cloned().map(|mut span| {
                span["service"] = service.into();
                span
            }));
        }
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        if writer.write_all(answer).is_err() {
            return;
        }
    }
}

/// The next export of a connection.
fn export(reader: &mut BufReader<&TcpStream>) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? <= 2 {
            break;
        }
        let line = line.to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    if length == 0 || length > EXPORT {
        return None;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_reader(GzDecoder::new(&body[..])).ok()
}
