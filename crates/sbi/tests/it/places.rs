//! Who has a place on a worker, and who makes place for a newcomer.

use sbi::server::ServerConfig;
use sbi::{Request, Response};
use testpeer::http2::Peer;
use testpeer::http2::frame::{self, kind};

use crate::support::{Running, local, start};

async fn hello(_: Request) -> Response {
    Response::ok("hello")
}

/// A connection that has asked for something and was answered.
async fn idle(server: &Running) -> Peer {
    let mut peer = Peer::client(server.addr).await.unwrap();
    peer.send(&frame::get(1, "/")).await.unwrap();
    assert_eq!(peer.answer(1).await.unwrap().0, 200);
    peer
}

/// A connection with a request whose body has not come.
async fn busy(server: &Running) -> Peer {
    let before = server.stats.snapshot().requests;
    let mut peer = Peer::client(server.addr).await.unwrap();
    peer.send(&frame::post(1, "/")).await.unwrap();
    while server.stats.snapshot().requests == before {
        tokio::task::yield_now().await;
    }
    peer
}

#[test]
fn more_connections_than_allowed_are_closed_at_once() {
    local(async {
        let config = ServerConfig {
            max_connections: 2,
            ..ServerConfig::default()
        };
        let server = start(config, hello);
        let mut first = busy(&server).await;
        let _second = busy(&server).await;
        let mut third = Peer::silent(server.addr).await.unwrap();
        assert_eq!(third.goodbye().await, None);
        first.send(&frame::data(1, b"", true)).await.unwrap();
        assert_eq!(first.answer(1).await.unwrap().0, 200);
        assert_eq!(server.stats.snapshot().connections_refused, 1);
    });
}

#[test]
fn idle_connections_make_place_for_newcomers() {
    local(async {
        let config = ServerConfig {
            max_connections: 4,
            ..ServerConfig::default()
        };
        let server = start(config, hello);
        let mut busy = busy(&server).await;
        let (mut oldest, mut second, mut third) =
            (idle(&server).await, idle(&server).await, idle(&server).await);
        // Used again, so the second has been idle for longer.
        oldest.send(&frame::get(3, "/")).await.unwrap();
        assert_eq!(oldest.answer(3).await.unwrap().0, 200);
        let _newcomers = (idle(&server).await, idle(&server).await);
        for displaced in [&mut second, &mut third] {
            let goodbye = displaced
                .wait_for("GOAWAY", |f| f.kind == kind::GOAWAY)
                .await
                .unwrap();
            // The server has not processed what the client sends now, so that it is safe to repeat.
            assert_eq!((goodbye.code(), goodbye.last_stream()), (Some(0), Some(1)));
        }
        oldest.send(&frame::get(5, "/")).await.unwrap();
        assert_eq!(oldest.answer(5).await.unwrap().0, 200);
        busy.send(&frame::data(1, b"", true)).await.unwrap();
        assert_eq!(busy.answer(1).await.unwrap().0, 200);
        let stats = server.stats.snapshot();
        assert_eq!((stats.connections_displaced, stats.connections_refused), (2, 0));
    });
}

#[test]
fn an_address_has_a_limit_of_its_own() {
    local(async {
        let config = ServerConfig {
            max_connections_per_address: 2,
            ..ServerConfig::default()
        };
        let server = start(config, hello);
        let (mut first, second) = (idle(&server).await, idle(&server).await);
        let mut third = Peer::silent(server.addr).await.unwrap();
        assert_eq!(third.goodbye().await, None);
        first.send(&frame::get(3, "/")).await.unwrap();
        assert_eq!(first.answer(3).await.unwrap().0, 200);
        assert_eq!(server.stats.snapshot().connections_refused_address, 1);
        drop(second);
        while server.stats.snapshot().connections_open > 1 {
            tokio::task::yield_now().await;
        }
        idle(&server).await;
    });
}

#[test]
fn connections_that_say_nothing_make_place_for_those_that_do() {
    local(async {
        let config = ServerConfig {
            max_half_open: 3,
            ..ServerConfig::default()
        };
        let server = start(config, hello);
        let mut silent = Vec::new();
        for _ in 0..20 {
            silent.push(Peer::silent(server.addr).await.unwrap());
        }
        let mut honest = idle(&server).await;
        for peer in &mut silent[..15] {
            assert_eq!(peer.goodbye().await, None);
        }
        honest.send(&frame::get(3, "/")).await.unwrap();
        assert_eq!(honest.answer(3).await.unwrap().0, 200);
        assert_eq!(server.stats.snapshot().handshakes_displaced, 18);
    });
}

#[test]
fn neither_connections_nor_streams_run_out() {
    local(async {
        let server = start(ServerConfig::default(), hello);
        let mut others = Vec::new();
        for _ in 0..200 {
            others.push(idle(&server).await);
        }
        // More requests than 16 bits count, on one connection.
        let mut peer = Peer::client(server.addr).await.unwrap();
        for batch in 0..66 {
            let streams = (0..1_000).map(|i| 2 * (1_000 * batch + i) + 1);
            let requests: Vec<u8> = streams.flat_map(|stream| frame::get(stream, "/")).collect();
            peer.send(&requests).await.unwrap();
            let (mut answered, mut bytes) = (0, 0);
            while answered < 1_000 {
                let data = peer.wait_for("DATA", |f| f.kind == kind::DATA).await.unwrap();
                bytes += data.payload.len() as u32;
                answered += u32::from(data.ends_stream());
            }
            peer.send(&frame::window(0, bytes)).await.unwrap();
        }
        assert_eq!(server.stats.snapshot().requests, 66_200);
        for mut peer in others {
            peer.send(&frame::get(3, "/")).await.unwrap();
            assert_eq!(peer.answer(3).await.unwrap().0, 200);
        }
    });
}
