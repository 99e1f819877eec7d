//! What a scan reads, and its pages.

use super::table::{Unreadable, decode};
use crate::dictionary::Dictionaries;
use crate::engine::{Order, PageRequest, RowPage};
use crate::error::Error;
use crate::record::{Key, Record, Stored};
use crate::schema::Index;
use crate::version::Version;

/// What to scan: an order, a range of it, and how much at a time.
#[derive(Clone, Debug)]
pub struct Scan {
    pub(super) request: PageRequest,
    /// Whether it goes on beside records that cannot be read.
    beside: bool,
}

impl Scan {
    fn over(order: Order, limit: usize) -> Scan {
        Scan {
            request: PageRequest {
                order,
                from: None,
                to: None,
                after: None,
                limit: limit.max(1),
            },
            beside: false,
        }
    }

    /// Goes on beside records that cannot be read ([`Page::unreadable`]), which would make the scan fail.
    #[must_use]
    pub fn beside_unreadable(mut self) -> Scan {
        self.beside = true;
        self
    }

    /// All records, about `limit` a page.
    #[must_use]
    pub fn all(limit: usize) -> Scan {
        Scan::over(Order::Primary, limit)
    }

    /// Records that have a key in an index, by that key, `limit` a page. The index must be declared `ordered`.
    #[must_use]
    pub fn by_index(index: Index, limit: usize) -> Scan {
        Scan::over(Order::Index(index), limit)
    }

    /// Records by time of last modification, oldest first, `limit` a page. The table must declare `by_modified`.
    #[must_use]
    pub fn by_modified(limit: usize) -> Scan {
        Scan::over(Order::Modified, limit)
    }

    /// Begins at this key of the order (inclusive); for [`Scan::by_index`], and as a version for [`Scan::by_modified`].
    #[must_use]
    pub fn from_key(mut self, key: &[u8]) -> Scan {
        self.request.from = Some(key.to_vec());
        self
    }

    /// Ends before this key of the order; for [`Scan::by_index`].
    #[must_use]
    pub fn to_key(mut self, key: &[u8]) -> Scan {
        self.request.to = Some(key.to_vec());
        self
    }

    /// Ends before records modified at this time (microseconds since 1970); for [`Scan::by_modified`].
    #[must_use]
    pub fn modified_before(self, micros: u64) -> Scan {
        self.to_key(&Version::at(micros).0.to_be_bytes())
    }
}

/// A page of a scan.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// The records.
    pub records: Vec<Stored<T>>,
    /// Records that cannot be read, of a scan [beside them](Scan::beside_unreadable).
    pub unreadable: Vec<Unreadable>,
    /// The scan that yields the next page; `None` when this was the last.
    pub next: Option<Scan>,
}

impl<T: Record> Page<T> {
    pub(super) fn decode(
        page: RowPage,
        mut scan: Scan,
        now: u64,
        limit: usize,
        dictionaries: &Dictionaries,
    ) -> Result<Page<T>, Error> {
        let (mut records, mut unreadable) = (Vec::with_capacity(page.rows.len()), Vec::new());
        for row in page.rows {
            let place = scan.beside.then(|| (Key::from_slice(&row.key), row.version));
            match (decode(row, now, limit, dictionaries), place) {
                (Ok(record), _) => records.extend(record),
                (Err(error), Some((key, version))) => unreadable.push(Unreadable::new(key, version, error)?),
                (Err(error), None) => return Err(error),
            }
        }
        let next = page.next.map(|place| {
            scan.request.after = Some(place);
            scan
        });
        Ok(Page {
            records,
            unreadable,
            next,
        })
    }
}
