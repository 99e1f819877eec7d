//! Pending requests: a slab keyed by the Hop-by-Hop Identifier, with the deadlines in a timing wheel. Insertion,
//! removal and expiry cost no search and no allocation beyond the slab's growth.
//!
//! One table serves all connections of a worker. Entries of one connection (the *owner*) are chained, so
//! that a lost connection's entries are found without looking at the others.
//!
//! An identifier is the entry's position in the low [`INDEX_BITS`] bits and a generation above them. Positions
//! are reused in the order they became free, so a late answer meets a foreign entry only after the whole slab
//! went round 2^(32 − INDEX_BITS) times; and even then only on the same connection.

use std::time::{Duration, Instant};

/// Bits of an identifier that hold the position: at most 4,194,304 requests are pending in one table.
pub const INDEX_BITS: u32 = 22;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;
const NONE: u32 = u32::MAX;
/// Positions that are handed out before freed ones are reused, so that an identifier is not reused soon.
const REST: usize = 4096;
/// Slots of the wheel. Deadlines further away than a turn wait for the next.
const SLOTS: usize = 1024;

/// Resolution of deadlines: an entry expires at most this much late.
pub const TICK: Duration = Duration::from_millis(10);

/// The table.
#[derive(Debug)]
pub struct Pending<T> {
    entries: Vec<Entry<T>>,
    /// Free positions, oldest first, chained through `wheel_next`.
    free_first: u32,
    free_last: u32,
    free: usize,
    used: usize,
    max: usize,
    /// First entry of each slot.
    wheel: Box<[u32]>,
    /// First entry of each owner, and how many it has.
    owners: Vec<(u32, u32)>,
    start: Instant,
    /// Ticks up to and including this one have been expired.
    tick: u64,
    /// Where the search for overdue entries of the tick after `tick` goes on; `None` when it has not begun.
    cursor: Option<u32>,
    generation: u32,
}

#[derive(Debug)]
struct Entry<T> {
    id: u32,
    owner: u32,
    due: u64,
    wheel_previous: u32,
    wheel_next: u32,
    owner_previous: u32,
    owner_next: u32,
    value: Option<T>,
}

/// The table is full; the value is given back.
#[derive(Debug, PartialEq, Eq)]
pub struct Full<T>(pub T);

impl<T> Pending<T> {
    /// An empty table for at most `max` entries. `seed` makes the identifiers of two runs differ.
    #[must_use]
    pub fn new(now: Instant, max: usize, seed: u32) -> Self {
        Self {
            entries: Vec::new(),
            free_first: NONE,
            free_last: NONE,
            free: 0,
            used: 0,
            max: max.min(INDEX_MASK as usize),
            wheel: vec![NONE; SLOTS].into_boxed_slice(),
            owners: Vec::new(),
            start: now,
            tick: 0,
            cursor: None,
            generation: seed << INDEX_BITS,
        }
    }

    /// Number of pending requests.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.used
    }

    /// Whether no request is pending.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Number of pending requests of this owner.
    #[must_use]
    pub fn owned(&self, owner: u32) -> u32 {
        self.owners.get(owner as usize).map_or(0, |(_, count)| *count)
    }

    /// Whether the table is full.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.used >= self.max
    }

    /// Adds an entry for `owner`, a small number such as the connection's position in a slab. Returns the
    /// Hop-by-Hop Identifier.
    ///
    /// # Errors
    /// When the table is full.
    pub fn insert(&mut self, owner: u32, deadline: Instant, value: T) -> Result<u32, Full<T>> {
        if self.is_full() {
            return Err(Full(value));
        }
        Ok(self.insert_with(owner, deadline, |_| value))
    }

    /// As [`Pending::insert`], for a value that holds its identifier. The caller keeps the bound: it checks
    /// [`Pending::is_full`] first.
    pub fn insert_with(&mut self, owner: u32, deadline: Instant, value: impl FnOnce(u32) -> T) -> u32 {
        let due = self.tick_of(deadline).max(self.tick + 1);
        let index = match self.take_free() {
            Some(index) => index,
            None => {
                // `max` is within INDEX_BITS.
                let index = self.entries.len() as u32;
                self.entries.push(Entry {
                    id: self.generation | index,
                    owner: NONE,
                    due: 0,
                    wheel_previous: NONE,
                    wheel_next: NONE,
                    owner_previous: NONE,
                    owner_next: NONE,
                    value: None,
                });
                index
            }
        };
        if self.owners.len() <= owner as usize {
            self.owners.resize(owner as usize + 1, (NONE, 0));
        }
        let slot = due as usize % SLOTS;
        let (owner_first, wheel_first) = (self.owners[owner as usize].0, self.wheel[slot]);
        let entry = &mut self.entries[index as usize];
        entry.id = entry.id.wrapping_add(1 << INDEX_BITS);
        entry.owner = owner;
        entry.due = due;

        (entry.owner_previous, entry.owner_next) = (NONE, owner_first);
        (entry.wheel_previous, entry.wheel_next) = (NONE, wheel_first);
        let id = entry.id;
        entry.value = Some(value(id));
        if owner_first != NONE {
            self.entries[owner_first as usize].owner_previous = index;
        }
        if wheel_first != NONE {
            self.entries[wheel_first as usize].wheel_previous = index;
        }
        self.owners[owner as usize].0 = index;
        self.owners[owner as usize].1 += 1;
        self.wheel[slot] = index;
        self.used += 1;
        id
    }

    /// Takes the entry that `owner` has under `id`: its answer has arrived.
    pub fn take(&mut self, owner: u32, id: u32) -> Option<T> {
        let index = id & INDEX_MASK;
        let entry = self.entries.get(index as usize)?;
        if entry.id != id || entry.owner != owner {
            return None;
        }
        self.remove(index)
    }

    /// The entry that `owner` has under `id`.
    #[must_use]
    pub fn get_mut(&mut self, owner: u32, id: u32) -> Option<&mut T> {
        let entry = self.entries.get_mut((id & INDEX_MASK) as usize)?;
        if entry.id == id && entry.owner == owner {
            entry.value.as_mut()
        } else {
            None
        }
    }

    /// The entry that `owner` has under `id`, to be read.
    #[must_use]
    pub fn get(&self, owner: u32, id: u32) -> Option<&T> {
        let entry = self.entries.get((id & INDEX_MASK) as usize)?;
        let same = entry.id == id && entry.owner == owner;
        entry.value.as_ref().filter(|_| same)
    }

    /// The identifiers of all entries of `owner`.
    #[must_use]
    pub fn ids(&self, owner: u32) -> Vec<u32> {
        let (mut next, count) = self.owners.get(owner as usize).copied().unwrap_or((NONE, 0));
        let mut ids = Vec::with_capacity(count as usize);
        while let Some(entry) = self.entries.get(next as usize).filter(|_| next != NONE) {
            ids.push(entry.id);
            next = entry.owner_next;
        }
        ids
    }

    /// Takes some entry of `owner`, or none when it has none left: for a connection that was lost.
    pub fn take_any(&mut self, owner: u32) -> Option<T> {
        let first = self.owners.get(owner as usize)?.0;
        if first == NONE { None } else { self.remove(first) }
    }

    /// Takes an entry that is overdue at `now`, with its owner; `None` when there is none (more).
    ///
    /// Entries come in the order of their deadlines, with the resolution of [`TICK`].
    pub fn expire(&mut self, now: Instant) -> Option<(u32, T)> {
        let until = self.tick_at(now);
        if self.used == 0 {
            self.tick = self.tick.max(until);
            self.cursor = None;
            return None;
        }
        while self.tick < until {
            let current = self.tick + 1;
            let mut index = self.cursor.unwrap_or(self.wheel[current as usize % SLOTS]);
            while index != NONE {
                let entry = &self.entries[index as usize];
                let (due, owner, next) = (entry.due, entry.owner, entry.wheel_next);
                self.cursor = Some(next);
                if due <= current
                    && let Some(value) = self.remove(index)
                {
                    return Some((owner, value));
                }
                index = next;
            }
            self.cursor = None;
            self.tick = current;
        }
        None
    }

    /// The tick that is over at `now`: rounded down, so that nothing expires early.
    fn tick_at(&self, now: Instant) -> u64 {
        (now.saturating_duration_since(self.start).as_millis() / TICK.as_millis()) as u64
    }

    fn tick_of(&self, deadline: Instant) -> u64 {
        (deadline.saturating_duration_since(self.start).as_millis()).div_ceil(TICK.as_millis()) as u64
    }

    fn take_free(&mut self) -> Option<u32> {
        if self.free == 0 || (self.free < REST && self.entries.len() < self.max) {
            return None;
        }
        let index = self.free_first;
        self.free_first = self.entries[index as usize].wheel_next;
        self.free -= 1;
        if self.free == 0 {
            self.free_last = NONE;
        }
        Some(index)
    }

    /// Unlinks an entry; `index` is one of `entries`.
    fn remove(&mut self, index: u32) -> Option<T> {
        let entry = &mut self.entries[index as usize];
        let value = entry.value.take()?;
        let owner = std::mem::replace(&mut entry.owner, NONE);
        let slot = entry.due as usize % SLOTS;
        let (wheel_previous, wheel_next) = (entry.wheel_previous, entry.wheel_next);
        let (owner_previous, owner_next) = (entry.owner_previous, entry.owner_next);
        entry.wheel_next = NONE;
        if self.cursor == Some(index) {
            self.cursor = Some(wheel_next);
        }
        match wheel_previous {
            NONE => self.wheel[slot] = wheel_next,
            previous => self.entries[previous as usize].wheel_next = wheel_next,
        }
        if wheel_next != NONE {
            self.entries[wheel_next as usize].wheel_previous = wheel_previous;
        }
        match owner_previous {
            NONE => self.owners[owner as usize].0 = owner_next,
            previous => self.entries[previous as usize].owner_next = owner_next,
        }
        if owner_next != NONE {
            self.entries[owner_next as usize].owner_previous = owner_previous;
        }
        self.owners[owner as usize].1 -= 1;
        match self.free_last {
            NONE => self.free_first = index,
            last => self.entries[last as usize].wheel_next = index,
        }
        self.free_last = index;
        self.free += 1;
        self.used -= 1;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    #[test]
    fn an_answer_is_matched_once_and_only_on_its_connection() {
        let now = Instant::now();
        let mut table = Pending::new(now, 10, 77);
        let id = table.insert(3, ms(now, 1000), "x").unwrap();
        assert_eq!(table.take(2, id), None);
        assert_eq!(table.take(3, id ^ (1 << INDEX_BITS)), None);
        assert_eq!(table.owned(3), 1);
        assert_eq!(table.take(3, id), Some("x"));
        assert_eq!(table.take(3, id), None);
        assert_eq!((table.len(), table.owned(3)), (0, 0));
    }

    #[test]
    fn deadlines_expire_in_order_near_and_far() {
        let now = Instant::now();
        let mut table = Pending::new(now, 100, 0);
        for due in [30_000, 50, 20, 10_250, 40] {
            table.insert(1, ms(now, due), due).unwrap();
        }
        assert_eq!(table.expire(ms(now, 15)), None);
        let mut at = |when| {
            std::iter::from_fn(|| table.expire(ms(now, when)))
                .map(|(_, v)| v)
                .collect::<Vec<_>>()
        };
        assert_eq!(at(45), [20, 40]);
        assert_eq!(at(10_000), [50]);
        assert_eq!(at(10_249), [0; 0]);
        assert_eq!(at(10_260), [10_250]);
        assert_eq!(at(100_000), [30_000]);
        assert!(table.is_empty());
    }

    #[test]
    fn a_lost_connection_gives_up_its_entries_alone() {
        let now = Instant::now();
        let mut table = Pending::new(now, 100, 0);
        let ids: Vec<_> = (0..9u32)
            .map(|n| table.insert(n % 3, ms(now, 100), n).unwrap())
            .collect();
        assert_eq!(table.take(1, ids[4]), Some(4));
        let mut lost: Vec<_> = std::iter::from_fn(|| table.take_any(1)).collect();
        lost.sort_unstable();
        assert_eq!(lost, [1, 7]);
        assert_eq!(table.len(), 6);
        assert_eq!(table.take_any(99), None);
    }

    #[test]
    fn the_table_is_bounded_and_identifiers_rest() {
        let now = Instant::now();
        let mut table = Pending::new(now, 2 * REST, 0);
        let first = table.insert(0, ms(now, 100), 0).unwrap();
        table.take(0, first).unwrap();
        for n in 0..2 * REST as u32 {
            let id = table.insert(0, ms(now, 100), n).unwrap();
            assert_ne!(id, first);
        }
        assert_eq!(table.insert(0, ms(now, 100), 7), Err(Full(7)));
    }

    #[test]
    fn it_agrees_with_a_map() {
        use std::collections::HashMap;
        let now = Instant::now();
        let (mut table, mut map) = (Pending::new(now, 50, 9), HashMap::new());
        let (mut random, mut at) = (1u64, 0);
        for step in 0..20_000u64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let dice = (random >> 33) as u32;
            let owner = dice % 4;
            match dice % 7 {
                0..=2 => {
                    let due = at + u64::from(dice % 30_000);
                    match table.insert(owner, ms(now, due), step) {
                        Ok(id) => assert!(map.insert(id, (owner, due, step)).is_none()),
                        Err(_) => assert_eq!(map.len(), 50),
                    }
                }
                3 => {
                    if let Some((&id, &(owner, _, value))) = map.iter().next() {
                        assert_eq!(table.take(owner, id), Some(value));
                        map.remove(&id);
                    }
                }
                4 if dice.is_multiple_of(35) => {
                    while let Some(value) = table.take_any(owner) {
                        map.retain(|_, entry| entry.2 != value);
                    }
                    assert!(map.values().all(|entry| entry.0 != owner));
                }
                _ => {
                    at += u64::from(dice % 500);
                    while let Some((owner, value)) = table.expire(ms(now, at)) {
                        let (&id, entry) = map.iter().find(|(_, entry)| entry.2 == value).unwrap();
                        assert!(entry.0 == owner && entry.1 <= at);
                        map.remove(&id);
                    }
                    assert!(
                        map.values().all(|entry| entry.1 + 20 > at),
                        "no entry stays past its deadline"
                    );
                }
            }
            assert_eq!(table.len(), map.len());
        }
    }

    #[test]
    fn a_table_that_was_empty_expires_in_time() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut pending = Pending::new(start, 8, 1);
        pending.insert(0, at(10), 1).unwrap();
        // The first entry expires while the search is in its slot.
        while pending.expire(at(20)).is_some() {}
        let id = pending.insert(0, at(40), 2).unwrap();
        pending.take(0, id).unwrap();
        assert!(pending.expire(at(30)).is_none());
        pending.insert(0, at(35), 3).unwrap();
        assert_eq!(
            pending.expire(at(60)),
            Some((0, 3)),
            "not a turn of the wheel later"
        );
        pending.insert(0, at(70), 4).unwrap();
        pending.insert(0, at(70), 5).unwrap();
        assert!(pending.expire(at(80)).is_some());
        let rest = pending.take_any(0);
        assert!(rest.is_some() && pending.expire(at(81)).is_none());
        pending.insert(0, at(88), 6).unwrap();
        assert_eq!(
            pending.expire(at(100)),
            Some((0, 6)),
            "not a turn of the wheel later"
        );
    }
}
