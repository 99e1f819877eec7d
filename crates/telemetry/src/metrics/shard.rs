//! Memory for the values: an area per thread, so that counting touches no cache line of another thread.
//!
//! A slot is one `u64` in every shard; its value is the (wrapping) sum over the shards. Threads lease a shard
//! of their own on first use and give it back when they end, so that the shard is written by one thread at a
//! time and needs no locked instruction. When all are leased, further threads share shard 0 with atomic
//! additions: slower, not wrong.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// How many threads can have a shard of their own, plus the shared one.
const SHARDS: usize = 64;
/// Slots of one piece of a shard; pieces appear when their first slot is used.
const CHUNK: usize = 512;
/// Pieces of a shard: 1,048,576 slots in all.
const CHUNKS: usize = 2048;
/// No shard leased yet.
const NONE: usize = usize::MAX;

/// Which shards are leased, one bit each; shard 0 is the shared one.
static LEASED: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static SHARD: Cell<usize> = const { Cell::new(NONE) };
    static LEASE: Lease = Lease::take();
}

/// Gives the shard back when its thread ends.
struct Lease(usize);

impl Lease {
    fn take() -> Self {
        let mut leased = LEASED.load(Ordering::Relaxed);
        loop {
            let free = (!leased).trailing_zeros() as usize;
            if free >= SHARDS {
                return Self(0);
            }
            // Acquire: what the last holder wrote is seen, for the additions below load and store apart.
            match LEASED.compare_exchange_weak(
                leased,
                leased | 1 << free,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Self(free),
                Err(now) => leased = now,
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Whatever this thread still counts in its last moments goes to the shared shard.
        let _ = SHARD.try_with(|shard| shard.set(0));
        if self.0 != 0 {
            LEASED.fetch_and(!(1 << self.0), Ordering::Release);
        }
    }
}

#[cold]
fn lease() -> usize {
    let shard = LEASE.try_with(|lease| lease.0).unwrap_or(0);
    let _ = SHARD.try_with(|cell| cell.set(shard));
    shard
}

#[inline]
fn current() -> usize {
    match SHARD.try_with(Cell::get) {
        Ok(NONE) => lease(),
        Ok(shard) => shard,
        Err(_) => 0,
    }
}

type Chunk = Box<[AtomicU64; CHUNK]>;
type Shard = Box<[OnceLock<Chunk>; CHUNKS]>;

/// All values of one registry.
pub(super) struct Arena {
    shards: [OnceLock<Shard>; SHARDS],
    next: Mutex<u32>,
}

impl std::fmt::Debug for Arena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Arena({} slots)", *self.next.lock())
    }
}

impl Arena {
    pub(super) fn new() -> Self {
        Self {
            shards: [const { OnceLock::new() }; SHARDS],
            next: Mutex::new(0),
        }
    }

    /// `count` slots that lie together; `None` when the arena is full.
    pub(super) fn reserve(&self, count: usize) -> Option<u32> {
        let count = u32::try_from(count)
            .ok()
            .filter(|count| *count as usize <= CHUNK)?;
        let mut next = self.next.lock();
        // Together means in one chunk.
        let room = CHUNK as u32 - *next % CHUNK as u32;
        let first = if room < count { *next + room } else { *next };
        let end = first + count;
        if end as usize > CHUNK * CHUNKS {
            return None;
        }
        *next = end;
        Some(first)
    }

    #[inline]
    pub(super) fn add(&self, slot: u32, more: u64) {
        let shard = current();
        let Some(value) = self.slot(shard, slot) else {
            return;
        };
        if shard == 0 {
            value.fetch_add(more, Ordering::Relaxed);
        } else {
            // Only this thread writes here (see `Lease`), so load and store need not be one instruction.
            value.store(
                value.load(Ordering::Relaxed).wrapping_add(more),
                Ordering::Relaxed,
            );
        }
    }

    #[inline]
    fn slot(&self, shard: usize, slot: u32) -> Option<&AtomicU64> {
        let shard = self.shards.get(shard)?;
        let chunks = match shard.get() {
            Some(chunks) => chunks,
            None => shard.get_or_init(new_shard),
        };
        let chunk = chunks.get(slot as usize / CHUNK)?;
        let values = match chunk.get() {
            Some(values) => values,
            None => chunk.get_or_init(new_chunk),
        };
        values.get(slot as usize % CHUNK)
    }

    pub(super) fn sum(&self, slot: u32) -> u64 {
        self.shards
            .iter()
            .filter_map(|shard| {
                shard
                    .get()?
                    .get(slot as usize / CHUNK)?
                    .get()?
                    .get(slot as usize % CHUNK)
            })
            .fold(0, |sum, value| sum.wrapping_add(value.load(Ordering::Relaxed)))
    }
}

#[cold]
fn new_shard() -> Shard {
    Box::new([const { OnceLock::new() }; CHUNKS])
}

#[cold]
fn new_chunk() -> Chunk {
    Box::new([const { AtomicU64::new(0) }; CHUNK])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn threads_come_and_go_and_nothing_is_lost() {
        let arena = Arc::new(Arena::new());
        let slot = arena.reserve(1).unwrap();
        for _ in 0..5 {
            // More at once than there are shards.
            let threads: Vec<_> = (0..80)
                .map(|_| {
                    let arena = arena.clone();
                    std::thread::spawn(move || (0..1000).for_each(|_| arena.add(slot, 1)))
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        }
        assert_eq!(arena.sum(slot), 5 * 80 * 1000);
    }

    #[test]
    fn slots_lie_together_and_end() {
        let arena = Arena::new();
        assert_eq!(arena.reserve(500), Some(0));
        assert_eq!(arena.reserve(20), Some(512));
        assert_eq!(arena.reserve(CHUNK + 1), None);
        let mut count = 0;
        while arena.reserve(CHUNK).is_some() {
            count += 1;
        }
        assert_eq!(count, CHUNKS - 2);
        // A slot that does not exist counts nothing and breaks nothing.
        arena.add(u32::MAX, 1);
        assert_eq!(arena.sum(u32::MAX), 0);
    }

    #[test]
    fn negative_shares_add_up() {
        let arena = Arc::new(Arena::new());
        let slot = arena.reserve(1).unwrap();
        arena.add(slot, 3);
        let other = arena.clone();
        std::thread::spawn(move || other.add(slot, u64::MAX))
            .join()
            .unwrap();
        assert_eq!(arena.sum(slot), 2);
    }
}
