//! The cache: a dense list of entries under a clock's hand, and a hash table of their places.

use std::borrow::Borrow;
use std::cell::Cell;
use std::hash::Hash;

use ahash::RandomState;
use hashbrown::HashTable;

/// Entries in use that one eviction passes at most.
pub const SWEEP_MAX: usize = 64;

/// Bounds of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Entries; with 0 nothing is kept.
    pub entries: usize,
    /// Bytes of all entries together, as [`Cache::insert_sized`] counts them.
    pub bytes: usize,
}

/// Counts since the cache was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Lookups that found a usable entry.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Entries that made room for others, or that lower limits removed.
    pub evictions: u64,
}

/// A cache with bounds; see the [crate].
#[derive(Debug)]
pub struct Cache<K, V> {
    limits: Limits,
    hasher: RandomState,
    /// Places in `entries`.
    places: HashTable<usize>,
    entries: Vec<Entry<K, V>>,
    /// The entry that the next eviction considers first.
    hand: usize,
    bytes: usize,
    hits: Cell<u64>,
    misses: Cell<u64>,
    evictions: u64,
}

#[derive(Debug)]
struct Entry<K, V> {
    key: K,
    value: V,
    hash: u64,
    bytes: usize,
    /// Whether a lookup has found it since the hand passed.
    used: Cell<bool>,
}

impl Limits {
    /// A bound on entries alone.
    #[must_use]
    pub fn entries(entries: usize) -> Self {
        let bytes = usize::MAX;
        Self { entries, bytes }
    }
}

impl<K: Hash + Eq, V> Cache<K, V> {
    /// An empty cache. Memory is taken as entries come.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            hasher: RandomState::new(),
            places: HashTable::new(),
            entries: Vec::new(),
            hand: 0,
            bytes: 0,
            hits: Cell::new(0),
            misses: Cell::new(0),
            evictions: 0,
        }
    }

    /// Looks a key up and marks its entry as used.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.get_if(key, |_| true)
    }

    /// As [`Cache::get`], for an entry that is still `usable`: an expired one counts as a miss and is not marked.
    pub fn get_if<Q: Hash + Eq + ?Sized>(&self, key: &Q, usable: impl FnOnce(&V) -> bool) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let entry = self.place(key).and_then(|place| self.entries.get(place));
        let found = entry.filter(|entry| usable(&entry.value));
        let counter = match found {
            Some(entry) => {
                entry.used.set(true);
                &self.hits
            }
            None => &self.misses,
        };
        counter.set(counter.get().wrapping_add(1));
        found.map(|entry| &entry.value)
    }

    /// The value of a key, to be changed; neither counted nor marked as used.
    pub fn peek_mut<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key)?;
        self.entries.get_mut(place).map(|entry| &mut entry.value)
    }

    /// The value of a key; neither counted nor marked as used.
    pub fn peek<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key)?;
        self.entries.get(place).map(|entry| &entry.value)
    }

    /// Inserts an entry without a size; see [`Cache::insert_sized`].
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.insert_sized(key, value, 0)
    }

    /// Inserts an entry of `bytes`, evicting others for it, and returns the value that the key had before.
    ///
    /// A single entry that is larger than the limits is not kept; the key has no entry then.
    pub fn insert_sized(&mut self, key: K, value: V, bytes: usize) -> Option<V> {
        let before = self.place(&key).map(|place| self.take(place));
        let used = before.as_ref().is_some_and(|entry| entry.used.get());
        if bytes <= self.limits.bytes && self.limits.entries > 0 {
            let freed = self.make_room(1, bytes);
            let hash = self.hasher.hash_one(&key);
            let used = Cell::new(used);
            self.put(
                freed,
                Entry {
                    key,
                    value,
                    hash,
                    bytes,
                    used,
                },
            );
        }
        before.map(|entry| entry.value)
    }

    /// Removes an entry.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let place = self.place(key)?;
        Some(self.take(place).value)
    }

    /// Removes the entries that `keep` does not want. The only operation besides [`Cache::clear`] that passes all.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        let mut place = 0;
        while let Some(entry) = self.entries.get_mut(place) {
            match keep(&entry.key, &mut entry.value) {
                true => place += 1,
                false => drop(self.take(place)),
            }
        }
    }

    /// Removes all entries; not counted as evictions.
    pub fn clear(&mut self) {
        self.places.clear();
        self.entries.clear();
        (self.hand, self.bytes) = (0, 0);
    }

    /// Changes the limits, evicting what is over them.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        self.make_room(0, 0);
    }

    /// Keys and values, in no order; neither counted nor marked as used.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|entry| (&entry.key, &entry.value))
    }

    /// Entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of all entries.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts since the cache was made.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            hits: self.hits.get(),
            misses: self.misses.get(),
            evictions: self.evictions,
        }
    }

    fn place<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
    {
        let hash = self.hasher.hash_one(key);
        let same = |place: &usize| self.entries[*place].key.borrow() == key;
        self.places.find(hash, same).copied()
    }

    /// Evicts until `more` entries of `bytes` fit; returns the place that the last eviction freed.
    fn make_room(&mut self, more: usize, bytes: usize) -> Option<usize> {
        let mut freed = None;
        while !self.entries.is_empty()
            && (self.entries.len() + more > self.limits.entries
                || self.bytes.saturating_add(bytes) > self.limits.bytes)
        {
            let victim = self.victim();
            drop(self.take(victim));
            self.evictions += 1;
            // The entry that moved here is a recent one: the hand passes it.
            self.hand = victim + 1;
            freed = Some(victim);
        }
        freed
    }

    /// The place of the next entry to evict: the first that was not used, or the one after [`SWEEP_MAX`] used ones.
    fn victim(&mut self) -> usize {
        for _ in 0..SWEEP_MAX {
            self.hand %= self.entries.len();
            if !self.entries[self.hand].used.replace(false) {
                return self.hand;
            }
            self.hand += 1;
        }
        self.hand %= self.entries.len();
        self.hand
    }

    /// Adds an entry: behind the hand where an eviction freed a place, so that the hand meets it last, or at the end.
    fn put(&mut self, freed: Option<usize>, entry: Entry<K, V>) {
        let (end, hash) = (self.entries.len(), entry.hash);
        self.bytes += entry.bytes;
        self.entries.push(entry);
        let place = freed.filter(|place| *place < end).unwrap_or(end);
        if place < end {
            // The last entry moved here when the place became free; it moves back.
            self.relocate(place, end);
            self.entries.swap(place, end);
        }
        let entries = &self.entries;
        self.places
            .insert_unique(hash, place, |&place| entries[place].hash);
    }

    /// Takes an entry out. The last one moves to its place.
    fn take(&mut self, place: usize) -> Entry<K, V> {
        let hash = self.entries[place].hash;
        if let Ok(slot) = self.places.find_entry(hash, |found| *found == place) {
            slot.remove();
        }
        let last = self.entries.len() - 1;
        if place != last {
            self.relocate(last, place);
        }
        let entry = self.entries.swap_remove(place);
        self.bytes -= entry.bytes;
        entry
    }

    /// Writes down that the entry at `from` moves to `to`, which no other entry has in the table.
    fn relocate(&mut self, from: usize, to: usize) {
        let hash = self.entries[from].hash;
        if let Some(place) = self.places.find_mut(hash, |found| *found == from) {
            *place = to;
        }
    }
}
