//! Spans to a collector that listens on a socket.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::Value;
use settings::{HostPort, Percent, Period};
use telemetry::Registry;
use telemetry::trace::{self, Config};

/// Reads one export and answers it.
fn take_one(collector: &TcpListener) -> Value {
    let (mut stream, _) = collector.accept().unwrap();
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).unwrap();
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length: usize = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok())
            .unwrap();
        if body.len() >= length {
            assert!(head.starts_with("POST /v1/traces "), "{head}");
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
                .unwrap();
            return serde_json::from_str(body).unwrap();
        }
    }
}

#[test]
fn a_traced_request_reaches_the_collector() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let registry = Registry::new();
    let config = Config {
        collector: Some(HostPort {
            host: "127.0.0.1".to_owned(),
            port: collector.local_addr().unwrap().port(),
        }),
        share: Percent::new(0.0),
        interval: Period::from_millis(50),
        ..Config::default()
    };
    trace::init(&config, &registry).unwrap();
    assert!(
        trace::begin("nrf", "Nnrf_NFDiscovery GET", || None).is_none(),
        "no share begins one"
    );

    let theirs = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let mut span = trace::begin("nrf", "Nnrf_NFDiscovery GET", || Some(theirs)).unwrap();
    span.status(503);
    span.attribute("nf.type", "AMF");
    let onwards = span.context().unwrap().to_string();
    assert!(onwards.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && onwards != theirs);
    drop(span);

    let export = take_one(&collector);
    let sent = &export["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(sent["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(sent["status"]["code"], 2);
    assert!(onwards.contains(sent["spanId"].as_str().unwrap()));
    for _ in 0..400 {
        if registry.render().contains("signalbox_trace_spans_total 1") {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("not counted:\n{}", registry.render());
}
