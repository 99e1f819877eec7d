//! Traces: a request of T8 and the Diameter request that is sent on its behalf.

use http::{Method, StatusCode};
use serde_json::json;
use settings::{Percent, Period};
use telemetry::Registry;
use testpeer::collector::{Collector, attribute};
use testpeer::sbi::{request, send};

use crate::network::Node;
use crate::support::{SUBSCRIPTIONS, local, server, start, subscription, until};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

#[test]
fn a_request_of_t8_and_that_to_the_hss_are_one_trace() {
    local(async {
        let collector = Collector::start().unwrap();
        let config = telemetry::trace::Config {
            collector: Some(collector.address()),
            share: Percent::new(0.0),
            interval: Period::from_millis(20),
            ..telemetry::trace::Config::default()
        };
        telemetry::trace::init(&config, &Registry::new(), "0.1.0").unwrap();
        let (scef, server) = (start(|_| {}), server());
        let mut hss = Node::hss(scef.diameter()).await;
        let body = subscription(&server.root(), &json!({})).to_string();
        let mut post = request(Method::POST, SUBSCRIPTIONS, "application/json", body);
        let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
        post.headers_mut().insert("traceparent", parent.parse().unwrap());
        let (got, cir) = tokio::join!(send(&scef.api.client, &scef.api.origin, post), hss.configure());
        assert_eq!(got.unwrap().status, StatusCode::CREATED);
        let named = |name: &str| {
            let found = collector.spans(|span| span["traceId"] == TRACE && span["name"] == name);
            found.into_iter().next()
        };
        until("all spans", async || {
            ["POST", "subscriptions POST", "Configuration-Information"]
                .iter()
                .all(|name| named(name).is_some())
        })
        .await;
        let (t8, s6t) = (
            named("subscriptions POST").unwrap(),
            named("Configuration-Information").unwrap(),
        );
        // The client of the test is in this process, and has a span.
        let sent = named("POST").unwrap();
        assert_eq!(sent["parentSpanId"], "00f067aa0ba902b7");
        assert_eq!(t8["parentSpanId"], sent["spanId"]);
        assert_eq!(s6t["parentSpanId"], t8["spanId"]);
        assert_eq!((&t8["kind"], &s6t["kind"]), (&2.into(), &3.into()));
        for (name, value) in [
            ("diameter.hopByHop", cir.hop_by_hop()),
            ("diameter.endToEnd", cir.end_to_end()),
        ] {
            assert_eq!(attribute(&s6t, name), Some(&*value.to_string()), "{name}: {s6t}");
        }
        scef.stop();
    });
}
