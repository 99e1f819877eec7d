//! Requests and responses of every size and order.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use sbi::client::{ClientConfig, Processed, SendErrorKind, SendOptions};
use sbi::server::ServerConfig;
use sbi::{Body, Response};

use crate::support::{client, local, start};

fn post(path: &str, body: impl Into<Body>) -> Request<Body> {
    Request::builder()
        .method(Method::POST)
        .uri(path)
        .body(body.into())
        .unwrap()
}

#[test]
fn bodies_of_any_size_come_back_as_they_went() {
    local(async {
        let server = start(ServerConfig::default(), |request| async {
            Response::ok(request.body)
        });
        let client = client(ClientConfig::default());
        for size in [0, 1, 4_200, 16_384, 16_385, 70_000, 1_000_000] {
            let sent: Vec<u8> = (0..size).map(|i| (i * 31 % 251) as u8).collect();
            let response = client
                .send(
                    &server.origin(),
                    post("/echo", sent.clone()),
                    SendOptions::default(),
                )
                .await
                .unwrap();
            assert_eq!(response.body().to_bytes(), sent, "{size} bytes");
        }
        assert_eq!(server.stats.snapshot().requests, 7);
    });
}

#[test]
fn an_answer_of_many_segments_is_one_body() {
    local(async {
        let segment = Bytes::from(vec![b'x'; 700]);
        let server = start(ServerConfig::default(), move |_| {
            let body: Body = (0..40).map(|_| segment.clone()).collect();
            async { Response::ok(body) }
        });
        let response = client(ClientConfig::default())
            .send(&server.origin(), post("/", ""), SendOptions::default())
            .await;
        let body = response.unwrap().into_body();
        assert_eq!(body.len(), 28_000);
        assert!(body.into_bytes().iter().all(|b| *b == b'x'));
    });
}

#[test]
fn hundreds_at_once_share_few_connections() {
    local(async {
        let server = start(ServerConfig::default(), |request| async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Response::ok(request.body)
        });
        let client = client(ClientConfig {
            connections_per_origin: 2,
            ..ClientConfig::default()
        });
        let origin = server.origin();
        let all = (0..500).map(|i| {
            let (client, origin) = (client.clone(), origin.clone());
            async move {
                let response = client
                    .send(&origin, post("/", format!("{i}")), SendOptions::default())
                    .await;
                assert_eq!(response.unwrap().into_body().into_bytes(), format!("{i}"));
            }
        });
        futures_util::future::join_all(all).await;
        assert!(server.stats.snapshot().connections_accepted <= 2);
    });
}

#[test]
fn user_agent_authority_and_path_arrive() {
    local(async {
        let server = start(ServerConfig::default(), |request| async move {
            let agent = request
                .headers()
                .get("user-agent")
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            Response::ok(format!(
                "{agent} {}://{}{} {}",
                request.head.scheme(),
                request.head.authority(),
                request.target(),
                request.peer.addr.ip()
            ))
        });
        let client = client(ClientConfig {
            user_agent: "NRF-1".into(),
            ..ClientConfig::default()
        });
        let request = Request::get("/a/b?c=%20d").body(Body::empty()).unwrap();
        let response = client
            .send(&server.origin(), request, SendOptions::default())
            .await
            .unwrap();
        let expected = format!("NRF-1 http://{}/a/b?c=%20d 127.0.0.1", server.addr);
        assert_eq!(response.into_body().into_bytes(), expected);
    });
}

#[test]
fn a_body_over_the_limit_is_answered_413_and_the_connection_lives() {
    local(async {
        let config = ServerConfig {
            max_body: settings::ByteSize::kib(10),
            ..ServerConfig::default()
        };
        let server = start(config, |request| async { Response::ok(request.body) });
        let client = client(ClientConfig {
            connections_per_origin: 1,
            ..ClientConfig::default()
        });
        let refused = client
            .send(
                &server.origin(),
                post("/", vec![0; 10_241]),
                SendOptions::default(),
            )
            .await;
        assert_eq!(refused.unwrap().status(), StatusCode::PAYLOAD_TOO_LARGE);
        let fine = client
            .send(
                &server.origin(),
                post("/", vec![0; 10_240]),
                SendOptions::default(),
            )
            .await;
        assert_eq!(fine.unwrap().status(), StatusCode::OK);
        assert_eq!(server.stats.snapshot().connections_accepted, 1);
        assert_eq!(server.stats.snapshot().bodies_too_large, 1);
    });
}

#[test]
fn the_deadline_holds_and_the_late_answer_harms_nobody() {
    local(async {
        let server = start(ServerConfig::default(), |request| async move {
            if request.path() == "/slow" {
                tokio::time::sleep(Duration::from_millis(120)).await;
            }
            Response::ok("done")
        });
        let client = client(ClientConfig {
            connections_per_origin: 1,
            ..ClientConfig::default()
        });
        let hasty = SendOptions {
            deadline: Duration::from_millis(20),
            ..SendOptions::default()
        };
        let error = client
            .send(&server.origin(), post("/slow", ""), hasty)
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind, error.processed),
            (SendErrorKind::Timeout, Processed::Maybe)
        );
        let fine = client
            .send(&server.origin(), post("/", ""), SendOptions::default())
            .await
            .unwrap();
        assert_eq!(fine.into_body().into_bytes(), "done");
        tokio::time::sleep(Duration::from_millis(150)).await;
        let stats = server.stats.snapshot();
        assert_eq!((stats.connections_accepted, stats.requests_abandoned), (1, 0));
    });
}

#[test]
fn nobody_there_is_known_at_once_and_safe_to_try_elsewhere() {
    local(async {
        let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", gone.local_addr().unwrap()).parse().unwrap();
        drop(gone);
        let client = client(ClientConfig::default());
        for _ in 0..3 {
            let error = client
                .send(&origin, post("/", ""), SendOptions::default())
                .await
                .unwrap_err();
            assert!(matches!(error.kind, SendErrorKind::Connect(_)), "{error}");
            assert_eq!(error.processed, Processed::No);
        }
        assert_eq!(
            client.peers()[0].1.connect_failures,
            1,
            "the back-off keeps from trying each time"
        );
    });
}

#[test]
fn a_peer_that_comes_back_is_used_again() {
    local(async {
        let server = start(ServerConfig::default(), |_| async { Response::ok("1") });
        let config = ClientConfig {
            backoff_min: settings::Period::from_millis(1),
            ..ClientConfig::default()
        };
        let client = client(config);
        let origin = server.origin();
        client
            .send(&origin, post("/", ""), SendOptions::default())
            .await
            .unwrap();
        server.shutdown.fire();
        server.done.await.unwrap().unwrap();
        let listener = sbi::server::bind(server.addr).unwrap();
        let (stats, shutdown) = (std::sync::Arc::default(), worker::Shutdown::new());
        let again = Rc::new(crate::support::Function {
            function: |_| async { Response::ok("2") },
            http1: false,
        });
        tokio::task::spawn_local(sbi::server::serve(
            listener,
            again,
            std::sync::Arc::default(),
            None,
            stats,
            shutdown,
        ));
        let tries = Cell::new(0);
        let answer = loop {
            tries.set(tries.get() + 1);
            assert!(tries.get() < 200, "never came back");
            match client.send(&origin, post("/", ""), SendOptions::default()).await {
                Ok(response) => break response.into_body().into_bytes(),
                Err(error) => assert_eq!(error.processed, Processed::No, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        };
        assert_eq!(answer, "2");
    });
}

#[test]
fn a_stopping_server_finishes_what_it_began() {
    local(async {
        let server = start(ServerConfig::default(), |_| async {
            tokio::time::sleep(Duration::from_millis(60)).await;
            Response::ok("finished")
        });
        let (client, origin) = (client(ClientConfig::default()), server.origin());
        let pending = tokio::task::spawn_local(async move {
            client.send(&origin, post("/", ""), SendOptions::default()).await
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        server.shutdown.fire();
        assert_eq!(
            pending.await.unwrap().unwrap().into_body().into_bytes(),
            "finished"
        );
        server.done.await.unwrap().unwrap();
    });
}
