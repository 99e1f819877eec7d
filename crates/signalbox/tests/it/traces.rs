//! Traces of a core: what functions serve and what they send is one tree, whatever the interface.

use std::path::Path;
use std::time::Duration;

use loadgen::client::{Client, Request};
use serde_json::{Value, json};
use testpeer::collector::{Collector, attribute};

use crate::process::{ask, harmless_but, until};
use crate::up::Up;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
/// One of the subscribers whose calls `up` begins and ends again and again.
const SUPI: &str = "imsi-001010000000105";

/// The only span of a function in the trace for which something holds, once it is here. Kind 2 is served, kind 3 is sent.
fn one(collector: &Collector, service: &str, kind: u8, holds: impl Fn(&Value) -> bool) -> Value {
    let found = || {
        collector.spans(|span| {
            span["traceId"] == TRACE && span["service"] == service && span["kind"] == kind && holds(span)
        })
    };
    until(&format!("a span of {service}, kind {kind}"), || {
        !found().is_empty()
    });
    let mut found = found();
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

/// A core whose spans go to a collector; none is sampled by chance.
fn traced(folder: &Path, args: &[&str]) -> (Up, Collector) {
    let collector = Collector::start().unwrap();
    let traces = json!({"collector": collector.address(), "share": "0%", "interval": "100ms"});
    let config = harmless_but(None, folder, |config| config["traces"] = traces);
    (Up::of(config.to_str().unwrap(), folder, args), collector)
}

#[test]
fn a_binding_through_the_scp_is_one_trace_down_to_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (up, collector) = traced(folder.path(), &["--no-traffic"]);
    until("the BSF to register", || {
        ask(up.admin("nrf"), "GET", "/nrf/instances").1.contains("BSF")
    });
    let binding = json!({
        "supi": "imsi-001010000000009", "ipv4Addr": "10.9.9.9", "dnn": "ims", "snssai": {"sst": 1},
        "pcfFqdn": "pcf.example.org",
    });
    let mut scp = Client::connect(up.address("scp", "http"), Duration::from_secs(10)).unwrap();
    let request = Request::new("POST", "/nbsf-management/v1/pcfBindings")
        .header("traceparent", format!("00-{TRACE}-00f067aa0ba902b7-01"))
        .header("3gpp-sbi-discovery-target-nf-type", "BSF")
        .header("3gpp-sbi-discovery-requester-nf-type", "PCF")
        .header("3gpp-sbi-discovery-service-names", "nbsf-management")
        .with("application/json", binding.to_string());
    let answer = scp.exchange(&[request]).unwrap().remove(0);
    assert_eq!(answer.status, 201, "{}", answer.text());

    let any = |_: &Value| true;
    let to_bsf = |span: &Value| attribute(span, "rpc.service") == Some("nbsf-management");
    let relayed = one(&collector, "scp", 2, any);
    assert_eq!(relayed["parentSpanId"], "00f067aa0ba902b7");
    let attempt = one(&collector, "scp", 3, to_bsf);
    assert_eq!(attempt["parentSpanId"], relayed["spanId"]);
    assert_eq!(attempt["name"], "POST");
    assert!(attribute(&attempt, "server.port").is_some(), "{attempt}");
    let served = one(&collector, "bsf", 2, any);
    assert_eq!(served["parentSpanId"], attempt["spanId"]);
    let commit = one(&collector, "bsf", 3, |span| span["name"] == "store commit");
    assert_eq!(commit["parentSpanId"], served["spanId"]);
    assert_eq!(attribute(&commit, "db.system.name"), Some("signalbox"));
}

#[test]
fn a_registration_has_the_commit_of_another_thread() {
    let folder = tempfile::tempdir().unwrap();
    let (up, collector) = traced(folder.path(), &["--no-traffic"]);
    let id = "0d5b7c9a-3c1e-4a63-9c53-2c1f6f0e9a01";
    let profile = json!({
        "nfInstanceId": id, "nfType": "AMF", "nfStatus": "REGISTERED", "ipv4Addresses": ["127.0.0.1"],
    });
    let mut nrf = Client::connect(up.address("nrf", "http"), Duration::from_secs(10)).unwrap();
    let request = Request::new("PUT", format!("/nnrf-nfm/v1/nf-instances/{id}"))
        .header("traceparent", format!("00-{TRACE}-00f067aa0ba902b7-01"))
        .with("application/json", profile.to_string());
    let answer = nrf.exchange(&[request]).unwrap().remove(0);
    assert_eq!(answer.status, 201, "{}", answer.text());
    let served = one(&collector, "nrf", 2, |_| true);
    let commit = one(&collector, "nrf", 3, |span| span["name"] == "store commit");
    assert_eq!(commit["parentSpanId"], served["spanId"]);
}

#[test]
fn a_followed_subscriber_links_the_session_and_the_call() {
    let folder = tempfile::tempdir().unwrap();
    let (up, collector) = traced(folder.path(), &[]);
    up.is_populated();
    let pcf = up.admin("pcf");
    assert_eq!(ask(pcf, "PUT", &format!("/follow/{SUPI}?for=1h")).0, 200);
    // A request of Rx, and the request of N7 before it.
    let linked = || {
        let calls = collector.spans(|span| {
            span["name"] == "AA" && span["kind"] == 2 && !span["links"].as_array().unwrap().is_empty()
        });
        calls.into_iter().find(|call| {
            let link = &call["links"][0];
            let is_it = |span: &Value| span["traceId"] == link["traceId"] && span["spanId"] == link["spanId"];
            let before = collector.spans(is_it);
            link["traceId"] != call["traceId"] && before.iter().any(|span| span["service"] == "pcf")
        })
    };
    until("a call that is linked to what came before it", || {
        linked().is_some()
    });
    let call = linked().unwrap();
    assert_eq!(call["service"], "pcf");
    assert_eq!(attribute(&call, "signalbox.followed"), Some("true"));
    assert!(attribute(&call, "diameter.endToEnd").is_some(), "{call}");
}
