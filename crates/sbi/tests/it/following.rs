//! Copies of the messages of followed subscribers: at the server's and the client's side.

use std::time::Duration;

use follow::{Direction, Message, Room};
use http::Request;
use sbi::client::{ClientConfig, SendOptions};
use sbi::server::ServerConfig;
use sbi::{Body, Response};

use crate::support::{client, local, start};

const SUPI: &str = "imsi-001010000000001";

/// A room that this thread is in, where the subscriber is followed.
fn room() -> Room {
    let room = Room::new("test");
    room.follow(SUPI, Duration::from_secs(3_600)).unwrap();
    follow::enter(room.clone());
    room
}

fn post(path: &str, body: &'static str) -> Request<Body> {
    Request::post(path).body(body.into()).unwrap()
}

/// Direction and title of each message.
fn shown(messages: &[Message]) -> Vec<(Option<Direction>, &str)> {
    messages
        .iter()
        .map(|one| (one.direction, one.title.as_str()))
        .collect()
}

#[test]
fn a_request_belongs_to_the_subscriber_that_its_answer_names() {
    use Direction::{In, Out};
    local(async {
        let room = room();
        let server = start(ServerConfig::default(), |request| async move {
            Response::ok(match request.path() {
                "/named" => format!("{{\"supi\":\"{SUPI}\"}}"),
                _ => "{\"supi\":\"imsi-001010000000002\"}".to_owned(),
            })
        });
        let client = client(ClientConfig::default());
        for path in ["/other", "/named"] {
            let sent = post(path, "{}");
            let got = client.send(&server.origin(), sent, SendOptions::default()).await;
            assert_eq!(got.unwrap().status(), 200);
        }
        let messages = room.page(0, None).messages;
        let titles = shown(&messages);
        assert_eq!(
            titles,
            [
                (Some(In), "POST /named"),
                (Some(Out), "200"),
                (Some(Out), "POST /named"),
                (Some(In), "200")
            ]
        );
        let [came, answered, sent, got] = &messages[..] else {
            panic!("{titles:?}")
        };
        assert_eq!((came.exchange, sent.exchange), (answered.exchange, got.exchange));
        assert_ne!(came.exchange, sent.exchange);
        // Both ends name the message alike.
        assert_eq!(
            (&came.from, &came.to, came.stream),
            (&sent.from, &sent.to, sent.stream)
        );
        assert_eq!(came.text, "{}");
    });
}

#[test]
fn requests_that_a_followed_one_causes_belong_to_it() {
    local(async {
        let room = room();
        let behind = start(ServerConfig::default(), |_| async { Response::ok("{}") });
        let (origin, inner) = (behind.origin(), client(ClientConfig::default()));
        let server = start(ServerConfig::default(), move |_| {
            let (origin, inner) = (origin.clone(), inner.clone());
            async move {
                let discovery = post("/discovery", "");
                let found = inner.send(&origin, discovery, SendOptions::default()).await;
                Response::ok(found.unwrap().into_body())
            }
        });
        let client = client(ClientConfig::default());
        for path in ["/other".to_owned(), format!("/{SUPI}")] {
            let sent = post(&path, "{}");
            let got = client.send(&server.origin(), sent, SendOptions::default()).await;
            assert_eq!(got.unwrap().status(), 200);
        }
        let messages = room.page(0, None).messages;
        let of = |direction, title: &str| {
            let is = |one: &&Message| one.direction == Some(direction) && one.title == title;
            messages.iter().find(is)
        };
        let came = of(Direction::In, &format!("POST /{SUPI}")).unwrap();
        let caused = of(Direction::Out, "POST /discovery").unwrap();
        assert_eq!((caused.cause, &caused.found_by), (Some(came.exchange), &None));
        // The server behind has no way to see it.
        assert_eq!(of(Direction::In, "POST /discovery"), None);
        assert_eq!(messages.len(), 6, "{:?}", shown(&messages));
    });
}

#[test]
fn a_request_without_an_answer_is_shown_as_lost() {
    local(async {
        let room = room();
        let server = start(ServerConfig::default(), |_| std::future::pending());
        let client = client(ClientConfig {
            max_abandoned: 0,
            ..ClientConfig::default()
        });
        let lost = || {
            let mut all = room.page(0, None).messages.into_iter();
            all.find(|one| one.kind == "lost")
        };
        // On a busy machine the deadline may pass before there is a connection.
        while lost().is_none() {
            let options = SendOptions {
                deadline: Duration::from_millis(10),
                ..SendOptions::default()
            };
            let origin = server.origin();
            let sent = client.send(&origin, post("/", SUPI), options);
            assert!(sent.await.is_err());
        }
        assert!(lost().unwrap().is_failure);
    });
}

#[test]
fn credentials_are_overwritten_in_bodies_that_are_coded() {
    local(async {
        let room = room();
        let body =
            format!("{{\"supi\":\"{SUPI}\",\"ipv4Address\":\"10.45.0.2\",\"access_token\":\"hidden\"}}");
        let packed = sbi::coding::pack(&format!("{body}{}", " ".repeat(4_096)).into()).unwrap();
        let answer = packed.clone();
        let server = start(ServerConfig::default(), move |_| {
            let response =
                Response::ok(answer.clone()).with("content-encoding", sbi::Value::from_static("gzip"));
            async move { response }
        });
        let client = client(ClientConfig::default());
        let send = async |codings: &[&str]| {
            let mut sent = Request::post(format!("/{SUPI}"));
            for coding in codings {
                sent = sent.header("content-encoding", *coding);
            }
            let sent = sent.body(packed.clone().into()).unwrap();
            let got = client.send(&server.origin(), sent, SendOptions::default()).await;
            assert_eq!(got.unwrap().status(), 200);
            let messages = room.page(0, None).messages;
            assert!(room.unfollow(SUPI));
            room.follow(SUPI, Duration::from_secs(3_600)).unwrap();
            messages
        };
        let shown = body.replace("hidden", "***");
        for message in send(&["gzip"]).await {
            assert_eq!(
                (message.text.trim(), message.hex.as_str()),
                (shown.as_str(), ""),
                "{}",
                message.title
            );
        }
        // A body that cannot be decoded is left out.
        for codings in [&["br"][..], &["identity", "gzip"]] {
            for message in send(codings).await.iter().filter(|one| one.kind == "request") {
                assert_eq!((message.text.as_str(), message.hex.as_str()), ("", ""));
            }
        }
    });
}
