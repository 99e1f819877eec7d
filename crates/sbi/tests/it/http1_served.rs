//! HTTP/1.1 beside HTTP/2, where a service has it.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use sbi::server::{ServerConfig, StatsSnapshot};
use sbi::{Body, Request, Response};
use settings::{ByteSize, Period};
use tls::authority::Authority;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::foreign::{run, text};
use crate::support::{Bystander, Running, local, start_http1};

/// A client that writes what a test says.
struct Raw {
    socket: TcpStream,
    came: Vec<u8>,
}

impl Raw {
    async fn of(addr: SocketAddr) -> Self {
        let socket = TcpStream::connect(addr).await.unwrap();
        Self {
            socket,
            came: Vec::new(),
        }
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.unwrap();
    }

    /// The next answer: its status, its head and its body.
    async fn answer(&mut self) -> (u16, String, String) {
        loop {
            let text = String::from_utf8_lossy(&self.came).into_owned();
            if let Some((head, rest)) = text.split_once("\r\n\r\n") {
                let head = head.to_ascii_lowercase();
                let length = head.split_once("content-length: ").map_or(0, |(_, rest)| {
                    rest.lines().next().unwrap().parse::<usize>().unwrap()
                });
                if rest.len() >= length {
                    self.came.drain(..head.len() + 4 + length);
                    let status = head[9..12].parse().unwrap();
                    return (status, head, rest[..length].to_owned());
                }
            }
            assert!(self.more().await > 0, "the connection has ended: {text}");
        }
    }

    /// Waits for the end of the connection.
    async fn ends(&mut self) {
        while self.more().await > 0 {}
    }

    async fn more(&mut self) -> usize {
        let mut bytes = [0; 4096];
        let count = self.socket.read(&mut bytes).await.unwrap_or(0);
        self.came.extend_from_slice(&bytes[..count]);
        count
    }
}

/// Answers with method, target, authority and body.
async fn echo(request: Request) -> Response {
    let (method, target) = (request.method().clone(), request.target().to_owned());
    let authority = request.head.authority().to_owned();
    let mut body = Body::from(format!("{method} {target} {authority} "));
    request
        .body
        .segments()
        .iter()
        .for_each(|part| body.push(part.clone()));
    Response::ok(body)
}

fn served(config: ServerConfig) -> Running {
    start_http1(config, None, |request: Request| async move {
        match request.target() {
            "/" => Response::ok(request.body),
            _ => echo(request).await,
        }
    })
}

/// Waits until the statistics are so.
async fn until(server: &Running, is: impl Fn(&StatsSnapshot) -> bool) {
    while !is(&server.stats.snapshot()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn requests_are_served_one_after_the_other() {
    local(async {
        let server = served(ServerConfig::default());
        let mut bystander = Bystander::of(server.addr).await;
        let mut client = Raw::of(server.addr).await;
        for (request, expected) in [
            (&b"GET /a?b=c HTTP/1.1\r\nHost: x:1\r\n\r\n"[..], "GET /a?b=c x:1 "),
            (b"POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc", "POST /a x abc"),
            (
                b"PUT /a HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
                "PUT /a x abc",
            ),
            (b"GET http://y/a HTTP/1.1\r\nhost: y\r\n\r\n", "GET /a y "),
        ] {
            client.send(request).await;
            let (status, head, body) = client.answer().await;
            assert_eq!((status, &*body), (200, expected), "{head}");
            assert_eq!(head.matches("\r\ndate: ").count(), 1, "{head}");
        }
        // Two at once, and a body that waits to be asked for.
        client
            .send(b"GET /1 HTTP/1.1\r\nhost: x\r\n\r\nGET /2 HTTP/1.1\r\nhost: x\r\n\r\n")
            .await;
        assert_eq!(client.answer().await.2, "GET /1 x ");
        assert_eq!(client.answer().await.2, "GET /2 x ");
        client
            .send(b"POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\nexpect: 100-continue\r\n\r\n")
            .await;
        assert_eq!(client.answer().await.0, 100);
        client.send(b"z").await;
        assert_eq!(client.answer().await.2, "POST /a x z");
        client
            .send(b"GET /a HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .await;
        assert_eq!(client.answer().await.0, 200);
        client.ends().await;
        let mut old = Raw::of(server.addr).await;
        old.send(b"GET /a HTTP/1.0\r\n\r\n").await;
        assert_eq!(old.answer().await.2, "GET /a  ");
        old.ends().await;
        bystander.is_served().await;
        let stats = server.stats.snapshot();
        assert_eq!((stats.connections_http1, stats.handshakes_failed), (0, 0));
        assert_eq!(stats.requests, 10);
    });
}

#[test]
fn a_large_answer_arrives_whole() {
    local(async {
        let server = start_http1(ServerConfig::default(), None, async |_| {
            let part = |byte| vec![byte; 700_000].into();
            Response::ok([part(b'a'), part(b'b')].into_iter().collect::<Body>())
        });
        let mut client = Raw::of(server.addr).await;
        for _ in 0..2 {
            client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
            let (status, _, body) = client.answer().await;
            assert_eq!((status, body.len()), (200, 1_400_000));
            assert_eq!(body.matches('b').count(), 700_000);
        }
        drop(client);
        until(&server, |stats| stats.connections_open == 0).await;
        assert!(server.stats.snapshot().memory_held < 100_000);
    });
}

#[test]
fn what_is_ambiguous_or_beyond_a_limit_is_refused() {
    local(async {
        let server = served(ServerConfig {
            max_body: ByteSize(1_000),
            max_header_list: ByteSize::kib(8),
            max_header_fields: 10,
            max_request_rate: 5,
            ..ServerConfig::default()
        });
        let many = "x: y\r\n".repeat(11);
        let large = format!("x: {}\r\n", "y".repeat(20_000));
        for (expected, request) in [
            (400, "GET / HTTP/1.1\r\n\r\n".to_owned()),
            (400, "GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n".to_owned()),
            (400, "GET http://a/ HTTP/1.1\r\nhost: b\r\n\r\n".to_owned()),
            (400, "GET / HTTP/1.1\r\nhost : a\r\n\r\n".to_owned()),
            (
                413,
                "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1001\r\n\r\n".to_owned(),
            ),
            (
                413,
                format!(
                    "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3e9\r\n{}\r\n0\r\n\r\n",
                    "z".repeat(1_001)
                ),
            ),
            (431, format!("GET / HTTP/1.1\r\nhost: a\r\n{many}\r\n")),
            (431, format!("GET / HTTP/1.1\r\nhost: a\r\n{large}\r\n")),
        ] {
            let mut client = Raw::of(server.addr).await;
            client.send(request.as_bytes()).await;
            assert_eq!(client.answer().await.0, expected, "{request}");
        }
        let mut client = Raw::of(server.addr).await;
        let mut refused = 0;
        // More than five in one of two seconds.
        for _ in 0..11 {
            client.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
            refused += u32::from(client.answer().await.0 == 429);
        }
        let stats = server.stats.snapshot();
        assert_eq!(u64::from(refused), stats.requests_over_rate);
        assert!(refused > 0);
        assert_eq!((stats.requests_ambiguous, stats.bodies_too_large), (3, 2));
        assert_eq!(stats.headers_too_large, 2);
    });
}

#[test]
fn slow_and_idle_clients_are_not_waited_for() {
    local(async {
        let short = Period::from_millis(200);
        let server = served(ServerConfig {
            header_timeout: short,
            body_timeout: short,
            idle_timeout: short,
            ..ServerConfig::default()
        });
        let mut slow = Raw::of(server.addr).await;
        slow.send(b"GET / HTTP/1.1\r\nhost: a\r\n").await;
        slow.ends().await;
        let mut slow = Raw::of(server.addr).await;
        slow.send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\na")
            .await;
        assert_eq!(slow.answer().await.0, 408);
        slow.ends().await;
        let mut idle = Raw::of(server.addr).await;
        idle.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        assert_eq!(idle.answer().await.0, 200);
        idle.ends().await;
        until(&server, |stats| stats.connections_open == 0).await;
        let stats = server.stats.snapshot();
        assert_eq!((stats.connections_slow_headers, stats.bodies_too_slow), (1, 1));
        assert_eq!(stats.connections_idle, 1);
    });
}

#[test]
fn a_request_whose_client_leaves_is_carried_out() {
    local(async {
        let (go, done) = (Rc::new(Notify::new()), Rc::new(Cell::new(0)));
        let (waits, counts) = (go.clone(), done.clone());
        let server = start_http1(ServerConfig::default(), None, move |_| {
            let (go, done) = (waits.clone(), counts.clone());
            async move {
                done.set(done.get() + 1);
                go.notified().await;
                done.set(done.get() + 1);
                Response::default()
            }
        });
        let mut client = Raw::of(server.addr).await;
        client
            .send(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\na")
            .await;
        while done.get() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(client);
        until(&server, |stats| stats.connections_open == 0).await;
        assert_eq!(done.get(), 1);
        go.notify_one();
        while done.get() == 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn a_stop_answers_what_it_has_and_ends_the_others() {
    local(async {
        let go = Rc::new(Notify::new());
        let waits = go.clone();
        let server = start_http1(ServerConfig::default(), None, move |request: Request| {
            let go = waits.clone();
            async move {
                if request.path() == "/later" {
                    go.notified().await;
                }
                Response::ok("b")
            }
        });
        let mut idle = Raw::of(server.addr).await;
        idle.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        assert_eq!(idle.answer().await.0, 200);
        let mut pending = Raw::of(server.addr).await;
        pending.send(b"GET /later HTTP/1.1\r\nhost: a\r\n\r\n").await;
        until(&server, |stats| stats.requests == 2).await;
        server.shutdown.fire();
        idle.ends().await;
        go.notify_one();
        assert_eq!(pending.answer().await.2, "b");
        pending.ends().await;
        server.done.await.unwrap().unwrap();
    });
}

#[test]
fn curl_is_served_as_it_comes() {
    local(async {
        let authority = Authority::new("lab").unwrap();
        let identity = authority.issue(&["localhost"]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let files = authority.write(&identity, directory.path(), "scef").unwrap();
        let opened = sbi::tls::Tls::open(Some(&files), None).unwrap();
        let clear = start_http1(ServerConfig::default(), None, echo);
        let secure = start_http1(ServerConfig::default(), opened.server(), echo);
        let trusted = directory.path().join("authority.crt").display().to_string();
        let [clear, secure] = [("http://127.0.0.1", clear), ("https://localhost", secure)]
            .map(|(root, server)| format!("{root}:{}/x", server.addr.port()));
        for (options, url, version) in [
            (&[][..], &clear, "1.1"),
            (&["--http2-prior-knowledge"], &clear, "2"),
            (&["--http2"], &clear, "1.1"),
            (&["--http1.1"], &secure, "1.1"),
            (&["--http2"], &secure, "2"),
        ] {
            let mut arguments = vec![
                "-s",
                "-w",
                " %{http_code} %{http_version}",
                "--data",
                "z",
                "--ipv4",
            ];
            arguments.extend(["--cacert", &trusted]);
            arguments.extend(options);
            arguments.push(url);
            if let Some(got) = run("curl", &arguments).await {
                let got = text(&got);
                assert!(got.starts_with("POST /x "), "{got}");
                assert!(got.ends_with(&format!(" z 200 {version}")), "{options:?}: {got}");
            }
        }
    });
}
