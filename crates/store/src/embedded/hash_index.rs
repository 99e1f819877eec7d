//! An index in memory: from the hash of a key to places in the log, nine bytes a slot.
//!
//! A slot is one `u64`: 27 bits of the key's hash (the *tag*) and a 37-bit [`Location`]. The key itself is not
//! kept; who looks it up reads the entry and compares. Together with the choice of the shard that makes a wrong
//! candidate a matter of one in 2^37, so a key that is absent costs no read.
//!
//! Shards keep locks short and growth smooth: a shard is rehashed alone, and since shards differ in size by up to
//! two (see [`shard_of`]), they do not all double at the same time.

use ahash::RandomState;
use hashbrown::HashTable;
use parking_lot::{RwLock, RwLockWriteGuard};
use smallvec::SmallVec;

use super::capture::{Captures, Kept};
use super::checkpoint::Sharded;

const LOCATION_BITS: u32 = 37;
const LOCATION_MASK: u64 = (1 << LOCATION_BITS) - 1;
const TAG_BITS: u32 = 27;
const SHARDS: usize = 1_024;

/// A place in the log: number of the segment and offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Location(u64);

/// Bits of an offset, in units of eight bytes.
const OFFSET_BITS: u32 = 25;
/// A segment is no longer than this.
pub(super) const MAX_SEGMENT: u64 = 8 << OFFSET_BITS;
/// Segments that can exist at the same time.
pub(super) const MAX_SEGMENTS: usize = 1 << (LOCATION_BITS - OFFSET_BITS);

impl Location {
    /// `slot` is below [`MAX_SEGMENTS`], `offset` a multiple of eight below [`MAX_SEGMENT`].
    pub(super) fn new(slot: u16, offset: u64) -> Location {
        debug_assert!(usize::from(slot) < MAX_SEGMENTS && offset < MAX_SEGMENT && offset.is_multiple_of(8));
        Location(u64::from(slot) << OFFSET_BITS | offset >> 3)
    }

    pub(super) fn slot(self) -> usize {
        (self.0 >> OFFSET_BITS) as usize
    }

    pub(super) fn offset(self) -> u64 {
        (self.0 & ((1 << OFFSET_BITS) - 1)) << 3
    }
}

/// A change of an index, by the hash of the key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    Insert(u64, Location),
    /// The first place for the second.
    Replace(u64, Location, Location),
    Remove(u64, Location),
}

/// Candidates of a key.
pub(super) type Candidates = SmallVec<[Location; 4]>;

/// Where a walk over all slots stands: shard, and the last tag seen in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WalkPlace {
    pub(super) shard: u16,
    pub(super) tag: u32,
}

/// The index.
pub(super) struct HashIndex {
    shards: Box<[RwLock<Shard>]>,
    seeds: [u64; 4],
    hasher: RandomState,
    captures: Captures,
}

/// A part of an index.
#[derive(Default)]
struct Shard {
    slots: HashTable<u64>,
    kept: Kept<u64>,
}

impl HashIndex {
    pub(super) fn new() -> HashIndex {
        HashIndex::with_seeds(rand::random())
    }

    /// An index whose hashes are those of another one with these seeds.
    pub(super) fn with_seeds(seeds: [u64; 4]) -> HashIndex {
        let [one, two, three, four] = seeds;
        HashIndex {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            seeds,
            hasher: RandomState::with_seeds(one, two, three, four),
            captures: Captures::default(),
        }
    }

    pub(super) fn seeds(&self) -> [u64; 4] {
        self.seeds
    }

    /// A number made of the hashes of some keys; where it is the same, keys have the same hashes.
    pub(super) fn probe(&self) -> u64 {
        let bytes: [u8; 80] = std::array::from_fn(|place| place as u8);
        (0..=bytes.len())
            .filter_map(|length| bytes.get(..length))
            .fold(0, |sum: u64, key| sum.rotate_left(7) ^ self.hash(key))
    }

    fn change_of(&self, hash: u64) -> RwLockWriteGuard<'_, Shard> {
        let mut guard = self.shards[shard_of(hash)].write();
        let shard = &mut *guard;
        shard.kept.keep(self.captures.last(), shard.slots.iter().copied());
        guard
    }

    /// The hash of a key, for the other methods. Differs between indexes and runs, so that a client cannot
    /// choose keys that collide.
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    pub(super) fn insert(&self, hash: u64, location: Location) {
        let slot = slot_of(hash, location);
        self.change_of(hash)
            .slots
            .insert_unique(spread(slot), slot, |slot| spread(*slot));
    }

    /// Removes exactly this place; whether it was there.
    pub(super) fn remove(&self, hash: u64, location: Location) -> bool {
        let slot = slot_of(hash, location);
        match self
            .change_of(hash)
            .slots
            .find_entry(spread(slot), |other| *other == slot)
        {
            Ok(entry) => {
                entry.remove();
                true
            }
            Err(_) => false,
        }
    }

    /// Carries out a change.
    pub(super) fn change(&self, change: Change) {
        match change {
            Change::Insert(hash, location) => self.insert(hash, location),
            Change::Replace(hash, old, new) => {
                self.replace(hash, old, new);
            }
            Change::Remove(hash, location) => {
                self.remove(hash, location);
            }
        }
    }

    /// Exchanges one place for another; whether it was there.
    pub(super) fn replace(&self, hash: u64, old: Location, new: Location) -> bool {
        let slot = slot_of(hash, old);
        match self
            .change_of(hash)
            .slots
            .find_mut(spread(slot), |other| *other == slot)
        {
            Some(found) => {
                *found = slot_of(hash, new);
                true
            }
            None => false,
        }
    }

    pub(super) fn contains(&self, hash: u64, location: Location) -> bool {
        let slot = slot_of(hash, location);
        self.shards[shard_of(hash)]
            .read()
            .slots
            .find(spread(slot), |other| *other == slot)
            .is_some()
    }

    /// The places that entries with this key's hash have.
    pub(super) fn candidates(&self, hash: u64) -> Candidates {
        let wanted = tag_of(hash);
        let shard = self.shards[shard_of(hash)].read();
        shard
            .slots
            .iter_hash(spread(wanted << LOCATION_BITS))
            .filter(|slot| **slot >> LOCATION_BITS == wanted)
            .map(|slot| Location(*slot & LOCATION_MASK))
            .collect()
    }

    /// The places of a shard's tag.
    pub(super) fn at_tag(&self, place: WalkPlace) -> Candidates {
        let wanted = u64::from(place.tag);
        let Some(shard) = self.shards.get(usize::from(place.shard)) else {
            return Candidates::new();
        };
        shard
            .read()
            .slots
            .iter_hash(spread(wanted << LOCATION_BITS))
            .filter(|slot| **slot >> LOCATION_BITS == wanted)
            .map(|slot| Location(*slot & LOCATION_MASK))
            .collect()
    }

    /// Some places after `after`, in an order of the index's own that lasts while the index does, and where to go
    /// on. At least `limit` if there are as many; all places of a tag stay together.
    pub(super) fn walk(
        &self,
        after: Option<WalkPlace>,
        limit: usize,
    ) -> (Vec<(WalkPlace, Location)>, Option<WalkPlace>) {
        let mut places = Vec::new();
        let (mut shard, mut tag) =
            after.map_or((0, None), |place| (usize::from(place.shard), Some(place.tag)));
        while shard < SHARDS {
            let mut slots: Vec<u64> = {
                let table = &self.shards[shard].read().slots;
                let beyond = |slot: &&u64| tag.is_none_or(|tag| **slot >> LOCATION_BITS > u64::from(tag));
                table.iter().filter(beyond).copied().collect()
            };
            slots.sort_unstable();
            for (position, slot) in slots.iter().enumerate() {
                let own = slot >> LOCATION_BITS;
                // Shards and tags fit: 10 and 27 bits.
                let here = WalkPlace {
                    shard: shard as u16,
                    tag: own as u32,
                };
                places.push((here, Location(slot & LOCATION_MASK)));
                let last_of_tag = slots
                    .get(position + 1)
                    .is_none_or(|next| next >> LOCATION_BITS != own);
                if places.len() >= limit && last_of_tag {
                    return (places, Some(here));
                }
            }
            shard += 1;
            tag = None;
        }
        (places, None)
    }

    /// Entries.
    pub(super) fn count(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().slots.len()).sum()
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.read().slots.allocation_size())
            .sum()
    }
}

impl Sharded for HashIndex {
    fn shards(&self) -> usize {
        self.shards.len()
    }

    fn begin_capture(&self) {
        self.captures.begin();
    }

    fn capture(&self, shard: usize, out: &mut Vec<u8>) -> usize {
        let Some(shard) = self.shards.get(shard) else {
            return 0;
        };
        let shard = &mut *shard.write();
        let before = out.len();
        let slots = shard.slots.iter().copied();
        shard
            .kept
            .take(self.captures.last(), slots, |slot| out.extend(slot.to_le_bytes()));
        (out.len() - before) / size_of::<u64>()
    }

    fn end_capture(&self) {
        for shard in &self.shards {
            shard.write().kept.end(self.captures.last());
        }
    }

    fn restore(&self, shard: usize, places: &[u8], slots: &[Option<u16>]) -> bool {
        let Some(shard) = self.shards.get(shard) else {
            return false;
        };
        let mut table = HashTable::with_capacity(places.len() / 8);
        for place in places.as_chunks::<8>().0 {
            let place = u64::from_le_bytes(*place);
            let location = Location(place & LOCATION_MASK);
            if let Some(slot) = slots.get(location.slot()).copied().flatten() {
                let place = place & !LOCATION_MASK | Location::new(slot, location.offset()).0;
                table.insert_unique(spread(place), place, |place| spread(*place));
            }
        }
        shard.write().slots = table;
        true
    }
}

/// Shards take shares of the hash space between one and a half and three quarters of the average, by the curve
/// `x (2 + x) / 3`. Tables double when they are full; with equal shards all would do so at about the same number
/// of records and leave half of the memory empty.
fn shard_of(hash: u64) -> usize {
    // Thirty bits, so that the product fits.
    let x = hash >> 34;
    let y = (x * ((2 << 30) + x) / 3) >> 30;
    // `y` is below 2^30 as `x` is.
    (y >> (30 - SHARDS.trailing_zeros())) as usize
}

/// The tag must not depend on the bits that choose the shard alone.
fn tag_of(hash: u64) -> u64 {
    hash & ((1 << TAG_BITS) - 1)
}

fn slot_of(hash: u64, location: Location) -> u64 {
    tag_of(hash) << LOCATION_BITS | location.0
}

/// What the table sees as the hash of a slot: made from the tag alone, so that it can rehash without the key.
fn spread(slot: u64) -> u64 {
    (slot >> LOCATION_BITS).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_keeps_its_parts() {
        for (slot, offset) in [(0, 0), (1, 8), (4_095, MAX_SEGMENT - 8), (77, 1 << 20)] {
            let location = Location::new(slot, offset);
            assert_eq!((location.slot(), location.offset()), (usize::from(slot), offset));
        }
    }

    #[test]
    fn all_shards_are_used_and_their_shares_differ_by_two() {
        let mut counts = vec![0u32; SHARDS];
        for step in 0..1u64 << 22 {
            counts[shard_of(step << 42)] += 1;
        }
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!((19..=21).contains(&(10 * most / least)), "{least} {most}");
        assert_eq!(shard_of(u64::MAX), SHARDS - 1);
    }

    /// What changes while a capture goes through the shards is captured as it was.
    #[test]
    fn a_capture_is_of_the_moment_it_began() {
        let index = HashIndex::new();
        let place = |number: u64| Location::new((number % 100) as u16, number * 8);
        let hash = |index: &HashIndex, number: u64| index.hash(&number.to_le_bytes());
        (0..20_000).for_each(|number| index.insert(hash(&index, number), place(number)));
        for round in 0..3u64 {
            index.begin_capture();
            let (mut captured, mut changed) = (Vec::new(), 0);
            for shard in 0..index.shards() {
                let mut places = Vec::new();
                let count = index.capture(shard, &mut places);
                assert_eq!(places.len(), count * 8);
                captured.push(places);
                for number in (changed..20_000).take(30) {
                    changed = number + 1;
                    assert!(index.remove(hash(&index, number), place(number + 1_000_000 * round)));
                    index.insert(hash(&index, number), place(number + 1_000_000 * (round + 1)));
                }
            }
            assert_eq!(changed, 20_000);
            let other = HashIndex::with_seeds(index.seeds());
            assert_eq!(other.probe(), index.probe());
            let slots: Vec<_> = (0..MAX_SEGMENTS as u16).map(Some).collect();
            for (shard, places) in captured.iter().enumerate() {
                assert!(other.restore(shard, places, &slots));
            }
            for number in 0..20_000 {
                let found = other.candidates(hash(&other, number));
                assert_eq!(found.as_slice(), [place(number + 1_000_000 * round)], "{number}");
            }
        }
        assert_ne!(HashIndex::new().probe(), index.probe());
        assert!(!index.restore(SHARDS, &[], &[]));
    }

    #[test]
    fn places_are_found_exchanged_walked_and_removed() {
        let index = HashIndex::new();
        let place = |number: u64| Location::new((number % 100) as u16, number * 8);
        let hash = |number: u64| index.hash(&(number / 2).to_le_bytes());
        for number in 0..10_000 {
            index.insert(hash(number), place(number));
        }
        let mut found = index.candidates(hash(42));
        found.sort_unstable();
        assert_eq!(found.as_slice(), [place(42), place(43)]);
        assert!(index.replace(hash(42), place(42), place(20_000)));
        assert!(!index.replace(hash(42), place(42), place(20_000)));
        assert!(index.contains(hash(42), place(20_000)) && !index.contains(hash(42), place(42)));

        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let (places, next) = index.walk(after, 77);
            assert!(next.is_none() || places.len() >= 77);
            seen.extend(places.into_iter().map(|(_, location)| location));
            after = next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen.len(), 10_000);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 10_000);
        assert!(index.remove(hash(42), place(20_000)) && !index.remove(hash(42), place(20_000)));
        assert_eq!(index.candidates(hash(42)).as_slice(), [place(43)]);
        assert!(index.memory() > 0);
    }
}
