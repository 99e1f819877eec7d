//! What all connections of a worker hold together, and who is served while others hold too much.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sbi::client::{ClientConfig, Origin, SendErrorKind, SendOptions};
use sbi::server::{ServerConfig, ServerStats, StatsSnapshot};
use sbi::{Body, Request, Response};
use settings::{ByteSize, Period};
use testpeer::http2::frame::{self, kind, setting};
use testpeer::http2::{Listener, Peer};

use crate::support::{Bystander, Running, client, local, start};

const LIMIT: u64 = 8 * 1_024 * 1_024;
/// What a turn may add before the connection that has to end does.
const SLACK: u64 = 2 * 1_024 * 1_024;
const REFUSED_STREAM: u32 = 7;

fn config() -> ServerConfig {
    ServerConfig {
        max_memory: ByteSize(LIMIT),
        body_timeout: Period::from_secs(60),
        answer_timeout: Period::from_secs(60),
        ..ServerConfig::default()
    }
}

/// Follows what is held while a test runs.
struct Watched {
    stats: Arc<ServerStats>,
    most: Rc<Cell<u64>>,
}

impl Watched {
    fn start(stats: &Arc<ServerStats>) -> Self {
        let (stats, most) = (stats.clone(), Rc::new(Cell::new(0)));
        let (seen, highest) = (stats.clone(), most.clone());
        tokio::task::spawn_local(async move {
            loop {
                highest.set(highest.get().max(seen.snapshot().memory_held));
                tokio::time::sleep(Duration::from_micros(500)).await;
            }
        });
        Self { stats, most }
    }

    fn most(&self) -> u64 {
        self.most.get().max(self.stats.snapshot().memory_held)
    }
}

/// Runs hostile peers against a server, a bystander beside them, and lets them go; what was counted.
async fn hostile<F>(server: &Running, script: F) -> StatsSnapshot
where
    F: AsyncFnOnce(&mut Bystander) -> Vec<Peer>,
{
    let watched = Watched::start(&server.stats);
    let mut bystander = Bystander::of(server.addr).await;
    bystander.is_served().await;
    let peers = script(&mut bystander).await;
    bystander.is_served().await;
    assert!(
        watched.most() <= LIMIT + SLACK,
        "{} bytes were held",
        watched.most()
    );
    drop(peers);
    while server.stats.snapshot().connections_open > 1 {
        tokio::task::yield_now().await;
    }
    // Everything was given back.
    while server.stats.snapshot().memory_held > 64 * 1_024 {
        bystander.is_served().await;
    }
    server.stats.snapshot()
}

fn refused_or_ended(stats: &StatsSnapshot) -> u64 {
    stats.requests_refused_memory + stats.connections_greedy
}

async fn echo(request: Request) -> Response {
    match request.path() {
        "/large" => Response::ok(vec![b'x'; 400_000]),
        _ => Response::ok(request.body),
    }
}

#[test]
fn wide_heads_of_requests_without_bodies() {
    local(async {
        let server = start(
            ServerConfig {
                max_unfinished: 4_096,
                ..config()
            },
            echo,
        );
        let stats = hostile(&server, async |bystander| {
            let mut fields = frame::request_fields("POST", "/");
            fields.extend([("x", "y"); 240]);
            let mut peers = Vec::new();
            for _ in 0..4 {
                let mut peer = Peer::client(server.addr).await.unwrap();
                for i in 0..1_000 {
                    if peer
                        .send(&frame::headers(2 * i + 1, &fields, false))
                        .await
                        .is_err()
                    {
                        break;
                    }
                    if i % 100 == 0 {
                        bystander.is_served().await;
                    }
                }
                peers.push(peer);
            }
            peers
        })
        .await;
        // Each of these heads takes more than 27 KB: 300 of 4,000 fill the memory.
        assert!(stats.requests_refused_memory > 3_000, "{stats:?}");
        assert_eq!(stats.connections_greedy, 0, "refusals are enough");
    });
}

#[test]
fn bodies_that_do_not_end() {
    local(async {
        let server = start(config(), echo);
        let stats = hostile(&server, async |bystander| {
            let mut peers = Vec::new();
            for _ in 0..6 {
                let mut peer = Peer::client(server.addr).await.unwrap();
                'connection: for i in 0..4 {
                    let stream = 2 * i + 1;
                    if peer.send(&frame::post(stream, "/")).await.is_err() {
                        break;
                    }
                    for _ in 0..60 {
                        let part = frame::data(stream, &[7; 16_000], false);
                        if peer.send(&part).await.is_err() {
                            break 'connection;
                        }
                    }
                    bystander.is_served().await;
                }
                peers.push(peer);
            }
            peers
        })
        .await;
        assert!(refused_or_ended(&stats) > 0, "{stats:?}");
    });
}

#[test]
fn a_body_is_taken_piece_by_piece_whatever_their_size() {
    local(async {
        let server = start(config(), echo);
        let mut peer = Peer::client(server.addr).await.unwrap();
        peer.send(&frame::post(1, "/")).await.unwrap();
        let mut sent = Vec::new();
        for size in [10, 5_000, 300, 6_000, 1, 4_096, 700, 9_000, 20] {
            let piece: Vec<u8> = (0..size).map(|i| (sent.len() + i) as u8).collect();
            peer.send(&frame::data(1, &piece, false)).await.unwrap();
            sent.extend(piece);
        }
        peer.send(&frame::data(1, b"end", true)).await.unwrap();
        sent.extend(b"end");
        assert_eq!(peer.answer(1).await.unwrap(), (200, sent));
    });
}

#[test]
fn answers_that_are_not_taken() {
    local(async {
        let server = start(config(), echo);
        let stats = hostile(&server, async |bystander| {
            let mut peers = Vec::new();
            for _ in 0..6 {
                let mut peer = Peer::client_with(server.addr, &[(setting::INITIAL_WINDOW_SIZE, 0)])
                    .await
                    .unwrap();
                for i in 0..50 {
                    if peer.send(&frame::get(2 * i + 1, "/large")).await.is_err() {
                        break;
                    }
                }
                bystander.is_served().await;
                peers.push(peer);
            }
            peers
        })
        .await;
        assert!(stats.requests_refused_memory > 200, "{stats:?}");
    });
}

#[test]
fn an_answer_that_many_wait_for_is_held_once() {
    local(async {
        let page = Bytes::from(vec![b'x'; 1_000_000]);
        let server = start(config(), move |request: Request| {
            let page = page.clone();
            async move {
                match request.path() {
                    "/page" => Response::ok(page),
                    _ => Response::ok(request.body),
                }
            }
        });
        let stats = hostile(&server, async |bystander| {
            let mut peers = Vec::new();
            for _ in 0..4 {
                let mut peer = Peer::client_with(server.addr, &[(setting::INITIAL_WINDOW_SIZE, 0)])
                    .await
                    .unwrap();
                for i in 0..30 {
                    peer.send(&frame::get(2 * i + 1, "/page")).await.unwrap();
                    assert_eq!(peer.status(2 * i + 1).await.unwrap(), 200);
                }
                bystander.is_served().await;
                peers.push(peer);
            }
            peers
        })
        .await;
        assert_eq!(refused_or_ended(&stats), 0, "{stats:?}");
    });
}

#[test]
fn answers_of_a_producer_that_are_not_taken() {
    local(async {
        let origin = start(
            ServerConfig {
                max_memory: ByteSize(0),
                ..config()
            },
            |_| async { Response::ok(vec![b'x'; 1_000_000]) },
        );
        let (onward, producer) = (client(ClientConfig::default()), origin.origin());
        let relay = start(config(), move |request: Request| {
            let (client, origin) = (onward.clone(), producer.clone());
            async move {
                if request.path() == "/" {
                    return Response::ok(request.body);
                }
                let answer = client.send(&origin, request, SendOptions::default()).await;
                answer.unwrap_or_else(|_| {
                    let mut answer = Response::ok(Body::empty());
                    *answer.status_mut() = http::StatusCode::GATEWAY_TIMEOUT;
                    answer
                })
            }
        });
        let stats = hostile(&relay, async |bystander| {
            let mut peers = Vec::new();
            for _ in 0..5 {
                let mut peer = Peer::client_with(relay.addr, &[(setting::INITIAL_WINDOW_SIZE, 0)])
                    .await
                    .unwrap();
                for i in 0..20 {
                    if peer.send(&frame::get(2 * i + 1, "/onward")).await.is_err() {
                        break;
                    }
                }
                for _ in 0..10 {
                    bystander.is_served().await;
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                peers.push(peer);
            }
            peers
        })
        .await;
        assert!(refused_or_ended(&stats) > 0, "{stats:?}");
    });
}

#[test]
fn a_producer_whose_answers_do_not_end() {
    local(async {
        let server = start(config(), echo);
        let listener = Listener::bind().await.unwrap();
        let origin: Origin = format!("http://{}", listener.addr().unwrap()).parse().unwrap();
        let client = client(ClientConfig {
            connections_per_origin: 1,
            ..ClientConfig::default()
        });
        let stats = hostile(&server, async |bystander| {
            let senders: Vec<_> = (0..8)
                .map(|_| {
                    let (client, origin) = (client.clone(), origin.clone());
                    tokio::task::spawn_local(async move {
                        let request = http::Request::new(Body::empty());
                        let options = SendOptions {
                            deadline: Duration::from_secs(30),
                            ..SendOptions::default()
                        };
                        client.send(&origin, request, options).await
                    })
                })
                .collect();
            let mut producer = listener.accept(&[]).await.unwrap();
            'answers: for _ in 0..8 {
                let request = producer.wait_for("a request", |f| f.kind == kind::HEADERS).await;
                let Ok(request) = request else { break };
                let stream = request.stream;
                // The client may have closed the connection while the bystander was served.
                if producer.send(&frame::status(stream, 200, false)).await.is_err() {
                    break;
                }
                for _ in 0..120 {
                    let part = frame::data(stream, &[7; 16_000], false);
                    if producer.send(&part).await.is_err() {
                        break 'answers;
                    }
                }
                bystander.is_served().await;
            }
            for sender in senders {
                let error = sender.await.unwrap().unwrap_err();
                let lost = matches!(error.kind, SendErrorKind::Broken(_) | SendErrorKind::Connect(_));
                assert!(lost, "{error}");
            }
            Vec::new()
        })
        .await;
        assert_eq!((stats.peers_greedy, stats.connections_greedy), (1, 0));
    });
}

#[test]
fn more_header_fields_than_allowed_are_answered_431() {
    local(async {
        let server = start(config(), echo);
        let stats = hostile(&server, async |_| {
            let mut peer = Peer::client(server.addr).await.unwrap();
            for (stream, count, status) in [(1, 256, 200), (3, 257, 431), (5, 1_000, 431)] {
                let mut fields = frame::request_fields("GET", "/");
                fields.extend(vec![("x", "y"); count]);
                peer.send(&frame::headers(stream, &fields, true)).await.unwrap();
                assert_eq!(peer.status(stream).await.unwrap(), status);
            }
            vec![peer]
        })
        .await;
        assert_eq!(stats.headers_too_large, 2);
    });
}

#[test]
fn more_unfinished_requests_than_allowed_are_refused() {
    local(async {
        let server = start(
            ServerConfig {
                max_unfinished: 3,
                ..config()
            },
            echo,
        );
        let stats = hostile(&server, async |_| {
            let mut peer = Peer::client(server.addr).await.unwrap();
            for stream in [1, 3, 5, 7] {
                peer.send(&frame::post(stream, "/")).await.unwrap();
            }
            assert_eq!(peer.reset_code(7).await.unwrap(), REFUSED_STREAM);
            peer.send(&frame::data(3, b"three", true)).await.unwrap();
            assert_eq!(peer.answer(3).await.unwrap(), (200, b"three".to_vec()));
            peer.send(&frame::post(9, "/")).await.unwrap();
            peer.send(&frame::data(9, b"nine", true)).await.unwrap();
            assert_eq!(peer.answer(9).await.unwrap(), (200, b"nine".to_vec()));
            vec![peer]
        })
        .await;
        assert_eq!(stats.requests_refused_unfinished, 1);
    });
}
