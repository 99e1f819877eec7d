//! Streams that a producer, or a proxy before it, refuses, and connections that it leaves.

use std::cell::Cell;
use std::rc::Rc;

use http::{Method, StatusCode};
use routing::policy::ServicePolicy;
use serde_json::json;
use testpeer::http2::{Frame, Listener, Peer, frame};

use crate::support::{PATH, Producer, Scp, local, start};

const REFUSED_STREAM: u32 = 7;

/// A listener that counts the requests that it has taken, and does this with each.
async fn peer(act: impl Fn(u32) -> Vec<u8> + Clone + 'static) -> (u16, Rc<Cell<usize>>) {
    let listener = Listener::bind().await.unwrap();
    let port = listener.addr().unwrap().port();
    let taken = Rc::new(Cell::new(0));
    let counted = taken.clone();
    tokio::task::spawn_local(async move {
        while let Ok(connection) = listener.accept(&[]).await {
            tokio::task::spawn_local(serve(connection, act.clone(), counted.clone()));
        }
    });
    (port, taken)
}

async fn serve(mut connection: Peer, act: impl Fn(u32) -> Vec<u8>, taken: Rc<Cell<usize>>) {
    let is_request = |frame: &Frame| frame.kind == frame::kind::HEADERS;
    while let Ok(request) = connection.wait_for("a request", is_request).await {
        taken.set(taken.get() + 1);
        if connection.send(&act(request.stream)).await.is_err() {
            return;
        }
    }
}

/// An SCP that knows a producer at this port and another one of its set, which it tries after it.
fn scp_before(port: u16, other: &Producer, policy: ServicePolicy) -> Scp {
    let mut first = other.profile(&json!({"nfInstanceId": "00000000-0000-4000-8000-000000000001"}));
    first["nfServices"][0]["ipEndPoints"][0]["port"] = json!(port);
    let profiles = vec![first, other.profile(&json!({"priority": 9}))];
    start(|config| {
        config.producers = profiles;
        config.policies = vec![policy];
    })
}

async fn ask(scp: &Scp, method: Method, port: u16) -> StatusCode {
    let root = format!("http://127.0.0.1:{port}");
    let target = [("3gpp-sbi-target-apiroot", root.as_str())];
    scp.ask(method, PATH, &target).await.status
}

/// HAProxy refuses the stream of a request that it has passed on when the connection behind it is lost.
#[test]
fn a_refused_create_is_not_carried_out_twice() {
    local(async {
        let (port, taken) = peer(|stream| frame::reset(stream, REFUSED_STREAM)).await;
        let other = Producer::start(2);
        let scp = scp_before(port, &other, ServicePolicy::default());
        for method in [Method::POST, Method::PATCH] {
            assert_eq!(ask(&scp, method, port).await, StatusCode::GATEWAY_TIMEOUT);
        }
        assert_eq!((taken.get(), other.count()), (2, 0));
        for method in [Method::GET, Method::PUT, Method::DELETE] {
            assert_eq!(ask(&scp, method, port).await, StatusCode::OK);
        }
        assert_eq!(other.count(), 3);
        assert_eq!(
            scp.count("signalbox_scp_attempts_total", "outcome=\"refused\""),
            5.0
        );
        let trusting = ServicePolicy {
            refused_is_unprocessed: true,
            ..ServicePolicy::default()
        };
        let scp = scp_before(port, &other, trusting);
        assert_eq!(ask(&scp, Method::POST, port).await, StatusCode::OK);
        assert_eq!(other.count(), 4);
    });
}

/// A stream that is refused after GOAWAY is as uncertain, unless GOAWAY says that it was not begun.
#[test]
fn a_create_refused_after_goaway_counts_by_the_last_stream() {
    local(async {
        let both = |last| {
            move |stream| {
                let mut frames = frame::goaway(if last { stream } else { 0 }, 0);
                frames.extend(frame::reset(stream, REFUSED_STREAM));
                frames
            }
        };
        let other = Producer::start(2);
        let (port, _) = peer(both(true)).await;
        let scp = scp_before(port, &other, ServicePolicy::default());
        assert_eq!(ask(&scp, Method::POST, port).await, StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(other.count(), 0);
        let (port, _) = peer(both(false)).await;
        let scp = scp_before(port, &other, ServicePolicy::default());
        assert_eq!(ask(&scp, Method::POST, port).await, StatusCode::OK);
        assert_eq!(other.count(), 1);
    });
}

/// RFC 9113 §6.8: a request beyond the last stream of GOAWAY was not begun.
#[test]
fn a_request_that_a_leaving_producer_has_not_begun_goes_over_a_new_connection() {
    local(async {
        let listener = Listener::bind().await.unwrap();
        let port = listener.addr().unwrap().port();
        let alone = Producer::start(1);
        let mut profile = alone.profile(&json!({}));
        profile["nfServices"][0]["ipEndPoints"][0]["port"] = json!(port);
        let scp = start(|config| config.producers = vec![profile]);
        let serving = async {
            let is_request = |frame: &Frame| frame.kind == frame::kind::HEADERS;
            let mut leaving = listener.accept(&[]).await.unwrap();
            leaving.wait_for("the request", is_request).await.unwrap();
            leaving.send(&frame::goaway(0, 0)).await.unwrap();
            let mut next = listener.accept(&[]).await.unwrap();
            let stream = next.wait_for("it again", is_request).await.unwrap().stream;
            next.send(&frame::status(stream, 200, true)).await.unwrap();
            leaving
        };
        let (status, _leaving) = tokio::join!(ask(&scp, Method::GET, port), serving);
        assert_eq!(status, StatusCode::OK);
    });
}

/// A producer that is restarted, or whose name leads elsewhere by now, loses no request that may be sent again
/// (RFC 9110 §9.2.2).
#[test]
fn an_idempotent_request_of_a_broken_connection_goes_over_a_new_one() {
    local(async {
        let is_request = |frame: &Frame| frame.kind == frame::kind::HEADERS;
        let listener = Listener::bind().await.unwrap();
        let port = listener.addr().unwrap().port();
        let alone = Producer::start(1);
        let mut profile = alone.profile(&json!({}));
        profile["nfServices"][0]["ipEndPoints"][0]["port"] = json!(port);
        let scp = start(|config| config.producers = vec![profile]);
        let serving = async {
            let mut first = listener.accept(&[]).await.unwrap();
            first.wait_for("the request", is_request).await.unwrap();
            drop(first);
            let mut next = listener.accept(&[]).await.unwrap();
            let stream = next.wait_for("it again", is_request).await.unwrap().stream;
            next.send(&frame::status(stream, 200, true)).await.unwrap();
            next
        };
        let (status, next) = tokio::join!(ask(&scp, Method::GET, port), serving);
        assert_eq!(status, StatusCode::OK);
        // It may have been carried out: not twice.
        let breaking = async {
            let mut next = next;
            next.wait_for("a create", is_request).await.unwrap();
        };
        let (status, ()) = tokio::join!(ask(&scp, Method::POST, port), breaking);
        assert_eq!(status, StatusCode::GATEWAY_TIMEOUT);
    });
}

/// The next SCP takes the place of one that is lost while a request is there, as another producer of a set does.
#[test]
fn the_second_next_hop_takes_what_is_idempotent() {
    local(async {
        let listener = Listener::bind().await.unwrap();
        let first = format!("http://127.0.0.1:{}", listener.addr().unwrap().port());
        tokio::task::spawn_local(async move {
            while let Ok(mut connection) = listener.accept(&[]).await {
                let is_request = |frame: &Frame| frame.kind == frame::kind::HEADERS;
                let _ = connection.wait_for("a request", is_request).await;
            }
        });
        let (producer, second) = (Producer::start(1), Producer::start(2));
        let profile = producer.profile(&json!({"locality": "north1"}));
        let hops = vec![first, second.root()];
        let scp = start(|config| {
            config.producers = vec![profile];
            config.places.locality = "south1".into();
            config.places.regions = [
                ("north".to_owned(), vec!["north1".to_owned()]),
                ("south".to_owned(), vec!["south1".to_owned()]),
            ]
            .into();
            config.next_hops.insert("north".into(), hops);
        });
        let port = producer.address.port();
        assert_eq!(ask(&scp, Method::GET, port).await, StatusCode::OK);
        assert_eq!(ask(&scp, Method::POST, port).await, StatusCode::GATEWAY_TIMEOUT);
        assert_eq!((second.count(), producer.count()), (1, 0));
    });
}
