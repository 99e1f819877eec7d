//! Ranges that operators change one by one beside the traffic. They are kept in a file of their own, which is read after
//! the ranges and goes before them: a change is acknowledged when it is on the disk.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use dsr_app::Digits;
use dsr_app::appended::{Appended, OpenOnce, has_room};

use crate::chunks::{Chunks, Listed};
use crate::config::{Identity, Span};

/// Numbers have up to 15 digits; a table for each count.
const COUNTS: usize = 16;

type Table<T> = ArcSwap<Chunks<T>>;

/// The changes of a file, shared by all who have it open.
#[derive(Debug)]
pub(crate) struct Changes {
    ranges: Ranges,
    file: Appended,
}

#[derive(Debug, Default)]
struct Ranges {
    /// Of IMSIs and MSISDNs, by count of digits.
    numbers: [[Table<u64>; COUNTS]; 2],
    /// Of private and public identities.
    names: [Table<Box<str>>; 2],
    v4: Table<u32>,
    v6: Table<u128>,
    count: AtomicUsize,
}

static OPEN: OpenOnce<Changes> = OpenOnce::new();

impl Changes {
    /// Opens the file of changes, and reads it unless it is open already.
    ///
    /// # Errors
    /// When it cannot be read and written, or has an invalid line.
    pub(crate) fn open(path: &Path) -> Result<Arc<Self>, String> {
        OPEN.get(path, || {
            let ranges = Ranges::default();
            let file = Appended::open(path, |line| ranges.apply(&Change::parse(line)?))?;
            Ok(Self { ranges, file })
        })
    }

    /// Makes a change durable, then effective; `most` ranges may be changed.
    ///
    /// # Errors
    /// When it overlaps another change, or cannot be written; it is not in effect then.
    pub(crate) fn make(&self, change: &Change, most: usize) -> Result<(), String> {
        let mut file = self.file.lock();
        if self.ranges.check(change)? {
            has_room(self.len(), most, "ranges")?;
        }
        file.append(&change.line())?;
        self.ranges.apply(change)
    }

    /// The number of changed ranges.
    pub(crate) fn len(&self) -> usize {
        self.ranges.count.load(Ordering::Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The change of the numbers that begin with the first `count` digits of this one, if there is one.
    pub(crate) fn number(&self, identity: Identity, count: usize, digits: &Digits) -> Option<Listed> {
        let table = self.ranges.numbers[second(identity)].get(count)?.load();
        table.find(&digits.prefix(count)?)
    }

    /// The change of a name, which is in lower case.
    pub(crate) fn name(&self, identity: Identity, name: &str) -> Option<Listed> {
        self.ranges.names[second(identity)].load().find(&Box::from(name))
    }

    pub(crate) fn ipv4(&self, address: u32) -> Option<Listed> {
        self.ranges.v4.load().find(&address)
    }

    pub(crate) fn ipv6(&self, address: u128) -> Option<Listed> {
        self.ranges.v6.load().find(&address)
    }

    /// The destinations that changes lead to.
    pub(crate) fn destinations(&self) -> BTreeSet<Arc<str>> {
        let mut all = BTreeSet::new();
        let ranges = &self.ranges;
        for table in ranges.numbers.iter().flatten() {
            table.load().destinations(&mut all);
        }
        for table in &ranges.names {
            table.load().destinations(&mut all);
        }
        ranges.v4.load().destinations(&mut all);
        ranges.v6.load().destinations(&mut all);
        all
    }
}

fn second(identity: Identity) -> usize {
    usize::from(matches!(identity, Identity::Msisdn | Identity::Impu))
}

impl Ranges {
    /// Whether a change is of a range that was not changed before.
    fn check(&self, change: &Change) -> Result<bool, String> {
        let place = second(change.identity);
        match &change.span {
            Span::Digits { count, first, last } => match self.numbers[place].get(*count) {
                Some(table) => table.load().is_new(first, last),
                None => Err(format!("more than {} digits", COUNTS - 1)),
            },
            Span::Names(first, last) => self.names[place].load().is_new(first, last),
            Span::V4(first, last) => self.v4.load().is_new(first, last),
            Span::V6(first, last) => self.v6.load().is_new(first, last),
        }
        .map_err(|wrong| format!("{wrong}; change that range, or this one within the file of ranges"))
    }

    fn apply(&self, change: &Change) -> Result<(), String> {
        let is_new = self.check(change)?;
        let (place, to) = (second(change.identity), change.to.clone());
        match &change.span {
            Span::Digits { count, first, last } => {
                if let Some(table) = self.numbers[place].get(*count) {
                    put(table, *first, *last, to);
                }
            }
            Span::Names(first, last) => put(&self.names[place], first.clone(), last.clone(), to),
            Span::V4(first, last) => put(&self.v4, *first, *last, to),
            Span::V6(first, last) => put(&self.v6, *first, *last, to),
        }
        self.count.fetch_add(usize::from(is_new), Ordering::Relaxed);
        Ok(())
    }
}

/// Changes come one at a time: the file is locked.
fn put<T: Ord + Clone>(table: &Table<T>, first: T, last: T, to: Listed) {
    let changed = table.load().with(first, last, to);
    table.store(Arc::new(changed));
}

/// A change of one range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    identity: Identity,
    span: Span,
    /// The ends as they are written.
    ends: (String, String),
    /// A destination, or none: no range holds these values any more.
    pub(crate) to: Listed,
}

impl Change {
    /// The change of `IDENTITY:FIRST` or `IDENTITY:FIRST..LAST`; without a destination the range goes.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn new(subject: &str, to: &str) -> Result<Self, String> {
        let (identity, range) = subject
            .split_once(':')
            .ok_or_else(|| format!("`{subject}` is not IDENTITY:FIRST or IDENTITY:FIRST..LAST"))?;
        let (start, end) = range.split_once("..").unwrap_or((range, ""));
        Self::of(identity, start, end, to)
    }

    fn of(identity: &str, start: &str, end: &str, to: &str) -> Result<Self, String> {
        let kind = Identity::from_word(identity)?;
        // The file has a line of four fields for each.
        let is_field = |text: &str| !text.contains(',') && !text.chars().any(char::is_control);
        if ![start, end, to].into_iter().all(is_field) {
            return Err("a comma or control character cannot be part of it".to_owned());
        }
        Ok(Self {
            identity: kind,
            span: Span::parse(kind, start, end)?,
            ends: (start.to_owned(), end.to_owned()),
            to: (!to.is_empty()).then(|| to.into()),
        })
    }

    fn parse(line: &str) -> Result<Self, String> {
        let fields: Vec<&str> = line.split(',').collect();
        let [identity, start, end, to] = fields[..] else {
            return Err("expected identity,start,end,destination".to_owned());
        };
        Self::of(identity, start, end, to)
    }

    fn line(&self) -> String {
        let (identity, (start, end)) = (self.identity.as_str(), &self.ends);
        format!(
            "{identity},{start},{end},{}\n",
            self.to.as_deref().unwrap_or_default()
        )
    }
}
