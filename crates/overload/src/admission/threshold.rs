//! The priority below which requests of a class are refused.

use crate::discard::{Discard, PRIORITIES};

/// Time after which a message has lost most of its weight in the mix of priorities, in seconds.
const MEMORY: f64 = 0.5;
/// Number of messages after which the threshold follows the mix; it also follows after each sample.
const LEARNED: u32 = 64;

/// Refuses a share of a class: less important requests than those of the edge priority all, those of the edge priority in
/// part and evenly, more important ones not at all.
#[derive(Clone, Debug)]
pub(super) struct Threshold {
    /// Messages offered by priority; old ones fade.
    mix: [f64; PRIORITIES],
    learned: u32,
    /// Share that is refused.
    share: f64,
    edge: usize,
    /// Share of the requests of the edge priority that is refused.
    part: f64,
    spread: Discard,
    /// Priorities below this one, which are more important, are never refused.
    spared: usize,
}

impl Threshold {
    pub(super) fn new(spare: Option<u8>) -> Self {
        Self {
            mix: [0.0; PRIORITIES],
            learned: 0,
            share: 0.0,
            edge: PRIORITIES,
            part: 0.0,
            spread: Discard::new(),
            spared: spare.map_or(0, |spare| usize::from(spare) + 1),
        }
    }

    pub(super) fn spare(&mut self, spare: Option<u8>) {
        self.spared = spare.map_or(0, |spare| usize::from(spare) + 1);
    }

    /// Counts a request that is offered.
    pub(super) fn learn(&mut self, priority: u8) {
        if let Some(count) = self.mix.get_mut(usize::from(priority).min(PRIORITIES - 1)) {
            *count += 1.0;
        }
        self.learned += 1;
        if self.learned >= LEARNED {
            self.place();
        }
    }

    /// Whether a request of this priority is refused.
    pub(super) fn refuses(&mut self, priority: u8) -> bool {
        let priority = usize::from(priority).min(PRIORITIES - 1);
        if priority < self.spared || priority < self.edge {
            return false;
        }
        priority > self.edge || self.spread.next(self.part)
    }

    /// Refuses this share (0 … 1) from now on; `passed` seconds have passed since the last call.
    pub(super) fn set(&mut self, share: f64, passed: f64) {
        self.share = share;
        let stays = (-passed / MEMORY).exp();
        self.mix.iter_mut().for_each(|count| *count *= stays);
        self.place();
    }

    /// The most important priority of which all or some are refused; [`PRIORITIES`]: none.
    pub(super) fn edge(&self) -> usize {
        match self.edge.max(self.spared) {
            edge if self.share > 0.0 => edge.min(PRIORITIES),
            _ => PRIORITIES,
        }
    }

    fn place(&mut self) {
        self.learned = 0;
        let mut due = self.share * self.mix.iter().sum::<f64>();
        self.edge = PRIORITIES;
        self.part = 0.0;
        if self.share <= 0.0 || due <= 0.0 {
            return;
        }
        if self.share >= 1.0 {
            self.edge = 0;
            self.part = 1.0;
            return;
        }
        for (priority, count) in self.mix.iter().enumerate().skip(self.spared).rev() {
            // A priority that has faded from the mix cannot be the edge: when its messages return, none would be refused.
            if *count < 1e-3 {
                continue;
            }
            self.edge = priority;
            self.part = (due / count).min(1.0);
            due -= count;
            if due <= 0.0 {
                return;
            }
        }
    }
}
