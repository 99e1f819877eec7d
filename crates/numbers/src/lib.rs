//! Exact maps from numbers to small values, by the billion.
//!
//! A [`Key`] is a kind (IMSI, MSISDN, IMEI) and 1 to 15 digits, of which the count is part; a value is one of at most 65,535
//! [`DestinationSet`]s of a table. Look-ups are exact: an unknown number is never taken for another. A number takes
//! about two bytes with 300 destinations at random, less where neighbours share one ([docs/numbers.md] has format, bounds and
//! figures).
//!
//! - [`Writer`] writes a file from numbers in ascending order, [`csv::import`] from text in any order; both in bounded
//!   memory.
//! - [`Map`] reads it, mapped or copied, changes it block by block while others read, and writes checkpoints. What makes a
//!   change durable is the caller's [`Journal`].
//! - [`Names`] are exact maps from names (NAIs, public and private identities) to the same values, in memory; [`NameFile`] is one in a
//!   file, which [`NameWriter`] writes.
//!
//! The crate has no thread, clock or socket, and does no IO but with its own files. Neither damaged files nor texts from
//! elsewhere make it panic or answer wrongly: each block has a checksum, and a damaged one refuses its own numbers.
//!
//! [docs/numbers.md]: https://github.com/signalbox/signalbox/blob/main/docs/numbers.md

mod bits;
mod block;
pub mod csv;
mod error;
mod file;
#[doc(hidden)]
pub mod fuzzing;
mod key;
mod map;
mod memory;
mod names;
mod overlay;
mod sets;
mod sorter;

pub use error::{Damaged, Error};
pub use file::{DamagedNames, NameFile, NameWriter, Writer, Written};
pub use key::{Key, KeyError, Kind, MOST_DIGITS};
pub use map::{Change, Explanation, Journal, Map, NoJournal, Place, Summary, Walk};
pub use memory::Load;
pub use names::{MOST_NAME_BYTES, NameError, Names, NamesBuilder};
pub use sets::{
    DestinationSet, MOST_DESTINATION_BYTES, MOST_DESTINATIONS, MOST_SERVICE_BYTES, MOST_SETS, SetError, SetId,
};
