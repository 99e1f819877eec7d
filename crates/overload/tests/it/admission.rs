//! A worker that is offered more than it can serve.

use std::time::{Duration, Instant};

use overload::{Admission, AdmissionController, WaitingTime};

use crate::queue::{Loop, Outcome, Phase, SHOWN, Worker, run};

fn controller() -> AdmissionController {
    AdmissionController::new(narrow(), 1, None)
}

fn simulate(worker: &Worker, phases: &[Phase]) -> Outcome {
    run(worker, phases, &mut controller(), 7)
}

impl Worker {
    /// Served in this time, as a part of what the worker can serve.
    fn goodput(&self, outcome: &Outcome, from: f64, to: f64) -> f64 {
        f64::from(outcome.between(from, to).served) * self.service / (to - from)
    }

    /// What is left to serve when the rest of this load is refused.
    fn most(&self, load: f64) -> f64 {
        ((1.0 - self.refusal * load) / (1.0 - self.refusal)).clamp(0.0, load)
    }
}

const LOOPS: [Loop; 2] = [Loop::Exact, Loop::Turns(2_000)];

#[test]
fn a_load_below_the_capacity_is_served_whole() {
    for takes in LOOPS {
        for (service, load) in [(15e-6, 0.95), (50e-6, 0.95), (200e-6, 0.9), (1e-3, 0.5)] {
            let worker = Worker {
                service,
                takes,
                ..Worker::default()
            };
            let all = simulate(&worker, &[Phase::new(10.0, load)]).between(0.0, 10.0);
            assert_eq!(all.refused, 0, "{takes:?} {service} {load}");
        }
    }
}

#[test]
fn overload_costs_only_the_refusals_and_requests_wait_for_the_target() {
    for takes in LOOPS {
        for refusal in [0.05, 0.2] {
            for load in [1.05, 1.2, 1.5, 3.0] {
                let worker = Worker {
                    refusal,
                    takes,
                    ..Worker::default()
                };
                let outcome = simulate(&worker, &[Phase::new(4.0, load)]);
                // The first second is that in which the controller converges.
                for from in [0.0, 1.0, 2.0, 3.0] {
                    let (goodput, most) = (worker.goodput(&outcome, from, from + 1.0), worker.most(load));
                    assert!(
                        goodput >= 0.95 * most,
                        "{takes:?} {refusal} {load}: {goodput} of {most}"
                    );
                }
                let longest = outcome.between(1.0, 4.0).longest;
                assert!(longest < 0.025, "{takes:?} {refusal} {load}: waits {longest} s");
            }
        }
    }
}

#[test]
fn ten_times_the_capacity_is_refused_and_served_where_there_is_time() {
    let worker = Worker {
        refusal: 0.05,
        ..Worker::default()
    };
    let outcome = simulate(&worker, &[Phase::new(4.0, 10.0)]);
    let goodput = worker.goodput(&outcome, 1.0, 4.0);
    assert!(goodput >= 0.9 * worker.most(10.0), "{goodput}");
    let longest = outcome.between(1.0, 4.0).longest;
    assert!(longest < 0.025, "{longest}");
    // Refusals that cost twice the core leave what sockets bound: the worker serves on, and is back within a second.
    let worker = Worker {
        room: 4_000,
        ..Worker::default()
    };
    let outcome = simulate(&worker, &[Phase::new(4.0, 10.0), Phase::new(3.0, 0.5)]);
    assert!(worker.goodput(&outcome, 1.0, 4.0) > 0.02);
    assert_eq!(outcome.between(5.0, 7.0).refused, 0);
}

#[test]
fn after_a_burst_all_are_served_within_a_second() {
    for takes in LOOPS {
        for refusal in [0.05, 0.2] {
            let worker = Worker {
                refusal,
                takes,
                ..Worker::default()
            };
            let phases = [Phase::new(1.0, 0.5), Phase::new(5.0, 3.0), Phase::new(3.0, 0.5)];
            let outcome = simulate(&worker, &phases);
            assert_eq!(outcome.between(0.0, 1.0).refused, 0);
            assert_eq!(outcome.between(7.0, 9.0).refused, 0, "{takes:?} {refusal}");
            let first = outcome.between(6.0, 7.0);
            assert!(
                first.refused * 5 < first.offered,
                "{takes:?} {refusal}: {first:?}"
            );
        }
    }
}

#[test]
fn another_process_on_the_core_halves_the_capacity() {
    for takes in LOOPS {
        let worker = Worker {
            takes,
            ..Worker::default()
        };
        let slow = |seconds, load| Phase {
            slow: 2.0,
            ..Phase::new(seconds, load)
        };
        let phases = [
            Phase::new(2.0, 0.7),
            slow(4.0, 0.7),
            Phase::new(2.0, 0.7),
            slow(4.0, 0.45),
            slow(4.0, 1.5),
        ];
        let outcome = simulate(&worker, &phases);
        assert_eq!(outcome.between(0.0, 2.0).refused, 0);
        // 1.4 times what is left, then 3 times.
        for (from, to, load) in [(3.0, 6.0, 1.4), (13.0, 16.0, 3.0)] {
            let goodput = 2.0 * worker.goodput(&outcome, from, to);
            assert!(goodput >= 0.95 * worker.most(load), "{takes:?} {load}: {goodput}");
            assert!(outcome.between(from, to).longest < 0.04);
        }
        assert_eq!(outcome.between(7.0, 12.0).refused, 0, "half a core is enough");
    }
}

#[test]
fn time_slices_of_another_process_are_no_overload() {
    // 10 ms of every 20 ms go to the other process.
    let worker = Worker {
        pauses: (0..500).map(|slice| (0.02 * f64::from(slice), 0.01)).collect(),
        ..Worker::default()
    };
    let all = simulate(&worker, &[Phase::new(10.0, 0.4)]).between(0.0, 10.0);
    assert_eq!(all.refused, 0);
}

#[test]
fn a_pause_of_the_process_costs_no_second_of_refusals() {
    for takes in [Loop::Exact, Loop::Turns(500)] {
        // Of the requests of a second. A loop knows too little to refuse none: it takes its own long turn for waiting.
        for (load, most) in [(0.5, 0.07), (0.8, 0.07), (0.9, 0.15)] {
            let worker = Worker {
                takes,
                pauses: vec![(1.0, 0.2)],
                ..Worker::default()
            };
            let outcome = simulate(&worker, &[Phase::new(4.0, load)]);
            let refused = outcome.between(0.0, 4.0).refused;
            let second = load / worker.service;
            assert!(f64::from(refused) <= most * second, "{takes:?} {load}: {refused}");
            assert!(refused == 0 || takes != Loop::Exact || load > 0.5);
            assert_eq!(outcome.between(2.5, 4.0).refused, 0, "{takes:?} {load}");
        }
    }
}

#[test]
fn single_slow_wakeups_are_no_overload() {
    // A request each 5 ms, of which each has waited longer than the target; then one that has waited for a second.
    let mut controller = controller();
    let start = std::time::Instant::now();
    let millis = std::time::Duration::from_millis;
    for number in 0..1_000 {
        let now = start + millis(40 * number);
        let admission = controller.admit(now, millis(8), 0, &31_u8);
        assert_eq!(admission, overload::Admission::Admitted, "{number}");
    }
    let now = start + millis(50_000);
    assert_eq!(
        controller.admit(now, millis(1_000), 0, &31_u8),
        overload::Admission::Admitted
    );
    assert_eq!(controller.refused_share(), 0.0);
}

#[test]
fn the_least_important_are_refused_also_when_the_mix_changes() {
    let worker = Worker {
        refusal: 0.1,
        ..Worker::default()
    };
    let mixed = |mix: &[(u8, u32)]| Phase {
        mix: mix.to_vec(),
        ..Phase::new(2.0, 2.0)
    };
    let phases = [
        mixed(&[(4, 1), (12, 1), (20, 1), (24, 1)]),
        mixed(&[(4, 1), (24, 9)]),
        mixed(&[(4, 2), (12, 8)]),
        mixed(&[(4, 1), (12, 1), (20, 1), (24, 1)]),
    ];
    let outcome = simulate(&worker, &phases);
    for (number, phase) in phases.iter().enumerate() {
        let from = 2.0 * number as f64;
        // The threshold has half a second to follow.
        let settled = outcome.between(from + 0.5, from + 2.0);
        let goodput = worker.goodput(&outcome, from + 0.5, from + 2.0);
        assert!(goodput >= 0.9 * worker.most(2.0), "{number}: {goodput}");
        let present: Vec<_> = SHOWN
            .iter()
            .zip(settled.by_priority)
            .filter(|(priority, _)| phase.mix.iter().any(|(one, _)| one == *priority))
            .collect();
        for pair in present.windows(2) {
            let [(_, [_, refused]), (_, [served, worse])] = pair else {
                continue;
            };
            // Some of a priority are refused only where nearly all of the less important ones are.
            let order = refused * 20 <= served + worse || served * 5 <= served + worse;
            assert!(order, "{number}: {present:?}");
        }
        assert_eq!(
            settled.by_priority[0][1], 0,
            "{number}: the most important are served"
        );
    }
}

/// A worker with two listeners takes turns with their queues: one that is always empty does not hide the other.
#[test]
fn a_queue_that_grows_beside_an_empty_one_is_overload() {
    let mut apart = AdmissionController::new(narrow(), 2, None).with_queue_of_each_class();
    let mut as_one = AdmissionController::new(narrow(), 2, None);
    let mut now = Instant::now();
    for millis in 0..1_000 {
        now += Duration::from_millis(1);
        for controller in [&mut apart, &mut as_one] {
            controller.admit(now, Duration::from_millis(millis), 0, &24_u8);
            controller.admit(now, Duration::ZERO, 1, &24_u8);
        }
    }
    assert!(apart.refused_share() > 0.9, "{}", apart.refused_share());
    assert_eq!(as_one.refused_share(), 0.0, "what one queue says of two");
    // Both classes give, the least important requests first.
    let mut refused = |class, priority: u8| {
        let outcomes = (0..100).map(|_| apart.admit(now, Duration::ZERO, class, &priority));
        outcomes.filter(|outcome| *outcome == Admission::Refused).count()
    };
    assert!(refused(0, 24) > 90 && refused(1, 24) > 90);
    for _ in 0..20 {
        now += Duration::from_millis(100);
        apart.tick(now);
    }
    assert_eq!(apart.refused_share(), 0.0, "both queues are empty");
}

/// The worker is busy with one listener for some samples, then with the other: no request of a queue comes while it serves the
/// other one, and both grow.
#[test]
fn queues_that_take_turns_of_several_samples_are_overload() {
    let mut controller = AdmissionController::new(narrow(), 2, None).with_queue_of_each_class();
    let mut now = Instant::now();
    for millis in 0..1_000_u64 {
        now += Duration::from_millis(1);
        let waited = Duration::from_millis(60 + millis / 10);
        controller.admit(now, waited, (millis / 40 % 2) as usize, &24_u8);
    }
    assert!(controller.refused_share() > 0.9, "{}", controller.refused_share());
    // One of them has no requests any longer, the other one is served at once.
    for _ in 0..2_000 {
        now += Duration::from_millis(1);
        controller.admit(now, Duration::ZERO, 1, &24_u8);
    }
    assert_eq!(controller.refused_share(), 0.0, "nothing waits");
}

/// What is admitted because a long queue drains fills it again.
#[test]
fn a_long_queue_that_drains_is_no_reason_to_admit_more_before_it_has() {
    let mut controller = AdmissionController::new(WaitingTime::default(), 1, None);
    let began = Instant::now();
    let mut at = Duration::ZERO;
    let mut refused_while = |waits: &mut dyn Iterator<Item = u64>| {
        for micros in waits {
            at += Duration::from_millis(1);
            controller.admit(began + at, Duration::from_micros(micros), 0, &16);
        }
        controller.refused_share()
    };
    let grown = refused_while(&mut (0..500_000).step_by(1_000));
    assert!(grown > 0.9, "{grown}");
    let drained = refused_while(&mut (100_000..500_000).rev().step_by(1_500));
    assert!(drained >= grown, "{drained} after {grown}");
    let empty = refused_while(&mut std::iter::repeat_n(0, 500));
    assert_eq!(empty, 0.0);
}

/// A queue that has emptied in a gap of what the peers send fills again at once: it does not count as a burst, which starts with an interval in
/// which all are served, the less important ones before the more important ones of the rest of the time.
#[test]
fn gaps_between_the_peers_bursts_change_the_order_little() {
    for takes in [Loop::Exact, Loop::Turns(500)] {
        let worker = Worker {
            refusal: 0.05,
            takes,
            held: (1..20).map(|half| (0.5 * f64::from(half), 0.06)).collect(),
            ..Worker::default()
        };
        let mut controller = AdmissionController::new(WaitingTime::default(), 1, None);
        let outcome = run(&worker, &[Phase::new(10.0, 1.5)], &mut controller, 7);
        let all = outcome.between(1.0, 10.0);
        let served = |priority: usize| {
            let [served, refused] = all.by_priority[priority];
            f64::from(served) / f64::from(served + refused)
        };
        let goodput = worker.goodput(&outcome, 1.0, 10.0);
        assert!(goodput > 0.85 * worker.most(1.5), "{takes:?}: {goodput}");
        assert!(served(0) > 0.95, "{takes:?}: {}", served(0));
        assert!(served(3) < 0.1, "{takes:?}: {}", served(3));
        assert!(all.longest < 0.08, "{takes:?}: {} s", all.longest);
    }
}

/// What was learned of an overload ends with the refusals that an operator switches off: a burst is a burst then.
#[test]
fn a_burst_after_refusals_were_switched_off_is_served() {
    type Switch = fn(&mut AdmissionController);
    let switches: [Switch; 2] = [
        |one| {
            one.enforce(false);
            one.enforce(true);
        },
        |one| {
            one.reconfigure(WaitingTime::off(), None);
            one.reconfigure(narrow(), None);
        },
    ];
    for (number, switch) in switches.into_iter().enumerate() {
        let mut controller = controller();
        let mut now = Instant::now();
        let mut wait = |controller: &mut AdmissionController, millis: &mut dyn Iterator<Item = u64>| {
            for millis in millis {
                now += Duration::from_millis(1);
                controller.admit(now, Duration::from_millis(millis), 0, &24_u8);
            }
            controller.refused_share()
        };
        assert!(wait(&mut controller, &mut (0..500)) > 0.5, "{number}");
        switch(&mut controller);
        let refused = wait(&mut controller, &mut (0..60));
        assert_eq!(refused, 0.0, "{number}: a burst is shorter than the interval");
    }
}

fn narrow() -> WaitingTime {
    WaitingTime {
        target: settings::Period::from_millis(5),
        interval: settings::Period::from_millis(100),
        ..WaitingTime::default()
    }
}
