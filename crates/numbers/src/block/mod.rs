//! A block: up to 65,536 consecutive numbers, those that are present and the value of each.
//!
//! Bytes: the dictionary (2 bytes a value, absent where the values themselves are as small), then the body in one of three
//! forms, whichever is smallest: [`elias_fano`] for sparse numbers, [`bitmap`] for dense ones, [`runs`] for neighbours that
//! share a value. A block is found and read with two or three cache lines: its [`Head`] is in the directory of the file, and
//! what belongs together in the body lies together, in cells.
//!
//! Nothing here checks a checksum, and nothing panics or runs without bound whatever the bytes are.

mod bitmap;
mod cells;
mod dictionary;
mod elias_fano;
mod runs;

use dictionary::Dictionary;

/// A number's place in its block, and its value.
pub(crate) type Entry = (u16, u16);

/// Most entries of a block.
pub(crate) const MOST_ENTRIES: usize = 1 << 16;

/// How the numbers of a block are written. The codes are part of the file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Form {
    EliasFano = 0,
    Bitmap = 1,
    Runs = 2,
}

impl Form {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::EliasFano => "Elias-Fano",
            Self::Bitmap => "bitmap",
            Self::Runs => "runs",
        }
    }
}

/// What a reader must know of a block before its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) form: Form,
    /// Low digits' bits that Elias-Fano writes as they are, 0 to 15.
    pub(crate) low_bits: u8,
    /// Bits of a value, or of its index in the dictionary, 0 to 16.
    pub(crate) value_bits: u8,
    /// Values in the dictionary; 0 where values are written as they are.
    pub(crate) dictionary: u16,
    /// Numbers in the block, 0 to 65,536.
    pub(crate) count: u32,
}

impl Head {
    pub(crate) fn pack(self) -> u64 {
        self.form as u64
            | u64::from(self.low_bits) << 4
            | u64::from(self.value_bits) << 8
            | u64::from(self.dictionary) << 16
            | u64::from(self.count) << 32
    }

    /// `None` where the bits are none that [`Self::pack`] makes.
    pub(crate) fn unpack(bits: u64) -> Option<Self> {
        let form = match bits & 0xf {
            0 => Form::EliasFano,
            1 => Form::Bitmap,
            2 => Form::Runs,
            _ => return None,
        };
        let head = Self {
            form,
            low_bits: (bits >> 4 & 0xf) as u8,
            value_bits: (bits >> 8 & 0xff) as u8,
            dictionary: (bits >> 16) as u16,
            count: (bits >> 32) as u32,
        };
        let possible = head.value_bits <= 16 && head.count as usize <= MOST_ENTRIES;
        possible.then_some(head)
    }

    /// Bytes before the body.
    fn body(self) -> usize {
        usize::from(self.dictionary) * 2
    }
}

/// A block as it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'b> {
    pub(crate) head: Head,
    pub(crate) bytes: &'b [u8],
}

impl Block<'_> {
    /// The value of the number at `low`.
    pub(crate) fn find(self, low: u16) -> Option<u16> {
        if self.head.count == 0 {
            return None;
        }
        let body = self.body();
        let found = match self.head.form {
            Form::EliasFano => elias_fano::find(self.head, body, low),
            Form::Bitmap => bitmap::find(self.head, body, low),
            Form::Runs => runs::find(self.head, body, low),
        };
        self.value(found?)
    }

    /// Whether a number from `from` to `to` is in it, by a search that decodes none of the others; `None` where the bytes do not
    /// decode.
    pub(crate) fn has_between(self, from: u16, to: u16) -> Option<bool> {
        if self.head.count == 0 {
            return Some(false);
        }
        let body = self.body();
        match self.head.form {
            Form::EliasFano => elias_fano::has_between(self.head, body, from, to),
            Form::Bitmap => bitmap::has_between(self.head, body, from, to),
            Form::Runs => Some(runs::has_between(self.head, body, from, to)),
        }
    }

    /// Where, from the block's start, the bytes are that say where the cell of `low` is: the first to prefetch.
    pub(crate) fn signpost(self, low: u16) -> usize {
        self.head.body() + cells::signpost(self.head, low)
    }

    /// Where, from the block's start, the cell of `low` begins: the second to prefetch.
    pub(crate) fn cell(self, low: u16) -> usize {
        self.head.body() + cells::start(self.head, self.body(), low)
    }

    /// All entries in the order of their places; `None` where the bytes do not decode.
    pub(crate) fn entries(self) -> Option<Vec<Entry>> {
        let mut entries = Vec::with_capacity(self.head.count as usize);
        if self.head.count > 0 {
            let body = self.body();
            match self.head.form {
                Form::EliasFano => elias_fano::entries(self.head, body, &mut entries)?,
                Form::Bitmap => bitmap::entries(self.head, body, &mut entries)?,
                Form::Runs => runs::entries(self.head, body, &mut entries)?,
            }
        }
        for (_, value) in &mut entries {
            *value = self.value(u32::from(*value))?;
        }
        let ascending = entries.is_sorted_by(|(a, _), (b, _)| a < b);
        (ascending && entries.len() == self.head.count as usize).then_some(entries)
    }

    fn body(&self) -> &[u8] {
        self.bytes.get(self.head.body()..).unwrap_or_default()
    }

    fn value(self, written: u32) -> Option<u16> {
        if self.head.dictionary == 0 {
            return Some(written as u16);
        }
        let at = written as usize * 2;
        if written >= u32::from(self.head.dictionary) {
            return None;
        }
        let pair = self.bytes.get(at..at + 2)?;
        Some(u16::from_le_bytes([pair[0], pair[1]]))
    }
}

/// A block in memory of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedBlock {
    pub(crate) head: Head,
    pub(crate) bytes: Box<[u8]>,
}

impl OwnedBlock {
    /// The smallest block with these entries, which are in ascending order of their places.
    pub(crate) fn encode(entries: &[Entry]) -> Self {
        debug_assert!(entries.is_sorted_by(|(a, _), (b, _)| a < b));
        let dictionary = Dictionary::new(entries);
        let runs = runs::count(entries);
        let mut best: Option<(u64, Head)> = None;
        let mut offer = |bits: u64, head: Head| {
            if best.is_none_or(|(least, _)| bits < least) {
                best = Some((bits, head));
            }
        };
        for (value_bits, length) in dictionary.choices() {
            let head = |form, low_bits| Head {
                form,
                low_bits,
                value_bits,
                dictionary: length,
                count: entries.len() as u32,
            };
            let shared = u64::from(length) * 16;
            if let Some(bits) = runs::bits(runs, value_bits) {
                offer(shared + bits, head(Form::Runs, 0));
            }
            let bitmap = head(Form::Bitmap, 0);
            offer(shared + bitmap::bits(bitmap), bitmap);
            for low_bits in 0..16 {
                let sparse = head(Form::EliasFano, low_bits);
                offer(shared + elias_fano::bits(sparse), sparse);
            }
        }
        // There is a choice at least, and the bitmap is always offered.
        let head = best.map_or(
            Head {
                form: Form::Bitmap,
                low_bits: 0,
                value_bits: 16,
                dictionary: 0,
                count: entries.len() as u32,
            },
            |(_, head)| head,
        );
        Self {
            head,
            bytes: written(head, &dictionary, entries).into_boxed_slice(),
        }
    }

    pub(crate) fn view(&self) -> Block<'_> {
        Block {
            head: self.head,
            bytes: &self.bytes,
        }
    }
}

fn written(head: Head, dictionary: &Dictionary, entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    if head.dictionary > 0 {
        bytes.extend(dictionary.values().flat_map(u16::to_le_bytes));
    }
    if entries.is_empty() {
        return bytes;
    }
    let written = |value: u16| match head.dictionary {
        0 => u32::from(value),
        _ => dictionary.index(value),
    };
    match head.form {
        Form::EliasFano => elias_fano::write(head, entries, written, &mut bytes),
        Form::Bitmap => bitmap::write(head, entries, written, &mut bytes),
        Form::Runs => runs::write(head, entries, written, &mut bytes),
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn proven(entries: &[Entry]) -> OwnedBlock {
        let block = OwnedBlock::encode(entries);
        assert_eq!(Head::unpack(block.head.pack()), Some(block.head));
        assert_eq!(
            block.view().entries().as_deref(),
            Some(entries),
            "{:?}",
            block.head
        );
        let known: BTreeMap<u16, u16> = entries.iter().copied().collect();
        for low in 0..=u16::MAX {
            assert_eq!(
                block.view().find(low),
                known.get(&low).copied(),
                "{low} {:?}",
                block.head
            );
            let _ = (block.view().signpost(low), block.view().cell(low));
        }
        for low in (0..=u16::MAX).step_by(37) {
            for span in [0, 9, 99, 999, 9_999, u16::MAX] {
                let last = low.saturating_add(span);
                let expected = known.range(low..=last).next().is_some();
                let found = block.view().has_between(low, last);
                assert_eq!(found, Some(expected), "{low} {last} {:?}", block.head);
            }
        }
        block
    }

    /// Entries at every `gap`th place from `first` on, of values that repeat after `values` of them.
    fn spread(first: u32, gap: usize, values: u32) -> Vec<Entry> {
        (first..1 << 16)
            .step_by(gap)
            .map(|low| {
                (
                    low as u16,
                    (low.wrapping_mul(0x9e37_79b1) >> 8).rem_euclid(values) as u16,
                )
            })
            .collect()
    }

    #[test]
    fn the_smallest_form_is_chosen_and_exact() {
        assert_eq!(proven(&spread(0, 1, 1)).bytes.len(), 6);
        assert_eq!(proven(&spread(0, 1, 300)).head.form, Form::Bitmap);
        assert_eq!(proven(&spread(5, 2, 300)).head.form, Form::Bitmap);
        assert_eq!(proven(&spread(7, 28, 300)).head.form, Form::EliasFano);
        assert_eq!(proven(&spread(1, 1000, 65_535)).head.form, Form::EliasFano);
        assert_eq!(proven(&spread(65_535, 1, 9)).head.count, 1);
        assert!(proven(&[]).bytes.is_empty());
        assert_eq!(proven(&spread(3, 27, 2)).head.value_bits, 1);
        let mut shifted = spread(0, 3, 4);
        shifted.iter_mut().for_each(|(_, value)| *value += 60_000);
        assert_eq!(proven(&shifted).head.dictionary, 4);
    }

    #[test]
    fn a_random_destination_of_300_costs_two_bytes() {
        let block = proven(&spread(7, 28, 300));
        let each = block.bytes.len() as f64 / f64::from(block.head.count);
        assert!(each < 2.1, "{each}");
    }

    #[test]
    fn numbers_that_crowd_in_one_bucket() {
        let entries: Vec<Entry> = (0..256)
            .map(|low| (low, low * 100))
            .chain([(65_535, 1)])
            .collect();
        proven(&entries);
        let entries: Vec<Entry> = (0..40).map(|low| (30_000 + low * 3, 7)).collect();
        proven(&entries);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn any_entries_read_back(
            entries in prop::collection::btree_map(any::<u16>(), 0..400_u16, 0..3000),
            runs in prop::collection::vec((any::<u16>(), 0..2000_u16, any::<u16>()), 0..12),
        ) {
            let mut all = entries;
            for (start, length, value) in runs {
                for low in start..=start.saturating_add(length) {
                    all.insert(low, value);
                }
            }
            proven(&all.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn any_bytes_are_read_without_panic(head in any::<u64>(), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            // Forms and widths that exist, so that the bytes are read at all.
            let head = head & 0x0000_00ff_0003_0ff3;
            if let Some(head) = Head::unpack(head) {
                let block = Block { head, bytes: &bytes };
                let _ = block.entries();
                for low in (0..=u16::MAX).step_by(97) {
                    let _ = (block.find(low), block.signpost(low), block.cell(low));
                    let _ = (block.has_between(low, low), block.has_between(low, u16::MAX));
                }
            }
        }
    }
}
