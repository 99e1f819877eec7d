//! Dictionaries of values: what the values of a table have in common, so that compression need not repeat it in each.
//!
//! A store that compresses gathers the first values of a table, makes a dictionary of them, writes it as a record of a
//! table of its own, and compresses with it once that is durable. A compressed value names its dictionary. Dictionaries
//! stay for as long as the store: they travel with backups, salvage and exports as every record does.
//!
//! A dictionary that is lost makes all values compressed with it unreadable. So it is written twice, by two batches: salvage
//! of a damaged file keeps the other copy, and the next start writes the missing one.
//!
//! The embedded engine has them. Values in a database are for other tools to read, and several processes write there.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use records::{DecodeError, IndexKeys, Key, Record, TableSchema};

use crate::schema::TableId;

/// Bytes of a dictionary. Each compression reads all of it, so more does not pay.
const LARGEST: usize = 16 * 1_024;
/// Values that are gathered for a dictionary, and bytes of them at most.
const SAMPLES: usize = 128;
const SAMPLE_BYTES: usize = 512 * 1_024;
/// How often a dictionary is written.
const COPIES: u8 = 2;

/// A copy of a dictionary, as a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dictionary {
    pub(crate) id: u32,
    /// Which of the copies, from 0.
    pub(crate) copy: u8,
    /// Name of the table whose values it is made of.
    pub(crate) table: String,
    pub(crate) bytes: Arc<[u8]>,
}

impl Record for Dictionary {
    const TABLE: &'static TableSchema = &TableSchema {
        name: "signalbox_dictionary",
        indexes: &[],
        by_modified: false,
        sql: None,
    };

    fn key(&self) -> Key {
        let [a, b, c, d] = self.id.to_be_bytes();
        Key::from_slice(&[a, b, c, d, self.copy])
    }

    fn index(&self, _: &mut IndexKeys) {}

    /// Length of the table's name, the name, the bytes.
    fn encode(&self, out: &mut Vec<u8>) {
        // Names of tables are short; `check_schemas` has seen them.
        out.push(u8::try_from(self.table.len()).unwrap_or(u8::MAX));
        out.extend_from_slice(self.table.as_bytes());
        out.extend_from_slice(&self.bytes);
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Dictionary, DecodeError> {
        let wrong = || DecodeError("not a dictionary".to_owned());
        let (copy, id) = key.split_last().ok_or_else(wrong)?;
        let id = id.try_into().map_err(|_| wrong())?;
        let (length, rest) = value.split_first().ok_or_else(wrong)?;
        let (table, bytes) = rest.split_at_checked(usize::from(*length)).ok_or_else(wrong)?;
        Ok(Dictionary {
            id: u32::from_be_bytes(id),
            copy: *copy,
            table: String::from_utf8(table.to_vec()).map_err(|_| wrong())?,
            bytes: bytes.into(),
        })
    }
}

impl Dictionary {
    /// All copies of it.
    pub(crate) fn copies(&self) -> impl Iterator<Item = Dictionary> {
        let one = self.clone();
        (0..COPIES).map(move |copy| Dictionary { copy, ..one.clone() })
    }

    /// The copies that are missing among those that are stored.
    pub(crate) fn missing(stored: &[Dictionary]) -> Vec<Dictionary> {
        let present: HashSet<(u32, u8)> = stored.iter().map(|one| (one.id, one.copy)).collect();
        let mut missing: Vec<Dictionary> = stored.iter().flat_map(Dictionary::copies).collect();
        missing.sort_unstable_by_key(|one| (one.id, one.copy));
        missing.dedup_by_key(|one| (one.id, one.copy));
        missing.retain(|one| !present.contains(&(one.id, one.copy)));
        missing
    }
}

/// Dictionaries by their number.
pub(crate) type Known = HashMap<u32, Arc<[u8]>>;

/// The dictionaries of a store.
#[derive(Debug)]
pub(crate) struct Dictionaries {
    /// Empty where there are none: without compression, and on databases.
    tables: Vec<Gathering>,
    current: ArcSwap<Current>,
}

/// What values are compressed with, and what they may have been compressed with.
#[derive(Clone, Debug, Default)]
struct Current {
    known: Known,
    /// By table.
    of: HashMap<TableId, (u32, Arc<[u8]>)>,
}

/// The values of a table that a dictionary is made of.
#[derive(Debug)]
struct Gathering {
    name: &'static str,
    done: AtomicBool,
    samples: Mutex<Vec<Vec<u8>>>,
}

impl Dictionaries {
    /// None.
    pub(crate) fn none() -> Dictionaries {
        Dictionaries {
            tables: Vec::new(),
            current: ArcSwap::default(),
        }
    }

    /// Those that are stored; tables without one get it.
    pub(crate) fn new(tables: &[&'static TableSchema], stored: Vec<Dictionary>) -> Dictionaries {
        let mut current = Current::default();
        for dictionary in stored {
            current.known.insert(dictionary.id, dictionary.bytes.clone());
            let position = tables.iter().position(|table| table.name == dictionary.table);
            if let Some(id) = position.and_then(|position| u16::try_from(position).ok()) {
                current.of.insert(TableId(id), (dictionary.id, dictionary.bytes));
            }
        }
        let gathering = |(position, table): (usize, &&'static TableSchema)| {
            let id = TableId(u16::try_from(position).unwrap_or(u16::MAX));
            let is_own = table.name == Dictionary::TABLE.name;
            Gathering {
                name: table.name,
                done: AtomicBool::new(is_own || current.of.contains_key(&id)),
                samples: Mutex::default(),
            }
        };
        Dictionaries {
            tables: tables.iter().enumerate().map(gathering).collect(),
            current: ArcSwap::from_pointee(current),
        }
    }

    /// What a value of a table is compressed with.
    pub(crate) fn of(&self, table: TableId) -> Option<(u32, Arc<[u8]>)> {
        match self.tables.is_empty() {
            true => None,
            false => self.current.load().of.get(&table).cloned(),
        }
    }

    /// The dictionary of a number.
    pub(crate) fn get(&self, id: u32) -> Option<Arc<[u8]>> {
        self.current.load().known.get(&id).cloned()
    }

    /// Gathers a value. With the last one that is needed, all of them; [`Dictionaries::make`] takes them. No thread waits
    /// for another: a value that another thread keeps out is not gathered.
    pub(crate) fn gather(&self, table: TableId, value: &[u8]) -> Option<Vec<Vec<u8>>> {
        let gathering = self.tables.get(usize::from(table.0))?;
        if gathering.done.load(Relaxed) {
            return None;
        }
        let mut samples = gathering.samples.try_lock()?;
        if gathering.done.load(Relaxed) {
            return None;
        }
        samples.push(value.to_vec());
        let bytes: usize = samples.iter().map(Vec::len).sum();
        if samples.len() < SAMPLES && bytes < SAMPLE_BYTES {
            return None;
        }
        gathering.done.store(true, Relaxed);
        Some(std::mem::take(&mut *samples))
    }

    /// The dictionary of a table, made of some of its values; it counts after [`Dictionaries::add`]. Takes a tenth of a
    /// second. None where values have nothing in common.
    pub(crate) fn make(&self, table: TableId, samples: &[Vec<u8>]) -> Option<Dictionary> {
        let bytes = made_of(samples);
        let current = self.current.load();
        // A number that is the same for the same bytes, and free.
        let mut id = crc32fast::hash(&bytes);
        while current.known.contains_key(&id) {
            id = id.wrapping_add(1);
        }
        let table = self.tables.get(usize::from(table.0))?.name.to_owned();
        (!bytes.is_empty()).then(|| Dictionary {
            id,
            copy: 0,
            table,
            bytes: bytes.into(),
        })
    }

    /// A dictionary is durable: values are compressed with it from now on.
    pub(crate) fn add(&self, table: TableId, dictionary: &Dictionary) {
        self.current.rcu(|current| {
            let mut current = Current::clone(current);
            let (id, bytes) = (dictionary.id, dictionary.bytes.clone());
            current.known.insert(id, bytes.clone());
            current.of.insert(table, (id, bytes));
            current
        });
    }
}

/// Bytes that are counted together.
const GRAM: usize = 8;
/// Bytes that are taken together, and where such a piece may begin.
const PIECE: usize = 64;
const STRIDE: usize = 16;

/// The pieces of values that occur in most of them, those of most use last (as COVER of zstd chooses them: pieces by the
/// frequency of what they consist of, each part of which counts once).
fn made_of(samples: &[Vec<u8>]) -> Vec<u8> {
    let gram = |bytes: &[u8]| {
        bytes
            .first_chunk::<GRAM>()
            .map(|bytes| u64::from_le_bytes(*bytes))
    };
    let mut frequencies: HashMap<u64, u32> = HashMap::new();
    for gram in samples
        .iter()
        .flat_map(|sample| sample.windows(GRAM))
        .filter_map(gram)
    {
        *frequencies.entry(gram).or_default() += 1;
    }
    // What occurs once is of no use to another value.
    frequencies.retain(|_, count| *count > 1);
    let pieces: Vec<&[u8]> = samples
        .iter()
        .flat_map(|sample| sample.windows(PIECE.min(sample.len().max(1))).step_by(STRIDE))
        .collect();
    let worth = |piece: &[u8], frequencies: &HashMap<u64, u32>| -> u64 {
        let grams = piece.windows(GRAM).filter_map(gram);
        grams
            .filter_map(|gram| frequencies.get(&gram))
            .map(|count| u64::from(*count))
            .sum()
    };
    let wanted = LARGEST / PIECE;
    let mut chosen: Vec<(u64, &[u8])> = Vec::with_capacity(wanted);
    for epoch in pieces.chunks(pieces.len().div_ceil(wanted).max(1)) {
        let valued = epoch.iter().map(|piece| (worth(piece, &frequencies), *piece));
        let Some((value, piece)) = valued
            .max_by_key(|(value, _)| *value)
            .filter(|(value, _)| *value > 0)
        else {
            continue;
        };
        for gram in piece.windows(GRAM).filter_map(gram) {
            frequencies.remove(&gram);
        }
        chosen.push((value, piece));
    }
    chosen.sort_by_key(|(value, _)| *value);
    chosen.into_iter().flat_map(|(_, piece)| piece).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_is_bounded_and_has_what_values_share() {
        let sample = |number: u32| {
            let own: Vec<u8> = (0..600u32)
                .flat_map(|place| (place ^ number).wrapping_mul(0x9e37_79b9).to_le_bytes())
                .collect();
            let shared = br#"{"policyDecision":{"pccRules":{"rule-internet":{"flowInfos":[{"flowDescription":"permit out ip"}]}}}}"#;
            [&own[..1_000], shared, &own[1_000..]].concat()
        };
        let samples: Vec<Vec<u8>> = (0..100).map(sample).collect();
        let made = made_of(&samples);
        assert!(made.len() <= LARGEST);
        let text = String::from_utf8_lossy(&made).into_owned();
        assert!(
            text.contains("flowDescription") && text.contains("policyDecision"),
            "{} bytes",
            made.len()
        );
        assert!(made_of(&[vec![], vec![1]]).is_empty());
    }

    /// Small values gain most: in a large one LZ4 finds by itself what repeats.
    #[test]
    fn small_values_of_a_kind_become_smaller_with_it() {
        let value = |number: u32| {
            let own = number.wrapping_mul(0x9e37_79b9);
            format!(
                "{{\"supi\":\"imsi-{own:015}\",\"ipv4Addr\":\"10.{}.{}.7\",\"dnn\":\"internet\",\"snssai\":{{\"sst\":1,\"sd\":\"00000a\"}},\
                 \"pcfFqdn\":\"pcf{}.5gc.mnc001.mcc001.3gppnetwork.org\",\"pcfId\":\"{own:08x}-0000-4000-8000-000000000001\"}}",
                own >> 24,
                own >> 16 & 255,
                number % 5
            )
            .into_bytes()
        };
        let dictionary = made_of(&(0..100).map(value).collect::<Vec<_>>());
        let size = |dictionary: Option<(u32, &[u8])>| -> usize {
            let values = (1_000..1_100).map(value);
            values
                .map(|value| crate::compress::pack(value, Some(16), dictionary).len())
                .sum()
        };
        let (with, without) = (size(Some((1, &dictionary))), size(None));
        assert!(
            with * 2 < without,
            "{with} with the dictionary, {without} without"
        );
    }

    #[test]
    fn copies_that_are_missing_are_found() {
        let [first, second] = [7, 8].map(|id| Dictionary {
            id,
            copy: 0,
            table: "pcf_binding".to_owned(),
            bytes: (*b"{").into(),
        });
        let stored: Vec<Dictionary> = first.copies().chain(second.copies()).collect();
        assert!(Dictionary::missing(&stored).is_empty());
        assert_eq!(Dictionary::missing(&stored[1..]), stored[..1]);
        assert_eq!(Dictionary::missing(&stored[..3]), stored[3..]);
    }

    #[test]
    fn dictionaries_read_what_they_wrote() {
        let dictionary = Dictionary {
            id: 7,
            copy: 1,
            table: "pcf_binding".to_owned(),
            bytes: (*b"{\"supi\":").into(),
        };
        let mut bytes = Vec::new();
        dictionary.encode(&mut bytes);
        assert_eq!(
            Dictionary::decode(&dictionary.key(), &bytes),
            Ok(dictionary.clone())
        );
        assert!(
            Dictionary::decode(b"x", &bytes).is_err()
                && Dictionary::decode(b"", &bytes).is_err()
                && Dictionary::decode(&dictionary.key(), b"\xffa").is_err()
        );
    }
}
