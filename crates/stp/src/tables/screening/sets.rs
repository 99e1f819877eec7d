//! Sets of rules as bits, and maps from values of a field to the set of rules that admit them. Equal sets are kept once.

use std::mem;

use ahash::AHashMap;

/// The most memory that the sets and maps of all lists take, in words of 8 octets: 64 MiB.
pub(super) const MOST_WORDS: usize = 8 << 20;

/// The sets of a list, one behind the other.
#[derive(Debug, Default)]
pub(super) struct Sets {
    /// Words of a set, each with 64 rules.
    words: usize,
    bits: Vec<u64>,
}

/// A set, by its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SetId(u32);

/// Bits of one set.
pub(super) type Bits = [u64];

impl Sets {
    pub(super) fn get(&self, set: SetId) -> &Bits {
        let at = set.0 as usize * self.words;
        self.bits.get(at..at + self.words).unwrap_or_default()
    }
}

/// The first rule that is in all sets.
pub(super) fn first_of_all(sets: &[&Bits]) -> Option<usize> {
    let (one, others) = sets.split_first()?;
    for (at, word) in one.iter().enumerate() {
        let admitted = others
            .iter()
            .fold(*word, |word, other| word & other.get(at).copied().unwrap_or(0));
        if admitted != 0 {
            return Some(at * 64 + admitted.trailing_zeros() as usize);
        }
    }
    None
}

/// There is no memory for the sets of a list.
#[derive(Debug)]
pub(super) struct Full;

/// Collects the sets of a list.
pub(super) struct SetsBuilder {
    sets: Sets,
    rules: usize,
    known: AHashMap<Box<Bits>, SetId>,
    /// Words that may be used yet.
    left: usize,
}

impl SetsBuilder {
    /// For a list with this many rules, within this many words.
    pub(super) fn new(rules: usize, left: usize) -> Self {
        let words = rules.div_ceil(64);
        Self {
            sets: Sets {
                words,
                bits: Vec::new(),
            },
            rules,
            known: AHashMap::new(),
            left,
        }
    }

    /// The sets, and the words that are left.
    pub(super) fn finish(self) -> (Sets, usize) {
        (self.sets, self.left)
    }

    /// Rules by their positions.
    pub(super) fn bits(&self, rules: impl IntoIterator<Item = usize>) -> Box<Bits> {
        let mut bits = vec![0; self.sets.words].into_boxed_slice();
        for rule in rules {
            flip(&mut bits, rule);
        }
        bits
    }

    /// All rules.
    pub(super) fn all(&mut self) -> Result<SetId, Full> {
        let all = self.bits(0..self.rules);
        self.set(&all)
    }

    pub(super) fn set(&mut self, bits: &Bits) -> Result<SetId, Full> {
        if let Some(known) = self.known.get(bits) {
            return Ok(*known);
        }
        // Twice: the map has them as well until the list is compiled.
        self.take(2 * self.sets.words)?;
        let set = SetId(self.known.len() as u32);
        self.sets.bits.extend_from_slice(bits);
        self.known.insert(bits.into(), set);
        Ok(set)
    }

    fn take(&mut self, words: usize) -> Result<(), Full> {
        self.left = self.left.checked_sub(words).ok_or(Full)?;
        Ok(())
    }
}

fn flip(bits: &mut Bits, rule: usize) {
    if let Some(word) = bits.get_mut(rule / 64) {
        *word ^= 1 << (rule % 64);
    }
}

/// Values from `first` up to `behind`, which is not one of them; `None`: up to the greatest.
pub(super) struct Span<K> {
    pub(super) first: K,
    pub(super) behind: Option<K>,
}

/// The rules that admit each value of an ordered field.
#[derive(Debug)]
pub(super) struct Intervals<K> {
    /// Where another set begins.
    starts: Box<[K]>,
    /// One more: the first is that of the values below the first start.
    sets: Box<[SetId]>,
}

impl<K: Ord + Clone> Intervals<K> {
    /// From the spans of each rule, none for a rule that admits all values; `None` when all rules do.
    pub(super) fn compile(
        rules: impl Iterator<Item = Vec<Span<K>>>,
        sets: &mut SetsBuilder,
    ) -> Result<Option<Self>, Full> {
        let (mut unrestricted, mut edges) = (Vec::new(), Vec::new());
        for (rule, spans) in rules.enumerate() {
            if spans.is_empty() {
                unrestricted.push(rule);
            }
            sets.take(2 * spans.len() * mem::size_of::<K>().div_ceil(8))?;
            for span in spans {
                edges.push((span.first, 1, rule));
                edges.extend(span.behind.map(|behind| (behind, -1, rule)));
            }
        }
        if edges.is_empty() {
            return Ok(None);
        }
        edges.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        // Spans of a rule may overlap.
        let mut depths: AHashMap<usize, i32> = AHashMap::new();
        let mut bits = sets.bits(unrestricted);
        let (mut starts, mut ids) = (Vec::new(), vec![sets.set(&bits)?]);
        for same in edges.chunk_by(|(one, ..), (other, ..)| one == other) {
            for (_, step, rule) in same {
                let depth = depths.entry(*rule).or_default();
                let was = *depth > 0;
                *depth += step;
                if was != (*depth > 0) {
                    flip(&mut bits, *rule);
                }
            }
            let set = sets.set(&bits)?;
            if let Some((start, ..)) = same.first()
                && ids.last() != Some(&set)
            {
                starts.push(start.clone());
                ids.push(set);
            }
        }
        Ok(Some(Self {
            starts: starts.into(),
            sets: ids.into(),
        }))
    }

    pub(super) fn find(&self, value: &K) -> Option<SetId> {
        self.between(value, value).first().copied()
    }

    /// The sets of the values from one to another.
    pub(super) fn between(&self, first: &K, last: &K) -> &[SetId] {
        let at = |value: &K| self.starts.partition_point(|start| start <= value);
        self.sets.get(at(first)..=at(last)).unwrap_or_default()
    }
}

/// The rules that admit each value of a field whose values are compared for equality.
#[derive(Debug)]
pub(super) struct Values<K> {
    sets: AHashMap<K, SetId>,
    /// Those that admit all values, and with them those that no rule names.
    others: SetId,
}

impl<K: std::hash::Hash + Eq + Copy> Values<K> {
    /// From the values of each rule, none for a rule that admits all; `None` when all rules do.
    pub(super) fn compile<'r>(
        rules: impl Iterator<Item = &'r [K]>,
        sets: &mut SetsBuilder,
    ) -> Result<Option<Self>, Full>
    where
        K: 'r,
    {
        let mut named: AHashMap<K, Vec<usize>> = AHashMap::new();
        let mut unrestricted = Vec::new();
        for (rule, values) in rules.enumerate() {
            if values.is_empty() {
                unrestricted.push(rule);
            }
            for value in values {
                let those = named.entry(*value).or_default();
                if those.last() != Some(&rule) {
                    those.push(rule);
                }
            }
        }
        if named.is_empty() {
            return Ok(None);
        }
        let others = sets.bits(unrestricted.iter().copied());
        let others = sets.set(&others)?;
        let mut found = AHashMap::with_capacity(named.len());
        for (value, rules) in named {
            sets.take(4)?;
            let bits = sets.bits(unrestricted.iter().copied().chain(rules));
            found.insert(value, sets.set(&bits)?);
        }
        Ok(Some(Self { sets: found, others }))
    }

    /// The rules that admit a value; without one, those that need none.
    pub(super) fn find(&self, value: Option<K>) -> SetId {
        let named = value.and_then(|value| self.sets.get(&value));
        named.copied().unwrap_or(self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(all: &[(u32, Option<u32>)]) -> Vec<Span<u32>> {
        let span = |(first, behind): &(u32, Option<u32>)| Span {
            first: *first,
            behind: *behind,
        };
        all.iter().map(span).collect()
    }

    #[test]
    fn intervals_that_overlap_nest_and_touch() {
        let rules = [
            spans(&[(10, Some(20)), (15, Some(30))]),
            spans(&[]),
            spans(&[(20, None)]),
            spans(&[(0, Some(10)), (10, Some(11))]),
        ];
        let mut builder = SetsBuilder::new(rules.len(), 10_000);
        let found = Intervals::compile(rules.into_iter(), &mut builder)
            .unwrap()
            .unwrap();
        let (sets, _) = builder.finish();
        for (value, wanted) in [
            (0, 0b1010),
            (9, 0b1010),
            (10, 0b1011),
            (11, 0b0011),
            (19, 0b0011),
            (20, 0b0111),
            (29, 0b0111),
            (30, 0b0110),
            (u32::MAX, 0b0110),
        ] {
            assert_eq!(sets.get(found.find(&value).unwrap()), [wanted], "{value}");
        }
    }

    #[test]
    fn sets_are_refused_that_exceed_their_memory() {
        let rules = |count: u32| (0..count).map(|at| spans(&[(2 * at, Some(2 * at + 1))]));
        for (count, fits) in [(100, true), (200, false)] {
            let mut builder = SetsBuilder::new(count as usize, 1_500);
            let compiled = Intervals::compile(rules(count), &mut builder);
            assert_eq!(compiled.is_ok(), fits, "{count}");
        }
    }
}
