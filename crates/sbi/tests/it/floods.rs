//! Peers that send more frames than they have reason to: as clients of a server, and as servers of a client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sbi::Body;
use sbi::Response;
use sbi::client::{Client, ClientConfig, Origin, SendErrorKind, SendOptions};
use sbi::server::{ServerConfig, StatsSnapshot};
use settings::Period;
use testpeer::http2::frame::{self, flag, kind};
use testpeer::http2::{Listener, Peer};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::support::{client, local, start};

const ENHANCE_YOUR_CALM: u32 = 11;

/// Counts log lines of the default level and above.
#[derive(Clone, Default)]
struct Lines(Arc<AtomicU64>);

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// What a test logged, in lines.
fn lines_of(test: impl FnOnce()) -> u64 {
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), test);
    lines.0.load(Ordering::Relaxed)
}

/// Sends `flood` again and again to a server until it closes the connection; a bystander is served.
fn flood_of_a_client(flood: &[u8]) -> StatsSnapshot {
    local(async {
        let server = start(ServerConfig::default(), |_| async { Response::ok(Body::empty()) });
        let mut bystander = Peer::client(server.addr).await.unwrap();
        let mut peer = Peer::client(server.addr).await.unwrap();
        // As a client that asked for something, so that there is a stream to speak of.
        peer.send(&frame::get(1, "/")).await.unwrap();
        peer.status(1).await.unwrap();
        let many = flood.repeat(100);
        for round in 0..200 {
            if peer.send(&many).await.is_err() {
                break;
            }
            if round == 0 {
                bystander.send(&frame::get(1, "/")).await.unwrap();
                assert_eq!(bystander.status(1).await.unwrap(), 200);
            }
        }
        assert_eq!(peer.goodbye().await, Some(ENHANCE_YOUR_CALM));
        server.stats.snapshot()
    })
}

fn pong() -> Vec<u8> {
    frame::raw(kind::PING, flag::ACK, 0, &[7; 8])
}

#[test]
fn answers_to_no_ping_end_the_connection_and_are_not_logged() {
    let lines = lines_of(|| assert_eq!(flood_of_a_client(&pong()).connections_flooding, 1));
    assert_eq!(lines, 0);
}

#[test]
fn answers_to_no_ping_below_the_limit_are_not_logged() {
    let lines = lines_of(|| {
        local(async {
            let server = start(ServerConfig::default(), |_| async { Response::ok(Body::empty()) });
            let mut peer = Peer::client(server.addr).await.unwrap();
            peer.send(&pong().repeat(50)).await.unwrap();
            peer.send(&frame::get(1, "/")).await.unwrap();
            assert_eq!(peer.status(1).await.unwrap(), 200);
        });
    });
    assert_eq!(lines, 0);
}

#[test]
fn updates_of_windows_without_reason_end_the_connection() {
    for stream in [0, 1] {
        let stats = flood_of_a_client(&frame::window(stream, 1));
        assert_eq!(stats.connections_flooding, 1);
    }
    assert_eq!(flood_of_a_client(&frame::goaway(0, 0)).connections_flooding, 1);
}

#[test]
fn a_peer_may_update_its_windows_for_every_small_piece() {
    local(async {
        let config = ServerConfig {
            max_window_update_rate: 1,
            ..ServerConfig::default()
        };
        let server = start(config, |_| async { Response::ok(vec![7; 60_000]) });
        let mut peer = Peer::client(server.addr).await.unwrap();
        for stream in (1..41).step_by(2) {
            peer.send(&frame::get(stream, "/")).await.unwrap();
            let mut taken = 0;
            while taken < 60_000 {
                let data = peer.wait_for("DATA", |f| f.kind == kind::DATA).await.unwrap();
                taken += data.payload.len();
                for piece in data.payload.chunks(2_048) {
                    for window in [0, stream] {
                        let update = frame::window(window, piece.len() as u32);
                        peer.send(&update).await.unwrap();
                    }
                }
            }
        }
        assert_eq!(server.stats.snapshot().connections_flooding, 0);
    });
}

fn get() -> http::Request<Body> {
    let mut request = http::Request::new(Body::empty());
    *request.uri_mut() = http::Uri::from_static("/");
    request
}

async fn scripted() -> (Listener, Origin) {
    let listener = Listener::bind().await.unwrap();
    let origin = format!("http://{}", listener.addr().unwrap()).parse().unwrap();
    (listener, origin)
}

/// With a pause far longer than a test after a flood.
fn patient() -> ClientConfig {
    ClientConfig {
        connections_per_origin: 1,
        backoff_min: Period::from_secs(60),
        backoff_max: Period::from_secs(60),
        ..ClientConfig::default()
    }
}

/// A producer whose answer is an endless repetition of `flood`; the code of the client's goodbye.
async fn flood_of_a_server(
    client: &Client,
    listener: &Listener,
    origin: &Origin,
    flood: &[u8],
) -> Option<u32> {
    let asked = tokio::task::spawn_local({
        let (client, origin) = (client.clone(), origin.clone());
        async move { client.send(&origin, get(), SendOptions::default()).await }
    });
    let mut peer = listener.accept(&[]).await.unwrap();
    peer.wait_for("a request", |f| f.kind == kind::HEADERS)
        .await
        .unwrap();
    let many = flood.repeat(100);
    for _ in 0..200 {
        if peer.send(&many).await.is_err() {
            break;
        }
    }
    let code = peer.goodbye().await;
    let error = asked.await.unwrap().unwrap_err();
    let lost = matches!(error.kind, SendErrorKind::Broken(_) | SendErrorKind::Reset(_));
    assert!(lost, "{error}");
    code
}

/// Whether another producer is served while the flood lasts.
fn flooded_by(flood: &[u8]) -> (Option<u32>, u64) {
    local(async {
        let honest: SocketAddr = start(ServerConfig::default(), |_| async { Response::ok("hello") }).addr;
        let honest: Origin = format!("http://{honest}").parse().unwrap();
        let (listener, origin) = scripted().await;
        let client = client(patient());
        let beside = tokio::task::spawn_local({
            let client = client.clone();
            async move {
                for _ in 0..20 {
                    let answer = client.send(&honest, get(), SendOptions::default()).await.unwrap();
                    assert_eq!(answer.body().to_bytes(), "hello");
                }
            }
        });
        let code = flood_of_a_server(&client, &listener, &origin, flood).await;
        beside.await.unwrap();
        // The next request does not connect: the peer has to be calm for a while first.
        let error = client
            .send(&origin, get(), SendOptions::default())
            .await
            .unwrap_err();
        let peers = client.peers();
        let stats = &peers.iter().find(|(o, _)| *o == origin).unwrap().1;
        if stats.flooded > 0 {
            assert!(matches!(error.kind, SendErrorKind::Connect(_)), "{error}");
            assert_eq!(stats.connected, 1);
        }
        (code, stats.flooded)
    })
}

#[test]
fn a_producer_that_floods_is_left_and_not_connected_to_at_once() {
    let informational = frame::headers(1, &[(":status", "103")], false);
    for (what, flood) in [
        ("WINDOW_UPDATE", frame::window(0, 1)),
        ("WINDOW_UPDATE of a stream", frame::window(1, 1)),
        ("unknown frames", frame::raw(99, 0, 0, b"?")),
        ("PING", frame::ping([1; 8])),
        ("answers to no PING", pong()),
        ("SETTINGS", frame::settings(&[])),
        ("PRIORITY", frame::raw(kind::PRIORITY, 0, 1, &[0, 0, 0, 0, 9])),
        ("GOAWAY", frame::goaway(1, 0)),
        ("informational answers", informational),
    ] {
        let lines = lines_of(|| {
            assert_eq!(flooded_by(&flood), (Some(ENHANCE_YOUR_CALM), 1), "{what}");
        });
        assert!(lines <= 1, "{what}: {lines} lines");
    }
}

#[test]
fn resets_beyond_the_requests_are_a_flood() {
    local(async {
        let (listener, origin) = scripted().await;
        let client = client(patient());
        // Every one of many requests may be refused, at any rate.
        let senders: Vec<_> = (0..400)
            .map(|_| {
                let (client, origin) = (client.clone(), origin.clone());
                tokio::task::spawn_local(
                    async move { client.send(&origin, get(), SendOptions::default()).await },
                )
            })
            .collect();
        let mut peer = listener.accept(&[]).await.unwrap();
        for _ in 0..400 {
            let request = peer.wait_for("a request", |f| f.kind == kind::HEADERS).await;
            peer.send(&frame::reset(request.unwrap().stream, 7))
                .await
                .unwrap();
        }
        for sender in senders {
            let error = sender.await.unwrap().unwrap_err();
            assert_eq!(error.kind, SendErrorKind::Reset(7));
        }
        assert_eq!(client.peers()[0].1.flooded, 0);
        for _ in 0..200 {
            if peer.send(&frame::reset(1, 7).repeat(100)).await.is_err() {
                break;
            }
        }
        assert_eq!(peer.goodbye().await, Some(ENHANCE_YOUR_CALM));
        assert_eq!(client.peers()[0].1.flooded, 1);
    });
}

#[test]
fn what_the_engine_forbids_a_producer_ends_its_connection() {
    let empty = [
        frame::status(1, 200, false),
        frame::data(1, b"", false).repeat(200),
    ]
    .concat();
    let pushed = frame::raw(5, flag::END_HEADERS, 1, &[0, 0, 0, 2, 0x82, 0x84, 0x86]);
    for flood in [empty, pushed, frame::raw(kind::SETTINGS, flag::ACK, 0, &[])] {
        assert!(flooded_by(&flood).0.is_some_and(|code| code != 0));
    }
}
