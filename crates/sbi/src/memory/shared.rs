//! Segments that more than one answer may hold.

use ahash::AHashMap;
use sbi_proto::Body;
use smallvec::SmallVec;

/// Smaller segments count for each answer that holds them: that is cheaper than following them.
const FOLLOWED_MIN: usize = 8 * 1_024;

/// The part of an answer in segments that others may hold: where each lies, and its length.
#[derive(Debug, Default)]
pub(crate) struct Shares(SmallVec<[(usize, usize); 2]>);

impl Shares {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(|(_, len)| len).sum()
    }
}

/// Segments that answers hold, by where they lie: how many hold each, and its length.
#[derive(Debug, Default)]
pub(super) struct Segments(AHashMap<usize, (u32, usize)>);

impl Segments {
    /// Bytes that are the body's alone, its part in segments that others may hold as well, and how many bytes
    /// of these were not held before.
    pub(super) fn hold(&mut self, body: &Body) -> (usize, Shares, usize) {
        let (mut own, mut shares, mut more) = (0, Shares::default(), 0);
        for segment in body.segments() {
            if segment.len() < FOLLOWED_MIN || segment.is_unique() {
                own += segment.len();
                continue;
            }
            let at = segment.as_ptr() as usize;
            let entry = self.0.entry(at).or_insert((0, segment.len()));
            if entry.0 == 0 {
                more += entry.1;
            }
            entry.0 += 1;
            shares.0.push((at, segment.len()));
        }
        (own, shares, more)
    }

    /// How many bytes are not held any longer.
    pub(super) fn let_go(&mut self, shares: &Shares) -> usize {
        let mut less = 0;
        for (at, _) in &shares.0 {
            if let Some(entry) = self.0.get_mut(at) {
                entry.0 -= 1;
                if entry.0 == 0 {
                    less += entry.1;
                    self.0.remove(at);
                }
            }
        }
        less
    }
}
