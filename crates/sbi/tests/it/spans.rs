//! Spans of requests that a client sends for a traced one.

use sbi::client::{ClientConfig, SendOptions};
use sbi::server::ServerConfig;
use sbi::{Body, Response};
use settings::{Percent, Period};
use telemetry::Registry;
use telemetry::trace::{self, Config};
use testpeer::collector::{Collector, attribute};

use crate::support::{client, local, start};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn get(path: &str, trace: Option<&str>) -> http::Request<Body> {
    let mut request = http::Request::get(path);
    if let Some(trace) = trace {
        request = request.header("traceparent", trace);
    }
    request.body(Body::empty()).unwrap()
}

#[test]
fn each_attempt_has_a_span_and_passes_it_on() {
    let collector = Collector::start().unwrap();
    let config = Config {
        collector: Some(collector.address()),
        share: Percent::new(0.0),
        interval: Period::from_millis(20),
        ..Config::default()
    };
    trace::init(&config, &Registry::new(), "0.1.0").unwrap();
    trace::enter("test");
    let sampled = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let span = trace::begin("test", "served", || Some(&sampled)).unwrap();
    let scope = span.scope().unwrap();
    let parent = format!("{:016x}", span.context().unwrap().span);
    let seen = local(async {
        let server = start(ServerConfig::default(), |request| async move {
            let trace = request.headers().get("traceparent");
            Response::ok(
                trace
                    .and_then(|trace| trace.to_str().ok())
                    .unwrap_or_default()
                    .to_owned(),
            )
        });
        let client = client(ClientConfig::default());
        let nowhere = "http://127.0.0.1:1".parse().unwrap();
        let attempts = async {
            let path = "/nudm-sdm/v2/imsi-001010000000001/am-data";
            let failed = client
                .send(&nowhere, get(path, None), SendOptions::default())
                .await;
            assert!(failed.is_err());
            client
                .send(&server.origin(), get(path, None), SendOptions::default())
                .await
        };
        let answered = scope.around(Box::pin(attempts)).await.unwrap();
        // A task of its own, which has the header alone.
        let own = get("/nnrf-disc/v1/nf-instances", Some(&sampled));
        let query = client
            .send(&server.origin(), own, SendOptions::default())
            .await
            .unwrap();
        // One that its sender does not trace, and one of no request: neither has a span.
        let unsampled = format!("00-{TRACE}-00f067aa0ba902b7-00");
        let other = get("/other", Some(&unsampled));
        let other = client
            .send(&server.origin(), other, SendOptions::default())
            .await
            .unwrap();
        let none = client
            .send(&server.origin(), get("/none", None), SendOptions::default())
            .await;
        let texts = [answered, query, other, none.unwrap()]
            .map(|answer| String::from_utf8(answer.body.to_bytes().to_vec()).unwrap());
        assert_eq!((&*texts[2], &*texts[3]), (&*unsampled, ""));
        texts
    });
    drop(span);
    let spans = || collector.spans(|span| span["traceId"] == TRACE);
    testpeer::local(testpeer::until("four spans", async || spans().len() >= 4));
    let spans = spans();
    assert_eq!(spans.len(), 4, "{spans:#?}");
    let [failed, answered, query] = [0, 1, 2].map(|at| &spans[at]);
    for attempt in [failed, answered] {
        assert_eq!((&attempt["name"], &attempt["kind"]), (&"GET".into(), &3.into()));
        assert_eq!(
            (&attempt["service"], &attempt["parentSpanId"]),
            (&"test".into(), &parent.as_str().into())
        );
        assert_eq!(attribute(attempt, "rpc.service"), Some("nudm-sdm"));
        assert!(!attempt.to_string().contains("imsi"), "{attempt}");
    }
    assert_eq!(failed["status"]["code"], 2);
    assert!(
        attribute(failed, "error.type").unwrap().contains("connect"),
        "{failed}"
    );
    assert_eq!(answered["status"], serde_json::json!({}));
    assert!(seen[0].contains(answered["spanId"].as_str().unwrap()));
    assert_eq!(query["parentSpanId"], "00f067aa0ba902b7");
    assert!(seen[1].contains(query["spanId"].as_str().unwrap()));
}
