//! Sets of translations, built and checked as a whole.

use std::collections::HashMap;
use std::sync::Arc;

use super::content::Number;
use super::group::Group;
use super::modification::Modification;
use super::range::{LONGEST, interval, prefixes};
use super::selector::{Circumstances, Selector, SetId};
use super::trie::{Entry, Trie};
use crate::digits::Digits;
use crate::sccp::{Address, AddressBuf};

/// What one prefix or range leads to. Equal ones are stored once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Translation {
    /// The group of next nodes, by its place in the table.
    pub group: u32,
    /// Changes of the address.
    pub modification: Modification,
}

/// A translation that was found.
#[derive(Clone, Copy, Debug)]
pub struct Match<'a> {
    /// The set.
    pub set: SetId,
    /// The number that decided; `None`: that of the called title.
    pub number: Option<Number>,
    /// How many of its digits decided.
    pub digits: usize,
    /// Changes of the address.
    pub modification: &'a Modification,
    /// Next nodes.
    pub group: &'a Group,
}

impl Match<'_> {
    /// The address with the changes; `None` when more than 40 digits result.
    #[must_use]
    pub fn apply(&self, address: &Address<'_>) -> Option<AddressBuf> {
        self.modification.apply(address.to_buf())
    }
}

/// Why a table cannot be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BuildError {
    /// A prefix or range that is too long, or a range without numbers.
    #[error("{0} to {1} is not a range: use two numbers of one length, digits 0 to 9, at most 32, in order")]
    Range(Digits, Digits),
    /// A prefix that is too long.
    #[error("prefix {0} has more than 32 digits")]
    Prefix(Digits),
    /// The same numbers twice in a set.
    #[error("{0} to {1} occurs twice in a set")]
    Twice(Digits, Digits),
    /// Two ranges of a set, neither of which is within the other: which one would win is undefined.
    #[error("{0} to {1} overlaps {2} to {3}; split one of the ranges")]
    Overlap(Digits, Digits, Digits, Digits),
    /// A group that does not exist.
    #[error("group {0} does not exist")]
    Group(u32),
    /// A group without members.
    #[error("group {0} has no members")]
    Empty(u32),
    /// Two sets with one selector.
    #[error("two sets have the selector {0:?}")]
    Selector(Selector),
}

impl BuildError {
    /// The prefixes and ranges that it is about, each by its first and last number.
    #[must_use]
    pub fn ranges(&self) -> Vec<(Digits, Digits)> {
        match *self {
            Self::Range(first, last) | Self::Twice(first, last) => vec![(first, last)],
            Self::Prefix(prefix) => vec![(prefix, prefix)],
            Self::Overlap(first, last, other_first, other_last) => {
                vec![(first, last), (other_first, other_last)]
            }
            Self::Group(_) | Self::Empty(_) | Self::Selector(_) => Vec::new(),
        }
    }
}

struct Range {
    first: Digits,
    last: Digits,
    translation: u32,
}

/// Collects selectors, translations and groups.
#[derive(Default)]
pub struct TableBuilder {
    selectors: Vec<(SetId, Selector)>,
    sets: Vec<Vec<Range>>,
    translations: Vec<Translation>,
    interned: HashMap<Translation, u32>,
    groups: Vec<Group>,
}

impl std::fmt::Debug for TableBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableBuilder")
            .field("sets", &self.sets.len())
            .field("groups", &self.groups.len())
            .finish_non_exhaustive()
    }
}

impl TableBuilder {
    /// Without anything.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a group.
    pub fn group(&mut self, group: Group) -> u32 {
        self.groups.push(group);
        (self.groups.len() - 1) as u32
    }

    /// Adds a set of translations.
    pub fn set(&mut self, selector: Selector) -> SetId {
        self.sets.push(Vec::new());
        let set = SetId((self.sets.len() - 1) as u16);
        self.selector(set, selector);
        set
    }

    /// Adds a selector to a set: it has what fits one of its selectors.
    pub fn selector(&mut self, set: SetId, selector: Selector) {
        self.selectors.push((set, selector));
    }

    /// Adds a translation for numbers that begin with a prefix; the empty prefix is the default of the set.
    pub fn prefix(&mut self, set: SetId, prefix: Digits, translation: Translation) {
        self.range(set, prefix, prefix, translation);
    }

    /// Adds a translation for numbers that begin with a number of a range. Of ranges within one another the narrowest wins.
    pub fn range(&mut self, set: SetId, first: Digits, last: Digits, translation: Translation) {
        let next = self.translations.len() as u32;
        let number = *self.interned.entry(translation).or_insert(next);
        if number == next {
            self.translations.push(translation);
        }
        if let Some(ranges) = self.sets.get_mut(usize::from(set.0)) {
            ranges.push(Range {
                first,
                last,
                translation: number,
            });
        }
    }

    /// Checks and builds.
    ///
    /// # Errors
    /// [`BuildError`], the first that is found.
    pub fn build(self) -> Result<Table, BuildError> {
        for (number, group) in (0..).zip(&self.groups) {
            if group.members.is_empty() {
                return Err(BuildError::Empty(number));
            }
        }
        let missing = |translation: &&Translation| translation.group as usize >= self.groups.len();
        if let Some(translation) = self.translations.iter().find(missing) {
            return Err(BuildError::Group(translation.group));
        }
        let mut tries = Vec::with_capacity(self.sets.len());
        for ranges in self.sets {
            tries.push(Arc::new(Trie::build(&entries(ranges)?)));
        }
        let mut sets: Vec<Set> = Vec::with_capacity(self.selectors.len());
        for (id, selector) in self.selectors {
            if sets.iter().any(|other| other.selector == selector) {
                return Err(BuildError::Selector(selector));
            }
            sets.push(Set {
                id,
                by_content: selector.names_content(),
                selector,
                trie: tries.get(usize::from(id.0)).cloned().unwrap_or_default(),
            });
        }
        // The most specific selector first; of equal ones the first that was added.
        sets.sort_by_key(|set| std::cmp::Reverse(set.selector.rank()));
        Ok(Table {
            by_content: sets.iter().any(|set| set.by_content),
            sets,
            tries: tries.iter().map(|trie| trie.octets()).sum(),
            translations: self.translations,
            groups: self.groups,
        })
    }
}

/// Prefixes in order, each once: that of the narrowest range.
fn entries(mut ranges: Vec<Range>) -> Result<Vec<Entry>, BuildError> {
    let mut open: Vec<(u128, u128, Digits, Digits)> = Vec::new();
    // By beginning, the widest first: what is open contains what follows, or ends before it, or overlaps.
    ranges.sort_by_key(|range| {
        let (low, high) = interval(&range.first, &range.last);
        (low, !high)
    });
    let mut entries = Vec::with_capacity(ranges.len());
    for range in ranges {
        let (first, last) = (range.first, range.last);
        if first.len() > LONGEST || last.len() > LONGEST {
            return Err(if first == last {
                BuildError::Prefix(first)
            } else {
                BuildError::Range(first, last)
            });
        }
        let (low, high) = interval(&first, &last);
        while open.last().is_some_and(|(_, end, ..)| *end < low) {
            open.pop();
        }
        if let Some((start, end, other_first, other_last)) = open.last() {
            if (*start, *end) == (low, high) {
                return Err(BuildError::Twice(first, last));
            }
            if *end < high {
                return Err(BuildError::Overlap(*other_first, *other_last, first, last));
            }
        }
        open.push((low, high, first, last));
        if first == last {
            entries.push((first, range.translation));
            continue;
        }
        let covers = prefixes(&first, &last);
        if covers.is_empty() {
            return Err(BuildError::Range(first, last));
        }
        entries.extend(covers.into_iter().map(|prefix| (prefix, range.translation)));
    }
    // A narrower range comes later and so wins over the same prefix of a wider one.
    entries.sort_by_key(|(digits, _)| (digits.leading(), digits.len()));
    let mut unique: Vec<Entry> = Vec::with_capacity(entries.len());
    for entry in entries {
        match unique.last_mut() {
            Some(last) if last.0 == entry.0 => *last = entry,
            _ => unique.push(entry),
        }
    }
    Ok(unique)
}

/// A selector, and the translations that it leads to.
#[derive(Debug)]
struct Set {
    id: SetId,
    selector: Selector,
    /// Whether the selector names something of the content of messages.
    by_content: bool,
    trie: Arc<Trie>,
}

impl Set {
    /// Whether a selector that names content fits a message. One with a number of its own has to have a translation for it.
    #[cold]
    fn admits(&self, message: &Circumstances<'_>) -> bool {
        let Some(content) = &message.content else {
            return false;
        };
        let has_translation = |number| {
            let digits = content.number(number);
            digits.is_some_and(|digits| self.trie.longest(&digits).is_some())
        };
        self.selector.fits_content(content) && self.selector.number.is_none_or(has_translation)
    }
}

/// An immutable table; the default one has no sets.
#[derive(Debug, Default)]
pub struct Table {
    sets: Vec<Set>,
    by_content: bool,
    /// Octets of the tries.
    tries: usize,
    translations: Vec<Translation>,
    groups: Vec<Group>,
}

impl Table {
    /// The translation of an address: the set of the most specific selector that fits, and the longest prefix in it. `None`
    /// without a title, a fitting set, or a prefix. A closing ST is not matched.
    #[inline]
    #[must_use]
    pub fn translate(&self, address: &Address<'_>) -> Option<Match<'_>> {
        self.translate_within(address, &Circumstances::default())
    }

    /// As [`Self::translate`], of the called address of a message with what selectors see of it beside.
    #[inline]
    #[must_use]
    pub fn translate_within(&self, address: &Address<'_>, message: &Circumstances<'_>) -> Option<Match<'_>> {
        let set = self.set(address, message)?;
        let digits = match set.selector.number {
            None => address.title.as_ref()?.digits()?.without_st(),
            Some(number) => message.content.as_ref()?.number(number)?,
        };
        let (number, length) = set.trie.longest(&digits)?;
        let translation = self.translations.get(number as usize)?;
        Some(Match {
            set: set.id,
            number: set.selector.number,
            digits: length,
            modification: &translation.modification,
            group: self.groups.get(translation.group as usize)?,
        })
    }

    /// Whether a selector names something of [`Circumstances::content`]: without one, it is not read.
    #[must_use]
    pub const fn selects_by_content(&self) -> bool {
        self.by_content
    }

    fn set(&self, address: &Address<'_>, message: &Circumstances<'_>) -> Option<&Set> {
        let title = address.title.as_ref()?;
        let fits = |set: &&Set| {
            set.selector.fits(address, title, message.opc) && (!set.by_content || set.admits(message))
        };
        self.sets.iter().find(fits)
    }

    /// A group, by the place that [`TableBuilder::group`] returned.
    #[must_use]
    pub fn group(&self, place: u32) -> Option<&Group> {
        self.groups.get(place as usize)
    }

    /// Whether a set fits a message: it decides between the causes 0 (no translation for such a nature) and 1 (for this
    /// address) when [`Table::translate_within`] finds none.
    #[must_use]
    pub fn has_set_for(&self, address: &Address<'_>, message: &Circumstances<'_>) -> bool {
        self.set(address, message).is_some()
    }

    /// Octets of memory.
    #[must_use]
    pub fn octets(&self) -> usize {
        let members: usize = self
            .groups
            .iter()
            .map(|group| size_of_val(&group.members[..]))
            .sum();
        self.tries
            + members
            + self.translations.capacity() * size_of::<Translation>()
            + self.groups.capacity() * size_of::<Group>()
    }
}
