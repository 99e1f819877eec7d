//! Answers after attempts with an unknown outcome, after redirections and after retries.

use std::time::Duration;

use http::{Method, StatusCode};
use overload::Rate;
use routing::policy::ServicePolicy;
use sbi::Body;
use scp::config::ProducerRate;
use serde_json::json;
use testpeer::http2::{Listener, Peer, frame};
use testpeer::sbi::no_content;

use crate::support::{PATH, Producer, knowing, local, start, until};

#[test]
fn an_earlier_refusal_does_not_hide_that_a_request_may_have_had_effect() {
    local(async {
        let (busy, silent) = (Producer::start(1), Producer::start(2));
        busy.fails_with(503);
        silent.waits(Duration::from_secs(60));
        let quick = ServicePolicy {
            response_timeout_ms: 2_000,
            ..ServicePolicy::default()
        };
        let once = ProducerRate {
            producer: Some(busy.address.to_string()),
            services: Vec::new(),
            rate: Rate::per_second(0.0),
            global: false,
        };
        for egress in [Vec::new(), vec![once]] {
            let scp = knowing(&[&busy, &silent], |config| {
                config.policies = vec![quick.clone()];
                config.protection.egress = egress.clone();
            });
            let root = busy.root();
            let target = [("3gpp-sbi-target-apiroot", root.as_str())];
            let got = scp.ask(Method::POST, "/nudm-sdm/v2/x", &target).await;
            assert_eq!(
                (got.status, got.cause(), got.header("retry-after")),
                (StatusCode::GATEWAY_TIMEOUT, "TARGET_NF_NOT_REACHABLE", ""),
                "{egress:?}"
            );
        }
        assert_eq!(silent.count(), 2);
    });
}

#[test]
fn a_request_that_its_consumer_gives_up_is_not_tried_elsewhere() {
    local(async {
        let listener = Listener::bind().await.unwrap();
        let other = Producer::start(2);
        let mut profile = other.profile(&json!({"nfInstanceId": "00000000-0000-4000-8000-000000000001"}));
        let port = listener.addr().unwrap().port();
        profile["nfServices"][0]["ipEndPoints"][0]["port"] = json!(port);
        let profiles = vec![profile, other.profile(&json!({}))];
        let scp = start(|config| config.producers = profiles);
        let address = scp.running.as_ref().unwrap().addresses()[0];
        let mut consumer = Peer::client(address).await.unwrap();
        let root = format!("http://127.0.0.1:{port}");
        let fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":authority", "scp1.test"),
            (":path", "/nudm-sdm/v2/x"),
            ("3gpp-sbi-target-apiroot", root.as_str()),
        ];
        consumer.send(&frame::headers(1, &fields, true)).await.unwrap();
        let mut first = listener.accept(&[]).await.unwrap();
        let is_request = |frame: &testpeer::http2::Frame| frame.kind == frame::kind::HEADERS;
        let stream = first.wait_for("the request", is_request).await.unwrap().stream;
        // The answer to the PING says that the reset was read.
        consumer.send(&frame::reset(1, 8)).await.unwrap();
        consumer.send(&frame::ping(*b"given up")).await.unwrap();
        let is_answer = |frame: &testpeer::http2::Frame| {
            frame.kind == frame::kind::PING && frame.payload[..] == *b"given up"
        };
        consumer
            .wait_for("the answer to the PING", is_answer)
            .await
            .unwrap();
        first.send(&frame::status(stream, 503, true)).await.unwrap();
        until("the attempt has ended", async || {
            scp.count("signalbox_scp_attempts_total", "5xx") >= 1.0
        })
        .await;
        // Another request of the same worker is served after it: nothing was sent meanwhile.
        assert_eq!(scp.get(&other).await.status, StatusCode::OK);
        assert_eq!(other.count(), 1);
    });
}

#[test]
fn a_rate_that_is_reached_uses_up_no_other() {
    local(async {
        let (limited, free) = (Producer::start(1), Producer::start(2));
        let rate = |producer: Option<&Producer>, rate: Rate| ProducerRate {
            producer: producer.map(|one| one.address.to_string()),
            services: Vec::new(),
            rate,
            global: false,
        };
        let of_all = Rate {
            per_second: 0.001,
            burst: Some(3),
        };
        let profiles = vec![
            limited.profile(&json!({"nfSetIdList": []})),
            free.profile(&json!({"nfSetIdList": []})),
        ];
        let scp = start(|config| {
            config.producers = profiles;
            config.protection.egress = vec![rate(None, of_all), rate(Some(&limited), Rate::per_second(0.0))];
        });
        for _ in 0..5 {
            assert_eq!(scp.get(&limited).await.status, StatusCode::TOO_MANY_REQUESTS);
        }
        for _ in 0..3 {
            assert_eq!(scp.get(&free).await.status, StatusCode::OK);
        }
        assert_eq!(scp.get(&free).await.status, StatusCode::TOO_MANY_REQUESTS);
    });
}

#[test]
fn every_producer_has_a_series_of_its_own() {
    local(async {
        let producer = Producer::start(1);
        let profiles: Vec<_> = (1..=400u32)
            .map(|number| {
                let mut profile = producer.profile(&json!({}));
                profile["nfInstanceId"] = json!(format!("00000000-0000-4000-9000-{number:012x}"));
                profile["nfSetIdList"] = json!([]);
                let endpoint = &mut profile["nfServices"][0]["ipEndPoints"][0];
                endpoint["ipv4Address"] = json!(format!("127.0.{}.{}", number / 200, 1 + number % 200));
                endpoint["port"] = json!(1);
                profile
            })
            .collect();
        let scp = start(|config| config.producers = profiles);
        for number in 1..=400 {
            let root = format!("http://127.0.{}.{}:1", number / 200, 1 + number % 200);
            let target = [("3gpp-sbi-target-apiroot", root.as_str())];
            assert_eq!(
                scp.ask(Method::GET, PATH, &target).await.status,
                StatusCode::GATEWAY_TIMEOUT
            );
        }
        let text = scp.registry.render();
        let series = text
            .lines()
            .filter(|line| line.starts_with("signalbox_scp_attempts_total{"));
        let (folded, own): (Vec<&str>, Vec<&str>) = series.partition(|line| line.contains("\"other\""));
        assert_eq!((own.len(), folded.len()), (400, 0));
    });
}

#[test]
fn facts_of_the_producer_stay_beside_those_of_the_scp() {
    local(async {
        let (busy, other) = (Producer::start(1), Producer::start(2));
        busy.fails_with(503);
        other.answers(|_| {
            no_content().with(
                "3gpp-sbi-response-info",
                sbi::Value::from_static("context-transferred=true"),
            )
        });
        let scp = knowing(&[&busy, &other], |_| {});
        let got = scp.get(&busy).await;
        assert_eq!(
            got.header("3gpp-sbi-response-info"),
            "context-transferred=true; request-retransmitted=true"
        );
    });
}

#[test]
fn the_path_of_a_redirection_is_that_of_its_producer_alone() {
    local(async {
        let (first, redirected, mate) = (Producer::start(1), Producer::start(3), Producer::start(2));
        let location = format!("{}/pre/fix{PATH}", redirected.root());
        first.answers(move |_| {
            let mut response = sbi::Response::new(StatusCode::TEMPORARY_REDIRECT);
            response.headers_mut().set_printed("location", &location);
            response
        });
        redirected.fails_with(503);
        let scp = knowing(&[&first, &mate], |config| config.follow_redirects = true);
        let got = scp.get(&first).await;
        assert_eq!(got.by(), mate.id);
        assert_eq!(redirected.seen()[0].path, format!("/pre/fix{PATH}"));
        assert_eq!(mate.seen()[0].path, PATH);
    });
}

#[test]
fn listening_everywhere_the_address_of_a_connection_is_that_of_the_scp() {
    local(async {
        let producer = Producer::start(1);
        let profile = producer.profile(&json!({}));
        let scp = start(|config| {
            config.listen = settings::Listen(vec!["0.0.0.0:0".parse().unwrap()]);
            config.producers = vec![profile];
        });
        let port = scp.running.as_ref().unwrap().addresses()[0].port();
        let at = format!("http://127.0.0.3:{port}").parse().unwrap();
        let get = |path: &str, binding: Option<&str>| {
            let mut request = http::Request::get(path);
            if let Some(binding) = binding {
                request = request.header("3gpp-sbi-routing-binding", binding);
            }
            request.body(Body::empty()).unwrap()
        };
        let send = |request| testpeer::sbi::send(&scp.client, &at, request);
        assert_eq!(send(get("/health", None)).await.unwrap().status, StatusCode::OK);
        let binding = format!("bl=nf-instance; nfinst={}", producer.id);
        assert_eq!(send(get(PATH, Some(&binding))).await.unwrap().by(), producer.id);
        assert_eq!(
            send(get(PATH, None)).await.unwrap().cause(),
            "MANDATORY_IE_MISSING"
        );
    });
}

#[test]
fn a_loop_is_found_whatever_the_case_of_the_name() {
    local(async {
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |_| {});
        let root = producer.root();
        let headers = [
            ("3gpp-sbi-target-apiroot", root.as_str()),
            ("via", "2.0 SCP-SCP1.test"),
        ];
        assert_eq!(
            scp.ask(Method::GET, PATH, &headers).await.cause(),
            "MSG_LOOP_DETECTED"
        );
    });
}
