//! Tokens fetched for consumers, assertions, and rules of access.

use std::time::Duration;

use http::{Method, StatusCode};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use scp::config::{AccessRule, AssertionKey, AssertionMode, TokenLevel};
use serde_json::{Value, json};

use crate::support::{Got, PATH, Producer, Scp, delegating, knowing, local};

const CONSUMER: &str = "4947a69a-f61b-4bc1-b9da-47c9c5d14b64";

const WISH: [(&str, &str); 4] = [
    ("3gpp-sbi-discovery-target-nf-type", "UDM"),
    ("3gpp-sbi-discovery-requester-nf-type", "AMF"),
    ("3gpp-sbi-discovery-requester-nf-instance-id", CONSUMER),
    ("3gpp-sbi-discovery-service-names", "nudm-sdm"),
];

/// An NRF that finds these producers and grants tokens `t1`, `t2` … that hold for so long.
fn nrf(producers: &[&Producer], seconds: u64) -> Producer {
    let nrf = Producer::start(99);
    let profiles: Vec<Value> = producers.iter().map(|one| one.profile(&json!({}))).collect();
    let granted = std::cell::Cell::new(0);
    nrf.answers(move |seen| {
        if seen.path != "/oauth2/token" {
            return sbi::json::response(
                StatusCode::OK,
                &json!({"validityPeriod": 60, "nfInstances": profiles}),
            );
        }
        granted.set(granted.get() + 1);
        sbi::json::response(
            StatusCode::OK,
            &json!({
                "access_token": format!("t{}", granted.get()), "token_type": "Bearer", "expires_in": seconds
            }),
        )
    });
    nrf
}

/// An SCP that delegates to this NRF and gets tokens.
fn asking(nrf: &Producer, change: impl FnOnce(&mut scp::Config)) -> Scp {
    delegating(vec![nrf.root()], |config| {
        config.security.tokens.enabled = true;
        change(config);
    })
}

async fn wish(scp: &Scp) -> Got {
    scp.ask(Method::GET, PATH, &WISH).await
}

fn forms(nrf: &Producer) -> Vec<String> {
    let seen = nrf.seen();
    let tokens = seen.iter().filter(|one| one.path == "/oauth2/token");
    tokens
        .map(|one| String::from_utf8(one.body.clone()).unwrap())
        .collect()
}

fn bearer(producer: &Producer) -> Vec<String> {
    let seen = producer.seen();
    let all = seen.iter().filter_map(|one| one.headers.get("authorization"));
    all.map(|value| value.to_str().unwrap().to_owned()).collect()
}

#[test]
fn a_token_is_fetched_once_for_many_and_used_until_shortly_before_its_end() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf(&[&producer], 3_600);
        nrf.waits(Duration::from_millis(50));
        let scp = asking(&nrf, |_| {});
        let got = futures_util::future::join_all((0..100).map(|_| wish(&scp))).await;
        assert!(got.iter().all(|one| one.status == StatusCode::OK));
        assert_eq!(
            forms(&nrf).len(),
            1,
            "a hundred at the same time are one question"
        );
        assert_eq!(
            forms(&nrf)[0],
            format!(
                "grant_type=client_credentials&nfInstanceId={CONSUMER}&nfType=AMF&targetNfType=UDM&scope=nudm-sdm"
            )
        );
        assert_eq!(bearer(&producer), vec!["Bearer t1"; 100]);
        wish(&scp).await;
        assert_eq!(forms(&nrf).len(), 1);
        assert_eq!(scp.count("signalbox_scp_tokens_total", "fetched"), 1.0);
        assert_eq!(scp.count("signalbox_scp_tokens_total", "waited"), 99.0);
        assert_eq!(scp.count("signalbox_scp_tokens_total", "cached"), 1.0);
        assert_eq!(scp.count("signalbox_scp_token_cache_entries", ""), 1.0);
    });
}

/// The query for a token is of the trace of the request that needs it (W3C Trace Context), as the discovery is.
#[test]
fn the_query_for_a_token_belongs_to_the_trace_of_the_request() {
    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf(&[&producer], 3_600);
        let scp = asking(&nrf, |_| {});
        let headers = [&WISH[..], &[("traceparent", TRACE)]].concat();
        let got = scp.ask(Method::GET, PATH, &headers).await;
        assert_eq!(got.status, StatusCode::OK);
        let traces: Vec<_> = nrf
            .seen()
            .iter()
            .map(|one| one.header("traceparent").to_owned())
            .collect();
        assert_eq!(traces, [TRACE, TRACE], "discovery and token");
    });
}

/// What a token is for is remembered as long as the token, or its refusal: the NRF is not asked for what is endless.
#[test]
fn a_token_for_an_endless_list_is_refused_unasked() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf(&[&producer], 3_600);
        let scp = asking(&nrf, |_| {});
        let endless = format!("[{}]", vec![r#"{"sst":1}"#; 1_000].join(","));
        let mut headers = WISH.to_vec();
        headers.push(("3gpp-sbi-discovery-requester-snssais", &endless));
        let got = scp.ask(Method::GET, PATH, &headers).await;
        assert_eq!(
            (got.status, got.cause()),
            (StatusCode::BAD_REQUEST, "MISSING_ACCESS_TOKEN_INFO")
        );
        assert!(forms(&nrf).is_empty());
        assert_eq!(scp.count("signalbox_scp_token_cache_entries", ""), 0.0);
        assert_eq!(wish(&scp).await.status, StatusCode::OK);
    });
}

#[test]
fn a_token_that_a_producer_refuses_is_not_used_again() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf(&[&producer], 3_600);
        let scp = asking(&nrf, |config| {
            config.security.tokens.level = TokenLevel::NfInstance;
        });
        producer.fails_with(401);
        assert_eq!(wish(&scp).await.status, StatusCode::UNAUTHORIZED);
        producer.answers(|_| sbi::Response::default());
        wish(&scp).await;
        assert_eq!(bearer(&producer), ["Bearer t1", "Bearer t2"]);
        assert!(forms(&nrf)[0].contains(&format!("&targetNfInstanceId={}&", producer.id)));
    });
}

#[test]
fn consumers_with_tokens_of_their_own_keep_them() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf(&[&producer], 3_600);
        let scp = asking(&nrf, |_| {});
        let mut headers = WISH.to_vec();
        headers.push(("authorization", "Bearer own"));
        scp.ask(Method::GET, PATH, &headers).await;
        // Who names its producer (Model C) brings its token itself.
        scp.get(&producer).await;
        assert_eq!(bearer(&producer), ["Bearer own"]);
        assert!(forms(&nrf).is_empty());
    });
}

#[test]
fn what_the_nrf_refuses_is_refused_and_its_silence_is_told() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf(&[&producer], 3_600);
        let profile = producer.profile(&json!({}));
        nrf.answers(move |seen| match seen.path.as_str() {
            "/oauth2/token" => sbi::json::response(
                StatusCode::BAD_REQUEST,
                &json!({"error": "unauthorized_client", "error_description": "not you"}),
            ),
            _ => sbi::json::response(
                StatusCode::OK,
                &json!({"validityPeriod": 60, "nfInstances": [profile]}),
            ),
        });
        let scp = asking(&nrf, |config| {
            config.security.tokens.remember_refusal = settings::Period::from_secs(600);
        });
        for _ in 0..5 {
            let got = wish(&scp).await;
            assert_eq!(
                (got.status, got.cause()),
                (StatusCode::FORBIDDEN, "ACCESS_TOKEN_DENIED"),
                "{got:?}"
            );
            assert!(
                got.json["detail"]
                    .as_str()
                    .unwrap()
                    .contains("unauthorized_client")
            );
        }
        assert_eq!(forms(&nrf).len(), 1, "the refusal is remembered");
        assert_eq!(producer.count(), 0);
        assert_eq!(scp.count("signalbox_scp_refused_total", "token"), 5.0);
        // One that fails is as good as one that is gone.
        nrf.fails_with(503);
        let mut other = WISH.to_vec();
        other.push(("3gpp-sbi-access-scope", "nudm-sdm:other"));
        let got = scp.ask(Method::GET, PATH, &other).await;
        assert_eq!(
            (got.status, got.cause()),
            (StatusCode::GATEWAY_TIMEOUT, "NRF_NOT_REACHABLE")
        );
    });
}

fn unix() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_secs()
}

fn assertion(key: &rcgen::KeyPair, subject: &str, audience: &str, ends: u64) -> String {
    let mut header = Header::new(Algorithm::ES256);
    header.kid = Some("amf".to_owned());
    let claims = json!({"sub": subject, "iat": unix() - 100, "exp": ends, "aud": [audience]});
    let key = EncodingKey::from_ec_der(key.serialized_der());
    jsonwebtoken::encode(&header, &claims, &key).unwrap()
}

#[test]
fn a_bad_assertion_is_refused_and_a_good_one_says_who_it_is() {
    local(async {
        let producer = Producer::start(1);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("amf.pem");
        let key = rcgen::KeyPair::generate().unwrap();
        std::fs::write(&path, key.public_key_pem()).unwrap();
        let file = path.clone();
        let scp = knowing(&[&producer], move |config| {
            config.security.assertions.mode = AssertionMode::Require;
            config.security.assertions.keys = vec![AssertionKey {
                id: "amf".into(),
                file,
                instances: vec![CONSUMER.into(), "00000000-0000-4000-8000-000000000bad".into()],
            }];
            // This consumer may not, whatever identity it claims.
            config.security.access = vec![AccessRule {
                consumers: vec!["00000000-0000-4000-8000-000000000bad".into()],
                deny: true,
                ..AccessRule::default()
            }];
        });
        let root = producer.root();
        let ask = async |assertion: &str| {
            let mut headers = vec![("3gpp-sbi-target-apiroot", root.as_str())];
            if !assertion.is_empty() {
                headers.push(("3gpp-sbi-client-credentials", assertion));
            }
            scp.ask(Method::GET, PATH, &headers).await
        };
        let later = unix() + 300;
        let good = assertion(&key, CONSUMER, "SCP", later);
        assert_eq!(ask(&good).await.status, StatusCode::OK);
        assert_eq!(ask(&good).await.status, StatusCode::OK);
        let stranger = rcgen::KeyPair::generate().unwrap();
        for bad in [
            String::new(),
            "no.jwt.".into(),
            assertion(&stranger, CONSUMER, "SCP", later),
            assertion(&key, CONSUMER, "UDM", later),
            assertion(&key, CONSUMER, "SCP", unix() - 50),
            // The holder of a key signs for its own instances only.
            assertion(&key, "00000000-0000-4000-8000-000000000001", "SCP", later),
        ] {
            let got = ask(&bad).await;
            assert_eq!(got.status, StatusCode::FORBIDDEN, "{bad}");
            assert_eq!(got.cause(), "CCA_VERIFICATION_FAILURE");
            assert_eq!(
                got.json["invalidParams"][0]["param"],
                "header 3gpp-Sbi-Client-Credentials"
            );
        }
        let refused = ask(&assertion(
            &key,
            "00000000-0000-4000-8000-000000000bad",
            "SCP",
            later,
        ))
        .await;
        assert_eq!((refused.status, refused.cause()), (StatusCode::FORBIDDEN, ""));
        assert_eq!(producer.count(), 2);
        assert_eq!(scp.count("signalbox_scp_assertions_total", "accepted"), 3.0);
        assert_eq!(scp.count("signalbox_scp_assertions_total", "refused"), 5.0);
        assert_eq!(scp.count("signalbox_scp_assertions_total", "missing"), 1.0);
        assert_eq!(scp.count("signalbox_scp_refused_total", "assertion"), 6.0);
    });
}

#[test]
fn a_rule_refuses_a_producer_and_another_of_the_set_serves() {
    local(async {
        let (forbidden, open) = (Producer::start(1), Producer::start(2));
        let id = forbidden.id.clone();
        let scp = knowing(&[&forbidden, &open], move |config| {
            config.security.access = vec![AccessRule {
                consumers: vec!["AMF".into()],
                producers: vec![id],
                deny: true,
                ..AccessRule::default()
            }];
        });
        for _ in 0..5 {
            assert_eq!(scp.get(&forbidden).await.by(), open.id);
        }
        assert_eq!(forbidden.count(), 0);
        assert_eq!(scp.count("signalbox_scp_refused_total", "forbidden"), 0.0);
    });
}

#[test]
fn rules_can_be_changed_while_running() {
    local(async {
        let producer = Producer::start(1);
        let profile = producer.profile(&json!({}));
        let scp = knowing(&[&producer], |_| {});
        assert_eq!(scp.get(&producer).await.status, StatusCode::OK);
        let mut config = crate::support::config();
        config.producers = vec![profile];
        config.security.access = vec![AccessRule {
            services: vec!["nudm-sdm".into()],
            deny: true,
            ..AccessRule::default()
        }];
        scp.running.as_ref().unwrap().reload(&config).unwrap();
        assert_eq!(scp.get(&producer).await.status, StatusCode::FORBIDDEN);
    });
}

#[test]
fn a_token_is_for_the_set_that_is_configured_and_names_the_network() {
    local(async {
        let producer = Producer::start(1);
        let mut profile = producer.profile(&json!({}));
        profile["nfServices"][0]["nfServiceSetIdList"] = json!(["setA.sn-sdm.x"]);
        for (level, asked) in [
            (TokenLevel::NfSet, "targetNfSetId=set1.udmset.5gc.mnc001.mcc001"),
            (TokenLevel::NfServiceSet, "targetNfServiceSetId=setA.sn-sdm.x"),
        ] {
            let (nrf, profile) = (Producer::start(99), profile.clone());
            nrf.answers(move |seen| {
                let answer = match seen.path.as_str() {
                    "/oauth2/token" => json!({"access_token": "t", "token_type": "Bearer", "expires_in": 60}),
                    _ => json!({"validityPeriod": 60, "nfInstances": [profile]}),
                };
                sbi::json::response(StatusCode::OK, &answer)
            });
            let scp = asking(&nrf, |config| config.security.tokens.level = level);
            let mut headers = WISH.to_vec();
            headers.push((
                "3gpp-sbi-discovery-target-plmn-list",
                "[{\"mcc\":\"262\",\"mnc\":\"01\"}]",
            ));
            assert_eq!(scp.ask(Method::GET, PATH, &headers).await.status, StatusCode::OK);
            let form = &forms(&nrf)[0];
            assert!(form.contains(asked), "{form}");
            let plmn = "targetPlmn=%7B%22mcc%22%3A%22262%22%2C%22mnc%22%3A%2201%22%7D";
            assert!(form.contains(plmn), "{form}");
        }
    });
}

#[test]
fn tokens_come_from_the_nrf_that_the_request_names() {
    local(async {
        let producer = Producer::start(1);
        let (usual, named) = (nrf(&[&producer], 3_600), nrf(&[&producer], 3_600));
        let root = named.root();
        let scp = asking(&usual, |config| config.nrf.named.roots = vec![root]);
        let header = format!(
            "nnrf-disc: \"{0}/nnrf-disc/v1\"; nnrf-oauth2: \"{0}/oauth2\"; oauth2-requested-services: nnrf-disc",
            named.root()
        );
        let mut headers = WISH.to_vec();
        headers.push(("3gpp-sbi-nrf-uri", &header));
        for _ in 0..2 {
            assert_eq!(scp.ask(Method::GET, PATH, &headers).await.status, StatusCode::OK);
        }
        // One for this SCP to discover with, one for the consumer to use the producer with.
        let own = crate::support::OWN;
        assert_eq!(
            forms(&named),
            [
                format!(
                    "grant_type=client_credentials&nfInstanceId={own}&nfType=SCP&targetNfType=NRF&scope=nnrf-disc"
                ),
                format!(
                    "grant_type=client_credentials&nfInstanceId={CONSUMER}&nfType=AMF&targetNfType=UDM&scope=nudm-sdm"
                )
            ]
        );
        let asked: Vec<_> = named
            .seen()
            .into_iter()
            .filter(|one| one.path.contains("nnrf-disc"))
            .collect();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].headers["authorization"], "Bearer t1");
        assert_eq!(bearer(&producer), ["Bearer t2", "Bearer t2"]);
        // Without the header it is the usual NRF's token: another one.
        wish(&scp).await;
        assert_eq!(forms(&usual).len(), 1);
        assert_eq!(bearer(&producer)[2], "Bearer t1");
    });
}

#[test]
fn no_token_is_asked_of_a_stranger() {
    local(async {
        let producer = Producer::start(1);
        let (usual, stranger) = (nrf(&[&producer], 3_600), nrf(&[&producer], 3_600));
        let scp = asking(&usual, |_| {});
        let header = format!("nnrf-oauth2: \"{}/oauth2\"", stranger.root());
        let mut headers = WISH.to_vec();
        headers.push(("3gpp-sbi-nrf-uri", &header));
        let got = scp.ask(Method::GET, PATH, &headers).await;
        assert_eq!(
            (got.status, got.cause()),
            (StatusCode::FORBIDDEN, "ACCESS_TOKEN_DENIED")
        );
        assert_eq!((stranger.count(), producer.count()), (0, 0));
    });
}

#[test]
fn an_nrf_that_wants_a_token_to_be_asked_gets_one_of_the_scp() {
    local(async {
        let producer = Producer::start(1);
        let nrf = Producer::start(99);
        let profile = producer.profile(&json!({}));
        nrf.answers(move |seen| {
            let shown = seen
                .headers
                .get("authorization")
                .map(|value| value.as_bytes().to_vec());
            match (seen.path.as_str(), shown.as_deref()) {
                ("/oauth2/token", _) => sbi::json::response(
                    StatusCode::OK,
                    &json!({"access_token": "own", "token_type": "Bearer", "expires_in": 60}),
                ),
                (_, Some(b"Bearer own")) => sbi::json::response(
                    StatusCode::OK,
                    &json!({"validityPeriod": 0, "nfInstances": [profile]}),
                ),
                _ => sbi::problem::Problem::of_status(StatusCode::UNAUTHORIZED).into_response(),
            }
        });
        let scp = asking(&nrf, |config| config.security.tokens.enabled = false);
        let own = crate::support::OWN;
        for _ in 0..2 {
            assert_eq!(wish(&scp).await.status, StatusCode::OK);
        }
        assert_eq!(
            forms(&nrf),
            [format!(
                "grant_type=client_credentials&nfInstanceId={own}&nfType=SCP&targetNfType=NRF&scope=nnrf-disc"
            )],
            "one token serves all its questions"
        );
        let asked: Vec<String> = nrf.seen().into_iter().map(|seen| seen.path).collect();
        assert_eq!(asked.len(), 4, "refused once, then with the token: {asked:?}");
        assert!(
            bearer(&producer).is_empty(),
            "the token of the SCP stays with the SCP"
        );
    });
}

#[test]
fn tokens_are_fetched_for_proved_consumers_only_where_proof_is_wanted() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf(&[&producer], 3_600);
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("amf.pem");
        let key = rcgen::KeyPair::generate().unwrap();
        std::fs::write(&file, key.public_key_pem()).unwrap();
        let proved = "4947a69a-f61b-4bc1-b9da-47c9c5d14b65";
        let scp = asking(&nrf, |config| {
            config.security.tokens.require_proof = true;
            config.security.assertions.mode = AssertionMode::Check;
            config.security.assertions.keys = vec![AssertionKey {
                id: "amf".into(),
                file,
                instances: vec![proved.into()],
            }];
        });
        // It says that it is CONSUMER, and so may anybody.
        let refused = wish(&scp).await;
        assert_eq!(
            (refused.status, refused.cause()),
            (StatusCode::FORBIDDEN, "ACCESS_TOKEN_DENIED")
        );
        assert!(forms(&nrf).is_empty());
        let assertion = assertion(&key, proved, "SCP", unix() + 60);
        let mut headers = WISH.to_vec();
        headers.push(("3gpp-sbi-client-credentials", &assertion));
        // The assertion is not that of CONSUMER (TS 33.501 §13.3.8.3).
        let other = scp.ask(Method::GET, PATH, &headers).await;
        assert_eq!(
            (other.status, other.cause()),
            (StatusCode::FORBIDDEN, "CCA_VERIFICATION_FAILURE")
        );
        assert!(forms(&nrf).is_empty());
        for header in &mut headers {
            if header.1 == CONSUMER {
                header.1 = proved;
            }
        }
        assert_eq!(scp.ask(Method::GET, PATH, &headers).await.status, StatusCode::OK);
        let form = &forms(&nrf)[0];
        assert!(form.contains(&format!("nfInstanceId={proved}&")), "{form}");
    });
}

/// A consumer that says who it is has no token that was fetched for another.
#[test]
fn a_token_is_not_for_others_who_say_that_they_are_the_same() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf(&[&producer], 3_600);
        let scp = asking(&nrf, |config| {
            config.listen = settings::Listen(vec!["0.0.0.0:0".parse().unwrap()]);
        });
        let port = scp.running.as_ref().unwrap().addresses()[0].port();
        wish(&scp).await;
        assert_eq!(bearer(&producer), ["Bearer t1"]);
        // From another address, with the same words.
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.9:0".parse().unwrap()).unwrap();
        let mut stream = socket.connect(address).await.unwrap();
        let mut fields = vec![
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", "scp1.test"),
            (":path", PATH),
        ];
        fields.extend(WISH);
        let mut all = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        all.extend(testpeer::http2::frame::settings(&[]));
        all.extend(testpeer::http2::frame::headers(1, &fields, true));
        tokio::io::AsyncWriteExt::write_all(&mut stream, &all)
            .await
            .unwrap();
        crate::support::until("the request arrives", async || producer.count() == 2).await;
        assert_eq!(bearer(&producer), ["Bearer t1", "Bearer t2"]);
        // Who shows an assertion that is not checked here has it checked by the NRF.
        let mut headers = WISH.to_vec();
        headers.push(("3gpp-sbi-client-credentials", "a.b.c"));
        scp.ask(Method::GET, PATH, &headers).await;
        scp.ask(Method::GET, PATH, &headers).await;
        wish(&scp).await;
        assert_eq!(bearer(&producer)[2..], ["Bearer t3", "Bearer t3", "Bearer t1"]);
    });
}

#[test]
fn a_consumer_gets_its_token_where_the_settings_say_so() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf(&[&producer], 3_600);
        let scp = asking(&nrf, |_| {});
        assert_eq!(wish(&scp).await.header("3gpp-sbi-access-token"), "");
        let scp = asking(&nrf, |config| config.security.tokens.convey = true);
        assert_eq!(wish(&scp).await.header("3gpp-sbi-access-token"), "Bearer t2");
    });
}

#[test]
fn who_does_not_say_who_it_is_gets_no_token_of_the_scp() {
    local(async {
        let producer = Producer::start(1);
        let nrf = nrf(&[&producer], 3_600);
        let nameless: Vec<_> = WISH
            .iter()
            .filter(|(_, value)| *value != CONSUMER)
            .copied()
            .collect();
        let scp = asking(&nrf, |_| {});
        let got = scp.ask(Method::GET, PATH, &nameless).await;
        assert_eq!(
            (got.status, got.cause()),
            (StatusCode::BAD_REQUEST, "MISSING_ACCESS_TOKEN_INFO")
        );
        assert_eq!((producer.count(), forms(&nrf).len()), (0, 0));
        let scp = asking(&nrf, |config| config.security.tokens.in_own_name = true);
        assert_eq!(scp.ask(Method::GET, PATH, &nameless).await.status, StatusCode::OK);
        assert!(forms(&nrf)[0].contains("nfType=SCP&"), "{}", forms(&nrf)[0]);
    });
}

/// Each slice and network of a consumer has tokens of its own, of the sizes that operators meet: tokens of 1,000 bytes,
/// requests for them of 1,500.
#[test]
fn slices_and_networks_have_large_tokens_of_their_own() {
    local(async {
        let producer = Producer::start(1);
        let nrf = Producer::start(99);
        let profile = producer.profile(&json!({}));
        let granted = std::cell::Cell::new(0);
        nrf.answers(move |seen| {
            if seen.path != "/oauth2/token" {
                let found = json!({"validityPeriod": 60, "nfInstances": [profile]});
                return sbi::json::response(StatusCode::OK, &found);
            }
            granted.set(granted.get() + 1);
            let token = format!("{:x<1000}", granted.get());
            let token = json!({"access_token": token, "token_type": "Bearer", "expires_in": 3_600});
            sbi::json::response(StatusCode::OK, &token)
        });
        let scp = asking(&nrf, |_| {});
        let list = |slice: u32| {
            let slices: Vec<Value> = (0..40)
                .map(|number| json!({"sst": 1, "sd": format!("{slice:02x}{number:04x}")}))
                .collect();
            json!(slices).to_string()
        };
        for round in 1..=2 {
            for slice in 0..3 {
                for network in 1..=5 {
                    let slices = list(slice);
                    let network = json!([{"mcc": "001", "mnc": format!("{network:02}")}]).to_string();
                    let of_consumer = [
                        ("3gpp-sbi-discovery-requester-snssais", slices.as_str()),
                        ("3gpp-sbi-discovery-requester-plmn-list", network.as_str()),
                    ];
                    let headers = [&WISH[..], &of_consumer].concat();
                    let got = scp.ask(Method::GET, PATH, &headers).await;
                    assert_eq!(got.status, StatusCode::OK, "{round}: {}", got.json);
                }
            }
            assert_eq!(forms(&nrf).len(), 15, "{round}");
        }
        assert!(forms(&nrf).iter().all(|form| form.len() >= 1_500));
        let mut used = bearer(&producer);
        assert!(used.iter().all(|token| token.len() == 7 + 1_000));
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.len(), 15);
        assert_eq!(scp.count("signalbox_scp_tokens_total", "cached"), 15.0);
    });
}
