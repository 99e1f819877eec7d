//! Requests that mean one service and look like another, and messages that are none.

use http::{Method, StatusCode};
use sbi::Response;
use scp::config::AccessRule;
use serde_json::json;

use crate::support::{PATH, Producer, knowing, local, start};

fn no_sdm() -> Vec<AccessRule> {
    vec![AccessRule {
        services: vec!["nudm-sdm".into()],
        deny: true,
        ..AccessRule::default()
    }]
}

#[test]
fn rules_by_service_are_judged_by_what_the_producer_sees() {
    local(async {
        let (known, prefixed, unknown) = (Producer::start(1), Producer::start(2), Producer::start(3));
        let profiles = [(&known, None), (&prefixed, Some("/api/x"))].map(|(one, prefix)| {
            let mut profile = one.profile(&json!({"nfSetIdList": []}));
            profile["nfServices"][0]["apiPrefix"] = json!(prefix);
            profile
        });
        let scp = start(|config| {
            config.producers = profiles.to_vec();
            config.security.access = no_sdm();
        });
        for producer in [&known, &prefixed, &unknown] {
            let root = producer.root();
            let own = if producer.id == prefixed.id { "/api/x" } else { "" };
            for (prefix, path) in [
                (own.to_owned(), "/nudm-sdm/v2/echo"),
                (format!("{own}/nudm-sdm"), "/v2/echo"),
                (format!("{own}/%6eudm-sdm"), "/v2/echo"),
                (format!("{own}/nudm-sdm/v2"), "/echo"),
                (own.to_owned(), "/%6eudm-sdm/v2/echo"),
                (own.to_owned(), "/x/../nudm-sdm/v2/echo"),
                (own.to_owned(), "/x/%2e%2e/nudm-sdm/v2/echo"),
                (own.to_owned(), "/x/..%2fnudm-sdm/v2/echo"),
                (own.to_owned(), "/NUDM-SDM/v2/echo"),
                (own.to_owned(), "//nudm-sdm/v2/echo"),
                (own.to_owned(), "/nudm-sdm;a=b/v2/echo"),
                (own.to_owned(), "/./nudm-sdm/v2/echo"),
                (own.to_owned(), "/nudm-sdm%2Fv2/echo"),
                (format!("{own}/x/.."), "/nudm-sdm/v2/echo"),
            ] {
                let target = format!("{root}{prefix}");
                let got = scp
                    .ask(Method::GET, path, &[("3gpp-sbi-target-apiroot", &target)])
                    .await;
                assert!(
                    [StatusCode::FORBIDDEN, StatusCode::BAD_REQUEST].contains(&got.status),
                    "{target} {path}: {got:?}"
                );
            }
            assert_eq!(producer.count(), 0);
            // Another service is another one.
            let target = format!("{root}{own}");
            let got = scp
                .ask(
                    Method::GET,
                    "/nudm-ee/v1/echo",
                    &[("3gpp-sbi-target-apiroot", &target)],
                )
                .await;
            assert_eq!(got.status, StatusCode::OK);
        }
    });
}

#[test]
fn a_path_is_judged_in_one_form_and_sent_as_it_was_written() {
    local(async {
        let producer = Producer::start(1);
        let mut profile = producer.profile(&json!({}));
        profile["nfServices"][0]["apiPrefix"] = json!("/api");
        let scp = start(|config| config.producers = vec![profile]);
        const USUAL: &str = "/api/nudm-sdm/v2/nai-a%40b/x?a=%41";
        for (prefix, path, sent) in [
            ("/api", "/nudm-sdm/v2/nai-a%40b/x?a=%41", USUAL),
            (
                "/api",
                "/%6eudm-sdm/v2/n%61i-a%40b/x?a=%41",
                "/api/%6eudm-sdm/v2/n%61i-a%40b/x?a=%41",
            ),
            ("", USUAL, USUAL),
            ("/%61pi/nudm-sdm", "/v2/nai-a%40b/x?a=%41", USUAL),
        ] {
            let target = format!("{}{prefix}", producer.root());
            let got = scp
                .ask(Method::GET, path, &[("3gpp-sbi-target-apiroot", &target)])
                .await;
            assert_eq!(got.status, StatusCode::OK, "{got:?}");
            let seen = producer.seen().pop().unwrap();
            assert_eq!(seen.path, sent);
        }
    });
}

#[test]
fn a_redirection_is_judged_as_a_request_is() {
    local(async {
        let (first, second) = (Producer::start(1), Producer::start(2));
        let scp = knowing(&[&first, &second], |config| {
            config.security.access = no_sdm();
            config.follow_redirects = true;
        });
        let root = first.root();
        let target = [("3gpp-sbi-target-apiroot", root.as_str())];
        for path in ["/nudm-sdm/v2/x", "/%6eudm-sdm/v2/x", "/x/../nudm-sdm/v2/x"] {
            let location = format!("{}{path}", second.root());
            first.answers(move |_| {
                let mut response = Response::default();
                *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
                response.headers_mut().set_printed("location", &location);
                response
            });
            scp.ask(Method::GET, "/nudm-ee/v1/x", &target).await;
        }
        assert_eq!((first.count(), second.count()), (3, 0));
    });
}

#[test]
fn methods_of_proxies_and_tunnels_are_refused() {
    local(async {
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |_| {});
        let root = producer.root();
        let got = scp
            .ask(Method::TRACE, PATH, &[("3gpp-sbi-target-apiroot", &root)])
            .await;
        assert_eq!((got.status, producer.count()), (StatusCode::NOT_IMPLEMENTED, 0));
        assert_eq!(scp.count("signalbox_scp_refused_total", "method"), 1.0);
    });
}

#[test]
fn answers_that_are_none_are_not_passed_on() {
    local(async {
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |config| {
            config.protection.outliers.consecutive_failures = 0;
            config.protection.breaker.failures = 1_000;
        });
        // Bodies with 204 and 304 no server of ours sends: `garbage` has a peer that does.
        for (status, body) in [(600, ""), (999, ""), (205, "x")] {
            producer.answers(move |_| {
                let mut response = Response::ok(body);
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                response
            });
            let got = scp.get(&producer).await;
            assert_eq!(
                (got.status, got.cause()),
                (StatusCode::GATEWAY_TIMEOUT, "TARGET_NF_NOT_REACHABLE"),
                "{status}"
            );
        }
        for status in [200, 204, 304, 404, 599] {
            producer.answers(move |_| {
                let mut response = Response::default();
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                response
            });
            assert_eq!(scp.get(&producer).await.status.as_u16(), status);
        }
    });
}

#[test]
fn ports_that_are_none_are_refused() {
    local(async {
        let scp = start(|_| {});
        for root in [
            "http://127.0.0.1:0",
            "http://127.0.0.1:99999",
            "http://127.0.0.1:",
        ] {
            let got = scp
                .ask(Method::GET, PATH, &[("3gpp-sbi-target-apiroot", root)])
                .await;
            assert_eq!(
                (got.status, got.cause()),
                (StatusCode::BAD_REQUEST, "INVALID_MSG_FORMAT"),
                "{root}"
            );
        }
    });
}
