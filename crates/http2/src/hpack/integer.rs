//! Integers and the bytes that hold them (RFC 7541 §5.1).

use super::HpackError;

/// What is left of a block.
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl<'a> Input<'a> {
    #[inline]
    pub(super) fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The integer whose prefix is the bits of `mask` in `first`.
    #[inline]
    pub(super) fn integer(&mut self, first: u8, mask: u8) -> Result<u32, HpackError> {
        let prefix = first & mask;
        if prefix < mask {
            return Ok(u32::from(prefix));
        }
        self.long_integer(mask)
    }

    fn long_integer(&mut self, mask: u8) -> Result<u32, HpackError> {
        let mut value = u64::from(mask);
        // 5 bytes of 7 bits hold any 32-bit number; a sixth is an attack or an error.
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.next().ok_or(HpackError::Truncated)?;
            value += u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value).map_err(|_| HpackError::Integer);
            }
        }
        Err(HpackError::Integer)
    }

    /// A string as it stands in the block, and whether it is Huffman code (§5.2).
    #[inline]
    pub(super) fn string(&mut self) -> Result<(&'a [u8], bool), HpackError> {
        let first = self.next().ok_or(HpackError::Truncated)?;
        let len = self.integer(first, 0x7f)? as usize;
        let (text, rest) = self.0.split_at_checked(len).ok_or(HpackError::Truncated)?;
        self.0 = rest;
        Ok((text, first & 0x80 != 0))
    }
}

/// Writes an integer whose prefix is the bits of `mask`, under the bits of `kind`.
#[inline]
pub(super) fn write_integer(kind: u8, mask: u8, value: usize, out: &mut Vec<u8>) {
    if value < usize::from(mask) {
        return out.push(kind | value as u8);
    }
    out.push(kind | mask);
    let mut left = value - usize::from(mask);
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

/// Writes a string without Huffman code.
#[inline]
pub(super) fn write_string(text: &[u8], out: &mut Vec<u8>) {
    write_integer(0, 0x7f, text.len(), out);
    out.extend_from_slice(text);
}
