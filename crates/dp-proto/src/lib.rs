//! The protocol between a Diameter router and a database processor, over TCP: the router sends bundles of queries, the
//! processor answers each bundle by one of as many answers, in the order in which it has read them. Many bundles may be in
//! flight.
//!
//! All integers are big-endian. A frame:
//!
//! | octets | what |
//! |---|---|
//! | 4 | the number of octets behind these four: 4 to [`MOST_FRAME_BYTES`] |
//! | 1 | version, [`VERSION`] |
//! | 1 | 1: queries, 2: answers |
//! | 2 | the number of entries, 0 to [`MOST_ENTRIES`]; a frame without entries probes the connection and is answered by another one |
//! | … | the entries, one behind the other, up to the end of the frame |
//!
//! A query ([`Query`]):
//!
//! | octets | what |
//! |---|---|
//! | 4 | id, which the router chooses and the answer repeats |
//! | 1 | kind: 1 IMEI, 2 IMSI, 3 MSISDN, 4 name |
//! | 1 + n | length and text of the service, such as `lte-hss`; 0: the destination without a service |
//! | 1 + n | length and text of the digits, or of the name |
//!
//! An answer ([`Answer`]):
//!
//! | octets | what |
//! |---|---|
//! | 4 | id of the query |
//! | 1 | outcome, an [`Outcome`] |
//! | 1 + n | length and text of the destination; 0 with every outcome but 1 and 2 |
//!
//! A peer closes a connection on which it reads a frame that is [`Malformed`]: where the next frame begins is unknown.
//!
//! The crate has no socket and no clock. Bytes from elsewhere neither panic nor allocate.

mod entry;
mod frame;
#[doc(hidden)]
pub mod fuzzing;

pub use entry::{Answer, Entry, Kind, MOST_SERVICE_BYTES, MOST_TEXT_BYTES, Outcome, Query};
pub use frame::{Bundle, Frame, HEAD_BYTES, MOST_ENTRIES, MOST_FRAME_BYTES, Malformed, VERSION};
