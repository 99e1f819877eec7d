//! Our client at a server of others: Node.js, which is nghttp2. It pads its frames, changes its windows while a body is
//! on its way, and answers with whatever HTTP/2 permits.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use http::{Method, Request, StatusCode};
use sbi::client::{Client, ClientConfig, Origin, Processed, SendError, SendErrorKind, SendOptions};
use sbi::{Body, Response};

use crate::support::{client, local};

/// The server; it ends with its standard input.
struct Node {
    child: Child,
    origin: Origin,
}

impl Node {
    /// `None` where Node.js is not installed.
    fn start() -> Option<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/peers/server.js");
        let mut command = Command::new("node");
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                testpeer::skip::missing("node");
                return None;
            }
            Err(error) => panic!("cannot start {command:?}: {error}"),
        };
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut port)
            .unwrap();
        let origin = format!("http://127.0.0.1:{}", port.trim()).parse().unwrap();
        Some(Self { child, origin })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn send(client: &Client, node: &Node, path: &str, body: Vec<u8>) -> Result<Response, SendError> {
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .body(Body::from(body))
        .unwrap();
    let options = SendOptions {
        deadline: Duration::from_secs(60),
        ..SendOptions::default()
    };
    client.send(&node.origin, request, options).await
}

/// What the server calls a pattern.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 % 251) as u8).collect()
}

/// Runs a test with a server and a client of one connection.
fn with_node(test: impl AsyncFnOnce(&Node, &Client)) {
    local(async {
        let Some(node) = Node::start() else { return };
        let client = client(ClientConfig {
            connections_per_origin: 1,
            ..ClientConfig::default()
        });
        test(&node, &client).await;
    });
}

#[test]
fn large_bodies_pass_while_windows_shrink_and_grow() {
    with_node(async |node, client| {
        let sent = pattern(400_000);
        let bodies = (0..3).map(|_| send(client, node, "/echo", sent.clone()));
        for answer in futures_util::future::join_all(bodies).await {
            let answer = answer.unwrap();
            assert_eq!(answer.headers().get("x-changes").unwrap().to_str().unwrap(), "6");
            assert_eq!(answer.into_body().into_bytes(), sent);
        }
        let large = (0..4).map(|_| send(client, node, "/large", Vec::new()));
        for answer in futures_util::future::join_all(large).await {
            assert_eq!(answer.unwrap().into_body().into_bytes(), pattern(3_000_000));
        }
    });
}

#[test]
fn trailers_interim_answers_and_long_heads_are_read() {
    with_node(async |node, client| {
        for (path, status, body) in [
            ("/trailers", StatusCode::OK, "with trailers"),
            ("/interim", StatusCode::CREATED, "final"),
            ("/head-only", StatusCode::NO_CONTENT, ""),
            ("/nowhere", StatusCode::NOT_FOUND, ""),
            ("/long-head", StatusCode::OK, "long"),
        ] {
            let answer = send(client, node, path, Vec::new()).await.unwrap();
            assert_eq!(answer.status(), status, "{path}");
            if path == "/long-head" {
                let last = answer.headers().get("x-long-19").unwrap();
                assert_eq!(last.to_str().unwrap(), "v".repeat(2_000) + "19");
            }
            assert_eq!(answer.into_body().into_bytes(), body, "{path}");
        }
    });
}

#[test]
fn resets_are_reported_and_harm_no_other_request() {
    with_node(async |node, client| {
        let (refused, reset, echo) = futures_util::join!(
            send(client, node, "/refuse", Vec::new()),
            send(client, node, "/reset", Vec::new()),
            send(client, node, "/echo", pattern(150_000)),
        );
        let refused = refused.unwrap_err();
        assert_eq!(
            (refused.kind, refused.processed),
            (SendErrorKind::Reset(7), Processed::No)
        );
        let reset = reset.unwrap_err();
        assert_eq!(
            (reset.kind, reset.processed),
            (SendErrorKind::Reset(2), Processed::Maybe)
        );
        assert_eq!(echo.unwrap().into_body().into_bytes(), pattern(150_000));
    });
}

#[test]
fn a_goodbye_lets_what_is_in_progress_end_and_the_next_request_connects_again() {
    with_node(async |node, client| {
        for _ in 0..3 {
            let last = send(client, node, "/goaway", Vec::new()).await.unwrap();
            assert_eq!(last.into_body().into_bytes(), "the last one");
            let next = send(client, node, "/trailers", Vec::new()).await.unwrap();
            assert_eq!(next.status(), StatusCode::OK);
        }
    });
}
