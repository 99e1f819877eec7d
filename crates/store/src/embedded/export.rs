//! All records of a store that no process has open, one after the other. Nothing is changed.

use std::path::Path;
use std::sync::Arc;

use ahash::RandomState;
use hashbrown::HashMap;

use super::catalogue::Catalogue;
use super::entry::Kind;
use super::files::{Listing, failed};
use super::head::FILE_HEAD;
use super::inspect;
use super::lock::Lock;
use super::segment::{Segment, Unopened};
use super::walk::Walk;
use crate::compress;
use crate::dictionary::{Dictionary, Known};
use crate::error::Error;
use crate::record::Record as _;
use crate::version::Version;

/// A record as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported<'e> {
    /// Name of its table.
    pub table: &'e str,
    /// Its primary key.
    pub key: &'e [u8],
    /// When it was written last, in microseconds since 1970, and the version of that write.
    pub version: Version,
    /// When it was created, in microseconds since 1970.
    pub created: u64,
    /// Site that wrote it last.
    pub site: &'e str,
    /// Its value, as the function that owns the store has encoded it.
    pub value: Vec<u8>,
}

/// Longest value, decompressed: more than any batch may have.
const MAX_VALUE: usize = 1 << 30;

/// Where the last write of a record is.
struct Last {
    version: u64,
    /// Position of the file in the log and offset in it; `None`: it was deleted.
    place: Option<(u32, u64)>,
}

/// Gives every record of a store to `each`, in the order of the log, which is about that of the last writes; the number of
/// records. Blocks. Needs about 60 bytes of memory for each record that is there or was deleted.
///
/// # Errors
/// When the directory cannot be read, a process has the store open, or it is damaged; and what `each` says.
pub fn export<E: From<Error>>(
    directory: &Path,
    mut each: impl FnMut(Exported<'_>) -> Result<(), E>,
) -> Result<u64, E> {
    let _lock = Lock::take_to_read(directory)?;
    let verified = inspect::read_all(directory)?;
    if let Some(damage) = verified.damage.first() {
        let reason = format!(
            "damaged at byte {}: {}; nothing was exported. Restore the directory from a copy, or run `signalbox store \
             salvage`",
            damage.byte, damage.reason
        );
        return Err(failed(&directory.join(&damage.file), reason).into());
    }
    let Some(catalogue) = Catalogue::read(directory)? else {
        return Err(failed(directory, "this directory holds no store").into());
    };
    let mut files = Vec::new();
    for name in Listing::read(directory)?.kept {
        let path = name.path(directory);
        match Segment::open(path.clone(), name, 0, false) {
            Ok(segment) => files.push(Arc::new(segment)),
            // Made in the moment of a crash: a file that is damaged was refused above.
            Err(Unopened::Head { .. }) => {}
            Err(Unopened::Io(error)) => return Err(failed(&path, error).into()),
        }
    }
    let dictionaries = dictionaries_in(&files, &catalogue)?;
    let mut count = 0;
    let mut buffer = Vec::new();
    for (file, offset) in places(&files, &verified)? {
        let segment = &files[file as usize];
        let wrong = |reason: String| failed(segment.path(), reason);
        let entry = segment.read(offset, &mut buffer).map_err(wrong)?;
        let name = |names: Option<&String>| names.cloned().unwrap_or_default();
        let table = name(
            catalogue
                .tables
                .get(usize::from(entry.table))
                .map(|table| &table.name),
        );
        // Not a record of the function that owns the store.
        if table == Dictionary::TABLE.name {
            continue;
        }
        let site = name(catalogue.sites.get(usize::from(entry.site)));
        let value = compress::unpack(entry.value.to_vec(), MAX_VALUE, |id| {
            dictionaries.get(&id).cloned()
        })
        .map_err(|reason| wrong(format!("byte {offset}: {reason}")))?;
        each(Exported {
            table: &table,
            key: entry.key,
            version: entry.version,
            created: entry.created,
            site: &site,
            value,
        })?;
        count += 1;
    }
    Ok(count)
}

/// The dictionaries in the files of a log. They are never changed or deleted.
pub(super) fn dictionaries_in(files: &[Arc<Segment>], catalogue: &Catalogue) -> Result<Known, Error> {
    let mut known = Known::new();
    let own = catalogue
        .tables
        .iter()
        .position(|table| table.name == Dictionary::TABLE.name);
    let Some(own) = own else { return Ok(known) };
    for segment in files {
        let mut walk = Walk::new(segment.clone(), FILE_HEAD);
        // What is damaged or not finished has been found by who reads the log first.
        while let Ok(Some(step)) = walk.next() {
            let entry = &step.entry;
            if entry.kind != Kind::Put || usize::from(entry.table) != own {
                continue;
            }
            let value = compress::unpack(entry.value.to_vec(), MAX_VALUE, |_| None);
            let read = value.and_then(|value| Dictionary::decode(entry.key, &value).map_err(|error| error.0));
            let dictionary =
                read.map_err(|reason| failed(segment.path(), format!("byte {}: {reason}", step.offset)))?;
            known.insert(dictionary.id, dictionary.bytes);
        }
    }
    Ok(known)
}

/// Where the records are that exist, in the order of the log.
fn places(files: &[Arc<Segment>], verified: &inspect::Verified) -> Result<Vec<(u32, u64)>, Error> {
    // Two keyed hashes stand for table and key: that two records share all 128 bits is out of the question.
    let hashers = [RandomState::new(), RandomState::new()];
    let mut last: HashMap<[u64; 2], Last, RandomState> = HashMap::default();
    for (number, segment) in files.iter().enumerate() {
        let name = segment.name.to_string();
        let unfinished = verified.files.iter().find(|file| file.file == name);
        let end = segment.length() - unfinished.map_or(0, |file| file.unfinished);
        let mut walk = Walk::new(segment.clone(), FILE_HEAD);
        while walk.offset() < end {
            let at = walk.offset();
            let step = walk
                .next()
                .map_err(|fault| failed(segment.path(), format!("byte {at}: {fault}")))?;
            let Some(step) = step else { break };
            let entry = &step.entry;
            let place = match entry.kind {
                Kind::Put => Some((number as u32, step.offset)),
                Kind::Delete => None,
                Kind::Group | Kind::End => continue,
            };
            let id = hashers
                .each_ref()
                .map(|hasher| hasher.hash_one((entry.table, entry.key)));
            let version = entry.version.0;
            let known = last.entry(id).or_insert(Last {
                version: 0,
                place: None,
            });
            if version >= known.version {
                *known = Last { version, place };
            }
        }
    }
    let mut places: Vec<(u32, u64)> = last.into_values().filter_map(|last| last.place).collect();
    places.sort_unstable();
    Ok(places)
}
