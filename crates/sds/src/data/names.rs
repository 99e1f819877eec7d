//! Names in order, each with a destination set, in memory.
//!
//! Names lie packed in chunks, each of them immutable; a change copies the one chunk that it is in. A clone shares all chunks, and so
//! is the names as they were. A name takes three bytes besides its own, and a share of its chunk's pointer.

use std::collections::HashMap;
use std::sync::Arc;

use numbers::{DestinationSet, MOST_SETS, SetError};

/// Names of a chunk, at most; one that has more is split.
const MOST_LISTED: usize = 128;
/// Length and set before a name.
const HEAD: usize = 3;

/// Names with their sets. A clone is the state of that moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    chunks: Arc<Vec<Chunk>>,
    count: u64,
    bytes: usize,
    sets: Arc<Sets>,
    /// Names that have each set.
    uses: Arc<Vec<u64>>,
    /// Sets that names have.
    used: usize,
}

/// Names that follow one another: length, set and bytes of each.
type Chunk = Arc<[u8]>;

/// Sets by position.
#[derive(Clone, Debug, Default)]
struct Sets {
    all: Vec<DestinationSet>,
    ids: HashMap<DestinationSet, u16>,
}

impl Names {
    /// The destinations of a name.
    pub(crate) fn find(&self, name: &str) -> Option<&DestinationSet> {
        let chunk = self.chunks.get(self.position(name))?;
        let (_, set) = entries(chunk).find(|(one, _)| *one == name.as_bytes())?;
        self.sets.all.get(usize::from(set))
    }

    /// Sets a name, or removes it.
    ///
    /// # Errors
    /// When there are too many sets; nothing has changed then.
    pub(crate) fn change(&mut self, name: &str, set: Option<&DestinationSet>) -> Result<(), SetError> {
        let set = set.map(|set| self.intern(set)).transpose()?;
        let mut before = None;
        let place = self.position(name);
        let chunk = self.chunks.get(place).cloned().unwrap_or_else(|| Arc::new([]));
        let mut list: Vec<(&[u8], u16)> = entries(&chunk).collect();
        let found = list.binary_search_by_key(&name.as_bytes(), |(one, _)| *one);
        match (found, set) {
            (Ok(at), Some(set)) => {
                before = list.get_mut(at).map(|entry| std::mem::replace(&mut entry.1, set));
            }
            (Ok(at), None) => {
                before = Some(list.remove(at).1);
                self.count -= 1;
                self.bytes -= name.len() + HEAD;
            }
            (Err(at), Some(set)) => {
                list.insert(at, (name.as_bytes(), set));
                self.count += 1;
                self.bytes += name.len() + HEAD;
            }
            (Err(_), None) => return Ok(()),
        }
        self.moved(before, set);
        let rest = if list.len() > MOST_LISTED {
            list.split_off(list.len() / 2)
        } else {
            Vec::new()
        };
        let new = [list, rest].into_iter().filter(|list| !list.is_empty());
        let new: Vec<Chunk> = new.map(|list| packed(&list)).collect();
        let chunks = Arc::make_mut(&mut self.chunks);
        let end = (place + 1).min(chunks.len());
        chunks.splice(place.min(end)..end, new);
        Ok(())
    }

    /// A name has another set than before, or none.
    fn moved(&mut self, before: Option<u16>, now: Option<u16>) {
        let uses = Arc::make_mut(&mut self.uses);
        if let Some(uses) = now.and_then(|id| uses.get_mut(usize::from(id))) {
            self.used += usize::from(*uses == 0);
            *uses += 1;
        }
        if let Some(uses) = before.and_then(|id| uses.get_mut(usize::from(id))) {
            *uses -= 1;
            self.used -= usize::from(*uses == 0);
        }
    }

    /// How many names there are.
    pub(crate) const fn len(&self) -> u64 {
        self.count
    }

    /// The memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.chunks.len() * size_of::<Chunk>()
    }

    /// How many different sets names have.
    pub(crate) const fn sets(&self) -> usize {
        self.used
    }

    /// Whether a name has this set.
    pub(crate) fn has_set(&self, set: &DestinationSet) -> bool {
        let id = self.sets.ids.get(set);
        let uses = id.and_then(|id| self.uses.get(usize::from(*id)));
        uses.is_some_and(|uses| *uses > 0)
    }

    /// Names above `after` with their sets, in ascending order.
    pub(crate) fn above<'n>(
        &'n self,
        after: Option<&'n str>,
    ) -> impl Iterator<Item = (&'n str, &'n DestinationSet)> {
        let first = after.map_or(0, |name| self.position(name));
        let chunks = self.chunks.get(first..).unwrap_or_default();
        let names = chunks.iter().flat_map(|chunk| entries(chunk));
        let names = names.skip_while(move |(name, _)| after.is_some_and(|after| *name <= after.as_bytes()));
        names.filter_map(|(name, set)| {
            // What was put in was text, with a set of the table.
            Some((
                std::str::from_utf8(name).ok()?,
                self.sets.all.get(usize::from(set))?,
            ))
        })
    }

    /// The chunk that has a name, or would have it.
    fn position(&self, name: &str) -> usize {
        let before = |chunk: &Chunk| {
            entries(chunk)
                .next()
                .is_some_and(|(first, _)| first <= name.as_bytes())
        };
        self.chunks.partition_point(before).saturating_sub(1)
    }

    fn intern(&mut self, set: &DestinationSet) -> Result<u16, SetError> {
        if let Some(id) = self.sets.ids.get(set) {
            return Ok(*id);
        }
        let count = self.sets.all.len();
        let id = match count < MOST_SETS {
            true => Some(count),
            // One that no name has any more.
            false => self.uses.iter().position(|uses| *uses == 0),
        };
        let id = id
            .and_then(|id| u16::try_from(id).ok())
            .ok_or(SetError::TooManySets)?;
        let sets = Arc::make_mut(&mut self.sets);
        match sets.all.get_mut(usize::from(id)) {
            Some(place) => {
                let before = std::mem::replace(place, set.clone());
                sets.ids.remove(&before);
            }
            None => {
                sets.all.push(set.clone());
                Arc::make_mut(&mut self.uses).push(0);
            }
        }
        sets.ids.insert(set.clone(), id);
        Ok(id)
    }
}

fn entries(chunk: &[u8]) -> impl Iterator<Item = (&[u8], u16)> {
    let mut rest = chunk;
    std::iter::from_fn(move || {
        let ([length, low, high], behind) = rest.split_first_chunk::<HEAD>()?;
        let (name, next) = behind.split_at_checked(usize::from(*length))?;
        rest = next;
        Some((name, u16::from_le_bytes([*low, *high])))
    })
}

/// The bytes of names, each of 255 bytes at most.
fn packed(list: &[(&[u8], u16)]) -> Chunk {
    let mut bytes = Vec::with_capacity(list.iter().map(|(name, _)| name.len() + HEAD).sum());
    for (name, set) in list {
        bytes.push(name.len() as u8);
        bytes.extend(set.to_le_bytes());
        bytes.extend_from_slice(name);
    }
    bytes.into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn set(number: u32) -> DestinationSet {
        DestinationSet::parse(&format!("hss{number}")).unwrap()
    }

    #[test]
    fn names_are_what_a_tree_would_be() {
        let (mut names, mut expected) = (Names::default(), BTreeMap::new());
        let mut state = 1_u32;
        let mut copies = Vec::new();
        for step in 0..6_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let name = format!("device{}@iot.example", (state >> 8) % 3_000);
            if state >> 30 == 0 {
                names.change(&name, None).unwrap();
                expected.remove(&name);
            } else {
                names.change(&name, Some(&set(state % 50))).unwrap();
                expected.insert(name.clone(), set(state % 50));
            }
            assert_eq!(names.find(&name), expected.get(&name));
            if step % 2_000 == 0 {
                copies.push((names.clone(), expected.clone()));
            }
        }
        copies.push((names, expected));
        for (names, expected) in copies {
            assert_eq!(names.len(), expected.len() as u64);
            let found = |after| {
                names
                    .above(after)
                    .map(|(name, set)| (name.to_owned(), set.clone()))
            };
            assert!(found(None).eq(expected.clone()));
            for after in ["", "device2", "device250@iot.example", "zz"] {
                let above = expected.iter().filter(|(name, _)| name.as_str() > after);
                assert!(found(Some(after)).eq(above.map(|(name, set)| (name.clone(), set.clone()))));
            }
        }
    }

    #[test]
    fn names_that_are_all_removed_leave_nothing() {
        let mut names = Names::default();
        for number in 0..1_000 {
            names.change(&format!("n{number}"), Some(&set(number))).unwrap();
        }
        for number in 0..1_000 {
            names.change(&format!("n{number}"), None).unwrap();
        }
        assert_eq!((names.len(), names.bytes()), (0, 0));
        assert_eq!(names.above(None).next(), None);
        names.change("n1", Some(&set(1))).unwrap();
        assert_eq!(names.find("n1"), Some(&set(1)));
    }

    #[test]
    fn a_set_that_no_name_has_any_more_makes_room_for_another_one() {
        let mut names = Names::default();
        for number in 0..MOST_SETS as u32 {
            names.change(&format!("n{number}"), Some(&set(number))).unwrap();
        }
        let other = set(MOST_SETS as u32);
        assert_eq!(names.change("n7", Some(&other)), Err(SetError::TooManySets));
        assert_eq!((names.find("n7"), names.sets()), (Some(&set(7)), MOST_SETS));
        let before = names.clone();
        names.change("n7", None).unwrap();
        assert!(names.sets() == MOST_SETS - 1 && !names.has_set(&set(7)));
        names.change("n8", Some(&other)).unwrap();
        assert!(names.has_set(&other) && !names.has_set(&set(8)));
        // With room for one more, two sets by turns, many times.
        names.change("n9", None).unwrap();
        for step in 0..10_u32 {
            names.change("n7", Some(&set(7 + step % 2))).unwrap();
            assert_eq!(names.find("n7"), Some(&set(7 + step % 2)));
        }
        assert_eq!(
            (names.find("n8"), names.find("n10")),
            (Some(&other), Some(&set(10)))
        );
        // What was copied is as it was.
        assert_eq!(
            (before.find("n7"), before.find("n8")),
            (Some(&set(7)), Some(&set(8)))
        );
    }
}
