//! Numbers as text: one a line, `kind,number,destination[,destination…]`.
//!
//! A destination is a name, or `service=name`; [`DestinationSet`](crate::DestinationSet) has the rules. Lines that begin with
//! `#` are comments, but three: a file whose first line is [`FIRST_LINE`] ends with `#end,COUNT`, so that one that is cut is
//! noticed, and may have `#crc32c,` with the checksum of the lines before. Without them a file that is cut is noticed where its
//! last line has no end.

mod entries;
mod error;
mod export;
mod import;
mod line;
mod writer;

pub use entries::{Entry, entries};
pub use error::{ImportError, Mistake};
pub use export::export;
pub use import::{Options, Progress, import};
pub use writer::TextWriter;

/// The first line of a file that ends with `#end,COUNT`.
pub const FIRST_LINE: &str = "#signalbox-numbers,1";
/// What a first line begins with, whatever its version.
const HEADER: &str = "#signalbox-numbers,";
const END: &str = "#end,";
/// Before the CRC-32C of the lines before it, each with a line feed behind it, in hexadecimal digits.
const SUM: &str = "#crc32c,";
/// Most bytes of a line.
pub const MOST_LINE_BYTES: usize = 8192;
