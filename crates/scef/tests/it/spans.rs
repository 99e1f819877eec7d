//! Traces: a request of T8 and the Diameter request that is sent on its behalf.

use std::cell::RefCell;
use std::rc::Rc;

use flate2::read::GzDecoder;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use settings::{Percent, Period};
use telemetry::Registry;
use testpeer::sbi::{request, send};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::network::Node;
use crate::support::{SUBSCRIPTIONS, local, server, start, subscription, until};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Takes exports, and keeps the spans of the trace.
async fn collect(collector: TcpListener, spans: Rc<RefCell<Vec<Value>>>) {
    while let Ok((mut stream, _)) = collector.accept().await {
        let mut text = Vec::new();
        let export: Value = loop {
            if stream.read_buf(&mut text).await.unwrap_or(0) == 0 {
                break Value::Null;
            }
            let body = text.windows(4).position(|end| end == b"\r\n\r\n");
            let body = body.map(|at| GzDecoder::new(&text[at + 4..]));
            let body = body.and_then(|body| serde_json::from_reader(body).ok());
            if let Some(export) = body {
                break export;
            }
        };
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
        let _ = stream.write_all(answer).await;
        let found = export["resourceSpans"][0]["scopeSpans"][0]["spans"].clone();
        let found = found.as_array().cloned().unwrap_or_default();
        spans
            .borrow_mut()
            .extend(found.into_iter().filter(|span| span["traceId"] == TRACE));
    }
}

#[test]
fn a_request_of_t8_and_that_to_the_hss_are_one_trace() {
    local(async {
        let collector = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = telemetry::trace::Config {
            collector: Some(collector.local_addr().unwrap().to_string()),
            share: Percent::new(0.0),
            interval: Period::from_millis(20),
            ..telemetry::trace::Config::default()
        };
        telemetry::trace::init(&config, &Registry::new(), "0.1.0").unwrap();
        let spans = Rc::new(RefCell::new(Vec::new()));
        tokio::task::spawn_local(collect(collector, spans.clone()));
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let body = subscription(&server.root(), &json!({})).to_string();
        let mut post = request(Method::POST, SUBSCRIPTIONS, "application/json", body);
        let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
        post.headers_mut().insert("traceparent", parent.parse().unwrap());
        let (got, cir) = tokio::join!(send(&scef.api.client, &scef.api.origin, post), hss.configure());
        assert_eq!(got.unwrap().status, StatusCode::CREATED);
        let named = |name: &str| {
            let spans = spans.borrow();
            spans.iter().find(|span| span["name"] == name).cloned()
        };
        until("both spans", async || {
            named("subscriptions POST").is_some() && named("Configuration-Information").is_some()
        })
        .await;
        let (t8, s6t) = (
            named("subscriptions POST").unwrap(),
            named("Configuration-Information").unwrap(),
        );
        assert_eq!(t8["parentSpanId"], "00f067aa0ba902b7");
        assert_eq!(s6t["parentSpanId"], t8["spanId"]);
        let attributes = s6t["attributes"].to_string();
        for (name, value) in [
            ("diameter.hopByHop", cir.hop_by_hop()),
            ("diameter.endToEnd", cir.end_to_end()),
        ] {
            let is_there = attributes.contains(name) && attributes.contains(&value.to_string());
            assert!(is_there, "{name} {value}: {attributes}");
        }
        scef.stop();
    });
}
