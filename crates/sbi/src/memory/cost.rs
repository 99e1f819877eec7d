//! What things take in memory.

use http::HeaderMap;

/// A request in progress, its header fields and body left out: the engine's stream, the task, and the parts of
/// the head.
pub(crate) const REQUEST: usize = 4 * 1_024;
/// A field of a `HeaderMap` without its bytes: a bucket of 104 bytes and its place in the index.
const FIELD: usize = 112;

/// Bytes that the fields of a head take, which RFC 9113 §6.5.2 counts as `list`, with 32 bytes for each: a field of
/// two letters takes 50 times what it may take on the wire.
pub(crate) fn headers(list: usize, fields: usize) -> usize {
    list + fields * (FIELD - 32)
}

/// Size of a header list (RFC 9113 §6.5.2), the pseudo-headers left out.
pub(crate) fn header_list(headers: &HeaderMap) -> usize {
    let each = headers.iter();
    each.map(|(name, value)| name.as_str().len() + value.len() + 32)
        .sum()
}

/// Bytes that a header block takes at most which is not whole yet: a byte may name a field of the HPACK table.
/// `limit`: what the engine keeps of a block, as RFC 9113 §6.5.2 counts it, 32 bytes a field and its own.
pub(crate) fn header_block(len: usize, limit: usize) -> usize {
    len.saturating_mul(FIELD).min(limit / 33 * FIELD).max(len)
}

/// Bytes that a piece of a body takes: it keeps the buffer it was read into, which may be half as large again.
pub(crate) fn piece(len: usize) -> usize {
    len + len / 2
}
