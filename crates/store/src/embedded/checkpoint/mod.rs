//! Checkpoints: the indexes as they were at one moment, in a file beside the log, so that opening reads them and not
//! each entry of the log.
//!
//! # What a checkpoint says
//!
//! The file `store.index` has a head ([`Head`]), which lists the files of the log at that moment with the chain of
//! all their entries, and then the places in the log of all records and the times of their expiry, shard by shard, each with a
//! checksum. Keys of other indexes that are ordered are not in it; they are read from the records.
//!
//! # When it is believed
//!
//! The log decides. A checkpoint is used when each file that it lists is there with the same length and the same
//! chain at its end, or has been replaced by compaction; the file that was being written then is read as a whole, and
//! its chain must be the same at that place. Otherwise, and whenever anything about a checkpoint is wrong, the whole
//! log is read, as if there were none. So a checkpoint can be removed at any time.
//!
//! # What is read besides it
//!
//! * What was written after it, and the file in which it ends.
//! * What compaction has written since. Places in files that are gone are dropped, and each entry of their
//!   replacement counts unless a later one of its record is known. That is right because no checkpoint is taken while
//!   a compaction runs: each record in the replacement was current after the checkpoint, and what had been deleted
//!   before it was not copied. Times of expiry name no file, so that those of dropped places would stay: they are read from the
//!   records then.
//!
//! Entries of files that were not read are checked by their checksums whenever they are used, and all of them by
//! compaction's thread once the store is open.

mod load;
mod save;

use serde::{Deserialize, Serialize};

use super::name::Name;
use super::space::{Secondary, Space};

pub(super) use self::load::{Known, Loaded, load};
pub(super) use self::save::{Point, write};

/// Name of the file.
pub(super) const CHECKPOINT: &str = "store.index";
const TEMPORARY: &str = "store.index.tmp";
const MAGIC: &[u8; 8] = b"sbxindx\x01";
/// An index that a checkpoint has, shard by shard, in words of eight bytes.
pub(super) trait Sharded {
    /// How many shards there are.
    fn shards(&self) -> usize;

    /// Begins a capture of the index as it is now. Called by the thread that changes it.
    fn begin_capture(&self);

    /// Appends what a shard had when the capture began; the count of words.
    fn capture(&self, shard: usize, out: &mut Vec<u8>) -> usize;

    /// Ends a capture that did not take all shards.
    fn end_capture(&self);

    /// Fills a shard with words as [`Sharded::capture`] has given them. Places are in files that have other slots now; those of files
    /// that have none are left out. False when there is no such shard, or it has no such words.
    fn restore(&self, shard: usize, words: &[u8], slots: &[Option<u16>]) -> bool;
}

/// In place of the probe of an index by time, whose words are in the checkpoint.
const BY_TIME: u64 = 1;

/// Before the places of a shard: table (u16), index (u16; 0: primary), shard (u16), 0 (u16), count (u32), checksum of
/// all of it (u32).
const BLOCK: usize = 16;
/// In place of the number of a table: the last block, whose count is that of the blocks before it.
const LAST: u16 = u16::MAX;
/// No head is longer: a file of the log takes some 150 bytes of it.
const LONGEST_HEAD: usize = 16 << 20;

/// The head of a checkpoint, as JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    /// Oldest first.
    files: Vec<Listed>,
    /// Whether the last of these files was being written.
    open: bool,
    tables: Vec<ListedTable>,
}

/// A file of the log.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    first: u32,
    last: u32,
    generation: u32,
    slot: u16,
    length: u64,
    /// Bytes of its entries that were current.
    live: u64,
    /// The latest version in it.
    newest: u64,
    /// Chain of all its entries before its end.
    chain: u64,
}

impl Listed {
    fn name(&self) -> Name {
        Name {
            first: self.first,
            last: self.last,
            generation: self.generation,
        }
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedTable {
    name: String,
    /// The primary one first.
    indexes: Vec<ListedIndex>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedIndex {
    name: String,
    /// Of the hashes; none: the index is ordered, or by time.
    seeds: Option<[u64; 4]>,
    /// Hashes of some keys: another release or processor may hash differently.
    probe: u64,
}

impl ListedTable {
    fn of(space: &Space) -> ListedTable {
        let primary = ListedIndex {
            name: String::new(),
            seeds: Some(space.primary.seeds()),
            probe: space.primary.probe(),
        };
        let names = space.schema.map_or(&[][..], |schema| schema.indexes);
        let secondary = names.iter().zip(&space.secondary).map(|(schema, index)| {
            let (seeds, probe) = match index {
                Secondary::Hashed(hashed) => (Some(hashed.seeds()), hashed.probe()),
                Secondary::ByTime(_) => (None, BY_TIME),
                Secondary::Ordered(_) => (None, 0),
            };
            ListedIndex {
                name: schema.name.to_owned(),
                seeds,
                probe,
            }
        });
        ListedTable {
            name: space.name.clone(),
            indexes: std::iter::once(primary).chain(secondary).collect(),
        }
    }
}

/// Checksum of a block: of its head without the checksum, and of its places.
fn checksum(head: &[u8], places: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(places);
    hasher.finalize()
}
