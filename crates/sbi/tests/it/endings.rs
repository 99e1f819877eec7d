//! How things end: connections, answers, requests given up, and services that panic.

use std::io::Write;
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use rustls_pki_types::ServerName;
use sbi::client::{ClientConfig, Origin, SendErrorKind, SendOptions};
use sbi::server::ServerConfig;
use sbi::{Body, Request, Response};
use settings::Period;
use testpeer::http2::frame::{self, kind, setting};
use testpeer::http2::{Listener, PREFACE, Peer};
use tls::authority::Authority;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::support::{Bystander, client, local, start, start_tls_narrow};

const INTERNAL_ERROR: u32 = 2;
const PATIENCE: Duration = Duration::from_secs(20);

/// What a client says first, with room for `window` bytes of answers.
fn opening(window: u32) -> Vec<u8> {
    let settings = frame::settings(&[
        (setting::HEADER_TABLE_SIZE, 0),
        (setting::INITIAL_WINDOW_SIZE, window),
    ]);
    [PREFACE, &settings, &frame::window(0, window)].concat()
}

#[test]
fn the_last_bytes_of_a_large_answer_reach_a_slow_reader_over_tls() {
    const BODY: usize = 1 << 20;
    local(async {
        let authority = Authority::new("lab").unwrap();
        let server = authority.issue(&["localhost"]).unwrap();
        let material = authority.material(Some(&server), false);
        let server = start_tls_narrow(material.server(tls::HTTP2).unwrap(), |_| async {
            Response::ok(vec![b'x'; BODY])
        });
        // The smaller the buffer of the reader, the more often the last bytes stay inside the server's TLS.
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let stream = socket.connect(server.addr).await.unwrap();
        let tls = authority.material(None, false).client(tls::HTTP2).unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = tokio_rustls::TlsConnector::from(tls)
            .connect(name, stream)
            .await
            .unwrap();
        let request = [opening(16 << 20), frame::get(1, "/")].concat();
        tokio::io::AsyncWriteExt::write_all(&mut stream, &request)
            .await
            .unwrap();
        let (mut came, mut bytes) = (0, vec![0; 16_384]);
        while came < BODY {
            let read = timeout(PATIENCE, stream.read(&mut bytes)).await;
            came += read
                .unwrap_or_else(|_| panic!("the answer stalled after {came} bytes"))
                .unwrap();
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_client_that_ends_its_side_behind_its_request_gets_the_answer() {
    local(async {
        let server = start(ServerConfig::default(), |_| async { Response::ok("here") });
        let mut stream = std::net::TcpStream::connect(server.addr).unwrap();
        stream.write_all(&opening(65_535)).unwrap();
        while server.stats.snapshot().bytes_out == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // Both lie in the socket before the server gets to it.
        stream.write_all(&frame::get(1, "/")).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut stream = TcpStream::from_std(stream).unwrap();
        let mut came = bytes::BytesMut::new();
        while timeout(PATIENCE, stream.read_buf(&mut came))
            .await
            .unwrap()
            .unwrap()
            > 0
        {}
        let frames = std::iter::from_fn(|| frame::Frame::take(&mut came));
        let statuses: Vec<_> = frames.filter_map(|frame| frame.status()).collect();
        assert_eq!(statuses, [200]);
    });
}

async fn panics_on_request(request: Request) -> Response {
    assert!(request.path() != "/panic", "on purpose");
    if request.path() == "/later" {
        tokio::time::sleep(Duration::from_millis(5)).await;
        panic!("on purpose, after a wait");
    }
    Response::ok(request.body)
}

async fn is_reset(peer: &mut Peer, stream: u32, path: &str) {
    peer.send(&frame::get(stream, path)).await.unwrap();
    assert_eq!(peer.reset_code(stream).await.unwrap(), INTERNAL_ERROR);
}

#[test]
fn a_service_that_panics_harms_no_other_request() {
    local(async {
        let server = start(ServerConfig::default(), panics_on_request);
        let mut bystander = Bystander::of(server.addr).await;
        let mut peer = Peer::client(server.addr).await.unwrap();
        is_reset(&mut peer, 1, "/panic").await;
        bystander.is_served().await;
        is_reset(&mut peer, 3, "/later").await;
        peer.send(&frame::get(5, "/")).await.unwrap();
        assert_eq!(peer.answer(5).await.unwrap().0, 200, "the connection lives");
        bystander.is_served().await;
        assert_eq!(server.stats.snapshot().requests_panicked, 2);
    });
}

async fn scripted() -> (Listener, Origin) {
    let listener = Listener::bind().await.unwrap();
    let addr: SocketAddr = listener.addr().unwrap();
    (listener, format!("http://{addr}").parse().unwrap())
}

/// One connection with one stream: a second request waits.
fn narrow() -> ClientConfig {
    ClientConfig {
        connections_per_origin: 1,
        max_streams_per_connection: 1,
        ..ClientConfig::default()
    }
}

fn get() -> http::Request<Body> {
    http::Request::get("/").body(Body::empty()).unwrap()
}

#[test]
fn a_peer_that_floods_is_left_alone_even_while_requests_wait_for_it() {
    local(async {
        let (listener, origin) = scripted().await;
        let client = client(ClientConfig {
            backoff_min: Period::from_secs(60),
            backoff_max: Period::from_secs(60),
            max_control_rate: 10,
            ..narrow()
        });
        let options = SendOptions {
            deadline: PATIENCE,
            ..SendOptions::default()
        };
        let both = futures_util::future::join(
            client.send(&origin, get(), options),
            client.send(&origin, get(), options),
        );
        let script = async {
            let mut peer = listener.accept(&[]).await.unwrap();
            peer.wait_for("a request", |f| f.kind == kind::HEADERS)
                .await
                .unwrap();
            peer.send(&frame::ping(*b"01234567").repeat(1_000)).await.unwrap();
            peer.goodbye().await
        };
        let ((first, second), _) = futures_util::future::join(both, script).await;
        assert!(matches!(first.unwrap_err().kind, SendErrorKind::Broken(_)));
        let second = second.unwrap_err();
        assert!(
            matches!(&second.kind, SendErrorKind::Connect(why) if why.contains("too many control frames")),
            "{second}"
        );
        let stats = client.peers()[0].1.clone();
        assert_eq!((stats.connected, stats.flooded), (1, 1));
    });
}

#[test]
fn the_place_of_a_request_given_up_goes_to_one_that_waits() {
    local(async {
        let (listener, origin) = scripted().await;
        let client = client(ClientConfig {
            abandoned_wait: Period::from_millis(10),
            ..narrow()
        });
        let options = |deadline| SendOptions {
            deadline,
            ..SendOptions::default()
        };
        let first = client.send(&origin, get(), options(Duration::from_millis(100)));
        let second = async {
            // Behind the first one.
            tokio::task::yield_now().await;
            client.send(&origin, get(), options(PATIENCE)).await
        };
        let script = async {
            let mut peer = listener.accept(&[]).await.unwrap();
            peer.wait_for("the first", |f| f.kind == kind::HEADERS)
                .await
                .unwrap();
            let next = peer
                .wait_for("the second", |f| f.kind == kind::HEADERS)
                .await
                .unwrap();
            peer.send(&frame::status(next.stream, 204, true)).await.unwrap();
            peer.settle(Duration::from_millis(20)).await;
        };
        let (first, second, ()) = futures_util::future::join3(first, second, script).await;
        assert_eq!(first.unwrap_err().kind, SendErrorKind::Timeout);
        assert_eq!(second.unwrap().status(), 204);
    });
}
