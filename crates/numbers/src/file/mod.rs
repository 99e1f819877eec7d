//! The file: header, blocks, index, a second copy of the index, a second copy of the header.
//!
//! Everything is little-endian. A block begins at a multiple of 8 bytes. The index is 32 bytes for each block, in the order
//! of their numbers, and the table of destination sets. Both copies of header and index are equal, so that one flipped bit
//! costs a block at most.

mod atomic;
mod base;
mod directory;
mod header;
mod names;
mod writer;

pub(crate) use base::Base;
pub use names::{DamagedNames, NameFile, NameWriter};
pub use writer::{Writer, Written};
