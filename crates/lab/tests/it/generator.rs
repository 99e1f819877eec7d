//! The generator against simulated peers: the loop is open, and nothing is left out.

use std::time::Duration;

use lab::loadgen::{FailureKind, Generator, Record, Workload};
use lab::sim::{Misbehaviour, RoleName, Settings};
use settings::{Percent, Period};

use crate::support::{Peer, Posts, load, plan};

fn consumer() -> Settings {
    Settings {
        role: RoleName::Consumer,
        ..Settings::default()
    }
}

#[test]
fn all_that_is_offered_is_answered_and_counted_once() {
    let peer = Peer::start(&consumer());
    let record = load(&plan(peer.address), Posts(204), 2000.0, 3000);
    let total = record.total();
    assert_eq!(total.offered, total.succeeded, "{:?}", record.examples);
    assert_eq!(peer.handle.stats().requests, total.offered);
    assert_eq!(u64::from(total.latency.len() as u32), total.offered);
}

#[test]
fn latency_of_the_peer_is_in_every_sample_and_does_not_slow_the_schedule() {
    let peer = Peer::start(&Settings {
        latency: Period::from_millis(150),
        ..consumer()
    });
    let record = load(&plan(peer.address), Posts(204), 2000.0, 2000);
    let total = record.total();
    assert_eq!(total.offered, total.succeeded);
    assert!(total.latency.min() >= 149_000, "{}", total.latency.min());
    // A closed loop over two connections could not have sent this in less than minutes; the schedule could.
    assert!(total.offered < 8000);
}

#[test]
fn a_closed_loop_keeps_its_requests_in_flight_and_no_more() {
    let peer = Peer::start(&Settings {
        latency: Period::from_millis(50),
        ..consumer()
    });
    let workloads = vec![Box::new(Posts(204)) as Box<dyn Workload>];
    let generator = Generator::start(&plan(peer.address), workloads).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    generator.saturate(7, 1);
    let mut seen = Vec::new();
    let mut record = Record::default();
    for _ in 0..30 {
        for snapshot in generator.snapshots(Duration::from_millis(100)) {
            seen.push(snapshot.in_flight);
            record.merge(&snapshot.record);
        }
    }
    generator.set(0.0, 2);
    for snapshot in generator.stop().unwrap() {
        record.merge(&snapshot.record);
    }
    assert!(
        seen.len() >= 2 && seen.iter().all(|count| *count == 7),
        "{seen:?}"
    );
    let total = record.total();
    assert_eq!(total.failures(), 0, "{:?}", record.examples);
    // Each of the seven has its answer after 50 ms at the soonest.
    assert!(
        total.succeeded > 7 && total.succeeded <= 7 * (3_500 / 50),
        "{total:?}"
    );
    assert!(total.latency.min() >= 49_000, "{}", total.latency.min());
}

#[test]
fn a_generator_that_is_dropped_sends_nothing_more() {
    let peer = Peer::start(&consumer());
    let generator = Generator::start(
        &plan(peer.address),
        vec![Box::new(Posts(204)) as Box<dyn Workload>],
    )
    .unwrap();
    generator.set(500.0, 1);
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while peer.handle.stats().answered == 0 && std::time::Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(peer.handle.stats().answered > 0);
    drop(generator);
    // Its thread ends, and with it the connections.
    while peer.handle.stats().connections > 0 && std::time::Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(peer.handle.stats().connections, 0);
}

#[test]
fn a_peer_that_stalls_is_seen_in_the_latencies_of_what_was_due_meanwhile() {
    // One stream per connection: while two requests are stalled, all others wait for a stream.
    let peer = Peer::start(&Settings {
        max_streams: 1,
        latency: Period::from_millis(20),
        ..consumer()
    });
    let record = load(&plan(peer.address), Posts(204), 500.0, 500);
    let total = record.total();
    // Two streams of 20 ms carry 100 a second: the rest was due and could not be sent. It is not left out.
    assert!(total.failed[FailureKind::Overflow as usize] > total.offered / 2);
    assert_eq!(total.offered, total.succeeded + total.failures());
}

#[test]
fn every_misbehaviour_is_a_failure_of_its_kind() {
    let share = Percent::new(20.0);
    let bad = Misbehaviour::default();
    for (misbehave, kind) in [
        (
            Misbehaviour {
                error: share,
                ..bad.clone()
            },
            // The peer answers 503.
            FailureKind::Refused,
        ),
        (
            Misbehaviour {
                reset: share,
                ..bad.clone()
            },
            FailureKind::Reset,
        ),
        (
            Misbehaviour {
                silence: share,
                ..bad.clone()
            },
            FailureKind::Timeout,
        ),
        (
            Misbehaviour {
                close: Percent::new(1.0),
                ..bad
            },
            FailureKind::Connection,
        ),
    ] {
        let peer = Peer::start(&Settings {
            misbehave,
            ..consumer()
        });
        let mut plan = plan(peer.address);
        plan.timeout = Duration::from_millis(500);
        let total = load(&plan, Posts(204), 1000.0, 1000).total();
        assert!(total.failed[kind as usize] > 0, "{kind:?}: {:?}", total.failed);
        assert!(total.succeeded > 0, "{kind:?}");
    }
}

#[test]
fn a_delay_is_seen_and_is_no_failure() {
    let misbehave = Misbehaviour {
        delay: Percent::new(10.0),
        delay_by: Period::from_millis(300),
        ..Misbehaviour::default()
    };
    let peer = Peer::start(&Settings {
        misbehave,
        ..consumer()
    });
    let total = load(&plan(peer.address), Posts(204), 1000.0, 1000).total();
    assert_eq!(total.failures(), 0);
    assert!(total.latency.value_at_quantile(0.97) >= 299_000);
}

#[test]
fn without_a_peer_every_arrival_fails() {
    let peer = Peer::start(&consumer());
    let address = peer.address;
    drop(peer);
    let total = load(&plan(address), Posts(204), 200.0, 50).total();
    assert_eq!(total.succeeded, 0);
    assert_eq!(total.failed[FailureKind::Connection as usize], total.offered);
}

#[test]
fn misbehaviour_can_change_while_it_runs() {
    let peer = Peer::start(&consumer());
    assert_eq!(
        load(&plan(peer.address), Posts(204), 500.0, 100)
            .total()
            .failures(),
        0
    );
    peer.handle.misbehave(Misbehaviour {
        error: Percent::new(100.0),
        error_status: 500,
        ..Misbehaviour::default()
    });
    std::thread::sleep(Duration::from_millis(50));
    let total = load(&plan(peer.address), Posts(204), 500.0, 100).total();
    assert_eq!(total.failed[FailureKind::Status as usize], total.offered);
}
