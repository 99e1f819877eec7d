//! Bits in bytes: least significant first, as in a little-endian integer of any length.

/// Appends groups of bits to bytes.
#[derive(Debug, Default)]
pub(crate) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that do not fill a byte yet, fewer than 8 between calls.
    pending: u64,
    pending_bits: u32,
}

impl BitWriter {
    /// Appends the low `width` bits of `value`, at most 32; the bits above are zero.
    pub(crate) fn push(&mut self, value: u32, width: u32) {
        debug_assert!(width <= 32 && u64::from(value) >> width == 0);
        self.pending |= u64::from(value) << self.pending_bits;
        self.pending_bits += width;
        while self.pending_bits >= 8 {
            self.bytes.push(self.pending as u8);
            self.pending >>= 8;
            self.pending_bits -= 8;
        }
    }

    /// The number of bits so far.
    pub(crate) fn bits(&self) -> u32 {
        self.bytes.len() as u32 * 8 + self.pending_bits
    }

    /// The bytes, the last one filled with zeros.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        if self.pending_bits > 0 {
            self.bytes.push(self.pending as u8);
        }
        self.bytes
    }
}

/// 64 bits from bit `at` on; bits behind the end are zero, and at least 57 of those before it are there.
pub(crate) fn window(bytes: &[u8], at: u32) -> u64 {
    let from = (at / 8) as usize;
    let word = match bytes.get(from..from + 8) {
        Some(all) => u64::from_le_bytes(all.try_into().unwrap_or_default()),
        None => {
            let rest = bytes.get(from..).unwrap_or_default();
            let mut word = [0; 8];
            word[..rest.len().min(8)].copy_from_slice(&rest[..rest.len().min(8)]);
            u64::from_le_bytes(word)
        }
    };
    word >> (at % 8)
}

/// The `width` bits at bit `at`, at most 32.
pub(crate) fn read(bytes: &[u8], at: u32, width: u32) -> u32 {
    (window(bytes, at) & ((1_u64 << width) - 1)) as u32
}

/// The bits that `value` takes; 0 for 0.
pub(crate) const fn width(value: u32) -> u32 {
    u32::BITS - value.leading_zeros()
}

/// The position of the `nth` one of `word`, from 0; 64 when it has not that many.
pub(crate) fn select(mut word: u64, nth: u32) -> u32 {
    let (mut at, mut left) = (0, nth);
    for half in [32, 16, 8] {
        let ones = (word & ((1_u64 << half) - 1)).count_ones();
        if left >= ones {
            left -= ones;
            word >>= half;
            at += half;
        }
    }
    // A byte is left where the word has enough of them.
    for _ in 0..left {
        word &= word.wrapping_sub(1);
    }
    if word == 0 { 64 } else { at + word.trailing_zeros() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_at_any_width() {
        for size in 0..=32 {
            let mut writer = BitWriter::default();
            let values: Vec<u32> = (0..100_u32)
                .map(|i| (u64::from(i.wrapping_mul(0x9e37_79b9)) & ((1_u64 << size) - 1)) as u32)
                .collect();
            values.iter().for_each(|value| writer.push(*value, size));
            assert_eq!(writer.bits(), 100 * size);
            let bytes = writer.finish();
            for (i, value) in values.iter().enumerate() {
                assert_eq!(read(&bytes, i as u32 * size, size), *value);
            }
            assert_eq!(read(&bytes, 1_000_000, size), 0);
        }
    }

    #[test]
    fn select_finds_each_one() {
        for word in [
            0,
            1,
            u64::MAX,
            0x8000_0000_0000_0000,
            0x0101_0000_8000_00f0,
            0xdead_beef,
        ] {
            let ones: Vec<u32> = (0..64).filter(|bit| word >> bit & 1 == 1).collect();
            for nth in 0..70 {
                let expected = ones.get(nth as usize).copied().unwrap_or(64);
                assert_eq!(select(word, nth), expected, "{word:#x} {nth}");
            }
        }
    }
}
