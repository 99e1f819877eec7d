//! Header blocks that repeat themselves: heart-beats, answers, requests of one consumer for one thing.
//!
//! A block that refers to the tables and does not change them means the same again as long as the tables are the same.
//! A block that was seen once is cached by its bytes only, so that messages that never repeat cost one comparison and
//! one copy; a block that was seen twice is cached with its fields.

use crate::fields::Fields;

use super::decoder::{Checked, Limits, Outcome};

/// Slots of a cache; a power of two.
const PLACES: usize = 4;
/// Longer blocks are not cached: few repeat, and 4 of them are all that a connection may hold.
const LONGEST: usize = 512;
/// Lists whose text takes more are not cached.
const LONGEST_TEXT: usize = 1_024;

/// The state of a dynamic table: sequence numbers of its newest and its oldest entry.
pub(super) type State = (u64, u64);

/// Blocks that were decoded.
#[derive(Default)]
pub(super) struct Decoded {
    places: Vec<Place<Vec<u8>, (Limits, Fields, Outcome)>>,
    /// The slot of the block that was found last.
    last: Option<usize>,
    held: usize,
}

/// Lists that were encoded: each with the status of the response that it belongs to, or 0.
#[derive(Default)]
pub(super) struct Encoded {
    places: Vec<Place<(u16, Fields), Vec<u8>>>,
    held: usize,
}

#[derive(Default)]
struct Place<K, V> {
    key: K,
    state: State,
    value: Option<V>,
}

impl Decoded {
    /// Fills `fields` with the cached list of a block, if the tables are unchanged since.
    #[inline]
    pub(super) fn find(
        &mut self,
        block: &[u8],
        state: State,
        limits: Limits,
        fields: &mut Fields,
    ) -> Option<Outcome> {
        let at = place_of(block);
        let place = self.places.get(at)?;
        let (under, list, outcome) = place.value.as_ref()?;
        let same = place.state == state && *under == limits && place.key == block && fields.is_empty();
        same.then(|| {
            fields.copy_from(list);
            self.last = Some(at);
            *outcome
        })
    }

    /// Another block follows.
    #[inline]
    pub(super) fn leave(&mut self) {
        self.last = None;
    }

    /// Adds what was found out about the block that was found last.
    pub(super) fn check(&mut self, checked: Checked) {
        let place = self.last.and_then(|at| self.places.get_mut(at));
        if let Some((_, _, outcome)) = place.and_then(|place| place.value.as_mut()) {
            outcome.checked = Some(checked);
        }
    }

    /// Caches a block that has not changed the table.
    pub(super) fn remember(
        &mut self,
        block: &[u8],
        state: State,
        limits: Limits,
        fields: &Fields,
        outcome: Outcome,
    ) {
        let fits = block.len() <= LONGEST && fields.text_len() <= LONGEST_TEXT;
        if !fits || outcome.over || outcome.malformed.is_some() {
            return;
        }
        let Some(place) = place(&mut self.places, place_of(block)) else {
            return;
        };
        if place.state == state && place.key == block {
            place.value = Some((limits, fields.compact(), outcome));
        } else {
            place.key.clear();
            place.key.extend_from_slice(block);
            (place.state, place.value) = (state, None);
        }
        self.count();
    }

    /// Bytes of memory that it holds.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    fn count(&mut self) {
        let places = self.places.iter().map(|place| {
            let value = place.value.as_ref().map_or(0, |(_, list, _)| list.held());
            size_of_val(place) + place.key.capacity() + value
        });
        self.held = places.sum();
    }
}

impl Encoded {
    pub(super) const fn new() -> Self {
        Self {
            places: Vec::new(),
            held: 0,
        }
    }

    /// The cached block of a list, if the tables are unchanged since.
    #[inline]
    pub(super) fn find(&self, status: u16, fields: &Fields, state: State) -> Option<&[u8]> {
        let place = self.places.get(place_of(fields.text()))?;
        let block = place.value.as_ref()?;
        let same = place.state == state && place.key.0 == status && place.key.1.is_copy_of(fields);
        same.then_some(block)
    }

    /// Caches a list whose block has not changed the table.
    pub(super) fn remember(&mut self, status: u16, fields: &Fields, state: State, block: &[u8]) {
        if block.len() > LONGEST || fields.text_len() > LONGEST_TEXT {
            return;
        }
        let Some(place) = place(&mut self.places, place_of(fields.text())) else {
            return;
        };
        if place.state == state && place.key.0 == status && place.key.1.is_copy_of(fields) {
            place.value = Some(block.to_vec());
        } else {
            place.key.0 = status;
            place.key.1.clear();
            place.key.1.copy_from(fields);
            (place.state, place.value) = (state, None);
        }
        self.count();
    }

    /// Bytes of memory that it holds.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    fn count(&mut self) {
        let places = self.places.iter().map(|place| {
            let value = place.value.as_ref().map_or(0, Vec::capacity);
            size_of_val(place) + place.key.1.held() + value
        });
        self.held = places.sum();
    }
}

/// The slot of these bytes: similar lengths and different ends get different slots.
#[inline]
fn place_of(bytes: &[u8]) -> usize {
    let byte = |at: usize| bytes.get(at).copied().map_or(0, usize::from);
    let len = bytes.len();
    (len ^ byte(len / 2) ^ byte(len.wrapping_sub(1))) & (PLACES - 1)
}

/// The slot, allocated by its first use.
fn place<K: Default, V>(places: &mut Vec<Place<K, V>>, at: usize) -> Option<&mut Place<K, V>> {
    if places.is_empty() {
        places.reserve_exact(PLACES);
        places.resize_with(PLACES, || Place {
            key: K::default(),
            state: (0, 0),
            value: None,
        });
    }
    places.get_mut(at)
}
