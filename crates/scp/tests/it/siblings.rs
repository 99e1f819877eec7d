//! The same rules for other headers, statuses, methods and targets than those where they were broken first.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{PATH, Producer, delegating, knowing, local, nrf_that_finds, start};

const DELEGATED: [(&str, &str); 3] = [
    ("3gpp-sbi-discovery-target-nf-type", "UDM"),
    ("3gpp-sbi-discovery-requester-nf-type", "AMF"),
    ("3gpp-sbi-discovery-service-names", "nudm-sdm"),
];

const SET: &str = "bl=nf-set; nfset=set1.udmset.5gc.mnc001.mcc001";

/// Its profile with version 1 of the service alone.
fn of_v1(producer: &Producer) -> Value {
    let mut profile = producer.profile(&json!({}));
    profile["nfServices"][0]["versions"] = json!([{"apiVersionInUri": "v1", "apiFullVersion": "1.0.0"}]);
    profile
}

/// TS 29.501 §4.3.1: the version decides for members of a set and for bindings as for discoveries.
#[test]
fn the_version_of_the_path_decides_who_stands_in_and_who_is_bound() {
    local(async {
        let (old, dead, new) = (Producer::start(1), Producer::start(2), Producer::start(3));
        dead.fails_with(503);
        let profiles = vec![
            of_v1(&old),
            dead.profile(&json!({})),
            new.profile(&json!({"priority": 9})),
        ];
        let scp = start(|config| config.producers = profiles);
        for _ in 0..5 {
            assert_eq!(scp.get(&dead).await.by(), new.id, "rerouted");
            let got = scp
                .ask(Method::GET, PATH, &[("3gpp-sbi-routing-binding", SET)])
                .await;
            assert_eq!(got.by(), new.id, "bound");
        }
        assert_eq!(old.count(), 0);
        // A producer that is named, by its API root or its binding, gets whatever it is asked for.
        assert_eq!(scp.get(&old).await.by(), old.id);
    });
}

#[test]
fn preferred_versions_of_an_api_are_tried_first() {
    local(async {
        let (first, second) = (Producer::start(1), Producer::start(2));
        let mut minor = second.profile(&json!({}));
        minor["nfServices"][0]["versions"] = json!([{"apiVersionInUri": "v2", "apiFullVersion": "2.3.0"}]);
        let nrf = nrf_that_finds(vec![first.profile(&json!({})), minor]);
        let scp = delegating(vec![nrf.root()], |_| {});
        let wish = (
            "3gpp-sbi-discovery-preferred-api-versions",
            r#"{"nudm-sdm": ">=2.1.0"}"#,
        );
        for _ in 0..8 {
            let got = scp
                .ask(Method::GET, PATH, &[&DELEGATED[..], &[wish]].concat())
                .await;
            assert_eq!(got.by(), second.id);
        }
    });
}

/// RFC 9110 §5.3: a header of one value that stands there twice could be read as either.
#[test]
fn no_header_of_one_value_may_stand_there_with_two() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf_that_finds(vec![producer.profile(&json!({}))]);
        let scp = delegating(vec![nrf.root()], |_| {});
        let root = producer.root();
        let named = [("3gpp-sbi-target-apiroot", root.as_str())];
        for (name, one, other) in [
            ("3gpp-sbi-discovery-target-nf-type", "UDM", "AUSF"),
            ("3gpp-sbi-discovery-requester-nf-type", "AMF", "SMF"),
            ("3gpp-sbi-client-credentials", "a.b.c", "d.e.f"),
            (
                "3gpp-sbi-sender-timestamp",
                "Sun, 04 Aug 2019 08:49:37.845 GMT",
                "Sun, 04 Aug 2019 08:49:38.845 GMT",
            ),
            ("3gpp-sbi-retry-info", "no-retries", "retries"),
            ("3gpp-sbi-selection-info", "reselection=true", "reselection=false"),
            ("3gpp-sbi-max-rsp-time", "100", "200"),
            ("authorization", "Bearer a", "Bearer b"),
        ] {
            let usual: &[(&str, &str)] = match name.contains("discovery") {
                true => &DELEGATED,
                false => &named,
            };
            let rest: Vec<_> = usual.iter().copied().filter(|header| header.0 != name).collect();
            let twice = [&rest[..], &[(name, one), (name, other)]].concat();
            let got = scp.ask(Method::GET, PATH, &twice).await;
            assert_eq!(got.status, StatusCode::BAD_REQUEST, "{name}");
        }
        assert_eq!((producer.count(), nrf.count()), (0, 0));
    });
}

/// TS 29.510 §5.4.2.2.2: an NRF may send a request for a token to another NRF.
#[test]
fn an_nrf_may_send_a_request_for_a_token_to_another() {
    local(async {
        for status in [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT] {
            let (producer, granting) = (Producer::start(1), Producer::start(98));
            granting.answers(|_| {
                sbi::json::response(
                    StatusCode::OK,
                    &json!({"access_token": "there", "token_type": "Bearer", "expires_in": 600}),
                )
            });
            let nrf = Producer::start(99);
            let (profile, there) = (producer.profile(&json!({})), granting.root());
            nrf.answers(move |seen| {
                if seen.path != "/oauth2/token" {
                    let found = json!({"validityPeriod": 60, "nfInstances": [profile]});
                    return sbi::json::response(StatusCode::OK, &found);
                }
                let mut response = sbi::Response::new(status);
                let location = format!("{there}/oauth2/token");
                response.headers_mut().set_printed("location", &location);
                response
            });
            let scp = delegating(vec![nrf.root()], |config| config.security.tokens.enabled = true);
            let requester = (
                "3gpp-sbi-discovery-requester-nf-instance-id",
                "4947a69a-f61b-4bc1-b9da-47c9c5d14b64",
            );
            let got = scp
                .ask(Method::GET, PATH, &[&DELEGATED[..], &[requester]].concat())
                .await;
            assert_eq!(got.by(), producer.id, "{status}: {}", got.json);
            assert_eq!(producer.seen()[0].header("authorization"), "Bearer there");
            let seen = granting.seen();
            let form = String::from_utf8(seen[0].body.clone()).unwrap();
            assert_eq!(seen[0].method, Method::POST);
            assert!(form.contains("grant_type=client_credentials"), "{form}");
        }
    });
}

/// TS 29.500 §6.10.5.1: discovery parameters beside an API root, for other methods and other failures.
#[test]
fn discovery_parameters_name_those_who_stand_in_for_one_that_refuses() {
    local(async {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            let (busy, found) = (Producer::start(1), Producer::start(2));
            busy.fails_with(503);
            let nrf = nrf_that_finds(vec![found.profile(&json!({}))]);
            let scp = delegating(vec![nrf.root()], |_| {});
            let root = busy.root();
            let headers = [&DELEGATED[..], &[("3gpp-sbi-target-apiroot", root.as_str())]].concat();
            let got = scp.ask(method.clone(), PATH, &headers).await;
            assert_eq!(got.by(), found.id, "{method}");
        }
    });
}

/// TS 29.500 §6.10.8.2: every answer of the SCP's own says whose it is.
#[test]
fn own_answers_say_whose_they_are() {
    local(async {
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |_| {});
        for headers in [
            &[][..],
            &[("3gpp-sbi-target-apiroot", "nonsense")],
            &[("via", "2.0 SCP-scp1.test")],
        ] {
            let got = scp.ask(Method::GET, PATH, headers).await;
            assert_eq!(got.header("server"), "SCP-scp1.test", "{headers:?}");
        }
    });
}

/// TS 29.500 §6.10.8.2: what the server answers before any step, by its own limits, says whose it is as well.
#[test]
fn answers_by_limits_of_the_server_say_whose_they_are() {
    local(async {
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |config| {
            config.server.max_body = settings::ByteSize(1_000);
            config.server.max_header_fields = 64;
        });
        let post = http::Request::post(PATH).header("3gpp-sbi-target-apiroot", producer.root());
        let large = scp.send(post.body(vec![b'x'; 5_000].into()).unwrap()).await;
        let many = (0..100).fold(http::Request::get(PATH), |request, number| {
            request.header(format!("x-field-{number}"), "1")
        });
        let many = scp.send(many.body(sbi::Body::empty()).unwrap()).await;
        let hasty = knowing(&[&producer], |config| config.server.max_request_rate = 1);
        let mut last = hasty.get(&producer).await;
        testpeer::until("the rate is reached", async || {
            last = hasty.get(&producer).await;
            last.status == StatusCode::TOO_MANY_REQUESTS
        })
        .await;
        for (got, status) in [(large, 413), (many, 431), (last, 429)] {
            assert_eq!(got.status.as_u16(), status);
            assert_eq!(got.header("server"), "SCP-scp1.test", "{status}");
            assert_eq!(got.header("content-type"), "application/problem+json", "{status}");
            assert_eq!(got.json["status"], status, "{}", got.json);
        }
    });
}
