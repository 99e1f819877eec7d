//! Properties of the controller for arbitrary requests.

use std::time::{Duration, Instant};

use overload::{Admission, AdmissionController, PRIORITIES, WaitingTime};
use proptest::prelude::*;

/// Microseconds until the next request, its waiting time in microseconds, its priority.
fn requests() -> impl Strategy<Value = Vec<(u64, u64, u8)>> {
    let waits = prop_oneof![0_u64..5_000, 0_u64..100_000, 0_u64..10_000_000];
    proptest::collection::vec((0_u64..30_000, waits, any::<u8>()), 1..800)
}

proptest! {
    /// The controller admits again all within two seconds without a request, and no time makes it lose its bounds.
    #[test]
    fn silence_ends_every_refusal(requests in requests()) {
        let mut controller = AdmissionController::new(WaitingTime::default(), 2, Some(3));
        let mut now = Instant::now() + Duration::from_secs(60);
        for (number, (step, waited, priority)) in requests.into_iter().enumerate() {
            now += Duration::from_micros(step);
            // Clocks of other cores may be a little behind.
            let read = now.checked_sub(Duration::from_micros(waited % 7)).unwrap_or(now);
            let waited = Duration::from_micros(waited);
            let admission = controller.admit(read, waited, number % 3, &priority);
            prop_assert!((0.0..=1.0).contains(&controller.refused_share()));
            prop_assert!((0.0..=100.0).contains(&controller.load()));
            let old = waited >= WaitingTime::default().age_limit.duration();
            prop_assert_eq!(admission == Admission::Late, old);
            // Spared priorities and requests without a class are not refused.
            prop_assert!(admission != Admission::Refused || (priority > 3 && number % 3 < 2));
        }
        for _ in 0..20 {
            now += Duration::from_millis(100);
            controller.tick(now);
        }
        prop_assert_eq!(controller.refused_share(), 0.0);
        prop_assert_eq!(controller.threshold(0), PRIORITIES);
        prop_assert_eq!(controller.admit(now, Duration::ZERO, 0, &31_u8), Admission::Admitted);
    }

    /// Nothing is refused while no request waits longer than the target.
    #[test]
    fn short_waits_refuse_nothing(requests in requests()) {
        let mut controller = AdmissionController::new(WaitingTime::default(), 1, None);
        let mut now = Instant::now();
        for (step, waited, priority) in requests {
            now += Duration::from_micros(step);
            let waited = Duration::from_micros(waited % 5_001);
            prop_assert_eq!(controller.admit(now, waited, 0, &priority), Admission::Admitted);
        }
    }

    /// At one time no request is refused while a less important one of its class would be admitted.
    #[test]
    fn the_threshold_keeps_the_order(requests in requests(), share in 0.0..1.0) {
        let mut controller = AdmissionController::new(WaitingTime::default(), 1, None);
        controller.impose(0, share);
        let mut now = Instant::now();
        for (step, waited, priority) in requests {
            now += Duration::from_micros(step);
            controller.admit(now, Duration::from_micros(waited), 0, &priority);
            let edge = controller.threshold(0);
            let mut probe = controller.clone();
            for priority in 0..PRIORITIES as u8 {
                let admission = probe.admit(now, Duration::ZERO, 0, &priority);
                // The probe learns, so the edge may move by what it adds.
                let now_at = probe.threshold(0).min(edge);
                prop_assert!(usize::from(priority) >= now_at || admission == Admission::Admitted);
            }
        }
    }

    /// An imposed share goes to the message, whatever the mix.
    #[test]
    fn an_imposed_share_is_kept(share in 0.05..0.95, mix in proptest::collection::vec(1_usize..9, 4)) {
        let mut controller = AdmissionController::new(WaitingTime::default(), 1, None);
        controller.impose(0, share);
        let mut now = Instant::now();
        let (mut gone, mut all) = (0, 0);
        for round in 0..600 {
            for (priority, count) in [2_u8, 8, 20, 30].into_iter().zip(&mix) {
                for _ in 0..*count {
                    now += Duration::from_micros(100);
                    let refused = controller.admit(now, Duration::ZERO, 0, &priority) == Admission::Refused;
                    if round >= 100 {
                        gone += u32::from(refused);
                        all += 1;
                    }
                }
            }
        }
        let is = f64::from(gone) / f64::from(all);
        prop_assert!((is - share).abs() < 0.08, "{is} instead of {share}");
    }
}
