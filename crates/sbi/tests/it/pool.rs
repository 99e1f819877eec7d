//! The client against peers that are slow, rude or gone.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use http::{Method, Request};
use sbi::client::{Client, ClientConfig, Origin, Processed, SendError, SendErrorKind, SendOptions};
use sbi::server::ServerConfig;
use sbi::{Body, Response};
use settings::{ByteSize, Period};
use testpeer::http2::frame::{self, flag, kind, setting};
use testpeer::http2::{Listener, Peer};
use testpeer::until;

use crate::support::{client, local, start};

fn config() -> ClientConfig {
    ClientConfig {
        connections_per_origin: 1,
        ..ClientConfig::default()
    }
}

fn within(millis: u64) -> SendOptions {
    SendOptions {
        deadline: Duration::from_millis(millis),
        ..SendOptions::default()
    }
}

fn get(path: &str) -> Request<Body> {
    Request::builder()
        .method(Method::GET)
        .uri(path)
        .body(Body::empty())
        .unwrap()
}

/// Sends in a task of its own.
fn sending(
    client: &Client,
    origin: &Origin,
    options: SendOptions,
) -> tokio::task::JoinHandle<Result<sbi::Response, SendError>> {
    let (client, origin) = (client.clone(), origin.clone());
    tokio::task::spawn_local(async move { client.send(&origin, get("/"), options).await })
}

async fn scripted() -> (Listener, Origin) {
    let listener = Listener::bind().await.unwrap();
    let origin = format!("http://{}", listener.addr().unwrap()).parse().unwrap();
    (listener, origin)
}

/// Waits until the client has taken our SETTINGS.
async fn acknowledged(peer: &mut Peer) {
    peer.wait_for("SETTINGS ACK", |f| {
        f.kind == kind::SETTINGS && f.flags & flag::ACK != 0
    })
    .await
    .unwrap();
}

async fn request(peer: &mut Peer) -> u32 {
    peer.wait_for("a request", |f| f.kind == kind::HEADERS)
        .await
        .unwrap()
        .stream
}

#[test]
fn hundreds_given_up_at_once_are_no_burst_of_resets() {
    local(async {
        let (listener, origin) = scripted().await;
        let config = ClientConfig {
            max_abandoned: 250,
            max_cancel_rate: 20,
            ..config()
        };
        let client = client(config);
        let senders: Vec<_> = (0..300)
            .map(|_| sending(&client, &origin, SendOptions::default()))
            .collect();
        let mut peer = listener.accept(&[]).await.unwrap();
        let mut streams = Vec::new();
        while streams.len() < 300 {
            streams.push(request(&mut peer).await);
        }
        // A consumer of a relay leaves: everything it had asked for is given up at once.
        for sender in senders {
            sender.abort();
        }
        let survivor = sending(&client, &origin, SendOptions::default());
        let (mut resets, mut asked) = (0, None);
        let watched = tokio::time::timeout(Duration::from_millis(300), async {
            while let Ok(Some(found)) = peer.next().await {
                resets += u32::from(found.kind == kind::RST_STREAM);
                asked = (found.kind == kind::HEADERS).then_some(found.stream).or(asked);
            }
        });
        assert!(watched.await.is_err(), "the connection is still there");
        assert!(
            (1..=20).contains(&resets),
            "{resets} resets: only those beyond the bound, one after another"
        );
        // Late answers to what was given up are taken and forgotten.
        for stream in streams {
            peer.send(&frame::status(stream, 200, true)).await.unwrap();
        }
        peer.send(&frame::status(asked.unwrap(), 204, true))
            .await
            .unwrap();
        assert_eq!(survivor.await.unwrap().unwrap().status(), 204);
        while client.peers()[0].1.in_progress > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(client.peers()[0].1.connected, 1);
    });
}

#[test]
fn a_goodbye_tells_what_was_processed_and_others_connect_anew() {
    local(async {
        let (listener, origin) = scripted().await;
        let client = client(config());
        let first = sending(&client, &origin, within(5_000));
        let second = sending(&client, &origin, within(5_000));
        let mut peer = listener.accept(&[]).await.unwrap();
        let (one, _two) = (request(&mut peer).await, request(&mut peer).await);
        peer.send(&frame::goaway(one, 0)).await.unwrap();
        let error = second.await.unwrap().unwrap_err();
        assert_eq!(
            (error.kind, error.processed),
            (SendErrorKind::GoAway, Processed::No)
        );
        // The next request finds the connection closed to it and takes another.
        let third = sending(&client, &origin, within(5_000));
        let mut again = listener.accept(&[]).await.unwrap();
        let stream = request(&mut again).await;
        again.send(&frame::status(stream, 200, true)).await.unwrap();
        assert_eq!(third.await.unwrap().unwrap().status(), 200);
        // What was in progress finishes on the old one.
        peer.send(&frame::status(one, 200, true)).await.unwrap();
        assert_eq!(first.await.unwrap().unwrap().status(), 200);
    });
}

#[test]
fn a_connection_that_breaks_leaves_doubt_a_refusal_does_not() {
    local(async {
        let (listener, origin) = scripted().await;
        let client = client(config());
        let refused = sending(&client, &origin, within(5_000));
        let broken = sending(&client, &origin, within(5_000));
        let reset = sending(&client, &origin, within(5_000));
        let mut peer = listener.accept(&[]).await.unwrap();
        let streams = [
            request(&mut peer).await,
            request(&mut peer).await,
            request(&mut peer).await,
        ];
        peer.send(&frame::reset(streams[0], 7)).await.unwrap();
        peer.send(&frame::reset(streams[2], 2)).await.unwrap();
        let error = refused.await.unwrap().unwrap_err();
        assert_eq!(
            (error.kind, error.processed),
            (SendErrorKind::Reset(7), Processed::No)
        );
        let error = reset.await.unwrap().unwrap_err();
        assert_eq!(
            (error.kind, error.processed),
            (SendErrorKind::Reset(2), Processed::Maybe)
        );
        // Goodbye that covers the stream, and the end: it may have been processed.
        peer.send(&frame::goaway(streams[2], 2)).await.unwrap();
        drop(peer);
        let error = broken.await.unwrap().unwrap_err();
        assert_eq!(error.processed, Processed::Maybe, "{error}");
    });
}

#[test]
fn the_limit_of_streams_holds_and_the_important_go_first() {
    local(async {
        let (listener, origin) = scripted().await;
        let client = client(config());
        let warm = sending(&client, &origin, within(5_000));
        let mut peer = listener
            .accept(&[(setting::MAX_CONCURRENT_STREAMS, 1)])
            .await
            .unwrap();
        let stream = request(&mut peer).await;
        acknowledged(&mut peer).await;
        let order = Rc::new(std::cell::RefCell::new(Vec::new()));
        let mut senders = Vec::new();
        for priority in [20, 3, 31, 0] {
            let (client, origin, order) = (client.clone(), origin.clone(), order.clone());
            senders.push(tokio::task::spawn_local(async move {
                let options = SendOptions {
                    priority,
                    ..SendOptions::default()
                };
                client.send(&origin, get("/"), options).await.unwrap();
                order.borrow_mut().push(priority);
            }));
            tokio::task::yield_now().await;
        }
        while client.peers()[0].1.waiting < 4 {
            tokio::task::yield_now().await;
        }
        peer.send(&frame::status(stream, 200, true)).await.unwrap();
        warm.await.unwrap().unwrap();
        for _ in 0..4 {
            let stream = request(&mut peer).await;
            peer.send(&frame::status(stream, 200, true)).await.unwrap();
        }
        for sender in senders {
            sender.await.unwrap();
        }
        assert_eq!(*order.borrow(), [0, 3, 20, 31]);
    });
}

#[test]
fn who_waits_in_vain_is_told_so_and_the_queue_is_bounded() {
    local(async {
        let (listener, origin) = scripted().await;
        let client = client(ClientConfig {
            max_waiting: 2,
            ..config()
        });
        let first = sending(&client, &origin, within(5_000));
        let mut peer = listener
            .accept(&[(setting::MAX_CONCURRENT_STREAMS, 1)])
            .await
            .unwrap();
        request(&mut peer).await;
        acknowledged(&mut peer).await;
        let waiting = [
            sending(&client, &origin, within(40)),
            sending(&client, &origin, within(40)),
        ];
        tokio::task::yield_now().await;
        let error = client.send(&origin, get("/"), within(40)).await.unwrap_err();
        assert_eq!(
            (error.kind, error.processed),
            (SendErrorKind::Overflow, Processed::No)
        );
        for sender in waiting {
            let error = sender.await.unwrap().unwrap_err();
            assert_eq!(
                (error.kind, error.processed),
                (SendErrorKind::Timeout, Processed::No)
            );
        }
        // Who has given up keeps no place.
        assert_eq!(client.peers()[0].1.waiting, 0);
        first.abort();
    });
}

#[test]
fn a_connection_that_does_not_answer_pings_is_given_up() {
    local(async {
        let (listener, origin) = scripted().await;
        let client = client(ClientConfig {
            ping_interval: Period::from_millis(20),
            ping_timeout: Period::from_millis(40),
            ..config()
        });
        let sent = sending(&client, &origin, within(10_000));
        let mut peer = listener.accept(&[]).await.unwrap();
        request(&mut peer).await;
        peer.ignore_others();
        peer.wait_for("PING", |f| f.kind == kind::PING && f.flags & flag::ACK == 0)
            .await
            .unwrap();
        let error = sent.await.unwrap().unwrap_err();
        assert_eq!(error.processed, Processed::Maybe, "{error}");
        assert_eq!(client.peers()[0].1.connections, 0);
    });
}

/// Beyond its rate a connection is sent nothing: another one is made, up to the limit, and then requests fail unsent,
/// those that wait for a connection as well.
#[test]
fn a_connection_is_sent_no_more_than_its_rate() {
    const RATE: u32 = 20;
    const SENT: u32 = 2_000;
    local(async {
        let received: Rc<RefCell<HashMap<SocketAddr, u32>>> = Rc::default();
        let counts = received.clone();
        let server = start(ServerConfig::default(), move |request| {
            *counts.borrow_mut().entry(request.peer.addr).or_default() += 1;
            async { Response::new(http::StatusCode::NO_CONTENT) }
        });
        let (client, origin) = (
            client(ClientConfig {
                connections_per_origin: 2,
                max_request_rate: RATE,
                ..ClientConfig::default()
            }),
            server.origin(),
        );
        let began = Instant::now();
        let senders: Vec<_> = (0..SENT)
            .map(|_| sending(&client, &origin, within(60_000)))
            .collect();
        let (mut served, mut over) = (0, 0);
        for sender in senders {
            match sender.await.unwrap() {
                Ok(_) => served += 1,
                Err(error) => {
                    let what = (error.kind, error.processed);
                    assert_eq!(what, (SendErrorKind::OverRate, Processed::No));
                    over += 1;
                }
            }
        }
        // A machine that stands still gives each connection another second, and its rate again.
        let most = RATE * (u32::try_from(began.elapsed().as_secs()).unwrap() + 1);
        let by_connection: Vec<u32> = received.borrow().values().copied().collect();
        assert_eq!(by_connection.len(), 2, "{by_connection:?}");
        assert!(
            by_connection.iter().all(|count| *count <= most),
            "{by_connection:?}"
        );
        assert_eq!(served, by_connection.iter().sum::<u32>());
        assert_eq!(over, SENT - served);
        assert!(over > 0);
        until("there is room again", async || client.admits(&origin)).await;
        client.send(&origin, get("/"), within(60_000)).await.unwrap();
    });
}

#[test]
fn an_unused_connection_is_closed() {
    local(async {
        let (listener, origin) = scripted().await;
        let client = client(ClientConfig {
            idle_timeout: Period::from_millis(40),
            ..config()
        });
        let sent = sending(&client, &origin, within(5_000));
        let mut peer = listener.accept(&[]).await.unwrap();
        let stream = request(&mut peer).await;
        peer.send(&frame::status(stream, 200, true)).await.unwrap();
        sent.await.unwrap().unwrap();
        assert_eq!(peer.goodbye().await, Some(0));
        assert_eq!(client.peers()[0].1.connections, 0);
    });
}

#[test]
fn a_response_over_the_limit_is_refused_and_the_connection_lives() {
    local(async {
        let (listener, origin) = scripted().await;
        let client = client(ClientConfig {
            max_body: ByteSize(10),
            ..config()
        });
        let sent = sending(&client, &origin, within(5_000));
        let mut peer = listener.accept(&[]).await.unwrap();
        let stream = request(&mut peer).await;
        peer.send(&frame::status(stream, 200, false)).await.unwrap();
        peer.send(&frame::data(stream, b"eleven byte", false))
            .await
            .unwrap_or_default();
        let error = sent.await.unwrap().unwrap_err();
        assert_eq!(
            (error.kind, error.processed),
            (SendErrorKind::TooLarge, Processed::Maybe)
        );
    });
}

#[test]
fn a_peer_that_says_nothing_or_nonsense_is_no_connection() {
    local(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin: Origin = format!("http://{}", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        let client = client(config());
        let sent = sending(&client, &origin, within(5_000));
        let (mut stream, _) = listener.accept().await.unwrap();
        let nonsense = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
        tokio::io::AsyncWriteExt::write_all(&mut stream, nonsense)
            .await
            .unwrap();
        let error = sent.await.unwrap().unwrap_err();
        assert!(
            matches!(error.kind, SendErrorKind::Reset(_) | SendErrorKind::Broken(_)),
            "{error}"
        );
    });
}

#[test]
fn a_consumer_that_leaves_a_relay_is_no_burst_of_resets_to_the_producer() {
    local(async {
        let (listener, origin) = scripted().await;
        let onward = client(config());
        let relay = start(ServerConfig::default(), move |request| {
            let (client, origin) = (onward.clone(), origin.clone());
            async move { client.send(&origin, request, within(10_000)).await.unwrap() }
        });
        let mut leaving = Peer::client(relay.addr).await.unwrap();
        for i in 0..400 {
            leaving.send(&frame::get(2 * i + 1, "/")).await.unwrap();
        }
        let mut producer = listener.accept(&[]).await.unwrap();
        let mut streams = Vec::new();
        while streams.len() < 400 {
            streams.push(request(&mut producer).await);
        }
        drop(leaving);
        let mut staying = Peer::client(relay.addr).await.unwrap();
        staying.send(&frame::get(1, "/")).await.unwrap();
        let mut resets = 0;
        let asked = loop {
            let found = producer.next().await.unwrap().unwrap();
            resets += u32::from(found.kind == kind::RST_STREAM);
            if found.kind == kind::HEADERS {
                break found.stream;
            }
        };
        for stream in streams {
            producer.send(&frame::status(stream, 200, true)).await.unwrap();
        }
        producer.send(&frame::status(asked, 204, true)).await.unwrap();
        assert_eq!(staying.status(1).await.unwrap(), 204);
        assert_eq!(resets, 0);
    });
}

#[test]
fn a_client_that_is_dropped_closes_its_connections() {
    local(async {
        let (listener, origin) = scripted().await;
        let client = client(config());
        let sent = sending(&client, &origin, within(5_000));
        let mut peer = listener.accept(&[]).await.unwrap();
        let stream = request(&mut peer).await;
        peer.send(&frame::status(stream, 200, true)).await.unwrap();
        sent.await.unwrap().unwrap();
        drop(client);
        assert_eq!(peer.goodbye().await, Some(0));
    });
}
