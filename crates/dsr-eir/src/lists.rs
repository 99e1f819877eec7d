//! The lists in memory: sorted arrays, so that ten million ranges take 160 MB and a hundred million pairs 1.4 GB.

use dsr_app::Table;

use crate::Status;

/// Everything the register knows.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub(crate) ranges: Ranges,
    pub(crate) imeis: Imeis,
    pub(crate) pairs: Pairs,
}

impl Lists {
    pub(crate) fn tables(&self) -> [Table; 3] {
        let table = |name, entries: usize, each: usize| Table {
            name,
            entries,
            bytes: entries * each,
        };
        [
            table("ranges", self.ranges.len(), size_of::<Range>()),
            table("imeis", self.imeis.len(), size_of::<u64>()),
            table("pairs", self.pairs.len(), size_of::<PackedPair>()),
        ]
    }

    /// Sorts what was collected.
    ///
    /// # Errors
    /// When entries contradict one another.
    pub(crate) fn sort(&mut self) -> Result<(), String> {
        self.ranges.sort()?;
        self.imeis.sort()?;
        self.pairs.sort()
    }
}

/// Entries from one fence to the next.
const FENCE: usize = 128;

/// Entries in order, and every 128th of them apart: a search among a hundred million touches little memory beside the
/// fences, which stay in the processor's caches.
#[derive(Debug)]
struct Sorted<T> {
    all: Vec<T>,
    fences: Vec<T>,
}

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            fences: Vec::new(),
        }
    }
}

impl<T: Copy> Sorted<T> {
    /// After `all` has been sorted.
    fn set_fences(&mut self) {
        self.all.shrink_to_fit();
        self.fences = self.all.iter().step_by(FENCE).copied().collect();
    }

    /// The position of the first entry that is not before.
    fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        let block = self.fences.partition_point(&is_before);
        let start = block.saturating_sub(1) * FENCE;
        let end = (block * FENCE).min(self.all.len());
        start
            + self
                .all
                .get(start..end)
                .map_or(0, |few| few.partition_point(is_before))
    }

    fn get(&self, at: usize) -> Option<&T> {
        self.all.get(at)
    }
}

/// A number with its status in the two lowest bits.
const fn packed(number: u64, status: Status) -> u64 {
    number << 2 | status as u64
}

const fn status(packed: u64) -> Status {
    Status::from_bits(packed as u8)
}

#[derive(Clone, Copy, Debug)]
struct Range {
    /// The first IMEI, packed with the status.
    first: u64,
    /// IMEIs that follow it.
    more: u32,
}

/// Ranges of IMEIs, in order.
#[derive(Debug, Default)]
pub(crate) struct Ranges(Sorted<Range>);

impl Ranges {
    pub(crate) fn len(&self) -> usize {
        self.0.all.len()
    }

    /// Adds a range; one of more than 2^32 IMEIs takes several entries.
    pub(crate) fn add(&mut self, mut first: u64, last: u64, status: Status) {
        loop {
            let more = u32::try_from(last - first).unwrap_or(u32::MAX);
            self.0.all.push(Range {
                first: packed(first, status),
                more,
            });
            first += u64::from(more) + 1;
            if first > last {
                return;
            }
        }
    }

    fn sort(&mut self) -> Result<(), String> {
        self.0.all.sort_unstable_by_key(|range| range.first);
        for pair in self.0.all.windows(2) {
            if let [one, other] = pair
                && other.first >> 2 <= (one.first >> 2) + u64::from(one.more)
            {
                let [one, other] = [one, other].map(|range| range.first >> 2);
                return Err(format!("the ranges from {one:014} and {other:014} overlap"));
            }
        }
        self.0.set_fences();
        Ok(())
    }

    pub(crate) fn find(&self, imei: u64) -> Option<Status> {
        let at = self.0.partition_point(|range| range.first >> 2 <= imei);
        let range = self.0.get(at.checked_sub(1)?)?;
        (imei - (range.first >> 2) <= u64::from(range.more)).then(|| status(range.first))
    }
}

/// Single IMEIs, in order.
#[derive(Debug, Default)]
pub(crate) struct Imeis(Sorted<u64>);

impl Imeis {
    pub(crate) fn len(&self) -> usize {
        self.0.all.len()
    }

    pub(crate) fn add(&mut self, imei: u64, status: Status) {
        self.0.all.push(packed(imei, status));
    }

    fn sort(&mut self) -> Result<(), String> {
        self.0.all.sort_unstable();
        self.0.all.dedup();
        let twice = self.0.all.windows(2).find(|pair| pair[0] >> 2 == pair[1] >> 2);
        if let Some(pair) = twice {
            return Err(format!("the IMEI {:014} is in two lists", pair[0] >> 2));
        }
        self.0.set_fences();
        Ok(())
    }

    pub(crate) fn find(&self, imei: u64) -> Option<Status> {
        let at = self.0.partition_point(|entry| entry >> 2 < imei);
        let entry = self.0.get(at).filter(|entry| *entry >> 2 == imei)?;
        Some(status(*entry))
    }
}

/// IMEI (47 bits), IMSI with its count of digits (54), status (2), the most significant byte first.
type PackedPair = [u8; 13];
const IMSI_BITS: u32 = 54;

fn pair(imei: u64, imsi: u64, status: u64) -> PackedPair {
    let value = (u128::from(imei) << IMSI_BITS | u128::from(imsi)) << 2 | u128::from(status);
    let mut pair = [0; 13];
    pair.copy_from_slice(&value.to_be_bytes()[3..]);
    pair
}

const fn status_of(pair: &PackedPair) -> Status {
    Status::from_bits(pair[12])
}

/// Pairs of IMEIs and IMSIs, in order.
#[derive(Debug, Default)]
pub(crate) struct Pairs(Sorted<PackedPair>);

impl Pairs {
    pub(crate) fn len(&self) -> usize {
        self.0.all.len()
    }

    /// Adds a pair; the IMSI as [`super::digits`] has it.
    pub(crate) fn add(&mut self, imei: u64, imsi: u64, status: Status) {
        self.0.all.push(pair(imei, imsi, status as u64));
    }

    fn sort(&mut self) -> Result<(), String> {
        self.0.all.sort_unstable();
        self.0.all.dedup();
        let key = |pair: &PackedPair| (pair[..12].to_vec(), pair[12] & !3);
        let twice = self
            .0
            .all
            .windows(2)
            .find(|both| both[0][..12] == both[1][..12] && both[0][12] & !3 == both[1][12] & !3);
        if let Some(both) = twice {
            let (bytes, last) = key(&both[0]);
            let value = bytes
                .iter()
                .chain([&last])
                .fold(0_u128, |value, byte| value << 8 | u128::from(*byte));
            let imei = value >> 2 >> IMSI_BITS;
            return Err(format!("a pair of the IMEI {imei:014} is in two lists"));
        }
        self.0.set_fences();
        Ok(())
    }

    pub(crate) fn find(&self, imei: u64, imsi: u64) -> Option<Status> {
        let (least, most) = (pair(imei, imsi, 0), pair(imei, imsi, 3));
        let at = self.0.partition_point(|pair| *pair < least);
        let pair = self.0.get(at).filter(|pair| **pair <= most)?;
        Some(status_of(pair))
    }

    /// Whether the IMEI is in any pair.
    pub(crate) fn has(&self, imei: u64) -> bool {
        let (least, beyond) = (pair(imei, 0, 0), pair(imei + 1, 0, 0));
        let at = self.0.partition_point(|pair| *pair < least);
        self.0.get(at).is_some_and(|pair| *pair < beyond)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST: u64 = 99_999_999_999_999;

    #[test]
    fn a_search_with_fences_finds_what_one_without_finds() {
        for count in [0, 1, 2, 127, 128, 129, 255, 256, 257, 1000] {
            let mut sorted = Sorted {
                all: (0..count).map(|number| number * 3).collect::<Vec<u64>>(),
                fences: Vec::new(),
            };
            sorted.set_fences();
            for wanted in 0..count * 3 + 2 {
                let plain = sorted.all.partition_point(|entry| *entry < wanted);
                assert_eq!(
                    sorted.partition_point(|entry| *entry < wanted),
                    plain,
                    "{wanted} of {count}"
                );
            }
        }
    }

    #[test]
    fn ranges_hold_their_ends_and_large_ones_are_cut() {
        let mut ranges = Ranges::default();
        ranges.add(35_000_000_000_000, 35_000_099_999_999, Status::Black);
        ranges.add(0, 9_999_999_999_999, Status::Grey);
        ranges.add(LAST, LAST, Status::White);
        ranges.sort().unwrap();
        assert_eq!(ranges.len(), 2 + 10_000_000_000_000_usize.div_ceil(1 << 32));
        for (imei, expected) in [
            (0, Some(Status::Grey)),
            ((1 << 32) - 1, Some(Status::Grey)),
            (1 << 32, Some(Status::Grey)),
            (9_999_999_999_999, Some(Status::Grey)),
            (10_000_000_000_000, None),
            (34_999_999_999_999, None),
            (35_000_000_000_000, Some(Status::Black)),
            (35_000_099_999_999, Some(Status::Black)),
            (35_000_100_000_000, None),
            (LAST, Some(Status::White)),
        ] {
            assert_eq!(ranges.find(imei), expected, "{imei}");
        }
        ranges.add(9_999_999_999_999, 10_000_000_000_000, Status::White);
        let error = ranges.sort().unwrap_err();
        assert!(error.contains("09999999999999 overlap"), "{error}");
    }

    #[test]
    fn imeis_and_pairs_are_found_and_contradictions_named() {
        let mut imeis = Imeis::default();
        for (imei, status) in [
            (7, Status::Black),
            (LAST, Status::Grey),
            (7, Status::Black),
            (0, Status::White),
        ] {
            imeis.add(imei, status);
        }
        imeis.sort().unwrap();
        let found = [0, 7, 8, LAST].map(|imei| imeis.find(imei));
        assert_eq!(
            found,
            [Some(Status::White), Some(Status::Black), None, Some(Status::Grey)]
        );
        imeis.add(7, Status::White);
        assert_eq!(
            imeis.sort().unwrap_err(),
            "the IMEI 00000000000007 is in two lists"
        );
        let mut pairs = Pairs::default();
        let imsi = super::super::digits(b"999999999999999").unwrap();
        let other = super::super::digits(b"001010000000001").unwrap();
        assert!(imsi < 1 << IMSI_BITS);
        pairs.add(LAST, imsi, Status::Grey);
        pairs.add(7, other, Status::Black);
        pairs.sort().unwrap();
        assert_eq!(pairs.find(LAST, imsi), Some(Status::Grey));
        assert_eq!(pairs.find(7, other), Some(Status::Black));
        assert_eq!((pairs.find(7, imsi), pairs.find(8, other)), (None, None));
        assert_eq!(
            [6, 7, 8, LAST].map(|imei| pairs.has(imei)),
            [false, true, false, true]
        );
        pairs.add(7, other, Status::White);
        assert!(pairs.sort().unwrap_err().contains("00000000000007"));
    }
}
