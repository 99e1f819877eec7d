//! How many requests a worker sends to other functions in a second.

use std::cell::RefCell;
use std::time::Instant;

use overload::{Rate, RateLimiter};

/// A worker's share of a rate; without one everything may be sent.
#[derive(Debug, Default)]
pub(crate) struct Pace(Option<RefCell<RateLimiter>>);

impl Pace {
    /// `per_second`: of all workers; 0: no bound.
    pub(crate) fn new(per_second: u32, workers: usize) -> Self {
        let rate = f64::from(per_second) / workers.max(1) as f64;
        Self((per_second > 0).then(|| RefCell::new(RateLimiter::new(Rate::per_second(rate)))))
    }

    /// Whether one more request may be sent now.
    pub(crate) fn allows(&self) -> bool {
        let allow = |rate: &RefCell<RateLimiter>| rate.borrow_mut().allow(Instant::now());
        self.0.as_ref().is_none_or(allow)
    }
}
