//! Scans: pages of records in the orders the embedded engine knows.
//!
//! By primary key there is no order, only completeness: the walk goes through the primary index. By modification
//! the log itself is the order. By an index, those that are declared `ordered` know one.

use std::ops::Bound;
use std::sync::Arc;

use super::entry::Kind;
use super::hash_index::{Location, WalkPlace};
use super::head::FILE_HEAD;
use super::segment::Segment;
use super::space::{Secondary, Space, page_of};
use super::time_index::{Moment, TimeIndex};
use super::walk::Walk;
use super::{Embedded, Shared};
use crate::engine::{Order, PageRequest, Row, RowPage};
use crate::error::Error;
use crate::schema::Index;

/// Bytes of the log read for one page by modification. A page through many void entries ends early.
const PAGE_BYTES: u64 = 4 << 20;

impl Embedded {
    pub(super) fn scan(&self, space: &Space, request: &PageRequest) -> Result<RowPage, Error> {
        match request.order {
            Order::Primary => self.shared.primary_page(space, request),
            Order::Index(index) => self.shared.index_page(space, request, index),
            Order::Modified => self.shared.modified_page(space, request),
        }
    }
}

impl Shared {
    fn primary_page(&self, space: &Space, request: &PageRequest) -> Result<RowPage, Error> {
        let after = match &request.after {
            Some(place) => Some(decode_walk(place).ok_or_else(foreign_place)?),
            None => None,
        };
        let (places, next) = space.primary.walk(after, request.limit);
        let mut rows = Vec::with_capacity(places.len());
        for group in places.chunk_by(|(one, _), (other, _)| one == other) {
            let locations = group.iter().map(|(_, location)| *location).collect();
            let found = space.at_tag(&self.segments, group[0].0, locations, |entry| self.row(entry))?;
            rows.extend(found.into_iter().collect::<Result<Vec<Row>, Error>>()?);
        }
        Ok(RowPage {
            rows,
            next: next.map(encode_walk),
        })
    }

    fn index_page(&self, space: &Space, request: &PageRequest, index: Index) -> Result<RowPage, Error> {
        let ordered = match space.secondary.get(usize::from(index.0)) {
            Some(Secondary::Ordered(ordered)) => ordered,
            Some(Secondary::ByTime(by_time)) => return self.time_page(space, request, (index, by_time)),
            Some(Secondary::Hashed(_)) | None => {
                return Err(Error::Invalid(format!(
                    "index {} of table {} is not ordered",
                    index.0, space.name
                )));
            }
        };
        let after = match &request.after {
            Some(place) => Some(decode_pair(place).ok_or_else(foreign_place)?),
            None => None,
        };
        let from = match &after {
            Some((key, primary)) => Bound::Excluded((*key, *primary)),
            None => Bound::Included((request.from.as_deref().unwrap_or_default(), &[][..])),
        };
        let entries = page_of(ordered, from, request.to.as_deref(), request.limit, None);
        let mut page = RowPage::default();
        for (key, primary) in &entries {
            let found = space.lookup(&self.segments, primary, |_, entry| {
                let current = entry.index_keys().any(|held| held == (index, key.as_slice()));
                current.then(|| self.row(entry))
            })?;
            if let Some(row) = found.flatten() {
                page.rows.push(row?);
            }
        }
        if entries.len() >= request.limit {
            page.next = entries.last().map(|(key, primary)| encode_pair(key, primary));
        }
        Ok(page)
    }

    fn time_page(
        &self,
        space: &Space,
        request: &PageRequest,
        (index, by_time): (Index, &TimeIndex),
    ) -> Result<RowPage, Error> {
        let after = match &request.after {
            Some(place) => Some(decode_moment(place).ok_or_else(foreign_place)?),
            None => None,
        };
        let from = request.from.as_deref().unwrap_or_default();
        let moments = by_time.page(after, from, request.to.as_deref(), request.limit);
        let mut page = RowPage::default();
        for moment in &moments {
            let rows = space.at_moment(&self.segments, index, *moment, |entry| self.row(entry))?;
            page.rows
                .extend(rows.into_iter().collect::<Result<Vec<Row>, Error>>()?);
        }
        if moments.len() >= request.limit {
            page.next = moments.last().copied().map(encode_moment);
        }
        Ok(page)
    }

    fn modified_page(&self, space: &Space, request: &PageRequest) -> Result<RowPage, Error> {
        let bound = |key: &Option<Vec<u8>>| key.as_deref().map(version_of).transpose();
        let (mut least, end) = (
            bound(&request.from)?.unwrap_or(0),
            bound(&request.to)?.unwrap_or(u64::MAX),
        );
        let list = self.segments.list();
        let segments = list.originals();
        let (mut position, mut offset) = (0, FILE_HEAD);
        if let Some(place) = &request.after {
            let place = LogPlace::decode(place).ok_or_else(foreign_place)?;
            least = least.max(place.beyond + 1);
            position = segments.partition_point(|segment| segment.name.last < place.last);
            if segments.get(position).is_some_and(|segment| place.is_in(segment)) {
                offset = place.offset;
            }
        }
        let mut page = RowPage::default();
        let (mut read, mut version) = (0, 0);
        while let Some(segment) = segments.get(position) {
            if segment.newest() < least {
                position += 1;
                offset = FILE_HEAD;
                continue;
            }
            let mut walk = Walk::new(Arc::clone(segment), offset);
            loop {
                let before = walk.offset();
                let broken = |fault| Error::Engine(format!("{}: {fault}", segment.path().display()));
                let Some(step) = walk.next().map_err(broken)? else {
                    break;
                };
                let (at, size, entry) = (step.offset, step.size, step.entry);
                if !entry.is_of_a_record() {
                    read += size;
                    continue;
                }
                // Pages end between versions: after a compaction the version alone tells where to go on.
                let full = page.rows.len() >= request.limit || read >= PAGE_BYTES;
                if full && entry.version.0 != version {
                    page.next = Some(LogPlace::at(segment, version, before).encode());
                    return Ok(page);
                }
                (version, read) = (entry.version.0, read + size);
                if version >= end {
                    return Ok(page);
                }
                let here = Location::new(segment.slot, at);
                if version >= least
                    && entry.kind == Kind::Put
                    && entry.table == space.number
                    && space.is_current(&self.segments, &entry, here)?
                {
                    page.rows.push(self.row(&entry)?);
                }
            }
            position += 1;
            offset = FILE_HEAD;
        }
        Ok(page)
    }

    pub(super) fn row(&self, entry: &super::entry::Entry<'_>) -> Result<Row, Error> {
        let site = self.site(entry.site);
        site.map(|site| entry.row(site))
            .ok_or_else(|| Error::Engine(format!("site number {} has no name", entry.site)))
    }

    pub(super) fn site(&self, number: u16) -> Option<Arc<str>> {
        self.sites.get(usize::from(number)).cloned()
    }
}

/// Where a page by modification ended. If its segment has been compacted since, the version finds the place.
struct LogPlace {
    /// The last version that has been read.
    beyond: u64,
    last: u32,
    generation: u32,
    offset: u64,
}

impl LogPlace {
    fn at(segment: &Segment, beyond: u64, offset: u64) -> LogPlace {
        LogPlace {
            beyond,
            last: segment.name.last,
            generation: segment.name.generation,
            offset,
        }
    }

    fn is_in(&self, segment: &Segment) -> bool {
        segment.name.last == self.last && segment.name.generation == self.generation
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = self.beyond.to_be_bytes().to_vec();
        out.extend_from_slice(&self.last.to_be_bytes());
        out.extend_from_slice(&self.generation.to_be_bytes());
        out.extend_from_slice(&self.offset.to_be_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Option<LogPlace> {
        let (beyond, rest) = bytes.split_first_chunk::<8>()?;
        let (last, rest) = rest.split_first_chunk::<4>()?;
        let (generation, rest) = rest.split_first_chunk::<4>()?;
        Some(LogPlace {
            beyond: u64::from_be_bytes(*beyond),
            last: u32::from_be_bytes(*last),
            generation: u32::from_be_bytes(*generation),
            offset: u64::from_be_bytes(rest.try_into().ok()?),
        })
    }
}

fn version_of(bytes: &[u8]) -> Result<u64, Error> {
    let bytes = bytes
        .try_into()
        .map_err(|_| Error::Invalid("a version has 8 bytes".to_owned()))?;
    Ok(u64::from_be_bytes(bytes))
}

fn foreign_place() -> Error {
    Error::Invalid("this place to continue at is of another scan".to_owned())
}

fn encode_walk(place: WalkPlace) -> Vec<u8> {
    [&place.shard.to_be_bytes()[..], &place.tag.to_be_bytes()].concat()
}

fn decode_walk(bytes: &[u8]) -> Option<WalkPlace> {
    let (shard, tag) = bytes.split_first_chunk::<2>()?;
    Some(WalkPlace {
        shard: u16::from_be_bytes(*shard),
        tag: u32::from_be_bytes(tag.try_into().ok()?),
    })
}

fn encode_moment((time, hash): Moment) -> Vec<u8> {
    [time.to_be_bytes(), hash.to_be_bytes()].concat()
}

fn decode_moment(bytes: &[u8]) -> Option<Moment> {
    let (time, hash) = bytes.split_first_chunk::<8>()?;
    Some((
        u64::from_be_bytes(*time),
        u64::from_be_bytes(hash.try_into().ok()?),
    ))
}

fn encode_pair(key: &[u8], primary: &[u8]) -> Vec<u8> {
    // Keys have at most MAX_KEY bytes.
    [&(key.len() as u16).to_be_bytes()[..], key, primary].concat()
}

fn decode_pair(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
}
