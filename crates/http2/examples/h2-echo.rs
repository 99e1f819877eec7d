//! A server that answers each request with its body, or with its path: the engine over plain TCP, a thread per connection.
//!
//! `cargo run -p http2 --example h2-echo -- 127.0.0.1:8080`; what `h2spec -p 8080` and `nghttp http://127.0.0.1:8080/` test.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::StatusCode;
use http2::{Body, Config, Connection, Event, ResponseHead};

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0"))?;
    writeln!(io::stdout(), "{}", listener.local_addr()?)?;
    let config = Arc::new(Config::default());
    for stream in listener.incoming() {
        let (stream, config) = (stream?, config.clone());
        std::thread::spawn(move || serve(stream, config));
    }
    Ok(())
}

fn serve(mut stream: TcpStream, config: Arc<Config>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut engine = Connection::server(config, Instant::now());
    let mut buffer = vec![0; 64 * 1024];
    while !engine.is_finished() {
        let len = stream.read(&mut buffer)?;
        if len == 0 {
            return Ok(());
        }
        let mut bytes = &buffer[..len];
        while !bytes.is_empty() {
            match engine.receive(bytes, Instant::now()) {
                Ok(taken) => bytes = &bytes[taken..],
                Err(_) => bytes = &[],
            }
            answer(&mut engine);
            write(&mut engine, &mut stream)?;
        }
    }
    // What the peer still sends must not destroy the GOAWAY on its way.
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    while stream.read(&mut buffer)? > 0 {}
    Ok(())
}

/// Answers the requests that are whole; those with a body when it is.
fn answer(engine: &mut Connection) {
    while let Some(event) = engine.next_event() {
        let (stream, status, body) = match event {
            Event::Request {
                stream,
                head,
                end: true,
            } => (stream, StatusCode::OK, Body::from(head.target().to_owned())),
            Event::Body { stream, body } => (stream, StatusCode::OK, body),
            Event::Oversized { stream, .. } => {
                (stream, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, Body::empty())
            }
            Event::TooLarge { stream } => (stream, StatusCode::PAYLOAD_TOO_LARGE, Body::empty()),
            _ => continue,
        };
        engine.respond(stream, &ResponseHead::new(status), body);
    }
}

fn write(engine: &mut Connection, stream: &mut TcpStream) -> io::Result<()> {
    loop {
        let output = engine.output();
        if output.is_empty() {
            return Ok(());
        }
        let mut slices = [IoSlice::new(&[]); 64];
        let filled = output.slices(&mut slices);
        let written = stream.write_vectored(&slices[..filled])?;
        output.advance(written);
    }
}
