//! The dynamic table (RFC 7541 §2.3.2): a ring of entries over one piece of text.
//!
//! Text is appended at the end, and what was evicted is cut off at the front once it is half of all: the text of an
//! entry lies in one piece, and an entry costs no allocation of its own.

use crate::fields::name::known_len;
use crate::fields::{FIELD_OVERHEAD, OTHER};

use super::decoder::Malformed;

#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// Number of a known name, or [`OTHER`].
    pub(super) number: u16,
    /// What makes each message malformed that refers to the entry.
    pub(super) flaw: Option<Malformed>,
    /// Length of the name if it is not known; the text of known names is not stored.
    pub(super) name_len: u32,
    value_len: u32,
    /// Position of name and value in all text there ever was, modulo 2^32.
    at: u32,
    /// As RFC 7541 §4.1 counts it.
    pub(super) size: u32,
}

/// Name of a new entry.
#[derive(Clone, Copy)]
pub(super) enum NewName<'a> {
    Known(u16),
    Text(&'a [u8]),
    /// That of the entry with this sequence number, which is not a known one.
    Entry(u64),
}

pub(super) struct Table {
    /// Ring, as long as a power of two: an entry stands at its sequence number modulo the length.
    entries: Vec<Entry>,
    /// Sequence number of the next entry; the first one is 1.
    inserted: u64,
    /// Sequence number of the oldest entry.
    evicted: u64,
    text: Vec<u8>,
    /// Position of the text's first byte.
    base: u32,
    /// As RFC 7541 §4.1 counts it.
    size: usize,
    max: usize,
}

const FIRST_ENTRIES: usize = 16;

/// Evicted text that is not worth moving the rest.
const LEAST_CUT: usize = 512;

impl Table {
    pub(super) const fn new(max: usize) -> Self {
        Self {
            entries: Vec::new(),
            inserted: 1,
            evicted: 1,
            text: Vec::new(),
            base: 0,
            size: 0,
            max,
        }
    }

    #[inline]
    pub(super) fn max(&self) -> usize {
        self.max
    }

    #[inline]
    pub(super) fn size(&self) -> usize {
        self.size
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        (self.inserted - self.evicted) as usize
    }

    /// What changes with every entry that is inserted or evicted.
    #[inline]
    pub(super) fn state(&self) -> (u64, u64) {
        (self.inserted, self.evicted)
    }

    /// The sequence number that the next entry gets.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.inserted
    }

    /// The entry at an index from 0, the newest, on: with its sequence number.
    #[inline]
    pub(super) fn newest(&self, index: usize) -> Option<(u64, &Entry)> {
        if index >= self.len() {
            return None;
        }
        let sequence = self.inserted - 1 - index as u64;
        Some((sequence, self.slot(sequence)?))
    }

    /// The entry with a sequence number, and its index from 0 on, if it is still there.
    #[inline]
    pub(super) fn live(&self, sequence: u64) -> Option<(usize, &Entry)> {
        if sequence < self.evicted || sequence >= self.inserted {
            return None;
        }
        Some(((self.inserted - 1 - sequence) as usize, self.slot(sequence)?))
    }

    #[inline]
    fn slot(&self, sequence: u64) -> Option<&Entry> {
        let at = sequence as usize & self.entries.len().wrapping_sub(1);
        self.entries.get(at)
    }

    /// The name of an entry; empty if it is known.
    #[inline]
    pub(super) fn name(&self, entry: &Entry) -> &[u8] {
        let at = entry.at.wrapping_sub(self.base) as usize;
        self.text
            .get(at..at + entry.name_len as usize)
            .unwrap_or_default()
    }

    /// Name and value of an entry in one piece.
    #[inline]
    pub(super) fn text(&self, entry: &Entry) -> &[u8] {
        let at = entry.at.wrapping_sub(self.base) as usize;
        let len = (entry.name_len + entry.value_len) as usize;
        self.text.get(at..at + len).unwrap_or_default()
    }

    #[inline]
    pub(super) fn value(&self, entry: &Entry) -> &[u8] {
        let at = (entry.at.wrapping_sub(self.base) + entry.name_len) as usize;
        self.text
            .get(at..at + entry.value_len as usize)
            .unwrap_or_default()
    }

    /// Sets the size that the entries may take.
    pub(super) fn resize(&mut self, max: usize) {
        self.max = max;
        self.evict(max);
    }

    /// Inserts an entry, and evicts the oldest ones for it. One that is larger than the table empties it (§4.4).
    pub(super) fn insert(&mut self, name: NewName<'_>, value: &[u8], flaw: Option<Malformed>) {
        let at = self.base.wrapping_add(self.text.len() as u32);
        // The name may be that of an entry that is evicted for this one: its text goes first.
        let (number, name_len, known_len) = match name {
            NewName::Known(number) => (number, 0, known_len(number)),
            NewName::Text(text) => {
                if self.entry_size(text.len(), value) > self.max {
                    return self.evict(0);
                }
                self.text.extend_from_slice(text);
                (OTHER, text.len(), 0)
            }
            NewName::Entry(sequence) => {
                let (at, len) = match self.live(sequence) {
                    Some((_, entry)) => (entry.at.wrapping_sub(self.base) as usize, entry.name_len as usize),
                    None => (0, 0),
                };
                if self.entry_size(len, value) > self.max {
                    return self.evict(0);
                }
                self.text.extend_from_within(at..at + len);
                (OTHER, len, 0)
            }
        };
        let size = self.entry_size(name_len + known_len, value);
        if size > self.max {
            return self.evict(0);
        }
        self.text.extend_from_slice(value);
        self.evict(self.max - size);
        if self.len() == self.entries.len() {
            self.grow();
        }
        let slot = self.inserted as usize & (self.entries.len() - 1);
        if let Some(slot) = self.entries.get_mut(slot) {
            *slot = Entry {
                number,
                flaw,
                name_len: name_len as u32,
                value_len: value.len() as u32,
                at,
                size: size as u32,
            };
        }
        self.inserted += 1;
        self.size += size;
        self.cut();
    }

    #[inline]
    fn entry_size(&self, name_len: usize, value: &[u8]) -> usize {
        name_len + value.len() + FIELD_OVERHEAD
    }

    /// Evicts the oldest entries until the size is `bound` at most.
    fn evict(&mut self, bound: usize) {
        while self.size > bound {
            let Some(entry) = self.slot(self.evicted) else {
                return;
            };
            self.size -= entry.size as usize;
            self.evicted += 1;
        }
    }

    /// Doubles the ring; each entry moves to its place in the longer one.
    fn grow(&mut self) {
        let len = (self.entries.len() * 2).max(FIRST_ENTRIES);
        let none = Entry {
            number: OTHER,
            flaw: None,
            name_len: 0,
            value_len: 0,
            at: 0,
            size: 0,
        };
        let mut entries = vec![none; len];
        let mut sequence = self.evicted;
        while sequence != self.inserted {
            if let Some(entry) = self.slot(sequence) {
                entries[sequence as usize & (len - 1)] = *entry;
            }
            sequence += 1;
        }
        self.entries = entries;
    }

    /// Cuts off the text of evicted entries when it is more than that of the others: each byte moves once at most.
    fn cut(&mut self) {
        let Some(oldest) = self.slot(self.evicted) else {
            return;
        };
        let at = oldest.at;
        let evicted = at.wrapping_sub(self.base) as usize;
        if evicted > LEAST_CUT && evicted * 2 > self.text.len() {
            self.text.drain(..evicted);
            self.base = at;
        }
    }

    /// Bytes of memory that it holds.
    pub(super) fn held(&self) -> usize {
        self.text.capacity() + self.entries.capacity() * size_of::<Entry>()
    }
}
