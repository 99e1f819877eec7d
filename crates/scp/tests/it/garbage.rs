//! Consumers and producers that misbehave get an error, and other peers are not affected.

use http::{Method, StatusCode};
use testpeer::http2::{Listener, Peer, frame};

use crate::support::{PATH, Producer, knowing, local, start};

#[test]
fn bad_headers_are_named() {
    local(async {
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |_| {});
        let root = producer.root();
        let target = ("3gpp-sbi-target-apiroot", root.as_str());
        for (name, value) in [
            ("3gpp-sbi-routing-binding", "nonsense"),
            ("3gpp-sbi-max-rsp-time", "soon"),
            ("3gpp-sbi-max-forward-hops", "many"),
        ] {
            let got = scp.ask(Method::GET, PATH, &[target, (name, value)]).await;
            assert_eq!(
                (got.status, got.cause()),
                (StatusCode::BAD_REQUEST, "INVALID_MSG_FORMAT"),
                "{name}"
            );
            let param = got.json["invalidParams"][0]["param"]
                .as_str()
                .unwrap()
                .to_ascii_lowercase();
            assert!(param.contains(name), "{param}");
        }
        // What the SCP does not need it does not judge.
        let got = scp
            .ask(
                Method::GET,
                PATH,
                &[target, ("3gpp-sbi-oci", "???"), ("traceparent", "x")],
            )
            .await;
        assert_eq!(got.status, StatusCode::OK);
        assert_eq!(producer.count(), 1);
    });
}

#[test]
fn hostile_consumers_harm_nobody() {
    local(async {
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |config| {
            config.server.max_body = settings::ByteSize::kib(256);
        });
        let address = scp.running.as_ref().unwrap().addresses()[0];
        let root = producer.root();
        let fields = |method: &'static str| {
            vec![
                (":method", method),
                (":scheme", "http"),
                (":authority", "scp"),
                (":path", PATH),
                ("3gpp-sbi-target-apiroot", root.as_str()),
            ]
        };
        // Half a body and then silence.
        let mut half = Peer::client(address).await.unwrap();
        half.send(&frame::headers(1, &fields("POST"), false))
            .await
            .unwrap();
        half.send(&frame::data(1, b"{", false)).await.unwrap();
        // Resets at once.
        let mut resets = Peer::client(address).await.unwrap();
        let mut burst = Vec::new();
        for stream in 0..50 {
            burst.extend(frame::headers(2 * stream + 1, &fields("GET"), true));
            burst.extend(frame::reset(2 * stream + 1, 8));
        }
        resets.send(&burst).await.unwrap();
        // Not HTTP/2 at all.
        let mut noise = Peer::silent(address).await.unwrap();
        noise
            .send(b"\x16\x03\x01 certainly no preface \r\n\r\n")
            .await
            .unwrap();
        // A body beyond the limit.
        let large = http::Request::post(PATH)
            .header("3gpp-sbi-target-apiroot", &root)
            .body(sbi::Body::from("x".repeat(300_000)))
            .unwrap();
        assert_eq!(scp.send(large).await.status, StatusCode::PAYLOAD_TOO_LARGE);
        for _ in 0..50 {
            assert_eq!(scp.get(&producer).await.status, StatusCode::OK);
        }
        drop((half, resets, noise));
    });
}

/// A producer that sends what no producer may: the consumer gets a clear problem, others get their answers.
#[test]
fn hostile_producers_harm_nobody() {
    local(async {
        let well = Producer::start(1);
        let hostile = Listener::bind().await.unwrap();
        let address = hostile.addr().unwrap();
        tokio::task::spawn_local(async move {
            loop {
                let Ok(mut peer) = hostile.accept(&[]).await else {
                    return;
                };
                tokio::task::spawn_local(async move {
                    peer.ignore_others();
                    // Each stream gets another kind of rubbish.
                    while let Ok(Some(got)) = peer.next().await {
                        let stream = got.stream;
                        if !got.ends_stream() {
                            continue;
                        }
                        let answer = match stream % 12 {
                            1 => frame::status(stream, 99, true),
                            3 => frame::reset(stream, 2),
                            5 => [
                                frame::status(stream, 200, false),
                                frame::data(stream, b"half", false),
                                frame::reset(stream, 8),
                            ]
                            .concat(),
                            // Neither has a body (RFC 9110 §15.3.5, §15.4.5).
                            7 | 9 => [
                                frame::status(stream, if stream % 12 == 7 { 204 } else { 304 }, false),
                                frame::data(stream, b"x", true),
                            ]
                            .concat(),
                            _ => frame::data(stream, b"no headers", true),
                        };
                        if peer.send(&answer).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        let scp = knowing(&[&well], |config| {
            config.policies = vec![routing::policy::ServicePolicy {
                response_timeout_ms: 500,
                total_timeout_ms: 1_000,
                ..Default::default()
            }];
        });
        let root = format!("http://{address}");
        for _ in 0..12 {
            let got = scp
                .ask(Method::GET, PATH, &[("3gpp-sbi-target-apiroot", &root)])
                .await;
            assert!(got.status.is_server_error(), "{got:?}");
            assert!(!got.cause().is_empty(), "{got:?}");
            assert_eq!(scp.get(&well).await.status, StatusCode::OK);
        }
    });
}

#[test]
fn a_producer_with_a_huge_answer_is_cut_off() {
    local(async {
        let (huge, well) = (Producer::start(1), Producer::start(2));
        huge.answers(|_| sbi::Response::ok("x".repeat(3_000_000)));
        let scp = start(|config| config.client.max_body = settings::ByteSize::kib(1_024));
        let got = scp.get(&huge).await;
        assert!(got.status.is_server_error(), "{}", got.status);
        assert_eq!(scp.get(&well).await.status, StatusCode::OK);
    });
}

#[test]
fn ten_thousand_mutations_of_headers_are_answered() {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};
    local(async {
        let producer = Producer::start(1);
        let scp = knowing(&[&producer], |_| {});
        let mut random = SmallRng::seed_from_u64(7);
        let templates = [
            ("3gpp-sbi-target-apiroot", producer.root()),
            (
                "3gpp-sbi-routing-binding",
                format!("bl=nf-instance; nfinst={}", producer.id),
            ),
            ("3gpp-sbi-discovery-target-nf-type", "UDM".to_owned()),
            ("3gpp-sbi-max-rsp-time", "900".to_owned()),
            ("3gpp-sbi-max-forward-hops", "5; nodetype=scp".to_owned()),
            ("3gpp-sbi-message-priority", "12".to_owned()),
            ("via", "2.0 SCP-other".to_owned()),
        ];
        for round in 0..200 {
            let mut requests = Vec::new();
            for _ in 0..50 {
                let mut request = http::Request::get(PATH);
                for (name, value) in &templates {
                    if random.random_bool(0.4) {
                        continue;
                    }
                    let mut bytes = value.clone().into_bytes();
                    if random.random_bool(0.3) {
                        let at = random.random_range(0..bytes.len());
                        bytes[at] = random.random_range(0x20..0x7f);
                    }
                    // An address of another host would be connected to.
                    if *name == "3gpp-sbi-target-apiroot" && !bytes.starts_with(b"http://127.0.0.1:") {
                        bytes = b"http://127.0.0.1:1".to_vec();
                    }
                    request = request.header(*name, bytes);
                }
                requests.push(scp.send(request.body(sbi::Body::empty()).unwrap()));
            }
            for got in futures_util::future::join_all(requests).await {
                assert_ne!(got.status, StatusCode::INTERNAL_SERVER_ERROR, "{round}: {got:?}");
                if !got.status.is_success() {
                    assert!(got.json["status"].is_number(), "{got:?}");
                }
            }
        }
    });
}
