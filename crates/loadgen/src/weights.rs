//! Drawing by weight in constant time (Vose's alias method).

use rand::Rng;

/// Numbers from 0 on, each with a weight.
#[derive(Clone, Debug)]
pub struct Weights {
    keep: Vec<f64>,
    alias: Vec<u32>,
}

impl Weights {
    /// From the weight of each number. Without any weight above 0, all are alike.
    #[must_use]
    pub fn new(weights: impl IntoIterator<Item = f64>) -> Self {
        let mut keep: Vec<f64> = weights.into_iter().map(|w| w.max(0.0)).collect();
        let total: f64 = keep.iter().sum();
        let count = keep.len();
        for weight in &mut keep {
            *weight = if total > 0.0 {
                *weight * count as f64 / total
            } else {
                1.0
            };
        }
        let mut alias: Vec<u32> = (0..count as u32).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..count).partition(|at| keep[*at] < 1.0);
        while let (Some(under), Some(over)) = (small.pop(), large.last().copied()) {
            alias[under] = over as u32;
            keep[over] -= 1.0 - keep[under];
            if keep[over] < 1.0 {
                large.pop();
                small.push(over);
            }
        }
        // What is left differs from 1 only by rounding.
        for at in small.into_iter().chain(large) {
            keep[at] = 1.0;
        }
        Self { keep, alias }
    }

    /// Draws a number; 0 when there is none.
    pub fn draw(&self, random: &mut impl Rng) -> usize {
        if self.keep.is_empty() {
            return 0;
        }
        let at = random.random_range(0..self.keep.len());
        if random.random::<f64>() < self.keep[at] {
            at
        } else {
            self.alias[at] as usize
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    #[test]
    fn numbers_come_as_often_as_their_weights_say() {
        let weights = [0.0, 1.0, 5.0, 0.1, 93.9];
        let drawn = Weights::new(weights);
        let mut random = SmallRng::seed_from_u64(3);
        let mut counts = [0; 5];
        (0..1_000_000).for_each(|_| counts[drawn.draw(&mut random)] += 1);
        assert_eq!(counts[0], 0);
        for (count, weight) in counts.into_iter().zip(weights) {
            assert!((f64::from(count) / 10_000.0 - weight).abs() < 0.1, "{counts:?}");
        }
    }
}
