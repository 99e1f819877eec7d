//! Model C: the consumer names the producer.

use std::time::Duration;

use http::{Method, StatusCode};
use routing::policy::{Reroute, Route, ServicePolicy, StagePolicy};
use sbi::Body;
use serde_json::json;
use testpeer::http2::{Peer, frame};

use crate::support::{PATH, Producer, knowing, local, start};

#[test]
fn a_request_goes_to_its_api_root_and_back_unharmed() {
    local(async {
        let producer = Producer::start(1);
        producer.answers(|seen| {
            let mut response = sbi::json::response(StatusCode::CREATED, &json!({"len": seen.body.len()}));
            response
                .headers_mut()
                .set_printed("location", "/prefix/nudm-sdm/v2/x/1");
            response.headers_mut().set_printed("x-vendor", "kept");
            response
        });
        let scp = start(|_| {});
        let body = "x".repeat(200_000);
        let request = http::Request::post(format!("{PATH}?a=%20b&c"))
            .header("3gpp-sbi-target-apiroot", format!("{}/prefix", producer.root()))
            .header("3gpp-sbi-max-forward-hops", "5; nodetype=scp")
            .header("3gpp-sbi-sender-timestamp", "Sun, 04 Aug 2019 08:49:37.845 GMT")
            .header("content-type", "application/json")
            .header("x-vendor", "kept")
            .body(Body::from(body))
            .unwrap();
        let got = scp.send(request).await;
        assert_eq!(got.status, StatusCode::CREATED);
        assert_eq!(got.json["len"], 200_000);
        assert_eq!(got.header("x-vendor"), "kept");
        assert_eq!(got.header("location"), "/prefix/nudm-sdm/v2/x/1");
        assert_eq!(got.header("via"), "2.0 SCP-scp1.test");
        assert_eq!(
            got.header("3gpp-sbi-target-apiroot"),
            "",
            "it is whom the consumer named"
        );
        let seen = &producer.seen()[0];
        assert_eq!(seen.path, format!("/prefix{PATH}?a=%20b&c"));
        assert_eq!(seen.headers["via"], "2.0 SCP-scp1.test");
        assert_eq!(seen.headers["user-agent"], "AMF-test");
        assert_eq!(seen.headers["x-vendor"], "kept");
        assert!(seen.headers.contains_key("3gpp-sbi-sender-timestamp"));
        for gone in ["3gpp-sbi-target-apiroot", "3gpp-sbi-max-forward-hops"] {
            assert!(!seen.headers.contains_key(gone), "{gone}");
        }
    });
}

#[test]
fn the_authority_names_a_producer_as_well() {
    local(async {
        let (scp, producer) = (start(|_| {}), Producer::start(1));
        // A proxy is sent absolute URIs: connect to the SCP, name the producer.
        let address = scp.running.as_ref().unwrap().addresses()[0];
        let mut peer = Peer::client(address).await.unwrap();
        let authority = producer.address.to_string();
        let fields = [
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", authority.as_str()),
            (":path", PATH),
        ];
        peer.send(&frame::headers(1, &fields, true)).await.unwrap();
        assert_eq!(peer.status(1).await.unwrap(), 200);
        assert_eq!(producer.count(), 1);
    });
}

#[test]
fn what_names_nobody_is_told_what_is_missing() {
    local(async {
        let scp = start(|_| {});
        let got = scp.ask(Method::GET, PATH, &[]).await;
        assert_eq!(
            (got.status, got.cause()),
            (StatusCode::BAD_REQUEST, "MANDATORY_IE_MISSING")
        );
        assert_eq!(
            got.json["invalidParams"][0]["param"],
            "header 3gpp-Sbi-Target-apiRoot"
        );
        assert_eq!(got.header("server"), "SCP-scp1.test");
        let got = scp
            .ask(Method::GET, PATH, &[("3gpp-sbi-target-apiroot", "ftp://x")])
            .await;
        assert_eq!(
            (got.status, got.cause()),
            (StatusCode::BAD_REQUEST, "INVALID_MSG_FORMAT")
        );
        let got = scp
            .ask(
                Method::GET,
                PATH,
                &[("3gpp-sbi-target-apiroot", "http://127.0.0.1:1")],
            )
            .await;
        assert_eq!(
            (got.status, got.cause()),
            (StatusCode::GATEWAY_TIMEOUT, "TARGET_NF_NOT_REACHABLE")
        );
    });
}

#[test]
fn unknown_targets_are_refused_where_configured() {
    local(async {
        let (known, unknown) = (Producer::start(1), Producer::start(2));
        let scp = knowing(&[&known], |config| config.forward_to_unknown = false);
        assert_eq!(scp.get(&known).await.status, StatusCode::OK);
        assert_eq!(scp.get(&unknown).await.cause(), "TARGET_NF_NOT_REACHABLE");
        assert_eq!(unknown.count(), 0);
    });
}

#[test]
fn loops_end() {
    local(async {
        let (scp, producer) = (start(|_| {}), Producer::start(1));
        let root = producer.root();
        let target = ("3gpp-sbi-target-apiroot", root.as_str());
        let got = scp
            .ask(
                Method::GET,
                PATH,
                &[target, ("via", "2.0 SCP-a, 2.0 SCP-scp1.test")],
            )
            .await;
        assert_eq!(got.cause(), "MSG_LOOP_DETECTED");
        let got = scp
            .ask(
                Method::GET,
                PATH,
                &[target, ("3gpp-sbi-max-forward-hops", "0; nodetype=scp")],
            )
            .await;
        assert_eq!(
            (got.status, got.cause()),
            (StatusCode::BAD_GATEWAY, "MAX_SCP_HOPS_REACHED")
        );
        let got = scp
            .ask(Method::GET, PATH, &[target, ("via", "2.0 SCP-scp1.testing")])
            .await;
        assert_eq!(got.status, StatusCode::OK);
        assert_eq!(producer.count(), 1);
    });
}

#[test]
fn a_dead_producer_is_stood_in_for_by_its_set() {
    local(async {
        let (dead, other) = (Producer::start(1), Producer::start(2));
        let scp = knowing(&[&dead, &other], |_| {});
        dead.stop();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let got = scp.get(&dead).await;
        assert_eq!((got.status, got.by()), (StatusCode::OK, other.id.as_str()));
        // The answer names the producer that answered instead (TS 29.500 §6.10.4).
        assert_eq!(got.header("3gpp-sbi-target-apiroot"), other.root());
        assert!(got.header("3gpp-sbi-producer-id").contains(&other.id));
        assert_eq!(got.header("3gpp-sbi-response-info"), "request-retransmitted=true");
        assert!(scp.count("signalbox_scp_reroutes_total", "nudm-sdm") >= 1.0);
    });
}

#[test]
fn what_may_have_had_effect_is_not_repeated() {
    local(async {
        let (silent, other) = (Producer::start(1), Producer::start(2));
        silent.waits(Duration::from_secs(60));
        let quick = ServicePolicy {
            response_timeout_ms: 200,
            total_timeout_ms: 5_000,
            ..ServicePolicy::default()
        };
        let scp = knowing(&[&silent, &other], |config| config.policies = vec![quick]);
        let root = silent.root();
        let target = [("3gpp-sbi-target-apiroot", root.as_str())];
        let got = scp.ask(Method::POST, "/nudm-sdm/v2/x", &target).await;
        assert_eq!(
            (got.status, got.cause()),
            (StatusCode::GATEWAY_TIMEOUT, "TARGET_NF_NOT_REACHABLE")
        );
        assert_eq!(other.count(), 0);
        let got = scp.ask(Method::PUT, "/nudm-sdm/v2/x", &target).await;
        assert_eq!((got.status, got.by()), (StatusCode::OK, other.id.as_str()));
    });
}

#[test]
fn configured_statuses_go_elsewhere_and_the_rest_comes_back() {
    local(async {
        let (busy, other) = (Producer::start(1), Producer::start(2));
        let scp = knowing(&[&busy, &other], |_| {});
        busy.fails_with(503);
        assert_eq!(scp.get(&busy).await.by(), other.id);
        busy.fails_with(404);
        assert_eq!(scp.get(&busy).await.status, StatusCode::NOT_FOUND);
        // Both fail: the consumer gets the last answer of a producer, not one of the SCP's.
        busy.fails_with(503);
        other.fails_with(503);
        let got = scp.get(&busy).await;
        assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(got.header("server"), "");
        // Also when the second does not answer at all: the first one's answer comes the usual way.
        other.stop();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let got = scp.get(&busy).await;
        assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(got.header("via"), "2.0 SCP-scp1.test");
    });
}

/// Rules at the grain of an answer: its `cause`, the method, the pause that it asks for.
#[test]
fn rules_decide_by_cause_method_and_pause_whether_another_is_tried() {
    use routing::policy::{RerouteRule, ServicePolicy};
    local(async {
        let (refusing, other) = (Producer::start(1), Producer::start(2));
        let rule = |causes: &[&str], methods: &[&str], pause, reroute| RerouteRule {
            causes: causes.iter().map(|one| (*one).to_owned()).collect(),
            methods: methods.iter().map(|one| (*one).to_owned()).collect(),
            retry_after_from: pause,
            reroute,
            ..RerouteRule::default()
        };
        let root = refusing.root();
        for (method, status, cause, pause, by_other) in [
            // No rule fits: `rerouteOnStatus` has 503 and not 500.
            (Method::POST, 503, "NF_CONGESTION", "5", true),
            (Method::GET, 503, "NF_CONGESTION", "30", true),
            (Method::POST, 500, "UNSPECIFIED_NF_FAILURE", "", false),
            (Method::POST, 503, "NF_CONGESTION", "30", false),
            (Method::POST, 500, "SYSTEM_FAILURE", "", true),
        ] {
            refusing.answers(move |_| {
                let problem = json!({"status": status, "cause": cause});
                let status = StatusCode::from_u16(status).unwrap();
                let mut response = sbi::json::response(status, &problem);
                if !pause.is_empty() {
                    response.headers_mut().set_printed("retry-after", pause);
                }
                response
            });
            // Another SCP for each: one that was asked for a pause keeps to it.
            let scp = knowing(&[&refusing, &other], |config| {
                config.policies = vec![ServicePolicy {
                    reroute_rules: vec![
                        rule(&["NF_CONGESTION"], &["POST"], 10, false),
                        rule(&["SYSTEM_FAILURE"], &[], 0, true),
                    ],
                    ..ServicePolicy::default()
                }];
                config.protection.outliers.consecutive_failures = 0;
            });
            let got = scp
                .ask(
                    method.clone(),
                    PATH,
                    &[("3gpp-sbi-target-apiroot", root.as_str())],
                )
                .await;
            let expected = match by_other {
                true => StatusCode::OK,
                false => StatusCode::from_u16(status).unwrap(),
            };
            assert_eq!(got.status, expected, "{method} {status} {cause} {pause}");
        }
    });
}

#[test]
fn a_consumer_that_waits_less_is_answered_in_time() {
    local(async {
        let silent = Producer::start(1);
        silent.waits(Duration::from_secs(60));
        let scp = knowing(&[&silent], |_| {});
        let root = silent.root();
        let headers = [
            ("3gpp-sbi-target-apiroot", root.as_str()),
            ("3gpp-sbi-max-rsp-time", "100"),
        ];
        let got = scp.ask(Method::GET, PATH, &headers).await;
        assert_eq!(got.cause(), "TIMED_OUT_REQUEST");
    });
}

#[test]
fn load_balance_spreads_over_the_set_by_capacity() {
    local(async {
        let (small, large) = (Producer::start(1), Producer::start(2));
        let profiles = vec![
            small.profile(&json!({"capacity": 10})),
            large.profile(&json!({"capacity": 30})),
        ];
        let balance = ServicePolicy {
            initial: StagePolicy {
                route: Route::LoadBalance,
                reroute: Reroute::WithinRegion,
            },
            ..ServicePolicy::default()
        };
        let scp = start(|config| {
            config.producers = profiles;
            config.policies = vec![balance];
        });
        for _ in 0..400 {
            assert_eq!(scp.get(&small).await.status, StatusCode::OK);
        }
        assert_eq!(small.count() + large.count(), 400);
        assert!((60..=140).contains(&small.count()), "{} of 400", small.count());
    });
}

#[test]
fn a_binding_sticks_and_fails_over_inside_the_set() {
    local(async {
        let (first, second, foreign) = (Producer::start(1), Producer::start(2), Producer::start(3));
        let profiles = vec![
            first.profile(&json!({})),
            second.profile(&json!({})),
            foreign.profile(&json!({"nfSetIdList": ["other.udmset.5gc.mnc001.mcc001"]})),
        ];
        let scp = start(|config| config.producers = profiles);
        let binding = format!(
            "bl=nf-instance; nfinst={}; nfset=set1.udmset.5gc.mnc001.mcc001",
            second.id
        );
        for _ in 0..20 {
            let got = scp
                .ask(Method::PUT, PATH, &[("3gpp-sbi-routing-binding", &binding)])
                .await;
            assert_eq!(got.by(), second.id);
            assert!(got.header("3gpp-sbi-producer-id").contains(&second.id));
        }
        second.stop();
        tokio::time::sleep(Duration::from_millis(50)).await;
        for _ in 0..5 {
            let got = scp
                .ask(Method::PUT, PATH, &[("3gpp-sbi-routing-binding", &binding)])
                .await;
            assert_eq!(got.by(), first.id);
        }
        assert_eq!(foreign.count(), 0);
    });
}

#[test]
fn the_region_of_others_is_reached_through_their_scp() {
    local(async {
        let producer = Producer::start(1);
        let profile = producer.profile(&json!({"locality": "west1"}));
        let west = start(|config| config.fqdn = "scp-west.test".into());
        let east = start(|config| {
            config.fqdn = "scp-east.test".into();
            config.producers = vec![profile];
            config.places.locality = "east1".into();
            config.places.regions = [("east", "east1"), ("west", "west1")]
                .map(|(region, locality)| (region.to_owned(), vec![locality.to_owned()]))
                .into();
            config.next_hops = [("west".to_owned(), vec![west.origin.to_string()])].into();
        });
        let got = east.get(&producer).await;
        assert_eq!((got.status, got.by()), (StatusCode::OK, producer.id.as_str()));
        let via: Vec<_> = producer.seen()[0]
            .headers
            .get_all("via")
            .iter()
            .cloned()
            .collect();
        assert_eq!(via, ["2.0 SCP-scp-east.test", "2.0 SCP-scp-west.test"]);
    });
}

#[test]
fn redirections_are_passed_on_or_followed() {
    local(async {
        let (first, second) = (Producer::start(1), Producer::start(2));
        let location = format!("{}{PATH}", second.root());
        first.answers(move |_| {
            let mut response = sbi::Response::default();
            *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
            response.headers_mut().set_printed("location", &location);
            response
        });
        let passing = start(|_| {});
        assert_eq!(passing.get(&first).await.status, StatusCode::TEMPORARY_REDIRECT);
        let following = start(|config| config.follow_redirects = true);
        let got = following.get(&first).await;
        assert_eq!((got.status, got.by()), (StatusCode::OK, second.id.as_str()));
    });
}

#[test]
fn a_redirected_request_is_whole_where_nothing_is_rerouted() {
    local(async {
        let (first, second) = (Producer::start(1), Producer::start(2));
        let location = format!("{}{PATH}", second.root());
        first.answers(move |_| {
            let mut response = sbi::Response::default();
            *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
            response.headers_mut().set_printed("location", &location);
            response
        });
        let stage = StagePolicy {
            route: Route::Forward,
            reroute: Reroute::None,
        };
        let scp = start(|config| {
            config.follow_redirects = true;
            config.policies = vec![ServicePolicy {
                initial: stage,
                subsequent: stage,
                ..ServicePolicy::default()
            }];
        });
        let request = http::Request::put(PATH)
            .header("3gpp-sbi-target-apiroot", first.root())
            .header("content-type", "application/json")
            .header("authorization", "Bearer x")
            .body(Body::from("{}".to_owned()))
            .unwrap();
        let got = scp.send(request).await;
        assert_eq!((got.status, got.by()), (StatusCode::OK, second.id.as_str()));
        let seen = &second.seen()[0];
        assert_eq!(seen.body, b"{}");
        for (name, value) in [
            ("content-type", "application/json"),
            ("authorization", "Bearer x"),
            ("via", "2.0 SCP-scp1.test"),
        ] {
            assert_eq!(
                seen.headers.get(name).map(|value| value.as_bytes()),
                Some(value.as_bytes()),
                "{name}"
            );
        }
    });
}

#[test]
fn callbacks_go_where_they_are_to_go() {
    local(async {
        let (scp, consumer) = (start(|_| {}), Producer::start(1));
        let request = http::Request::post("/my/callback/7?x=1")
            .header("3gpp-sbi-target-apiroot", consumer.root())
            .header("3gpp-sbi-callback", "Nsmf_PDUSession_Update; apiversion=1")
            .body(Body::from("{}"))
            .unwrap();
        let got = scp.send(request).await;
        assert_eq!(got.status, StatusCode::OK);
        let seen = &consumer.seen()[0];
        assert_eq!(seen.path, "/my/callback/7?x=1");
        assert_eq!(
            seen.headers["3gpp-sbi-callback"],
            "Nsmf_PDUSession_Update; apiversion=1"
        );
    });
}

/// One of three dies while requests come: no consumer sees it, and it is used again when it is back.
#[test]
fn the_death_of_a_producer_under_load_is_seen_by_nobody() {
    local(async {
        let producers = [Producer::start(1), Producer::start(2), Producer::start(3)];
        let all: Vec<&Producer> = producers.iter().collect();
        let balance = ServicePolicy {
            initial: StagePolicy {
                route: Route::LoadBalance,
                reroute: Reroute::WithinRegion,
            },
            ..ServicePolicy::default()
        };
        let scp = knowing(&all, |config| {
            config.policies = vec![balance];
            config.protection.outliers.base_ejection = settings::Period::from_millis(100);
            config.protection.outliers.max_ejection = settings::Period::from_millis(100);
            config.client.backoff_max = settings::Period::from_millis(50);
        });
        let load = async |rounds: usize| {
            for _ in 0..rounds {
                let batch = (0..50).map(|_| scp.get(&producers[0]));
                for got in futures_util::future::join_all(batch).await {
                    assert_eq!(got.status, StatusCode::OK, "{got:?}");
                }
            }
        };
        load(10).await;
        let dies = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            producers[1].stop();
        };
        tokio::join!(load(40), dies);
        let before = producers[1].count();
        let back = Producer::at(2, producers[1].address);
        crate::support::until("traffic returns", async || {
            load(1).await;
            back.count() > 10
        })
        .await;
        assert!(before > 0);
    });
}
