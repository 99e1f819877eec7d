//! MTP restart and congestion of route sets, in simulated time.

use std::time::{Duration, Instant};

use ss7_proto::PointCode;
use ss7_proto::mtp3::{Congestion, CongestionEvent, CongestionTimers, Restart, RestartTimers};

const NONE: [usize; 0] = [];

fn restart(neighbours: usize) -> (Restart, RestartTimers, Instant) {
    let timers = RestartTimers::default();
    (Restart::new(timers, neighbours), timers, Instant::now())
}

#[test]
fn a_node_with_one_neighbour_reports_at_once_and_waits_for_tra() {
    let (mut node, timers, now) = restart(1);
    assert_eq!(node.available(0, false, now), [0]);
    assert!(!node.is_restarting() && node.holds(0));
    assert_eq!(node.wake(), Some(now + timers.neighbour));
    assert_eq!(node.allowed(0, now), NONE);
    assert!(!node.holds(0));
    assert_eq!(node.wake(), None);
}

#[test]
fn a_neighbour_that_sends_no_tra_gets_traffic_after_t21() {
    let (mut node, timers, now) = restart(1);
    let _ = node.available(0, false, now);
    let end = now + timers.neighbour;
    assert_eq!(
        node.tick(end.checked_sub(Duration::from_millis(1)).unwrap()),
        NONE
    );
    assert!(node.holds(0));
    assert_eq!(node.tick(end), NONE);
    assert!(!node.holds(0));
}

#[test]
fn an_isolated_node_says_nothing_before_all_neighbours_have_reported() {
    let (mut node, timers, now) = restart(2);
    assert_eq!(node.available(0, false, now), NONE);
    assert_eq!(node.allowed(0, now), NONE);
    assert!(node.is_restarting() && node.holds(0));
    assert_eq!(node.available(1, false, now), NONE);
    assert_eq!(node.allowed(1, now), [0, 1]);
    assert!(!node.is_restarting() && !node.holds(0) && !node.holds(1));
    // One of two that returns meets a node that does not restart.
    node.unavailable(1, false);
    assert_eq!(node.available(1, false, now), [1]);
    assert!(node.holds(1) && !node.holds(0));
    // Without a neighbour the node is isolated again; one that does not come costs T18.
    node.unavailable(0, false);
    node.unavailable(1, false);
    assert_eq!(node.available(0, false, now), NONE);
    assert_eq!(node.allowed(0, now), NONE);
    assert_eq!(node.wake(), Some(now + timers.collection));
    assert_eq!(node.tick(now + timers.collection), [0]);
    assert!(!node.holds(0));
}

#[test]
fn a_neighbour_that_was_accessible_otherwise_gets_traffic_at_once() {
    let (mut node, _, now) = restart(2);
    let _ = (
        node.available(0, false, now),
        node.allowed(0, now),
        node.available(1, false, now),
    );
    let _ = node.allowed(1, now);
    node.unavailable(1, false);
    assert_eq!(node.available(1, true, now), [1]);
    assert!(!node.holds(1));
}

#[test]
fn an_unexpected_tra_is_answered_once_within_t19() {
    let (mut node, timers, now) = restart(1);
    let _ = node.available(0, false, now);
    let _ = node.allowed(0, now);
    let later = now + Duration::from_secs(1);
    assert_eq!(node.allowed(0, later), NONE, "T19 of the first TRA");
    let after = now + timers.answer_guard;
    assert_eq!(node.allowed(0, after), [0]);
    assert_eq!(node.allowed(0, after), NONE);
}

/// The other side may have finished the test of the link first.
#[test]
fn an_early_tra_counts_and_one_of_a_lost_link_does_not() {
    let (mut node, _, now) = restart(1);
    assert_eq!(node.allowed(0, now), NONE);
    assert_eq!(node.available(0, false, now), [0]);
    assert!(!node.holds(0));
    node.unavailable(0, true);
    let _ = node.available(0, false, now);
    assert!(node.holds(0));
    // Of a link that never passes its test it is of no use for the next one.
    node.unavailable(0, false);
    assert_eq!(node.allowed(0, now), NONE);
    node.unavailable(0, true);
    node.unavailable(0, false);
    let _ = node.available(0, false, now);
    assert!(node.holds(0));
}

/// T1.111.4 §9.2, §9.3: TRW to who becomes available, again after T26, until TRA.
#[test]
fn a_node_of_ansi_says_that_it_restarts() {
    let timers = RestartTimers {
        collection: Duration::from_secs(60),
        repetition: Some(RestartTimers::REPETITION),
        ..RestartTimers::default()
    };
    let (mut node, now) = (Restart::new(timers, 3), Instant::now());
    assert_eq!(node.available(0, false, now), NONE);
    assert_eq!(node.take_waiting(), [0]);
    assert_eq!(node.wake(), Some(now + RestartTimers::REPETITION));
    assert_eq!(node.available(1, false, now), NONE);
    assert_eq!(node.take_waiting(), [1]);
    let later = now + RestartTimers::REPETITION;
    assert_eq!(node.tick(later), NONE);
    assert_eq!(node.take_waiting(), [0, 1]);
    assert_eq!(node.tick(later), NONE);
    assert_eq!(node.take_waiting(), NONE);
    assert_eq!(node.tick(now + timers.collection), [0, 1]);
    assert_eq!(node.take_waiting(), NONE);
    // A restart that is over says nothing more of itself.
    assert_eq!(node.available(2, false, later), [2]);
    assert_eq!(node.take_waiting(), NONE);
    // Elsewhere there is no TRW.
    let (mut other, timers, now) = restart(2);
    let _ = other.available(0, false, now);
    assert_eq!(other.take_waiting(), NONE);
    assert_eq!(other.wake(), Some(now + timers.collection));
}

/// T1.111.4 §9.3 (T25 begins again with each TRW), §9.4 (one that was not expected).
#[test]
fn a_neighbour_that_says_it_restarts_is_awaited_longer() {
    let (mut node, timers, now) = restart(1);
    let _ = node.available(0, false, now);
    let half = timers.neighbour / 2;
    assert_eq!(node.waits(0, now + half), NONE);
    assert_eq!(node.tick(now + timers.neighbour), NONE);
    assert!(node.holds(0));
    let _ = node.tick(now + half + timers.neighbour);
    assert!(!node.holds(0));
    // T29 runs since the TRA that it got.
    assert_eq!(node.waits(0, now + Duration::from_secs(1)), NONE);
    let after = now + timers.answer_guard;
    assert_eq!(node.waits(0, after), [0]);
    assert_eq!(node.waits(0, after), NONE);
    assert_eq!(node.allowed(0, after), NONE);
    node.unavailable(0, false);
    assert_eq!(node.waits(0, after + timers.answer_guard), NONE);
}

#[test]
fn timers_of_zero_switch_the_procedure_off() {
    let timers = RestartTimers {
        collection: Duration::ZERO,
        neighbour: Duration::ZERO,
        ..RestartTimers::default()
    };
    let (mut node, now) = (Restart::new(timers, 2), Instant::now());
    assert_eq!(node.available(1, false, now), [1]);
    assert!(!node.holds(1) && !node.is_restarting());
    assert_eq!(node.wake(), None);
}

#[test]
fn congestion_is_tested_until_its_level_is_zero() {
    let timers = CongestionTimers::default();
    let (mut all, code) = (Congestion::new(timers, 2), PointCode(7));
    let mut now = Instant::now();
    let tick = |all: &mut Congestion, now| {
        let mut events = Vec::new();
        all.tick(now, &mut events);
        events
    };
    let level = |level| CongestionEvent::Level(code, level);
    let test = |priority| CongestionEvent::Test(code, priority);
    assert_eq!(all.controlled(code, 2, now), Some(level(2)));
    // Further reports: T15 begins again; until a test the worst counts.
    now += timers.start / 2;
    assert_eq!(all.controlled(code, 1, now), None);
    assert_eq!(tick(&mut all, now + timers.start / 2), []);
    now += timers.start;
    assert_eq!(tick(&mut all, now), [test(1)]);
    // The test has met congestion, of another level.
    assert_eq!(all.controlled(code, 3, now), Some(level(3)));
    now += timers.start;
    assert_eq!(tick(&mut all, now), [test(2)]);
    assert_eq!(all.controlled(code, 1, now), Some(level(1)));
    now += timers.start;
    assert_eq!(tick(&mut all, now), [test(0)]);
    now += timers.outcome;
    assert_eq!(tick(&mut all, now), [level(0)]);
    assert_eq!((all.wake(), all.levels().count()), (None, 0));
    // From level 2 down, test by test.
    assert_eq!(all.controlled(code, 2, now), Some(level(2)));
    now += timers.start;
    assert_eq!(tick(&mut all, now), [test(1)]);
    now += timers.outcome;
    assert_eq!(tick(&mut all, now), [level(1), test(0)]);
    now += timers.outcome;
    assert_eq!(tick(&mut all, now), [level(0)]);
}

#[test]
fn congestion_has_a_bound_and_needs_a_level() {
    let (mut all, now) = (Congestion::new(CongestionTimers::default(), 2), Instant::now());
    assert_eq!(all.controlled(PointCode(1), 0, now), None);
    for code in 1..=3 {
        let _ = all.controlled(PointCode(code), 1, now);
    }
    assert_eq!(
        all.levels().collect::<Vec<_>>(),
        [(PointCode(1), 1), (PointCode(2), 1)]
    );
}
