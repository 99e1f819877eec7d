//! Spans to a collector that listens on a socket.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value;
use settings::{Percent, Period};
use telemetry::trace::{self, Config};
use telemetry::{Registry, logging};

use crate::logs::logged;
use crate::receiver::{answer, field, request};

/// Reads one export and answers it.
fn take_one(stream: &mut TcpStream) -> Value {
    let (head, body) = request(stream);
    assert!(head.starts_with("post /v1/traces "), "{head}");
    assert_eq!(field(&head, "content-encoding"), Some("gzip"));
    assert_eq!(field(&head, "x-tenant"), Some("core"));
    answer(stream, "200 OK");
    serde_json::from_reader(flate2::read::GzDecoder::new(body.as_slice())).unwrap()
}

#[test]
fn a_traced_request_reaches_the_collector() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let registry = Registry::new();
    let config = Config {
        collector: Some(collector.local_addr().unwrap().to_string()),
        headers: [("X-Tenant".to_owned(), "core".to_owned())].into(),
        share: Percent::new(0.0),
        interval: Period::from_millis(50),
        ..Config::default()
    };
    trace::init(&config, &registry, "1.2.3").unwrap();
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
    // Lines that are logged meanwhile name the trace and the span.
    let as_json = logging::Config {
        json: true,
        ..logging::Config::default()
    };
    let line = span
        .scope()
        .unwrap()
        .run(|| logged(&as_json, |_| tracing::info!("within")));
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert!(onwards.contains(line["span_id"].as_str().unwrap()));
    assert!(!logged(&as_json, |_| tracing::info!("beside")).contains("trace_id"));
    drop(span);

    let mut stream = collector.accept().unwrap().0;
    let export = take_one(&mut stream);
    let resource = export["resourceSpans"][0]["resource"].to_string();
    assert!(
        resource.contains(r#""service.version","value":{"stringValue":"1.2.3"}"#),
        "{resource}"
    );
    assert!(resource.contains("service.instance.id"), "{resource}");
    let sent = &export["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(sent["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(sent["status"]["code"], 2);
    assert!(onwards.contains(sent["spanId"].as_str().unwrap()));

    // Outside of the share: what was answered at once is none, what was slow or has failed is. The connection is the same one.
    let now = Instant::now();
    trace::late("nrf", "quick", now, 404);
    trace::late(
        "nrf",
        "slow",
        now.checked_sub(Duration::from_secs(5)).unwrap(),
        200,
    );
    for _ in 0..1_000 {
        trace::late("nrf", "failed", now, 500);
    }
    drop(trace::begin("nrf", "last", || Some(theirs)));
    let mut spans = Vec::new();
    while spans.last().is_none_or(|span: &Value| span["name"] != "last") {
        let export = take_one(&mut stream);
        spans.extend(
            export["resourceSpans"][0]["scopeSpans"][0]["spans"]
                .as_array()
                .unwrap()
                .clone(),
        );
    }
    assert_eq!(spans[0]["name"], "slow");
    assert!(spans[0]["startTimeUnixNano"].as_str() < spans[1]["startTimeUnixNano"].as_str());
    assert!(
        spans[1..spans.len() - 1]
            .iter()
            .all(|span| span["name"] == "failed" && span["status"]["code"] == 2)
    );
    assert!(spans.len() < 1_000, "{} spans", spans.len());
    until_exported(&registry, 1 + spans.len());

    // The collector restarts while nothing is sent: the next span goes by a new connection.
    drop(stream);
    drop(trace::begin("nrf", "behind a restart", || Some(theirs)));
    let export = take_one(&mut collector.accept().unwrap().0);
    let sent = &export["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(sent["name"], "behind a restart");
    until_exported(&registry, 2 + spans.len());
}

fn until_exported(registry: &Registry, count: usize) {
    let wanted = format!("signalbox_trace_spans_total {count}\n");
    let end = Instant::now() + Duration::from_secs(60);
    while !registry.render().contains(&wanted) {
        assert!(Instant::now() < end, "not counted:\n{}", registry.render());
        std::thread::sleep(Duration::from_millis(10));
    }
}
