//! Servers of an operator, with what they have taken: a collector of OTLP over HTTP/1.1 (JSON with gzip), and a webhook for alarms.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::read::GzDecoder;
use serde_json::Value;

/// Octets of a body, at most.
const MOST_BODY: usize = 16 << 20;

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
        let spans = Arc::new(Mutex::new(Vec::new()));
        let taken = spans.clone();
        let address = serve(move |export| take(&export, &taken))?;
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

/// A server on loopback that takes alarms as Alertmanager sends them to webhooks, until the process ends.
pub struct AlarmServer {
    address: SocketAddr,
    alerts: Arc<Mutex<Vec<Value>>>,
}

impl AlarmServer {
    /// One on a free port.
    ///
    /// # Errors
    /// When it cannot listen.
    pub fn start() -> std::io::Result<Self> {
        let alerts = Arc::new(Mutex::new(Vec::new()));
        let taken = alerts.clone();
        let address = serve(move |body| {
            let body: Option<Value> = serde_json::from_slice(&body).ok();
            let sent = body.and_then(|body| body["alerts"].as_array().cloned());
            let mut alerts = taken.lock().unwrap_or_else(PoisonError::into_inner);
            alerts.extend(sent.unwrap_or_default());
        })?;
        Ok(Self { address, alerts })
    }

    /// Its address, as `alarms.webhook.url` takes it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/alarms", self.address)
    }

    /// The alerts that it has taken, the oldest first.
    #[must_use]
    pub fn alerts(&self) -> Vec<Value> {
        let alerts = self.alerts.lock().unwrap_or_else(PoisonError::into_inner);
        alerts.clone()
    }
}

/// Gives the body of each request to `take` and answers 200, with a thread for each connection, until the process ends.
fn serve(take: impl Fn(Vec<u8>) + Clone + Send + 'static) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let take = take.clone();
            std::thread::spawn(move || {
                let (mut reader, mut writer) = (BufReader::new(&stream), &stream);
                while let Some(body) = body(&mut reader) {
                    take(body);
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
                    if writer.write_all(answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    Ok(address)
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

/// Takes an export.
fn take(export: &[u8], spans: &Mutex<Vec<Value>>) {
    let export: Value = serde_json::from_reader(GzDecoder::new(export)).unwrap_or_default();
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
}

/// The body of the next request of a connection.
fn body(reader: &mut BufReader<&TcpStream>) -> Option<Vec<u8>> {
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
    if length == 0 || length > MOST_BODY {
        return None;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}
