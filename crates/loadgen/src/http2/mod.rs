//! HTTP/2 as bytes in and bytes out (RFC 9113): one connection machine for both sides, without sockets,
//! clocks or tasks.
//!
//! Why the lab has its own: a generator must cost far less than the function that it measures, and must share no
//! defects with it, so it does not use crate `sbi`. The machine writes header fields that repeat as one byte, passes
//! body bytes on where they lie, and leaves the collection of bodies to the caller, which rarely needs it.
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
