//! Pseudo-random numbers that spread load: cheap, one generator per thread, not for secrets.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// A generator (xorshift64*, Vigna 2016). Each worker has its own, so that none waits for another.
#[derive(Debug)]
pub struct Random(Cell<u64>);

impl Default for Random {
    fn default() -> Self {
        Self::seeded(RandomState::new().hash_one(0))
    }
}

impl Random {
    /// A generator of the same numbers for the same seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        // Zero is the one state that it would never leave.
        Self(Cell::new(seed.max(1)))
    }

    /// The next number, uniform over all but zero.
    #[inline]
    pub fn next(&self) -> u64 {
        let mut state = self.0.get();
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.0.set(state);
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// The next number of at least 0 and below 1.
    #[inline]
    pub fn fraction(&self) -> f64 {
        // 53 bits are what a double holds.
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_spread_evenly() {
        let random = Random::seeded(0);
        let mut tenths = [0_u32; 10];
        for _ in 0..10_000 {
            tenths[(random.fraction() * 10.0) as usize] += 1;
        }
        assert!(
            tenths.iter().all(|count| (800..1_200).contains(count)),
            "{tenths:?}"
        );
    }
}
