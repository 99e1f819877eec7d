//! Every limit of a server, passed on purpose; what others get meanwhile is what they always get.

use std::net::SocketAddr;
use std::time::Duration;

use sbi::server::{ServerConfig, StatsSnapshot};
use sbi::{Body, Request, Response};
use settings::{ByteSize, Period};
use testpeer::http2::frame::{self, flag, kind, setting};
use testpeer::http2::{Frame, Peer};

use crate::support::{Bystander, Running, local, start};

const ENHANCE_YOUR_CALM: u32 = 11;
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;

async fn echo(request: Request) -> Response {
    match request.path() {
        "/slow" => tokio::time::sleep(Duration::from_millis(300)).await,
        "/sink" => return Response::ok(Body::empty()),
        "/large" => return Response::ok(vec![b'x'; 100_000]),
        _ => {}
    }
    Response::ok(request.body)
}

/// Runs a hostile peer against a server with this configuration, a bystander beside it.
fn hostile<F>(config: ServerConfig, script: F) -> StatsSnapshot
where
    F: AsyncFnOnce(SocketAddr),
{
    local(async {
        let Running { addr, stats, .. } = start(config, echo);
        let mut bystander = Bystander::of(addr).await;
        bystander.is_served().await;
        script(addr).await;
        bystander.is_served().await;
        stats.snapshot()
    })
}

fn detail(body: &[u8]) -> String {
    let problem: serde_json::Value = serde_json::from_slice(body).unwrap();
    problem["detail"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn more_streams_than_allowed_are_refused_and_the_others_answered() {
    let config = ServerConfig {
        max_concurrent_streams: 3,
        ..ServerConfig::default()
    };
    let stats = hostile(config, async |addr| {
        let mut peer = Peer::client(addr).await.unwrap();
        for stream in [1, 3, 5, 7] {
            peer.send(&frame::get(stream, "/slow")).await.unwrap();
        }
        assert_eq!(peer.reset_code(7).await.unwrap(), REFUSED_STREAM);
        for _ in [1, 3, 5] {
            let head = peer.wait_for("an answer", |f| f.kind == kind::HEADERS).await;
            assert_eq!(head.unwrap().status(), Some(200));
        }
    });
    assert_eq!(stats.streams_refused, 1);
}

#[test]
fn headers_over_the_limit_are_answered_431() {
    let config = ServerConfig {
        max_header_list: ByteSize::kib(4),
        ..ServerConfig::default()
    };
    let stats = hostile(config, async |addr| {
        let mut peer = Peer::client(addr).await.unwrap();
        let long = "x".repeat(5_000);
        let mut fields = frame::request_fields("GET", "/");
        fields.push(("x-long", &long));
        peer.send(&frame::headers(1, &fields, true)).await.unwrap();
        let (status, body) = peer.answer(1).await.unwrap();
        assert_eq!(status, 431);
        assert!(detail(&body).contains("4KiB"), "{}", detail(&body));
        let longer = "x".repeat(12_000);
        let mut fields = frame::request_fields("GET", "/");
        fields.push(("x-longer", &longer));
        peer.send(&frame::headers(3, &fields, true)).await.unwrap();
        assert_eq!(peer.status(3).await.unwrap(), 431);
        peer.send(&frame::get(5, "/")).await.unwrap();
        assert_eq!(peer.status(5).await.unwrap(), 200, "the connection goes on");
    });
    assert_eq!((stats.headers_too_large, stats.streams_refused), (2, 0));
}

#[test]
fn a_header_block_without_end_is_cut_off() {
    let stats = hostile(ServerConfig::default(), async |addr| {
        let mut peer = Peer::client(addr).await.unwrap();
        let block = frame::block(&frame::request_fields("GET", "/"));
        peer.send(&frame::raw(kind::HEADERS, flag::END_STREAM, 1, &block))
            .await
            .unwrap();
        for _ in 0..10_000 {
            let more = frame::raw(kind::CONTINUATION, 0, 1, &frame::block(&[("x", "y")]));
            if peer.send(&more).await.is_err() {
                break;
            }
        }
        assert_eq!(peer.goodbye().await, Some(ENHANCE_YOUR_CALM));
    });
    assert_eq!(stats.connections_faulty, 1);
}

#[test]
fn headers_that_take_too_long_end_the_connection() {
    let config = ServerConfig {
        header_timeout: Period::from_millis(50),
        ..ServerConfig::default()
    };
    let stats = hostile(config, async |addr| {
        let mut peer = Peer::client(addr).await.unwrap();
        let block = frame::block(&frame::request_fields("GET", "/"));
        peer.send(&frame::raw(kind::HEADERS, flag::END_STREAM, 1, &block))
            .await
            .unwrap();
        assert_eq!(peer.goodbye().await, Some(ENHANCE_YOUR_CALM));
        let mut peer = Peer::client(addr).await.unwrap();
        peer.send(&frame::get(1, "/")[..12]).await.unwrap();
        assert_eq!(peer.goodbye().await, Some(ENHANCE_YOUR_CALM));
    });
    assert_eq!(stats.connections_slow_headers, 2);
}

#[test]
fn a_handshake_that_does_not_come_ends_the_connection() {
    let config = ServerConfig {
        handshake_timeout: Period::from_millis(50),
        ..ServerConfig::default()
    };
    let stats = hostile(config, async |addr| {
        let mut silent = Peer::silent(addr).await.unwrap();
        assert_eq!(silent.goodbye().await, None);
        let mut wrong = Peer::silent(addr).await.unwrap();
        wrong
            .send(b"\x16\x03\x01\x00\x10neither HTTP/2 nor HTTP/1")
            .await
            .unwrap();
        wrong.goodbye().await;
    });
    assert_eq!(stats.handshakes_failed, 2);
}

#[test]
fn a_body_that_does_not_come_is_answered_408() {
    let config = ServerConfig {
        body_timeout: Period::from_millis(50),
        ..ServerConfig::default()
    };
    let stats = hostile(config, async |addr| {
        let mut peer = Peer::client(addr).await.unwrap();
        peer.send(&frame::post(1, "/")).await.unwrap();
        peer.send(&frame::data(1, b"half", false)).await.unwrap();
        assert_eq!(peer.answer(1).await.unwrap().0, 408);
        peer.send(&frame::get(3, "/")).await.unwrap();
        assert_eq!(peer.status(3).await.unwrap(), 200);
    });
    assert_eq!(stats.bodies_too_slow, 1);
}

/// RFC 9110 §10.1.1: a body that its sender keeps back is asked for, unless the answer is known already.
#[test]
fn a_body_that_is_kept_back_is_asked_for() {
    let config = ServerConfig {
        max_request_rate: 2,
        ..ServerConfig::default()
    };
    hostile(config, async |addr| {
        let mut peer = Peer::client(addr).await.unwrap();
        let mut fields = frame::request_fields("POST", "/");
        fields.push(("expect", "100-continue"));
        for stream in [1, 3] {
            peer.send(&frame::headers(stream, &fields, false)).await.unwrap();
            assert_eq!(peer.status(stream).await.unwrap(), 100);
            peer.send(&frame::data(stream, b"kept back", true)).await.unwrap();
            let (status, body) = peer.answer(stream).await.unwrap();
            assert_eq!((status, &body[..]), (200, &b"kept back"[..]));
        }
        peer.send(&frame::headers(5, &fields, false)).await.unwrap();
        assert_eq!(peer.status(5).await.unwrap(), 429);
    });
}

#[test]
fn a_body_over_the_limit_is_answered_413_announced_or_not() {
    let config = ServerConfig {
        max_body: ByteSize(100),
        ..ServerConfig::default()
    };
    let stats = hostile(config, async |addr| {
        let mut peer = Peer::client(addr).await.unwrap();
        let mut fields = frame::request_fields("POST", "/");
        fields.push(("content-length", "101"));
        peer.send(&frame::headers(1, &fields, false)).await.unwrap();
        let (status, body) = peer.answer(1).await.unwrap();
        assert_eq!(status, 413);
        assert!(detail(&body).contains("100"), "{}", detail(&body));
        peer.send(&frame::post(3, "/")).await.unwrap();
        peer.send(&frame::data(3, &[0; 101], false)).await.unwrap();
        assert_eq!(peer.status(3).await.unwrap(), 413);
        peer.send(&frame::get(5, "/")).await.unwrap();
        assert_eq!(peer.status(5).await.unwrap(), 200);
    });
    assert_eq!(stats.bodies_too_large, 2);
}

#[test]
fn bodies_that_arrive_together_share_a_window() {
    let config = ServerConfig {
        max_body: ByteSize::kib(40),
        max_arriving: ByteSize::kib(100),
        ..ServerConfig::default()
    };
    hostile(config, async |addr| {
        let mut peer = Peer::client(addr).await.unwrap();
        // Three of 32 KiB fit; the window of a fourth is a fault of the peer, so it stays below.
        for stream in [1, 3, 5] {
            peer.send(&frame::post(stream, "/sink")).await.unwrap();
            for _ in 0..2 {
                peer.send(&frame::data(stream, &[7; 16_384], false))
                    .await
                    .unwrap();
            }
        }
        // Nothing is given back while the bodies are unfinished, everything after.
        for stream in [1, 3, 5] {
            peer.send(&frame::data(stream, b"end", true)).await.unwrap();
            assert_eq!(peer.answer(stream).await.unwrap().0, 200);
        }
        for stream in (7..47).step_by(2) {
            peer.send(&frame::post(stream, "/sink")).await.unwrap();
            for _ in 0..2 {
                peer.send(&frame::data(stream, &[7; 16_000], false))
                    .await
                    .unwrap();
            }
            peer.send(&frame::data(stream, b"", true)).await.unwrap();
            assert_eq!(peer.answer(stream).await.unwrap().0, 200);
        }
    });
}

#[test]
fn an_idle_connection_is_told_goodbye() {
    let config = ServerConfig {
        idle_timeout: Period::from_millis(80),
        ..ServerConfig::default()
    };
    local(async {
        let server = start(config, echo);
        let mut peer = Peer::client(server.addr).await.unwrap();
        peer.send(&frame::get(1, "/")).await.unwrap();
        assert_eq!(peer.status(1).await.unwrap(), 200);
        assert_eq!(peer.goodbye().await, Some(0), "NO_ERROR");
        while server.stats.snapshot().connections_open > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(server.stats.snapshot().connections_idle, 1);
    });
}

#[test]
fn requests_over_the_rate_are_answered_429() {
    let config = ServerConfig {
        max_request_rate: 5,
        ..ServerConfig::default()
    };
    let stats = hostile(config, async |addr| {
        let mut peer = Peer::client(addr).await.unwrap();
        let mut statuses = Vec::new();
        let all: Vec<u8> = (0..8).flat_map(|i| frame::get(2 * i + 1, "/")).collect();
        peer.send(&all).await.unwrap();
        while statuses.len() < 8 {
            let head = peer.wait_for("an answer", |f| f.kind == kind::HEADERS).await;
            statuses.push(head.unwrap().status().unwrap());
        }
        assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 3);
    });
    assert_eq!(stats.requests_over_rate, 3);
}

#[test]
fn rapid_resets_end_the_connection() {
    let config = ServerConfig {
        max_reset_rate: 50,
        ..ServerConfig::default()
    };
    let stats = hostile(config, async |addr| {
        let mut peer = Peer::client(addr).await.unwrap();
        for i in 0..100 {
            let mut both = frame::get(2 * i + 1, "/slow");
            both.extend(frame::reset(2 * i + 1, CANCEL));
            if peer.send(&both).await.is_err() {
                break;
            }
            // As many packets as requests: the server sees each request before its reset.
            tokio::task::yield_now().await;
        }
        assert_eq!(peer.goodbye().await, Some(ENHANCE_YOUR_CALM));
    });
    assert_eq!(stats.connections_resetting + stats.connections_faulty, 1);
}

#[test]
fn floods_of_pings_and_settings_end_the_connection() {
    for flood in [
        frame::ping([1; 8]),
        frame::settings(&[]),
        frame::raw(kind::PRIORITY, 0, 1, &[0, 0, 0, 0, 9]),
    ] {
        let stats = hostile(ServerConfig::default(), async |addr| {
            let mut peer = Peer::client(addr).await.unwrap();
            for _ in 0..300 {
                if peer.send(&flood).await.is_err() {
                    break;
                }
            }
            assert_eq!(peer.goodbye().await, Some(ENHANCE_YOUR_CALM));
        });
        assert_eq!(stats.connections_flooding, 1);
    }
}

#[test]
fn a_flood_of_empty_data_ends_the_connection() {
    let stats = hostile(ServerConfig::default(), async |addr| {
        let mut peer = Peer::client(addr).await.unwrap();
        peer.send(&frame::post(1, "/")).await.unwrap();
        for _ in 0..1_000 {
            if peer.send(&frame::data(1, b"", false)).await.is_err() {
                break;
            }
        }
        assert_eq!(peer.goodbye().await, Some(ENHANCE_YOUR_CALM));
    });
    assert_eq!(stats.connections_faulty, 1);
}

#[test]
fn an_answer_nobody_takes_is_given_up_and_the_others_arrive() {
    let config = ServerConfig {
        answer_timeout: Period::from_millis(50),
        ..ServerConfig::default()
    };
    let stats = hostile(config, async |addr| {
        let mut peer = Peer::client_with(addr, &[(setting::INITIAL_WINDOW_SIZE, 1_000)])
            .await
            .unwrap();
        peer.send(&frame::get(1, "/large")).await.unwrap();
        assert_eq!(peer.reset_code(1).await.unwrap(), CANCEL);
        peer.send(&frame::get(3, "/")).await.unwrap();
        assert_eq!(peer.status(3).await.unwrap(), 200);
    });
    assert_eq!(stats.answers_not_taken, 1);
}

#[test]
fn who_takes_no_answers_gets_no_more() {
    let config = ServerConfig {
        max_untaken: ByteSize::kib(250),
        ..ServerConfig::default()
    };
    let stats = hostile(config, async |addr| {
        let mut peer = Peer::client_with(addr, &[(setting::INITIAL_WINDOW_SIZE, 0)])
            .await
            .unwrap();
        for stream in [1, 3, 5, 7] {
            peer.send(&frame::get(stream, "/large")).await.unwrap();
        }
        assert_eq!(peer.reset_code(7).await.unwrap(), REFUSED_STREAM);
        for stream in [1, 3, 5] {
            peer.send(&frame::window(stream, 200_000)).await.unwrap();
        }
        peer.send(&frame::window(0, 400_000)).await.unwrap();
        let (mut ended, mut bytes) = (0, 0);
        while ended < 3 {
            let data = peer.wait_for("DATA", |f| f.kind == kind::DATA).await.unwrap();
            bytes += data.payload.len();
            ended += u32::from(data.ends_stream());
        }
        assert_eq!(bytes, 300_000);
        peer.send(&frame::get(9, "/")).await.unwrap();
        assert_eq!(peer.status(9).await.unwrap(), 200, "served again");
    });
    assert_eq!(stats.requests_refused_untaken, 1);
}

#[test]
fn a_full_socket_ends_the_connection() {
    let config = ServerConfig {
        write_stall_timeout: Period::from_millis(100),
        ..ServerConfig::default()
    };
    let stats = hostile(config, async |addr| {
        let mut peer = Peer::client_with(addr, &[(setting::INITIAL_WINDOW_SIZE, 1 << 30)])
            .await
            .unwrap();
        peer.send(&frame::window(0, 1 << 30)).await.unwrap();
        // 40 MB of answers, none of which is read: more than the sockets' buffers hold.
        let all: Vec<u8> = (0..400).flat_map(|i| frame::get(2 * i + 1, "/large")).collect();
        peer.send(&all).await.unwrap();
        tokio::time::sleep(Duration::from_millis(600)).await;
        peer.goodbye().await;
    });
    assert_eq!(stats.connections_stalled, 1);
}

#[test]
fn half_closed_and_nonsensical_streams_harm_nobody() {
    let stats = hostile(ServerConfig::default(), async |addr| {
        // Streams that never go on, hundreds of them, then silence and the end of the connection.
        let mut peer = Peer::client(addr).await.unwrap();
        for i in 0..500 {
            peer.send(&frame::post(2 * i + 1, "/")).await.unwrap();
        }
        drop(peer);
        // DATA on a stream that was never opened.
        let mut peer = Peer::client(addr).await.unwrap();
        peer.send(&frame::data(9, b"x", true)).await.unwrap();
        assert!(peer.goodbye().await.is_some());
        // A stream number that goes backwards.
        let mut peer = Peer::client(addr).await.unwrap();
        peer.send(&frame::get(5, "/")).await.unwrap();
        peer.status(5).await.unwrap();
        peer.send(&frame::get(3, "/")).await.unwrap();
        assert!(peer.goodbye().await.is_some());
        // A header block that is not valid HPACK.
        let mut peer = Peer::client(addr).await.unwrap();
        let nonsense = frame::raw(
            kind::HEADERS,
            flag::END_HEADERS | flag::END_STREAM,
            1,
            &[0xff; 40],
        );
        peer.send(&nonsense).await.unwrap();
        assert!(peer.goodbye().await.is_some());
    });
    assert_eq!(stats.connections_faulty, 3);
}

#[test]
fn any_frame_is_borne() {
    // A fixed seed: the same frames in every run.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    hostile(ServerConfig::default(), async |addr| {
        for _ in 0..60 {
            let mut peer = Peer::client(addr).await.unwrap();
            for _ in 0..20 {
                let bits = random();
                let payload: Vec<u8> = (0..bits % 40).map(|_| random() as u8).collect();
                let stray = frame::raw(
                    (bits >> 8) as u8 % 12,
                    (bits >> 16) as u8,
                    (bits >> 24) as u32 % 8,
                    &payload,
                );
                if peer.send(&stray).await.is_err() {
                    break;
                }
            }
        }
    });
}

#[test]
fn a_stopping_server_says_goodbye_takes_nothing_new_and_finishes() {
    local(async {
        let server = start(ServerConfig::default(), echo);
        let mut peer = Peer::client(server.addr).await.unwrap();
        peer.send(&frame::get(1, "/slow")).await.unwrap();
        peer.send(&frame::get(3, "/")).await.unwrap();
        assert_eq!(peer.status(3).await.unwrap(), 200);
        server.shutdown.fire();
        let goaway = peer.wait_for("GOAWAY", |f| f.kind == kind::GOAWAY).await.unwrap();
        assert_eq!(goaway.code(), Some(0));
        let (mut status, mut last) = (None, goaway.last_stream());
        while let Some(found) = peer.next().await.unwrap() {
            status = found.status().or(status);
            last = found.last_stream().or(last);
        }
        assert_eq!((status, last), (Some(200), Some(3)));
        server.done.await.unwrap().unwrap();
    });
}

#[test]
fn a_stop_does_not_wait_for_an_idle_peer_that_reads_nothing() {
    local(async {
        let config = ServerConfig {
            drain_timeout: Period::from_secs(3_600),
            ..ServerConfig::default()
        };
        let server = start(config, echo);
        let mut peer = Peer::client(server.addr).await.unwrap();
        peer.send(&frame::get(1, "/")).await.unwrap();
        assert_eq!(peer.status(1).await.unwrap(), 200);
        server.shutdown.fire();
        // The peer answers no PING and does not close.
        server.done.await.unwrap().unwrap();
        let mut last = None;
        while let Some(found) = peer.next().await.unwrap() {
            last = found.last_stream().or(last);
        }
        assert_eq!(last, Some(1), "the second GOAWAY names the last request");
    });
}

#[test]
fn who_does_not_finish_is_left_behind_when_the_server_stops() {
    local(async {
        let config = ServerConfig {
            drain_timeout: Period::from_millis(50),
            ..ServerConfig::default()
        };
        let server = start(config, echo);
        let mut peer = Peer::client(server.addr).await.unwrap();
        peer.send(&frame::post(1, "/")).await.unwrap();
        peer.send(&frame::get(3, "/")).await.unwrap();
        assert_eq!(peer.status(3).await.unwrap(), 200);
        server.shutdown.fire();
        server.done.await.unwrap().unwrap();
        let end: Result<Option<Frame>, _> = async {
            while peer.next().await?.is_some() {}
            Ok::<_, std::io::Error>(None)
        }
        .await;
        assert!(end.is_ok());
        assert_eq!(server.stats.snapshot().connections_open, 0);
    });
}
