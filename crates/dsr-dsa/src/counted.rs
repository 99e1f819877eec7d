//! Counted memory: what the table of subscribers takes, as the allocator sees it.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::{Duration, Instant};

use dsr_app::Digits;

use crate::network::Network;
use crate::record::Node;
use crate::states::States;

thread_local! {
    /// Octets that this thread holds.
    static HELD: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: each call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get() + layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as isize);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Parts of the table double as they fill, so that more of them take no more octets each: 5,000,000 take 42.
const ROAMERS: u64 = 250_000;

#[test]
fn roamers_take_at_most_64_octets_each_at_any_time() {
    let before = HELD.get();
    let states = States::default();
    let network = Network::parse("20810");
    let bounds = (2 * ROAMERS as usize, Duration::from_secs(24 * 3600));
    let seconds = states.seconds(Instant::now());
    let (mme, hss) = (states.name(b"mme1.example"), states.name(b"hss.example"));
    let (mut imsi, mut worst) = (*b"262010000000000", 0.0_f64);
    for number in 0..ROAMERS {
        let mut rest = number;
        for digit in imsi[5..].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        let imsi = Digits::parse(&imsi).unwrap();
        states.change(&imsi, seconds, bounds, |record| {
            record.set(Node::Mme, mme);
            record.set(Node::Hss, hss);
            record.set_visited(network);
            record.set_authenticated(network);
        });
        if number >= 25_000 && number % 500 == 0 {
            worst = worst.max((HELD.get() - before) as f64 / number as f64);
        }
    }
    let held = (HELD.get() - before) as f64;
    let (entries, bytes) = states.size();
    assert_eq!(entries as u64, ROAMERS);
    assert!(worst <= 64.0, "{worst} octets each");
    assert!(
        (held - bytes as f64).abs() < held * 0.05,
        "{held} held, {bytes} reported"
    );
}
