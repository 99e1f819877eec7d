//! HTTP/2 as bytes in and bytes out (RFC 9113): one connection machine for both sides, without sockets,
//! clocks or tasks.
//!
//! Why the lab has its own: a generator must cost far less than what it measures, or it measures itself; and
//! a judge should share no bugs with the accused, so nothing of crate `sbi` is used here. The machine writes
//! header fields that repeat as one byte, hands body bytes over where they lie, and leaves the collecting of
//! bodies to the caller, who mostly needs none.
//!
//! It deliberately lacks: HTTP/1 upgrade, server push, priorities, trailers (read and ignored).

mod connection;
mod frame;
mod hpack;
mod huffman;
mod send;
#[cfg(test)]
mod tests;

pub use connection::{Connection, Event, Failure, Limits, RequestHead, Role};
pub use hpack::Fields;

/// The stream was refused before anything was done with it (RFC 9113 §7); another try is safe.
pub const REFUSED_STREAM: u32 = 0x7;
/// The stream is no longer wanted (RFC 9113 §7).
pub const CANCEL: u32 = 0x8;
