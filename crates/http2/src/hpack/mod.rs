//! HPACK (RFC 7541): header blocks as bytes of the wire.
//!
//! The tables of both directions keep the number of each known name, so that a field that the table holds is read by
//! one lookup and one copy, and written by one comparison of bytes. Nothing is hashed but names that come as text.

mod decoder;
mod dynamic;
mod encoder;
mod huffman;
mod integer;
mod repeated;
mod static_table;

#[cfg(test)]
mod tests;

pub(crate) use decoder::Checked;
pub use decoder::{Decoder, Limits, Malformed, Outcome};
pub use encoder::Encoder;

/// Size of the dynamic table until a size update changes it (RFC 9113 §6.5.2).
pub const INITIAL_TABLE_SIZE: usize = 4096;

/// Fault of a header block that leaves the table in an unknown state: a connection error COMPRESSION_ERROR
/// (RFC 9113 §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HpackError {
    /// The block ends inside a field.
    #[error("header block ends inside a field (RFC 7541 §6)")]
    Truncated,
    /// An integer is longer or larger than any that a block of allowed size needs.
    #[error("header block has an integer above 2^32-1 (RFC 7541 §5.1)")]
    Integer,
    /// Neither table has an entry at this index.
    #[error("header block has index {0}, which the tables do not hold (RFC 7541 §2.3.3)")]
    Index(u32),
    /// A Huffman code holds EOS, or padding that is not the 0 to 7 first bits of EOS.
    #[error("header block has an invalid Huffman code (RFC 7541 §5.2)")]
    Huffman,
    /// A size update after the first field of a block.
    #[error("header block has a table size update after a field (RFC 7541 §4.2)")]
    LateSizeUpdate,
    /// A size update above SETTINGS_HEADER_TABLE_SIZE.
    #[error("header block sets the table size to {0}, above SETTINGS_HEADER_TABLE_SIZE (RFC 7541 §6.3)")]
    TableSize(u32),
    /// The peer acknowledged a smaller table and did not confirm it at the start of its next block.
    #[error(
        "header block does not begin with the table size update that the SETTINGS demand (RFC 7541 §4.2)"
    )]
    NoSizeUpdate,
    /// The names that the block has copied inside the table exceed the work that a block may cause.
    #[error("header block copies more than {MAX_COPIED} bytes of names inside the table")]
    Work,
}

/// Most bytes of names that a block may make the decoder copy from entry to entry: without a bound, a block that
/// refers to a name of 4 KB in every second byte causes 2,000 times its length in copies.
pub const MAX_COPIED: usize = 1 << 20;
