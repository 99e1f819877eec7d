//! Selection of the messages that make up a share to be discarded.

/// Message priorities of TS 29.500 §6.8.4 and the DRMP of RFC 7944, as far as both go: 0 is the most
/// important, 31 the least.
pub const PRIORITIES: usize = 32;

/// Discards an even share: at 25 % every fourth message, not four in a row now and then. One per class of
/// messages, so that each class gives its share.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard {
    owed: f64,
}

impl Discard {
    /// Creates a discard without a remainder.
    #[must_use]
    pub const fn new() -> Self {
        Self { owed: 0.0 }
    }

    /// Whether the next message is discarded at this share (0 … 1).
    pub fn next(&mut self, share: f64) -> bool {
        if share <= 0.0 || share.is_nan() {
            return false;
        }
        if share >= 1.0 {
            return true;
        }
        self.owed += share;
        if self.owed >= 1.0 {
            self.owed -= 1.0;
            return true;
        }
        false
    }
}

/// Discards the least important first: of all messages the given share, taken from the lowest priorities.
///
/// It learns what shares the priorities have by counting them, old counts fading; the priorities that fit
/// into the share go entirely, the one at its edge in part, evenly.
#[derive(Clone, Debug)]
pub struct PriorityDiscard {
    counts: [f64; PRIORITIES],
    total: f64,
    until_fading: u32,
    edge: Discard,
    /// Messages at least this important are never discarded.
    spare: u8,
}

/// Number of messages after which all counts are halved: the counts follow a change of the mix within a few thousand
/// messages, which under overload is a fraction of a second.
const FADING: u32 = 1024;

impl PriorityDiscard {
    /// Messages of priority 0 to `spare` are never discarded; `None`: any may be.
    #[must_use]
    pub fn new(spare: Option<u8>) -> Self {
        Self {
            counts: [0.0; PRIORITIES],
            total: 0.0,
            until_fading: FADING,
            edge: Discard::new(),
            spare: spare.map_or(0, |spare| spare.saturating_add(1)),
        }
    }

    /// Whether the next message, of this priority, is discarded when this share (0 … 1) of all is.
    pub fn next(&mut self, priority: u8, share: f64) -> bool {
        let priority = usize::from(priority).min(PRIORITIES - 1);
        self.learn(priority);
        if share <= 0.0 || share.is_nan() || priority < usize::from(self.spare) {
            return false;
        }
        // The part of the share that less important messages cover.
        let worse: f64 = self.counts.iter().skip(priority + 1).sum();
        let mine = self.counts.get(priority).copied().unwrap_or_default();
        let left = share.min(1.0) * self.total - worse;
        if left <= 0.0 {
            return false;
        }
        if left >= mine {
            return true;
        }
        self.edge.next(left / mine)
    }

    fn learn(&mut self, priority: usize) {
        if let Some(count) = self.counts.get_mut(priority) {
            *count += 1.0;
            self.total += 1.0;
        }
        self.until_fading -= 1;
        if self.until_fading == 0 {
            self.until_fading = FADING;
            self.counts.iter_mut().for_each(|count| *count /= 2.0);
            self.total = self.counts.iter().sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_share_is_spread_evenly() {
        let mut discard = Discard::new();
        let pattern: Vec<bool> = (0..8).map(|_| discard.next(0.25)).collect();
        assert_eq!(pattern, [false, false, false, true, false, false, false, true]);
        assert!(!Discard::new().next(0.0) && !Discard::new().next(f64::NAN) && Discard::new().next(1.0));
    }

    proptest! {
        #[test]
        fn any_share_is_kept_to_the_message(share in 0.0..1.0, count in 1_u32..5000) {
            let mut discard = Discard::new();
            let gone = (0..count).filter(|_| discard.next(share)).count() as f64;
            prop_assert!((gone - share * f64::from(count)).abs() <= 1.0 + 1e-6);
        }

        /// Of a mix of priorities the share goes, and no more important message goes while a less important
        /// one of the mix stays.
        #[test]
        fn the_least_important_go_first(
            mix in proptest::collection::vec(1_usize..20, 4),
            share in 0.0..1.0,
        ) {
            let priorities = [1_u8, 8, 16, 24];
            let mut discard = PriorityDiscard::new(None);
            let mut gone = [0_usize; 4];
            let rounds = 400;
            for round in 0..2 * rounds {
                for (class, count) in mix.iter().enumerate() {
                    for _ in 0..*count {
                        let discarded = discard.next(priorities[class], share);
                        // The first half is for learning.
                        if round >= rounds && discarded {
                            gone[class] += 1;
                        }
                    }
                }
            }
            let total: usize = mix.iter().sum::<usize>() * rounds;
            let all: usize = gone.iter().sum();
            prop_assert!((all as f64 / total as f64 - share).abs() < 0.06, "{all} of {total} at {share}");
            for better in 0..3 {
                if gone[better] > rounds * mix[better] / 5 {
                    let (worse, sent) = (gone[better + 1], rounds * mix[better + 1]);
                    prop_assert!(worse * 10 >= sent * 8, "{gone:?} of {mix:?}");
                }
            }
        }

        #[test]
        fn spared_priorities_never_go(priority in 0_u8..=255, share in 0.0..2.0) {
            let mut discard = PriorityDiscard::new(Some(4));
            let gone = (0..100).any(|_| discard.next(priority, share));
            prop_assert!(!gone || priority > 4);
        }
    }
}
