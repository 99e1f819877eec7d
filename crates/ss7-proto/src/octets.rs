//! Reading numbers out of octets, where too few octets are an answer and not a panic.

/// The big-endian number of 16 bits at `at`.
#[inline]
pub(crate) fn be16(octets: &[u8], at: usize) -> Option<u16> {
    octets
        .get(at..)?
        .first_chunk()
        .map(|two| u16::from_be_bytes(*two))
}

/// The big-endian number of 32 bits at `at`.
#[inline]
pub(crate) fn be32(octets: &[u8], at: usize) -> Option<u32> {
    octets
        .get(at..)?
        .first_chunk()
        .map(|four| u32::from_be_bytes(*four))
}

/// The little-endian number of 24 bits at `at`.
#[inline]
pub(crate) fn le24(octets: &[u8], at: usize) -> Option<u32> {
    let [low, middle, high] = *octets.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes([low, middle, high, 0]))
}
