use super::*;

const METRICS: AdmissionMetrics = crate::admission_metrics!("test");

fn meters() -> Meters {
    Meters::new(&METRICS, &telemetry::Registry::new(), 0)
}

fn step(name: &str, set: f64, clear: f64, shares: [f64; 2]) -> Step {
    Step {
        level: Level::new(name, set, clear),
        shares: shares.to_vec(),
        spare: None,
    }
}

fn shedding(steps: Vec<Step>) -> Shedding {
    Shedding {
        waiting: WaitingTime {
            target: settings::Period::from_millis(5),
            interval: settings::Period::from_millis(100),
            ..WaitingTime::default()
        },
        steps,
        classes: 2,
        apart: false,
        spare: 4,
        kept: 0.5,
    }
}

fn levelled() -> Shedder {
    let steps = vec![
        step("L2", 90.0, 80.0, [1.0, 0.5]),
        step("L1", 60.0, 50.0, [0.5, 0.0]),
    ];
    Shedder::new(shedding(steps), meters())
}

#[test]
fn levels_rise_at_set_and_fall_below_clear() {
    let shedder = levelled();
    let start = Instant::now();
    let mut millis = 0;
    let mut settle = |load: f64| {
        for _ in 0..100 {
            millis += 100;
            shedder.feed(load, start + Duration::from_millis(millis));
        }
        shedder.level()
    };
    let levels = [55.0, 65.0, 95.0, 85.0, 79.0, 40.0].map(&mut settle);
    assert_eq!(levels, [0, 1, 2, 2, 1, 0]);
}

#[test]
fn shares_are_those_of_level_and_class_and_spared_priorities_pass() {
    let shedder = levelled();
    let mut now = Instant::now();
    let mut discarded = |class, priority: u8| {
        // The shedder learns the mix of classes from the first messages.
        let mut gone = 0;
        for number in 0..300 {
            now += Duration::from_micros(200);
            let admission = shedder.admit(now, Duration::ZERO, class, &priority);
            gone += u32::from(admission == Admission::Refused && number >= 100);
        }
        gone
    };
    assert_eq!(discarded(0, 24), 0, "no congestion");
    shedder.feed(70.0, Instant::now());
    assert_eq!(
        (discarded(0, 24), discarded(1, 24), discarded(2, 24)),
        (100, 0, 0)
    );
    shedder.feed(100.0, Instant::now() + Duration::from_secs(60));
    assert_eq!((discarded(0, 24), discarded(0, 5)), (200, 200));
    assert_eq!(
        (discarded(0, 4), discarded(0, 0)),
        (0, 0),
        "sparePriority: 4 spares 0 to 4"
    );
}

#[test]
fn a_switched_off_shedder_measures_and_refuses_nothing() {
    let shedder = levelled();
    shedder.enforce(false);
    let mut now = Instant::now();
    for _ in 0..10 {
        now += Duration::from_millis(100);
        shedder.feed(100.0, now);
        for _ in 0..100 {
            now += Duration::from_millis(1);
            let waited = Duration::from_secs(10);
            assert_eq!(shedder.admit(now, waited, 0, &31), Admission::Admitted);
        }
    }
    assert_eq!((shedder.level(), shedder.reduction()), (2, 0.0));
    assert!(shedder.load() > 99.0);
    shedder.enforce(true);
    assert_eq!(shedder.reduction(), 1.0);
}

/// Where requests cost more than they did when there was no overload, the part that is kept for them must not keep the worker
/// from refusing enough.
#[test]
fn what_is_kept_for_requests_leaves_room_for_refusals() {
    let settings = Shedding {
        kept: Shedding::KEPT,
        ..shedding(Vec::new())
    };
    let shedder = Shedder::new(settings, meters());
    let mut now = Instant::now();
    let mut run = |offered: u32, load: f64, waited: u64| {
        for _ in 0..100 {
            for _ in 0..offered {
                now += SAMPLE_INTERVAL / offered;
                shedder.admit(now, Duration::from_millis(waited), 0, &24);
            }
            shedder.feed(load, now);
        }
        shedder.reduction()
    };
    assert_eq!(run(1_000, 60.0, 0), 0.0);
    let refused = run(3_000, 100.0, 200);
    assert!(refused >= 0.85, "{refused} of three times the capacity");
}

/// A worker that other work than requests loads, for this many intervals in each phase, and whose requests are queued
/// afterwards. Returns the share of requests that was refused in each phase. A request takes 1/1000 of an interval.
fn flooded(phases: &[(u32, f64)], offered: u32) -> Vec<[f64; 2]> {
    let shedder = Shedder::new(shedding(Vec::new()), meters());
    let mut now = Instant::now();
    let mut number = 0_u32;
    let phase = |(intervals, other): &(u32, f64)| {
        let (mut all, mut gone) = ([0.0; 2], [0.0; 2]);
        let waited = match *other >= 100.0 {
            true => Duration::from_millis(50),
            false => Duration::ZERO,
        };
        for _ in 0..*intervals {
            let mut spent = 0.0;
            for _ in 0..offered {
                now += SAMPLE_INTERVAL / offered;
                number += 1;
                let important = number.is_multiple_of(4);
                let class = usize::from(!important);
                all[class] += 1.0;
                let priority = if important { 5 } else { 24 };
                match shedder.admit(now, waited, 0, &priority) {
                    Admission::Admitted => spent += 0.1,
                    _ => gone[class] += 1.0,
                }
            }
            shedder.feed((other + spent).min(100.0), now);
        }
        [gone[0] / all[0], gone[1] / all[1]]
    };
    phases.iter().map(phase).collect()
}

#[test]
fn load_that_requests_do_not_cause_costs_them_nothing() {
    // A flood fills the core; at 30 % of the core, requests take less than their part.
    let phases = flooded(&[(50, 0.0), (300, 100.0), (50, 0.0)], 300);
    assert_eq!(phases, [[0.0, 0.0]; 3]);
}

#[test]
fn beside_a_flood_requests_keep_their_part_and_after_it_all() {
    let phases = flooded(&[(50, 0.0), (300, 100.0), (10, 0.0), (50, 0.0)], 900);
    assert_eq!(phases[0], [0.0, 0.0]);
    // 50 % of the core for 90 %: four in nine go, none of the important quarter.
    let [important, rest] = phases[1];
    assert!(important < 0.02 && (0.5..=0.65).contains(&rest), "{phases:?}");
    // After a second the shedder admits all requests.
    assert!(phases[2][1] < 0.3 && phases[3] == [0.0, 0.0], "{phases:?}");
}

#[test]
fn the_alarm_and_the_metrics_follow_the_refusals() {
    let registry = telemetry::Registry::new();
    let alarms = Alarms::new(&registry);
    let shedder = Shedder::new(
        Shedding {
            kept: 0.0,
            ..shedding(Vec::new())
        },
        Meters::new(&METRICS, &registry, 3),
    );
    let mut now = Instant::now();
    let mut run = |seconds: u32, waited: u64| {
        for _ in 0..seconds * 10 {
            for _ in 0..100 {
                now += Duration::from_millis(1);
                shedder.admit(now, Duration::from_millis(waited), 0, &24);
            }
            shedder.sample(now, 3, &alarms);
        }
        alarms.active().len()
    };
    assert_eq!(run(1, 0), 0);
    assert_eq!(run(1, 20), 1);
    assert!(shedder.level() == 1 && shedder.load() > 80.0);
    let text = registry.render();
    for line in [
        r#"signalbox_test_waiting_seconds_count{worker="3"} 2000"#,
        r#"signalbox_test_admission_threshold{worker="3"} 24"#,
        r#"signalbox_test_overload_refusals_total{priority="24"}"#,
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert_eq!(run(3, 0), 0);
    assert!(
        registry
            .render()
            .contains(r#"signalbox_test_admission_threshold{worker="3"} 32"#)
    );
}

#[test]
fn an_event_loop_that_is_late_makes_requests_wait() {
    let lag = Lag::default();
    let start = Instant::now();
    let at = |millis| start + Duration::from_millis(millis);
    let waited = |now, woke| lag.waited(at(now), Some(at(woke))).as_millis();
    assert_eq!(lag.waited(at(0), None), Duration::ZERO, "no worker");
    // Busy since 2: the timer of 10 runs at 40.
    assert_eq!(lag.expect(at(0), true, SAMPLE_INTERVAL), at(10));
    assert_eq!((waited(8, 2), waited(25, 2)), (0, 15));
    lag.arrived(at(40), Some(at(2)));
    assert_eq!(lag.expect(at(40), true, SAMPLE_INTERVAL), at(50));
    assert_eq!((waited(45, 2), waited(90, 2)), (30, 40));
    // The loop has idled since: a request that arrives now was not queued.
    assert_eq!(waited(91, 90), 1);
    // It idled when the timer was due, and the system woke it late.
    lag.arrived(at(95), Some(at(94)));
    assert_eq!(waited(96, 94), 1);
}
