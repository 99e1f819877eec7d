//! Sessions whose use was checked not long ago: their next messages read nothing.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use ahash::RandomState;

/// Sessions that are known at a time, at most: 128 KiB. Others that meet at a slot take turns.
const SLOTS: usize = 1 << 14;
/// Bits of a slot that have the time; the others have the session.
const TIME: u64 = 0xffff;

/// Sessions by a hash of their Session-Id, with the time at which they were seen.
#[derive(Debug)]
pub(crate) struct Recent {
    slots: Box<[AtomicU64]>,
    hasher: RandomState,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
            hasher: RandomState::new(),
        }
    }
}

impl Recent {
    /// Whether a session was seen at this time, a number that grows; it is now.
    pub(crate) fn is_seen(&self, id: &[u8], time: u64) -> bool {
        let hash = self.hasher.hash_one(id);
        let entry = (hash & !TIME) | (time & TIME);
        let slot = self.slots.get(hash as usize % SLOTS);
        slot.is_some_and(|slot| slot.swap(entry, Relaxed) == entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_seen_once_at_a_time() {
        let recent = Recent::default();
        assert!(!recent.is_seen(b"pgw;1", 7));
        assert!(recent.is_seen(b"pgw;1", 7));
        assert!(!recent.is_seen(b"pgw;1", 8));
        // Of those that meet at a slot none is taken for another.
        for number in 0..100_000_u32 {
            assert!(!recent.is_seen(&number.to_be_bytes(), 8), "{number}");
        }
    }
}
