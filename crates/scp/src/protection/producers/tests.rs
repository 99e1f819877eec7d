use http::StatusCode;
use overload::{BreakerSettings, OutlierSettings};
use sbi::client::SendError;
use sbi::{Fields, Value};
use telemetry::Registry;

use super::*;

fn peers(settings: Protection) -> Peers {
    Peers::new(
        &settings,
        &Metrics::new(&Registry::new()),
        Alarms::new(&Registry::new()),
        Arc::new(Rates::new(1)),
        Arc::default(),
        0,
        100,
    )
}

fn peer(peers: &Peers, now: Instant) -> Rc<Peer> {
    peers.at(&"http://127.0.0.1:9".parse().unwrap(), None, now)
}

fn end(peers: &Peers, peer: &Peer, ended: &Ended<'_>, now: Instant) {
    end_for(1, peers, peer, ended, now);
}

fn end_for(source: u64, peers: &Peers, peer: &Peer, ended: &Ended<'_>, now: Instant) {
    let sent = Sent {
        source,
        whole_time: true,
    };
    peers.ended(way(peer), sent, ended, now, Vec::new);
}

fn way(peer: &Peer) -> Way<'_> {
    Way {
        peer,
        service: None,
        api: "x",
        hops: None,
    }
}

#[test]
fn who_fails_is_left_alone_and_tried_again() {
    let peers = peers(Protection {
        outliers: OutlierSettings {
            consecutive_failures: 3,
            ..OutlierSettings::default()
        },
        breaker: BreakerSettings {
            failures: 1_000,
            ..BreakerSettings::default()
        },
        ..Protection::default()
    });
    let now = Instant::now();
    let peer = peer(&peers, now);
    let (failed, fine) = (StatusCode::SERVICE_UNAVAILABLE, StatusCode::OK);
    let none = Fields::new();
    for _ in 0..3 {
        assert!(peers.may_send(way(&peer), 24, now).is_ok());
        end(&peers, &peer, &Ended::Answered(failed, &none), now);
    }
    assert!(peers.may_send(way(&peer), 24, now).is_err());
    assert!(peers.any_unwell());
    let later = now + Duration::from_secs(31);
    assert!(peers.may_send(way(&peer), 24, later).is_ok());
    end(&peers, &peer, &Ended::Answered(fine, &none), later);
    assert!(!peer.health.is_troubled() && !peers.any_unwell());
    assert_eq!(peer.outstanding.get(), 0);
}

#[test]
fn producers_are_looked_up_while_one_of_them_is_unwell() {
    let peers = peers(Protection::default());
    let now = Instant::now();
    let (one, none) = (peer(&peers, now), Fields::new());
    let other = peers.at(&"http://127.0.0.1:10".parse().unwrap(), None, now);
    let mut rest = Fields::new();
    rest.set(sbi::name::RETRY_AFTER, Value::from_static("5"));
    let send = |peer, status, headers| {
        assert!(peers.may_send(way(peer), 24, now).is_ok());
        end(&peers, peer, &Ended::Answered(status, headers), now);
    };
    send(&one, StatusCode::SERVICE_UNAVAILABLE, &rest);
    send(&one, StatusCode::SERVICE_UNAVAILABLE, &rest);
    assert!(peers.any_unwell() && peers.rests(&one, now));
    // It rests no longer; it has failed before.
    send(&one, StatusCode::SERVICE_UNAVAILABLE, &none);
    send(&other, StatusCode::SERVICE_UNAVAILABLE, &rest);
    send(&one, StatusCode::OK, &none);
    assert!(peers.any_unwell(), "the other one");
    // Evicted.
    peers.known.borrow_mut().clear();
    drop(other);
    assert!(!peers.any_unwell());
}

/// Whatever one consumer does, a producer that serves others is theirs.
#[test]
fn one_consumer_alone_has_no_producer_left_alone() {
    let peers = peers(Protection::default());
    let now = Instant::now();
    let peer = peer(&peers, now);
    let none = Fields::new();
    let error = |kind| SendError {
        kind,
        processed: sbi::client::Processed::Maybe,
    };
    let send = |source, ended: &Ended<'_>| {
        assert!(peers.may_send(way(&peer), 24, now).is_ok(), "{:?}", peer.breaker);
        end_for(source, &peers, &peer, ended, now);
    };
    send(7, &Ended::Answered(StatusCode::OK, &none));
    for _ in 0..100 {
        send(1, &Ended::Answered(StatusCode::INTERNAL_SERVER_ERROR, &none));
        send(1, &Ended::Failed(&error(SendErrorKind::Reset(1))));
        send(1, &Ended::Failed(&error(SendErrorKind::TooLarge)));
        assert!(peers.may_send(way(&peer), 24, now).is_ok());
        peers.abandoned(way(&peer));
    }
    // Others meet the same: it is the producer.
    for _ in 0..5 {
        send(7, &Ended::Answered(StatusCode::INTERNAL_SERVER_ERROR, &none));
    }
    assert_eq!(peers.may_send(way(&peer), 24, now), Err(Held::Ejected));
}

#[test]
fn a_try_that_its_consumer_gives_up_is_followed_by_another() {
    let peers = peers(Protection {
        outliers: OutlierSettings {
            consecutive_failures: 0,
            ..OutlierSettings::default()
        },
        ..Protection::default()
    });
    let now = Instant::now();
    let peer = peer(&peers, now);
    let none = Fields::new();
    for _ in 0..10 {
        assert!(peers.may_send(way(&peer), 24, now).is_ok());
        end(
            &peers,
            &peer,
            &Ended::Answered(StatusCode::BAD_GATEWAY, &none),
            now,
        );
    }
    assert_eq!(peers.may_send(way(&peer), 24, now), Err(Held::Open));
    let later = now + Duration::from_secs(1);
    for _ in 0..20 {
        assert!(peers.may_send(way(&peer), 24, later).is_ok());
        peers.abandoned(way(&peer));
    }
    for _ in 0..2 {
        assert!(peers.may_send(way(&peer), 24, later).is_ok());
        end(&peers, &peer, &Ended::Answered(StatusCode::OK, &none), later);
    }
    assert!(!peer.health.is_troubled());
}

#[test]
fn outstanding_requests_are_bounded() {
    let peers = peers(Protection {
        max_outstanding: 2,
        ..Protection::default()
    });
    let now = Instant::now();
    let peer = peer(&peers, now);
    assert!(peers.may_send(way(&peer), 24, now).is_ok() && peers.may_send(way(&peer), 24, now).is_ok());
    assert!(peers.may_send(way(&peer), 24, now).is_err());
    peers.abandoned(way(&peer));
    assert!(peers.may_send(way(&peer), 24, now).is_ok());
}

#[test]
fn reported_overload_reduces_until_it_ends() {
    let peers = peers(Protection {
        spare_priority: 3,
        ..Protection::default()
    });
    let now = Instant::now();
    let peer = peer(&peers, now);
    let mut headers = Fields::new();
    let oci = "Timestamp: \"Tue, 04 Feb 2020 08:49:37 GMT\"; Period-of-Validity: 75s; \
               Overload-Reduction-Metric: 50%; NF-Instance: 54804518-4191-46b3-955c-ac631f953ed8";
    headers.set(names::OCI, Value::from_static(oci));
    assert!(peers.may_send(way(&peer), 24, now).is_ok());
    end(&peers, &peer, &Ended::Answered(StatusCode::OK, &headers), now);
    assert_eq!(peer.overloaded.get().map(|reduction| reduction.share), Some(0.5));
    let mut passed = [0; 2];
    for _ in 0..1_000 {
        for (at, priority) in [(0, 24), (1, 3)] {
            if peers.may_send(way(&peer), priority, now).is_ok() {
                passed[at] += 1;
                end(
                    &peers,
                    &peer,
                    &Ended::Answered(StatusCode::OK, &Fields::new()),
                    now,
                );
            }
        }
    }
    assert_eq!(passed, [500, 1_000]);
    let later = now + Duration::from_secs(76);
    assert!((0..100).all(|_| peers.may_send(way(&peer), 24, later).is_ok()));
}

/// TS 29.500 §6.4.3.3: only a newer report counts. A repeated one does not prolong the overload, and one that was overtaken
/// by the report of its end does not bring it back.
#[test]
fn a_report_of_overload_counts_once() {
    let peers = peers(Protection::default());
    let now = Instant::now();
    let peer = peer(&peers, now);
    let report = |second: u32, reduction: u32, at: Instant| {
        let oci = format!(
            "Timestamp: \"Tue, 04 Feb 2020 08:49:{second} GMT\"; Period-of-Validity: 60s; \
             Overload-Reduction-Metric: {reduction}%; NF-Instance: 54804518-4191-46b3-955c-ac631f953ed8"
        );
        let mut headers = Fields::new();
        headers.set_printed(names::OCI, oci);
        peer.take_oci(&headers, at, time::macros::datetime!(2020-02-04 08:49:40 UTC));
    };
    let holds = |at: Instant| (0..100).any(|_| peer.sheds(24, 0, at));
    let after = |seconds: u64| now + Duration::from_secs(seconds);
    report(10, 50, now);
    assert!(holds(after(50)));
    report(10, 50, after(50));
    assert!(!holds(after(61)), "repeated");
    report(20, 50, after(70));
    assert!(holds(after(71)));
    report(30, 0, after(72));
    report(25, 50, after(73));
    assert!(!holds(after(74)), "overtaken");
    // 19 s ahead of the clock, then correct again.
    report(59, 50, after(80));
    assert!(holds(after(81)));
    report(40, 0, after(82));
    assert!(!holds(after(83)), "a timestamp ahead of the clock blocks nothing");
}
